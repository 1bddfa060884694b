# SPDX-License-Identifier: Apache-2.0
# timeout: 1200
# docs/results/headlines.md: every command gives what the page says, and every row's claim about the papers' numbers holds.
source "$(dirname "$0")/../support/shell.sh"
need_build
need_unsanitized 'it computes plans for half a minute'
export RECKON
headlines() { run_as_last env PYTHONDONTWRITEBYTECODE=1 python3 "$1/scripts/reproduce" headlines "${@:2}"; }

headlines "$source_dir" --check
expect_status 0
stdout_matches '^[0-9]{3} rows are as they say$'

# Each way to be wrong, on a page of few rows.
mkdir -p copy/docs/results
cp -r "$source_dir/scripts" "$source_dir/profiles" copy
cat > copy/docs/results/headlines.toml << 'END'
about = "Few rows."
[files]
"one.csv" = "name,elements\na,1000\n"
[[paper]]
title = "A paper"
[[paper.row]]
id = "time, gain"
where = "1"
says = "time and gain"
paper = "56.31 1.4 >1 1..2 <2"
command = "reckon solve split --workers 8 --servers 4 --bytes 553MB --bandwidth 100Gb/s --json"
value = ["1e3 * time_seconds", "[speedup_over_allreduce] * 4"]
[[paper.row]]
id = "other"
where = "2"
says = "bytes of two, and a status"
paper = "4,000 8001 2"
command = "for n in 1 2; do reckon solve split --workers $n --bytes 4kB --bandwidth 1GB/s --json; done; reckon solve split"
value = ["[d.model_bytes for d in docs]", "status"]
differs = "one is another"
[[paper.row]]
id = "file"
where = "3"
says = "chunks"
command = "reckon solve placement -m one.csv --cores 1 --json"
value = "chunks"
runs = "of a file"
[[paper.row]]
id = "measured"
where = "4"
says = "what is measured"
command = "reckon run plan.json --straggler 1=2x"
not_run = "measured"
END
cp copy/docs/results/headlines.toml few.toml
headlines copy
expect_status 0
headlines copy --check
expect_status 0
stdout_matches '^3 rows are as they say$'
grep -qF '| 56.305, 1.375, 1.375, 1.375, 1.375 | same |' copy/docs/results/headlines.md || fail 'the page lacks a row'
grep -qE '^\| the paper.s number +\| 1 +\| 5 +\|$' copy/docs/results/headlines.md || fail 'the page lacks its counts'

wrong() { # TEXT SED: the edited rows are refused with TEXT
  sed "$2" few.toml > copy/docs/results/headlines.toml
  cmp -s few.toml copy/docs/results/headlines.toml && fail "nothing is edited: $2"
  headlines copy --check
  expect_status 1
  stdout_has "$1"
}
wrong 'time, gain: is said to be the same: 1.3 is 1.375 here' 's/56.31 1.4/56.31 1.3/'
wrong 'time, gain: is said to be the same: 56.30 is 56.305 here' 's/56.31/56.30/'
wrong 'time, gain: is said to be the same: >1.5 is 1.375 here' 's/>1 />1.5 /'
wrong 'time, gain: is said to be the same: <1.3 is 1.375 here' 's/<2/<1.3/'
wrong 'time, gain: is said to be the same: 1.4..2 is 1.375 here' 's/1\.\.2/1.4..2/'
wrong 'time, gain: 4 numbers of the paper, 5 here' 's/56.31 //'
wrong 'other: is said to differ, and agrees' 's/8001/4,000/'
wrong 'measured: reckon run has no --stragglers' 's/--straggler /--stragglers /'
cp few.toml copy/docs/results/headlines.toml
sed -i 's/56\.305/56.405/' copy/docs/results/headlines.md
headlines copy --check
expect_status 1
stdout_matches '^headlines.md: -.*56\.405' '^headlines.md: \+.*56\.305'

# A row that lacks what its claim needs, or has what it must not.
sed '/^paper = "56/d' few.toml > copy/docs/results/headlines.toml
headlines copy
expect_status 2
stderr_has 'time, gain' paper

# A value that a command does not give, and an id of two rows.
sed 's/1e3 \* time_seconds/1e3 * no_seconds/' few.toml > copy/docs/results/headlines.toml
headlines copy
expect_status 4
stderr_has 'time, gain' no_seconds
sed 's/^id = "other"/id = "file"/' few.toml > copy/docs/results/headlines.toml
headlines copy
expect_status 2
stderr_has file
