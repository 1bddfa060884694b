# SPDX-License-Identifier: Apache-2.0
# reckon probe plays small plans with the executor, and plans for the machine know what these took.
source "$(dirname "$0")/../support/shell.sh"

# 18 over host, which plans take of themselves; as many of them as there is time for.
ok probe --transport host --only rehearsal --time 12s -o p.json
json_check p.json << 'END'
cells = [c for c in p["cells"] if c["case"] == "rehearsal"]
kinds = {(c["operation"], c["state"], c["threads"], c["sources"], c["bytes"]) for c in cells}
assert len(kinds) == len(cells) in (14, 17, 18, 21), kinds
assert {k[:4] for k in kinds} >= {("ps_colocated", "in_place", 2, 2), ("ring", "sent", 2, 2),
                                  ("ps_noncolocated", "sent", 3, 2), ("ps_noncolocated", "in_place", 3, 2)}, kinds
assert any(ranks - workers > 1 for _, _, ranks, workers, _ in kinds), kinds
measured = [c for c in cells if c["status"] in ("ok", "noisy")]
assert measured and all(c["unit"] == "bytes_per_second" and c["n"] >= 3 and c["p50"] > 1e6 for c in measured), cells
assert all(c["status"] == "skipped" for c in cells if c not in measured), cells # where the machine is too slow for all
END

# A rehearsal that took twice as long makes the plan that it was of twice as long, and no other.
predicted() { # predicted PROFILE ARGUMENT...: seconds
  rm -f plan.json
  ok plan -p "$1" -m resnet50 --workers 2 --strategy ps_colocated --zero-compute --part-bytes 512KiB "${@:2}" -o plan.json
  python3 -c 'import json; print(json.load(open("plan.json"))["prediction"]["mid_seconds"])'
}
python3 - "$source_dir/tests/golden/one_machine/16-processors.json" << 'END'
import json, sys
p = json.load(open(sys.argv[1]))
def rehearsal(state, rate):
    return {"case": "rehearsal", "from": "m0", "threads": 2, "sources": 2, "bytes": 524288, "dtype": "fp32", "transport": "host",
            "operation": "ps_colocated", "state": state, "status": "published", "unit": "bytes_per_second", "bytes_convention": "payload",
            "min": rate, "p50": rate, "p99": rate, "max": rate, "spread": 0}
usual = p["cells"] + [rehearsal("in_place", 3e9)]
for name, rate in ("usual", 3e9), ("slow", 1.5e9):
    p["cells"] = usual + [rehearsal("sent", rate)]
    json.dump(p, open(f"{name}.json", "w"))
END
python3 - "$(predicted usual.json --sums sent)" "$(predicted slow.json --sums sent)" \
  "$(predicted usual.json --sums in-place)" "$(predicted slow.json --sums in-place)" << 'END'
import sys
sent, slow, in_place, same = map(float, sys.argv[1:])
assert abs(slow / sent - 2) < 1e-6 and same == in_place, sys.argv
END
ok show plan.json
exits 0 diff p.json p.json
sed 's/"ps_colocated"/"ps_elsewhere"/' p.json > other.json
refused "must be one of sgd" diff p.json other.json
