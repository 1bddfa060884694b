# SPDX-License-Identifier: Apache-2.0
# Several ranks on each machine: inside it their bytes move through its memory and do not pass its port, between machines
# they do; sums are right, a dead rank is named, and ranks on other machines than the plan's are refused.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need_netlab

netlab up --workers 2 --servers 1 --places 2,3 --rate 200mbit
rate=$(netlab payload 200mbit) make_profiles << 'END'
import os
ports = cell("port_bandwidth", float(os.environ["rate"]), at="m0", bytes=65536, direction="two_way", transport="tcp;ofi_rxm")
write("profile.json", "lab", [{"id": "m0", "count": 3, "members": ["w0", "w1", "s0"]}], [ports],
      [{"id": "m0", "kind": "machine"}, {"id": "m0/numa0", "kind": "numa_node", "parent": "m0"}])
END
printf 'name,elements,dtype\ngradient,1000001,fp32\n' > model.csv

for strategy in auto hierarchical_servers; do
  servers=$([ $strategy = auto ] && echo 0 || echo 1)
  ok plan --profile profile.json --workload model.csv --workers 2 --servers "$servers" --places 2,3 --strategy $strategy -o plan.json
  stdout_has "places 2,3" "2 work (w0-1)" "w1/numa0:"
  stdout_lacks "numa0 > " # a way inside a processor, which nothing measures
  json_check plan.json << 'END'
machines = [(r["machine_number"], r.get("endpoint", ""), r.get("process")) for r in plan["ranks"]]
numa = "m0/numa0"
assert machines[:5] == [(0, numa, 0), (0, numa, 1), (1, numa, 0), (1, numa, 1), (1, numa, 2)], machines
# Every worker's port takes the whole gradient of 4 MB once in and once out: with two machines nothing needs less.
rate = next(r["bytes_per_second"] for r in plan["resources"] if " out" in r["name"])
assert near(plan["prediction"]["bound_seconds"], 4000004 / rate, 0.01), plan["prediction"]
END
  ok run plan.json --check
  stdout_has 'no deadlock' 'no races'
  port_counters w0 w1 > before
  cluster_run --ranks $((5 + servers)) -- "$RECKON" run plan.json --iterations 2 --warm-up 0 --tolerance 1e9% -o report.json
  expect_status 0
  port_counters w0 w1 > after
  json_check report.json << 'END'
assert [r["host"] for r in report["ranks"]][:5] == ["w0", "w0", "w1", "w1", "w1"], report["ranks"]
assert report["context"]["inside_machines"] == "host" and report["transport"] == "tcp;ofi_rxm", report["context"]
verified = report["verification"]
assert verified["wrong_elements"] == 0 and verified["checked_bytes"] > 0, verified
plan = json.load(open("plan.json"))
numbers = lambda file: [[int(n) for n in line.split()] for line in open(file)]
for machine, (before, after) in enumerate(zip(numbers("before"), numbers("after"))):
    # Two iterations, with the headers of packets, what is sent twice and the control connection.
    loads = [r["load_bytes"] for r in plan["resources"] if r["name"].startswith(f"w{machine} ") and r["name"].endswith((" in", " out"))]
    for passed in (a - b for a, b in zip(after, before)):
        assert 2 * min(loads) <= passed <= 2.4 * max(loads) + 1e6, (machine, passed, loads)
END
done

ok plan --profile profile.json --workload model.csv --workers 2 --places 2,3 --devices 1 --strategy ring
stdout_has '2 memory devices unused, no ranks'

