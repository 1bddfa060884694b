# SPDX-License-Identifier: Apache-2.0
# `reckon solve overlap`: ACE's configurations, their timeline, and its figures 5 and 6.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# Two layers on a ring of two with measured times: 1 ms each, and 40 MB of gradients each. On 1x2x1 a node sends 40 MB of 40,
# over 47 GB/s: 851.06 us, and 2 x 401.6 ns of latency.
cat > two.json <<'END'
{"schema": "reckon/workload", "schema_version": 1, "name": "two",
 "tensors": [{"name": "b", "elements": 10000000}, {"name": "a", "elements": 10000000}],
 "layers": [
  {"name": "first", "tensors": ["a"], "forward": {"seconds": 0.001}, "weight_gradient": {"seconds": 0.001}},
  {"name": "last, not least", "tensors": ["b"], "forward": {"seconds": 0.001}, "weight_gradient": {"seconds": 0.001}}]}
END
reckon solve overlap --workload two.json --shape 1x2x1 --json --timeline stretches.csv
expect_status 0
stderr_empty
stdout_has '"gradient_bytes": 8e+07,'
stdout_has '"sent_bytes": 8e+07'
stdout_has '"network_bandwidth": 4.7e+10,'
python3 - "$last/stdout" <<'END' || fail "the configurations do not agree with the text above"
import json, sys
rows = {r["name"]: r for r in json.load(open(sys.argv[1]))["configurations"]}
assert all(abs(r["computation_seconds"] - 0.004) < 1e-9 for r in rows.values()), rows
sent, fill = 40e6 / 47e9, 2 * 500 / 1245e6
# The last layer's is sent while the first layer's gradient is computed; the first's is waited for.
assert abs(rows["ideal"]["exposed_seconds"] - sent - fill) < 1e-9, rows["ideal"]
assert abs(rows["comm-opt"]["exposed_seconds"] - sent - fill) < 1e-9, rows["comm-opt"]
# All at the end: 80 MB, one latency.
assert abs(rows["no-overlap"]["exposed_seconds"] - 2 * sent - fill) < 1e-9, rows["no-overlap"]
# Of 128 GB/s of memory each byte sent is loaded once by the engine, which sends it once (R is 1 for a ring of two).
assert rows["ace"]["network_bandwidth"] == 47e9 and abs(rows["ace"]["of_ideal"] - 1) < 1e-9, rows["ace"]
END
head -1 stretches.csv | grep -q '^configuration,iteration,stream,work,layer,begin_seconds,end_seconds$' || fail "no header"
grep -q '^ideal,1,computation,forward,"last, not least",' stretches.csv || fail "no stretch of the layer with a comma"

# Its layers, with --explain: as above; the last one's sums are there when its computations begin again.
reckon solve overlap --workload two.json --shape 1x2x1 --configuration ideal --explain --json
expect_status 0
python3 - "$last/stdout" <<'END' || fail "the layers do not agree with the text above"
import json, sys
(row,) = json.load(open(sys.argv[1]))["configurations"]
first, second = row["layers"]
assert second["name"] == "last, not least" and second["forward_seconds"] == second["weight_gradient_seconds"] == 0.001, second
assert abs(first["all_reduce_seconds"] - 40e6 / 47e9 - 2 * 500 / 1245e6) < 1e-9 and first["all_to_all_seconds"] is None, first
assert abs(first["waits_seconds"] + second["waits_seconds"] - row["exposed_seconds"]) < 1e-9, row
END
# One document on standard output.
reckon solve overlap --workload two.json --shape 1x2x1 --json --timeline -
expect_status 2
stdout_empty
stderr_has '--timeline -: standard output is the answer'

reckon solve overlap --workload two.json --shape 1x2x1 --contention gemm_256
expect_status 2
stderr_has 'name a profile that has it with --contention-profile'

