# SPDX-License-Identifier: Apache-2.0
# timeout: 600
# `reckon probe --cluster` on emulated machines whose link speeds are known: it has to find those without being told.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need_netlab

probe() { # BUDGET_AND_OTHER_OPTIONS...
  netlab run --time 150 -- "$RECKON" probe --cluster --force -o profile.json "$@" > out 2> err ||
    fail "probe exited with $?: $(cat out err)"
  "$RECKON" show profile.json > /dev/null || fail "the profile does not read back"
}

# Without a launcher: what to do instead, and nothing written.
unset RANK WORLD_SIZE
reckon probe --cluster -o none.json
expect_status 2
stderr_has 'RANK and WORLD_SIZE are not set'
[ ! -e none.json ] || fail "a profile was written"

# Equal machines: one group, whose port is what TCP can carry at that rate.
netlab up --workers 4 --rate 200mbit
probe --budget 40s --seed 1
check 'members == ["w0", "w1", "w2", "w3"]'
check 'all(near(port_of(w), payload(200)) for w in members)'
check 'len(cells("pair_bandwidth", direction="two_way")) == 12 == len(cells("pair_latency"))'
check 'all(c["status"] in ("ok", "noisy") for c in cells("pair_bandwidth") + cells("pair_latency"))'
check 'len(cells("fabric_write", **{"from": "m0"})) >= 5 and len(cells("reduce_sum", **{"from": "m0"})) > 0'
check '"rack" not in p["machines"][0] and p["context"]["bisection"].startswith("full")'
grep -q 'bisection bandwidth full' out || fail "the summary lacks the verdict"

# One write between each two of them, by size: the longer one takes what the port needs for what it has more. Busy
# processors blur the difference of two times, of some pairs: the median of all stays.
check 'len(cells("pair_write")) == 12 * 7'
check 'all(c["status"] in ("ok", "noisy") or c["reason"].startswith("4 writes of about") for c in cells("pair_write"))'
check 'near(median((b["bytes"] - a["bytes"]) / (b["p50"] - a["p50"]) for a in cells("pair_write", bytes=262144)
  for b in cells("pair_write", bytes=1048576, **{"from": a["from"], "to": a["to"]})), payload(200), 0.05)'
reckon show profile.json --case pair_write
stdout_has 'time of a write'

# A plan can be made from it; rank i is machine i.
reckon plan --profile profile.json --workload resnet50 --workers 2 --servers 2 -o plan.json
expect_status 0

# Unequal rates, one machine faster than any other: each is found.
netlab rate w1 100mbit
netlab rate w3 400mbit
probe --budget 30s --seed 2
check 'members == ["w0", "w1", "w2", "w3"] and len(p["machines"]) == 4'
check 'near(port_of("w0"), payload(200)) and near(port_of("w1"), payload(100)) and near(port_of("w2"), payload(200))'
check 'near(port_of("w3"), payload(400))'
netlab down

# Two racks with a thin uplink: who is where, what the uplink carries, and that this is no full bisection.
netlab up --workers 6 --rate 200mbit --racks 2 --uplink 200mbit
probe --budget 45s --seed 3
check '[m["rack"] for m in p["machines"] for _ in m["members"]] == ["rack0"] * 3 + ["rack1"] * 3'
check 'all(near(port_of(w), payload(200)) for w in members)'
check 'all(near(c["p50"], payload(200), 0.05) for c in cells("uplink_bandwidth")) and len(cells("uplink_bandwidth")) == 2'
check 'near(cells("bisection_by_racks")[0]["p50"], payload(200), 0.05)'
check 'p["context"]["bisection"].startswith("not full")'
grep -q 'no full bisection bandwidth' err || fail "no warning about the uplinks"
netlab down

# Two ports a machine: each alone, and both together.
netlab up --workers 3 --rate 100mbit --nics 2
RECKON_FABRIC_ADDRESS=d0,d1 probe --budget 25s --seed 4
check 'near(port_of("w0"), payload(200))'
check 'sorted(c["from"] for c in cells("single_port_bandwidth")) == ["m0/port0", "m0/port1"]'
check 'all(near(c["p50"], payload(100)) for c in cells("single_port_bandwidth"))'

netlab down

# A near machine on a slow link and a far one on a fast link: their curves cross.
netlab up --workers 1 --servers 2 --rates 400mbit,50mbit,400mbit --delays 0ms,0ms,5ms
probe --seed 5
check 'all(5e-3 < c["min"] < 6.5e-3 for c in cells("pair_latency", to="s1"))'
check 'cells("pair_write", to="s0", bytes=4096, **{"from": "w0"})[0]["p50"] < 0.5 * cells("pair_write", to="s1", bytes=4096, **{"from": "w0"})[0]["p50"]'
check 'cells("pair_write", to="s0", bytes=262144, **{"from": "w0"})[0]["p50"] > 2 * cells("pair_write", to="s1", bytes=262144, **{"from": "w0"})[0]["p50"]'
check 'near(cells("pair_bandwidth", to="s1", direction="one_way", **{"from": "w0"})[0]["p50"], payload(400))'
netlab delay s1 0ms
netlab status | grep -q 'delay of' && fail "the delay is still said to be there"

# A machine that dies ends the probe of all, with its name, and no profile.
rm profile.json
(netlab run --time 60 -- sh -c 'if [ "$RANK" = 2 ]; then exec timeout -s KILL 4 "$0" "$@"; else exec "$0" "$@"; fi' \
  "$RECKON" probe --cluster -o profile.json --limit 10s) > out 2> err && fail "a dead machine must be an error"
grep -q 'rank 2 (s1) died' err || fail "the dead machine is not named: $(cat err)"
[ ! -e profile.json ] || fail "a profile of a broken cluster was written"
echo "probe --cluster: all good"
