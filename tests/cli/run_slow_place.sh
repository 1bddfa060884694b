# SPDX-License-Identifier: Apache-2.0
# A run that takes longer than predicted names what was slow, with its factor, and says how to go on. Links are emulated,
# so slow that what else this machine does hardly counts.
source "$(dirname "$0")/../support/shell.sh"

make_profiles << 'END'
machines = [{"id": "m0", "count": 4, "members": ["a", "b", "c", "d"]}]
for name, rates in {"good": {"m0": 8e6}, "slow": {"m0": 8e6, "c": 2.4e6}}.items():
    cells = [cell("port_bandwidth", rate, at=at, bytes=65536, direction="two_way") for at, rate in rates.items()]
    write(f"{name}.json", name, machines, cells)
END
printf 'name,elements,dtype\nx,500000,fp32\n' > model.csv
ok plan --profile good.json --workload model.csv --workers 4 --servers 0 --strategy ps_colocated --part-bytes 64KiB --lanes 1 -o plan.json

# The profile and the workload lie beside the plan.
exits 1 run plan.json --inject slow.json -n 2 -w 0 -o report.json
stdout_matches "^slow place +rank 2's port carries 0\.[234][0-9] of the profile's 8 MB/s: .* predicted so, .* measured$" \
  '^new plan +[0-9.]+ m?s predicted of a plan that knows it' '^next +reckon diff .*good.json slow.json' \
  'reckon plan --profile slow.json --workload model.csv .*--strategy ps_colocated .*-o new-plan.json$'
stdout_lacks '--cutting' '--servers' 'reckon probe' # at their defaults; a probe would measure this machine
sed -nE 's/^(next)? +reckon /reckon /p' "$last/stdout" > next
[[ $(wc -l < next) == 3 ]] || fail "not three commands: $(cat next)"
while read -r _ arguments; do # each does what it says
  reckon $arguments
  [[ $(cat "$last/status") -le 1 ]] || fail "what the report says to type ends with status $(cat "$last/status")"
done < next
json_check report.json << 'END'
d = report["diagnosis"]
assert [(p["kind"], p["ranks"]) for p in d["places"]] == [("port", [2])] and d["places"][0]["bytes_per_second"] == 8e6, d
assert 0.2 < d["places"][0]["factor"] < 0.4, d
assert abs(d["explained_seconds"] / d["measured_seconds"] - 1) < 0.25 < d["measured_seconds"] / d["planned_seconds"] - 1, d
assert 1.001 * d["explained_seconds"] > d["new_plan_seconds"] > d["planned_seconds"], d
END
ok show report.json
stdout_matches '^ +rank +host +slow ' '^ +2 +[^ ]+ +port 0\.[234][0-9] x '
[[ $(grep -n '^slow place' "$last/stdout" | cut -d: -f1) -lt $(grep -n '^transport' "$last/stdout" | cut -d: -f1) ]] ||
  fail "the slow place is not first"

# As predicted: not a word of it.
ok run plan.json --inject good.json -n 2 -w 0 --tolerance 1e9% -o good_report.json
if (json_check good_report.json <<< 'assert good_report["p50_seconds"] < 1.1 * good_report["prediction"]["mid_seconds"]') 2> busy; then # a failing one ends its shell
  stdout_lacks 'carries 0'
fi

# A straggler, whom nobody announced in the plan.
ok plan --profile good.json --workload model.csv --workers 4 --servers 0 --strategy ps_colocated --part-bytes 64KiB --lanes 1 \
  --forward 100ms --backward 300ms -o passes.json
exits 1 run passes.json --inject good.json --straggler 1=3x -n 2 -w 0
stdout_matches "^slow place +rank 1's passes take [23]\.[0-9]+ times as long as planned"

# Without the profile there is nothing to hold the run against.
mkdir alone
sed '/^ *"file": /d' plan.json > alone/plan.json # which would lead to it
exits 1 run alone/plan.json --inject slow.json -n 1 -w 0
stderr_has place --profile
stdout_lacks 'slow place'
exits 1 run alone/plan.json --inject slow.json -n 1 -w 0 --profile good.json
stdout_has 'slow place'
