# SPDX-License-Identifier: Apache-2.0
# timeout: 1200
# `reckon probe`, `plan` and `run` on a machine with four NUMA nodes, and network ports behind PCIe switches: what is
# where, not how fast it is.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

make_model
cat > roles.json << 'END'
{"schema": "reckon/roles", "schema_version": 1, "name": "two nodes serve two", "groups": [
  {"machine": "m0", "worker": true, "server": false, "lanes": 1, "endpoints": ["m0/numa0", "m0/numa2"]},
  {"machine": "m0", "worker": false, "server": true, "lanes": 1, "endpoints": ["m0/numa1", "m0/numa3"]}]}
END
vm run --numa --timeout 1000 --log "$PWD/vm" << 'END'
cases='--only numa_to_numa_copy_cpu --only link_bandwidth --only fabric_aggregate --only stream_copy
  --only reduce_sum'
"$RECKON" probe --seed 3 --time 150s $cases --transport host -o /vmlab/profile.json
code=$?
[[ $code == 0 || $code == 4 ]] || exit
"$RECKON" plan --profile /vmlab/profile.json --workload model.csv --workers 4 --part-bytes 64KiB -o plan.json || exit
"$RECKON" run plan.json -n 3 --tolerance 1e9% -o /vmlab/plain.json || exit
"$RECKON" plan --inside --profile /vmlab/profile.json --workload model.csv --part-bytes 64KiB -o /vmlab/inside.json || exit
"$RECKON" run /vmlab/inside.json -n 3 --tolerance 1e9% -o /vmlab/report.json || exit
# Two nodes as memory devices of the other two, as CXL memory would be.
"$RECKON" plan --strategy coarse --profile /vmlab/profile.json --workload model.csv --roles roles.json \
  -o /vmlab/coarse.json || exit
"$RECKON" run /vmlab/coarse.json -n 3 --tolerance 1e9% -o /vmlab/coarse_report.json
END
expect_status 0
[[ $(grep -c 'every element correct' "$last/stdout") == 3 ]] || fail "not all runs were verified"
json_check vm/inside.json vm/report.json << 'END'
assert [r["endpoint"] for r in inside["ranks"]] == [f"m0/numa{n}" for n in range(4)], inside["ranks"]
assert all(len(r["cpus"]) == 1 for r in inside["ranks"]), inside["ranks"]
assert abs(sum(t["share"] for t in inside["trees"]) - 1) < 1e-9, inside["trees"]
assert any(r["source"] == "link_bandwidth" for r in inside["resources"]), inside["resources"]
assert report["verification"]["ok"], report["verification"]
END
# Each rank's lane is on a processor of another node, and the kernel says that its memory is there, too.
json_check vm/plain.json << 'END'
import re
said = plain["context"]["lanes"]
ranks = re.findall(r"rank (\d+): (\d+) of (\d+) pages on their lane's NUMA node", said)
assert [r[0] for r in ranks] == ["0", "1", "2", "3"], said
assert all(int(there) == int(all_) > 100 for _, there, all_ in ranks), said
END
json_check vm/coarse.json << 'END'
assert [r["endpoint"] for r in coarse["ranks"]] == ["m0/numa0", "m0/numa2", "m0/numa1", "m0/numa3"], coarse["ranks"]
# Which of the two is next to whom an emulated machine's times do not say.
assert all(r["bandwidth_proxy"] in (2, 3) for r in coarse["routing"]) and len(coarse["routing"]) == 2, coarse["routing"]
END

json_check vm/profile.json << 'END'
p = profile
nodes = [f"m0/numa{n}" for n in range(4)]
objects = {o["id"]: o for o in p["topology"]["objects"]}
assert sorted(o["id"] for o in objects.values() if o["kind"] == "numa_node") == nodes, objects.keys()
# The matrix has all 16 pairs, whatever became of each; the copies that were made are right.
cells = [c for c in p["cells"] if c["case"] == "numa_to_numa_copy_cpu" and c["direction"] == "one_way"]
assert sorted((c["from"], c["to"]) for c in cells) == [(a, b) for a in nodes for b in nodes], cells
assert all(c["status"] in ("ok", "noisy", "skipped") for c in cells), cells
assert any(c["status"] != "skipped" for c in cells), cells
# Between the packages four pairs of nodes meet, each way.
links = {(c["from"], c["to"]): c for c in p["cells"] if c["case"] == "link_bandwidth"}
assert {("m0/pkg0", "m0/pkg1"), ("m0/pkg1", "m0/pkg0")} <= links.keys(), links.keys()
# Three switches: the one of p0 and p1, p2's below it, and p5's.
switches = [o for o in objects.values() if o["kind"] == "pci_bridge"]
assert len(switches) == 3, switches
assert sum(o["parent"] in {s["id"] for s in switches} for o in switches) == 1, switches
def above(o):
    while o:
        yield o["id"]
        o = objects.get(o.get("parent"))
ports = {o["name"]: list(above(o)) for o in objects.values() if o["kind"] == "nic" and o["name"].startswith("p")}
assert sorted(ports) == [f"p{i}" for i in range(6)], ports
for name, chain in ports.items():
    assert ("m0/numa2" if name == "p5" else "m0/numa0") in chain, (name, chain)
END

# p0 and p1 share a switch, p2 is one switch further down, p3 hangs from the same host bridge, p4 from another one of the
# same node, p5 from another node.
"$PATH_CLASSES" vm/profile.json | grep -E '^p. p. ' | sort > classes
diff - classes << 'END' || fail "the ports' ways have other classes than they were built with"
p0 p1 PIX
p0 p2 PXB
p0 p3 PHB
p0 p4 NODE
p0 p5 SYS
p1 p2 PXB
p1 p3 PHB
p1 p4 NODE
p1 p5 SYS
p2 p3 PHB
p2 p4 NODE
p2 p5 SYS
p3 p4 NODE
p3 p5 SYS
p4 p5 SYS
END
ok show vm/profile.json
