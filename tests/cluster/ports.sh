#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 300
# A server with several network ports beside workers with one: the probe finds them, the plan counts them all, and in
# a run each port carries its part and no other's.
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

export NETLAB=ports$((RANDOM % 10000))
work=$(mktemp -d "${TMPDIR:-/tmp}/reckon-cluster.XXXXXX")
trap '"$netlab" down; rm -rf "$work"' EXIT
cd "$work"
while read -r name; do unset "$name"; done < <(compgen -e | grep '^RECKON_' | grep -v '^RECKON$' || true)
fail() { echo "FAIL: $*" >&2; [ ! -e out ] || cat out >&2; exit 1; }
# check 'python expression over the profile p, the plan q and payload(rate in Mbit/s)'
check() {
  python3 - "$1" "$("$netlab" payload 1000mbit)" << 'END' || fail "$1"
import json, os, sys
p = json.load(open("profile.json"))
q = json.load(open("plan.json")) if os.path.exists("plan.json") else {}
def payload(mbit): return float(sys.argv[2]) * mbit / 1000
def cells(case, **key):
    return [c for c in p["cells"] if c["case"] == case and all(c.get(k) == v for k, v in key.items())]
def near(value, wanted, tolerance=0.05):
    ok = abs(value / wanted - 1) <= tolerance
    if not ok: print(f"is {value:.6g}, expected {wanted:.6g}", file=sys.stderr)
    return ok
server = next(m["id"] for m in p["machines"] if "s0" in m["members"])
sys.exit(0 if eval(sys.argv[1]) else 1)
END
}

# Bytes that each port of the server has sent and received so far, in the order of the ports.
counters() {
  "$netlab" exec s0 -- awk '/^ *d[0-9]+:/ { sub(":", "", $1); print substr($1, 2), $10, $2 }' /proc/net/dev | sort -n
}

ports=4 mbit=100
"$netlab" up --workers 3 --servers 1 --server-nics $ports --rate ${mbit}mbit
"$netlab" status | grep -Eq "^s0 +3 .* $ports\$" || fail "the status does not tell the server's ports"

"$netlab" run --time 200 -- "$RECKON" probe --cluster --seed 6 -o profile.json > out 2> err ||
  fail "probe exited with $?: $(cat err)"
check 'sorted(c["from"] for c in cells("single_port_bandwidth")) == [f"{server}/port{i}" for i in range(4)]'
check 'all(near(c["p50"], payload(100)) for c in cells("single_port_bandwidth"))'
# Three workers cannot fill four ports: the machine's rate is theirs, and says so.
check 'near(cells("port_bandwidth", **{"from": server})[0]["p50"], payload(3 * 100), 0.08)'
check '"peers" in cells("port_bandwidth", **{"from": server})[0]["ceiling"]["name"]'

# The plan counts all ports and takes a lane for each.
"$RECKON" plan --profile profile.json --workload resnet50 --workers 3 --servers 1 --strategy ps_noncolocated \
  --zero-compute -o plan.json > out 2>&1 || fail "no plan from this profile"
check 'near(q["ranks"][3]["port_bytes_per_second"], payload(4 * 100))'
check 'all(r["lanes"] % 4 == 0 for r in q["ranks"])'

# A run: every port of the server carries its quarter of what three workers send and get.
echo '{"schema": "reckon/workload", "schema_version": 1, "name": "small", "description": "one tensor", "dtype": "fp32",
  "provenance": "test", "tensors": [{"name": "gradient", "elements": 2097152}]}' > small.json
"$RECKON" plan --profile profile.json --workload small.json --workers 3 --servers 1 --strategy ps_noncolocated \
  --zero-compute --part-bytes 32KiB -o plan.json > out 2>&1 || fail "no plan of the small workload"
counters > before
"$netlab" run --time 60 -- "$RECKON" run plan.json --iterations 2 --warm-up 1 --tolerance 1000% -o report.json > out 2>&1 ||
  fail "the run exited with $?"
counters > after
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
