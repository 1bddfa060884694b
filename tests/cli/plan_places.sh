# SPDX-License-Identifier: Apache-2.0
# A rank for every GPU of several machines, beside machines that only sum: planned as one, proved, simulated.
source "$(dirname "$0")/../support/shell.sh"

printf 'name,elements,dtype\nhead,4000001,fp32\ntail,1500000,fp16\n' > model.csv
gpus=(plan --workload model.csv --places gpu)

ok "${gpus[@]}" --profile a100-cluster --workers 2 --servers 1 -o boxes.json
stdout_says 'lanes 1'
stdout_has "hierarchical_ring" "m0.0/gpu0" "port nic"
ok run boxes.json --check
stdout_has "no races"
ok plan --workload model.csv --profile h100-cluster --places gpu --workers 3 --part-bytes 256KiB -o three.json
ok run three.json --check
stdout_has " ranks, "
exits 1 diff boxes.json three.json
stdout_has "option workers"
# Over a network that does not reach GPUs, and where this is said too late.
exits 3 run three.json --transport inside=cuda
stderr_has 'between m0.'
stderr_has "plan with --gpu-direct=no"
ok "${gpus[@]}" --profile h100-cluster --workers 2 --part-bytes 256KiB --gpu-direct=no -o memories.json
stdout_has "gpu_direct no" "m0.0/numa0"
ok run memories.json --check
stdout_has "no races"
ok simulate memories.json
exits 1 diff three.json memories.json
stdout_has "option gpu_direct"
refused 'no rank' "${gpus[@]:0:3}" --profile byteps-cluster --gpu-direct=no
ok "${gpus[@]}" --profile h100-cluster --workers 1
stdout_says 'servers 0'

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
refused network "${gpus[@]}" --profile hand.json --servers 1
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

# Two boxes of four GPUs with an NVLink of 50 GB/s between each pair and a NIC of 12.5 GB/s, which carries the gradient once each way.
cat > two-boxes.json << 'END'
{
  "schema": "reckon/profile", "schema_version": 1, "name": "two boxes", "source": "data sheet", "context": {}, "cells": [], "fits": [],
  "machines": [{"id": "box", "name": "4 GPUs", "count": 2, "cores": 32}],
  "topology": {
    "objects": [
      {"id": "box", "kind": "machine"},
      {"id": "box/sw", "kind": "pci_bridge", "parent": "box"},
      {"id": "box/gpu0", "kind": "gpu", "parent": "box/sw", "pcie": {"transfers_per_second": 16e9, "width": 16}},
      {"id": "box/gpu1", "kind": "gpu", "parent": "box/sw", "pcie": {"transfers_per_second": 16e9, "width": 16}},
      {"id": "box/gpu2", "kind": "gpu", "parent": "box/sw", "pcie": {"transfers_per_second": 16e9, "width": 16}},
      {"id": "box/gpu3", "kind": "gpu", "parent": "box/sw", "pcie": {"transfers_per_second": 16e9, "width": 16}},
      {"id": "box/nic0", "kind": "nic", "parent": "box/sw", "link_bytes_per_second": 12.5e9, "pcie": {"transfers_per_second": 16e9, "width": 16}}],
    "links": [
      {"kind": "nvlink", "from": "box/gpu0", "to": "box/gpu1", "bytes_per_second": 50e9},
      {"kind": "nvlink", "from": "box/gpu0", "to": "box/gpu2", "bytes_per_second": 50e9},
      {"kind": "nvlink", "from": "box/gpu0", "to": "box/gpu3", "bytes_per_second": 50e9},
      {"kind": "nvlink", "from": "box/gpu1", "to": "box/gpu2", "bytes_per_second": 50e9},
      {"kind": "nvlink", "from": "box/gpu1", "to": "box/gpu3", "bytes_per_second": 50e9},
      {"kind": "nvlink", "from": "box/gpu2", "to": "box/gpu3", "bytes_per_second": 50e9}]}}
END
ok plan --profile two-boxes.json --workload resnet50 -o two-boxes-plan.json
stdout_has "bound        8.178 ms"
ok run two-boxes-plan.json --check
python3 - << 'PY' || fail "two boxes have another bound than their NICs"
import json
plan = json.load(open("two-boxes-plan.json"))
assert len(plan["ranks"]) == 8
assert abs(plan["prediction"]["bound_seconds"] - plan["gradient_bytes"] / 12.5e9) < 1e-6, plan["prediction"]
PY

# What a newcomer does next with it: machines by their names, one of which has a slow NIC, which the plan and diff name.
cat > change.py << 'PY'
import json, sys
def boxes():
    profile = json.load(open("two-boxes.json"))
    box = profile["topology"]
    for machine in "ab":
        profile["machines"].append({"id": machine, "name": "4 GPUs", "count": 1, "cores": 32})
    profile["machines"].pop(0)
    profile["topology"] = {key: [{k: v.replace("box", m) if isinstance(v, str) else v for k, v in o.items()}
                                 for m in "ab" for o in box[key]] for key in ("objects", "links")}
    return profile
