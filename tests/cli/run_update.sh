# SPDX-License-Identifier: Apache-2.0
# Optimizer steps in a plan: the same parameters at every rank as a replica's, at both places.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

printf 'name,elements,dtype\nhead,400001,fp32\ntail,150000,fp32\n' > model.csv
steps_right() { # PLAN ARGUMENTS
  reckon plan --profile byteps-cluster --workload model.csv --workers 2 --servers 1 --port-bandwidth 1GB/s \
    --part-bytes 64KiB --transport host "$@" -o plan.json
  expect_status 0
  reckon run plan.json --check
  expect_status 0
  stdout_has "every parameter stepped exactly once"
  reckon run plan.json -n 3 --tolerance 1e9% -o report.json
  expect_status 0
  stdout_has "every element correct"
  stdout_has "update"
}
for place in server worker; do
  steps_right --optimizer adam --update $place --strategy byteps_split
  grep -q "\"place\": \"$place\"" plan.json || fail "the plan does not say where"
done
steps_right --optimizer momentum --update server --strategy ring
steps_right --optimizer sgd # auto

reckon plan --profile byteps-cluster --workload model.csv --workers 2 --update server
expect_status 2
stderr_has "give --optimizer"
reckon plan --profile byteps-cluster --workload model.csv --workers 2 --optimizer lion
expect_status 2
stderr_has "momentum"
printf 'name,elements,dtype\nhead,400,bf16\n' > half.csv
reckon plan --profile byteps-cluster --workload half.csv --workers 2 --optimizer sgd
expect_status 2
stderr_has "steps are fp32"

# Asynchronous: every change in the latest parameters once, whatever the order.
for place in server worker; do
  reckon plan --profile byteps-cluster --workload model.csv --workers 3 --servers 1 --port-bandwidth 1GB/s \
    --part-bytes 64KiB --transport host --strategy byteps_split --async --async-steps 3 --update $place -o plan.json
  expect_status 0
  reckon run plan.json --check
  expect_status 0
  stdout_has "every change in the latest parameters exactly once"
  reckon run plan.json -n 3 --tolerance 1e9%
  expect_status 0
  stdout_has "every element correct"
done
reckon plan --profile byteps-cluster --workload model.csv --workers 2 --async --optimizer adam
expect_status 2
stderr_has "optimizer sgd"
reckon plan --profile byteps-cluster --workload model.csv --workers 2 --async --strategy ring
expect_status 2
stderr_has "keeps the latest parameters"

# Whole numbers: the error is measured and within its bound.
for strategy in ring byteps_split; do
  reckon plan --profile byteps-cluster --workload model.csv --workers 3 --servers 1 --port-bandwidth 1GB/s \
    --part-bytes 64KiB --transport host --strategy $strategy --reduction fixed:24 --gradient-bound 0.5 -o plan.json
  expect_status 0
  stdout_has "fixed_point_error"
  reckon run plan.json -n 3 --tolerance 1e9% -o report.json
  expect_status 0
  stdout_has "rounding are allowed"
  grep -q '"max_error"' report.json || fail "the report lacks the error"
done
reckon plan --profile byteps-cluster --workload model.csv --workers 9 --reduction fixed:4
expect_status 2
stderr_has "does not fit"
reckon plan --profile byteps-cluster --workload model.csv --workers 2 --reduction float
expect_status 2
stderr_has "fixed:BITS"

# A straggler: its passes take longer, and asynchronously nobody waits for it.
reckon plan --profile byteps-cluster --workload model.csv --workers 2 --servers 1 --port-bandwidth 1GB/s \
  --part-bytes 64KiB --transport host --strategy byteps_split --async --forward 1ms --backward 2ms -o plan.json
expect_status 0
reckon run plan.json -n 3 --tolerance 1e9% --straggler 0=3x -o late.json
expect_status 0
python3 - << 'END' || fail "the passes of the straggler are not those of the report"
import json
plan, late = json.load(open("plan.json")), json.load(open("late.json"))
planned = next(term["seconds"] for term in plan["prediction"]["terms"] if term["name"] == "passes")
played = next(stage["measured_seconds"] for stage in late["stages"] if stage["name"] == "passes")
assert abs(played / planned - 3) < 1e-3, (planned, played)
END
stdout_has "every element correct"
reckon run plan.json --straggler 9=3x
expect_status 2
stderr_has "a rank from 0 to 2"
reckon run plan.json --straggler 2=3x
expect_status 2
stderr_has "plays no forward or backward pass"
