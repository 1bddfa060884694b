# SPDX-License-Identifier: Apache-2.0
# reckon check: silent on machines that are well, and on this one; what is odd has a row with its place and a remedy.
source "$(dirname "$0")/../support/shell.sh"

for machine in a100-cluster byteps-cluster byteps-nvlink byteps-pcie coarse-p100 coarse-t4 coarse-v100 h100-cluster; do
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

# For monitoring: Prometheus' text format, each line by its grammar, and a plug-in's line with Nagios' exit statuses.
sed 's/"name": "p2p-6gpu[^"]*"/"name": "a\\"b|\\\\c"/' staging.json > named.json
exits 1 check named.json --format prometheus
cp .last/stdout check.prom
python3 - << 'END'
import re
families, samples = {}, {}
for line in open("check.prom"):
    kind = re.fullmatch(r"# (HELP|TYPE) ([a-z_:][a-z0-9_:]*) (.+)\n", line)
    if kind:
        assert (kind[1], kind[2]) not in families and (kind[1] == "HELP" or kind[3] == "gauge"), line
        families[kind[1], kind[2]] = kind[3]
        continue
    found = re.fullmatch(r'([a-z_:][a-z0-9_:]*)\{((?:[a-z_]+="(?:[^"\\\n]|\\["\\n])*",?)+)\} (\S+)\n', line)
    assert found and ("TYPE", found[1]) in families and ("HELP", found[1]) in families, line
    assert (found[1], found[2]) not in samples, line
    samples[found[1], found[2]] = float(found[3])
    assert 'profile="a\\"b|\\\\c"' in found[2], line
assert len(samples) == 1 + 10 + 10 + 1, samples
assert [v for (name, labels), v in samples.items() if "findings" in name and "alternative" in labels] == [1]
assert [round(v, 2) for (name, _), v in samples.items() if "share" in name] == [0.43]
END
exits 1 check named.json --format nagios
stdout_matches '^RECKON WARNING - a"b/.c: 1 finding: .* 43 % of what it should be \| findings=1;;;0 .*alternative=1;;;0'
exits 0 check byteps-nvlink --format nagios
stdout_matches '^RECKON OK - byteps-nvlink: no faults found \| findings=0;;;0 checked=[1-9][0-9]*;;;0 worst=100.0%;;;0;100 '
exits 2 check slow.json --format nagios
stdout_matches '^RECKON CRITICAL - '
exits 3 check ace-torus --format nagios
exits 3 check absent.json --format nagios
stdout_matches '^RECKON UNKNOWN - .*absent.json'
[ "$(wc -l < .last/stdout)" -eq 1 ]
refused 'give one' check slow.json --json --format prometheus
exits 3 check ace-torus
stdout_says 'could be judged'
exits 3 check ace-torus --quiet
stdout_says 'could be judged'
exits 3 check ace-torus --format prometheus
stdout_matches '^reckon_check_passed\{profile="ace-torus"\} 0$'

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
