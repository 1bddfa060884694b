# SPDX-License-Identifier: Apache-2.0
# Reduce-scatter, all-gather, broadcast and reduce between the GPUs of a machine: planned, proved, run, shown, compared.
source "$(dirname "$0")/../support/shell.sh"

printf 'name,elements,dtype\nhead,400001,fp32\ntail,150000,fp16\n' > model.csv
plan=(plan --profile byteps-nvlink --workload model.csv --inside --transport host)

for collective in reduce-scatter all-gather broadcast reduce; do
  ok "${plan[@]}" --collective "$collective" -o "$collective.json"
  stdout_has "collective  $collective" "(equation 2"
  ok run "$collective.json" --check
  stdout_has "no deadlock" "no races"
  ok run "$collective.json" --transport host --iterations 2 --tolerance 10000000% -o "$collective-report.json"
  python3 - "$collective" << 'PY' || fail "$collective was not verified"
import json, sys
report = json.load(open(sys.argv[1] + "-report.json"))
plan = json.load(open(sys.argv[1] + ".json"))
assert plan["collective"] == sys.argv[1], plan["collective"]
verified = report["verification"]
assert verified["wrong_elements"] == 0 and verified["checked_bytes"] > 0, verified
total = sum(run["bytes"] for run in plan["runs"])
each = {"reduce-scatter": 1, "reduce": 1, "all-gather": 8, "broadcast": 8}[sys.argv[1]] * total  # the roots', or all
assert verified["checked_bytes"] % each == 0, verified
if sys.argv[1] in ("reduce-scatter", "all-gather"):
    for rank in plan["ranks"][:8]:
        assert abs(rank["assigned_bytes"] - total / 8) < 8, rank
PY
done
ok show all-gather.json
stdout_says gives
stdout_has ">"
ok show reduce-scatter.json
stdout_says 'who sums'
ok "${plan[@]}" --collective broadcast --root 3 -o three.json
stdout_says broadcast
ok run three.json --check
exits 1 diff broadcast.json three.json
stdout_has "root"
exits 1 diff broadcast.json reduce.json
stdout_has "collective"

# What plans said before there was a choice: the same bytes.
ok "${plan[@]}" -o plain.json
ok "${plan[@]}" --collective all-reduce -o named.json
cmp plain.json named.json || fail "all-reduce by its name is another plan"
grep -q '"collective"' plain.json && fail "a plan of all-reduce names it"

# Machines on one switch each, a NIC each: broadcast passes every port once.
ok plan --workload model.csv --profile h100-cluster --places gpu --workers 2 --part-bytes 64KiB --collective broadcast -o boxes.json
ok run boxes.json --check

# Machines of which nothing is known but their ports: n - 1 of n parts leave each, 3/4 of 1.9 MB at 11.25 GB/s.
ok plan --workload model.csv --profile byteps-cluster --workers 4 --collective reduce-scatter -o machines.json
stdout_has "places machine" "126.7 us"
ok run machines.json --check
ok run machines.json --transport host --iterations 2 --tolerance 10000000%
stdout_has "every element correct"

# What cannot be.
exits 2 plan -p byteps-cluster -m model.csv --workers 4 --collective broadcast --forward 1ms
stderr_says --forward
exits 2 "${plan[@]}" --collective reduce-scatter --root 1
stderr_says --root
exits 2 "${plan[@]}" --collective broadcast --root 8
stderr_says 'ranks 0'
exits 2 "${plan[@]}" --collective reduce --network 1
stderr_says --network
exits 2 "${plan[@]}" --collective all-gather --cutting tensors
stderr_says itself
exits 2 "${plan[@]}" --collective all-gather --optimizer sgd
stderr_says --forward
refused "format's" export all-gather.json --format msccl -o x.xml