# Of a shipped model. The text of ACE: compute-first takes 128 / 1.5 GB/s.
reckon solve overlap --workload resnet50 --shape 4x8x4 --dtype fp16
expect_status 0
stderr_empty
stdout_has 'resnet50 on 4x8x4, batch 32'
stdout_has '85.33 GB/s memory'
# What is exposed is what the layers wait for; nobody is in the way of what nobody moves.
reckon solve overlap --workload resnet50 --shape 4x8x4 --dtype fp16 --explain --json
expect_status 0
cp .last/stdout alone.json
reckon solve overlap --workload resnet50 --shape 4x8x4 --dtype fp16 --explain --json --computation-factor 3
expect_status 0
python3 - .last/stdout << 'END' || fail "see above"
import json, sys
alone, beside = (json.load(open(name))["configurations"] for name in ("alone.json", sys.argv[1]))
for row in alone + beside:
    waits = sum(layer["waits_seconds"] for layer in row["layers"])
    assert row["exposed_seconds"] > 0 and abs(waits / row["exposed_seconds"] - 1) < 1e-6, (row["configuration"], waits)
longer = [b["iteration_seconds"] > 1.001 * a["iteration_seconds"] for a, b in zip(alone, beside)]
assert longer == [False, True, True, True, False], longer
END
reckon solve overlap --workload gnmt --shape 4x4x4 --configuration ace --policy priority --explain
expect_status 0
stdout_has 'decoder.classifier'
stdout_lacks 'comm-opt'
reckon solve overlap --workload dlrm --shape 4x4x4 --dlrm-overlap
expect_status 0
reckon solve overlap --workload dlrm --shape 4x4x4 --computation-factor 150% --communication-factor 2x
expect_status 0

# The orderings of section VI-C, with the published layers: all but one, NoOverlap against CompOpt of DLRM.
for shape in 4x4x1 4x4x2 4x4x4 4x8x4; do
  for workload in resnet50-astra-sim gnmt dlrm-astra-sim; do
    bound=(--bound memory)
    [ $workload != gnmt ] || bound=()
    reckon solve overlap --workload $workload --shape $shape --dtype fp16 --json "${bound[@]}"
    expect_status 0
    python3 - "$last/stdout" $workload $shape <<'END' || fail "$workload on $shape: another ordering"
import json, sys
t = {r["name"]: r["iteration_seconds"] for r in json.load(open(sys.argv[1]))["configurations"]}
assert t["comp-opt"] < t["comm-opt"] and t["no-overlap"] < t["comm-opt"], t
assert t["ace"] < min(t["no-overlap"], t["comm-opt"], t["comp-opt"]), t
above_16 = sys.argv[2] == "resnet50-astra-sim" and sys.argv[3] != "4x4x1"
assert (t["no-overlap"] < t["comp-opt"]) == (above_16 or sys.argv[2] == "dlrm-astra-sim"), t
END
  done
done

# Those of table V's roofline, and that nothing beats the ideal.
for shape in 4x2x2 4x4x2 4x4x4 4x8x4; do
  for workload in resnet50 gnmt dlrm; do
    reckon solve overlap --workload "$workload" --shape "$shape" --dtype fp16 --json
    expect_status 0
    python3 - "$last/stdout" "$workload" <<'END' || fail "$workload on $shape: another ordering"
import json, sys
t = {r["name"]: r["iteration_seconds"] for r in json.load(open(sys.argv[1]))["configurations"]}
assert all(t["ideal"] <= s for s in t.values()), t
assert t["no-overlap"] < t["comm-opt"] and t["ace"] < min(t["comm-opt"], t["comp-opt"]), t
assert (t["comp-opt"] < t["comm-opt"]) == (sys.argv[2] != "dlrm"), t
END
  done
done

# The layers that ASTRA-sim publishes: 1,095,314 ns on the whole endpoint. CommOpt leaves 450 of 900 GB/s and 74 of 80 SMs,
# ACE 772 and all.
for bound in none memory compute; do
  given=()
  [ $bound = none ] || given=(--bound $bound)
  reckon solve overlap --workload resnet50-astra-sim --shape 4x8x4 --json "${given[@]}"
  expect_status 0
  stderr_empty
  python3 - "$last/stdout" $bound <<'END' || fail "--bound $bound: another computation"
