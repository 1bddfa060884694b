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

# Of a shipped model. The text of ACE: compute-first takes 128 / 1.5 GB/s.
reckon solve overlap --workload resnet50 --shape 4x8x4 --dtype fp16
expect_status 0
stderr_empty
stdout_has 'resnet50 on 4x8x4, batch 32'
stdout_has '85.33 GB/s memory'
reckon solve overlap --workload gnmt --shape 4x4x4 --configuration ace --policy priority --explain
expect_status 0
stdout_has 'decoder.classifier'
stdout_lacks 'comm-opt'
reckon solve overlap --workload dlrm --shape 4x4x4 --dlrm-overlap
expect_status 0
reckon solve overlap --workload dlrm --shape 4x4x4 --computation-factor 1.5 --communication-factor 2
expect_status 0

# The orderings of section VI-C that this model has, and that nothing beats the ideal.
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
stderr_has 'take larger chunks'
bad --workload resnet50 --shape 4x4x4 --computation-factor 0.5
stderr_has 'must be at least 1'
bad --workload resnet50 --shape 4x4x4 --memory-sweep --sm-sweep
bad --workload two.json --shape 4x4x4 --batch 64
stderr_has 'was measured with'
