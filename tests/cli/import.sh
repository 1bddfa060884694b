# SPDX-License-Identifier: Apache-2.0
# reckon import: what other programs printed becomes a profile that the other commands take; what is broken becomes one
# error and no file.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
outputs=$source_dir/tests/golden/import

# Whole matrices of a file that lacks others are taken, with a warning that says which; of a whole file there is none.
reckon import "$outputs/p2p-2x5090-no-peer-access.txt" -o whole.json
expect_status 0
stderr_empty
sed '/^P2P=Disabled Latency/,$d' "$outputs/p2p-2x5090-no-peer-access.txt" > bandwidths.txt
reckon import bandwidths.txt -o bandwidths.json
expect_status 0
stderr_has 'bandwidths.txt: 2 of the tool'
stderr_has 'missing: latencies with P2P=Disabled, latencies with P2P=Enabled; was the file cut off?'
reckon import "$outputs/p2p-6gpu-staging-wins.txt" -o gpus.json
expect_status 0
stderr_has 'missing: bandwidths both ways with P2P=Disabled'
stdout_has 'imported from p2pBandwidthLatencyTest, p2p-6gpu-staging-wins.txt'
stdout_has 'how they hang together is not known'
stdout_lacks 'BytePS 4.2.3'
reckon show gpus.json --case device_to_device_memcpy_write_ce
stdout_has 'one way, staged'
stdout_matches '^sum 660\.24, min 20\.10 \(0 -> 1\), max 22\.42 \(3 -> 1\) GB/s$'
reckon diff gpus.json gpus.json
expect_status 0

# The same bytes from standard input and as JSON; several tools of one machine in one profile.
reckon import - --json < "$outputs/mlc-icelake.txt"
expect_status 0
cp .last/stdout piped.json
reckon import --machine box "$outputs/p2p-2x4090.txt" "$outputs/mlc-icelake.txt" -o both.json
expect_status 0
reckon show both.json --csv
stdout_has box/numa1
stdout_has box/gpu1
reckon import --merge gpus.json "$outputs/mlc-icelake.txt" -o merged.json
expect_status 0
stdout_has 'numa_to_numa_read_cpu'
cp gpus.json before.json
reckon import --merge gpus.json "$outputs/p2p-6gpu-staging-wins.txt" -o gpus.json
expect_status 2
stderr_has 'is in the profile already'
cmp -s gpus.json before.json || fail "an error changed the profile"

# A worse second run shows in a diff.
sed 's/ 22\.42/ 12.42/' "$outputs/p2p-6gpu-staging-wins.txt" > slower.txt
reckon import slower.txt -o slower.json
reckon diff gpus.json slower.json
expect_status 1

# The collective is asked for when the file does not say it.
reckon import "$outputs/nccl-all-gather-8xa100.log" -o nccl.json
expect_status 2
stdout_empty
stderr_has 'add --collective all_reduce'
reckon import --collective all_gather "$outputs/nccl-all-gather-8xa100.log" -o nccl.json
expect_status 0
stdout_has nccl_all_gather
reckon import --collective all_gater "$outputs/nccl-all-gather-8xa100.log"
expect_status 2
stderr_has 'did you mean all_gather?'

# Broken files: one line with file and line, status 2, nothing written.
head -n 16 "$outputs/p2p-2x4090.txt" > cut.txt
cat "$outputs/p2p-2x4090.txt" "$outputs/mlc-icelake.txt" > mixed.txt
sed 's/  6\.60 $/   nan/' "$outputs/p2p-2x4090.txt" > nan.txt
echo hello > other.txt
for broken in cut mixed nan other; do
  reckon import $broken.txt -o out.json
  expect_status 2
  stdout_empty
  stderr_matches "^reckon: error: $broken.txt:[0-9]+: .+; .+"
  [[ $(wc -l < .last/stderr) == 1 ]] || fail "more than one line"
  [[ ! -e out.json ]] || fail "something was written"
done
reckon import missing.txt
expect_status 2
reckon import slower.txt -o slower.txt
expect_status 2
stderr_has 'is also an input'
reckon import --format mlc slower.txt
expect_status 2
reckon import --format pdf slower.txt
expect_status 2

# A workload text of ASTRA-sim becomes a workload that can be planned for.
printf 'DATA\n2\na -1 10 ALLREDUCE 64 20 NONE 0 30 ALLREDUCE 4000 1\nb -1 10 NONE 0 20 NONE 0 30 ALLREDUCE 40000 1\n' > layers.txt
reckon import layers.txt -o layers.json
expect_status 0
stderr_has 'exchange activations'
reckon plan --profile byteps-cluster --workload layers.json --workers 2
expect_status 0
reckon import layers.txt --machine box
expect_status 2
stderr_has 'give it alone'
reckon import --format astra-sim other.txt -o no.json
expect_status 2
stderr_has 'is no parallelism of ASTRA-sim'
[[ ! -e no.json ]] || fail "an error left a file"
