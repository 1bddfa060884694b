# SPDX-License-Identifier: Apache-2.0
# Optimizer steps in a plan: the same parameters at every rank as a replica's, at both places.
source "$(dirname "$0")/../support/shell.sh"

printf 'name,elements,dtype\nhead,400001,fp32\ntail,150000,fp32\n' > model.csv
any=(plan --profile byteps-cluster --workload model.csv)
make_plan() { # WORKERS ARGUMENTS...
  ok "${any[@]}" --workers "$1" --servers 1 --port-bandwidth 1GB/s --part-bytes 64KiB --transport host "${@:2}" -o plan.json
}
steps_right() { # PLAN ARGUMENTS
  make_plan 2 "$@"
  ok run plan.json --check
  stdout_says every
  ok run plan.json -n 3 --tolerance 1e9% -o report.json
  stdout_has "every element correct" "update"
}
for place in server worker; do
  steps_right --optimizer adam --update $place --strategy byteps_split
  grep -q "\"place\": \"$place\"" plan.json || fail "the plan does not say where"
done
steps_right --optimizer momentum --update server --strategy ring
steps_right --optimizer sgd # auto

refused "give --optimizer" "${any[@]}" --workers 2 --update server
refused "momentum" "${any[@]}" --workers 2 --optimizer lion
printf 'name,elements,dtype\nhead,400,bf16\n' > half.csv
refused "steps are fp32" \
  plan --profile byteps-cluster --workload half.csv --workers 2 --optimizer sgd

# Asynchronous: every change in the latest parameters once, whatever the order.
for place in server worker; do
  make_plan 3 --strategy byteps_split --async --async-steps 3 --update $place
  ok run plan.json --check
  stdout_says every
  ok run plan.json -n 3 --tolerance 1e9%
  stdout_has "every element correct"
done
refused "optimizer sgd" "${any[@]}" --workers 2 --async --optimizer adam
refused keeps "${any[@]}" --workers 2 --async --strategy ring

# Whole numbers: the error is measured and within its bound.
for strategy in ring byteps_split; do
  make_plan 3 --strategy $strategy --reduction fixed:24 --gradient-bound 0.5
  stdout_has "fixed_point_error"
  ok run plan.json -n 3 --tolerance 1e9% -o report.json
  stdout_has "rounding are allowed"
  grep -q '"max_error"' report.json || fail "the report lacks the error"
done
refused "does not fit" "${any[@]}" --workers 9 --reduction fixed:4
refused "fixed:BITS" "${any[@]}" --workers 2 --reduction float

# A straggler: its passes take longer, and asynchronously nobody waits for it.
make_plan 2 --strategy byteps_split --async --forward 1ms --backward 2ms
ok run plan.json -n 3 --tolerance 1e9% --straggler 0=3x -o late.json
json_check plan.json late.json << 'END'
planned = next(term["seconds"] for term in plan["prediction"]["terms"] if term["name"] == "passes")
played = next(stage["measured_seconds"] for stage in late["stages"] if stage["name"] == "passes")
assert abs(played / planned - 3) < 1e-3, (planned, played)
END
stdout_has "every element correct"
refused 'from 0' run plan.json --straggler 9=3x
refused plays run plan.json --straggler 2=3x
