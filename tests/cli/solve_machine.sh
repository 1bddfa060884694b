# SPDX-License-Identifier: Apache-2.0
# `reckon solve memory`, `dense`, `locality`, `ring` and `oversubscription`: what a machine with memory devices can hold and
# carry (COARSE). Numbers are derived beside each case.
source "$(dirname "$0")/../support/shell.sh"

bad() { refused "$1" solve "${@:2}"; }

# ---------------------------------------------------------------- memory
# 400 MB of parameters: with gradients and Adam's two arrays 1600 MB, 100 MB fixed; 800 of 2500 MB are left, two samples of
# 300. Adam's 800 MB in a device: five.
batch=(--gpu-memory 2500MB --parameters 400MB --fixed 100MB --activations 300MB)
ok solve memory "${batch[@]}" --json
stderr_empty
stdout_is << 'END'
{
  "device_bytes": 8e+08,
  "gradients_bytes": 4e+08,
  "greatest_batch": 2,
  "greatest_batch_with_devices": 5,
  "optimizer_bytes": 8e+08,
  "parameters_bytes": 4e+08,
  "resident_bytes": 1.7e+09,
  "resident_with_devices_bytes": 9e+08
}
END
# All three: 2400 MB for eight.
ok solve memory "${batch[@]}" --devices-hold parameters,gradients,optimizer
stderr_empty
stdout_matches '^without memory devices +1\.583 GiB +- +2$'
stdout_matches '^devices hold parameters,gradients,optimizer +95\.37 MiB +1\.49 GiB +8  \(37\)$'
stdout_matches '^ {43} +in the GPU +in a device +greatest batch$' # as wide as what the devices hold
# SGD has no state: 1600 MB are left, five either way.
reckon solve memory "${batch[@]}" --optimizer sgd --json
stdout_has '"greatest_batch": 5,' '"greatest_batch_with_devices": 5,' '"optimizer_bytes": 0,'
# A workload in half precision: two bytes an element, the optimizer's state in four.
printf 'name,elements,dtype\na,100000000,fp16\n' > half.csv
reckon solve memory --gpu-memory 2500MB --workload half.csv --activations 300MB --json
stdout_has '"parameters_bytes": 2e+08,' '"optimizer_bytes": 8e+08,'
bad "'adagrad'" memory "${batch[@]}" --optimizer adagrad
bad "'weights'" memory "${batch[@]}" --devices-hold optimizer,weights
bad '--activations 0' memory "${batch[@]:0:6}" --activations 0
bad --workload memory --gpu-memory 1GB --activations 1MB
bad --workload memory "${batch[@]}" --workload resnet50
bad '--gpu-memory is required' memory --parameters 1MB --activations 1MB

# ---------------------------------------------------------------- dense
# 8 * 2.7 GB over 16 GB/s; over CCI 90 % of it.
ok solve dense --workers 8 --bytes 2.7GB --bandwidth 16GB/s --json
stderr_empty
stdout_is << 'END'
{
  "bus_seconds": 1.35,
  "cci_over_bus": 1.111111111111111,
  "cci_seconds": 1.5
}
END
# 16 GB/s less 7 * 1 GB/s: 9 GB/s, 2.4 s.
ok solve dense --workers 8 --bytes 2.7GB --bandwidth 16GB/s --efficiency 100% --coherence 1GB/s
stdout_matches '^over CCI +2\.4 s$'
reckon solve dense --workers 8 --bytes 2.7GB --bandwidth 16GB/s --efficiency 100% --coherence 1GB/s --sharers 1
stdout_matches '^over CCI +1\.35 s$'
# A workload's gradient: ResNet-50's 25 557 032 fp32 over 1 GB/s, twice.
reckon solve dense --workers 2 -m resnet50 --bandwidth 1GB/s --json
stdout_has '"bus_seconds": 0.204456256,'
# Tensors of 8 and 16 bytes at 1 + s/8 s, CCI 9 times slower at 8 and 17 times at 16: 2 and 3 s, 18 and 51 s; two workers.
printf 'bytes,seconds\n8,2\n16,3\n' > bus.csv
printf 'bytes,speedup\n8,9\n16,17\n' > speedup.csv
printf 'name,elements\na,2\nb,4\n' > work.csv
ok solve dense --workers 2 --workload work.csv --curve bus.csv --speedup-curve speedup.csv --json
stdout_has '"bus_seconds": 10,' '"cci_seconds": 138'
# For short accesses CCI may be the faster way (II-C): 8 bytes in 1 s, 16 at the bus' own 16/3 B/s. No faster than the bus ever is.
ok solve dense --workers 2 --workload work.csv --curve bus.csv --speedup-curve <(printf 'bytes,speedup\n8,0.75\n16,1\n') --json
stdout_has '"cci_seconds": 9'
bad 0.5 dense --workers 2 --workload work.csv --curve bus.csv --speedup-curve <(printf 'bytes,speedup\n8,1\n16,0.5\n')
# Without a curve of speed-ups CCI reaches 90 % of the bus, or what is said.
reckon solve dense --workers 2 --workload work.csv --curve bus.csv
stdout_matches '^over CCI +11\.11 s$'
reckon solve dense --workers 2 --workload work.csv --curve bus.csv --efficiency 50%
stdout_matches '^over CCI +20 s$'
# What would not be looked at is an error.
bad '--coherence' dense --workers 2 --workload work.csv --curve bus.csv --coherence 1GB/s
bad '--efficiency' dense --workers 2 --workload work.csv --curve bus.csv --speedup-curve speedup.csv --efficiency 50%
bad '--bytes' dense --workers 2 --bytes 1MB --bandwidth 1GB/s --workload work.csv
bad '--curve' dense --workers 2 --bytes 1MB --bandwidth 1GB/s --speedup-curve speedup.csv
bad --bytes dense --workers 2 --bytes 1MB
bad --bandwidth dense --workers 2 --workload work.csv
bad --curve dense --workers 2 --curve bus.csv
bad 'leaves nothing' dense --workers 8 --bytes 1MB --bandwidth 1GB/s --coherence 1GB/s
bad '--efficiency 0' dense --workers 8 --bytes 1MB --bandwidth 1GB/s --efficiency 0
bad 'no column "speedup"' dense --workers 2 --workload work.csv --curve bus.csv --speedup-curve <(printf 'bytes\n1\n')

