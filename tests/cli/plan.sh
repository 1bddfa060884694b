# SPDX-License-Identifier: Apache-2.0
# `reckon plan`: what it says, what it refuses.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

# BytePS, section 7.1: 8 machines, 4 CPU machines, 90 Gb/s; equation 7: 2*8*7 M / (88 B), M = 102,228,128 B, B = 11.25e9:
# 0.011565 s.
reckon plan --profile byteps-cluster --workload resnet50 --workers 8 --servers 4 --strategy byteps_split -o plan.json
expect_status 0
stderr_empty
stdout_has "byteps_split"
stdout_has "11.57 ms"
stdout_has "all ports are busy all the time"
stdout_has "runner-up ring"

# The same input gives the same bytes, wherever it goes.
reckon plan --profile byteps-cluster --workload resnet50 --workers 8 --servers 4 --strategy byteps_split --json
expect_status 0
cmp plan.json "$last/stdout" || fail "--json and -o differ"

reckon plan --profile byteps-cluster --workload resnet50 --workers 8 --servers 4 --explain
expect_status 0
stdout_has "equation 7: 2n(n-1)M / ((n^2+kn-2k) B)"
stdout_has "1 Gb/s more on one worker's port would save"

# What if: k = 0..8 as in figure 12; --set changes one thing.
reckon plan --profile byteps-cluster --workload resnet50 --workers 8 --sweep k=0..8
expect_status 0
[[ $(wc -l < "$last/stdout") == 10 ]] || fail "a head and nine lines"
reckon plan --profile byteps-cluster --workload resnet50 --workers 8 --sweep k=0..8..4 --json
expect_status 0
stdout_has '"bound_seconds"'
reckon plan --profile byteps-cluster --workload resnet50 --workers 8 --servers 1 --set k=4 --set part-bytes=1MiB --set strategy=byteps_split
expect_status 0
stdout_has "11.57 ms"

# A value without a plan has the reason in its line; without any plan it is an error. 8 + 4090 machines are more than 1024.
reckon plan --profile byteps-cluster --workload resnet50 --workers 8 --sweep k=4,4090
expect_status 0
stdout_has "11.63 ms"
stdout_has "1024 machines"
reckon plan --profile byteps-cluster --workload resnet50 --workers 8 --sweep k=4090,4091
expect_status 2
stderr_has "1024 machines"

# Nobody only sums unless asked; the last candidate says what servers would give.
reckon plan --profile byteps-cluster --workload resnet50 --workers 8
expect_status 0
stdout_matches '_with_8_servers +[0-9.]+ ms +[0-9.]+ ms +-[0-9]+ %'
stdout_has "servers 0,"
stdout_matches '^ +0-7 +worker, server'

# What would have no effect is refused.
reckon plan --profile byteps-cluster --workload resnet50 --workers 8 --sweep k=0,4 --explain
expect_status 2
stderr_has "--sweep excludes --explain; leave one of them out"
# Also where --set gives the other one.
reckon plan --profile byteps-cluster --workload resnet50 --workers 8 --set network=1
expect_status 2
stderr_has "--network requires --inside; give both"
reckon plan --profile byteps-cluster --workload resnet50 --async-steps 3
expect_status 2
stderr_has "--async-steps requires --async; give both"
reckon plan --profile byteps-cluster --workload resnet50 --gradient-bound 3
expect_status 2
stderr_has "give --reduction"
reckon plan --profile byteps-cluster --workload resnet50 --transport 'tcp;ofi_rxm'
expect_status 2
stderr_has "over transport 'tcp;ofi_rxm'"
stderr_has "it has it over verbs;ofi_rxm"

# A workload from CSV.
printf 'name,elements,dtype\nw1,1000000,fp32\nw2,500000,bf16\n' > model.csv
reckon plan --profile byteps-cluster --workload model.csv --workers 4
expect_status 0
stdout_has "bf16"

# Roles by file.
cat > roles.json << 'END'
{"schema": "reckon/roles", "schema_version": 1, "name": "mine",
 "groups": [{"machine": "gpu-machine", "count": 3, "worker": true, "server": true, "lanes": 2},
            {"machine": "cpu-machine", "count": 1, "worker": false, "server": true, "lanes": 2}]}
END
reckon plan --profile byteps-cluster --workload resnet50 --roles roles.json -o by-roles.json
expect_status 0
reckon plan --profile byteps-cluster --workload resnet50 --roles roles.json --workers 4
expect_status 2
stderr_has "--roles excludes --workers; leave one of them out"

# Bad input: one line, the remedy, exit 2, and no file.
reckon plan --profile byteps-cluster --workload resnet5 -o none.json
expect_status 2
stderr_has "resnet50"
reckon plan --profile nowhere.json --workload resnet50 -o none.json
expect_status 2
reckon plan --workload resnet50
expect_status 2
stderr_has "--profile is missing"
reckon plan --profile byteps-cluster --workload resnet50 --workers 0
expect_status 2
reckon plan --profile byteps-cluster --workload resnet50 --workers 5000
expect_status 2
stderr_has "1024 machines"
reckon plan --profile byteps-cluster --workload resnet50 --strategy fastest
expect_status 2
stderr_has "byteps_split"
reckon plan --profile byteps-cluster --workload resnet50 --set widnow=3
expect_status 2
stderr_has "did you mean 'window'"
reckon plan --profile byteps-cluster --workload resnet50 --part-bytes 4Mb
expect_status 2
reckon plan --profile byteps-cluster --workload resnet50 --sweep k=4..1
expect_status 2
cp "$source_dir/profiles/byteps-cluster.json" mine.json
reckon plan --profile mine.json --workload resnet50 -o ./mine.json
expect_status 2
stderr_has "is also an input"
cmp mine.json "$source_dir/profiles/byteps-cluster.json" || fail "the profile is gone"
reckon plam
expect_status 2
stderr_has "did you mean 'plan'"
# More than this machine holds is said before anything is built.
reckon plan --profile byteps-cluster --workload vgg16 -o huge.json
expect_status 0
reckon run huge.json
expect_status 3
stderr_has "plan with fewer workers"
[[ ! -e none.json ]] || fail "a failed plan left a file"

# The documents' first example is a profile that can be planned for; of cells without a transport the error says so.
sed -n '/"name": "two-switches"/,/^```$/p' "$source_dir/docs/documents.md" | sed '/^```$/d' |
  sed '1i {"schema": "reckon/profile", "schema_version": 1,' > two-switches.json
reckon plan -p two-switches.json -m resnet50 -o two-switches-plan.json
expect_status 0
stdout_has 'two-switches'
sed 's/ "transport": "[^"]*",//' two-switches.json > untold.json
reckon plan -p untold.json -m resnet50 --servers 1
expect_status 2
stderr_has "machines cpu, gpu (its cells say no \"transport\"); add the transport to the cells"
