# SPDX-License-Identifier: Apache-2.0
# Links of another machine, emulated on this one.
source "$(dirname "$0")/../support/shell.sh"

# Two machines, 50 ms and 10 MB/s from one to the other.
make_profiles << 'END'
cells = [cell("port_bandwidth", 10e6, at="m0", bytes=65536, direction="two_way")]
for a, b in pairs("ab"):
    cells.append(cell("pair_latency", 0.05, at=a, to=b, bytes=8, direction="one_way"))
    cells.append(cell("pair_bandwidth", 10e6, at=a, to=b, bytes=65536, direction="one_way"))
write("slow.json", "slow", [{"id": "m0", "count": 2, "members": ["a", "b"]}], cells)
END
printf 'name,elements,dtype\nx,50000,fp32\n' > model.csv
ok plan --profile slow.json --workload model.csv --workers 2 --servers 0 --strategy ring --part-bytes 100000 --lanes 1 -o plan.json

# A ring of two: 100 kB each way, then again: 2 x (50 ms + 10 ms), whatever this machine is busy with.
ok run plan.json --inject slow.json -n 3 --tolerance 1e9% -o report.json
stdout_has slow.json
json_check report.json << 'END'
assert report["emulation"]["profile"]["name"] == "slow.json" and report["emulation"]["writes"] >= 4 * 3
assert report["min_seconds"] >= 0.12 and report["verification"]["ok"]
END
reckon show report.json
stdout_has 'emulated links'

# Beside the same plan over this machine's own memory: other things.
reckon run plan.json -n 3 --tolerance 1e9% -o own.json
exits 1 diff own.json report.json
stdout_has 'emulat'

# What the profile does not have.
refused "'byteps-cluster'" run plan.json --inject byteps-cluster -n 1
exits 2 run plan.json --inject nothing.json -n 1

# The links that the prediction was played on, uplinks of racks among them: four machines in two racks, each rack's workers send
# the gradient's 200 kB once each way over 10 MB/s, and no run is faster than that, whichever way the sums go.
make_profiles << 'END'
cells = [cell("port_bandwidth", 20e6, at=f"n{i}") for i in range(4)] + [cell("uplink_bandwidth", 10e6, at=f"r{i}") for i in (0, 1)]
write("racks.json", "racks", [{"id": f"n{i}", "count": 1, "rack": f"r{i // 2}"} for i in range(4)], cells)
END
for strategy in auto ring; do
  ok plan -p racks.json -m model.csv --strategy $strategy -o racks-plan.json
  ok run racks-plan.json --inject racks.json -n 2 -w 1 --tolerance 1e9% -o report.json
  json_check report.json <<< 'assert report["min_seconds"] >= report["prediction"]["bound_seconds"] >= 0.0199, report'
done

# Places inside a machine: its links and memories, here a thousandth as fast. No run is faster than what they carry.
json_check "$source_dir/profiles/byteps-pcie.json" > inside.json << 'END'
byteps_pcie["name"] = "inside"
for cell in byteps_pcie["cells"]:
    if cell["unit"] == "bytes_per_second":
        cell.update({key: cell[key] / 1000 for key in ("p50", "min", "max", "p99")})
print(json.dumps(byteps_pcie))
END
cat > roles.json << 'JSON'
{"schema": "reckon/roles", "schema_version": 1, "name": "half of them", "groups": [
  {"machine": "m0", "worker": true, "endpoints": ["m0/gpu0", "m0/gpu1", "m0/gpu4", "m0/gpu5"]},
  {"machine": "m0", "server": true, "endpoints": ["m0/gpu2", "m0/gpu6"]}]}
JSON
ok plan --inside -p inside.json -m model.csv -o trees.json
ok plan --strategy coarse -p inside.json -m model.csv --roles roles.json -o devices.json
for plan in trees devices; do
  ok run $plan.json --inject inside.json --transport host -n 2 -w 1 --tolerance 1e9% -o report.json
  stdout_has inside.json
  stderr_has 'hb0 > numa0'
  json_check report.json <<< '
assert report["min_seconds"] >= report["prediction"]["bound_seconds"] > 0.005 and report["verification"]["ok"]'
done
# Of another machine, which has no such places, or cannot copy between them.
refused 'machine "m0"' run trees.json --inject byteps-cluster --transport host -n 1
json_check inside.json << 'END'
for cell in inside["cells"]:
    if "memcpy" in cell["case"]:
        cell["status"] = "unsupported"
        for key in ("p50", "min", "max", "p99", "n", "spread"): cell.pop(key)
json.dump(inside, open("silent.json", "w"))
inside["cells"] = [c for c in inside["cells"] if "m0/gpu1" not in (c.get("from"), c.get("to"))]
inside["topology"]["objects"] = [o for o in inside["topology"]["objects"] if o["id"] != "m0/gpu1"]
json.dump(inside, open("fewer.json", "w"))
END
refused '"m0/gpu1"' \
  run trees.json --inject fewer.json --transport host -n 1
exits 2 run devices.json --inject silent.json --transport host -n 1
stderr_matches "knows no link or memory with a rate between m0/gpu[0-9] and m0/gpu[0-9], which the plan writes between"