def nic(profile, rate):
    next(o for o in profile["topology"]["objects"] if o["id"] == "b/nic0")["link_bytes_per_second"] = rate
    return profile
json.dump(boxes(), open("ab.json", "w"))
json.dump(nic(boxes(), 2.5e9), open("slow.json", "w"))
json.dump(nic(boxes(), 12.5), open("unit.json", "w"))
unrated = boxes()
for link in unrated["topology"]["links"]: del link["bytes_per_second"]
json.dump(unrated, open("unrated.json", "w"))
silent = boxes()
for o in silent["topology"]["objects"]: o.pop("link_bytes_per_second", None)
json.dump(silent, open("silent.json", "w"))
PY
python3 change.py
ok plan -p ab.json -m resnet50 -o ab-plan.json
stdout_says '(equation 26)' '1 lane' 'a sums'
stdout_has "port nic0" "12.5 %  hierarchical ring"
stdout_says fabric_write_latency busiest
ok plan -p slow.json -m resnet50 -o slow-plan.json
stdout_says b/gpu0-3 'port nic0'
exits 1 diff ab-plan.json slow-plan.json
stdout_matches '^ +b port nic0 in/bytes per second +12.5 GB/s +-> +2.5 GB/s '
ok plan -p unit.json -m resnet50
stderr_says b/nic0
ok plan -p unrated.json -m resnet50
stdout_says known bytes_per_second
stderr_empty
ok plan -p unrated.json -m resnet50 --json
stderr_says known
refused "'two boxes'" plan -p silent.json -m resnet50
# What is asked for is looked at before what is measured.
ok plan -p ab.json -m resnet50 --workers 2
stdout_says 'servers 0'
refused '--workers 3' plan -p ab.json -m resnet50 --workers 3
refused --strategy plan -p ab.json -m resnet50 --strategy rng
refused '--shape 2x2x2' plan -p ab.json -m resnet50 --shape 2x2x2
refused "--configuration with --places" plan -p ab.json -m resnet50 --configuration ace
refused --workers plan -p ab.json -m resnet50 --port-bandwidth 100Gb/s
ok plan -p ab.json -m resnet50 --port-bandwidth 100Gb/s --workers 4
stdout_says ranks

# What cannot be.
refused 'give 2' "${gpus[@]}" --profile hand.json --workers 3
refused topology "${gpus[@]}" --profile byteps-cluster
refused --optimizer "${gpus[@]}" --profile h100-cluster --workers 2 --optimizer sgd
refused "--async with --places" "${gpus[@]}" --profile h100-cluster --workers 2 --optimizer sgd --async

# Of a strategy that was asked for nobody says that the others play slower: they were not played.
ok plan -p a100-cluster -m resnet50 --places gpu --workers 2 --strategy ring
stdout_says strategy

# An optimizer's step and passes leave the traffic its bound.
for option in "--forward 0s" "--optimizer adam" "--optimizer sgd --forward 1us --backward 1us"; do
  read -ra given <<< "$option"
  ok plan -p a100-cluster -m resnet50 --places gpu --workers 2 "${given[@]}" -o bounded.json
  python3 -c 'import json; p = json.load(open("bounded.json"))["prediction"]; assert 564e-6 < p["bound_seconds"] < 567e-6, p' ||
    fail "the bound with $option"
  stdout_says trees
done

# One network for all: an all-reduce between whole machines takes what its two halves take.
for collective in all-reduce reduce-scatter all-gather; do
  ok plan -p h100-cluster -m resnet50 --workers 4 --places machine --collective "$collective" -o "$collective.json"
done
python3 - << 'END' || fail "the halves do not add up"
import json, sys
seconds = [json.load(open(f"{c}.json"))["prediction"]["bound_seconds"] for c in ("all-reduce", "reduce-scatter", "all-gather")]
sys.exit(abs(seconds[0] - seconds[1] - seconds[2]) > 1e-6 * seconds[0])
END

# The cluster of GPUs in docs/documents.md, as it stands there: nothing is missing, and each NIC carries the gradient once each way.
sed -n '/^A cluster of GPUs is the tree/,/^What a plan needs of it/{/^```json/,/^```$/{/^```/!p}}' "$source_dir/docs/documents.md" > two-nodes.json
ok plan -p two-nodes.json -m resnet50 -o two-nodes-plan.json
stderr_empty
stdout_says '(node.0-1)'
stdout_has "over verbs;ofi_rxm" "bound        4.089 ms"
stdout_says node.0/gpu0-3 pair_write
ok run two-nodes-plan.json --check
python3 - << 'PY' || fail "the cluster in docs/documents.md is planned with more than it says"
import json
plan = json.load(open("two-nodes-plan.json"))
assert len(plan["ranks"]) == 8 and len(plan["assumed"]) == 2, plan
assert abs(plan["prediction"]["bound_seconds"] - plan["gradient_bytes"] / 25e9) < 1e-6, plan["prediction"]
PY

