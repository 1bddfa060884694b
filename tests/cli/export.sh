# SPDX-License-Identifier: Apache-2.0
# reckon export: a plan as other programs read it; what does not fit is one error, and no file.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
plans=$source_dir/plans

reckon export "$plans/ring-4.json" --format goal
expect_status 0
stderr_empty
stdout_has 'num_ranks 4'
stdout_matches '^l1: send 32768b to 1 tag 0 cpu 0$'
cp .last/stdout printed.goal
reckon export - --format goal -o written.goal < "$plans/ring-4.json"
expect_status 0
stdout_empty
cmp -s printed.goal written.goal || fail "the file is not what is printed"

reckon export "$plans/ring-4.json" --format nccl-tuner
expect_status 0
stdout_matches '^allreduce,32768,102228128,ring,simple,-1,4,-1,-1,-1$'

# A refusal names a size that fits.
reckon export "$plans/split-8+4.json" --format nccl-tuner -o no.csv
expect_status 2
stderr_has 'which NCCL does not have'
reckon plan --profile byteps-cluster --workload resnet50 --workers 4 --servers 0 --strategy ring --cutting tensors -o tensors.json
reckon export tensors.json --format msccl -o no.xml
expect_status 2
stdout_empty
stderr_has 'plan with --cutting fused --part-bytes'
bytes=$(sed 's/.*--part-bytes //' .last/stderr)
reckon plan --profile byteps-cluster --workload resnet50 --workers 4 --servers 0 --strategy ring --cutting fused \
  --part-bytes "$bytes" -o equal.json
reckon export equal.json --format msccl -o equal.xml
expect_status 0
grep -q 'coll="allreduce" inplace="1"' equal.xml || fail "no MSCCL program"
[[ ! -e no.csv && ! -e no.xml ]] || fail "a refusal left a file"

# Inside a machine no option makes the plan a ring, so none is named. Devices of one machine are one node.
for format in nccl-tuner msccl; do
  reckon export "$plans/inside-pcie.json" --format $format
  expect_status 2
  stderr_lacks '--strategy'
  stderr_has '--format goal'
done
reckon plan --profile coarse-v100 --workload resnet50 --strategy ring --workers 4 --servers 0 -o devices.json
reckon export devices.json --format nccl-tuner
expect_status 0
stdout_matches '^allreduce,[0-9]+,102228128,ring,simple,-1,1,-1,-1,-1$'

# Bad usage.
for format in nccl-tuner msccl; do
  reckon export "$plans/ring-4.json" --format $format --profile byteps-cluster
  expect_status 2
  stderr_has 'has nothing of links and sums'
done
reckon export "$plans/ring-4.json" --format dot
expect_status 2
reckon export "$plans/ring-4.json"
expect_status 2
stderr_has 'format'
cp "$plans/ring-4.json" plan.json
reckon export plan.json --format goal -o plan.json
expect_status 2
stderr_has 'is also an input'
reckon export "$source_dir/profiles/byteps-cluster.json" --format goal
expect_status 2
stderr_has 'profile'

# The networks, of the shipped profile that the plan names or of another; without either it says what to give.
reckon export equal.json --format astra-network
expect_status 0
stdout_matches '^topology: \[ Switch \]$'
stdout_matches '^bandwidth: \[ 10\.477378964424133 \]$' # 11.25e9 / 2^30
reckon export "$plans/slow-servers-4+2.json" --format astra-network
expect_status 2
stderr_has "ports in bytes per second differ: 12500000000 and 3125000000"
sed 's/"name": "byteps-cluster"/"name": "mine"/' equal.json > mine.json
reckon export mine.json --format simgrid -o no.xml
expect_status 2
stderr_has 'with --profile'
reckon export mine.json --format simgrid --profile byteps-cluster -o mine.xml
expect_status 0
python3 -c 'import xml.etree.ElementTree as tree; tree.parse("mine.xml")' || fail "the platform is no XML"
reckon export equal.json --format goal --profile byteps-cluster
expect_status 0
stdout_matches '^l[0-9]+: calc [1-9][0-9]* cpu 0$'
