# SPDX-License-Identifier: Apache-2.0
# Logs of pairs of machines become one profile, and check tells which machine, NIC or path is slow, or what to measure to know it.
source "$(dirname "$0")/../support/shell.sh"

# pair A B GB/S: what nccl-tests prints for one rank on each of two machines; 25 runs of 268435456 B.
pair() {
  python3 - "$@" > "pair-$1-$2.txt" << 'END'
import sys
a, b, rate = sys.argv[1], sys.argv[2], float(sys.argv[3])
print(f"""# nThread 1 nGpus 1 minBytes 268435456 maxBytes 268435456 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0
#  Rank  0 Group  0 Pid 1 on {a} device  0 [0x8d] NVIDIA H100 80GB HBM3
#  Rank  1 Group  0 Pid 2 on {b} device  0 [0x8d] NVIDIA H100 80GB HBM3
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
   268435456      67108864     float     sum      -1  {268.435456e3 / rate:.1f}  {rate:.2f}  {rate:.2f}      0  {268.435456e3 / rate:.1f}  {rate:.2f}  {rate:.2f}      0
# Out of bounds values : 0 OK""")
END
}
# judge STATUS: of all the logs.
judge() {
  ok import pair-*.txt -o all.json
  stderr_empty
  exits "$1" check all.json
}

# Neither b nor c is bad, since each is good with a: it is the path between them.
pair a b 24.1; pair a c 24.0; pair b c 11.9
judge 1
stdout_matches '1 finding;' '^  b -> c +pair_bandwidth .* 11\.9 GB/s +24\.05 GB/s +49 %'
stdout_lacks 'run next'

# Five logs with one bad machine: d, with two that are good with others.
rm pair-*.txt
pair a b 24.1; pair b c 24.0; pair c d 12.1; pair d e 12.0; pair e a 23.9
judge 1
stdout_matches '1 finding;' '^  d +pair_bandwidth .* 12\.1 GB/s +24 GB/s +50 %  slow with c, e, which are faster with others'
stdout_lacks 'run next'

# Five logs that leave it open: f, or its path to a. One more pair tells; 25 runs of twice 12 GB/s take 1.1 s.
rm pair-*.txt
pair a b 24.1; pair a c 24.0; pair a d 24.1; pair a e 24.0; pair a f 12.0
judge 1
stdout_matches '2 findings;' '^  f +pair_bandwidth .*  suspect: or its path to a' '^  a -> f +pair_bandwidth .*  suspect: or one of its ends'
stdout_matches '^to be certain, run next: b with f \(1 pair in 1 round, about 1\.1 s '
exits 1 check all.json --json
cp .last/stdout verdict.json
json_check verdict.json << 'END'
assert [(f["kind"], f["place"]) for f in verdict["findings"]] == [("suspect", "f"), ("suspect", "a -> f")]
assert verdict["next"]["rounds"] == [[{"from": "b", "to": "f"}]] and near(verdict["next"]["seconds"], 2 * 25 * 268435456 / 12e9, 0.01)
END
pair b f 12.1
judge 1
stdout_matches '1 finding;' '^  f +.*  slow with a, b, which are faster'
pair b f 24.0
judge 1
stdout_matches '1 finding;' '^  a -> f +.* 50 %  both ends are faster'
pair a f 24.0
judge 0

# Where one machine is in all pairs, nothing tells whether it is the slow one.
rm pair-*.txt
pair a b 12.1; pair a c 12.0; pair a d 12.1
judge 0
stdout_has 'whether a is slow, which is in every pair: b with d would tell'
pair b d 24.0
judge 1
stdout_matches '^  a +pair_bandwidth .*  slow with b, d, which'
stdout_lacks 'whether a is slow'

# rail A B NIC GB/S: what perftest prints for one NIC of each, below its command line.
rail() {
  python3 - "$@" > "rail-$1-$2-$3.txt" << 'END'
import sys
a, b, nic, rate = sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4])
print(f"""root@{a}:~# ib_write_bw -d mlx5_{nic} --report_gbits {b}
                    RDMA_Write BW Test
 Dual-port       : OFF          Device         : mlx5_{nic}
 Number of qps   : 1            Transport type : IB
 Connection type : RC           Using SRQ      : OFF
 #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
 65536      5000             {rate * 8:.2f}             {rate * 8:.2f}             {rate * 8e9 / 8 / 65536 / 1e6:.6f}
---------------------------------------------------------------------------------------""")
END
}
# Four machines in a chain, four NICs each: NIC 3 of b is bad, and so is all of d, which only c was measured with.
for nic in 0 1 2 3; do
  rail a b $nic "$([ $nic = 3 ] && echo 9.8 || echo 24.$nic)"
  rail b c $nic "$([ $nic = 3 ] && echo 9.9 || echo 24.$nic)"
  rail c a $nic 24.2
  rail c d $nic 6.0
done
ok import rail-*.txt -o rails.json
exits 1 check rails.json
stdout_matches '^  b/mlx5_3 +pair_bandwidth .* 9\.9 GB/s +24\.2 GB/s +41 %  slow with' '^  d/mlx5_0 .* suspect: or its path to c/mlx5_0' \
  '^  c/mlx5_0 -> d/mlx5_0 .* suspect' '^to be certain, run next: a/mlx5_0 with d/mlx5_0; then .* \(4 pairs in 4 rounds, about 0\.22 s '
stdout_lacks 'b/mlx5_2 '
for nic in 0 1 2 3; do
  rail a d $nic 6.1
done
ok import rail-*.txt -o rails.json
exits 1 check rails.json
stdout_matches '2 findings;' '^  d +pair_bandwidth .* 25 %' '^  b/mlx5_3 '
stdout_lacks 'run next'
