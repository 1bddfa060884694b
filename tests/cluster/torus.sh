# SPDX-License-Identifier: Apache-2.0
# Eight machines as the nodes of a torus: plans of both strategies and of shapes with and without rings of two are run
# over real links, every sum is right, and each machine's one port, which all of its dimensions share, has carried in each
# direction what equation 42 says.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need_netlab

mbit=200
netlab up --workers 8 --rate ${mbit}mbit > up.log || fail "$(cat up.log)"

# Bytes that the ports of all machines have sent and received so far, in rank order.
counters() {
  local i
  for i in $(seq 0 7); do
    netlab exec w"$i" -- awk '/^ *d0:/ { sub(".*:", ""); print $9, $1 }' /proc/net/dev
  done
}

echo '{"schema": "reckon/workload", "schema_version": 1, "name": "small", "tensors": [{"name": "g", "elements": 1048576}]}' \
  > small.json
port=$(netlab payload ${mbit}mbit)B/s
# Strategy, shape, and what a node sends for each byte of the gradient. 2x2x2: 2 (1 - 1/2) locally, and as much of one half
# vertically and horizontally; where both scatter, 3/4 of that. 4x2x1: 2 (1 - 1/4) locally and 2 (1 - 1/2) of one quarter.
for row in "torus 2x2x2 2" "torus_scatter 2x2x2 1.75" "torus 4x2x1 1.75"; do
  read -r strategy shape sent <<< "$row"
  reckon plan --profile byteps-cluster --workload small.json --strategy "$strategy" --shape "$shape" --part-bytes 16KiB \
    --transport 'tcp;ofi_rxm' --port-bandwidth "$port" -o plan.json
  expect_status 0
  counters > before
  netlab run --time 60 -- "$RECKON" run plan.json --iterations 2 --warm-up 1 --tolerance 1000% > out 2>&1 ||
    fail "$row: the run exited with $?: $(cat out)"
  counters > after
  grep -q 'every element correct' out || fail "$row: not every element was checked"
  python3 - before after "$sent" << 'END' || fail "$row: not what equation 42 says"
import json, sys
rows = [[list(map(int, line.split())) for line in open(name)] for name in sys.argv[1:3]]
sent = float(sys.argv[3]) * 4 * 2**20
moved = [[(b - a) / (3 * sent) for a, b in zip(x, y)] for x, y in zip(*rows)]
print("sent and received by each port, of what it should be:", moved, file=sys.stderr)
# What is no payload (headers: 66 of 1514 bytes; acknowledgements: up to 66 bytes for two packets of the other direction)
# is 2 to 8 % on top.
ok = len(moved) == 8 and all(1 <= value <= 1.12 for port in moved for value in port)
plan = json.load(open("plan.json"))
# 256 parts are as many for each of 8 servers and 2 or 4 ways, so all nodes send the same; no dimension has a port of its own.
bound = sent / plan["ranks"][0]["port_bytes_per_second"]
ok = ok and all(rank["egress_bytes"] == sent for rank in plan["ranks"])
ok = ok and abs(plan["prediction"]["bound_seconds"] / bound - 1) < 1e-6
sys.exit(0 if ok else 1)
END
done
echo "torus over real links: all good"
