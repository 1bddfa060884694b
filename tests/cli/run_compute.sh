# SPDX-License-Identifier: Apache-2.0
# `reckon run --compute`: passes that are real work. Times are never asserted.
source "$(dirname "$0")/../support/shell.sh"

printf 'name,elements,dtype\nhead,20001,fp32\nbody,30000,bf16\ntail,25000,fp16\n' > model.csv
make_plan() { # ARGUMENTS: two ranks; run puts both here
  ok plan --profile byteps-cluster --workload model.csv --workers 2 --servers 0 --port-bandwidth 1GB/s \
    --part-bytes 16KiB --transport host "$@" -o plan.json
}

# A round of work, of some milliseconds, fits into the longest pass, on full processors, too; a sanitized one takes many
# times as long.
: "${PASSES:=1}"
passes=(--forward $((100 * PASSES))ms --backward $((200 * PASSES))ms)

make_plan "${passes[@]}"
for cores in dedicated shared; do
  if [[ $cores == dedicated && $(nproc) -lt 2 ]]; then
    continue # lanes and work cannot have a processor each
  fi
  ok run plan.json --compute gemm_256 --processors $cores -n 3 --tolerance 1e9% -o report.json
  stdout_has "every element correct"
  grep -q '"compute": "gemm_256 on 1 thread a rank, on .* rounds of' report.json || fail "the report does not say what was computed"
  grep -q 'work of the busiest thread' report.json || fail "the report does not say what the passes were"
done

# Several lanes hold the same passes: the work is done once, for the rounds are those of one lane.
make_plan "${passes[@]}" --lanes 2
ok run plan.json --compute gemm_256 --processors shared -n 3 --tolerance 1e9% -o report.json
stdout_has "every element correct"

# An optimizer's step and a straggler go along.
printf 'name,elements,dtype\nhead,20001,fp32\ntail,30000,fp32\n' > model.csv
make_plan "${passes[@]}" --optimizer sgd
ok run plan.json --compute gemm_256:1 --processors shared --straggler 1=2x -n 3 --tolerance 1e9% -o report.json
stdout_has "every element correct"

bad() { refused "$1" run plan.json "${@:2}"; }
bad_here() { # the message says how many processors this machine has, or how fast it is
  exits 2 run plan.json "${@:2}"
  stderr_has "$1"
}
bad "'gemm_25'" --compute gemm_25
bad gemm_256:0 --compute gemm_256:0
bad_here "processors here" --compute gemm_256:100000
bad_here "processors here" --compute gemm_256:100000 --processors shared
bad "give both" --processors shared
bad "not in {dedicated,shared}" --compute gemm_256 --processors some
make_plan
bad "work in" --compute gemm_256
make_plan --forward 1ns --backward 1ns
bad_here "one round" --compute gemm_256 --processors shared
