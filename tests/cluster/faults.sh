# SPDX-License-Identifier: Apache-2.0
# timeout: 400
# serial: it looks for what is left in /dev/shm
# A rank that is killed, stopped or cut off at any moment of a job on four machines: every other rank ends, with exit
# status 4 and one message that names it, and nothing is left. SEED and TRIALS in the environment draw others, and more.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

need_netlab
seed=${SEED:-20240607}
trials=${TRIALS:-24}
labs=4
# Seconds in which no rank that is well keeps silent, busy as this machine may be: for the job, and for all to meet.
peer_limit=5
limit=15
first=$NETLAB
for lab in $(seq $labs); do
  NETLAB=$first$lab
  at_end "NETLAB=$NETLAB netlab down"
  netlab up --workers 3 --servers 1 --rate 400mbit > up.log || fail "$(cat up.log)"
done

printf 'name,elements,dtype\nhead,600001,fp32\nbody,300000,bf16\ntail,250000,fp16\n' > model.csv
ok plan --profile byteps-cluster --workload model.csv --part-bytes 64KiB --transport 'tcp;ofi_rxm' \
  --workers 3 --servers 1 --port-bandwidth 50MB/s --strategy byteps_split -o plan.json
ls /dev/shm > shm.before
machines=(w0 w1 w2 s0)
echo "seed $seed, $trials trials, $labs at a time"

problem() { echo "trial $trial ($what of rank $victim at $hit): $1" >> "$work/problems"; }
process_of() { processes "${machines[$1]}"; } # of a rank
ended() { # RANKS...
  for r in "$@"; do [[ -s $log/rank$r.status ]] || return; done
}

one_trial() {
  RANDOM=$((seed + trial))
  local what victim phase log pid start r code line others=()
  local kinds=(kill stop cut) phases=("" rendezvous registration iteration verification iteration)
  what=${kinds[trial % 3]}
  victim=$((trial / 3 % 4))
  phase=${phases[RANDOM % 6]} # "": as soon as there is a process
  local round=$((RANDOM % 6)) delay_ms=$((RANDOM % 60)) resume=$((RANDOM % 2)) hit=
  log=$work/trial$trial
  mkdir "$log"
  netlab run --log "$log" -- "$RECKON" -vv run "$work/plan.json" -n 8 -w 1 --tolerance 1e9% --step-timeout ${limit}s \
    --peer-timeout ${peer_limit}s -o "$log/report.json" > "$log/rank0.out" 2> "$log/all.err" &
  local job=$!
  case $phase in iteration | verification) phase="$phase $round" ;; esac
  wait_until '[[ $(process_of $victim) ]] && grep -q "$phase" "$log/rank$victim.err" || ! kill -0 $job' 2> /dev/null
  sleep 0.0$((delay_ms / 10))$((delay_ms % 10))
  pid=$(process_of $victim)
  start=$SECONDS
  case $what in
    kill) [[ ! $pid ]] || kill -KILL "$pid" 2> /dev/null || true ;;
    stop) [[ ! $pid ]] || kill -STOP "$pid" 2> /dev/null || true ;;
    cut) netlab cut "${machines[victim]}" ;;
  esac
  # The last thing that it did, in its own words.
  hit=$(sed -n 's/^reckon: debug: //p' "$log/rank$victim.err" 2> /dev/null | tail -1)
  hit=${hit:-start}

  for r in 0 1 2 3; do [[ $r == "$victim" && $what != cut ]] || others+=("$r"); done
  wait_until 'ended "${others[@]}"'
  local spent=$((SECONDS - start))
  if [[ $what == stop && $pid ]]; then
    if [[ $resume == 1 ]]; then # it wakes up in a world without its job, and ends as the others did
      kill -CONT "$pid" 2> /dev/null || true
      wait_until 'ended $victim'
    fi
    kill -KILL "$pid" 2> /dev/null || true
  fi
  [[ $what != cut ]] || netlab restore "${machines[victim]}"
  wait $job || true

  local ended=0 failed=0
  for r in 0 1 2 3; do
    [[ $r != "$victim" ]] || continue
    code=$(cat "$log/rank$r.status" 2> /dev/null || echo none)
    case $code in
      0) ended=$((ended + 1)) ;;
      4) failed=$((failed + 1)) ;;
      *) problem "rank $r ends with $code" ;;
    esac
    [[ $code == 4 ]] || continue
    line=$(grep -c "^reckon: error: " "$log/rank$r.err" || true)
    [[ $line == 1 ]] || problem "rank $r has $line messages"
    line=$(sed -n 's/^reckon: error: //p' "$log/rank$r.err" | tail -1)
    # Who has not joined yet when rank 0 learns of the death finds nobody there any more, or is let go.
    if [[ $hit == rendezvous || $hit == start ]] &&
      grep -qE " cannot reach rank 0 at |^rank 0 at .* let rank $r go before the job began" <<< "$line"; then
      continue
    fi
    grep -qE "^(rank $victim( \(${machines[victim]}\))? (died|was not heard of|did not join)|rank [0-9] \([ws][0-9]\) cannot reach rank $victim |rank $victim at .* (let rank|does not answer))" \
      <<< "$line" || problem "rank $r says: $line"
  done
  # Somebody may have had all it needs when the fault came; only at the end, and then it is well.
  [[ $ended == 0 || $failed == 0 || $hit == end ]] || problem "$ended ranks end well and $failed do not"
  if [[ $what == cut && $(cat "$log/rank$victim.status") != 0 ]]; then
    [[ $(cat "$log/rank$victim.status") == 4 ]] || problem "it ends with $(cat "$log/rank$victim.status")"
    grep -qE "^reckon: error: .*(rank [0-9] \(|ranks? .*did not join|any other rank)" "$log/rank$victim.err" ||
      problem "it does not say whom it lost: $(tail -1 "$log/rank$victim.err")"
  fi
  [[ $ended == 3 || ! -e $log/report.json || $hit == end ]] || problem "there is a report"
  for r in 0 1 2 3; do
    [[ ! $(process_of $r) ]] || problem "a process of rank $r is left"
  done
  [[ ! $(find "$log" -name '*.tmp') ]] || problem "a temporary file is left"
  [[ $ended != 3 ]] || hit=over
  echo "$what $victim ${hit%% *} $spent" >> "$work/done"
  [[ ${KEEP:-} ]] || rm -rf "$log"
}

touch problems "done"
for lab in $(seq $labs); do
  (
    NETLAB=$first$lab
    for ((trial = lab - 1; trial < trials; trial += labs)); do one_trial; done
  ) &
done
wait
ls /dev/shm > shm.after
cmp -s shm.before shm.after || echo "left in /dev/shm: $(diff shm.before shm.after)" >> problems

# Every rank, every fault; and how long the others took at most, by where it hit.
awk '{ what[$1]++; rank[$2]++; where[$3]++; if ($4 > longest[$1]) longest[$1] = $4 }
  END {
    printf "%d trials:", NR
    for (w in what) printf " %s %d (%d s at most)", w, what[w], longest[w]
    printf "; victims:"; for (r in rank) printf " rank %s %d", r, rank[r]
    printf "; at:"; for (w in where) printf " %s %d", w, where[w]
    print ""
  }' done
[[ $(wc -l < done) == "$trials" ]] || fail "only $(wc -l < done) trials of $trials were made"
if [[ -s problems ]]; then
  cat problems >&2
  fail "$(wc -l < problems) problems; SEED=$seed repeats the choices"
fi
