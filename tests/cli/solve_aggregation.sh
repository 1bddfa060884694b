# SPDX-License-Identifier: Apache-2.0
# `reckon solve aggregation`: BytePS' equations 8 and 9 by hand. Numbers are derived beside each case.
source "$(dirname "$0")/../support/shell.sh"

# All links 4 GB/s, n = 4, p = 2, 8 GB: M/b = 2 s. x = (7 - 4)/(3 * 5) = 1/5, 1.6 * 2 s; CPU-assisted 7/4 * 2 s; brute
# force 4 * 2 s; a ring at 3.5 GB/s: 14/8 * 8/3.5 = 4 s, of which 3.5 s are 1/8 less.
ok solve aggregation --gpus-per-switch 4 --switches 2 --gpu-link 4GB/s --switch-link 4GB/s --bytes 8GB \
  --bottleneck 3.5GB/s --json
stderr_empty
stdout_is << 'END'
{
  "brute_force_fraction": 0.2,
  "brute_force_seconds": 8,
  "cpu_assisted_seconds": 3.5,
  "ring_saving": 0.125,
  "ring_seconds": 4,
  "time_seconds": 3.2
}
END

# The paper's own figures: 1 - 80/105.
ok solve aggregation --gpus-per-switch 4 --switches 2 --gpu-link 105Gb/s --switch-link 105Gb/s --bytes 1GB \
  --bottleneck 80Gb/s
stderr_empty
stdout_matches '^best CPU mix +121\.9 ms +1 x .*0\.2 of the bytes by brute force'
stdout_matches '^CPU-assisted +133\.3 ms +1\.094 x ' '^ring all-reduce +175 ms '
stdout_says 23.81
# One switch: (2n-1)/n = 7/4 against 2(n-1)/n = 6/4 of M over the same links, 7/6 - 1 = 16.67 % more; two switches: 14/8, the
# same.
ok solve aggregation --gpus-per-switch 4 --switches 1 --gpu-link 8GB/s --switch-link 8GB/s --bytes 1GB
stdout_says 16.67
# That ring stays below its switch, whose own link may be slower: 6/4 of 1 GB over 8 GB/s.
ok solve aggregation --gpus-per-switch 4 --switches 1 --gpu-link 8GB/s --switch-link 2GB/s --bytes 1GB
stdout_matches '^ring all-reduce +187\.5 ms '
ok solve aggregation --gpus-per-switch 4 --switches 1 --gpu-link 8GB/s --switch-link 8GB/s --bytes 1GB
# The best CPU mix takes 1.6 of M over a link, the ring 1.5: 1/16 less. It is not called the best of all.
stdout_says 'takes 6.25'
stdout_lacks 'to best'
ok solve aggregation --gpus-per-switch 4 --switches 2 --gpu-link 8GB/s --switch-link 8GB/s --bytes 1GB
stdout_says CPU-assisted limit

# Without --bottleneck: the slower link, and it says so. n = 1: M / min b = 12/3 s; ring 2 * 2/3 * 12/3.
ok solve aggregation --gpus-per-switch 1 --switches 3 --gpu-link 3GB/s --switch-link 4GB/s --bytes 12GB
stdout_matches '^best CPU mix +4 s +1 x +0 of the bytes'
stdout_matches '^ring all-reduce +5\.333 s .*b = 3 GB/s, the slower link'
stdout_says limit

# One GPU, or nothing to sum: a ring moves nothing, and there is nothing to be less than.
ok solve aggregation --gpus-per-switch 1 --switches 1 --gpu-link 3GB/s --switch-link 4GB/s --bytes 12GB --json
stdout_has '"ring_saving": null,' '"ring_seconds": 0,'
ok solve aggregation --gpus-per-switch 1 --switches 1 --gpu-link 3GB/s --switch-link 4GB/s --bytes 12GB
stdout_says whole
ok solve aggregation --gpus-per-switch 4 --switches 2 --gpu-link 3GB/s --switch-link 4GB/s --bytes 0B
stdout_matches '^best CPU mix +0 s +- '

bad() { refused "$1" solve aggregation "${@:2}"; }
links=(--gpu-link 1GB/s --switch-link 1GB/s)
bad '--gpus-per-switch 0' --gpus-per-switch 0 --switches 1 "${links[@]}" --bytes 4MB
bad '--switches -2' --gpus-per-switch 4 --switches -2 "${links[@]}" --bytes 4MB
bad '--switches 1000001' --gpus-per-switch 4 --switches 1000001 "${links[@]}" --bytes 4MB
bad '--switches is required' --gpus-per-switch 4 "${links[@]}" --bytes 4MB
bad '--bytes is required' --gpus-per-switch 4 --switches 2 "${links[@]}"
bad '--gpu-link is required' --gpus-per-switch 4 --switches 2 --switch-link 1GB/s --bytes 4MB
bad "'0GB/s'" --gpus-per-switch 4 --switches 2 --gpu-link 0GB/s --switch-link 1GB/s --bytes 4MB
bad "'7'" --gpus-per-switch 4 --switches 2 --gpu-link 1GB/s --switch-link 7 --bytes 4MB
bad "'4Mb'" --gpus-per-switch 4 --switches 2 "${links[@]}" --bytes 4Mb
bad '--bottleneck 2GB/s' --gpus-per-switch 4 --switches 2 "${links[@]}" --bytes 4MB --bottleneck 2GB/s
bad '--bottleneck 2GB/s' --gpus-per-switch 4 --switches 1 "${links[@]}" --bytes 4MB --bottleneck 2GB/s
bad "'fast'" --gpus-per-switch 4 --switches 2 "${links[@]}" --bytes 4MB --bottleneck fast
