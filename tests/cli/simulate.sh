#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# timeout: 600
# A plan played on machines that are not here.
source "$(dirname "$0")/common.sh"
plan() { reckon plan -p byteps-cluster -m vgg16 --part-bytes 4MiB --lanes 1 "$@"; expect_status 0; }

plan --workers 8 --servers 0 --strategy ring -o ring.json
simulator=$(dirname "$RECKON")/reckon-sim
if [[ ! -x $simulator ]]; then
  reckon simulate ring.json
  expect_status 3
  stderr_has 'this build has no simulator'
  stderr_has 'libsimgrid-dev'
  skip 'reckon-sim is not built: SimGrid was not found (libsimgrid-dev)'
fi

# A ring is as fast as its equation says, and the report says who said so.
reckon simulate ring.json -o report.json
expect_status 0
stdout_has 'by SimGrid'
stdout_has 'busiest'
stderr_empty
python3 - << 'END' || fail "the report is not that of a simulation"
import json, sys
r = json.load(open("report.json"))
s = r["simulation"]
ok = r["kind"] == "simulation" and abs(r["error"]) < 0.02 and s["scenarios"] == [] and s["settings"]["network/model"] == "CM02"
ok = ok and 0.5 < s["stations"][0]["busy"] <= 1 and len(r["ranks"]) == 8 and r["ranks"][0]["host"] == "gpu-machine"
sys.exit(0 if ok else 1)
END
reckon show report.json
expect_status 0
stdout_has 'simulation: ring over'
reckon simulate ring.json --json
expect_status 0
reckon diff report.json report.json
expect_status 0

# A slow port of one is everybody's, in a ring; the report and diff say what was asked.
reckon simulate ring.json --slow rank=3:0.5 -o slow.json
expect_status 0
stdout_has 'as asked'
stdout_has 'the port of rank 3 at 0.5 of its rate'
python3 - << 'END' || fail "half the rate is not twice the bound"
import json, sys
slow = json.load(open("slow.json"))
sys.exit(0 if abs(slow["p50_seconds"] / slow["prediction"]["bound_seconds"] - 2) < 0.01 else 1)
END
reckon diff report.json slow.json
expect_status 1
stdout_has 'the port of rank 3'
reckon simulate ring.json --straggler rank=3:2 --background '0->1:1GB/s@1ms' --slow 'link=rank 0 out:0.9'
expect_status 0
stdout_has 'traffic from rank 0 to 1 of up to 1 GB/s after 1 ms'

# Fewer, longer parts: said in the report, with what it may add; too few writes never need it.
reckon simulate ring.json --coarsen 4 -o coarse.json
expect_status 0
stdout_has '4 parts of the plan played as one'
reckon simulate ring.json --coarsen none --budget 1us
expect_status 2
stderr_has 'estimated to take'
stderr_has '--coarsen auto'
reckon simulate ring.json --coarsen 0
expect_status 2
stderr_has 'auto, none, or how many'

# What is not there.
reckon simulate ring.json --slow 'link=rank 3 uot:0.5'
expect_status 2
stderr_has "did you mean 'rank 3 out'?"
reckon simulate ring.json --straggler rank=8:2
expect_status 2
stderr_has 'the plan has 0 to 7'
python3 - << 'END'
import json
p = json.load(open("ring.json"))
for at, key in ((p["prediction"], "mid_seconds"), (p["prediction"], "hi_seconds"), (p["prediction"]["terms"][-1], "seconds")):
    at[key] += 1
json.dump(p, open("wrong.json", "w"))
END
reckon simulate wrong.json
expect_status 1
stdout_has 'outside the tolerance'
reckon simulate ring.json -p nothing.json
expect_status 2
stderr_has 'nothing.json'
python3 - << 'END'
import json
p = json.load(open("ring.json"))
p["profile"]["digest"] = "sha256:" + "0" * 64
json.dump(p, open("other.json", "w"))
END
reckon simulate other.json
expect_status 2
stderr_has 'give the profile with -p'

# Another profile than the plan's: other machines.
reckon simulate other.json -p byteps-cluster
expect_status 0
stdout_has 'another profile'

# The simulator's own errors are one line, too.
status=0
printf 'reckon-sim 1\nhosts 2\nlane\na\nend\n' | "$simulator" > "$last/stdout" 2> "$last/stderr" || status=$?
[ "$status" = 2 ] || fail "status $status"
stderr_has 'came to a halt'
"$simulator" x > "$last/stdout" 2> "$last/stderr" < /dev/null && fail "took an argument"
stderr_has 'reckon-sim: error: '

# An interrupt leaves no process behind.
plan --workers 48 --servers 48 --strategy byteps_split -o large.json
"$RECKON" simulate large.json --budget 1h --coarsen none > "$last/stdout" 2> "$last/stderr" &
reckon_pid=$!
for _ in $(seq 200); do
  child=$(pgrep -P "$reckon_pid" || true)
  [[ $child ]] && break
  sleep 0.05
done
[[ $child ]] || fail "the simulator was not started"
kill -INT "$reckon_pid"
status=0
wait "$reckon_pid" || status=$?
[ "$status" = 130 ] || fail "status $status"
kill -0 "$child" 2> /dev/null && fail "the simulator goes on"
stderr_has 'interrupted'
