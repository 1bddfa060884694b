# SPDX-License-Identifier: Apache-2.0
# `reckon run`: real processes, real bytes, on this machine. Times are never asserted: the tolerance is wide open.
source "$(dirname "$0")/../support/shell.sh"

make_plan() { # ARGUMENTS: a plan of a 3 MB model for ranks on machines with ports; run puts them all here
  printf 'name,elements,dtype\nhead,400001,fp32\nbody,300000,bf16\ntail,250000,fp16\n' > model.csv
  ok plan --profile byteps-cluster --workload model.csv --part-bytes 64KiB --transport host "$@" -o plan.json
}

make_plan --workers 2 --servers 1 --port-bandwidth 1GB/s --strategy byteps_split
ok run --list
stdout_has "host"
cp "$last/stdout" transports
while read -r transport; do
  ok run plan.json -n 3 --transport "$transport" --tolerance 1e9% -o report.json
  stderr_has "machines of their own"
  stdout_has "every element correct" "total"
  ok diff report.json report.json
done < <(grep -v '^not available' transports)

# --json is one document, the same that -o writes.
ok run plan.json -n 3 --tolerance 1e9% --json -o report.json
cmp report.json "$last/stdout" || fail "--json and -o differ"

# Outside the tolerance is a verdict, not an error: the report is there.
rm report.json
exits 1 run plan.json -n 3 --tolerance 0 -o report.json
[[ -s report.json ]] || fail "no report"

# The plan is proved before anything moves; --check does only that.
ok run plan.json --check
ok plan --profile byteps-cluster --workload model.csv --workers 2 --transport 'verbs;ofi_rxm' -o verbs.json
ok run verbs.json --check # a proof needs no device
stdout_has "no deadlock"

# As one rank of a job, the way torchrun starts them.
export WORLD_SIZE=3 MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + RANDOM % 12000)) RECKON_JOB_TOKEN=t0ken
for rank in 1 2; do
  RANK=$rank "$RECKON" run plan.json -n 3 --tolerance 1e9% > "out$rank" 2> "err$rank" &
done
RANK=0 ok run plan.json -n 3 --tolerance 1e9%
stdout_has "every element correct"
wait
[[ ! -s out1 && ! -s err1 && ! -s out2 && ! -s err2 ]] || fail "ranks other than 0 spoke"
unset WORLD_SIZE MASTER_ADDR MASTER_PORT RECKON_JOB_TOKEN

# Starts a job that does not end by itself; sets guard (of `timeout`), parent and ranks (pids).
start_endless() { # ARGUMENTS...
  timeout -k 1 120 "$RECKON" run plan.json -n 1000000 --tolerance 1e9% "$@" > dead.out 2> dead.err &
  guard=$!
  for _ in $(seq 600); do
    parent=$(pgrep -P $guard || true)
    ranks=$([[ ! $parent ]] || pgrep -P "$parent" | tr '\n' ' ' || true)
    read -r -a list <<< "$ranks"
    [[ ${#list[@]} != 3 ]] || return 0
    sleep 0.1
  done
  kill $guard
  fail "the ranks do not start: $(cat dead.err)"
}

# A rank that dies in the middle: named, exit 4, nobody left, no report.
start_endless -o dead.json
sleep 0.5
kill -9 "${list[2]}"
code=0
wait $guard || code=$?
[[ $code == 4 ]] || fail "exit code $code: $(cat dead.err)"
grep -q "was ended by signal 9" dead.err || fail "the dead rank is not named: $(cat dead.err)"
[[ $(grep -c error dead.err) == 1 && ! -s dead.out ]] || fail "more than one line: $(cat dead.err dead.out)"
[[ ! -e dead.json ]] || fail "a report of a failed run"
for pid in "${list[@]}"; do
  ! kill -0 "$pid" 2> /dev/null || fail "process $pid is left"
done

# A killed parent takes its ranks along.
start_endless
kill -9 "$parent"
wait $guard || true
for _ in $(seq 300); do
  left=
  for pid in "${list[@]}"; do
    ! kill -0 "$pid" 2> /dev/null || left=$pid
  done
  [[ $left ]] || break
  sleep 0.1
done
[[ ! $left ]] || fail "process $left outlives its parent"

# Ctrl-C ends the whole job: 130, nothing written, nobody left.
start_endless -o interrupted.json
sleep 0.3
kill -INT "$parent"
code=0
wait $guard || code=$?
[[ $code == 130 ]] || fail "exit code $code after an interrupt: $(cat dead.err)"
[[ ! -e interrupted.json ]] || fail "a report of an interrupted run"

# Never over its own input; a tolerance is a percentage or a fraction.
refused "is also an input" run plan.json -n 3 -o plan.json
refused "write 15%" run plan.json --tolerance 15
exits 2 run plan.json -n 0

# An ablation is marked wherever its report is shown.
ok run plan.json -n 2 --tolerance 1e9% --without address-once,aligned -o ablation.json
stdout_has "every element correct" "this ran over host without address-once,aligned"
ok show ablation.json
stdout_has "without         address-once,aligned: an ablation"
if grep -q 'tcp;ofi_rxm' transports; then
  ok run plan.json -n 2 --tolerance 1e9% --without shm
  stdout_has "this ran over tcp;ofi_rxm without shm"
  refused "there is nothing to switch off" run plan.json --transport 'tcp;ofi_rxm' --without shm
fi
for wrong in '' aligned, page,aligned; do
  refused "none of register-once, address-once, aligned, one-segment, shm" \
    run plan.json --without "$wrong"
done
refused "shm comes twice" run plan.json --without shm,shm

# Bad input.
head -c 500 plan.json > cut.json
refused "cut.json" run cut.json
exits 3 run plan.json --transport pigeon
stderr_has "available: host"
RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29999 refused "the plan is for 3 ranks and the launcher started 2" \
  run plan.json
exits 2 run
