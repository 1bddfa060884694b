# SPDX-License-Identifier: Apache-2.0
# `reckon solve routing`, `partition` and `dual-sync`: COARSE's sections III-E and III-F by hand. Numbers are derived beside
# each case.
source "$(dirname "$0")/../support/shell.sh"

# ---------------------------------------------------------------- routing
# 1 s + s/4 = 3 s + s/8 at s = 16.
printf 'bytes,seconds\n0,1\n8,3\n32,9\n' > near.csv
printf 'seconds,bytes\n3,0\n5,16\n7,32\n' > far.csv
ok solve routing --latency-curve near.csv --bandwidth-curve far.csv --json
stderr_empty
# Sizes 0, 8, 16, 32: near 1 + 3 + 5 + 9, far 3 + 4 + 5 + 7, the faster each 1 + 3 + 5 + 7.
stdout_is << 'END'
{
  "bandwidth_proxy_seconds": 19,
  "best_seconds": 16,
  "crossings_bytes": [16],
  "intervals": [
    {
      "faster": "latency",
      "from_bytes": 0,
      "to_bytes": 16
    },
    {
      "faster": "bandwidth",
      "from_bytes": 16,
      "to_bytes": null
    }
  ],
  "latency_proxy_seconds": 18,
  "reversed": false,
  "several_crossings": false,
  "tested_from_bytes": 0,
  "tested_to_bytes": 32,
  "threshold_bytes": 16,
  "threshold_seconds": 16
}
END
ok solve routing --latency-curve near.csv --bandwidth-curve far.csv
stderr_empty
stdout_says 'threshold 16'
stdout_matches '^latency +0 B +16 B$' '^bandwidth +16 B +any size$'
stdout_matches '^all by the latency proxy +18 s +1\.125 x$'

# The first faster everywhere, the second, and both the same.
printf 'bytes,seconds\n1,1\n64,2\n' > fast.csv
printf 'bytes,seconds\n1,2\n64,4\n' > slow.csv
reckon solve routing --latency-curve fast.csv --bandwidth-curve slow.csv --json
stdout_has '"threshold_bytes": null,' '"crossings_bytes": [],'
reckon solve routing --latency-curve slow.csv --bandwidth-curve fast.csv --json
stdout_has '"threshold_bytes": 0,'
reckon solve routing --latency-curve fast.csv --bandwidth-curve fast.csv --json
stdout_has '"threshold_bytes": null,'
reckon solve routing --latency-curve fast.csv --bandwidth-curve fast.csv
stdout_says threshold
reckon solve routing --latency-curve slow.csv --bandwidth-curve fast.csv
stdout_says 'threshold 0'

# Crossings at 8, 16 and 24; tensors of 20 bytes decide for the last, those of 12 for the first.
printf 'bytes,seconds\n4,1\n12,3\n20,3\n28,5\n' > a.csv
printf 'bytes,seconds\n4,2\n12,2\n20,4\n28,4\n' > b.csv
printf 'name,elements\na,5\nb,5\nc,3\n' > twenties.csv
printf 'name,elements\na,5\nb,3\nc,3\n' > twelves.csv
ok solve routing --latency-curve a.csv --bandwidth-curve b.csv --workload twenties.csv --json
stdout_says '"crossings_bytes": [8'
stdout_has '"several_crossings": true,' '"threshold_bytes": 24,'
stdout_has '"threshold_seconds": 9' '"best_seconds": 8,'
ok solve routing --latency-curve a.csv --bandwidth-curve b.csv --workload twelves.csv
stdout_says 'threshold 8'
stdout_says '3 crossings'
stdout_says '3 tensors'
ok solve routing --latency-curve far.csv --bandwidth-curve near.csv
stdout_says curves
stdout_lacks 'crossings: no threshold'
# Behind the last sample: 1 s + s/4 = 5 s + s/8 at 32, tested up to 16.
printf 'bytes,seconds\n0,1\n16,5\n' > near16.csv
printf 'bytes,seconds\n0,5\n16,7\n' > far16.csv
reckon solve routing --latency-curve near16.csv --bandwidth-curve far16.csv
stdout_says 'threshold 32'
stdout_matches '^bandwidth +32 B +any size, beyond the largest size tested$'

printf 'bytes,seconds\n1,1\n2,nan\n' > bad.csv
refused '"nan"' solve routing --latency-curve near.csv --bandwidth-curve bad.csv
refused 'nowhere.csv' solve routing --latency-curve near.csv --bandwidth-curve nowhere.csv
refused '--bandwidth-curve is required' solve routing --latency-curve near.csv

# ---------------------------------------------------------------- partition
# 1, 1.96 and 2 GB/s: 2 % of 2 is 1.96.
printf 'bytes,seconds\n1048576,1.048576e-3\n1960000,1e-3\n4000000,2e-3\n' > curve.csv
ok solve partition --curve curve.csv --bandwidth-slack 2% --tensor 9437184 --json
stderr_empty
# 9437184 / 1960000 = 4.8: four shards of 2359296.
stdout_is << 'END'
{
  "bandwidth_bytes_per_second": 1.96e+09,
  "greatest_bandwidth_bytes": 4e+06,
  "greatest_bandwidth_bytes_per_second": 2e+09,
  "is_largest_tested": false,
  "partition_bytes": 1960000,
  "shards_bytes": [2359296, 2359296, 2359296, 2359296],
  "tolerance": 0.02
}
END
ok solve partition --curve curve.csv --bandwidth-slack 0.01
stdout_says '= 3.815'
stdout_says largest
reckon solve partition --curve curve.csv --json # the default is 2 %
stdout_has '"partition_bytes": 1960000,' '"shards_bytes": null,'
reckon solve partition --curve curve.csv --tensor 1000000 --json
stdout_has '"shards_bytes": [1000000],'
# 1500001 elements in three: one more in the first.
reckon solve partition --curve curve.csv --tensor 6000004
stdout_says 5.722
reckon solve partition --curve curve.csv --tensor 0 --json
stdout_has '"shards_bytes": [],'
for tolerance in 100% -2% two; do
  refused '--bandwidth-slack' solve partition --curve curve.csv --bandwidth-slack "$tolerance"
