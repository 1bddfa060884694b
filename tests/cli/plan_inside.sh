# SPDX-License-Identifier: Apache-2.0
# Sums inside one machine: the papers' machines are solved as the paper says, and the plans move real bytes, here between
# processes that stand for the GPUs.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

printf 'name,elements,dtype\nhead,400001,fp32\ntail,150000,fp16\n' > model.csv

reckon plan --inside --profile byteps-pcie --network 1 --workload model.csv --part-bytes 64KiB -o pcie.json
expect_status 0
stdout_has "plan: cpu_assisted_numa0"
stdout_has "numa0 < (gpu0 < gpu1 gpu2 gpu3) (gpu4 < gpu5 gpu6 gpu7), and back the same way"
reckon plan --inside --profile byteps-nvlink --network 1 --workload model.csv --part-bytes 64KiB -o nvlink.json
expect_status 0
stdout_has "plan: reduce_broadcast_gpu2_gpu3"
reckon plan --inside --profile byteps-pcie --workload model.csv --part-bytes 64KiB --lanes 2 -o mix.json
expect_status 0
stdout_has "brute_force numa0"

for plan in pcie nvlink mix; do
  reckon run $plan.json --check
  expect_status 0
  stdout_has "no races"
  reckon run $plan.json --transport host -n 2 --tolerance 1e9% -o report.json
  expect_status 0
  stdout_has "every element correct"
done

# Which GPU works and which stands for a memory device.
cat > roles.json << 'JSON'
{"schema": "reckon/roles", "schema_version": 1, "name": "half of them", "groups": [
  {"machine": "m0", "worker": true, "endpoints": ["m0/gpu0", "m0/gpu1", "m0/gpu4", "m0/gpu5"]},
  {"machine": "m0", "server": true, "endpoints": ["m0/gpu2", "m0/gpu6"]}]}
JSON
reckon plan --inside --profile byteps-pcie --workload model.csv --roles roles.json --part-bytes 64KiB -o roles-plan.json
expect_status 0
stdout_lacks "numa0 <"
reckon run roles-plan.json --transport host -n 1 --tolerance 1e9%
expect_status 0

# A link that got slower is seen.
reckon diff pcie.json nvlink.json
expect_status 1
stdout_has "trees"

# Trees of files that say no rate of anything, or of some links: no prediction, and a warning.
machines=$source_dir/tests/golden/topology/machines
reckon probe --topology "$machines/azure-ncv4.xml" -o unknown.json
reckon plan --inside --profile unknown.json --workload model.csv -o unknown-plan.json
expect_status 2
stderr_has "no rate is known"
[[ ! -e unknown-plan.json ]] || fail "a plan was written"
reckon probe --topology "$machines/aws-p4d.xml" -o some.json
reckon plan --inside --profile some.json --workload model.csv
expect_status 0
stderr_has "no rate is known of numa0 > numa1, numa1 > numa0"
reckon plan --profile some.json --workload model.csv
expect_status 2
stderr_has "or --inside"

# What a terminal of 80 columns shows: links and schemes that are alike in one row, a tie by its name, the bound in short.
reckon probe --topology "$machines/amd-mi50-switches.xml" -o tie.json
reckon plan --inside --profile tie.json --workload model.csv --part-bytes 64KiB -o tie-plan.json
expect_status 0
stdout_has "what gpu0-3 must send (equation 27)"
stdout_has "same time as hierarchical, staging, inside_mix"
stdout_has "reduce_broadcast_gpu0 and 10 alike"
stdout_has "bridge0 > numa0, 3 such"
reckon show tie-plan.json --csv
stdout_has "part,offset_bytes,bytes,server,lane,tree"
reckon plan --inside --profile byteps-pcie --workload model.csv --part-bytes 64KiB
stdout_has "8 gradients at least over links of gpu0-3"

# Any setting of --inside can be swept, and a transport that is none is refused as without --inside.
reckon plan --inside --profile byteps-nvlink --workload model.csv --part-bytes 64KiB --network 1 --sweep gpu-direct=no,yes
expect_status 0
stdout_matches '^ +yes '
reckon plan --inside --profile byteps-nvlink --workload model.csv --part-bytes 64KiB --set machine=m0 --json
expect_status 0
reckon plan --inside --profile byteps-nvlink --workload model.csv --set machine=m7
expect_status 2
stderr_has 'no machine "m7"'
reckon plan --inside --profile byteps-nvlink --workload model.csv --set gpu-direct=maybe
expect_status 2
stderr_has "--gpu-direct = maybe"
reckon plan --inside --profile byteps-pcie --workload model.csv --transport bogus
expect_status 2
stderr_has "over transport 'bogus'"

# Without a GPU the default transport says why not.
if [[ ! -e /dev/nvidiactl ]]; then
  reckon run mix.json
  expect_status 3
  stderr_matches "'cuda' is not available here: (there is no /dev/nvidiactl|this build has no CUDA)"
fi

reckon plan --inside --profile byteps-cluster --workload model.csv
expect_status 2
stderr_has "no topology of a machine"
reckon plan --inside --profile byteps-pcie --workload model.csv --workers 3
expect_status 2
stderr_has "leave out --workers"
reckon plan --inside --profile byteps-pcie --workload model.csv --optimizer sgd
expect_status 2
stderr_has "plan without --inside, with --workers and --servers"
reckon plan --inside --profile byteps-pcie --workload model.csv --order priority
expect_status 2
stderr_has "--order"
reckon plan --profile byteps-pcie --workload model.csv --network 1
expect_status 2
stderr_has "--network requires --inside; give both"
reckon plan --inside --profile byteps-pcie --workload model.csv --network -1
expect_status 2
stderr_has "--network -1: must be a number from 0 to 1000000"
sed 's/"m0\/gpu6"/"m0\/gpu99"/' roles.json > wrong.json
reckon plan --inside --profile byteps-pcie --workload model.csv --roles wrong.json
expect_status 2
stderr_has "m0/gpu99"
sed 's/,"endpoints"/, "endpoints"/; s/"endpoints": \["m0\/gpu2", "m0\/gpu6"\]/"count": 2/' roles.json > none.json
reckon plan --inside --profile byteps-pcie --workload model.csv --roles none.json
expect_status 2
stderr_has "names no endpoints"

# What is too long to be played goes on as it began: one part under way takes as many times longer as it does where all of it
# is played.
seconds() {
  reckon plan --inside --profile byteps-nvlink --workload "$1" --part-bytes 1KiB --window "$2" --json
  expect_status 0
  python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["prediction"]["mid_seconds"])' .last/stdout
}
printf 'name,elements,dtype\nall,1000000,fp32\n' > played.csv
printf 'name,elements,dtype\nall,8000000,fp32\n' > longer.csv
python3 - "$(seconds played.csv 1)" "$(seconds longer.csv 1)" "$(seconds longer.csv 64)" << 'END' || fail "see above"
import sys
played, longer, wide = map(float, sys.argv[1:])
assert abs(longer / played / 8 - 1) < 0.02 and longer > 5 * wide, (played, longer, wide)
END
