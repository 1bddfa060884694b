# SPDX-License-Identifier: Apache-2.0
# `reckon solve capacity`: workers of one parameter server.
source "$(dirname "$0")/../support/shell.sh"

box=(--interfaces 10 --interface-bandwidth 56Gb/s)

# PBox and ResNet-50 at 190 images a second and a batch of 32: 115, not the paper's 120 (docs/equations.md).
ok solve capacity --workload resnet50 --iteration 168.42ms "${box[@]}" --json
stderr_empty
stdout_has '"workers": 115' '"interface_limit": 115,' '"memory_limit": null,' '"sum_limit": null,'

# 1 GB a second from each worker: 70 by the interfaces, 100 / 2 by memory, (1 - 1/4) x 40 by sums and steps.
reckon solve capacity --bytes 1GB --iteration 1s "${box[@]}" --memory-bandwidth 100GB/s --sum-bandwidth 40GB/s \
  --step-bandwidth 4GB/s --json
stdout_has '"workers": 30' '"limited_by": "sums",' '"memory_limit": 50,' '"sum_limit": 30,'

# Twice as many as 30 need two boxes, whose steps are half as long: 2 x (1 - 1/8) x 40 = 70.
reckon solve capacity --bytes 1GB --iteration 1s "${box[@]}" --sum-bandwidth 40GB/s --step-bandwidth 4GB/s --workers 70 --json
stdout_has '"boxes": 2,'
reckon solve capacity --bytes 1GB --iteration 1s "${box[@]}" --sum-bandwidth 40GB/s --step-bandwidth 4GB/s --workers 71 --json
stdout_has '"boxes": 3,'

# 20 workers at 3 an hour and a box at 10: 70; alone they are 60, and wait twice 19/20 of a second for the 1 GB/s link.
echo '{"currency": "USD", "per": "hour", "worker": 3, "box": 10}' > prices.json
ok solve capacity --bytes 1GB --iteration 1s "${box[@]}" --workers 20 --worker-bandwidth 1GB/s --prices prices.json
stdout_matches '^boxes +1 +1 s +70 +100\.0%' '^a shard on each worker +0 +1\.9 s +60 +61\.4%'

# A worker's link of 1 Gb/s makes 817.8 ms of an iteration, in which a box of 70 GB/s takes 560 gradients of resnet50.
slow=(--workload resnet50 --iteration 300ms "${box[@]}" --workers 1000 --worker-bandwidth 1Gb/s)
ok solve capacity "${slow[@]}" --batch 32
stdout_says 'supports 205'
stdout_matches '^boxes +2 +817\.8 ms '
ok solve capacity --bytes 1GB --iteration 10ms "${box[@]}"
stdout_says '10ms: interfaces'

bad() { refused "$1" solve capacity "${@:2}"; }
bad 'give the gradient' --iteration 1s "${box[@]}"
bad 'not by both' --bytes 1GB --workload resnet50 --iteration 1s "${box[@]}"
bad '--iteration 0ms' --bytes 1GB --iteration 0ms "${box[@]}"
bad '--bytes 0' --bytes 0 --iteration 1s "${box[@]}"
bad '--batch 0' "${slow[@]}" --batch 0
bad '--interfaces 0' --bytes 1GB --iteration 1s --interfaces 0 --interface-bandwidth 1GB/s
bad "'0GB/s'" --bytes 1GB --iteration 1s "${box[@]}" --sum-bandwidth 0GB/s

echo '{"currency": "USD", "per": "hour", "worker": -3, "box": 10}' > prices.json
refused 'prices.json: /worker' \
  solve capacity --bytes 1GB --iteration 1s "${box[@]}" --prices prices.json
echo '{"currency": "USD", "per": "hour", "worker": 0, "box": 10}' > prices.json # shards on workers would cost nothing
refused 'prices.json: /worker' \
  solve capacity --bytes 1GB --iteration 1s "${box[@]}" --prices prices.json
echo '{"currency": "USD", "per": "hour", "worker": 3, "box": 1e308}' > prices.json
refused would \
  solve capacity --bytes 1GB --iteration 1s "${box[@]}" --workers 100000 --prices prices.json
refused 'not by both' solve capacity --bytes 1GB --workload resnet50 --iteration 1s "${box[@]}"
echo '{"currency": "USD", "per": "hour", "worker": 3, "bx": 10}' > prices.json
refused 'bx' solve capacity --bytes 1GB --iteration 1s "${box[@]}" --prices prices.json

# What is slow is named: of both, the one that was given.
ok solve capacity -m resnet50 --iteration 16.8ms --interfaces 10 --interface-bandwidth 56Gb/s --step-bandwidth 100MB/s
stdout_says 16.8ms
