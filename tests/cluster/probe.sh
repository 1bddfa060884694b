#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 600
# `reckon probe --cluster` on emulated machines whose link speeds are known: it has to find those without being told.
set -euo pipefail
: "${RECKON:?set RECKON to the program under test}"
RECKON=$(realpath "$RECKON")
source_dir=${RECKON_SOURCE_DIR:-$(realpath "$(dirname "$0")/../..")}
netlab=$source_dir/scripts/netlab
skip() { echo "skipped: $*"; exit 77; }
[ "$(id -u)" = 0 ] || skip "network namespaces need root"
command -v ip > /dev/null && command -v tc > /dev/null || skip "iproute2 is not installed"
ip netns add "reckon-try-$$" 2> /dev/null || skip "no network namespaces here"
ip netns del "reckon-try-$$"
"$RECKON" run --list | grep -qx 'tcp;ofi_rxm' || skip "libfabric's tcp is not available"
command -v python3 > /dev/null || skip "python3 is not installed"

export NETLAB=probe$((RANDOM % 10000))
work=$(mktemp -d "${TMPDIR:-/tmp}/reckon-cluster.XXXXXX")
trap '"$netlab" down; rm -rf "$work"' EXIT
cd "$work"
while read -r name; do unset "$name"; done < <(compgen -e | grep '^RECKON_' | grep -v '^RECKON$' || true)
fail() { echo "FAIL: $*" >&2; [ ! -e out ] || cat out >&2; exit 1; }

probe() { # BUDGET_AND_OTHER_OPTIONS...
  "$netlab" run --time 150 -- "$RECKON" probe --cluster --force -o profile.json "$@" > out 2> err ||
    fail "probe exited with $?: $(cat err)"
  "$RECKON" show profile.json > /dev/null || fail "the profile does not read back"
}
# check 'python expression over the profile p and payload(rate in Mbit/s)'
check() {
  python3 - "$1" "$("$netlab" payload 1000mbit)" << 'END' || fail "$1"
import json, sys
p = json.load(open("profile.json"))
def payload(mbit): return float(sys.argv[2]) * mbit / 1000
def cells(case, **key):
    return [c for c in p["cells"] if c["case"] == case and all(c.get(k) == v for k, v in key.items())]
def port_of(member):
    group = next(m["id"] for m in p["machines"] if member in m["members"])
    return cells("port_bandwidth", **{"from": group})[0]["p50"]
def near(value, wanted, tolerance=0.03):
    ok = abs(value / wanted - 1) <= tolerance
    if not ok: print(f"is {value:.6g}, expected {wanted:.6g}", file=sys.stderr)
    return ok
members = [name for m in p["machines"] for name in m["members"]]
sys.exit(0 if eval(sys.argv[1]) else 1)
END
}

# Without a launcher: what to do instead, and nothing written.
(unset RANK WORLD_SIZE; "$RECKON" probe --cluster -o none.json) > out 2> err && fail "no job must be an error"
[ $? = 0 ] || true
grep -q 'RANK and WORLD_SIZE are not set' err || fail "the error does not say what to do: $(cat err)"
[ ! -e none.json ] || fail "a profile was written"

# Equal machines: one group, whose port is what TCP can carry at that rate.
"$netlab" up --workers 4 --rate 200mbit
probe --budget 40s --seed 1
check 'members == ["w0", "w1", "w2", "w3"]'
check 'all(near(port_of(w), payload(200)) for w in members)'
check 'len(cells("pair_bandwidth", direction="two_way")) == 12 == len(cells("pair_latency"))'
check 'all(c["status"] in ("ok", "noisy") for c in cells("pair_bandwidth") + cells("pair_latency"))'
check 'len(cells("fabric_write", **{"from": "m0"})) >= 5 and len(cells("reduce_sum", **{"from": "m0"})) > 0'
check '"rack" not in p["machines"][0] and p["context"]["bisection"].startswith("full")'
grep -q 'bisection bandwidth full' out || fail "the summary lacks the verdict"

