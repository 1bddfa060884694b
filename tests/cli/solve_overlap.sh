# SPDX-License-Identifier: Apache-2.0
# `reckon solve overlap`: ACE's configurations, their timeline, and its figures 5 and 6.
source "$(dirname "$0")/../support/shell.sh"

# Two layers on a ring of two with measured times: 1 ms each, and 40 MB of gradients each. On 1x2x1 a node sends 40 MB of 40,
# over 47 GB/s: 851.06 us, and 2 x 401.6 ns of latency.
cat > two.json <<'END'
{"schema": "reckon/workload", "schema_version": 1, "name": "two",
 "tensors": [{"name": "b", "elements": 10000000}, {"name": "a", "elements": 10000000}],
 "layers": [
  {"name": "first", "tensors": ["a"], "forward": {"seconds": 0.001}, "weight_gradient": {"seconds": 0.001}},
  {"name": "last, not least", "tensors": ["b"], "forward": {"seconds": 0.001}, "weight_gradient": {"seconds": 0.001}}]}
END
two=(solve overlap --workload two.json --shape 1x2x1)
ok "${two[@]}" --json --timeline stretches.csv
stderr_empty
stdout_has '"gradient_bytes": 8e+07,' '"sent_bytes": 8e+07' '"network_bandwidth": 4.7e+10,'
json_check .last/stdout << 'END'
rows = {r["name"]: r for r in stdout["configurations"]}
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

# Its layers, with --layers: as above; the last one's sums are there when its computations begin again.
ok "${two[@]}" --configuration ideal --layers --json
json_check .last/stdout << 'END'
(row,) = stdout["configurations"]
first, second = row["layers"]
assert second["name"] == "last, not least" and second["forward_seconds"] == second["weight_gradient_seconds"] == 0.001, second
assert abs(first["all_reduce_seconds"] - 40e6 / 47e9 - 2 * 500 / 1245e6) < 1e-9 and first["all_to_all_seconds"] is None, first
assert abs(first["waits_seconds"] + second["waits_seconds"] - row["exposed_seconds"]) < 1e-9, row
END
# One document on standard output.
refused --timeline "${two[@]}" --json --timeline -

refused --contention-profile "${two[@]}" --contention gemm_256

# Of a shipped model. The text of ACE: compute-first takes 128 / 1.5 GB/s.
ok solve overlap --workload resnet50 --shape 4x8x4 --dtype fp16
stderr_empty
stdout_says resnet50
stdout_has '85.33 GB/s memory'
# What is exposed is what the layers wait for; nobody is in the way of what nobody moves.
for factor in 1 3; do
  ok solve overlap --workload resnet50 --shape 4x8x4 --dtype fp16 --layers --json --computation-factor $factor
  cp .last/stdout by$factor.json
done
json_check by1.json by3.json << 'END'
for row in by1["configurations"] + by3["configurations"]:
    waits = sum(layer["waits_seconds"] for layer in row["layers"])
    assert row["exposed_seconds"] > 0 and near(waits, row["exposed_seconds"], 1e-6), row["name"]
longer = [b["iteration_seconds"] > 1.001 * a["iteration_seconds"]
          for a, b in zip(by1["configurations"], by3["configurations"])]
assert longer == [False, True, True, True, False], longer
END
ok solve overlap --workload gnmt --shape 4x4x4 --configuration ace --policy priority --layers
stdout_has 'decoder.classifier'
stdout_lacks 'comm-opt'
ok solve overlap --workload dlrm --shape 4x4x4 --dlrm-overlap
ok solve overlap --workload dlrm --shape 4x4x4 --computation-factor 150% --communication-factor 2x

# The orderings of section VI-C, with the published layers: all but one, NoOverlap against CompOpt of DLRM.
for shape in 4x4x1 4x4x2 4x4x4 4x8x4; do
  for workload in resnet50-astra-sim gnmt dlrm-astra-sim; do
    bound=(--bound memory)
    [ $workload != gnmt ] || bound=()
    ok solve overlap --workload $workload --shape $shape --dtype fp16 --json "${bound[@]}"
    json_check .last/stdout workload=$workload shape=$shape << 'END'
t = {r["name"]: r["iteration_seconds"] for r in stdout["configurations"]}
assert t["comp-opt"] < t["comm-opt"] and t["no-overlap"] < t["comm-opt"], t
assert t["ace"] < min(t["no-overlap"], t["comm-opt"], t["comp-opt"]), t
above_16 = workload == "resnet50-astra-sim" and shape != "4x4x1"
assert (t["no-overlap"] < t["comp-opt"]) == (above_16 or workload == "dlrm-astra-sim"), (workload, shape, t)
END
  done
