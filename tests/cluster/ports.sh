# SPDX-License-Identifier: Apache-2.0
# labels: nightly
# timeout: 600
# A server with several network ports beside workers with one: the probe finds them, the plan counts them all, and in
# a run each port carries its part and no other's.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need_netlab

netlab up --workers 3 --servers 1 --server-nics 4 --rate 100mbit
netlab status | grep -Eq "^s0 +3 .* 4\$" || fail "the status does not tell the server's ports"

cluster_run -- "$RECKON" probe --cluster --time 35s --seed 6 -o profile.json
expect_status 0

# The plan counts all ports and takes a lane for each.
ok plan --profile profile.json --workload resnet50 --workers 3 --servers 1 --strategy ps_noncolocated --zero-compute -o plan.json
check plan.json one_node="$(ls -d /sys/devices/system/node/node[0-9]* | wc -l)" << 'END'
single = cells("single_port_bandwidth")
assert sorted(c["from"] for c in single) == [group_of("s0") + f"/port{i}" for i in range(4)], single
assert all(about(p50(c), payload(100)) for c in single), single
# Three workers cannot fill four ports: the machine's rate is theirs, and says so.
assert about(port_of("s0"), payload(3 * 100))
assert "peers" in cells("port_bandwidth", **{"from": group_of("s0")})[0]["ceiling"]["name"]
server = plan["ranks"][3]
assert about(server["port_bytes_per_second"], payload(4 * 100)) and all(r["lanes"] % 4 == 0 for r in plan["ranks"])
# Each lane of the server is named with its port; the only NUMA node of this computer, if it is one, and its processor.
assert [l["port"] for l in server["lane_places"]] == [f"d{i % 4}" for i in range(server["lanes"])], server
assert "lane_places" not in plan["ranks"][0]
assert one_node != "1" or all(l["numa_node"] == 0 and "cpu" in l for l in server["lane_places"]), server
END
ok show plan.json
stdout_matches '^ +lane +ranks +network port +NUMA node +processor' '^ +3 +3 +d3 '

# A run: every port of the server carries its quarter of what three workers send and get.
printf 'name,elements,dtype\ngradient,2097152,fp32\n' > small.csv
ok plan --profile profile.json --workload small.csv --workers 3 --servers 1 --strategy ps_noncolocated \
  --zero-compute --part-bytes 32KiB -o plan.json
port_counters s0 > before
cluster_run -- "$RECKON" run plan.json --iterations 2 --warm-up 1 --tolerance 1e9% -o report.json
port_counters s0 > after
expect_status 0
json_check plan.json report.json before="$(cat before)" after="$(cat after)" << 'END'
lanes = plan["ranks"][3]["lanes"]
assert f"rank 3: {lanes} of {lanes} lanes on the plan's processors" in json.dumps(report), report["context"]
rows = [[list(map(int, line.split())) for line in text.splitlines()] for text in (before, after)]
moved = [[b - a for a, b in zip(x, y)] for x, y in zip(*rows)]
print("sent and received by each port:", moved, file=sys.stderr)
# 3 iterations of 8 MiB, 3 workers, a quarter each. What is no payload (headers: 66 of 1514 bytes; acknowledgements: up
# to 66 bytes for two packets of the other direction) is 2 to 8 % on top.
payload = 3 * 3 * 8 * 2**20 / 4
chunk = 3 * 3 * 32 * 2**10
assert len(moved) == 4 and all(1 <= value / payload <= 1.12 for port in moved for value in port), moved
for direction in zip(*moved):  # and equal within a chunk of each worker in each iteration, and 2 % of acknowledgements
    assert max(direction) - min(direction) <= chunk + 0.02 * payload, moved
END
