# SPDX-License-Identifier: Apache-2.0
# timeout: 900
# `reckon probe --cluster` on emulated machines with two ports each, and on near and far ones.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need_netlab

# Two ports a machine: each alone, and both together.
netlab up --workers 3 --rate 50mbit --nics 2
RECKON_FABRIC_ADDRESS=d0,d1 probe --time 20s --seed 4
check << 'END'
assert about(port_of("w0"), payload(100))
ports = cells("single_port_bandwidth")
assert sorted(c["from"] for c in ports) == [f"{m['id']}/port{i}" for m in p["machines"] for i in (0, 1)], ports
assert all(about(p50(c), payload(50)) for c in ports), ports
END
netlab down

# A near machine on a slow link and a far one on a fast link: their curves cross.
netlab up --workers 1 --servers 2 --rates 400mbit,20mbit,400mbit --delays 0ms,0ms,20ms
probe --time 25s --seed 5
check << 'END'
assert all(20e-3 < c.get("min", 21e-3) < 60e-3 for c in cells("pair_latency", to="s1")), cells("pair_latency")
for size, faster, slower in (4096, "s0", "s1"), (262144, "s1", "s0"):
    a, b = (p50(cells("pair_write", to=to, bytes=size, **{"from": "w0"})[0]) for to in (faster, slower))
    assert a is None or b is None or a < b, cells("pair_write")
END
netlab delay s1 0ms
[[ $(netlab status) != *"delay of"* ]] || fail "the delay is still said to be there"
