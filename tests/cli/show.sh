# SPDX-License-Identifier: Apache-2.0
# reckon show: any document as tables; plain and stable in a pipe, coloured and within the width on a terminal.
source "$(dirname "$0")/../support/shell.sh"
example_documents

plain() { sed 's/\x1b\[[0-9;]*m//g' .last/stdout; }
longest_line() { plain | LC_ALL=C.UTF-8 awk '{ if (length($0) > n) n = length($0) } END { print n + 0 }'; }

for kind in profile plan report workload roles; do
  ok show $kind.json
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
stdout_says numa_to_numa_copy_cpu
stdout_matches '^sum 39\.50, min 7\.25 \(0 -> 1\), max 12\.50 \(0 -> 0\) GB/s$'

# One case, samples, CSV.
ok show profile.json --case fabric_write
stdout_matches '^ +#bytes +n +t_min +p50 +p99 +GB/s'
stdout_lacks reduce_sum
refused "'fabric_write'?" show profile.json --case fabric_writ
refused plan.json show plan.json --case x
reckon show report.json --samples
stdout_has 'iterations, in seconds'
ok show profile.json --csv
[[ $(wc -l < .last/stdout) == $(($(grep -c '"case"' profile.json) - $(grep -c '"segments"' profile.json) + 1)) ]] ||
  fail "one row a cell and a header"
reckon show workload.json --csv
stdout_has 'name,elements,dtype'

# A model as a table, as plan takes it.
printf 'name,elements,dtype\nhead,1000,fp32\ntail,500,fp16\n' > model.csv
ok show model.csv
stdout_says order
stdout_has 'workload model' head tail
# From standard input, and under any name, its header line says what it is.
reckon show - < model.csv
expect_status 0
stdout_has 'workload standard input' head tail
cp model.csv model.txt
ok show model.txt
stdout_has 'workload model' head tail
printf 'elements, name\n12,"head"\n12,head\n' > twice.txt
reckon show - < twice.txt
expect_status 2
stderr_says '"head"'
reckon plan --profile byteps-cluster --workload - --workers 2 -o piped.json < model.csv
expect_status 0
printf 'bytes,seconds\n1,2\n' > other.txt
refused other.txt show other.txt

# So is one stored as safetensors. Both say what its order is worth, show in the table, plan as a warning.
header='{"body.weight":{"dtype":"F32","shape":[64,16],"data_offsets":[0,4096]},'
header+='"bn.num_batches_tracked":{"dtype":"I64","shape":[],"data_offsets":[4096,4104]}}'
printf "\\x$(printf %x ${#header})\\0\\0\\0\\0\\0\\0\\0%s" "$header" > stored.safetensors
ok show stored.safetensors
stdout_says 'gradients; 1' '1 tensor'
stdout_has 'workload stored' body.weight
stdout_says reverse
stdout_lacks num_batches_tracked 'order in which their gradients are ready'
ok plan --profile byteps-cluster --workload stored.safetensors --workers 2 -o stored.json
stderr_says stored.safetensors 'stored.safetensors: 1'
head -c 100 stored.safetensors > cut.safetensors
refused 'after 92' show cut.safetensors

# What ships goes by its name.
ok show resnet50
stdout_has 'workload resnet50'
ok show byteps-cluster
stderr_empty

# Bad input.
refused missing.json show missing.json
echo '{"schema": "profile"' > broken.json
refused broken.json show broken.json
exits 2 show profile.json --color sometimes

# A reader that has enough ends the program quietly.
{ "$RECKON" show profile.json --csv || echo "status $?" >&2; } 2> err.txt | head -1 > /dev/null
! grep -qi 'terminate\|bug' err.txt || fail "a closed pipe is reported as a bug: $(cat err.txt)"

# A reader that has what it wanted and goes, as `| head` does, is no error, whatever is printed.
python3 - << 'END' || fail "a pipe that nobody reads any more is an error"
import os, subprocess
for command in (["show", "byteps-cluster"], ["probe", "--list"], ["plan", "--help"], ["show", "byteps-cluster", "--json"]):
    unread, end = os.pipe()
    os.close(unread)
    done = subprocess.run([os.environ["RECKON"], *command], stdout=end, stderr=subprocess.PIPE, check=False, text=True)
    os.close(end)
    assert done.returncode == 0 and not done.stderr, (command, done)
END
