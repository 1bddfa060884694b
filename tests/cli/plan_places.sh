# SPDX-License-Identifier: Apache-2.0
# A rank for every GPU of several machines, beside machines that only sum: planned as one, proved, simulated.
source "$(dirname "$0")/../support/shell.sh"

printf 'name,elements,dtype\nhead,4000001,fp32\ntail,1500000,fp16\n' > model.csv
gpus=(plan --workload model.csv --places gpu)

ok "${gpus[@]}" --profile a100-cluster --workers 2 --servers 1 -o boxes.json
stdout_has "options   lanes 1, places gpu, servers 1, workers 2" "hierarchical_ring" "m0.0/gpu0" "port nic"
ok run boxes.json --check
stdout_has "no races"
ok plan --workload model.csv --profile h100-cluster --places gpu --workers 3 --part-bytes 256KiB -o three.json
ok run three.json --check
stdout_has " ranks, "
exits 1 diff boxes.json three.json
stdout_has "option workers"
ok "${gpus[@]}" --profile h100-cluster --workers 1
stdout_has "places gpu, servers 0, workers 1"

# By hand: two machines of four GPUs on one switch with a NIC, and one that only sums (equations 1 to 4: M through each port).
python3 - << 'PY'
import json
gpus = [{"id": f"box/gpu{i}", "kind": "gpu", "parent": "box/sw"} for i in range(4)]
json.dump({"schema": "reckon/profile", "schema_version": 1, "name": "by hand", "source": "by hand", "context": {}, "cells": [],
           "fits": [], "machines": [{"id": "box", "name": "4 GPUs", "count": 2, "cores": 8},
                                    {"id": "cpu", "name": "CPUs", "count": 2, "cores": 8}],
           "topology": {"objects": [{"id": "box", "kind": "machine"},
                                    {"id": "box/sw", "kind": "pci_bridge", "parent": "box",
                                     "pcie": {"transfers_per_second": 16e9, "width": 16}},
                                    *[{**g, "pcie": {"transfers_per_second": 16e9, "width": 16}} for g in gpus],
                                    {"id": "box/nic0", "kind": "nic", "parent": "box/sw", "link_bytes_per_second": 1e9,
                                     "pcie": {"transfers_per_second": 16e9, "width": 16}}],
                        "links": []}}, open("hand.json", "w"))
PY
refused "no rate of a network port of machine cpu is known" "${gpus[@]}" --profile hand.json --servers 1
python3 - << 'PY'
import json
profile = json.load(open("hand.json"))
profile["cells"].append({"case": "port_bandwidth", "unit": "bytes_per_second", "bytes_convention": "payload", "status": "published",
                         "reason": "data sheet", "n": 0, "spread": 0, "p50": 1e9, "min": 1e9, "max": 1e9, "p99": 1e9, "from": "cpu"})
json.dump(profile, open("hand.json", "w"))
PY
ok "${gpus[@]}" --profile hand.json --servers 1 -o hand-plan.json
ok run hand-plan.json --check
python3 - << 'PY' || fail "the plan by hand is not the split of equations 1 to 4"
import json
plan = json.load(open("hand-plan.json"))
optimum = next(q["value"] for q in plan["quantities"] if q["name"] == "optimum_seconds")
assert abs(optimum - plan["gradient_bytes"] / 1e9) < 1e-3 * optimum, optimum
assert plan["prediction"]["mid_seconds"] < 1.05 * optimum, plan["prediction"]
assert [r.get("machine_number") for r in plan["ranks"]][:8] == [0] * 4 + [1] * 4
PY

# The cluster that docs/cli.md describes by hand, as it stands there: each NIC carries the gradient once each way.
sed -n '/^### GPUs in several machines/,/^### /{/^```json/,/^```$/{/^```/!p}}' "$source_dir/docs/cli.md" > two-boxes.json
ok plan --profile two-boxes.json --workload resnet50 -o two-boxes-plan.json
stdout_has "bound        8.178 ms"
ok run two-boxes-plan.json --check
python3 - << 'PY' || fail "the cluster in docs/cli.md has another bound than its NICs"
import json
plan = json.load(open("two-boxes-plan.json"))
assert len(plan["ranks"]) == 8
assert abs(plan["prediction"]["bound_seconds"] - plan["gradient_bytes"] / 12.5e9) < 1e-6, plan["prediction"]
PY

# What cannot be.
refused "ask for at least one that works and no more than there are" "${gpus[@]}" --profile hand.json --workers 3
refused "no machine has a GPU in its topology" "${gpus[@]}" --profile byteps-cluster
exits 2 "${gpus[@]}" --profile h100-cluster --workers 2 --optimizer sgd
stderr_has "--optimizer with --places"
