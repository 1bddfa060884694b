# SPDX-License-Identifier: Apache-2.0
# reckon import of what the ranks of a job recorded: one profile of many files names the late rank, two days are compared
# by diff, and a trace becomes a workload that is planned for.
source "$(dirname "$0")/../support/shell.sh"
records=$source_dir/tests/golden/import/records

ok import "$records"/inspector-node-*.log -o monday.json
stdout_has job_all_reduce 'nccl ranks 0-3' 'nccl ranks 2-3'
stdout_matches '^ *late rank +rank 3 \(node-b\): last in 12 of 12 collectives of ranks 0-3'
stdout_says 'taken out'
ok diff monday.json monday.json

# On another day sums take twice as long, and rank 1 is the one that the others wait for.
python3 - "$records" << 'END'
import json, os, sys
os.mkdir("tuesday")
names = ["inspector-node-a-0.log", "inspector-node-a-1.log", "inspector-node-b-2.log", "inspector-node-b-3.log"]
files = [[json.loads(line) for line in open(f"{sys.argv[1]}/{name}")] for name in names]
sums = [[record["coll_perf"] for record in file if record["coll_perf"]["coll"] == "AllReduce"] for file in files]
times = [[2 * one["coll_exec_time_us"] for one in sums[rank]] for rank in (0, 3, 2, 1)]
for file, name, mine, new in zip(files, names, sums, times):
    for one, time in zip(mine, new):
        one["coll_exec_time_us"] = time
    with open(f"tuesday/{name}", "w") as target:
        target.writelines(json.dumps(record) + "\n" for record in file)
END
ok import tuesday/*.log -o tuesday.json
stdout_matches '^ *late rank +rank 1 '
exits 1 diff monday.json tuesday.json
stdout_matches 'ranks 0-3 .*882.0 us +-> +1.764 ms +x 2.0'
stdout_has 'late rank'
stdout_lacks job_all_gather

# One rank's records contain its waits; the same file twice is a mistake; so is a line in the middle that was cut.
ok import "$records/inspector-node-a-0.log" -o alone.json
stdout_has 'ranks 0 of 4' 'contains waits for others'
refused 'same content' import "$records/inspector-node-a-0.log" "$records/inspector-node-a-0.log"
head -c 3000 "$records/inspector-node-a-0.log" > cut.log
ok import cut.log
stderr_matches 'cut.log:7: '
sed '3s/.$//' "$records/inspector-node-a-0.log" > broken.log
exits 2 import broken.log -o broken.json
stderr_matches '^reckon: error: broken.log:3'
absent broken.json

ok import "$records"/flight-recorder_rank_? -o hang.json
stdout_matches '^ *behind +rank 2: 3 .*, others 4'
exits 1 check hang.json
stdout_matches '^  rank 2 +is behind +3 '
cp "$records/flight-recorder-rank_0.json" dump.json
refused 'nccl_trace_rank_0' import dump.json
printf '\x80\x02cos\nsystem\n(X\x01\x00\x00\x00xtR.' > evil_0
refused 0x63 import evil_0
ok import "$records/ncclras.json"
stdout_matches '^ *missing ranks +rank 3 '

# A trace: its collectives, and the model.
ok import "$records"/kineto-rank?.json -o trace.json
stdout_has 'gloo ranks 0-1'
ok import "$records/kineto-rank0.json" --as-workload -o model.json
stdout_has linear_0 layer_norm_0
ok plan --profile byteps-cluster --workload model.json --workers 2
stdout_has kineto-rank0
refused 'give it alone' import "$records"/kineto-rank?.json --as-workload
refused record_shapes import --as-workload <(sed 's/"Input Dims"/"Dims"/' "$records/kineto-rank0.json")
refused 'whole' import --as-workload <(sed 's/ProfilerStep#/Step/' "$records/kineto-rank0.json")
head -c 30000 "$records/kineto-rank0.json" > cut_0.json
exits 2 import cut_0.json
stderr_matches '^reckon: error: cut_0.json'
gzip -c "$records/kineto-rank0.json" > trace.json.gz
refused gunzip import trace.json.gz
