# SPDX-License-Identifier: Apache-2.0
# labels: nightly
# A rank that dies in the middle of a run over verbs: the others end with exit 4 and name it.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

strategies='ring' make_plans --workers 3 --servers 0
strategies='byteps_split' make_plans --workers 2 --servers 1
cases='ring-1 byteps_split-0 byteps_split-1 byteps_split-2' # strategy and who dies; 2 is the server
known+=' cases'
vm run --rxe << 'END'
export WORLD_SIZE=3 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 RECKON_JOB_TOKEN=t0ken
for case in $cases; do
  victim=${case#*-}
  ((MASTER_PORT++))
  before=$(sent)
  pids=()
  for rank in 0 1 2; do
    RANK=$rank "$RECKON" run "${case%-*}.json" -n 1000000 --tolerance 1e9% > out$rank 2> err$rank &
    pids+=($!)
  done
  sent_since "$before" 1000
  kill -KILL "${pids[victim]}"
  for rank in 0 1 2; do
    code=0
    wait "${pids[rank]}" || code=$?
    [[ $rank == "$victim" ]] || echo "$case: rank $rank: exit $code: $(cat out$rank err$rank | grep -v warning:)"
  done
done 2> /dev/null # the shell says who was killed
END
expect_status 0
for case in $cases; do
  [[ $(grep -cE "^$case: rank .: exit 4: reckon: error: .*rank ${case#*-}\>" "$last/stdout") == 2 ]] ||
    fail "$case: not exit 4 and the name of rank ${case#*-} from both others"
done
