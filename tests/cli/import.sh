# SPDX-License-Identifier: Apache-2.0
# reckon import: what other programs printed becomes a profile that the other commands take; what is broken becomes one
# error and no file.
source "$(dirname "$0")/../support/shell.sh"
outputs=$source_dir/tests/golden/import

# Whole matrices of a file that lacks others are taken, with a warning that says which; of a whole file there is none.
ok import "$outputs/p2p-2x5090-no-peer-access.txt" -o whole.json
stderr_empty
sed '/^P2P=Disabled Latency/,$d' "$outputs/p2p-2x5090-no-peer-access.txt" > bandwidths.txt
ok import bandwidths.txt -o bandwidths.json
stderr_says 'bandwidths.txt: 2'
stderr_says P2P=Disabled
ok import "$outputs/p2p-6gpu-staging-wins.txt" -o gpus.json
stderr_says P2P=Disabled
stdout_says p2p-6gpu-staging-wins.txt
stdout_says connected
stdout_lacks 'BytePS 4.2.3'
reckon show gpus.json --case device_to_device_memcpy_write_ce
stdout_has 'one way, staged'
stdout_matches '^sum 660\.24, min 20\.10 \(0 -> 1\), max 22\.42 \(3 -> 1\) GB/s$'
ok diff gpus.json gpus.json

# The same bytes from standard input and as JSON; several tools of one machine in one profile.
ok import - --json < "$outputs/mlc-icelake.txt"
cp .last/stdout piped.json
ok import --machine box "$outputs/p2p-2x4090.txt" "$outputs/mlc-icelake.txt" -o both.json
reckon show both.json --csv
stdout_has box/numa1 box/gpu1
ok import --merge gpus.json "$outputs/mlc-icelake.txt" -o merged.json
stdout_has 'numa_to_numa_read_cpu'
cp gpus.json before.json
refused already \
  import --merge gpus.json "$outputs/p2p-6gpu-staging-wins.txt" -o gpus.json
cmp -s gpus.json before.json || fail "an error changed the profile"

# One run of many values beside another that differs is said, with both values; nobody can know why.
sed 's/12\.83/22.83/' "$outputs/p2p-2x5090-no-peer-access.txt" > other-run.txt
ok import "$outputs/p2p-2x5090-no-peer-access.txt" other-run.txt -o two-runs.json
stderr_says differ 22.83
stderr_has '1 of' 'device_to_device_write_latency_ce'

# Options are for the files that take them; ids have no slash, and reckon's own documents are told.
ok import "$outputs/mlc-icelake.txt" "$outputs/nccl-all-gather-8xa100.log" --collective all_gather -o host-and-nccl.json
stdout_has nccl_all_gather numa_to_numa_read_cpu
refused 'id must' import --machine a/b "$outputs/mlc-icelake.txt"
refused 'id must' import --machine '' "$outputs/mlc-icelake.txt"
refused reckon import whole.json

# Of a mere list of GPUs a plan takes no more from each than its fastest pair, and says so.
ok plan -p gpus.json -m resnet50 -o listed.json
stdout_says fastest
stdout_has '--merge'
stdout_has 'writes cost nothing'
ok plan -p whole.json -m resnet50
stdout_lacks 'writes cost nothing' # the tool measured short ones

# The tools' own output is no profile, and each reader says what makes one of it.
cp "$outputs/nccl-all-gather-8xa100.log" raw.log
printf '<system version="1"/>\n' > raw.xml
: > empty.json
printf ' \n' > blank.json
for command in 'show raw.log' 'plan -p raw.log -m resnet50' 'check raw.log' 'diff raw.log gpus.json'; do
  refused nccl-tests $command
done
refused --topology show raw.xml
refused empty.json show empty.json
refused blank.json plan -p blank.json -m resnet50
printf '{"name": 1}' > plain.json
refused '"schema"' show plain.json

# A worse second run shows in a diff.
sed 's/ 22\.42/ 12.42/' "$outputs/p2p-6gpu-staging-wins.txt" > slower.txt
reckon import slower.txt -o slower.json
exits 1 diff gpus.json slower.json

