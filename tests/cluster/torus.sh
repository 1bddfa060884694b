# SPDX-License-Identifier: Apache-2.0
# labels: nightly
# timeout: 600
# Eight machines as the nodes of a torus: plans of both strategies and of shapes with and without rings of two are run
# over real links, every sum is right, and each machine's one port, which all of its dimensions share, has carried in each
# direction what equation 42 says.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need_netlab

netlab up --workers 8 --rate 200mbit
printf 'name,elements\ng,1048576\n' > small.csv
# Strategy, shape, and what a node sends for each byte of the gradient. 2x2x2: 2 (1 - 1/2) locally, and as much of one half
# vertically and horizontally; where both scatter, 3/4 of that. 4x2x1: 2 (1 - 1/4) locally and 2 (1 - 1/2) of one quarter.
for row in "torus 2x2x2 2" "torus_scatter 2x2x2 1.75" "torus 4x2x1 1.75"; do
  read -r strategy shape sent <<< "$row"
  ok plan --profile byteps-cluster --workload small.csv --strategy "$strategy" --shape "$shape" --part-bytes 16KiB \
    --transport 'tcp;ofi_rxm' --port-bandwidth "$(netlab payload 200mbit)B/s" -o plan.json
  port_counters w{0..7} > before
  cluster_run -- "$RECKON" run plan.json --iterations 2 --warm-up 1 --tolerance 1e9%
  port_counters w{0..7} > after
  expect_status 0
  stdout_has 'every element correct'
  json_check plan.json sent="$sent" before="$(cat before)" after="$(cat after)" << 'END'
rows = [[list(map(int, line.split())) for line in text.splitlines()] for text in (before, after)]
sent = float(sent) * 4 * 2**20
moved = [[(b - a) / (3 * sent) for a, b in zip(x, y)] for x, y in zip(*rows)]
print("sent and received by each port, of what it should be:", moved, file=sys.stderr)
# What is no payload (headers: 66 of 1514 bytes; acknowledgements: up to 66 bytes for two packets of the other direction)
# is 2 to 8 % on top.
assert len(moved) == 8 and all(1 <= value <= 1.12 for port in moved for value in port), moved
# 256 parts are as many for each of 8 servers and 2 or 4 ways, so all nodes send the same; no dimension has a port of its own.
assert all(rank["egress_bytes"] == sent for rank in plan["ranks"]), plan["ranks"]
prediction = plan["prediction"]
assert near(prediction.get("busiest_seconds", prediction["bound_seconds"]), sent / plan["ranks"][0]["port_bytes_per_second"], 1e-6)
END
done
