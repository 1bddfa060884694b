# SPDX-License-Identifier: Apache-2.0
# `reckon plan --strategy coarse|dense`: routing tables, shards, dual synchronization, queues; and such plans checked, run,
# shown and compared.
source "$(dirname "$0")/../support/shell.sh"

# Machines gpu0.. and dev0..; between gpuI and devI a write takes 10 us + s / 50 MB/s, between all others 1 ms +
# s / 500 MB/s: S = (1 ms - 10 us) / (1 / 50 MB/s - 1 / 500 MB/s) = 55000 B. In four.json all pairs are of the second kind.
make_profiles << 'END'
for file, count, same in ("two.json", 2, False), ("four.json", 4, True):
    names = [f"{kind}{i}" for kind in ("gpu", "dev") for i in range(count)]
    cells = [cell("port_bandwidth", 1e9, at=m) for m in names]
    for a, b in pairs(names):
        near = not same and a[-1] == b[-1]
        cells += [cell("pair_latency", 1e-5 if near else 1e-3, bytes=8, direction="one_way", at=a, to=b),
                  cell("pair_bandwidth", 5e7 if near else 5e8, direction="one_way", at=a, to=b)]
    write(file, "made", names, cells)
END
printf 'name,elements,dtype\nshort,5000,fp32\nlong,25000,fp32\n' > model.csv
two=(plan --profile two.json --workload model.csv --workers 2 --servers 2)
four=(plan --profile four.json --workload model.csv --workers 4)

# ---------------------------------------------------------------- routing tables
# Ranks 0 and 1 are clients, 2 and 3 devices. The short tensor goes to the near device, the long one (100000 B) to the other.
ok "${two[@]}" --strategy coarse --proxy-bytes all -o all.json
stderr_empty
stdout_matches '^  0 +rank 2  53\.71 KiB +rank 3 .* 53\.71 KiB$'
stdout_matches '^  1 +rank 3  53\.71 KiB +rank 2 .* 53\.71 KiB$'
stdout_says 117.2
stdout_says 'pair_latency: 4'
# The near way takes 20000 B at 50 MB/s; a device's port, 2 x 120000 B at 1 GB/s, would take 240 us.
stdout_matches '^  busiest +400\.0 us +gpu0 -> dev0: 19\.53 KiB at 50 MB/s$'
stdout_has 'proxy_bytes all,'
cp all.json plan.json
json_check plan.json << 'END'
assert [(r["client"], r["latency_proxy"], r["bandwidth_proxy"]) for r in plan["routing"]] == [(0, 2, 3), (1, 3, 2)]
assert all(abs(r["threshold_bytes"] - 55000) < 1e-6 and len(r["crossings_bytes"]) == 1 for r in plan["routing"])
# The clients' edges: of the short tensor to their own device, of the long one to the other's.
first = {t["name"]: plan["trees"][plan["parts"]["tree"][t["first_part"]]] for t in plan["tensors"]}
assert first["short"]["up"][:2] == [2, 3] and first["long"]["up"][:2] == [3, 2]
assert [t["by"] for t in plan["tensors"]] == ["proxies", "proxies"]
END
reckon "${two[@]}" --strategy coarse --proxy-bytes all --json
cmp all.json "$last/stdout" || fail "--json and -o differ"
ok show all.json
stdout_matches '^  0 +rank 2  53\.71 KiB +rank 3'
ok show all.json --csv
stdout_matches '^part,offset_bytes,bytes,server,lane,tree,tensor,by$'
stdout_matches '^0,0,20000,[23],0,0,short,proxies$'

# Where nothing differs there is no threshold, and each client has its own device; two clients a device with half of them.
ok "${four[@]}" --servers 4 --strategy coarse --proxy-bytes all -o same.json
for i in 0 1 2 3; do stdout_matches "^  $i +rank $((i + 4))  none +rank $((i + 4)) "; done
ok "${four[@]}" --servers 2 --strategy coarse --proxy-bytes all -o half.json
stdout_matches '^  0-1 +rank 4  none +rank 4 ' '^  2-3 +rank 5  none +rank 5 '

