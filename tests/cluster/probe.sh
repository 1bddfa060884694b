# SPDX-License-Identifier: Apache-2.0
# timeout: 900
# `reckon probe --cluster` on emulated machines whose link speeds are known: it has to find those without being told.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need_netlab

# Without a launcher: what to do instead, and nothing written.
unset RANK WORLD_SIZE
refused WORLD_SIZE probe --cluster -o none.json
absent none.json

# Unequal machines: each port is what TCP can carry at its rate.
netlab up --workers 4 --rates 100mbit,20mbit,100mbit,400mbit
probe --time 40s --seed 2
check << 'END'
assert members == ["w0", "w1", "w2", "w3"] and len(p["machines"]) == 4, p["machines"]
assert all(about(port_of(w), payload(rate)) for w, rate in zip(members, (100, 20, 100, 400)))
END

cp profile.json unequal.json

# Equal ones: one group.
for machine in w1 w3; do netlab rate $machine 100mbit; done
probe --time 40s --seed 1
stdout_has 'bisection bandwidth '
# The same hosts, in other groups: the ports that changed are named, and the machines are not called others.
took=$(sed -n 's/^cluster of .*; took \([0-9.]*\) s$/\1/p' .last/stdout)
exits 1 diff unequal.json profile.json
stderr_lacks 'different machines'
stdout_matches '^profiles .*: different: .*w1: port [4-6].*w3: port 0\.'
check took="$took" << 'END'
from statistics import median
assert members == ["w0", "w1", "w2", "w3"], p["machines"]
assert all(about(port_of(w), payload(100)) for w in members)
assert all(about(p50(c), 2 * payload(100)) for c in cells("bisection_by_order"))
both = cells("pair_bandwidth", direction="two_way") + cells("pair_latency")
assert len(both) == 24 and all(p50(c) is None or p50(c) > 0 for c in both), both
assert "full" in p["context"]["bisection"], p["context"]
# What machines do on their own comes last.
assert float(took) >= 40 or len(cells("fabric_write")) >= 5 and cells("reduce_sum"), took
# One write between each two of them, by size: the longer one takes what the port needs for what it has more.
writes = cells("pair_write")
assert len(writes) == 12 * 7
slopes = [(b["bytes"] - a["bytes"]) / (p50(b) - p50(a)) for a in cells("pair_write", bytes=65536)
          for b in cells("pair_write", bytes=262144, **{"from": a["from"], "to": a["to"]}) if p50(a) and p50(b)]
assert about(median(slopes) if slopes else None, payload(100)), slopes
END
# A plan can be made from it; rank i is machine i.
ok plan --profile profile.json --workload resnet50 --workers 2 --servers 2 -o plan.json
netlab down

# A machine that dies ends the probe of all, with its name, and no profile.
netlab up --workers 1 --servers 2 --rate 100mbit
rm profile.json
mkdir dead
cluster_run --log dead -- "$RECKON" -vv probe --cluster -o profile.json &
wait_until 'grep -q ": about .* a pair and direction" dead/rank0.err 2> /dev/null' $! # all have joined, and measure
# shellcheck disable=SC2046
kill -KILL $(processes s1)
wait $!
grep -q 'rank 2 (s1) died' dead/rank0.err || fail "the dead machine is not named: $(cat dead/rank0.err)"
[[ $(cat dead/rank0.status) != 0 ]] || fail "a dead machine must be an error"
absent profile.json
