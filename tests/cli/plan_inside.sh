# SPDX-License-Identifier: Apache-2.0
# Sums inside one machine: the papers' machines are solved as the paper says, and the plans move real bytes, here between
# processes that stand for the GPUs.
source "$(dirname "$0")/../support/shell.sh"

printf 'name,elements,dtype\nhead,400001,fp32\ntail,150000,fp16\n' > model.csv
inside=(plan --inside --workload model.csv)
pcie=("${inside[@]}" --profile byteps-pcie)
nvlink=("${inside[@]}" --profile byteps-nvlink)

ok "${pcie[@]}" --network 1 --part-bytes 64KiB -o pcie.json
stdout_has "plan: cpu_assisted_numa0"
stdout_says numa0
ok "${nvlink[@]}" --network 1 --part-bytes 64KiB -o nvlink.json
stdout_has "plan: reduce_broadcast_gpu2_gpu3"
ok "${pcie[@]}" --part-bytes 64KiB --lanes 2 -o mix.json
stdout_has "plan: cpu_assisted_numa0" # fewer trees than the mix fill faster with so few bytes

for plan in pcie nvlink mix; do
  ok run $plan.json --check
  stdout_has "no races"
  ok run $plan.json --transport host -n 2 --tolerance 1e9% -o report.json
  stdout_has "every element correct"
done

# Sums in NVSwitches: said beside the bound of the sums that can run, and nowhere else.
ok "${inside[@]}" --profile h100-cluster --part-bytes 64KiB -o h100.json
stdout_matches '^  in switch +[0-9.]+ us +with sums in nvswitch0'
ok show h100.json --explain
stdout_has 'with sums in nvswitch0'
json_check h100.json << 'END'
# At least what 8 GPUs of 450 GB/s move in the switch beside all of their PCIe 5.0 x16; trees of GPUs take longer, and so does the plan.
least = h100["switch_sums"]["bound_seconds"]
assert 1 / (450e9 + 63.1e9) <= least / h100["gradient_bytes"] <= 1.125 / 450e9
assert least < 0.8 * h100["prediction"]["bound_seconds"]
END
ok "${inside[@]}" --profile a100-cluster --part-bytes 64KiB -o a100.json
stdout_lacks 'in switch'

# Which GPU works and which stands for a memory device.
cat > roles.json << 'JSON'
{"schema": "reckon/roles", "schema_version": 1, "name": "half of them", "groups": [
  {"machine": "m0", "worker": true, "endpoints": ["m0/gpu0", "m0/gpu1", "m0/gpu4", "m0/gpu5"]},
  {"machine": "m0", "server": true, "endpoints": ["m0/gpu2", "m0/gpu6"]}]}
JSON
ok "${pcie[@]}" --roles roles.json --part-bytes 64KiB -o roles-plan.json
stdout_lacks "numa0 <"
ok run roles-plan.json --transport host -n 1 --tolerance 1e9%

# A link that got slower is seen.
exits 1 diff pcie.json nvlink.json
stdout_has "trees"

# Trees of files that say no rate of anything, or of some links: no prediction, and a warning.
machines=$source_dir/tests/golden/topology/machines
reckon probe --topology "$machines/azure-ncv4.xml" -o unknown.json
refused known "${inside[@]}" --profile unknown.json -o unknown-plan.json
absent unknown-plan.json
reckon probe --topology "$machines/aws-p4d.xml" -o some.json
ok "${inside[@]}" --profile some.json
stdout_says numa0
ok plan --profile some.json --workload model.csv
stdout_says 'servers 0'
# The file leaves NVLinks out, as all static ones of clouds do: plan says so as show does.
stdout_says 'm0 reach'
reckon show some.json
stdout_says NVLink
inside=(plan --inside --workload model.csv)
pcie=("${inside[@]}" --profile byteps-pcie)
nvlink=("${inside[@]}" --profile byteps-nvlink)