# The paper's machines (V-C): T4 and P100 take one device, V100 the local one for short tensors and a remote one for long.
for machine in t4 p100; do
  ok plan --profile "coarse-$machine" --workload resnet50 --workers 4 --servers 4 --strategy coarse -o "$machine.json"
  for i in 0 1 2 3; do stdout_matches "^  $i +rank $((i + 4))  none +rank $((i + 4)) "; done
done
ok plan --profile coarse-v100 --workload resnet50 --workers 4 --servers 4 --strategy coarse -o v100.json
# (30 us - 10 us) / (1 / 4.5 GB/s - 1 / 8 GB/s) = 205714 B
for i in 0 1 2 3; do stdout_matches "^  $i +rank $((i + 4))  200\.9 KiB +rank $(((i ^ 1) + 4)) "; done
exits 1 diff -v v100.json p100.json
stdout_matches '^  0/threshold +200\.9 KiB +-> +\(none\)$'
stdout_matches '^  0/bandwidth proxy +rank 5 +-> +rank 4$'
ok diff v100.json v100.json

# Two of the paper's GPUs have two of its devices, not the other GPUs; all GPUs work unless fewer are asked for.
ok plan --profile coarse-v100 --workload resnet50 --workers 2 --servers 2 --strategy coarse -o pair.json
stdout_matches '^  0 +rank [23]  200\.9 KiB '
json_check pair.json <<< 'assert [r["machine"] for r in pair["ranks"]] == ["gpu0", "gpu1", "dev0", "dev1"]'
ok plan --profile coarse-v100 --workload model.csv --strategy ring -o ring.json
json_check ring.json <<< 'assert [r["machine"] for r in ring["ranks"]] == ["gpu0", "gpu1", "gpu2", "gpu3"]'
refused '4 memory devices' plan --profile coarse-v100 --workload model.csv --workers 4 --servers 5 --strategy ring
refused '4 machines' plan --profile coarse-t4 --workload model.csv --workers 5

# ---------------------------------------------------------------- dual synchronization
ok "${two[@]}" --strategy coarse --proxy-bytes 0 -o none.json
stdout_says 117.2
stdout_matches '^  2 +idle '
# 30 KB is nearer to 20000, the short tensor, than to 120000.
ok "${two[@]}" --strategy coarse --proxy-bytes 30KB -o some.json
stdout_says 19.53
stdout_matches '^  proxy_bytes +19\.53 KiB '
reckon show some.json --csv
stdout_matches ',short,proxies$' ',long,workers$'
exits 1 diff all.json some.json
ok "${two[@]}" --strategy coarse
for candidate in coarse coarse_without_ring dense ring ps_noncolocated; do stdout_matches "^[* ] +$candidate +[0-9]"; done

# DENSE: one device for all, also for the client whose way to it is slow: 120000 B / 50 MB/s.
ok "${two[@]}" --strategy dense -o dense.json
stdout_matches '^  busiest +2\.400 ms +gpu0 -> dev0: 117\.2 KiB at 50 MB/s$'
stdout_matches '^  0-1 +rank 2  none +rank 2 ' '^  3 +idle '

# With passes: in gradient order, or what the next forward pass needs first.
refused --order \
  "${two[@]}" --strategy coarse --order priority
{ echo name,elements,dtype; for i in 0 1 2 3 4 5; do echo "t$i,25000,fp32"; done; } > six.csv
six=(plan --profile two.json --workload six.csv --workers 2 --servers 2 --strategy coarse --proxy-bytes all --forward 5ms --backward 1ms)
ok "${six[@]}" --order priority -o priority.json
stdout_says 'equation 18'
ok "${six[@]}" --order gradient -o gradient.json
stdout_says 'equation 18'
for name in priority gradient; do
  ok run "$name.json" --iterations 3 --tolerance 1e9% --step-timeout 60s
  stdout_matches '^verified .* every element correct$'
done

