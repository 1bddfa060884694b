# SPDX-License-Identifier: Apache-2.0
# labels: nightly
# Equal machines with two ranks each, and one that only sums: each machine sums its own first, so that its port carries one
# gradient and not two; sums are right, and the time is the predicted one.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need_netlab

netlab up --workers 4 --servers 1 --places 2 --rate 100mbit
rate=$(netlab payload 100mbit) make_profiles << 'END'
import os
ports = cell("port_bandwidth", float(os.environ["rate"]), at="m0", bytes=65536, direction="two_way", transport="tcp;ofi_rxm")
write("profile.json", "lab", [{"id": "m0", "count": 5}], [ports],
      [{"id": "m0", "kind": "machine"}, {"id": "m0/numa0", "kind": "numa_node", "parent": "m0"}])
END
printf 'name,elements,dtype\ngradient,3000001,fp32\n' > model.csv

for strategy in hierarchical_split hierarchical_two_level_split; do
  servers=$([ $strategy = hierarchical_split ] && echo 1 || echo 0)
  ok plan --profile profile.json --workload model.csv --workers 4 --servers "$servers" --places 2 --strategy $strategy -o plan.json
  stdout_has "plan: $strategy over" 'in each machine' 'm0.0/numa0:0 < m0.0/numa0:1'
  ok run plan.json --check
  stdout_has 'every byte summed exactly once, no races'
  port_counters w0 > before
  cluster_run --ranks $((8 + servers)) -- "$RECKON" run plan.json --iterations 2 --warm-up 0 --tolerance 1e9% -o report.json
  expect_status 0
  port_counters w0 > after
  json_check report.json << 'END'
plan = json.load(open("plan.json"))
assert report["verification"]["wrong_elements"] == 0 and report["verification"]["checked_bytes"] > 0, report["verification"]
numbers = lambda file: [int(n) for n in open(file).read().split()]
between = plan["prediction"]["bound_seconds"] * next(q["inputs"]["B"] for q in plan["quantities"] if q["name"] == "split_seconds")
for passed in (a - b for a, b in zip(numbers("after"), numbers("before"))):
    assert 2 * between * 0.98 <= passed <= 2.4 * between + 1e6, (passed, between)
END
done
