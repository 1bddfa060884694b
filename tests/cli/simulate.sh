# SPDX-License-Identifier: Apache-2.0
# timeout: 600
# A plan played on machines that are not here.
source "$(dirname "$0")/../support/shell.sh"
plan() { ok plan -p byteps-cluster -m vgg16 --part-bytes 4MiB --lanes 1 "$@"; }

plan --workers 8 --servers 0 --strategy ring -o ring.json
simulator=$(dirname "$RECKON")/reckon-sim
if [[ ! -x $simulator ]]; then
  exits 3 simulate ring.json
  stderr_says build
  stderr_has 'libsimgrid-dev'
  skip 'reckon-sim is not built: SimGrid was not found (libsimgrid-dev)'
fi

# A ring is as fast as its equation says, and the report says who said so.
ok simulate ring.json -o report.json
stdout_has 'by equal shares' 'busiest'
stderr_empty
json_check report.json << 'END'
s = report["simulation"]
assert report["kind"] == "simulation" and abs(report["error"]) < 0.02, report
assert s["scenarios"] == [] and s["engine"] == "equal shares" and 0.5 < s["stations"][0]["busy"] <= 1, s
assert len(report["ranks"]) == 8 and report["ranks"][0]["host"] == "gpu-machine", report["ranks"]
END
# SimGrid, where it is asked for, has the same times, and is told by its settings.
ok simulate ring.json --engine simgrid -o on-simgrid.json
stdout_has 'by SimGrid'
json_check report.json on-simgrid.json << 'END'
assert on_simgrid["simulation"]["settings"]["network/model"] == "CM02", on_simgrid["simulation"]
assert near(report["p50_seconds"], on_simgrid["p50_seconds"], 1e-4)
END
refused '--engine' simulate ring.json --engine other
ok show report.json
stdout_has 'simulation: ring over'
ok simulate ring.json --json
ok diff report.json report.json

# A slow port of one is everybody's, in a ring; the report and diff say what was asked.
ok simulate ring.json --slow rank=3:0.5 -o slow.json
stdout_says 'rank 3'
stdout_has 'as asked'
json_check slow.json report.json << 'END'
assert slow["simulation"]["undisturbed_seconds"] == report["p50_seconds"]
assert "undisturbed_seconds" not in report["simulation"]
assert near(slow["p50_seconds"], 2 * slow["prediction"]["bound_seconds"], 0.005)
END
exits 1 diff report.json slow.json
stdout_says 'rank 3'
stdout_lacks 'undecided'
ok simulate ring.json --straggler rank=3:2 --background '0->1:1GB/s@1ms' --slow 'link=rank 0 out:0.9'
stdout_says '1 GB/s'

# Passes: those of the rank that computes longest, and what the time is made of is said.
printf 'name,elements,dtype\nlayer,1000,fp32\n' > short.csv
ok plan --profile byteps-cluster --workload short.csv --workers 3 --servers 0 --strategy ring \
  --forward 10ms --backward 20ms -o passes.json
ok simulate passes.json
stdout_matches 'total .* passes \(.* %\): 100 % of the time'
ok simulate passes.json --straggler rank=1:3 -o late.json
json_check late.json << 'END'
stages = {stage["name"]: stage for stage in late["stages"]}
assert abs(stages["passes"]["measured_seconds"] - 0.09) < 1e-6, stages
assert stages["exposed"]["measured_seconds"] < 0.001, stages
END

# Ranks that share a machine: what their processors do in turn is not what is simulated, and that is said.
printf 'name,elements,dtype\nlayer,10000000,fp32\n' > large.csv
make_profiles << 'END'
write("here.json", "here", ["m0"],
      [cell("fabric_aggregate", 1e9 * (1 + n / 4), at="m0", to="m0", bytes=1048576, direction="two_way", pairs=n, state="cold",
            in_flight=4) for n in (1, 2, 4)])
END
ok plan --profile here.json --workload large.csv --workers 4 --servers 0 --strategy ring --optimizer adam -o one.json
ok simulate one.json --profile here.json -o one-played.json
stdout_lacks 'network ('
stdout_has 'one machine ('