# A step whose rate nobody knows changes no time, also of a plan of so many writes that only its beginning is played; and of links that
# are equally busy the bound names the same as the relief, with passes too.
for optimizer in none adam; do
  ok plan -p h100-cluster -m resnet50 --workers 16 --optimizer $optimizer -o $optimizer.json
  stdout_lacks "busiest  "
done
python3 -c 'import json; a, b = (json.load(open(f"{o}.json"))["prediction"]["terms"] for o in ("none", "adam")); assert a == b, (a, b)' ||
  fail "a step that takes no time changed the terms"
ok plan -p two-nodes.json -m resnet50 --forward 1us --backward 2us
bound=$(sed -n 's/^  bound  *[0-9.]* ms  \(node\.[01] port nic0 [a-z]*\): .*/\1/p' "$last/stdout")
stdout_says "link: ${bound:?}"

# Who works, who only sums and who does neither; the title, the table and the relief name the same of several links that are alike.
ok plan -p two-boxes.json -m resnet50
stdout_says '(box.0-1)' box.1 price
stdout_has "over unspecified"
ok plan -p two-boxes.json -m resnet50 --workers 1 --servers 1 --strategy optimum
stdout_says '(box.0)'
ok plan -p two-boxes.json -m resnet50 --workers 1
stdout_says '(box.0)'
ok plan -p hand.json -m model.csv --servers 2 --collective reduce-scatter
stdout_says '2 servers'
stdout_has "2 work (box.0-1)"
refused --transport run two-boxes-plan.json

# What counts as free stands beside the time, and in the document; so does what plans leave out.
ok plan -p two-boxes.json -m dlrm --optimizer adam -o assumed.json
stdout_says takes '26 tensors'
stdout_has "assumed"
stderr_says '26 tensors'
ok show assumed.json
stdout_says '26 tensors'
ok plan -p two-boxes.json -m dlrm --optimizer adam --explain
stdout_says assumed box.1
ok show dlrm
stdout_says exchanged
ok plan -p two-boxes.json -m dlrm --json
python3 - << 'PY' || fail "the document does not say what counts as free"
import json
sentences = json.load(open("assumed.json"))["assumed"]
assert len(sentences) == 5 and "sums on" in sentences[0] and "pair_latency" in sentences[1] and "fabric_write_latency" in sentences[2], sentences
PY

# The best of all trees stands in the table whatever was asked for; with passes it says what its times are.
ok plan -p two-boxes.json -m resnet50 --strategy ring
stdout_matches '^   optimum +8.178 ms +-43 %'
stdout_matches '^\*  ring +14.31 ms'
ok plan -p two-boxes.json -m resnet50 --forward 10ms --backward 20ms
stdout_says candidates
refused "'gpu'?" plan -p two-boxes.json -m resnet50 --places gpus
refused '--places 4,,4' plan -p two-boxes.json -m resnet50 --places 4,,4
refused "'priority'?" plan -p two-boxes.json -m resnet50 --order prioritty
refused "'gpu'?" plan -p two-boxes.json -m resnet50 --set places=gpus

# Memory devices beside the workers of each machine: every second GPU is one, and ranks are numbered machine by machine.
ok plan -p h100-cluster -m resnet50 --workers 2 --places gpu --devices 4 --strategy coarse -o devices.json
stdout_has "devices 4" "places gpu" "proxies' ring"
ok run devices.json --check
stdout_says deadlock
python3 - << 'PY' || fail "the devices are not every second GPU of each machine"
import json
plan = json.load(open("devices.json"))
ranks = [(r["machine_number"], r["endpoint"].split("gpu")[1], r.get("worker", False)) for r in plan["ranks"]]
assert ranks == [(m, str(g), g % 2 == 0) for m in (0, 1) for g in (0, 2, 4, 6, 1, 3, 5, 7)], ranks
routes = [(route["client"], route["bandwidth_proxy"]) for route in plan["routing"]]
assert routes == [(8 * m + c, 8 * m + c + 4) for m in (0, 1) for c in range(4)], routes
PY
python3 -c 'import json; n = [r["machine_number"] for r in json.load(open("memories.json"))["ranks"]]; assert n == sorted(n), n' ||
  fail "ranks of a machine do not follow each other"
refused 'give 32' plan -p h100-cluster -m resnet50 --places gpu --workers 99
refused --places plan -p h100-cluster -m resnet50 --devices 4
refused 'fewer than 8' plan -p h100-cluster -m resnet50 --workers 2 --places gpu --devices 8 --strategy coarse
refused memory plan -p h100-cluster -m resnet50 --places gpu --devices 4 --strategy coarse --collective broadcast
refused --devices plan -p h100-cluster -m resnet50 --places gpu --strategy coarse

# Ctrl-C in the midst of a long plan: 130, and no file.
timeout --foreground --preserve-status -s INT 1 "$RECKON" plan -p h100-cluster -m bert-large --workers 32 --places gpu --strategy optimum -o late.json > /dev/null 2> interrupted.txt &&
  fail "it was not interrupted"
status=$?
[ "$status" -eq 130 ] || fail "the exit status is $status"
grep -q interrupted interrupted.txt || fail "it does not say that it was interrupted"
absent late.json
