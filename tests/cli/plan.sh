# SPDX-License-Identifier: Apache-2.0
# `reckon plan`: what it says, what it refuses.
source "$(dirname "$0")/../support/shell.sh"

resnet=(plan --profile byteps-cluster --workload resnet50)
# BytePS, section 7.1: 8 machines, 4 CPU machines, 90 Gb/s; equation 7: 2*8*7 M / (88 B), M = 102,228,128 B, B = 11.25e9:
# 0.011565 s.
ok "${resnet[@]}" --workers 8 --servers 4 --strategy byteps_split -o plan.json
stderr_empty
stdout_says ports
stdout_has "byteps_split" "11.57 ms" "runner-up ring"

# The same input gives the same bytes, wherever it goes.
ok "${resnet[@]}" --workers 8 --servers 4 --strategy byteps_split --json
cmp plan.json "$last/stdout" || fail "--json and -o differ"

ok "${resnet[@]}" --workers 8 --servers 4 --explain
stdout_says '2n(n-1)M /' '1 Gb/s'

# What if: k = 0..8 as in figure 12; --set changes one thing.
ok "${resnet[@]}" --workers 8 --sweep k=0..8
[[ $(grep -cv assumed: "$last/stdout") == 10 ]] || fail "a head and nine lines"
stdout_says assumed
ok "${resnet[@]}" --workers 8 --sweep k=0..8..4 --json
stdout_has '"bound_seconds"'
ok "${resnet[@]}" --workers 8 --servers 1 --set k=4 --set part-bytes=1MiB --set strategy=byteps_split
stdout_has "11.57 ms"

# Several settings: all combinations, the least exposed traffic first. 8 machines and k that only sum, ports of 10 or 25 Gb/s;
# equations 1 and 7 with M = 102,228,128 B: (10, 0) 1.75 M / 1.25e9 = 143.1 ms, (10, 4) 112/88 M / 1.25e9 = 104.1 ms, (25, 0)
# 57.25 ms, (25, 4) 41.64 ms. By the hour 8 x 3, 4 x 1 and a port each: 24.8 or 29.2, and 26.4 or 31.6. A step of the last costs
# 31.6 x 41.64 ms / 1 h, the least of all: 26.4 x 57.25 ms is more.
echo '{"currency": "USD", "per": "hour", "worker": 3, "server": 1, "ports": {"10Gb/s": 0.1, "25Gb/s": 0.3}}' > prices.json
ok "${resnet[@]}" --workers 8 --sweep servers=0,4 --sweep port-bandwidth=10Gb/s,25Gb/s --prices prices.json
sed -nE 's/^(\*?) +([04]) +(..Gb).*/\1\2 \3/p' "$last/stdout" > order
diff -u - order << 'END' || fail "another order"
*4 25Gb
0 25Gb
4 10Gb
0 10Gb
END
stdout_matches '^\* +4 +25Gb/s .* 41\.[67][0-9]? ms +25Gb/s +31\.60 +0\.36' '^ +0 +10Gb/s .* 143\.[0-9] ms +10Gb/s +24\.80 +0\.98' 'goodput of 100 %'
ok "${resnet[@]}" --workers 8 --sweep servers=0,4 --sweep port-bandwidth=25Gb/s+-10% --prices prices.json --json
cp "$last/stdout" rows.json
json_check rows.json << 'END'
assert [row["settings"] for row in rows] == [{"servers": k, "port-bandwidth": "25Gb/s+-10%"} for k in ("0", "4")]
assert [row["best"] for row in rows] == [False, True]
for row, moved in zip(rows, (1.75, 112 / 88)):
    for key, rate in (("lo_seconds", 27.5), ("mid_seconds", 25), ("hi_seconds", 22.5)):
        assert near(row[key], moved * 102228128 / (rate / 8 * 1e9), 0.01), (row, key)
assert near(rows[1]["price"]["machines"], 31.6, 1e-9)
assert rows[1]["price"]["ports_bytes_per_second"] == [25e9 / 8]
assert near(rows[1]["price"]["step"], 31.6 * rows[1]["mid_seconds"] / 3600, 1e-9)
END
for spelt in '25Gb/s±10%' '25Gb/s+/-10%' '25 Gb/s +-0.1'; do
  ok "${resnet[@]}" --workers 8 --port-bandwidth "$spelt"
  stdout_says 'port_bandwidth 3.125'
