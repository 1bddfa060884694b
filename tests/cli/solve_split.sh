# SPDX-License-Identifier: Apache-2.0
# `reckon solve split`: the equations of the split by hand. Numbers are derived beside each case.
source "$(dirname "$0")/../support/shell.sh"

# VGG-16 on 8 workers and 4 servers at 100 Gbit/s: D = 64 + 32 - 8 = 88; shares 553e6 * 4/88 and 553e6 * 14/88;
# time 112/88 * 553e6/12.5e9; all-reduce 2 * 7/8 of 0.04424 s; parameter server 8/4 of it; 88/64 and 88/56.
ok solve split --workers 8 --servers 4 --bytes 553MB --bandwidth 100Gb/s --json
stderr_empty
stdout_is << 'END'
{
  "allreduce_seconds": 0.07742,
  "colocated_parameter_server_seconds": 0.07742,
  "limit": "all_ports",
  "limiting_workers": [],
  "model_bytes": 553000000,
  "parameter_server_seconds": 0.08848,
  "server_port_bytes": 703818181.8181818,
  "server_share_bytes": 87977272.72727272,
  "servers": 4,
  "slots": 88,
  "slots_per_server": 14,
  "slots_per_worker": 4,
  "speedup_over_allreduce": 1.375,
  "speedup_over_parameter_server": 1.5714285714285714,
  "time_seconds": 0.05630545454545455,
  "worker_port_bytes": 703818181.8181818,
  "worker_share_bytes": 25136363.636363637,
  "workers": 8
}
END

# The same for people.
ok solve split --workers 8 --servers 4 --bytes 553MB --bandwidth 100Gb/s
stderr_empty
stdout_matches '^best split +56\.31 ms +1 x .*D = n\^2 \+ kn - 2k = 88'
stdout_matches '^ring all-reduce +77\.42 ms +1\.375 x ' '^parameter server +88\.48 ms +1\.571 x '
stdout_matches '^8 workers .* 100 % +4$' '^4 servers .* 100 % +14$'
stdout_says limit
# One more server: 2 * 8 * 7 / (64 + 40 - 10) = 112/94 against 112/88 is -6.4 %.
stdout_matches '^  with one more server +52\.71 ms +-6\.4 %$'

# No servers: all-reduce, and no parameter server to compare with.
ok solve split --workers 4 --servers 0 --bytes 4MB --bandwidth 1GB/s --json
stdout_has '"time_seconds": 0.006,' '"speedup_over_allreduce": 1,'
stdout_has '"parameter_server_seconds": null,' '"speedup_over_parameter_server": null,'
stdout_has '"server_share_bytes": 0,'

# One worker: nothing moves, nothing is so many times faster than nothing.
ok solve split --workers 1 --servers 1 --bytes 4MB --bandwidth 1GB/s --json
stdout_has '"time_seconds": 0,' '"speedup_over_allreduce": null,' '"slots": null,'
stdout_has '"worker_share_bytes": 4e+06,'

# More servers than workers: a parameter server at the workers' own speed.
ok solve split --workers 4 --servers 10 --bytes 4MB --bandwidth 1GB/s --json
stdout_has '"time_seconds": 0.004,' '"worker_share_bytes": 0,' '"server_share_bytes": 4e+05,'
stdout_has '"slots": null,' '"limit": "slowest_workers",'

# Unequal ports: M (1 + 4/2) / ((4+2+2+2)/2) = 12 * 3/5 GB over GB/s; shares (7.2 B - 12) / 2.
ok solve split --worker-bandwidths 4GB/s,2GB/s,2GB/s,2GB/s --bytes 12GB --json
stdout_says '"worker_share_bytes": [8.4e+09'
stdout_has '"time_seconds": 7.2,'
stdout_has '"server_share_bytes": [],' '"allreduce_seconds": 9,' '"slots": null,'

# A list for the servers only; a server's own bandwidth.
ok solve split --workers 4 --servers 2 --bandwidth 4GB/s --server-bandwidths 4GB/s,8GB/s --bytes 12GB --json
stdout_matches '"server_share_bytes": \[[0-9.e+]+, [0-9.e+]+\],'
# Counted servers 2 * 1/4 = 0.5 of a worker: D = 16 + 0.5 * 2 = 17, 2 * 4 * 3 / 17 * 4/4.
ok solve split --workers 4 --servers 2 --bandwidth 4GB/s --server-bandwidth 1GB/s --bytes 17GB --json
stdout_has '"time_seconds": 6,' '"slots": null,'

bad() { refused "$1" solve split "${@:2}"; }
bad least --workers 0 --servers 1 --bytes 4MB --bandwidth 1GB/s
bad '--workers -1' --workers -1 --bytes 4MB --bandwidth 1GB/s
bad '--servers -2' --workers 2 --servers -2 --bytes 4MB --bandwidth 1GB/s
bad '--workers 1000001' --workers 1000001 --bytes 4MB --bandwidth 1GB/s
bad 'workers are missing' --bytes 4MB --bandwidth 1GB/s
bad '--bytes is required' --workers 2 --bandwidth 1GB/s
bad "'-4MB'" --workers 2 --bytes -4MB --bandwidth 1GB/s
bad "'4Mb'" --workers 2 --bytes 4Mb --bandwidth 1GB/s
bad bandwidth --workers 2 --bytes 4MB
bad bandwidth --worker-bandwidths 1GB/s,1GB/s --servers 1 --bytes 4MB
bad "'0GB/s'" --workers 2 --bytes 4MB --bandwidth 0GB/s
bad "'7'" --workers 2 --bytes 4MB --bandwidth 7
bad '--workers 3' --workers 3 --worker-bandwidths 1GB/s,1GB/s --bytes 4MB
bad '--servers 2' --workers 3 --bandwidth 1GB/s --servers 2 --server-bandwidths 1GB/s --bytes 4MB
bad "''" --worker-bandwidths 1GB/s,,1GB/s --bytes 4MB
bad 'excludes' --workers 2 --bandwidth 1GB/s --worker-bandwidths 1GB/s,1GB/s --bytes 4MB

exits 2 solve
stdout_empty
