# SPDX-License-Identifier: Apache-2.0
# reckon show: any document as tables; plain and stable in a pipe, coloured and within the width on a terminal.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
example_documents

plain() { sed 's/\x1b\[[0-9;]*m//g' .last/stdout; }
longest_line() { plain | LC_ALL=C.UTF-8 awk '{ if (length($0) > n) n = length($0) } END { print n + 0 }'; }

for kind in profile plan report workload roles; do
  reckon show $kind.json
  expect_status 0
  stderr_empty
  stdout_lacks $'\e'
  ! grep -q ' $' .last/stdout || fail "trailing blanks"
  cp .last/stdout first.txt
  reckon show - < $kind.json
  cmp -s first.txt .last/stdout || fail "standard input gives another text"
  COLUMNS=40 TERM=dumb reckon show $kind.json
  cmp -s first.txt .last/stdout || fail "a pipe's text depends on the environment"
  for columns in 80 120; do
    reckon_tty $columns show $kind.json
    expect_status 0
    [[ $(longest_line) -le $columns ]] || fail "a line is longer than the terminal"
  done
done

# Heat maps: colours in 256 steps, in 24 bits where the terminal says so, none with NO_COLOR or --color never.
reckon_tty 120 show profile.json
stdout_has $'\e[38;5;16;48;5;'
COLORTERM=truecolor reckon_tty 120 show profile.json
stdout_has $'\e[38;5;16;48;2;253;231;37m'
NO_COLOR=1 reckon_tty 120 show profile.json
stdout_lacks $'\e['
reckon_tty 120 show --color never profile.json
stdout_lacks $'\e['
TERM=dumb reckon_tty 120 show profile.json
stdout_lacks $'\e['
reckon show --color always profile.json
stdout_has $'\e['

# The matrix of the issue's convention.
reckon show profile.json
stdout_has 'numa_to_numa_copy_cpu: row = source, column = destination (GB/s)'
stdout_matches '^sum 39\.50, min 7\.25 \(0 -> 1\), max 12\.50 \(0 -> 0\) GB/s$'

# One case, samples, CSV.
reckon show profile.json --case fabric_write
expect_status 0
stdout_matches '^ +#bytes +n +t_min +p50 +p99 +GB/s'
stdout_lacks reduce_sum
reckon show profile.json -t fabric_writ
expect_status 2
stdout_empty
stderr_has "did you mean 'fabric_write'?"
reckon show plan.json --case x
expect_status 2
stderr_has 'plan.json is a plan'
reckon show report.json --samples
stdout_has 'iterations, in seconds'
reckon show profile.json --csv
expect_status 0
[[ $(wc -l < .last/stdout) == $(($(grep -c '"case"' profile.json) - $(grep -c '"segments"' profile.json) + 1)) ]] ||
  fail "one row a cell and a header"
reckon show workload.json --csv
stdout_has 'name,elements,dtype'

# What ships goes by its name.
reckon show resnet50
expect_status 0
stdout_has 'workload resnet50'
reckon show byteps-cluster
expect_status 0
stderr_empty

# Bad input.
reckon show missing.json
expect_status 2
stderr_has missing.json
echo '{"schema": "profile"' > broken.json
reckon show broken.json
expect_status 2
stdout_empty
stderr_has broken.json
reckon show profile.json --color sometimes
expect_status 2

# A reader that has enough ends the program quietly.
{ "$RECKON" show profile.json --csv || echo "status $?" >&2; } 2> err.txt | head -1 > /dev/null
! grep -qi 'terminate\|bug' err.txt || fail "a closed pipe is reported as a bug: $(cat err.txt)"
