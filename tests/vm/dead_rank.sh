# SPDX-License-Identifier: Apache-2.0
# A rank that dies in the middle of a run over verbs: the others end with exit 4 and name it.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

strategies='ring' make_plans --workers 3 --servers 0
strategies='byteps_split' make_plans --workers 2 --servers 1
cat >> inside.sh << 'END'
export WORLD_SIZE=3 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 RECKON_JOB_TOKEN=t0ken
for strategy in ring byteps_split; do
  for victim in 0 1 2; do
    ((MASTER_PORT++))
    before=$(sent)
    pids=()
    for RANK in 0 1 2; do
      RANK=$RANK "$RECKON" run $strategy.json -n 1000000 --tolerance 1e9% > out$RANK 2> err$RANK &
      pids+=($!)
    done
    sent_since "$before" 1000
    kill -KILL "${pids[victim]}"
    for rank in 0 1 2; do
      code=0
      wait "${pids[rank]}" || code=$?
      [[ $rank == "$victim" ]] || echo "$strategy: rank $victim died, rank $rank: exit $code: $(cat out$rank err$rank)"
    done
  done
done
END
vm run --rxe -- bash -c '. ./inside.sh'
expect_status 0
for strategy in ring byteps_split; do
  for victim in 0 1 2; do
    [[ $(grep -cE "^$strategy: rank $victim died, rank .: exit 4: reckon: error: .*rank $victim\>" "$last/stdout") == 2 ]] ||
      fail "$strategy: not exit 4 with the name of rank $victim"
  done
done