done
refused 'below 100%' "${resnet[@]}" --workers 8 --port-bandwidth 25Gb/s+-100%
refused '12.5 GB/s' "${resnet[@]}" --workers 8 --sweep port-bandwidth=100Gb/s --prices prices.json
refused --sweep "${resnet[@]}" --workers 8 --sweep k=1 --sweep k=2
refused servers=0,4 "${resnet[@]}" --workers 8 --prices prices.json

# A value without a plan has the reason in its line; without any plan it is an error. 8 + 4090 machines are more than 1024.
ok "${resnet[@]}" --workers 8 --sweep k=4,4090
stdout_has "11.63 ms" "1024 machines"
refused "1024 machines" "${resnet[@]}" --workers 8 --sweep k=4090,4091

# Nobody only sums unless asked; the last candidate says what servers would give.
ok "${resnet[@]}" --workers 8
stdout_matches '_with_8_servers +[0-9.]+ ms +[0-9.]+ ms +-[0-9]+ %'
stdout_has "servers 0,"
stdout_matches '^ +0-7 +worker, server'

# What would have no effect is refused.
refused --sweep "${resnet[@]}" --workers 8 --sweep k=0,4 --explain
# Also where --set gives the other one.
refused --network "${resnet[@]}" --workers 8 --set network=1
refused --async-steps "${resnet[@]}" --async-steps 3
refused "give --reduction" "${resnet[@]}" --gradient-bound 3
refused "over transport 'tcp;ofi_rxm'" "${resnet[@]}" --transport 'tcp;ofi_rxm'
stderr_says 'verbs;ofi_rxm'

# A workload from CSV.
printf 'name,elements,dtype\nw1,1000000,fp32\nw2,500000,bf16\n' > model.csv
ok plan --profile byteps-cluster --workload model.csv --workers 4
stdout_has "bf16"

# Roles by file.
cat > roles.json << 'END'
{"schema": "reckon/roles", "schema_version": 1, "name": "mine",
 "groups": [{"machine": "gpu-machine", "count": 3, "worker": true, "server": true, "lanes": 2},
            {"machine": "cpu-machine", "count": 1, "worker": false, "server": true, "lanes": 2}]}
END
ok "${resnet[@]}" --roles roles.json -o by-roles.json
predicted() { sed -n 's/^ *predicted *\([0-9.]* m*s\) .*/\1/p' "$last/stdout"; }
sed 's/, "lanes": 2//' roles.json > auto.json # then the plan chooses, as without roles
ok "${resnet[@]}" --workers 3 --servers 1
without=$(predicted)
ok "${resnet[@]}" --roles auto.json
[[ $without && $(predicted) == "$without" ]] || fail "predicted $(predicted) with roles, $without without"
refused --workers "${resnet[@]}" --roles roles.json --workers 4

# Bad input: one line, the remedy, exit 2, and no file.
refused "resnet50" plan --profile byteps-cluster --workload resnet5 -o none.json
exits 2 plan --profile nowhere.json --workload resnet50 -o none.json
refused "--profile is missing" plan --workload resnet50
exits 2 "${resnet[@]}" --workers 0
refused "1024 machines" "${resnet[@]}" --workers 5000
refused "byteps_split" "${resnet[@]}" --strategy fastest
refused "'window'" "${resnet[@]}" --set widnow=3
exits 2 "${resnet[@]}" --part-bytes 4Mb
exits 2 "${resnet[@]}" --sweep k=4..1
cp "$source_dir/profiles/byteps-cluster.json" mine.json
refused input plan --profile mine.json --workload resnet50 -o ./mine.json
cmp mine.json "$source_dir/profiles/byteps-cluster.json" || fail "the profile is gone"
refused "'plan'" plam
# More than this machine holds is said before anything is built.
ok plan --profile byteps-cluster --workload vgg16 -o huge.json
exits 3 run huge.json
stderr_has TiB fewer
absent none.json

# The documents' first example is a profile that can be planned for; of cells without a transport the error says so.
sed -n '/"name": "two-switches"/,/^```$/p' "$source_dir/docs/documents.md" | sed '/^```$/d' |
  sed '1i {"schema": "reckon/profile", "schema_version": 1,' > two-switches.json
ok plan -p two-switches.json -m resnet50 -o two-switches-plan.json
stdout_has 'two-switches'
sed 's/ "transport": "[^"]*",//' two-switches.json > untold.json
refused '"transport")' \
  plan -p untold.json -m resnet50 --servers 1
