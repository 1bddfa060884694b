# SPDX-License-Identifier: Apache-2.0
# reckon diff: 0 the same, 1 different, 2 bad input; the verdict on standard output, warnings on standard error.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
example_documents

for kind in profile plan report workload roles; do
  reckon diff $kind.json $kind.json
  expect_status 0
  stdout_matches ": same in [0-9]+ quantities\$"
  [[ $(wc -l < .last/stdout) == 1 ]] || fail "one line says that nothing differs"
  stderr_empty
  reckon diff - $kind.json < $kind.json
  expect_status 0
done

# A plan: what moved, the time before and after, and the input behind it.
sed -e 's/"window_parts": 4/"window_parts": 8/' -e 's/"servers": "2"/"servers": "3"/' \
  -e '/^  "prediction"/,/^  }/ { s/"mid_seconds": [0-9.]*/"mid_seconds": 0.1481/; s/0\.1351$/0.1408/; }' plan.json > other.json
reckon diff plan.json other.json
expect_status 1
stdout_has 'plans plan.json and other.json: different (3 differences, 2 worse)'
stdout_matches 'predicted time +142\.4 ms  ->  148\.1 ms  \+4\.0 %'
stdout_matches 'window +4  ->  8 '
stdout_matches 'option servers +2  ->  3'
stderr_empty
reckon diff --only-worse other.json plan.json # the same read backwards: nothing got worse
expect_status 0
stdout_has 'predicted time'
reckon diff --tolerance 100% plan.json other.json
expect_status 1 # the window is a whole number: it changed or it did not
stdout_lacks 'predicted time'

reckon diff --json plan.json other.json
expect_status 1
stdout_has '"same": false'
stdout_has '"where": "window_parts"'
stderr_empty

# A profile: twelve samples each; a fifth less bandwidth is beyond 5 %, also beyond 15 %, but not beyond 30 %.
awk '/"case": "reduce_sum"/ { slower = 1 } /"samples"/ { if (slower) { n = split($0, s, /[][]/); m = split(s[2], v, ", ");
  printf "%s[", s[1]; for (i = 1; i <= m; i++) printf "%s%.17g", (i > 1 ? ", " : ""), v[i] * 0.8; print "]" s[3]; slower = 0; next } }
  { print }' profile.json | sed -E '/"(min|max|p50|p99|n|spread)":/d' > slow.json
sed -E '/"(min|max|p50|p99|n|spread)":/d' profile.json > fast.json
reckon diff fast.json slow.json
expect_status 1
stdout_has 'different (12 differences, 12 worse)'
stdout_has 'reduce_sum'
stdout_lacks 'optimizer_step'
reckon diff --bandwidth-tolerance 30% fast.json slow.json
expect_status 0
reckon diff --latency-tolerance 30% fast.json slow.json
expect_status 1
sed 's/"fingerprint": ".*"/"fingerprint": "another machine"/' fast.json > elsewhere.json
reckon diff fast.json elsewhere.json
expect_status 0
stderr_has 'different fingerprints'

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
reckon diff plan.json profile.json
expect_status 2
stdout_empty
stderr_has 'cannot compare a plan with a profile'
reckon diff plan.json missing.json
expect_status 2
stderr_has 'missing.json'
reckon diff plan.json
expect_status 2
reckon diff - - < plan.json
expect_status 2
stderr_has 'not both'
reckon diff --tolerance -5% plan.json plan.json
expect_status 2
stdout_empty
