# SPDX-License-Identifier: Apache-2.0
# Faults of a cluster's machines that only the system's own words and counts show: each is named at its machine and
# device, and without them nothing is.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need_netlab

# The machines, devices and findings of settings that `check` has of a short probe, as "w1 MTU of d0".
found() {
  probe --time 4s --seed 3
  run_as_last "$RECKON" check profile.json --json
  json_check .last/stdout profile.json << 'END'
ours = lambda f: f["kind"] == "setting" and f["what"] != "clocks"
machines = profile["machines"]
assert {m for g in machines for m in g["members"]} == {"w0", "w1", "w2", "w3"}, machines
def member(place):
    """w2 of "m0 of w2", and of "w2" or "m2", a machine that is a group of its own."""
    name = place.split(" of ")[-1]
    return next((g["members"][0] for g in machines if g["id"] == name), name)
with open("found", "w") as file:
    file.writelines(sorted(f"{member(f['place'])} {f['what']}\n" for f in stdout["findings"] if ours(f)))
END
}
finds() {
  found
  printf '%s\n' "$@" | LC_ALL=C sort | cmp -s - found || fail "found $(cat found), not $*: $(cat .last/stdout)"
}

netlab up --workers 4 --rate 100mbit --nics 2
export RECKON_FABRIC_ADDRESS=d0
found
[[ ! -s found ]] || fail "a cluster without faults: $(cat found)"

netlab exec w1 -- ip link set d0 mtu 1400
ip netns exec "$NETLAB-switch" ip link set w3-1 down
netlab loss w2 6%
finds 'w1 MTU of d0' 'w3 link of d1' 'w2 TCP segments sent again'
json_check .last/stdout << 'END'
remedies = [f["remedy"] for f in stdout["findings"] if f["kind"] == "setting"]
assert any("ip link show d0" in r for r in remedies) and any("ethtool d1" in r for r in remedies), remedies
END