done
printf 'bytes,seconds\n0,1\n' > nothing.csv
refused 'above 0' solve partition --curve nothing.csv
printf 'bytes,seconds\n1,1\n' > bytewise.csv
refused 10000000 solve partition --curve bytewise.csv --tensor 1TB

# ---------------------------------------------------------------- dual-sync
# p = 2: a ring moves every byte once. 4 s + (12 - m)/1 = m/1 at m = 8 GB; 1 + 8 s. Corrected: a device's port has 2 m, and
# the workers' ring starts at m/12 of 4 s: 2 m = m/3 + 12 - m at 4.5; 1 + 9 s; the paper's m takes 1 + 16 s.
two=(--workers 2 --bytes 12GB --proxy-bandwidth 1GB/s --gpu-bandwidth 1GB/s --forward 1s --backward 4s)
ok solve dual-sync "${two[@]}" --json
stderr_empty
stdout_is << 'END'
{
  "clipped": false,
  "corrected_clipped": false,
  "corrected_most_proxy_bytes": 4500000000,
  "corrected_proxies_only_seconds": 25,
  "corrected_proxy_bytes": 4500000000,
  "corrected_rounded": null,
  "corrected_time_of_paper_split_seconds": 17,
  "corrected_time_seconds": 10,
  "corrected_worker_bytes": 7500000000,
  "corrected_workers_only_seconds": 13,
  "proxy_bytes": 8000000000,
  "rounded": null,
  "time_seconds": 9,
  "worker_bytes": 4000000000
}
END
ok solve dual-sync "${two[@]}"
stderr_empty
stdout_matches "^the paper's formula +7\.451 GiB +3\.725 GiB +9 s +\(32\)$"
stdout_matches '^corrected +4\.191 GiB +6\.985 GiB +10 s +\(33\)$'
stdout_matches "^the paper's m, corrected .* 17 s "
# Backward longer than the proxies need for all: clipped at n.
reckon solve dual-sync "${two[@]:0:8}" --forward 1s --backward 13s --json
stdout_has '"clipped": true,' '"proxy_bytes": 12000000000,' '"worker_bytes": 0'
stdout_has '"time_seconds": 14,'
# One worker: nothing to synchronize.
ok solve dual-sync --workers 1 "${two[@]:2}" --json
stdout_has '"proxy_bytes": 0,' '"time_seconds": 5,' '"clipped": false,'
# 4 workers, 2 devices: 3 m = m/3 + 18 - 1.5 m at 4.32. The paper's formula knows no devices.
reckon solve dual-sync --workers 4 --devices 2 "${two[@]:2}" --json
stdout_has '"corrected_proxy_bytes": 4320000000,'
# A client's link of 0.25 GB/s: 4 m = m/3 + 12 - m at 18/7 GB.
reckon solve dual-sync "${two[@]}" --client-bandwidth 0.25GB/s --json
stdout_has '"corrected_proxy_bytes": 2571428571,'
# The ring after the backward pass: 2 m = 4 + 12 - m at 16/3 GB.
reckon solve dual-sync "${two[@]}" --ring-after-backward --json
stdout_has '"corrected_proxy_bytes": 5333333333,'
# On a shared link two workers gain nothing by proxies.
reckon solve dual-sync "${two[@]}" --shared-link --json
stdout_has '"corrected_proxy_bytes": 0,' '"corrected_clipped": true,'

# Whole tensors: 5, 4 and 3 GB; 5 + 4 = 9 is nearest to 8 in time, max(16 - 9, 9) + 1.
cat > work.json << 'END'
{"schema": "reckon/workload", "schema_version": 1, "name": "three", "dtype": "fp32",
 "tensors": [{"name": "a", "elements": 1250000000}, {"name": "b", "elements": 1000000000},
             {"name": "c", "elements": 750000000}], "forward_seconds": 1, "backward_seconds": 4}
END
ok solve dual-sync --workers 2 --workload work.json --proxy-bandwidth 1GB/s --gpu-bandwidth 1GB/s
stdout_matches '^  in whole tensors +8\.382 GiB +2\.794 GiB +10 s +the first 2, costs 1 s$'
# The options go before the workload's times: with 13 s everything is hidden.
reckon solve dual-sync --workers 2 --workload work.json --proxy-bandwidth 1GB/s --gpu-bandwidth 1GB/s --backward 13s --json
stdout_has '"time_seconds": 14,' '"tensors": 3,'

bad() { refused "$1" solve dual-sync "${@:2}"; }
bad '--workers 0' --workers 0 "${two[@]:2}"
bad '--devices 3' "${two[@]}" --devices 3
bad '--devices 0' "${two[@]}" --devices 0
bad '--forward is required' "${two[@]:0:8}" --backward 1s
bad '--backward is required' "${two[@]:0:8}" --forward 1s
bad --bytes --workers 2 "${two[@]:4}"
bad '--bytes excludes --workload' "${two[@]}" --workload resnet50
bad "'7'" "${two[@]:0:8}" --forward 7 --backward 1s
bad "'0GB/s'" "${two[@]}" --client-bandwidth 0GB/s
