# SPDX-License-Identifier: Apache-2.0
# reckon expect: what collectives should give on a machine, and whether a log is normal there.
source "$(dirname "$0")/../support/shell.sh"

ok expect -p h100-cluster
stdout_has '1 machine of h100-cluster, 8 ranks' '4 machines of h100-cluster, 32 ranks' nvls_tree sendrecv https://
stdout_matches '^  all_reduce +ring +450\.00 +324 to 374 +NVLink gpu0-7'
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
stdout_has 455 NCCL_DEBUG=INFO

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
stdout_has 'gpu0 > hb0' --gpu
stdout_lacks 'No NVLink' # the matrix says that there is none
refused --nic-rate expect --topology two.txt --machines 2
ok expect --topology two.txt --machines 2 --nic-rate 1x100Gb/s --collective all_reduce
stdout_matches "^  all_reduce +ring +12\.50 .* port nic0$"
printf '\tGPU0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\nGPU0\t X \t0-15\t0\tN/A\n' > one.txt
refused '1x400Gb/s' expect --topology one.txt
ok expect --topology one.txt --machines 2 --nic-rate 1x100Gb/s --collective all_gather
stdout_has 'over port nic0 out'

# A model decides the rate of PCIe, too.
{
  echo "	GPU0 GPU1 CPU Affinity NUMA Affinity"
  printf 'GPU0 X PHB 0-15 0\nGPU1 PHB X 0-15 0\n'
} > pcie.txt
ok expect --topology pcie.txt --gpu 'nvidia geforce rtx 4090' --collective all_reduce
stdout_matches '^  all_reduce +ring +31\.51 ' # 16 GT/s x 16 lanes / 8 x 128/130
stdout_lacks unknown topo
ok expect --topology pcie.txt --collective all_reduce --json # the matrix names all NVLinks
cp .last/stdout open.json
json_check open.json << 'END'
(row,) = open["rows"]
assert row["ways"] == [] and row["lacks_gpu_links"] is False
END
ok expect --topology pcie.txt --collective all_reduce
stdout_has --gpu NCCL_TOPO_DUMP_FILE
refused NCCL_TOPO_DUMP_FILE expect --topology pcie.txt --gpu 'Radeon VII'

# A ring of NVLinks and PCIe: what is usual is a share of what both allow.
printf '\tGPU0 GPU1 GPU2 CPU Affinity\nGPU0 X NV2 NV2 0-7\nGPU1 NV2 X PHB 0-7\nGPU2 NV2 PHB X 0-7\n' > volta.txt
ok expect --topology volta.txt --gpu V100 --collective all_reduce --json
cp .last/stdout volta.json
json_check volta.json << 'END'
(row,) = volta["rows"]
(ring,) = [way for way in row["ways"] if way["way"] == "ring"]
assert ring["usual"]["high_bus_bytes_per_second"] < ring["bus_bytes_per_second"] < 100e9, ring
END

# NICs that a cloud's topology does not list.
refused 8x400Gb/s expect --topology pcie.txt --gpu L4 --nic-rate 400Gb/s --machines 2
ok expect --topology pcie.txt --gpu L4 --nic-rate 4x40Gb/s --machines 2 --collective all_reduce --json
cp .last/stdout nics.json
json_check nics.json << 'END'
# Four NICs of 5 GB/s: less than the GPUs' PCIe links.
(row,) = nics["rows"]
(ring,) = [way for way in row["ways"] if way["way"] == "ring"]
assert near(ring["bus_bytes_per_second"], 20e9, 1e-6), ring
END
refused 'lists 1 NIC' expect --topology topo.txt --gpu H100 --nic-rate 8x400Gb/s --machines 2
refused --nic-rate expect --topology pcie.txt --gpu L4 --nic-rate 0x400Gb/s --machines 2
refused --nic-rate expect --topology pcie.txt --gpu L4 --nic-rate 8x400 --machines 2

# What contradicts the machine, or has nothing to say, is refused.
refused 'H100' expect -p h100-cluster --gpu A100
refused 'link_bytes_per_second' expect -p h100-cluster --nic-rate 100Gb/s
ok expect -p h100-cluster --gpu H100 --nic-rate 400Gb/s --collective all_reduce --machines 1
refused 'at most 12' expect --topology topo.txt --gpu A100 --machines 1
refused --requirements expect -p h100-cluster --message-bytes 1GiB
for option in --gpu=H100 --nic-rate=400Gb/s --sharp --nvlink-machines=2; do
  refused "${option%%=*}" import log.txt "$option"
done
sed 's/H100 80GB HBM3/A100-SXM4-80GB/' log.txt > ampere.txt
refused A100-SXM4 import ampere.txt --topology topo.txt --gpu H100
refused A100-SXM4 import ampere.txt --topology topo.txt
refused A100-SXM4 import ampere.txt -p h100-cluster

# One rank alone: why.
printf '\tGPU0 NIC0 CPU Affinity NUMA Affinity\nGPU0 X PHB 0-7 0\nNIC0 PHB X\n' > small.txt
refused '1 GPU' expect --topology small.txt
ok expect --topology small.txt --nic-rate 200Gb/s --collective all_reduce
printf '<system version="1"><cpu numaid="0"><pci busid="0000:07:00.0" class="0x020700"><nic><net name="eth0"/></nic></pci></cpu></system>' > nic.xml
refused '0 GPUs' expect --topology nic.xml

# Machines that share their NVSwitches.
ok expect --topology topo.txt --gpu H100 --nic-rate 400Gb/s --nvlink-machines 2 --machines 2,4 --collective all_reduce --json
cp .last/stdout domains.json
json_check domains.json << 'END'
# Two machines are one domain; four are two, each with two NICs of 50 GB/s.
rings = [(row["machines"], row["ranks"], way["bus_bytes_per_second"]) for row in domains["rows"] for way in row["ways"] if way["way"] == "ring"]
assert [r[:2] for r in rings] == [(2, 16), (4, 32)] and near(rings[0][2], 450e9, 1e-6) and near(rings[1][2], 100e9, 1e-6), rings
END
refused multiple expect --topology topo.txt --gpu H100 --nvlink-machines 2 --machines 3
refused alone expect -p h100-cluster --nvlink-machines 2 --machines 2
refused NVSwitch expect --topology pcie.txt --gpu L4 --nvlink-machines 2 --machines 2
sed -E 's/(Rank +)([4-7])(.*)node7 device +[0-9]+ \[0000:[0-9]/\1\2\3node8 device \2 [0000:\2/' log.txt |
  awk '/node8/ { sub(/device [0-9]/, "device " ($3 - 4)) } { print }' > hosts.txt
ok import hosts.txt --topology topo.txt --nvlink-machines 18 --json
cp .last/stdout shared.json
json_check shared.json << 'END'
(row,) = shared["collectives"]
assert row["machines"] == 2 and row["ranks"] == 8 and near(row["most_bus_bytes_per_second"], 700e9, 1e-6)
END

# A description of a machine in the place of another document.
mkdir -p recorded
for file in topo.txt recorded; do
  for reader in check show import 'expect -p'; do
    refused "reckon probe --topology $file" $reader "$file"
  done
done
cat topo.txt log.txt > both.txt
ok import both.txt --topology topo.txt
