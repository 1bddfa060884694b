# SPDX-License-Identifier: Apache-2.0
# reckon expect: what collectives should give on a machine, and whether a log is normal there.
source "$(dirname "$0")/../support/shell.sh"

ok expect -p h100-cluster
stdout_has '1 machine of h100-cluster, 8 ranks' '4 machines of h100-cluster, 32 ranks' nvls_tree sendrecv https://
stdout_matches '^  all_reduce +ring +450\.00 +293 to 374 +NVLink gpu0-7'
stderr_empty
ok expect -p h100-cluster --collective all_reduce --machines 2 --json
cp .last/stdout expected.json
json_check expected.json << 'END'
# Two machines: by a tree one gradient leaves each through 8 x 50 GB/s: 400 GB/s, times 2 * 15/16.
(row,) = expected["rows"]
ways = {way["way"]: way for way in row["ways"]}
assert row["ranks"] == 16 and near(ways["nvls_tree"]["bus_bytes_per_second"], 750e9, 1e-6) and near(ways["ring"]["bus_bytes_per_second"], 400e9, 1e-6)
assert near(row["most_bus_bytes_per_second"], 750e9, 1e-6) and ways["ring"]["usual"]["source"].startswith("https://")
END

# "My 8 GPUs give 480 GB/s, is that good?": from the log and the matrix of nvidia-smi alone.
devices=$(seq -f GPU%g 0 7)
{
  echo "	"$devices" NIC0 CPU Affinity NUMA Affinity GPU NUMA ID"
  for a in $devices; do
    echo "$a $(for b in $devices; do [[ $a == "$b" ]] && echo X || echo NV18; done | xargs) $([[ $a == GPU0 ]] && echo PIX || echo NODE) 0-95 0 N/A"
  done
  echo "NIC0 PIX $(yes NODE | head -7 | xargs) X"
} > topo.txt
{
  echo '# Collective test starting: all_reduce_perf'
  for gpu in 0 1 2 3 4 5 6 7; do
    echo "#  Rank  $gpu Group  0 Pid 4242 on     node7 device  $gpu [0000:${gpu}8:00] NVIDIA H100 80GB HBM3"
  done
  echo '#       size         count      type   redop    root     time   algbw   busbw #wrong'
  echo '#        (B)    (elements)                               (us)  (GB/s)  (GB/s)'
  echo '  8589934592    2147483648     float     sum      -1    31317  274.29  480.01      0'
  echo '# Out of bounds values : 0 OK'
} > log.txt
ok import log.txt --topology topo.txt
stdout_has 'upper bound' '700.00 GB/s' 'That is normal'
ok import log.txt --topology topo.txt --json
cp .last/stdout judged.json
json_check judged.json << 'END'
assert judged["collectives"][0]["judgement"] == "normal" and near(judged["collectives"][0]["best_bus_bytes_per_second"], 480.01e9, 1e-4)
END
sed 's/31317  274.29  480.01/62634  137.15  240.01/' log.txt > half.txt
ok import half.txt --topology topo.txt
stdout_has 'That is low' 'NCCL_DEBUG=INFO'
sed 's/NV18/NV4/g' topo.txt > few.txt # 100 GB/s
ok import log.txt --topology few.txt
stdout_has 'description of the machine is wrong'
# What the matrix leaves open has to be said, and what is missing is named.
ok expect --topology topo.txt --machines 1 --collective all_reduce
stdout_has unknown
stdout_lacks nvls
ok expect --topology topo.txt --gpu H100 --machines 1 --collective all_reduce
stdout_has nvls '700.00'
refused --nic-rate expect --topology topo.txt --gpu H100 --machines 2
ok expect --topology topo.txt --gpu H100 --nic-rate 400Gb/s --machines 2 --collective all_reduce
stdout_matches '^  all_reduce +ring +50\.00 '

# A gate that is derived instead of typed in.
ok expect -p h100-cluster --machines 1 --collective all_reduce --requirements gate.json
ok import log.txt -o log.json
ok check log.json --require gate.json
ok import half.txt -o half.json
exits 1 check half.json --require gate.json
stdout_has 329 NCCL_DEBUG=INFO

refused model expect -p h100-cluster --gpu Voodoo2
refused 'all_reduce?' expect -p h100-cluster --collective all_reduc
refused --machines expect -p h100-cluster --machines 0
refused 'has 8 GPUs' expect -p h100-cluster --gpus-each 9
refused --profile expect
refused nvidia-smi expect --topology log.txt

# Machines of which little is known: what is usual is never above the ceiling, and the remedies that are printed help.
machines=$source_dir/tests/golden/topology/machines
for machine in amd-mi100-8p6l-4nic amd-mi250; do
  ok expect --topology "$machines/$machine.xml" --json
  cp .last/stdout mixed.json
  json_check mixed.json << 'END'
usual = [(way["usual"]["high_bus_bytes_per_second"], way["bus_bytes_per_second"]) for row in mixed["rows"] for way in row["ways"] if "usual" in way]
assert usual and all(high <= most for high, most in usual)
END
done
printf '\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\nGPU0\t X \tPHB\t0-15\t0\tN/A\nGPU1\tPHB\t X \t0-15\t0\tN/A\n' > two.txt
ok expect --topology two.txt --collective all_reduce
stdout_has 'gpu0 > hb0' 'reckon probe'
stdout_lacks 'No NVLink' --gpu # the matrix says that there is none
refused --nic-rate expect --topology two.txt --machines 2
ok expect --topology two.txt --machines 2 --nic-rate 100Gb/s --collective all_reduce
stdout_matches '^  all_reduce +ring +12\.50 .* port$'
printf '\tGPU0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\nGPU0\t X \t0-15\t0\tN/A\n' > one.txt
refused '--machines 2' expect --topology one.txt
ok expect --topology one.txt --machines 2 --nic-rate 100Gb/s --collective all_gather
stdout_has 'over port out'