# Other traffic keeps a port busy, too.
ok simulate ring.json --background '0->1:5GB/s' -o other-traffic.json
stdout_matches 'of up to 5 GB/s, of which it got [0-9.]+ GB/s$'
ok simulate ring.json --background '0->1:1TB/s'
stdout_matches 'of up to 1 TB/s, of which it got [0-9.]+ GB/s$'
json_check other-traffic.json << 'END'
top = other_traffic["simulation"]["stations"][0]
assert top["name"] in ("rank 0 out", "rank 1 in") and top["busy"] > 0.95, top
END

# Fewer, longer parts: said in the report, with what it may add; too few writes never need it.
ok simulate ring.json --coarsen 4 -o coarse.json
stdout_says '4 parts'
# The plan without the scenario, which it is told against, has the same parts.
reckon plan -p byteps-cluster -m resnet50 --workers 4 --servers 4 -o four.json
ok simulate four.json --time 60ms
stdout_says parts
ok simulate four.json --no-buffers --time 240ms
stdout_matches 'as asked: .* without, .* by no buffers between links'
# What merging may have added is not held against the prediction, and no more are merged than there are.
reckon plan -p byteps-cluster -m vgg16 --workers 8 --servers 4 --part-bytes 1MiB -o split.json
ok simulate split.json --coarsen 4
stdout_says merging
ok simulate split.json --coarsen 100000
stdout_says '528 parts'
refused 'would take about' simulate ring.json --coarsen none --time 1us
stderr_has '--coarsen auto'
refused 'auto, none' simulate ring.json --coarsen 0

# A server with several ports: each is a link by its name, of which the plan's lanes have one each; its rank is all of them.
make_profiles << 'END'
write("ports.json", "ports",
      [{"id": "worker", "name": "worker", "count": 8, "cores": 8}, {"id": "box", "name": "box", "count": 1, "cores": 8}],
      [cell("port_bandwidth", 10e9, at="worker", transport="verbs"), cell("port_bandwidth", 4e9, at="box", transport="verbs")] +
      [cell("single_port_bandwidth", 1e9, at=f"box/port{i}", transport="verbs") for i in range(4)],
      [{"id": "box", "kind": "machine", "name": "box"}] +
      [{"id": f"box/port{i}", "kind": "nic", "name": f"eth{i}", "parent": "box"} for i in range(4)])
END
ok plan -p ports.json -m resnet50 --workers 4 --servers 1 --strategy ps_noncolocated --part-bytes 256KiB --zero-compute -o box.json
ok simulate box.json -p ports.json -o box-report.json
ok simulate box.json -p ports.json --slow 'link=rank 4 eth2 in:0.5' --slow 'link=rank 4 eth2 out:0.5' -o one-slow.json
stdout_says 'rank 4'
ok simulate box.json -p ports.json --slow rank=4:0.5 --background '4->0:0.4GB/s' -o all-slow.json
stdout_says ports
stdout_says '400 MB/s'
json_check box-report.json one-slow.json all-slow.json << 'END'
whole, one, every = (report["p50_seconds"] for report in (box_report, one_slow, all_slow))
names = [s["name"] for s in box_report["simulation"]["stations"]][:8]
assert sorted(names) == sorted(f"rank 4 eth{i} {way}" for i in range(4) for way in ("in", "out")), names
# Each of four ports carries a quarter: half the rate of one is twice the time of all.
assert abs(box_report["error"]) < 0.03 and near(one, 2 * whole, 0.025) and every > 1.95 * whole, (whole, one, every)
END
refused "'rank 4 out'" simulate box.json -p ports.json --slow 'link=rank 4 out:0.5'
stderr_says 'rank 4'

# GPUs of several machines, the shape of docs/results/simulate.md's 128 x 8: a ring between machines of 8 GPUs. Each GPU's link
# carries 2 (8 - 1) / 8 of the gradient and binds: no time is shorter than that, nor, with parts of 1 MiB, 6 % and the latency of
# 14 steps over NVLink longer; the planner's play and SimGrid say the same.
printf 'name,elements,dtype\nlayer,67108864,fp32\n' > gradient.csv
ok plan -p h100-cluster -m gradient.csv --workers 4 --places gpu --strategy hierarchical_ring --zero-compute --part-bytes 1MiB \
  -o boxes.json
