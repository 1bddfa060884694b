# SPDX-License-Identifier: Apache-2.0
# `reckon solve capacity`: workers of one parameter server.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

box=(--interfaces 10 --interface-bandwidth 56Gb/s)

# PBox and ResNet-50 at 190 images a second and a batch of 32: 115, not the paper's 120 (docs/equations.md).
reckon solve capacity --workload resnet50 --iteration 168.42ms "${box[@]}" --json
expect_status 0
stderr_empty
stdout_has '"workers": 115'
stdout_has '"interface_limit": 115,'
stdout_has '"memory_limit": null,'
stdout_has '"sum_limit": null,'

# 1 GB a second from each worker: 70 by the interfaces, 100 / 2 by memory, (1 - 1/4) x 40 by sums and steps.
reckon solve capacity --bytes 1GB --iteration 1s "${box[@]}" --memory-bandwidth 100GB/s --sum-bandwidth 40GB/s \
  --step-bandwidth 4GB/s --json
stdout_has '"workers": 30'
stdout_has '"limited_by": "sums",'
stdout_has '"memory_limit": 50,'
stdout_has '"sum_limit": 30,'

# Twice as many as 30 need two boxes, whose steps are half as long: 2 x (1 - 1/8) x 40 = 70.
reckon solve capacity --bytes 1GB --iteration 1s "${box[@]}" --sum-bandwidth 40GB/s --step-bandwidth 4GB/s --workers 70 --json
stdout_has '"boxes": 2,'
reckon solve capacity --bytes 1GB --iteration 1s "${box[@]}" --sum-bandwidth 40GB/s --step-bandwidth 4GB/s --workers 71 --json
stdout_has '"boxes": 3,'

# 20 workers at 3 an hour and a box at 10: 70; alone they are 60, and wait twice 19/20 of a second for the 1 GB/s link.
echo '{"currency": "USD", "per": "hour", "worker": 3, "box": 10}' > prices.json
reckon solve capacity --bytes 1GB --iteration 1s "${box[@]}" --workers 20 --worker-bandwidth 1GB/s --prices prices.json
expect_status 0
stdout_matches '^boxes +1 +1 s +70 +100\.0%'
stdout_matches '^a shard on each worker +0 +1\.9 s +60 +61\.4%'

bad() {
  reckon solve capacity "$@"
  expect_status 2
  stdout_empty
}
bad --iteration 1s "${box[@]}"
stderr_has 'give the gradient'
bad --bytes 1GB --workload resnet50 --iteration 1s "${box[@]}"
bad --bytes 1GB --iteration 0s "${box[@]}"
bad --bytes 1GB --iteration 1s --interfaces 0 --interface-bandwidth 1GB/s
bad --bytes 1GB --iteration 1s "${box[@]}" --sum-bandwidth 0GB/s

echo '{"currency": "USD", "per": "hour", "worker": -3, "box": 10}' > prices.json
reckon solve capacity --bytes 1GB --iteration 1s "${box[@]}" --prices prices.json
expect_status 2
stderr_has 'prices.json: /worker'
echo '{"currency": "USD", "per": "hour", "worker": 3, "bx": 10}' > prices.json
reckon solve capacity --bytes 1GB --iteration 1s "${box[@]}" --prices prices.json
expect_status 2
stderr_has 'bx'
