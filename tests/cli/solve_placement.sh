# SPDX-License-Identifier: Apache-2.0
# `reckon solve placement`: chunks of a model's gradient on cores.
source "$(dirname "$0")/../support/shell.sh"

# 3 chunks of 8 and one of 4; then 2 of 8; then 4 alone: 8 8 8 8 8 4 4 on two cores is 24 and 24.
cat > toy.csv << 'END'
name,elements,dtype
a,7,fp32
b,8,fp16
c,1,fp32
END
ok solve placement --workload toy.csv --part-bytes 8 --cores 2 --json
stderr_empty
stdout_is << 'END'
{
  "bytes": 48,
  "chunk_bytes": 8,
  "chunks": 7,
  "cores": 2,
  "load_bytes": [24, 24],
  "max_over_mean": 1,
  "workload": "toy"
}
END

# Whole tensors of 28, 16 and 4 bytes: 28 against 20, over a mean of 24.
ok solve placement --workload toy.csv --part-bytes none --cores 2 --json
stdout_has '"chunk_bytes": null,' '"chunks": 3,' '"load_bytes": [28, 20],'
stdout_has '"max_over_mean": 1.1666666666666667,'

# A shipped workload by its name, with PHub's chunk size as the default. The fullest core has 112 chunks of 32 KiB:
# 3,670,016 over 102,228,128 / 28 is 1.0052.
ok solve placement --workload resnet50 --cores 28 --json
stdout_has '"chunk_bytes": 32768,' '"chunks": 3223,'
stdout_matches '"max_over_mean": 1\.0052'

ok solve placement --workload resnet50 --cores 100
stderr_empty
stdout_says resnet50
stdout_matches '^63 +'
stdout_says --json

# Interfaces, nodes and cores. Two nodes with an interface and a core each: 28 to the first, 16 and 4 to the second.
ok solve placement --workload toy.csv --part-bytes none --cores 2 --interfaces 2 --nodes 2 --json
stderr_empty
stdout_is << 'END'
{
  "bytes": 48,
  "chunk_bytes": null,
  "chunks": 3,
  "cores": 2,
  "cores_at_most": 1.1666666666666667,
  "interfaces": {
    "at_most": 1.5833333333333333,
    "load_bytes": [28, 20],
    "max_over_mean": 1.1666666666666667
  },
  "lanes": [
    {
      "bytes": 28,
      "chunks": 1,
      "core": 0,
      "interface": 0,
      "node": 0
    },
    {
      "bytes": 20,
      "chunks": 2,
      "core": 1,
      "interface": 1,
      "node": 1
    }
  ],
  "load_bytes": [28, 20],
  "max_over_mean": 1.1666666666666667,
  "nodes": {
    "at_most": 1.5833333333333333,
    "load_bytes": [28, 20],
    "max_over_mean": 1.1666666666666667
  },
  "tried": null,
  "workload": "toy"
}
END

# PBox: ten interfaces, two nodes. 14 cores of a node each have a queue at 5 interfaces.
ok solve placement --workload resnet50 --cores 28 --interfaces 10 --nodes 2
stdout_matches '^interfaces +10 +9\.75 MiB +1\.00008 ' '^cores +28 +3\.5 MiB +1\.00521 '
stdout_has '140 lanes'

# Three interfaces over two nodes: 34.1 and 68.2 MB, which is even by interface and not by node.
ok solve placement --workload resnet50 --cores 28 --interfaces 3 --nodes 2
stdout_says '3 interfaces'
reckon solve placement --workload resnet50 --cores 28 --interfaces 4 --nodes 2
stdout_lacks 'interfaces over'

# A write that costs nothing leaves only the filling, which wants small chunks; one that costs much wants larger ones.
auto=(--workload resnet50 --cores 4 --interfaces 2 --part-bytes auto --interface-bandwidth 10Gb/s --workers 4)
ok solve placement "${auto[@]}" --write-cost 0us
stdout_matches '^64 KiB .* the largest within 0\.2 % of the least$'
ok solve placement "${auto[@]}" --write-cost 20us
stdout_matches '^1 MiB .* the largest within 0\.2 % of the least$'

# 16 GB: pieces of 1 KiB would be too many, so larger ones are tried.
printf 'name,elements\nbig,4000000000\n' > big.csv
ok solve placement --workload big.csv --cores 4 --interfaces 2 --part-bytes auto --interface-bandwidth 100Gb/s --write-cost 1us

bad() { refused "$1" solve placement "${@:2}"; }
bad '--workload is required' --cores 2
bad '--cores is required' --workload toy.csv
bad '"resnet50"' --workload resnet5 --cores 2
bad '--cores 0' --workload toy.csv --cores 0
bad '--cores -1' --workload toy.csv --cores -1
bad '--part-bytes 0' --workload toy.csv --cores 2 --part-bytes 0
bad multiple --workload toy.csv --cores 2 --part-bytes 6
bad "'tiny'" --workload toy.csv --cores 2 --part-bytes tiny
bad 'use larger chunks' --workload gpt2-xl --cores 2 --part-bytes 4
bad 'absent.json' --workload absent.json --cores 2
bad --part-bytes --workload toy.csv --cores 2 --interfaces 1 --part-bytes auto
bad --part-bytes --workload toy.csv --cores 2 --part-bytes auto --interface-bandwidth 1GB/s --write-cost 1us
bad 'give --interfaces' --workload toy.csv --cores 2 --nodes 2
bad needs --workload toy.csv --cores 2 --interfaces 1 --nodes 2
bad --part-bytes --workload toy.csv --cores 2 --workers 0
bad --write-cost --workload toy.csv --cores 2 --write-cost 1us
bad '--workers 0' --workload toy.csv --cores 2 --interfaces 1 --part-bytes auto --interface-bandwidth 1GB/s --write-cost 1us --workers 0
bad '--interfaces 0' --workload toy.csv --cores 2 --interfaces 0