ok simulate boxes.json --coarsen none -o boxes-report.json
ok simulate boxes.json --coarsen none --engine simgrid -o boxes-on-simgrid.json
json_check boxes-report.json boxes-on-simgrid.json << 'END'
gradient = 4 * 67108864
s, seconds = boxes_report["simulation"], boxes_report["p50_seconds"]
assert s["engine"] == "equal shares" and s["merged_parts"] == 1, s
assert all("nvswitch0" in link["name"] and link["bytes"] == 2 * 7 / 8 * gradient for link in s["stations"]), s
closed = 2 * 7 / 8 * gradient / 450e9
assert closed <= seconds < 1.06 * closed + 14 * 3.4e-6, (closed, seconds)
assert abs(boxes_report["error"]) < 0.01, boxes_report["error"]
assert boxes_on_simgrid["simulation"]["engine"].startswith("SimGrid")
assert near(seconds, boxes_on_simgrid["p50_seconds"], 1e-4)
END

# What is not there.
refused "'rank 3 out'?" simulate ring.json --slow 'link=rank 3 uot:0.5'
refused 'from 0' simulate ring.json --straggler rank=8:2
json_check ring.json << 'END'
prediction = ring["prediction"]
for at, key in ((prediction, "mid_seconds"), (prediction, "hi_seconds"), (prediction["terms"][-1], "seconds")):
    at[key] += 1
json.dump(ring, open("wrong.json", "w"))
END
exits 1 simulate wrong.json
stdout_has 'outside the tolerance'
refused "'ace-torus'" simulate ring.json -p ace-torus
stderr_lacks '--roles'
refused 'nothing.json' simulate ring.json -p nothing.json
sed '/"profile": {/,/}/ s/sha256:[0-9a-f]*/sha256:'"$(printf '0%.0s' {1..64})"'/' ring.json > other.json
refused --profile simulate other.json

# A plan remembers the file of its profile, seen from here or from the plan's folder, and takes no other content for it.
mkdir profiles plans
sed 's/"name": "byteps-cluster"/"name": "elsewhere"/' "$source_dir/profiles/byteps-cluster.json" > profiles/mine.json
ok plan -p profiles/mine.json -m short.csv --workers 3 --servers 0 --strategy ring --part-bytes 256KiB -o plans/mine-plan.json
ok simulate plans/mine-plan.json
stdout_has 'links of elsewhere'
(cd / && "$RECKON" simulate "$work/plans/mine-plan.json" 2> "$work/elsewhere") && fail "from elsewhere there is no such file"
grep -qF 'profiles/mine.json is not there or has changed' elsewhere || fail "$(cat elsewhere)"
mv profiles plans/profiles
ok simulate plans/mine-plan.json
sed -i 's/"source": "/"source": "another: /' plans/profiles/mine.json
refused profiles/mine.json simulate plans/mine-plan.json

# Another profile than the plan's: other machines.
ok simulate other.json -p byteps-cluster
stdout_has 'another profile'

# The simulator's own errors are one line, too.
run_as_last "$simulator" < <(printf 'reckon-sim 1\nhosts 2\nlane\na\nend\n')
expect_status 2
stderr_says 'came to'
run_as_last "$simulator" x < /dev/null
[[ $status != 0 ]] || fail "took an argument"
stderr_has 'reckon-sim: error: '

# An interrupt leaves no process behind.
ok plan -p byteps-cluster -m bert-large --workers 512 --servers 0 --strategy ring --lanes 1 --part-bytes 1310720 -o large.json
"$RECKON" simulate large.json --time 1h --coarsen none > "$last/stdout" 2> "$last/stderr" &
job=$!
wait_until 'child=$(pgrep -P $job -x reckon-sim)' $job
kill -INT $job
status=0
wait $job || status=$?
expect_status 130
stderr_has 'interrupted'
! kill -0 "$child" 2> /dev/null || fail "the simulator goes on"
