# SPDX-License-Identifier: Apache-2.0
# labels: nightly
# Plans of two ranks on each of two machines: verbs between the machines, and shared memory or verbs inside them.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

make_profiles << 'END'
topology = [{"id": "m0", "kind": "machine"}, {"id": "m0/numa0", "kind": "numa_node", "os_index": 0, "parent": "m0"}]
cells = [cell("port_bandwidth", 1e9, at="m0", transport="verbs;ofi_rxm"),
         *(cell(f"memory_{way}_bandwidth", 1e10, at="m0") for way in ("read", "write"))]
write("profile.json", "pair", [{"id": "m0", "name": "two ranks", "count": 2, "cores": 2}], cells, topology)
END
make_model
for collective in all-reduce reduce-scatter; do
  ok plan --profile profile.json --workload model.csv --workers 2 --places 2 --part-bytes 64KiB \
    --strategy hierarchical_ring --collective "$collective" -o "$collective.json"
done
vm pair --ranks 2 --log "$PWD/vm" << 'END'
go() { # PLAN NAME ARGUMENTS...
  ((++MASTER_PORT)) # the last job's may still be in use
  before=$(sent)
  "$RECKON" run "$1.json" -n 1 -w 1 --tolerance 1e9% "${@:3}" -o "/vmlab/$2.json" || exit
  [[ $LOCAL_RANK != 0 ]] || echo "$2: packets $(($(sent) - before))"
}
go all-reduce whole
go reduce-scatter half
go all-reduce verbs --transport "inside=$transport,between=$transport"
END
expect_status 0
[[ $(grep -c 'every element correct' "$last/stdout") == 3 ]] || fail "not three correct results"
json_check vm/A/whole.json vm/A/half.json vm/A/verbs.json << 'END'
for report, inside in (whole, "host"), (half, "host"), (verbs, "verbs;ofi_rxm"):
    assert report["transport"] == "verbs;ofi_rxm" and report["context"]["inside_machines"] == inside, report["context"]
    assert [r["host"] for r in report["ranks"]] == ["vm-a", "vm-a", "vm-b", "vm-b"], report["ranks"]
    verified = report["verification"]
    assert verified["ok"] and verified["wrong_elements"] == 0 and verified["checked_bytes"] > 0, verified
END
# A gradient has 675004 bytes, 164 packets of 4 KiB and some more, and makes three steps to its sum and three back, of which
# one each way is between the machines. So each device sends one gradient in each of two iterations, and three where the
# steps inside take it, too; half of that where no sum comes back.
packets() { # NAME LEAST [TOO_MANY]: in gradients
  local node sent
  for node in A B; do
    sent=$(sed -n "s/^$node: $1: packets //p" "$last/stdout")
    ((sent > 164 * $2 && sent < 164 * ${3:-1000})) || fail "$1: the device of $node sent $sent packets"
  done
}
packets whole 2 6
packets half 1 3
packets verbs 6
