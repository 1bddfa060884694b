# SPDX-License-Identifier: Apache-2.0
# labels: nightly
# timeout: 900
# Checkpoints of a job on four machines, with a folder on each, as where no disk is shared, and with one folder for all: a
# rank that is killed, and a machine that goes with all its processes and its cable; then all go on, and the parameters are
# those of a run that was left alone. SEED in the environment draws other moments.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

need_netlab
seed=${SEED:-20240607}
RANDOM=$seed
netlab up --workers 2 --servers 2 --rate 400mbit
machines=(w0 w1 s0 s1)
echo "seed $seed"

printf 'name,elements,dtype\nhead,200001,fp32\nbody,100000,fp32\ntail,50000,fp32\n' > model.csv
make() { # STRATEGY ARGUMENTS...
  ok plan --profile byteps-cluster --workload model.csv --part-bytes 64KiB --transport 'tcp;ofi_rxm' \
    --workers 2 --servers 2 --port-bandwidth 50MB/s --strategy "$@" --optimizer adam -o "$1.json"
}
steps=90

# run PLAN LOG OPTIONS...: on all machines. A folder in OPTIONS that ends with MACHINE is a different one on each.
run() {
  local plan=$1 log=$2
  shift 2
  rm -rf "$log"
  netlab run --time 600 --log "$log" -- sh -c 'host=$(hostname); exec $(echo "$0 $*" | sed "s/MACHINE/$host/g")' \
    "$RECKON" -vv run "$work/$plan.json" -n $((steps - 2)) -w 2 --tolerance 1e9% -o "$work/$log.json" "$@" > "$log.out" 2>&1
}
links() { local m; for m in "${machines[@]}"; do netlab rate "$m" "$1"; done; }
parameters() { sed -n '/"parameters"/,/}/p' "$1.json" | grep -o 'sha256:[0-9a-f]*'; }
newest() { compgen -G "$1/*.complete" | sort | sed -n '$s/.*step-0*\([0-9]*\).*/\1/p' || true; } # compgen does not sort

# undo WHAT VICTIM PLAN FOLDER [RESUME]: a run that loses a rank, or its machine, somewhat after another checkpoint. Its
# links are so slow that it has far to go then.
undo() {
  local what=$1 victim=$2 plan=$3 folder=$4 root=${4/MACHINE/w0} job rank before machine=${machines[$2]}
  before=$(newest "$root")
  links 100mbit
  run "$plan" dead --checkpoint "$work/$folder" --checkpoint-every 4 ${5:+--resume "$work/$folder"} &
  job=$!
  wait_until "[[ \$(newest '$root') != '$before' ]]" $job
  sleep 0.$((RANDOM % 3))
  # shellcheck disable=SC2046
  case $what in
    rank) kill -KILL $(processes "$machine") ;;
    machine) # what the others hear last of it is nothing
      netlab cut "$machine"
      kill -KILL $(processes "$machine")
      ;;
  esac
  wait $job && fail "$what $victim in $plan: a dead rank must be an error"
  for rank in 0 1 2 3; do
    [[ $rank == "$victim" ]] || grep -q "rank $victim" "dead/rank$rank.err" ||
      fail "rank $rank does not name the dead rank $victim: $(tail -1 "dead/rank$rank.err")"
  done
  [[ $what != machine ]] || netlab restore "$machine"
  links 400mbit
  echo "$plan, $folder: $what of rank $victim killed in step $(sed -n 's/.*debug: iteration //p' "dead/rank$victim.err" |
    tail -1), newest checkpoint after $(newest "$root")"
}

trial() { # PLAN FOLDER RANKS...: each dies once, with and without its machine in turn; then the run comes to its end
  local plan=$1 folder=$2 victim kind=rank resume='' before
  shift 2
  for victim in "$@"; do
    undo $kind "$victim" "$plan" "$folder" $resume
    [[ $kind == machine ]] && kind=rank || kind=machine
    resume=again
  done
  before=$(newest "${folder/MACHINE/w0}")
  run "$plan" alive --checkpoint "$work/$folder" --checkpoint-every 4 --resume "$work/$folder" ||
    fail "the resumed run: $(cat alive.out alive/rank*.err)"
  ! grep -h "is not used" alive/rank*.err || fail "a complete checkpoint was not used"
  grep -q "resumed after step $before\$" alive/rank0.err || fail "it did not go on after step $before: $(cat alive/rank0.err)"
  [[ $(parameters alive) == "$(parameters "undisturbed-$plan")" ]] ||
    fail "$plan in $folder: the parameters are $(parameters alive), undisturbed $(parameters "undisturbed-$plan")"
}

make byteps_split
make coarse --proxy-bytes all
for plan in byteps_split coarse; do
  run $plan undisturbed-$plan || fail "undisturbed: $(cat undisturbed-$plan.out)"
  [[ $(parameters undisturbed-$plan) ]] || fail "the report lacks the parameters' digest"
done
trial byteps_split own-MACHINE 1 0
for i in 0 1 2 3; do # each machine has its own rank's parts and no others
  [[ $(ls own-${machines[i]}/*.bin | grep -c "rank-000$i") == $(ls own-${machines[i]}/*.bin | wc -l) ]] ||
    fail "on ${machines[i]}: $(ls own-${machines[i]})"
done
trial coarse shared 2 3

# Other jobs on the folders of this one. Where nothing is shared a machine alone may hold a checkpoint: it says so.
run byteps_split refused --checkpoint "$work/own-MACHINE" && fail "a folder with checkpoints was written to"
grep -q 'holds a checkpoint after step .* already' refused/rank0.err || fail "$(cat refused/rank0.err)"
rm own-w0/step-*
cp "$(ls shared/*.complete | tail -1)" own-s1/
run byteps_split refused --checkpoint "$work/own-MACHINE" && fail "another job's checkpoint was overwritten"
grep -q 'own-s1 on s1 holds a checkpoint' refused/rank0.err || fail "$(cat refused/rank0.err)"