# What a terminal of 80 columns shows: links and schemes that are alike in one row, a tie by its name, the bound in short.
reckon probe --topology "$machines/amd-mi50-switches.xml" -o tie.json
ok "${inside[@]}" --profile tie.json --part-bytes 64KiB -o tie-plan.json
stdout_says gpu0-3 cpu_assisted_numa0
stdout_says reduce_broadcast_gpu0 bridge0
reckon show tie-plan.json --csv
stdout_has "part,offset_bytes,bytes,server,lane,tree"
reckon "${pcie[@]}" --part-bytes 64KiB
stdout_says gpu0-3

# Any setting of --inside can be swept, and a transport that is none is refused as without --inside.
ok "${nvlink[@]}" --part-bytes 64KiB --network 1 --sweep gpu-direct=no,yes
stdout_matches '^\* +yes '
ok "${nvlink[@]}" --part-bytes 64KiB --set machine=m0 --json
refused 'no machine "m7"' "${nvlink[@]}" --set machine=m7
refused --gpu-direct "${nvlink[@]}" --set gpu-direct=maybe
refused "over transport 'bogus'" "${pcie[@]}" --transport bogus

# Without a GPU the default transport says why not.
if [[ ! -e /dev/nvidiactl ]]; then
  exits 3 run mix.json
  stderr_matches "machine has none [(]cuda: (there is no /dev/nvidiactl|this build has no CUDA)"
fi

refused topology "${inside[@]}" --profile byteps-cluster
refused "leave out --workers" "${pcie[@]}" --workers 3
refused "'model'" "${pcie[@]}" --optimizer sgd
refused --order "${pcie[@]}" --order priority
# A candidate by its name, with an optimizer's step and the passes: the plan is proved.
ok plan --inside --profile byteps-pcie --workload resnet50 --strategy cpu_assisted_numa0 --optimizer adam --forward 10ms \
  --backward 20ms --order priority -o stepped.json
stdout_has "plan: cpu_assisted_numa0" "optimizer adam"
ok run --check stepped.json
stdout_says every
refused "--strategy ring_of_fire: unknown; " plan --inside --profile byteps-pcie --workload resnet50 \
  --strategy ring_of_fire
for option in "shape 4x4x4" "proxy-bytes all" "bandwidth-slack 5%" "shards paper" "ring-directions 2" "queues fcfs"; do
  read -r name value <<< "$option"
  refused "--$name with --inside" "${pcie[@]}" "--$name" "$value"
done
# What is usual may be said.
ok "${pcie[@]}" --strategy auto --optimizer none --order gradient --queues client --zero-compute
refused --network plan --profile byteps-pcie --workload model.csv --network 1
refused '--network -1' "${pcie[@]}" --network -1
sed 's/"m0\/gpu6"/"m0\/gpu99"/' roles.json > wrong.json
refused "m0/gpu99" "${pcie[@]}" --roles wrong.json
sed 's/,"endpoints"/, "endpoints"/; s/"endpoints": \["m0\/gpu2", "m0\/gpu6"\]/"count": 2/' roles.json > none.json
refused "names no endpoints" "${pcie[@]}" --roles none.json

# What is too long to be played goes on as it began: with one part of each tree under way it takes as many times longer as it
# does where all of it is played, and longer than with many.
printf 'name,elements,dtype\nall,2000000,fp32\n' > played.csv
printf 'name,elements,dtype\nall,8000000,fp32\n' > longer.csv
for row in 'played 1' 'longer 1' 'longer 64'; do
  read -r name window <<< "$row"
  ok plan --inside --profile byteps-nvlink --workload $name.csv --part-bytes 1KiB --window "$window" -o "$name$window.json"
done
json_check played1.json longer1.json longer64.json << 'END'
played, longer, wide = (plan["prediction"]["mid_seconds"] for plan in (played1, longer1, longer64))
assert near(longer, 4 * played, 0.02) and longer > 1.5 * wide, (played, longer, wide)
END