# One write between each two of them, by size: the longer one takes what the port needs for what it has more.
check 'len(cells("pair_write")) == 12 * 7'
check 'all(c["status"] in ("ok", "noisy") or c["reason"].startswith("4 writes of about") for c in cells("pair_write"))'
check 'all(near((b["bytes"] - a["bytes"]) / (b["p50"] - a["p50"]), payload(200), 0.05) for a in cells("pair_write", bytes=262144)
  for b in cells("pair_write", bytes=1048576, **{"from": a["from"], "to": a["to"]}))'
"$RECKON" show profile.json --case pair_write > show.out && grep -q 'time of a write' show.out || fail "show lacks the pairs"

# A plan can be made from it; rank i is machine i.
"$RECKON" plan --profile profile.json --workload resnet50 --workers 2 --servers 2 -o plan.json > plan.out 2>&1 ||
  fail "no plan from this profile: $(cat plan.out)"

# Unequal rates, one machine faster than any other: each is found.
"$netlab" rate w1 100mbit
"$netlab" rate w3 400mbit
probe --budget 30s --seed 2
check 'members == ["w0", "w1", "w2", "w3"] and len(p["machines"]) == 4'
check 'near(port_of("w0"), payload(200)) and near(port_of("w1"), payload(100)) and near(port_of("w2"), payload(200))'
check 'near(port_of("w3"), payload(400))'
"$netlab" down

# Two racks with a thin uplink: who is where, what the uplink carries, and that this is no full bisection.
"$netlab" up --workers 6 --rate 200mbit --racks 2 --uplink 200mbit
probe --budget 45s --seed 3
check '[m["rack"] for m in p["machines"] for _ in m["members"]] == ["rack0"] * 3 + ["rack1"] * 3'
check 'all(near(port_of(w), payload(200)) for w in members)'
check 'all(near(c["p50"], payload(200), 0.05) for c in cells("uplink_bandwidth")) and len(cells("uplink_bandwidth")) == 2'
check 'near(cells("bisection_by_racks")[0]["p50"], payload(200), 0.05)'
check 'p["context"]["bisection"].startswith("not full")'
grep -q 'no full bisection bandwidth' err || fail "no warning about the uplinks"
"$netlab" down

# Two ports a machine: each alone, and both together.
"$netlab" up --workers 3 --rate 100mbit --nics 2
RECKON_FABRIC_ADDRESS=d0,d1 probe --budget 25s --seed 4
check 'near(port_of("w0"), payload(200))'
check 'sorted(c["from"] for c in cells("single_port_bandwidth")) == ["m0/port0", "m0/port1"]'
check 'all(near(c["p50"], payload(100)) for c in cells("single_port_bandwidth"))'

"$netlab" down

# A near machine on a slow link and a far one on a fast link: their curves cross.
"$netlab" up --workers 1 --servers 2 --rates 400mbit,50mbit,400mbit --delays 0ms,0ms,5ms
probe --seed 5
check 'all(5e-3 < c["p50"] < 6.5e-3 for c in cells("pair_latency", to="s1"))'
check 'cells("pair_write", to="s0", bytes=4096, **{"from": "w0"})[0]["p50"] < 0.5 * cells("pair_write", to="s1", bytes=4096, **{"from": "w0"})[0]["p50"]'
check 'cells("pair_write", to="s0", bytes=262144, **{"from": "w0"})[0]["p50"] > 2 * cells("pair_write", to="s1", bytes=262144, **{"from": "w0"})[0]["p50"]'
check 'near(cells("pair_bandwidth", to="s1", direction="one_way", **{"from": "w0"})[0]["p50"], payload(400))'
"$netlab" delay s1 0ms
"$netlab" status | grep -q 'delay of' && fail "the delay is still said to be there"

# A machine that dies ends the probe of all, with its name, and no profile.
rm profile.json
("$netlab" run --time 60 -- sh -c 'if [ "$RANK" = 2 ]; then exec timeout -s KILL 4 "$0" "$@"; else exec "$0" "$@"; fi' \
  "$RECKON" probe --cluster -o profile.json --limit 10s) > out 2> err && fail "a dead machine must be an error"
grep -q 'rank 2 (s1) died' err || fail "the dead machine is not named: $(cat err)"
[ ! -e profile.json ] || fail "a profile of a broken cluster was written"
echo "probe --cluster: all good"
