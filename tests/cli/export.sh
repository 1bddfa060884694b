# SPDX-License-Identifier: Apache-2.0
# reckon export: a plan as other programs read it; what does not fit is one error, and no file.
source "$(dirname "$0")/../support/shell.sh"
plans=$source_dir/plans

ok export "$plans/ring-4.json" --format goal
stderr_empty
stdout_has 'num_ranks 4'
stdout_matches '^l1: send 32768b to 1 tag 0 cpu 0$'
cp .last/stdout printed.goal
ok export - --format goal -o written.goal < "$plans/ring-4.json"
stdout_empty
cmp -s printed.goal written.goal || fail "the file is not what is printed"

ok export "$plans/ring-4.json" --format nccl-tuner
stdout_matches '^allreduce,32768,102228128,ring,simple,-1,4,-1,-1,-1$'

# A refusal names a size that fits.
refused 'which NCCL does not have' export "$plans/split-8+4.json" --format nccl-tuner -o no.csv
reckon plan --profile byteps-cluster --workload resnet50 --workers 4 --servers 0 --strategy ring --cutting tensors -o tensors.json
refused 'plan with --cutting fused --part-bytes' export tensors.json --format msccl -o no.xml
bytes=$(sed 's/.*--part-bytes //' .last/stderr)
reckon plan --profile byteps-cluster --workload resnet50 --workers 4 --servers 0 --strategy ring --cutting fused \
  --part-bytes "$bytes" -o equal.json
ok export equal.json --format msccl -o equal.xml
grep -q 'coll="allreduce" inplace="1"' equal.xml || fail "no MSCCL program"
absent no.csv no.xml

# Inside a machine no option makes the plan a ring, so none is named. Devices of one machine are one node.
for format in nccl-tuner msccl; do
  exits 2 export "$plans/inside-pcie.json" --format $format
  stderr_lacks '--strategy'
  stderr_has '--format goal'
done
reckon plan --profile coarse-v100 --workload resnet50 --strategy ring --workers 4 --servers 0 -o devices.json
ok export devices.json --format nccl-tuner
stdout_matches '^allreduce,[0-9]+,102228128,ring,simple,-1,1,-1,-1,-1$'

# Bad usage.
for format in nccl-tuner msccl; do
  refused 'has nothing of links and sums' \
    export "$plans/ring-4.json" --format $format --profile byteps-cluster
done
exits 2 export "$plans/ring-4.json" --format dot
refused 'format' export "$plans/ring-4.json"
cp "$plans/ring-4.json" plan.json
refused 'is also an input' export plan.json --format goal -o plan.json
refused 'profile' export "$source_dir/profiles/byteps-cluster.json" --format goal

# The networks, of the shipped profile that the plan names or of another; without either it says what to give.
ok export equal.json --format astra-network
stdout_matches '^topology: \[ Switch \]$'
stdout_matches '^bandwidth: \[ 10\.477378964424133 \]$' # 11.25e9 / 2^30
refused "ports in bytes per second differ: 12500000000 and 3125000000" \
  export "$plans/slow-servers-4+2.json" --format astra-network
sed 's/"name": "byteps-cluster"/"name": "mine"/' equal.json > mine.json
refused 'with --profile' export mine.json --format simgrid -o no.xml
ok export mine.json --format simgrid --profile byteps-cluster -o mine.xml
python3 -c 'import xml.etree.ElementTree as tree; tree.parse("mine.xml")' || fail "the platform is no XML"
ok export equal.json --format goal --profile byteps-cluster
stdout_matches '^l[0-9]+: calc [1-9][0-9]* cpu 0$'
