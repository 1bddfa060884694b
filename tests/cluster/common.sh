# SPDX-License-Identifier: Apache-2.0
# Sourced by every script here: all that tests/support/shell.sh gives, and
#
#   netlab ARGUMENTS...          scripts/netlab; the cluster goes when the script ends
#   need_netlab                  skips where clusters cannot be made, or libfabric's tcp is missing
#   no_netlab                    succeeds there, and prints the reason
#   cluster_run ARGUMENTS...     scripts/netlab run, as the last run; ten minutes only end what hangs
#   probe OPTIONS...             all machines measure profile.json, and it reads back
#   processes MACHINE            the reckons that run on it, without the shells around them
#   until_said FILE TEXT JOB     waits for a line that ends with TEXT, or for the end of JOB
#   port_counters MACHINE...     bytes that each port d0, d1, ... has sent and received so far, a line each
#   check NAME... < PYTHON       json_check with profile.json as p, and of it cells(case, key=value...), port_of(machine),
#                                group_of(machine) and members; payload(Mbit/s), p50(cell), about(value, wanted)
source "$(dirname "${BASH_SOURCE[0]}")/../support/shell.sh"

# Only one process at a time has this number.
name=$(basename "$0" .sh)
export NETLAB=${name:0:4}$$
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
cluster_run() { run_as_last "$source_dir/scripts/netlab" run --time 600 "$@"; }
probe() {
  cluster_run -- "$RECKON" probe --cluster --force -o profile.json "$@"
  expect_status 0
  "$RECKON" show profile.json > /dev/null || fail "the profile does not read back"
}

processes() {
  local pid
  for pid in $(ip netns pids "$NETLAB-$1" 2> /dev/null); do
    [[ $(cat /proc/"$pid"/comm 2> /dev/null) != reckon ]] || echo "$pid"
  done
}
until_said() { wait_until "grep -q '$2\$' '$1' 2> /dev/null || ! kill -0 $3 2> /dev/null"; }

port_counters() {
  local machine
  for machine in "$@"; do
    netlab exec "$machine" -- awk '/^ *d[0-9]+:/ { sub(":", " "); print $1, $10, $2 }' /proc/net/dev | sort -V | cut -d' ' -f2-
  done
}

check() {
  {
    cat << 'END'
p = profile
members = [name for m in p["machines"] for name in m["members"]]
def cells(case, **key):
    return [c for c in p["cells"] if c["case"] == case and all(c.get(k) == v for k, v in key.items())]
def group_of(member): return next(m["id"] for m in p["machines"] if member in m["members"])
def port_of(member): return p50(cells("port_bandwidth", **{"from": group_of(member)})[0])
def p50(cell):
    """None of a cell that this computer was too slow to measure within the budget, or that the program itself calls
    disturbed: then others were at work here."""
    late = ("no time left of", "4 writes of about", "not measured: the probe ended before")
    assert "p50" in cell or cell["reason"].startswith(late), cell
    return None if cell["status"] == "noisy" else cell.get("p50")
def payload(mbit): return float(payload_1000) * mbit / 1000
def about(value, wanted):
    """Busy processors may quarter a rate, and raise it when a receiver catches up: rates to be told apart differ by more."""
    if value is None:
        return True
    print(f"{value / wanted:.3f} of {wanted:.6g}", file=sys.stderr)
    return 0.22 * wanted <= value <= 1.5 * wanted
END
    cat
  } | json_check profile.json payload_1000="$(netlab payload 1000mbit)" "$@"
}