done

# Those of table V's roofline, and that nothing beats the ideal.
for shape in 4x2x2 4x4x2 4x4x4 4x8x4; do
  for workload in resnet50 gnmt dlrm; do
    ok solve overlap --workload "$workload" --shape "$shape" --dtype fp16 --json
    json_check .last/stdout workload=$workload shape=$shape << 'END'
t = {r["name"]: r["iteration_seconds"] for r in stdout["configurations"]}
assert all(t["ideal"] <= s for s in t.values()), t
assert t["no-overlap"] < t["comm-opt"] and t["ace"] < min(t["comm-opt"], t["comp-opt"]), t
assert (t["comp-opt"] < t["comm-opt"]) == (workload != "dlrm"), (workload, shape, t)
END
  done
done

# The layers that ASTRA-sim publishes: 1,095,314 ns on the whole endpoint. CommOpt leaves 450 of 900 GB/s and 74 of 80 SMs,
# ACE 772 and all.
for bound in none memory compute; do
  given=()
  [ $bound = none ] || given=(--bound $bound)
  ok solve overlap --workload resnet50-astra-sim --shape 4x8x4 --json "${given[@]}"
  stderr_empty
  json_check .last/stdout bound=$bound << 'END'
c = {r["name"]: r["computation_seconds"] for r in stdout["configurations"]}
stretch = {"none": (1, 1), "memory": (2, 900 / 772), "compute": (80 / 74, 1)}[bound]
for name, factor in zip(("comm-opt", "ace", "no-overlap", "ideal"), (*stretch, 1, 1)):
    assert abs(c[name] - 1.095314e-3 * factor) < 1e-12, (name, c)
END
done

# Figures 5 and 6: 450 GB/s are enough by SMs, and six of them.
ok solve overlap --shape 4x4x4 --memory-sweep --json
stdout_has '"engine_network_bandwidth"'
ok solve overlap --shape 4x4x4 --sm-sweep
stdout_has '100.0 %'

bad() { refused "$1" solve overlap "${@:2}"; }
bad 'give --workload' --shape 4x4x4
bad layers --workload vgg16 --shape 4x4x4
bad endpoint --workload resnet50 --shape 4x4x4 --profile byteps-cluster
bad nobody --workload resnet50 --shape 1x1x1
bad priority --workload resnet50 --shape 4x4x4 --policy random
bad no-overlap --workload resnet50 --shape 4x4x4 --configuration best
bad '--chunk 1 B: ' --workload resnet50 --shape 4x4x4 --chunk 1B
stderr_has 'take larger chunks'
bad "--computation-factor: '0.5'" --workload resnet50 --shape 4x4x4 --computation-factor 0.5
bad "--communication-factor: '0'" --workload resnet50 --shape 4x4x4 --communication-factor 0
bad 1000000 --workload resnet50 --shape 4x4x4 --computation-factor 1e308
bad "--compute-speed: '1e-307'" --workload gnmt --shape 4x4x4 --compute-speed 1e-307
bad --processors --workload resnet50 --shape 4x4x4 --processors shared
cp two.json kept.json
bad --timeline --workload two.json --shape 1x2x1 --timeline two.json
cmp -s two.json kept.json || fail 'the workload was overwritten'
for batch in 0 -5; do
  bad "--batch $batch: must be between 1 and 1000000" --workload gnmt --shape 4x4x4 --batch $batch
done
bad --dlrm-overlap --workload gnmt --shape 4x4x4 --dlrm-overlap
bad --bytes --workload gnmt --shape 4x4x4 --memory-sweep
for option in '--timeline x.csv' '--configuration ideal' '--policy fifo' --layers '--compute-speed 2' '--contention gemm_256'; do
  bad --bytes --shape 4x4x4 --memory-sweep $option
done
bad '--memory-sweep excludes --sm-sweep' --workload resnet50 --shape 4x4x4 --memory-sweep --sm-sweep
bad '--chunk 64 KiB' --shape 4x4x4 --sm-sweep --bytes 1TB --chunk 64KiB
ok solve overlap --shape 4x4x4 --sm-sweep --bytes 1TB --chunk 16MiB
bad '--bytes 0' --shape 4x4x4 --sm-sweep --bytes 0
bad '--bytes 1MB' --workload resnet50-astra-sim --shape 4x4x4 --bytes 1MB
bad --bound --workload resnet50-astra-sim --shape 4x4x4 --bound network
bad --bound --workload gnmt --shape 4x4x4 --bound memory
bad 'was measured with' --workload two.json --shape 4x4x4 --batch 64
