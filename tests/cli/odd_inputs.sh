# SPDX-License-Identifier: Apache-2.0
# Valid but odd input that nobody measured: each ends soon, with its result or one error, whatever the numbers, names and shapes.
source "$(dirname "$0")/../support/shell.sh"

printf 'name,elements,dtype\nw,100000,fp32\nv,5000,fp32\n' > small.csv
# One tensor of 1 TB: what plays send is cut into pieces that 32 bits count.
printf 'name,elements,dtype\nw,250000000000,fp32\n' > big.csv
ok plan -p byteps-cluster --workers 4 --servers 4 --port-bandwidth 400Gb/s --strategy coarse -m big.csv -o big.json
# Parts of 4 GiB as whole numbers: the proof's places are more than the product of two lengths holds.
printf 'name,elements,dtype\nw,4294967296,fp32\n' > whole.csv
ok plan -p byteps-cluster -m whole.csv --strategy ps_noncolocated --workers 2 --servers 1 --part-bytes 4GiB --reduction fixed:32 -o whole.json
ok run whole.json --check
refused 'at least 64 bytes' plan -p byteps-cluster --workers 4 --servers 4 --strategy coarse --part-bytes 0 -m small.csv -o none.json
refused '4096 or less' plan -p ace-torus --strategy torus --shape 32x32x16 -m small.csv -o none.json
refused '16777216' plan -p byteps-cluster --workers 4 --strategy ring --part-bytes 16KiB -m big.csv -o none.json
refused 'less than' plan -p byteps-cluster -m small.csv --workers 4 --port-bandwidth 1e-310B/s -o none.json

# Ids that do not begin with the machine's, reasons with a '#', a size of 0, a tree of bridges, rates that nothing has.
make_profiles << 'END'
def gpus(first, second):
    bridge = [{"id": "sw 0", "kind": "pci_bridge", "parent": "m0/numa0"}]
    return [{"id": "m0", "kind": "machine"}, {"id": "m0/numa0", "kind": "numa_node", "parent": "m0", "cpus": [0]}, *bridge,
            *({"id": i, "kind": "gpu", "parent": "sw 0"} for i in (first, second))]
machines = [{"id": "m0", "cores": 1}]
for name, ids in {"ids": ("g0", "g1"), "blanks": ("m0/gpu 0", "m0/gpu > 1")}.items():
    write(f"{name}.json", name, machines, [], gpus(*ids))
def skipped(at, reason):
    return {"case": "host_memcpy", "from": "m0", "bytes": at, "unit": "bytes_per_second", "status": "skipped", "reason": reason}
write("hash.json", "hash", machines, [skipped(4096, "used 5 of them"), skipped(8192, "used # of them")])
write("sizes.json", "sizes", machines, [cell("host_memcpy", 1e9 + n, at="m0", **({"bytes": n} if n else {})) for n in (0, 4096, 8192, 16384)])
deep = [{"id": "m0", "kind": "machine"}]
for i in range(20000):
    deep.append({"id": f"b{i}", "kind": "pci_bridge", "parent": deep[-1]["id"]})
write("deep.json", "deep", machines, [], deep)
for name, rate in {"fast": 1.7e308, "slow": 1e-310}.items():
    write(f"{name}.json", name, [{"id": "m0", "count": 4}], [cell("port_bandwidth", rate, at="m0", bytes=65536, direction="two_way")])
END
ok expect --profile ids.json
ok expect --profile blanks.json
ok show hash.json
stdout_has 'used # of them'
ok page sizes.json -o sizes.html
refused 'objects are above' show deep.json
for rate in fast slow; do
  refused 'impossible' plan -p $rate.json -m small.csv --workers 4 -o none.json
done

# Plans that somebody edited.
ok plan -p byteps-nvlink -m small.csv -o inside.json
python3 - << 'END'
import json
plan = json.load(open("inside.json"))
plan["ranks"][2]["machine_number"] = 2
json.dump(plan, open("elsewhere.json", "w"))
END
refused 'no such place' simulate elsewhere.json
ok plan -p byteps-cluster --workers 2 --servers 2 --strategy ps_noncolocated -m small.csv -o servers.json
python3 - << 'END'
import json
plan = json.load(open("servers.json"))
plan["strategy"] = "ring"
json.dump(plan, open("ring.json", "w"))
END
ok page ring.json -o ring.html

# XML that hwloc or NCCL would not write.
python3 - << 'END'
sets = 'cpuset="0xf...f" complete_cpuset="0xf...f" nodeset="0x1" complete_nodeset="0x1"'
open("endless.xml", "w").write(f'<?xml version="1.0"?><topology version="2.0"><object type="Machine" {sets} '
    f'allowed_cpuset="0xf...f" allowed_nodeset="0x1" gp_index="1"><object type="NUMANode" os_index="0" {sets} gp_index="2"/>'
    '<object type="PU" os_index="0" cpuset="0x1" complete_cpuset="0x1" nodeset="0x1" complete_nodeset="0x1" gp_index="3"/></object></topology>')
open("nested.xml", "w").write('<system version="1"><cpu>' + '<pci busid="0000:01:00.0" class="0x060400">' * 20000 + '</pci>' * 20000 + '</cpu></system>')
END
refused 'infinite' probe --topology endless.xml -o none.json
refused 'is nested in' probe --topology nested.xml -o none.json
[[ ! -e none.json ]] || fail "something refused has written its file"

# Links of two levels, emulated.
sed s/verbs/tcp/ "$source_dir/profiles/h100-cluster.json" > levels.json
ok plan -p levels.json -m small.csv --workers 2 --strategy ring -o levels-plan.json
ok run levels-plan.json --inject levels.json -n 3 --tolerance 1e9%
stdout_has 'every element correct'

# No place for the result is said before the work, and what cannot be written is shown.
for command in "plan -p byteps-cluster -m small.csv -o" "probe --only host_memcpy -o" "check -o" "run servers.json --transport host --trace"; do
  exits 4 $command nowhere/result.json
  stdout_empty
done
