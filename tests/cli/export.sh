# SPDX-License-Identifier: Apache-2.0
# reckon export: a plan as other programs read it; what does not fit is one error, and no file.
source "$(dirname "$0")/../support/shell.sh"
plans=$source_dir/plans

ok export "$plans/ring-4.json" --format goal
stderr_empty
stdout_has 'num_ranks 4'
stdout_matches '^l13: send 32768b to 1 tag 4 cpu 7$' # part 3 starts here, after those that rank 3 sends
cp .last/stdout printed.goal
ok export - --format goal -o written.goal < "$plans/ring-4.json"
stdout_empty
cmp -s printed.goal written.goal || fail "the file is not what is printed"

ok export "$plans/ring-4.json" --format nccl-tuner
stdout_matches '^allreduce,32768,102228128,ring,simple,0,4,-1,-1,-1$'

# A refusal names a size that fits.
refused 'NCCL does' export "$plans/split-8+4.json" --format nccl-tuner -o no.csv
reckon plan --profile byteps-cluster --workload resnet50 --workers 4 --servers 0 --strategy ring --cutting tensors -o tensors.json
refused --part-bytes export tensors.json --format msccl -o no.xml
bytes=$(sed 's/.*--part-bytes //' .last/stderr)
ring=(plan --profile byteps-cluster --servers 0 --strategy ring)
ok "${ring[@]}" --workload resnet50 --workers 4 --cutting fused --part-bytes "$bytes" -o equal.json

# What is written is what both of MSCCL's runtimes read, and what they use for the gradient that it was planned for.
read_and_used() { run_as_last python3 "$source_dir/tests/support/msccl_check.py" "$@"; expect_status 0; }
ok export equal.json --format msccl -o equal.xml
stderr_empty
grep -q '^<!-- for microsoft/msccl and RCCL; with 2 of the plan.s 3 lanes; used for 25557032 elements, and fewer that are a multiple of 8 -->$' equal.xml ||
  fail "it does not say for whom it is"
read_and_used equal.xml --elements 25557032
one_tensor() { printf 'name,elements,dtype\nx,%s,%s\n' "$2" "$3" > "$1.csv"; }
while read -r elements dtype bytes workers lanes part; do
  one_tensor gradient "$elements" "$dtype"
  ok "${ring[@]}" --workload gradient.csv --workers "$workers" --lanes "$lanes" --part-bytes "$part" -o ring.json
  ok export ring.json --format msccl -o ring.xml
  stderr_empty
  read_and_used ring.xml --elements "$elements" --element-bytes "$bytes"
done << 'END'
40000000 fp32 4 8 1 4MiB
786432 fp16 2 3 2 64KiB
67108864 fp32 4 2 4 1MiB
END
# Elements that no number of chunks divides must be padded; a ring of many is for one of the runtimes.
one_tensor odd 1000003 fp32
ok "${ring[@]}" --workload odd.csv --workers 4 --lanes 1 --part-bytes 250048 -o odd.json
ok export odd.json --format msccl -o odd.xml
stderr_says 1000003
read_and_used odd.xml --elements 1000004
one_tensor many 8000000 fp32
ok "${ring[@]}" --workload many.csv --workers 20 --lanes 1 --part-bytes 1600000 -o many.json
ok export many.json --format msccl -o many.xml
stderr_says microsoft/msccl
read_and_used many.xml --elements 8000000 --runtimes msccl
absent no.csv no.xml

# Inside a machine no option makes the plan a ring, so none is named. Devices of one machine are one node.
for format in nccl-tuner msccl; do
  exits 2 export "$plans/inside-pcie.json" --format $format
  stderr_lacks '--strategy'
  stderr_has '--format goal'
done
reckon plan --profile coarse-v100 --workload resnet50 --strategy ring --workers 4 --servers 0 -o devices.json
ok export devices.json --format nccl-tuner
stdout_matches '^allreduce,[0-9]+,102228128,ring,simple,0,1,-1,-1,-1$'

# Bad usage.
for format in nccl-tuner msccl; do
  refused nothing \
    export "$plans/ring-4.json" --format $format --profile byteps-cluster
done
exits 2 export "$plans/ring-4.json" --format dot
refused 'format' export "$plans/ring-4.json"
cp "$plans/ring-4.json" plan.json
refused input export plan.json --format goal -o plan.json
refused 'profile' export "$source_dir/profiles/byteps-cluster.json" --format goal

# The networks, of the shipped profile that the plan names or of another; without either it says what to give.
ok export equal.json --format astra-network
stdout_matches '^topology: \[ Switch \]$'
stdout_matches '^bandwidth: \[ 10\.477378964424133 \]$' # 11.25e9 / 2^30
refused 12500000000 \
  export "$plans/slow-servers-4+2.json" --format astra-network
sed 's/"name": "byteps-cluster"/"name": "mine"/' equal.json > mine.json
refused 'with --profile' export mine.json --format simgrid -o no.xml
ok export mine.json --format simgrid --profile byteps-cluster -o mine.xml
python3 -c 'import xml.etree.ElementTree as tree; tree.parse("mine.xml")' || fail "the platform is no XML"
ok export equal.json --format goal --profile byteps-cluster
stdout_matches '^// LogGOPS in ns: L=0 o=0 g=0 G=0\.0888889 O=0$' # 1 / 11.25e9
stdout_matches '^l[0-9]+: calc [1-9][0-9]* cpu [0-9]+$'
