# SPDX-License-Identifier: Apache-2.0
# `reckon plan --strategy torus`: ACE's all-reduce as a plan that is checked and run.
source "$(dirname "$0")/../support/shell.sh"

cat > small.json <<'END'
{"schema": "reckon/workload", "schema_version": 1, "name": "small", "tensors": [{"name": "g", "elements": 100003}]}
END
for strategy in torus torus_scatter; do
  ok plan -p ace-torus -m small.json --strategy "$strategy" --shape 2x3x1 --part-bytes 4KiB -o plan.json
  stderr_empty
  stdout_has 'equation 42'
  json_check plan.json strategy="$strategy" << 'END'
assert plan["strategy"] == strategy and plan["torus"]["shape"] == [2, 3, 1], plan["torus"]
assert len(plan["ranks"]) == 6 and all(rank["worker"] for rank in plan["ranks"])
# 1 byte locally and 2/3 vertically of each: 5/3 of 400012 B, but for parts that are not quite equal.
sent = [rank["egress_bytes"] for rank in plan["ranks"]]
assert all(abs(s / (400012 * 5 / 3) - 1) < 0.05 for s in sent), sent
END
  ok run plan.json --check
  stdout_says every
done
ok run plan.json -n 1 --tolerance 10000000%
stdout_has 'every element correct'

# Any machines can be the nodes: their writes pass their ports.
ok plan -p byteps-cluster -m small.json --strategy torus --shape 2x2x1 -o ports.json
stdout_has 'ring '

refused 'give --shape LxVxH' plan -p ace-torus -m small.json --strategy torus
refused --shape plan -p byteps-cluster -m small.json --strategy ring --shape 2x2x2
ok plan -p ace-torus -m small.json --shape 2x3x1 -o auto.json
grep -q '"strategy": "torus' auto.json || fail 'auto on an endpoint takes one of the torus strategies'
ok plan -p byteps-cluster -m small.json --shape 2x2x1 -o auto.json
python3 - <<'EOF' || fail 'auto with a shape compares torus with the others'
import json
plan = json.load(open('auto.json'))
names = {c['strategy'] for c in plan['candidates']}
assert {'torus', 'torus_scatter', 'ring', 'byteps_split'} <= names, names
EOF
ok plan -p ace-torus -m resnet50-astra-sim --shape 2x2x1 --strategy torus --part-bytes 256KiB --configuration ace -o ace.json
stdout_has 'configuration ace' 'overlap_seconds'
# `solve overlap` has ACE's four phases only: nothing stands beside another plan's time.
ok plan -p ace-torus -m resnet50-astra-sim --shape 2x2x1 --strategy torus_scatter --part-bytes 256KiB --configuration ace
stdout_has 'configuration ace'
stdout_lacks 'overlap_seconds'
refused no-overlap \
  plan -p ace-torus -m small.json --shape 2x2x1 --configuration big
refused --shape plan -p byteps-cluster -m small.json --configuration ace
for more in "--optimizer adam" "--reduction fixed:32"; do
  # shellcheck disable=SC2086
  refused --optimizer \
    plan -p ace-torus -m small.json --strategy torus --shape 2x2x2 $more
done
refused 'them work' \
  plan -p ace-torus -m small.json --strategy torus --shape 2x2x2 --workers 6

# A profile of a torus' links has no ports: what is asked of them is refused, and what needs them says what to plan instead.
refused 'leave --port-bandwidth out' \
  plan -p ace-torus -m small.json --strategy torus --shape 2x2x1 --port-bandwidth 100Gb/s
ok plan -p byteps-cluster -m small.json --strategy torus --shape 2x2x1 --port-bandwidth 10Gb/s -o slower.json
! cmp -s ports.json slower.json || fail "ports of another rate, the same plan"
refused --strategy \
  plan -p ace-torus -m small.json
stderr_lacks 'measure it'

# Its links are not this machine's, which is no program's fault that runs beside it.
reckon plan -p ace-torus -m small.json --strategy torus --shape 2x2x1 -o links.json
ok run links.json -n 1 --tolerance 10000000%
stderr_has 'of their own'
stdout_has 'all shared'
stdout_lacks 'disturbed'

# A plan of other machines has no links here; exporting it has no --roles to say otherwise.
reckon plan -p byteps-cluster -m small.json --workers 4 --servers 0 --strategy ring -o four.json
refused "'ace-torus'" \
  export four.json --format simgrid -p ace-torus
stderr_lacks '--roles'

# Of a format that holds no torus the first refusal is about that, not about the size of its parts.
reckon plan -p ace-torus -m resnet50 --strategy torus --shape 2x2x1 -o torus.json
refused --strategy export torus.json --format msccl
stderr_lacks '--cutting'

# Lanes are solved, ports made up: both are among the options, and the plan is simulated as it was planned.
ok plan -p byteps-cluster -m small.json --strategy torus_scatter --shape 2x2x1 --port-bandwidth 1GB/s -o ports.json
stdout_has 'lanes auto' 'port_bandwidth 1 GB/s'
ok plan -p byteps-cluster -m small.json --strategy torus_scatter --shape 2x2x1 --lanes 2 -o lanes.json
stdout_has 'lanes 2,'
reckon simulate ports.json -o played.json
if [[ $status != 3 ]]; then # 3: this build has no SimGrid
  expect_status 0
  json_check ports.json played.json <<< 'assert near(played["p50_seconds"], ports["prediction"]["mid_seconds"], 0.2)'
fi
