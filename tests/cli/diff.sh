# SPDX-License-Identifier: Apache-2.0
# reckon diff: 0 the same, 1 different, 2 bad input; the verdict on standard output, warnings on standard error.
source "$(dirname "$0")/../support/shell.sh"
example_documents

for kind in profile plan report workload roles; do
  ok diff $kind.json $kind.json
  stdout_matches ": same in [0-9]+ quantities\$"
  [[ $(wc -l < .last/stdout) == 1 ]] || fail "one line says that nothing differs"
  stderr_empty
  ok diff - $kind.json < $kind.json
done

# A plan: what moved, the time before and after, and the input behind it.
sed -e 's/"window_parts": 4/"window_parts": 8/' -e 's/"servers": "2"/"servers": "3"/' \
  -e '/^  "prediction"/,/^  }/ { s/"mid_seconds": [0-9.]*/"mid_seconds": 0.1481/; s/0\.1351$/0.1408/; }' plan.json > other.json
exits 1 diff plan.json other.json
stdout_says 142.4 '3 differences'
stdout_matches 'predicted time +142\.4 ms  ->  148\.1 ms  \+4\.0 % worse$' 'window +4  ->  8 '
stdout_matches 'option servers +2  ->  3'
stderr_empty
ok diff --only-worse other.json plan.json # the same read backwards: nothing got worse
stdout_says 148.1 '3 differences'
exits 1 diff --only-worse plan.json other.json
stdout_says '3 differences'
exits 1 diff --threshold 100% plan.json other.json # the window is a whole number: it changed or it did not
stdout_says predicted

exits 1 diff --json plan.json other.json
stdout_has '"same": false' '"where": "window_parts"'
stderr_empty

# A profile: twelve samples each; a fifth less bandwidth is beyond 20 % of the less, but not beyond 30 %.
awk '/"case": "reduce_sum"/ { slower = 1 } /"samples"/ { if (slower) { n = split($0, s, /[][]/); m = split(s[2], v, ", ");
  printf "%s[", s[1]; for (i = 1; i <= m; i++) printf "%s%.17g", (i > 1 ? ", " : ""), v[i] * 0.8; print "]" s[3]; slower = 0; next } }
  { print }' profile.json | sed -E '/"(min|max|p50|p99|n|spread)":/d' > slow.json
sed -E '/"(min|max|p50|p99|n|spread)":/d' profile.json > fast.json
exits 1 diff fast.json slow.json
stdout_says 'm0: reduce_sum' '12 differences'
stdout_has 'reduce_sum'
stdout_lacks 'optimizer_step'
ok diff --threshold 30% fast.json slow.json
ok diff --machine-threshold 30% fast.json slow.json
stdout_matches '^largest change that counts as none: reduce_sum .* -20 % \(.*within the tolerance of 30 %\)$'
exits 1 diff --latency-threshold 30% fast.json slow.json
sed 's/"fingerprint": ".*"/"fingerprint": "another machine"/' fast.json > elsewhere.json
ok diff fast.json elsewhere.json # the same host
stderr_empty
sed -i 's/"host": ".*"/"host": "elsewhere"/' elsewhere.json
ok diff fast.json elsewhere.json
stderr_has 'different machines'

# What only one probe measured is one line; --strict fails on it, and on what six samples cannot tell.
json_check fast.json << 'END'
gone = [c for c in fast["cells"] if c["case"] != "reduce_sum"]
json.dump({**fast, "cells": gone}, open("gone.json", "w"))
few = [c for c in fast["cells"] if c["case"] == "reduce_sum"][0]
few["samples"] = [s / 2 for s in few["samples"][:6]]
json.dump(fast, open("few.json", "w"))
END
ok diff fast.json gone.json
stdout_matches ': same in [0-9]+ quantities$' '^12 cells were measured only before: reduce_sum 12$'
exits 1 diff --strict fast.json gone.json
ok diff --strict gone.json fast.json
ok diff fast.json few.json
stdout_matches ': same in [0-9]+ quantities, 1 undecided$' 'too few samples for a test \(6\)'
exits 1 diff --strict fast.json few.json
stdout_has ': undecided in '

# Shipped names, of which one may be the other with a change; what changed of the machine is named, and the link that is gone.
exits 1 diff byteps-nvlink byteps-pcie
ok diff resnet50 resnet50
refused cannot diff byteps-pcie resnet50
json_check "$source_dir/profiles/byteps-nvlink.json" << 'END'
gpu = next(o for o in byteps_nvlink["topology"]["objects"] if o["kind"] == "nic")
gpu["pcie"] = {"transfers_per_second": 8e9, "width": 4}
byteps_nvlink["topology"]["links"].pop(0)
json.dump(byteps_nvlink, open("links.json", "w"))
END
exits 1 diff --only-worse byteps-nvlink links.json
stderr_empty
stdout_matches 'nvlink .* worse' 'nic0/pcie'
# All of it with -v.
reckon plan --profile byteps-cluster --workload resnet50 --workers 4 --servers 4 -o four.json
reckon plan --profile byteps-cluster --workload resnet50 --workers 4 --servers 1 -o one.json
exits 1 diff four.json one.json
stdout_matches '^and [0-9]+ more: .*; -v lists them$'
exits 1 diff -v four.json one.json
stdout_lacks 'lists them'

# Colour and width belong to terminals.
reckon diff plan.json other.json
stdout_lacks $'\e['
reckon diff --color always plan.json other.json
stdout_has $'\e[31m'
reckon_tty 80 diff plan.json other.json
expect_status 1
stdout_has $'\e[31m'
[[ $(sed 's/\x1b\[[0-9;]*m//g' .last/stdout | awk '{ print length($0) }' | sort -n | tail -1) -le 80 ]] ||
  fail "a line is longer than the terminal"

# Bad input.
refused cannot diff plan.json profile.json
refused 'missing.json' diff plan.json missing.json
exits 2 diff plan.json
refused 'not both' diff - - < plan.json
exits 2 diff --threshold -5% plan.json plan.json
stdout_empty
