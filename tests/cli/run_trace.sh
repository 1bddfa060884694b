# SPDX-License-Identifier: Apache-2.0
# run --trace: every op of a median iteration is timed; the trace stands beside the predicted one, and is refused with
# another plan.
source "$(dirname "$0")/../support/shell.sh"
printf 'name,elements\na,40000\nb,90000\n' > two.csv
reckon plan --profile byteps-cluster --workload two.csv --workers 3 --servers 1 --part-bytes 16KiB --backward 2ms --forward 1ms -o plan.json
ok run plan.json --transport host --iterations 2 --trace run.json --tolerance 1e9%
ok export plan.json --format trace --measured run.json -o both.json
stdout_empty
json_check both.json << 'PY'
events = both["traceEvents"]
process = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
assert list(process.values()) == ["predicted", "measured"], process
ops = {name: {} for name in process.values()}
for e in events:
    if e["ph"] != "M":
        a = e["args"]
        assert ops[process[e["pid"]]].setdefault((a["rank"], a["lane"], a["op"]), e) is e
assert ops["predicted"].keys() == ops["measured"].keys()
for name, timeline in ops.items():
    posted = {}
    for (rank, _, _), e in timeline.items():
        if " to rank " in e["name"]:
            part, peer = e["name"].split(", ")[0].split(" to rank ")
            posted.setdefault((part, rank, int(peer)), []).append(e["ts"])
    arrivals = 0
    for (rank, _, _), e in timeline.items():
        if e["ph"] == "i":
            part, sender = e["name"].split(" from rank ")
            arrivals += 1
            assert e["ts"] >= min(posted[part, int(sender), rank]), f"{name}: {e['name']} came before it was sent"
    assert arrivals > 0
    # The passes last as long as asked, at three workers; measured ones may be looked at later.
    passes = [e["dur"] for e in timeline.values() if e["name"] == "pass"]
    assert abs(sum(passes) - 3 * len({l for (_, l, _) in timeline}) * 3000) < 1, (name, sum(passes))
PY

reckon plan --profile byteps-cluster --workload two.csv --workers 3 --servers 1 --part-bytes 32KiB -o other.json
# In an order that does not depend on which part came first.
python3 - << 'PY'
import json
trace = json.load(open("run.json"))
trace["traceEvents"].sort(key=lambda e: (e["ph"] != "M", e["pid"], e.get("tid", 0), e["name"], e.get("args", {}).get("op", -1)))
json.dump(trace, open("sorted.json", "w"))
PY
refused trace \
  export other.json --format trace --measured sorted.json -o no.json
absent no.json
refused --measured export plan.json --format goal --measured run.json
refused --trace run plan.json --trace plan.json
exits 2 run plan.json --trace -

# The picture: rows by number, only kinds that occur, and files that are no trace in one line each.
mkdir drawing
printf '#!/bin/sh\ncat > drawn.txt\n' > drawing/gnuplot && chmod +x drawing/gnuplot
python3 - << 'PY'
import json
lanes = [f"rank {rank} lane 0" for rank in (2, 10, 9)]
events = [{"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "predicted"}}]
for tid, lane in enumerate(lanes):
    events.append({"ph": "M", "name": "thread_name", "pid": 1, "tid": tid, "args": {"name": lane}})
    events.append({"ph": "X", "name": "sum of part 0", "pid": 1, "tid": tid, "ts": 0, "dur": 1000})
json.dump({"traceEvents": events}, open("ranks.json", "w"))
PY
PATH=$PWD/drawing:$PATH "$source_dir/scripts/plot-trace" ranks.json timelines.png
grep -qF "'rank 2 lane 0' 0, 'rank 9 lane 0' 1, 'rank 10 lane 0' 2" drawn.txt || fail "rows are not in the order of the ranks"
grep -q "title 'sum'" drawn.txt || fail "the legend lacks what occurs"
! grep -q "title 'passes'" drawn.txt || fail "the legend shows what does not occur"
for file in absent.json plan.json; do
  if "$source_dir/scripts/plot-trace" "$file" no.png 2> refusal.txt; then fail "$file was drawn"; fi
  grep -q "^plot-trace: error: $file: " refusal.txt || fail "$file: no word of why"
done
