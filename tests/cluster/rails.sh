# SPDX-License-Identifier: Apache-2.0
# timeout: 600
# `reckon probe --cluster --rails` on emulated machines of two ports, one of which is slow.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need_netlab

netlab up --workers 3 --rate 60mbit --nics 2
netlab rate w2 20mbit 1 # its port d1 alone

# What would be measured.
cluster_run -- "$RECKON" probe --cluster --rails --list --json
expect_status 0
json_check .last/stdout << 'END'
assert stdout["machines"] == ["w0", "w1", "w2"] and stdout["rails"] == [["d0"] * 3, ["d1"] * 3], stdout
# Three rounds of a pair, each rail and both at once: seconds.
assert 0 < stdout["estimate_seconds"] < 60, stdout
END
absent profile.json

# Each port is measured with its like, and what it gets is its own.
probe --rails --time 30s --seed 3
check << 'END'
ways = [(a, b) for a in members for b in members if a != b]
for rail in 0, 1:
    alone = {(c["from"], c["to"]): p50(c) for c in cells("rail_bandwidth", operation=f"rail{rail}")}
    assert sorted(alone) == [(f"{a}/d{rail}", f"{b}/d{rail}") for a, b in sorted(ways)], alone
    for (a, b), rate in alone.items():
        slow = rail == 1 and "w2" in a + b
        assert about(rate, payload(20 if slow else 60)), (a, b, rate)
at_once = {(c["from"], c["to"]): p50(c) for c in cells("rail_bandwidth", operation="rails_at_once")}
assert sorted(at_once) == sorted(ways), at_once
assert about(at_once["w0", "w1"], payload(120)), at_once
# All else is measured as without --rails.
assert not cells("single_port_bandwidth") and len(cells("pair_bandwidth", direction="two_way")) == 6
END
ok show profile.json
stdout_matches '^ +from +to +d0 +d1 +at once +sum' '^ +w0 +w2 .*%$'

# The slow port is named with its machine.
reckon check profile.json --json
expect_status 1
json_check .last/stdout << 'END'
assert "w2/d1" in [f["place"] for f in stdout["findings"]], stdout["findings"]
END

# A machine whose cable is out has one rail less, and then there is only one in common.
netlab exec w1 -- ip link set d1 down
cluster_run -- "$RECKON" probe --cluster --rails --force -o profile.json
expect_status 3
stderr_has "w1 has no d1"
