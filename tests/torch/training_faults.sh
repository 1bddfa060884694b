# SPDX-License-Identifier: Apache-2.0
# What goes wrong at one rank of a training job ends it at all, at once and with the reason.
source "$(dirname "$0")/common.sh"
needs_library
printf 'name,elements\nbias,2\nweight,6\n' > model.csv
ok plan --profile byteps-cluster --workload model.csv --workers 2 --servers 1 --transport host --port-bandwidth 1GB/s -o plan.json

start_all() {
  new_job 3
  start_rank 2 "$python" -m reckon plan.json
  for rank in 0 1; do start_rank $rank "$python" "$tests/faults.py" "$1"; done
}
has() { grep -qF -- "$2" "$1" || fail "no '$2' in $1: $(cat "$1" "${1%.*}.err")"; }

# An exception at one rank: the other's error has its words.
start_all raises
ranks_end 4 1 4
has rank-0.out "5 "
has rank-0.out "rank 1"
has rank-0.out "ValueError: sample 17 is empty"
has rank-1.err "ValueError: sample 17 is empty"
has rank-2.err "reckon: error: rank 1"
has rank-2.err "ValueError: sample 17 is empty"

# A killed rank is named.
start_all dies
ranks_end 4 137 4
has rank-0.out "rank 1"

# Ctrl-C in a step that does not end, as the other worker does not come.
start_all interrupted
wait_until 'grep -q waiting rank-0.out' "${pids[0]}"
kill -INT "${pids[0]}"
status=0
wait "${pids[0]}" || status=$?
[[ $status == 130 ]] || fail "Ctrl-C: ended with $status: $(cat rank-0.err)"
touch go
wait "${pids[1]}" && fail "rank 1 noticed nothing"

has rank-1.out "rank 0 ("
has rank-1.out "KeyboardInterrupt"
rm go

# A time limit of one's own, after which the step can still end.
start_all late
ranks_end 0 0 0
has rank-0.out "timed out"
rm go