import json, sys
c = {r["name"]: r["computation_seconds"] for r in json.load(open(sys.argv[1]))["configurations"]}
stretch = {"none": (1, 1), "memory": (2, 900 / 772), "compute": (80 / 74, 1)}[sys.argv[2]]
for name, factor in zip(("comm-opt", "ace", "no-overlap", "ideal"), (*stretch, 1, 1)):
    assert abs(c[name] - 1.095314e-3 * factor) < 1e-12, (name, c)
END
done

# Figures 5 and 6: 450 GB/s are enough by SMs, and six of them.
reckon solve overlap --shape 4x4x4 --memory-sweep --json
expect_status 0
stdout_has '"engine_network_bandwidth"'
reckon solve overlap --shape 4x4x4 --sm-sweep
expect_status 0
stdout_has '100.0 %'

bad() {
  reckon solve overlap "$@"
  expect_status 2
  stdout_empty
}
bad --shape 4x4x4
stderr_has 'give --workload'
bad --workload vgg16 --shape 4x4x4
stderr_has 'does not say what its layers compute'
bad --workload resnet50 --shape 4x4x4 --profile byteps-cluster
stderr_has 'does not say how its endpoint divides itself'
bad --workload resnet50 --shape 1x1x1
stderr_has 'one node has nobody to talk to'
bad --workload resnet50 --shape 4x4x4 --policy random
bad --workload resnet50 --shape 4x4x4 --configuration best
stderr_has 'must be one of all, no-overlap, comm-opt, comp-opt, ace, ideal'
bad --workload resnet50 --shape 4x4x4 --chunk 1B
stderr_has '--chunk 1 B: '
stderr_has 'take larger chunks'
bad --workload resnet50 --shape 4x4x4 --computation-factor 0.5
stderr_has "--computation-factor: '0.5' must be a factor from 1 to"
bad --workload resnet50 --shape 4x4x4 --communication-factor 0
stderr_has "--communication-factor: '0' must be a factor from 1 to"
bad --workload resnet50 --shape 4x4x4 --computation-factor 1e308
bad --workload gnmt --shape 4x4x4 --compute-speed 1e-307
stderr_has "--compute-speed: '1e-307' must be a factor from"
bad --workload resnet50 --shape 4x4x4 --cores shared
stderr_has '--cores: says whose factors --contention takes'
cp two.json kept.json
bad --workload two.json --shape 1x2x1 --timeline two.json
stderr_has '--timeline two.json: is also an input'
cmp -s two.json kept.json || fail 'the workload was overwritten'
for batch in 0 -5; do
  bad --workload gnmt --shape 4x4x4 --batch $batch
  stderr_has "--batch $batch: must be between 1 and 1000000"
done
bad --workload gnmt --shape 4x4x4 --dlrm-overlap
stderr_has '--dlrm-overlap: gnmt has no layer with an exchange'
bad --workload gnmt --shape 4x4x4 --memory-sweep
stderr_has 'a sweep is of one all-reduce, of --bytes'
for option in '--timeline x.csv' '--configuration ideal' '--policy fifo' --explain '--compute-speed 2' '--contention gemm_256'; do
  bad --shape 4x4x4 --memory-sweep $option
  stderr_has 'a sweep is of one all-reduce, of --bytes'
done
bad --workload resnet50 --shape 4x4x4 --memory-sweep --sm-sweep
bad --shape 4x4x4 --sm-sweep --bytes 1TB --chunk 64KiB
stderr_has '--chunk 64 KiB'
reckon solve overlap --shape 4x4x4 --sm-sweep --bytes 1TB --chunk 16MiB
expect_status 0
bad --shape 4x4x4 --sm-sweep --bytes 0
stderr_has '--bytes 0 B: must be at least 1 B'
bad --workload resnet50-astra-sim --shape 4x4x4 --bytes 1MB
stderr_has '--bytes 1MB: is of a sweep; add --memory-sweep or --sm-sweep'
bad --workload resnet50-astra-sim --shape 4x4x4 --bound network
stderr_has "--bound 'network': must be memory or compute"
bad --workload gnmt --shape 4x4x4 --bound memory
stderr_has '--bound memory: gnmt counts operations and bytes'
bad --workload two.json --shape 4x4x4 --batch 64
stderr_has 'was measured with'
