# SPDX-License-Identifier: Apache-2.0
# Sourced by every script here: all that tests/support/shell.sh gives, and
#
#   netlab ARGUMENTS...          scripts/netlab; the cluster goes when the script ends
#   need_netlab                  skips where clusters cannot be made, or libfabric's tcp cannot be had
#   no_netlab                    succeeds there, and prints the reason
#   processes MACHINE            the reckons that run on it, without the shells around them
#   until_said FILE TEXT JOB     waits for a line that ends with TEXT, or for the end of JOB
#   check 'EXPRESSION'           is true, in Python, of the profile p (profile.json) and the plan q (plan.json, if there is
#                                one): cells(case, key=value...), port_of(machine), group_of(machine), members,
#                                payload(Mbit/s), median(values) and near(value, wanted, tolerance = 0.05)
source "$(dirname "${BASH_SOURCE[0]}")/../support/shell.sh"

name=$(basename "$0" .sh)
export NETLAB=${name:0:8}$((RANDOM % 1000))
netlab() { "$source_dir/scripts/netlab" "$@"; }

no_netlab() {
  "$RECKON" run --list > "$last/transports"
  grep -qx 'tcp;ofi_rxm' "$last/transports" || { echo "libfabric's tcp is not available"; return; }
  command -v python3 > /dev/null || { echo "python3 is not installed"; return; }
  if ! netlab up --workers 2 --rate 100mbit > "$last/up" 2>&1; then
    sed -n 's/^netlab: /no clusters here: /p' "$last/up" | tail -n 1
    return
  fi
  netlab down
  at_end 'netlab down'
  return 1
}
need_netlab() { ! no_netlab > "$last/why" || skip "$(cat "$last/why")"; }

processes() {
  local pid
  for pid in $(ip netns pids "$NETLAB-$1" 2> /dev/null); do
    [[ $(cat /proc/"$pid"/comm 2> /dev/null) != reckon ]] || echo "$pid"
  done
}

until_said() {
  for _ in $(seq 3000); do
    ! grep -q "$2\$" "$1" 2> /dev/null && kill -0 "$3" 2> /dev/null || return 0
    sleep 0.02
  done
}

check() {
  python3 - "$1" "$(netlab payload 1000mbit)" << 'END' || fail "$1"
import json, os, sys
from statistics import median
p = json.load(open("profile.json"))
q = json.load(open("plan.json")) if os.path.exists("plan.json") else {}
def payload(mbit): return float(sys.argv[2]) * mbit / 1000
def cells(case, **key):
    return [c for c in p["cells"] if c["case"] == case and all(c.get(k) == v for k, v in key.items())]
def group_of(member): return next(m["id"] for m in p["machines"] if member in m["members"])
def port_of(member): return cells("port_bandwidth", **{"from": group_of(member)})[0]["p50"]
def near(value, wanted, tolerance=0.05):
    ok = abs(value / wanted - 1) <= tolerance
    if not ok: print(f"is {value:.6g}, expected {wanted:.6g}", file=sys.stderr)
    return ok
members = [name for m in p["machines"] for name in m["members"]]
sys.exit(0 if eval(sys.argv[1]) else 1)
END
}
