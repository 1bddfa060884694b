# SPDX-License-Identifier: Apache-2.0
# timeout: 300
# A server with several network ports beside workers with one: the probe finds them, the plan counts them all, and in
# a run each port carries its part and no other's.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need_netlab

# Bytes that each port of the server has sent and received so far, in the order of the ports.
counters() {
  netlab exec s0 -- awk '/^ *d[0-9]+:/ { sub(":", "", $1); print substr($1, 2), $10, $2 }' /proc/net/dev | sort -n
}

ports=4 mbit=100
netlab up --workers 3 --servers 1 --server-nics $ports --rate ${mbit}mbit
netlab status | grep -Eq "^s0 +3 .* $ports\$" || fail "the status does not tell the server's ports"

netlab run --time 200 -- "$RECKON" probe --cluster --seed 6 -o profile.json > out 2> err ||
  fail "probe exited with $?: $(cat out err)"
check 'sorted(c["from"] for c in cells("single_port_bandwidth")) == [group_of("s0") + f"/port{i}" for i in range(4)]'
check 'all(near(c["p50"], payload(100), 0.05) for c in cells("single_port_bandwidth"))'
# Three workers cannot fill four ports: the machine's rate is theirs, and says so.
check 'near(port_of("s0"), payload(3 * 100), 0.08)'
check '"peers" in cells("port_bandwidth", **{"from": group_of("s0")})[0]["ceiling"]["name"]'

# The plan counts all ports and takes a lane for each.
reckon plan --profile profile.json --workload resnet50 --workers 3 --servers 1 --strategy ps_noncolocated \
  --zero-compute -o plan.json
expect_status 0
check 'near(q["ranks"][3]["port_bytes_per_second"], payload(4 * 100), 0.05)'
check 'all(r["lanes"] % 4 == 0 for r in q["ranks"])'
# Each lane of the server is named with its port; the only NUMA node of this computer, if it is one, and its processor.
check '[l["port"] for l in q["ranks"][3]["lane_places"]] == [f"d{i % 4}" for i in range(q["ranks"][3]["lanes"])]'
check '"lane_places" not in q["ranks"][0]'
if [ "$(find /sys/devices/system/node -maxdepth 1 -name 'node[0-9]*' | wc -l)" = 1 ]; then
  check 'all(l["numa_node"] == 0 and "cpu" in l for l in q["ranks"][3]["lane_places"])'
fi
"$RECKON" show plan.json > out
grep -Eq '^ +lane +ranks +network port +NUMA node +processor' out && grep -Eq '^ +3 +3 +d3 ' out ||
  fail "the plan's text does not show the lanes' places"

# A run: every port of the server carries its quarter of what three workers send and get.
echo '{"schema": "reckon/workload", "schema_version": 1, "name": "small", "description": "one tensor", "dtype": "fp32",
  "provenance": "test", "tensors": [{"name": "gradient", "elements": 2097152}]}' > small.json
reckon plan --profile profile.json --workload small.json --workers 3 --servers 1 --strategy ps_noncolocated \
  --zero-compute --part-bytes 32KiB -o plan.json
expect_status 0
counters > before
netlab run --time 60 -- "$RECKON" run plan.json --iterations 2 --warm-up 1 --tolerance 1000% -o report.json > out 2>&1 ||
  fail "the run exited with $?: $(cat out)"
counters > after
lanes=$(python3 -c 'import json; print(json.load(open("plan.json"))["ranks"][3]["lanes"])')
grep -q "rank 3: $lanes of $lanes lanes on the plan's processors" report.json || fail "the lanes are not where the plan has them"
python3 - before after << 'END' || fail "the server's ports do not carry equal parts"
import sys
rows = [[list(map(int, line.split())) for line in open(name)] for name in sys.argv[1:]]
moved = [[b - a for a, b in zip(x[1:], y[1:])] for x, y in zip(*rows)]
print("sent and received by each port:", moved, file=sys.stderr)
# 3 iterations of 8 MiB, 3 workers, a quarter each. What is no payload (headers: 66 of 1514 bytes; acknowledgements: up
# to 66 bytes for two packets of the other direction) is 2 to 8 % on top.
payload = 3 * 3 * 8 * 2**20 / 4
chunk = 3 * 3 * 32 * 2**10
ok = len(moved) == 4 and all(1 <= value / payload <= 1.12 for port in moved for value in port)
for direction in zip(*moved):  # and equal within a chunk of each worker in each iteration, and 2 % of acknowledgements
    ok = ok and max(direction) - min(direction) <= chunk + 0.02 * payload
sys.exit(0 if ok else 1)
END
echo "several network ports: all good"
