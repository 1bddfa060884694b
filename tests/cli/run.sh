# SPDX-License-Identifier: Apache-2.0
# `reckon run`: real processes, real bytes, on this machine. Times are never asserted: the tolerance is wide open.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

make_plan() { # ARGUMENTS: a plan of a 3 MB model for ranks on machines with ports; run puts them all here
  printf 'name,elements,dtype\nhead,400001,fp32\nbody,300000,bf16\ntail,250000,fp16\n' > model.csv
  reckon plan --profile byteps-cluster --workload model.csv --part-bytes 64KiB --transport host "$@" -o plan.json
  expect_status 0
}

make_plan --workers 2 --servers 1 --port-bandwidth 1GB/s --strategy byteps_split
reckon run --list
expect_status 0
stdout_has "host"
cp "$last/stdout" transports
while read -r transport; do
  reckon run plan.json -n 3 --transport "$transport" --tolerance 1e9% -o report.json
  expect_status 0
  stderr_has "machines of their own"
  stdout_has "every element correct"
  stdout_has "total"
  reckon diff report.json report.json
  expect_status 0
done < <(grep -v '^not available' transports)

# --json is one document, the same that -o writes.
reckon run plan.json -n 3 --tolerance 1e9% --json -o report.json
expect_status 0
cmp report.json "$last/stdout" || fail "--json and -o differ"

# Outside the tolerance is a verdict, not an error: the report is there.
rm report.json
reckon run plan.json -n 3 --tolerance 0 -o report.json
expect_status 1
[[ -s report.json ]] || fail "no report"

# The plan is proved before anything moves; --check does only that.
reckon run plan.json --check
expect_status 0
reckon plan --profile byteps-cluster --workload model.csv --workers 2 --transport 'verbs;ofi_rxm' -o verbs.json
expect_status 0
reckon run verbs.json --check # a proof needs no device
expect_status 0
stdout_has "no deadlock"

# As one rank of a job, the way torchrun starts them.
export WORLD_SIZE=3 MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + RANDOM % 12000)) RECKON_JOB_TOKEN=t0ken
for rank in 1 2; do
  RANK=$rank "$RECKON" run plan.json -n 3 --tolerance 1e9% > "out$rank" 2> "err$rank" &
done
RANK=0 reckon run plan.json -n 3 --tolerance 1e9%
expect_status 0
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
reckon run plan.json -n 3 -o plan.json
expect_status 2
stderr_has "is also an input"
reckon run plan.json --tolerance 15
expect_status 2
stderr_has "write 15%"
reckon run plan.json -n 0
expect_status 2

# An ablation is marked wherever its report is shown.
reckon run plan.json -n 2 --tolerance 1e9% --without address-once,aligned -o ablation.json
expect_status 0
stdout_has "every element correct"
stdout_has "this ran over host without address-once,aligned"
reckon show ablation.json
expect_status 0
stdout_has "without         address-once,aligned: an ablation"
if grep -q 'tcp;ofi_rxm' transports; then
  reckon run plan.json -n 2 --tolerance 1e9% --without shm
  expect_status 0
  stdout_has "this ran over tcp;ofi_rxm without shm"
  reckon run plan.json --transport 'tcp;ofi_rxm' --without shm
  expect_status 2
  stderr_has "there is nothing to switch off"
fi
for wrong in '' aligned, page,aligned; do
  reckon run plan.json --without "$wrong"
  expect_status 2
  stderr_has "none of register-once, address-once, aligned, one-segment, shm"
done
reckon run plan.json --without shm,shm
expect_status 2
stderr_has "shm comes twice"

# Bad input.
head -c 500 plan.json > cut.json
reckon run cut.json
expect_status 2
stderr_has "cut.json"
reckon run plan.json --transport pigeon
expect_status 3
stderr_has "available: host"
RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29999 reckon run plan.json
expect_status 2
stderr_has "the plan is for 3 ranks and the launcher started 2"
reckon run
expect_status 2
