# SPDX-License-Identifier: Apache-2.0
# reckon check: silent on machines that are well, and on this one; what is odd has a row with its place and a remedy.
source "$(dirname "$0")/../support/shell.sh"

for machine in a100-cluster ace-torus byteps-cluster byteps-nvlink byteps-pcie coarse-p100 coarse-t4 coarse-v100 h100-cluster; do
  ok check $machine
  stdout_matches '^[^ ].*: no faults found; checked: ' 
  stderr_empty
done
ok check byteps-nvlink --quiet
stdout_empty

# change FILE < PYTHON: the shipped machine with something changed.
change() {
  { echo 'import json, sys; p = json.load(open(sys.argv[1])); objects = {o["id"]: o for o in p["topology"]["objects"]}'
    cat
    echo 'json.dump(p, open(sys.argv[2], "w"))'; } > change.py
  python3 change.py "$source_dir/profiles/byteps-nvlink.json" "$1"
}
change slow.json << 'END'
objects["m0/gpu3"]["pcie"]["width"] = 4
for cell in p["cells"]:
    if cell["case"] == "link_bandwidth" and "m0/gpu5" in (cell.get("from"), cell.get("to")):
        for key in ("min", "p50", "p99", "max"):
            if key in cell:
                cell[key] *= 0.5
END
exits 1 check slow.json --quiet
stdout_has ': 2 findings; checked: ' 'reseat the card'
stdout_matches '^  m0/gpu3 +PCIe link +3\.938 GB/s +15\.75 GB/s +25 %  7 like it have'
stdout_matches '^  m0/gpu5 .*link_bandwidth.* 50 %'
reckon check slow.json --json
expect_status 1
cp .last/stdout verdict.json
json_check verdict.json << 'END'
assert verdict["schema"] == "verdict" and not verdict["passed"]
assert [f["place"] for f in verdict["findings"]] == ["m0/gpu3", "m0/gpu5"]
assert near(verdict["findings"][0]["share"], 0.25, 1e-6) and verdict["findings"][0]["kind"] == "link"
END

# A thing against its alternative: direct copies of all 30 pairs are slower than those by the host, 9.6 against 22.4 GB/s.
ok import "$source_dir/tests/golden/import/p2p-6gpu-staging-wins.txt" -o staging.json
exits 1 check staging.json
stdout_matches '^  m0/gpu4 -> m0/gpu1 .* peer +9\.64 GB/s +22\.39 GB/s +43 %  by way of the host, as of all 30 pairs'
stdout_has '1 finding; ' 'comparisons of alternatives'

# Against a baseline: only what got worse.
exits 1 check slow.json --baseline byteps-nvlink
stdout_has 'byteps-nvlink'
change faster.json << 'END'
for cell in p["cells"]:
    for key in ("min", "p50", "p99", "max"):
        if key in cell:
            cell[key] *= 2
END
ok check faster.json --baseline byteps-nvlink

# Requirements.
requirements() { echo "{\"schema\": \"reckon/requirements\", \"schema_version\": 1, \"name\": \"site\", $1}" > site.json; }
requirements '"parts": [{"kind": "gpu", "at_least": 8}], "cells": [{"case": "link_bandwidth", "from": "m0/gpu*", "at_least": 1e10}]'
ok check byteps-nvlink --require site.json
requirements '"parts": [{"kind": "gpu", "at_least": 9}], "cells": [{"case": "link_bandwidth", "to": "m0/gpu3", "at_least": 2e10, "remedy": "call the vendor"},
  {"case": "stream_copy", "at_least": 1}]'
exits 1 check byteps-nvlink --require site.json
stdout_matches '^  m0/sw1 -> m0/gpu3 +link_bandwidth .*site says: at least' 'number of gpu +8 +9 +89 %' 'stream_copy +not measured'
stdout_says m0/sw1
requirements '"cells": [{"case": "stream_copy"}]'
refused 'sets no limit' check byteps-nvlink --require site.json
refused requirements check byteps-nvlink --require slow.json
refused '--require`' show site.json

# This machine, measured: nothing is odd about it, and the profile is kept.
ok check --time 3s -o this.json
stdout_has 'no faults found' 'not known: '
ok show this.json
ok check this.json --baseline this.json
refused input check --baseline this.json -o this.json
refused 'measures nothing' check this.json -o other.json
refused "'byteps-cluster'" check byteps-nvlink --baseline byteps-cluster
absent other.json
