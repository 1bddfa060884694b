# SPDX-License-Identifier: Apache-2.0
# `reckon solve torus`: ACE's torus and what it asks of memory.
source "$(dirname "$0")/../support/shell.sh"

table_v=(--local-bandwidth 400GB/s --vertical-bandwidth 50GB/s --horizontal-bandwidth 50GB/s)

# ACE's own example: 2.25 N sent for N loaded, 300 GB/s, 450 and 133 GB/s of memory, 6 SMs. The exact counts: 3 read for
# 2.25 sent, 3.75 with the last sums.
ok solve torus --shape 4x4x4 "${table_v[@]}" --json
stderr_empty
stdout_has '"bytes_sent_per_byte_loaded": 2.25,' '"ideal_bandwidth": 3e+11,'
stdout_has '"baseline_memory_bandwidth": 4.5e+11,' '"offload_memory_bandwidth": 133333333333.33333,'
stdout_has '"ratio": 3.375' '"sms": 6' '"exact_reads_bandwidth": 4e+11,'
stdout_has '"exact_reads_with_last_sums_bandwidth": 5e+11,'

# 94 % of each link, and 90 % of that: 270 GB/s take 405 GB/s.
reckon solve torus --shape 4x4x4 "${table_v[@]}" --link-efficiency 94% --json
stdout_has '"ideal_bandwidth": 2.82e+11,'
reckon solve torus --shape 4x4x4 "${table_v[@]}" --network-bandwidth 270GB/s --json
stdout_has '"baseline_memory_bandwidth": 4.05e+11,'

# A dimension of one node needs no bandwidth.
ok solve torus --shape 1x8x1 --vertical-bandwidth 50GB/s
stderr_empty
stdout_says loaded

ok solve torus --shape 4x4x4 "${table_v[@]}" --collective all-to-all
stdout_says 3.048

# All rings that bind are named: 0.75 B over 400 GB/s is less than 0.375 over 50, both times; and at 100 GB/s all tie.
reckon solve torus --shape 4x4x4 "${table_v[@]}"
stdout_says 'busy (44)'
stdout_says '3.38 times'
reckon solve torus --shape 1x4x4 --vertical-bandwidth 50GB/s --horizontal-bandwidth 51GB/s
stdout_says 'busy (44)'
# 1 KiB for four phases and the way back: less than a message of 4 KiB.
ok solve torus --shape 4x4x4 "${table_v[@]}" --sram 1KiB
stdout_says '--sram 1KiB'
reckon solve torus --shape 4x4x4 "${table_v[@]}"
stdout_lacks 'does not hold'

bad() { refused "$1" solve torus "${@:2}"; }
bad "'4x4'" --shape 4x4 "${table_v[@]}"
bad "'4x4x4x4'" --shape 4x4x4x4 "${table_v[@]}"
bad "'4x0x4'" --shape 4x0x4 "${table_v[@]}"
bad nobody --shape 1x1x1
bad 1000000 --shape 99999x99999x99999 "${table_v[@]}"
bad 'give --vertical-bandwidth' --shape 4x4x4 --local-bandwidth 400GB/s
bad '300 GB/s' --shape 4x4x4 "${table_v[@]}" --network-bandwidth 301GB/s
bad all-reduce --shape 4x4x4 "${table_v[@]}" --collective broadcast
bad 'above 0' --shape 4x4x4 "${table_v[@]}" --link-efficiency 120%
for size in chunk message sram; do
  bad "--$size 0: must be greater than 0" --shape 4x4x4 "${table_v[@]}" --$size 0
  bad 'leave them out' --shape 4x4x4 "${table_v[@]}" --collective all-to-all --$size 64KiB
done
bad '--chunk 1' --shape 4x4x4 "${table_v[@]}" --chunk 1
