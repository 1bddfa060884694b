# SPDX-License-Identifier: Apache-2.0
# Optimizer steps in a plan: the same parameters at every rank as a replica's, at both places.
source "$(dirname "$0")/../support/shell.sh"

printf 'name,elements,dtype\nhead,400001,fp32\ntail,150000,fp32\n' > model.csv
steps_right() { # PLAN ARGUMENTS
  ok plan --profile byteps-cluster --workload model.csv --workers 2 --servers 1 --port-bandwidth 1GB/s \
    --part-bytes 64KiB --transport host "$@" -o plan.json
  ok run plan.json --check
  stdout_has "every parameter stepped exactly once"
  ok run plan.json -n 3 --tolerance 1e9% -o report.json
  stdout_has "every element correct" "update"
}
for place in server worker; do
  steps_right --optimizer adam --update $place --strategy byteps_split
  grep -q "\"place\": \"$place\"" plan.json || fail "the plan does not say where"
done
steps_right --optimizer momentum --update server --strategy ring
steps_right --optimizer sgd # auto

refused "give --optimizer" \
  plan --profile byteps-cluster --workload model.csv --workers 2 --update server
refused "momentum" plan --profile byteps-cluster --workload model.csv --workers 2 --optimizer lion
printf 'name,elements,dtype\nhead,400,bf16\n' > half.csv
refused "steps are fp32" \
  plan --profile byteps-cluster --workload half.csv --workers 2 --optimizer sgd

# Asynchronous: every change in the latest parameters once, whatever the order.
for place in server worker; do
  ok plan --profile byteps-cluster --workload model.csv --workers 3 --servers 1 --port-bandwidth 1GB/s \
    --part-bytes 64KiB --transport host --strategy byteps_split --async --async-steps 3 --update $place -o plan.json
  ok run plan.json --check
  stdout_has "every change in the latest parameters exactly once"
  ok run plan.json -n 3 --tolerance 1e9%
  stdout_has "every element correct"
done
refused "optimizer sgd" \
  plan --profile byteps-cluster --workload model.csv --workers 2 --async --optimizer adam
refused "keeps the latest parameters" \
  plan --profile byteps-cluster --workload model.csv --workers 2 --async --strategy ring

# Whole numbers: the error is measured and within its bound.
for strategy in ring byteps_split; do
  ok plan --profile byteps-cluster --workload model.csv --workers 3 --servers 1 --port-bandwidth 1GB/s \
    --part-bytes 64KiB --transport host --strategy $strategy --reduction fixed:24 --gradient-bound 0.5 -o plan.json
  stdout_has "fixed_point_error"
  ok run plan.json -n 3 --tolerance 1e9% -o report.json
  stdout_has "rounding are allowed"
  grep -q '"max_error"' report.json || fail "the report lacks the error"
done
refused "does not fit" \
  plan --profile byteps-cluster --workload model.csv --workers 9 --reduction fixed:4
refused "fixed:BITS" \
  plan --profile byteps-cluster --workload model.csv --workers 2 --reduction float

# A straggler: its passes take longer, and asynchronously nobody waits for it.
ok plan --profile byteps-cluster --workload model.csv --workers 2 --servers 1 --port-bandwidth 1GB/s \
  --part-bytes 64KiB --transport host --strategy byteps_split --async --forward 1ms --backward 2ms -o plan.json
ok run plan.json -n 3 --tolerance 1e9% --straggler 0=3x -o late.json
python3 - << 'END' || fail "the passes of the straggler are not those of the report"
import json
plan, late = json.load(open("plan.json")), json.load(open("late.json"))
planned = next(term["seconds"] for term in plan["prediction"]["terms"] if term["name"] == "passes")
played = next(stage["measured_seconds"] for stage in late["stages"] if stage["name"] == "passes")
assert abs(played / planned - 3) < 1e-3, (planned, played)
END
stdout_has "every element correct"
refused "a rank from 0 to 2" run plan.json --straggler 9=3x
refused "plays no forward or backward pass" run plan.json --straggler 2=3x
