# SPDX-License-Identifier: Apache-2.0
# `reckon solve placement`: chunks of a model's gradient on cores.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# 3 chunks of 8 and one of 4; then 2 of 8; then 4 alone: 8 8 8 8 8 4 4 on two cores is 24 and 24.
cat > toy.csv << 'END'
name,elements,dtype
a,7,fp32
b,8,fp16
c,1,fp32
END
reckon solve placement --workload toy.csv --chunk 8 --cores 2 --json
expect_status 0
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
reckon solve placement --workload toy.csv --chunk none --cores 2 --json
expect_status 0
stdout_has '"chunk_bytes": null,'
stdout_has '"chunks": 3,'
stdout_has '"load_bytes": [28, 20],'
stdout_has '"max_over_mean": 1.1666666666666667,'

# A shipped workload by its name, with PHub's chunk size as the default. The fullest core has 112 chunks of 32 KiB:
# 3,670,016 over 102,228,128 / 28 is 1.0052.
reckon solve placement --workload resnet50 --cores 28 --json
expect_status 0
stdout_has '"chunk_bytes": 32768,'
stdout_has '"chunks": 3223,'
stdout_matches '"max_over_mean": 1\.0052'

reckon solve placement --workload resnet50 --cores 100
expect_status 0
stderr_empty
stdout_has 'resnet50: 97.49 MiB in 161 tensors, 3223 chunks'
stdout_matches '^63 +'
stdout_has '... and 36 cores more; --json has all'

bad() {
  local message=$1
  shift
  reckon solve placement "$@"
  expect_status 2
  stdout_empty
  stderr_has "$message"
}
bad '--workload is required' --cores 2
bad '--cores is required' --workload toy.csv
bad 'did you mean "resnet50"' --workload resnet5 --cores 2
bad '--cores 0' --workload toy.csv --cores 0
bad '--cores -1' --workload toy.csv --cores -1
bad '--chunk 0' --workload toy.csv --cores 2 --chunk 0
bad 'multiple of 4 B' --workload toy.csv --cores 2 --chunk 6
bad "'tiny'" --workload toy.csv --cores 2 --chunk tiny
bad 'use larger chunks' --workload gpt2-xl --cores 2 --chunk 4
bad 'absent.json' --workload absent.json --cores 2