# The collective is asked for where several could have printed the file.
sed 's/ type  / type redop root /; s/ float / float none -1 /' "$outputs/nccl-all-gather-8xa100.log" > unnamed.log
refused --collective import unnamed.log -o nccl.json
ok import --collective all_gather unnamed.log -o nccl.json
stdout_has nccl_all_gather
ok import "$outputs/nccl-all-gather-8xa100.log"
stdout_says 'all_gather, the only'
refused 'all_gather?' \
  import --collective all_gater "$outputs/nccl-all-gather-8xa100.log"

# Is this number normal? Four GPUs at PCIe 5.0 x16 (63.0 GB/s each way) that copy through host memory: 27.28 of 63.0 GB/s.
{
  echo '<system version="1"><cpu numaid="0" affinity="ff" arch="x86_64" vendor="AuthenticAMD">'
  for gpu in 0 1 2 3; do
    echo "<pci busid=\"0000:$((2 * gpu))1:00.0\" class=\"0x030000\" link_speed=\"32.0 GT/s PCIe\" link_width=\"16\"><gpu dev=\"$gpu\" sm=\"120\" rank=\"$gpu\" gdr=\"0\"/></pci>"
  done
  echo '</cpu></system>'
} > box.xml
ok probe --topology box.xml -o box.json
ok import "$outputs/nccl-all-reduce-4x5090.txt" -p box.json -o rows.json
stdout_has '63.02 GB/s at most' 'That is normal'
stdout_matches '^ +128 MiB +7\.384 ms +27\.26 +43 % +nccl_all_reduce fp32|^ +128 MiB +7\.384 ms +27\.26 +43 %$'
ok show rows.json
ok import "$outputs/nccl-all-reduce-4x5090.txt" --topology box.xml -o tree.json
ok check tree.json
stdout_matches 'checked: [1-9][0-9]* links'
# What `expect` writes for the machines of a profile is for a log of as many; each limit counts.
ok expect -p box.json --collective all_reduce,alltoall --message-bytes 128MiB --requirements limits.json
exits 1 check tree.json --require limits.json
stdout_matches ', 2 requirements$' '^  .*nccl_alltoall .*not measured'
ok expect -p box.json --collective all_reduce --message-bytes 128MiB --requirements limits.json
ok check tree.json --require limits.json
stdout_matches ', 1 requirement$'
ok import "$outputs/nccl-all-reduce-4x5090.txt" -p box.json --json
cp .last/stdout judged.json
json_check judged.json << 'END'
one = judged["collectives"][0]
assert judged["schema"] == "judged_log" and one["ranks"] == 4 and one["judgement"] == "normal"
assert near(one["most_bus_bytes_per_second"], 63.0e9, 1e-3)
assert len(one["measured"]) == 50 and near(max(row["share"] for row in one["measured"]), 27.28 / 63.0, 2e-3)
END
# On PCIe 2.0 (7.9 GB/s) the same rows would be 346 %: the profile is not of these GPUs' links.
sed 's/32.0 GT/5.0 GT/' box.xml > slow.xml
ok probe --topology slow.xml -o slow-box.json
ok import "$outputs/nccl-all-reduce-4x5090.txt" -p slow-box.json
stdout_has 'description of the machine is wrong' 'lacks the NVLinks'
ok import --collective all_gather "$outputs/nccl-all-gather-8xa100.log" -p a100-cluster
stdout_has 'all_gather of 8 ranks' 'That is normal'
refused 'nccl-tests' import "$outputs/mlc-icelake.txt" -p byteps-pcie
refused 'has no topology' import "$outputs/nccl-all-reduce-4x5090.txt" -p byteps-cluster