# Memory devices beside the workers of each machine (COARSE): clients push inside it, devices sum between them.
ok plan --profile profile.json --workload model.csv --workers 2 --places 2,3 --devices 1 --strategy coarse --proxy-bytes all -o coarse.json
stdout_has 'devices 1' 'places 2,3'
json_check coarse.json << 'END'
assert [r["machine_number"] for r in coarse["ranks"]] == [0, 0, 1, 1, 1], coarse["ranks"]
assert [r["worker"] for r in coarse["ranks"]] == [True, False, True, True, False], coarse["ranks"]
assert [(route["client"], route["bandwidth_proxy"]) for route in coarse["routing"]] == [(0, 1), (2, 4), (3, 4)], coarse["routing"]
END
cluster_run --ranks 4 -- "$RECKON" run coarse.json
stderr_has 'the launcher started 4; plan for that many or start 5 ranks, 2 on w0, 3 on w1'
cluster_run --ranks 5 -- "$RECKON" run coarse.json --iterations 2 --warm-up 0 --tolerance 1e9% -o report.json
expect_status 0
json_check report.json << 'END'
assert report["verification"]["wrong_elements"] == 0 and report["verification"]["checked_bytes"] > 0, report["verification"]
END

# The same over one transport: all bytes, also those inside machines.
cluster_run -- "$RECKON" run plan.json --transport 'tcp;ofi_rxm' --iterations 1 --warm-up 0 --tolerance 1e9% -o report.json
expect_status 0
json_check report.json << 'END'
assert "inside_machines" not in report["context"] and report["verification"]["ok"], report["context"]
END

# What cannot move bytes between machines, or is misspelt, is said once with its ranks, and how to write it.
cluster_run -- "$RECKON" run plan.json --iterations 1 --transport between=host
stderr_has 'reckon: error: transport host moves only what is in memory of its own' 'between= takes a network'
[[ $(grep -c 'transport host moves only' .last/stderr) -le 3 ]] || fail "said once for each rank: $(cat .last/stderr)"
cluster_run -- "$RECKON" run plan.json --transport 'inside=shm;between=tcp'
expect_status 2
stderr_has 'both with a comma' 'ranks 1-5: the same'

# Two machines of the plan on one host: named before the run, which gets no verdict and blames no link.
ok plan --profile profile.json --workload model.csv --workers 2 --servers 1 --strategy ps_noncolocated -o apart.json
cluster_run --on s0,w0 -- "$RECKON" run apart.json --iterations 1 --warm-up 0 -o report.json
expect_status 0
stderr_has 'ranks 1-2 shared w0' 'no verdict'
stdout_has 'none: the plan was made for other links'
json_check report.json <<< 'assert "diagnosis" not in report, report["diagnosis"]'

# A rank that dies inside a machine.
cluster_run --log log -- "$RECKON" -vv run plan.json --iterations 1000 --tolerance 1e9% > killed.out 2>&1 &
job=$!
wait_until "grep -q 'iteration 2' log/rank3.err 2> /dev/null || ! kill -0 $job 2> /dev/null"
for pid in $(processes w1); do
  if tr '\0' '\n' < "/proc/$pid/environ" | grep -qx RANK=3; then kill -KILL "$pid"; fi
done
wait $job || true
[[ $(cat log/rank0.status) = 4 ]] || fail "exit code $(cat log/rank0.status): $(cat log/rank0.err)"
grep -q 'rank 3 (w1) died' log/rank0.err || fail "$(cat log/rank0.err)"
for machine in w0 w1 s0; do [[ -z $(processes $machine) ]] || fail "reckon is left on $machine"; done

# Ranks that the plan has on one machine and that run on two.
netlab down
netlab up --workers 2 --servers 1 --places 3,2 --rate 200mbit
cluster_run -- "$RECKON" run plan.json --iterations 1 --tolerance 1e9%
expect_status 4
stderr_has 'the plan has ranks' 'start the ranks of a machine together'

# The first rank of each machine measures for it.
cluster_run -- "$RECKON" probe --cluster --transport 'tcp;ofi_rxm' --time 30s --force -o profile.json
expect_status 0
json_check profile.json << 'END'
assert sorted(m for g in profile["machines"] for m in g["members"]) == ["s0", "w0", "w1"], profile["machines"]
# First of all the memory that ranks of a machine share: as little time as there is.
measured = {c["case"] for c in profile["cells"] if "p50" in c}
assert {"stream_copy", "stream_add"} & measured, measured
END