# ---------------------------------------------------------------- shards
# S' is given as --part-bytes: floor(100000 / 40000) = 2 shards of 50000 B, equation 31.
ok "${two[@]}" --strategy coarse --proxy-bytes all --part-bytes 40000
stdout_matches '^  parts +3 of 19\.53 KiB to 48\.83 KiB'
ok "${two[@]}" --strategy coarse --proxy-bytes all --shards paper
stdout_matches '^  parts +2 of 19\.53 KiB to 97\.66 KiB' # S' is longer than both
# 1 ms + s / 500 MB/s: at 16 MiB, the longest, 486 MB/s; at 1 MiB 339 MB/s, 70 % of it, at 512 KiB 256 MB/s, 53 %.
ok "${two[@]}" --strategy coarse --bandwidth-slack 40%
stdout_matches '^  partition_bytes +1 MiB '

# ---------------------------------------------------------------- runs
for name in all some none dense same half; do
  ok run "$name.json" --check
  stdout_says deadlock
done
for name in all some dense half; do
  ok run "$name.json" --iterations 3 --tolerance 1e9% --step-timeout 60s
  stdout_matches '^verified .* every element correct$'
done
ok "${four[@]}" --servers 4 --strategy coarse --proxy-bytes all --ring-directions 2 --part-bytes 4096 -o rings.json
stdout_says "proxies'"
ok run rings.json --iterations 3 --tolerance 1e9% --step-timeout 60s
# The step of the optimizer, on the devices or at the workers.
for place in server worker; do
  ok "${two[@]}" --strategy coarse --proxy-bytes all --optimizer adam --update "$place" -o step.json
  ok run step.json --iterations 3 --tolerance 1e9% --step-timeout 60s
  stdout_matches '^verified .* every element correct$'
done

# ---------------------------------------------------------------- figure 10
# One queue: rank 2 begins with the short tensor of rank 0 and waits for rank 1's, which is at rank 3; rank 3 begins with the
# long one of rank 0 and waits for rank 1's, which is behind the short one at rank 2.
ok "${two[@]}" --strategy coarse --queues fcfs -o fcfs.json
stdout_has 'queues fcfs'
stderr_says whether
stdout_has '2 tensors with 117.2 KiB through the proxies' # what the queues are about
refused deadlock run fcfs.json --check
exits 2 run fcfs.json --step-timeout 3s # nothing is started
# Who waits for whom: from one rank around to itself.
circle='deadlock: circular wait: rank ([0-9]) for part [0-9]+ from rank [0-9], .* from rank \1; plan with --queues client$'
stderr_matches "$circle"
exits 4 run fcfs.json --unchecked --step-timeout 8s
stderr_matches 'did not finish an iteration within 8 s \(--step-timeout\): lane 0 waits for the arrival of part [0-9]+ from rank [0-9]'
stderr_matches "; it could not: fcfs.json: .* $circle"
ok run all.json --unchecked --step-timeout 60s --iterations 3 --tolerance 1e9%

# ---------------------------------------------------------------- errors
bad() { refused "$1" "${two[@]}" "${@:2}"; }
bad --async --strategy coarse --async
bad --async --strategy dense --reduction fixed:32
bad '--proxy-bytes' --strategy coarse --proxy-bytes half
bad '--proxy-bytes' --strategy coarse --proxy-bytes -1
bad '--proxy-bytes 120001' --strategy coarse --proxy-bytes 120001
bad '--bandwidth-slack 100%' --strategy coarse --bandwidth-slack 100%
bad --bandwidth-slack --strategy coarse --bandwidth-slack much
bad '--ring-directions: 3' --strategy coarse --ring-directions 3
bad --shards --strategy coarse --shards long
bad --queues --strategy coarse --queues lifo
bad --strategy --strategy ring --proxy-bytes all
bad --strategy --queues fcfs
for strategy in coarse dense; do
  refused --servers \
    plan --profile two.json --workload model.csv --workers 2 --servers 0 --strategy "$strategy"
done
refused '--workers 2' \
  plan --profile two.json --workload model.csv --workers 2 --servers 3 --strategy coarse
# A third device would serve nobody, as in `solve dual-sync`.
for strategy in coarse dense; do
  refused '--servers 3' \
    plan --profile four.json --workload model.csv --workers 2 --servers 3 --strategy "$strategy"
done

# Why it is so; and where nothing goes through the proxies there are no routes to look at.
ok show all.json --explain
stdout_says 'time goes'
stdout_has 'why this S' 'asked for: all'
ok "${four[@]}" --servers 4 --strategy coarse --proxy-bytes 0
stdout_says tensor