# What two machines did becomes a profile that can be planned with; which they were has to be said.
refused --machine import "$outputs/osu-latency-c5n.txt" -o pair.json
refused micro-benchmarks import --machine m0,m1 "$outputs/mlc-icelake.txt"
ok import --machine m0,m1 "$outputs/osu-latency-c5n.txt" "$outputs/osu-bibw-c5n.txt" -o pair.json
stdout_has pair_latency_by_size port_bandwidth
ok plan --profile pair.json --workload resnet50 -o pair-plan.json
json_check pair-plan.json << 'END'
# 102228128 B through ports of 8053.29 MB/s both ways together; a write alone takes 21.06 us beside its bytes.
assert len(pair_plan["ranks"]) == 2
assert near(pair_plan["prediction"]["mid_seconds"], 102228128 / (8053.29e6 / 2), 0.02)
END
ok diff pair.json pair.json
# --port-bandwidth keeps what was measured of latencies, and asks for no more machines than it is told.
ok import --machine m0,m1 "$outputs/osu-latency-c5n.txt" -o latency.json
ok plan -p latency.json -m resnet50 --port-bandwidth 100Gb/s --workers 4 -o four.json
stdout_has 'plan: ' ' over mpi'
stdout_lacks 'takes no time beside its bytes'
ok run four.json --check
ok export four.json --profile latency.json --format astra-network
stdout_has 'npus_count: [ 4 ]'
ok import --merge pair.json --machine m1,m2 "$outputs/perftest-write-bw-all.txt" -o three.json
json_check three.json << 'END'
assert three["machines"][0]["members"] == ["m0", "m1", "m2"]
END
refused 'add --ranks' import "$outputs/osu-allgather-c5n.txt"
ok import --ranks 8 "$outputs/osu-allgather-c5n.txt" -o gather.json
ok import "$outputs/nccom-allr.txt" -o neuron.json
stdout_has nccom_all_reduce
ok import "$outputs/transferbench-p2p.txt" -o amd.json
stderr_says copies
stdout_says connected
ok plan --profile amd.json --workload resnet50 --places gpu

# Each other tool by its content alone; --format takes the same names.
for tool in rocm_bandwidth_test:rocm-bandwidth ucc_perftest:ucc-alltoall ucx_perftest:ucx-tag-bw; do
  machines=()
  [[ $tool == ucx* ]] && machines=(--machine m0,m1)
  ok import "$outputs/${tool#*:}.txt" "${machines[@]}" -o tool.json
  ok import --format "${tool%:*}" "$outputs/${tool#*:}.txt" "${machines[@]}" -o same.json
  cmp -s tool.json same.json || fail "$tool: read otherwise with --format"
  rm tool.json same.json
done
# Memory of a GPU is no machine's port; several groups at once are no bound's all-reduce.
ok import "$outputs/perftest-cuda.txt" --machine m0,m1 -o gpu-memory.json
stdout_has 'pair_bandwidth, m0/gpu0 -> m1' 0000:17:00.0
stdout_lacks port_bandwidth
sed -e 's/node-b device  0/node-a device  2/; s/node-b device  1/node-a device  3/' "$outputs/nccl-groups.txt" > one-host.txt
refused nccl-tests import one-host.txt -p box.json
ok import "$outputs/nccl-iterations.json" -o iterations.json
json_check iterations.json << 'END'
assert {cell["n"] for cell in iterations["cells"] if cell["unit"] == "seconds"} == {18}
END

# Of a run that died what was measured counts; a warning says where it ends.
head -n 16 "$outputs/p2p-2x4090.txt" > cut.txt
ok import cut.txt -o cut.json
stderr_says cut.txt:17
ok import "$outputs/nccl-ended-early.txt" -o early.json
stderr_says nccl-ended-early.txt:16

# Broken files: one line with file and line, status 2, nothing written.
cat "$outputs/p2p-2x4090.txt" "$outputs/mlc-icelake.txt" > mixed.txt
sed 's/  6\.60 $/   nan/' "$outputs/p2p-2x4090.txt" > nan.txt
echo hello > other.txt
for broken in mixed nan other; do
  exits 2 import $broken.txt -o out.json
  stdout_empty
  stderr_matches "^reckon: error: $broken.txt:[0-9]+: .+; .+"
  [[ $(wc -l < .last/stderr) == 1 ]] || fail "more than one line"
  absent out.json
done
exits 2 import missing.txt
refused input import slower.txt -o slower.txt
exits 2 import --format mlc slower.txt
exits 2 import --format pdf slower.txt

# A workload text of ASTRA-sim becomes a workload that can be planned for.
printf 'DATA\n2\na -1 10 ALLREDUCE 64 20 NONE 0 30 ALLREDUCE 4000 1\nb -1 10 NONE 0 20 NONE 0 30 ALLREDUCE 40000 1\n' > layers.txt
ok import layers.txt -o layers.json
stderr_has 'exchange activations'
ok plan --profile byteps-cluster --workload layers.json --workers 2
refused 'give it alone' import layers.txt --machine box
refused parallelism import --format astra-sim other.txt -o no.json
absent no.json