# ---------------------------------------------------------------- locality and ring
printf 'from,g0,g1,g2,g3\ng0,,9e9,16e9,16e9\ng1,9e9,,16e9,16e9\ng2,16e9,16e9,,9e9\ng3,16e9,16e9,9e9,\n' > v100.csv
ok solve locality --matrix v100.csv --groups g0,g1/g2,g3
stderr_empty
stdout_says '9 GB/s'
stdout_matches '^g3 +anti-local$'
# As if g0 and g2 shared a switch: local all 16; remote four of 16 and four of 9, median 12.5. But each has a link of 16 to
# either kind.
ok solve locality --matrix v100.csv --groups g0,g2/g1,g3 --json
stdout_is << 'END'
{
  "endpoints": {
    "g0": "none",
    "g1": "none",
    "g2": "none",
    "g3": "none"
  },
  "local_bytes_per_second": 1.6e+10,
  "locality": "local",
  "remote_bytes_per_second": 1.25e+10,
  "remote_over_local": 0.78125
}
END
reckon solve locality --matrix v100.csv --groups g0,g1/g2,g3 --threshold 80%
stdout_has 'none: local'
bad --groups locality --matrix v100.csv --groups g0,g4
bad "'g1' stands twice" locality --matrix v100.csv --groups g0,g1/g1,g2,g3
bad "'g3' is" locality --matrix v100.csv --groups g0,g1/g2
bad groups locality --matrix v100.csv --groups g0,g1,g2,g3
printf 'from,a,b\na,,1\nb,x,\n' > bad.csv
bad '"x"; must' locality --matrix bad.csv --groups a/b
bad bad.csv:3 ring --matrix bad.csv
echo '{"schema": "reckon/profile"}' > profile.json
bad profile.json ring --matrix profile.json

# The ring as numbered passes two links of 9: 4 * 9 of 4 * (9 + 16 + 16) in all links, of 4 * 16 in the ports.
ok solve ring --matrix v100.csv
stderr_empty
stdout_matches '^given +9 GB/s +22\.0 % +56\.2 %  g0 g1 g2 g3$'
stdout_matches '^best +16 GB/s +39\.0 % +100\.0 %  g0 g2 g1 g3$'
stdout_says '6 rings'
ok solve ring --matrix v100.csv --ring g2,g1,g3,g0 --json
stdout_says '["g2"'
stdout_has '"orders": 6,'
printf 'from,a,b,c\na,,1,\nb,1,,1\nc,,1,\n' > chain.csv
ok solve ring --matrix chain.csv
stdout_matches '^given +none$'
stdout_says '0 rings'
reckon solve ring --matrix chain.csv --json
stdout_has '"best": null,'
# NVIDIA's DGX-1 with V100: six NVLinks of 25 GB/s a GPU, some of them double. A ring over double ones alone uses 8 x 50 of
# 8 x 6 x 25 GB/s, one over a single one half of that.
python3 - "$source_dir/profiles/byteps-nvlink.json" > dgx1.csv << 'END'
import json, sys
rate = {frozenset((x["from"], x["to"])): x["bytes_per_second"] for x in json.load(open(sys.argv[1]))["topology"]["links"]}
gpus = sorted(set().union(*rate))
print("from", *gpus, sep=",")
for a in gpus:
    print(a, *(rate.get(frozenset((a, b)), "") if a != b else "" for b in gpus), sep=",")
END
ok solve ring --matrix dgx1.csv
stdout_matches '^best +50 GB/s +33\.3 % ' '^worst +25 GB/s +16\.7 % '

# Ten endpoints: only the ring as given.
python3 - << 'END' > ten.csv
print("from," + ",".join(map(str, range(10))))
for i in range(10):
    print(f"{i}," + ",".join("1" for _ in range(10)))
END
ok solve ring --matrix ten.csv
stdout_says '10 endpoints'
stdout_lacks 'best'
bad '--ring g0,g1,g2' ring --matrix v100.csv --ring g0,g1,g2
bad '--ring g0,g1,g2,g2' ring --matrix v100.csv --ring g0,g1,g2,g2
bad --ring ring --matrix v100.csv --ring g0,g1,g2,x

# ---------------------------------------------------------------- oversubscription
ok solve oversubscription --gpus 8 --cpu-lanes 80 --json
stdout_is << 'END'
{
  "cpu_lanes": 80,
  "gpu_lanes": 128,
  "oversubscription": 1.6
}
END
reckon solve oversubscription --gpus 4 --gpu-lanes 8 --cpu-lanes 64
stdout_says '32 lanes'
bad '--gpus 0' oversubscription --gpus 0 --cpu-lanes 1
bad '--cpu-lanes is required' oversubscription --gpus 1
