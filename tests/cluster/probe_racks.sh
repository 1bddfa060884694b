# SPDX-License-Identifier: Apache-2.0
# timeout: 900
# `reckon probe --cluster` on emulated machines in two racks.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need_netlab

# Two racks with a thin uplink: who is where, what the uplink carries, and that this is no full bisection.
netlab up --workers 6 --rate 100mbit --racks 2 --uplink 50mbit
probe --seed 3
stderr_has 'no full bisection bandwidth'
check << 'END'
assert [m["rack"] for m in p["machines"] for _ in m["members"]] == ["rack0"] * 3 + ["rack1"] * 3, p["machines"]
assert all(about(port_of(w), payload(100)) for w in members)
uplinks = cells("uplink_bandwidth")
assert len(uplinks) == 2 and all(about(p50(c), payload(50)) for c in uplinks), uplinks
assert about(p50(cells("bisection_by_racks")[0]), payload(50))
assert p["context"]["bisection"].startswith("not full"), p["context"]
END
netlab down
