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
  stderr_has 'their own'
  stdout_has "every element correct" "total"
  ok diff report.json report.json
done < <(grep -v '^not available' transports)

# --json is one document, the same that -o writes.
ok run plan.json -n 3 --tolerance 1e9% --json -o report.json
cmp report.json "$last/stdout" || fail "--json and -o differ"

# Outside the tolerance is a verdict, not an error: the report is there.
rm report.json
exits 4 run plan.json -n 1000000 -o none/report.json # before it begins
stderr_has none/report.json
make_profiles << 'END'
write("here.json", "here", ["m0"],
      [cell("fabric_aggregate", 1e9 * (1 + n / 4), at="m0", to="m0", bytes=1048576, direction="two_way", pairs=n, state="cold",
            in_flight=4) for n in (1, 2, 4)])
END
ok plan --profile here.json --workload model.csv --workers 2 -o here-plan.json
exits 1 run here-plan.json -n 3 --tolerance 0 -o report.json
[[ -s report.json ]] || fail "no report"
stdout_has 'outside the tolerance'

# A plan for other links gives none: neither what it missed by nor what to do about the links.
for other in "" "--transport shm"; do
  read -ra given <<< "$other"
  ok run plan.json -n 3 --tolerance 0 "${given[@]}" -o other.json
  stdout_has 'none: the plan' 'other links'
  stdout_has "every element correct"
  stdout_matches '^total +[0-9.]+ [mun]?s +[0-9.]+ [mun]?s +other links'
done
ok show other.json
stdout_has "other links"

# Sums in place: what each rank reads and writes, and what sending would take. Where they cannot be, it is said.
make_profiles << 'END'
write("shares.json", "shares", ["m0"],
      [cell("fabric_aggregate", 1e9 * (1 + n / 4), at="m0", to="m0", bytes=1048576, direction="two_way", pairs=n, state="cold",
            in_flight=4) for n in (1, 2, 4)] +
      [cell("reduce_sum", 4e9, at="m0", bytes=1048576, threads=1, sources=2, dtype="fp32", state="cold"),
       cell("sum_in_place", 8e9, at="m0", bytes=1048576, threads=2, sources=2, dtype="fp32", state="cold")])
END
shares=(plan --profile shares.json --workload model.csv --workers 2 --strategy ps_colocated)
ok "${shares[@]}" -o place.json
stdout_matches '^  sums +in place: .*; sent would take [0-9.]+ ms \(' 'to others +of others$'
stdout_lacks ' sends ' fabric_aggregate
ok "${shares[@]}" --sums in_place
ok run place.json -n 3 --tolerance 1e9%
stderr_lacks "makes sums in place"
ok run place.json -n 3 --transport shm -o sent.json
stderr_has place.json 'in place' 'over shm'
ok show sent.json
stdout_has ' sends '
sed 's/"transport": "host"/"transport": "shm"/' place.json > edited.json
refused /transport run edited.json -n 3

# Nor does one from the profile of another machine; it is said before anything else.
python3 - << 'END'
import json
plan = json.load(open("here-plan.json"))
plan["measured_on"] = {"host": "bigbox", "cpu": "Xeon 8480", "cores": 56}
json.dump(plan, open("big-plan.json", "w"))
END
ok run big-plan.json -n 3 --tolerance 0
stderr_has "'bigbox' (Xeon 8480"
stdout_has 'none: the plan' "'bigbox'"
stdout_matches '^total +[0-9.]+ [mun]?s +[0-9.]+ [mun]?s +another machine'

# The plan is proved before anything moves; --check does only that.
ok run plan.json --check
ok plan --profile byteps-cluster --workload model.csv --workers 2 --transport 'verbs;ofi_rxm' -o verbs.json
ok run verbs.json --check # a proof needs no device
stdout_has "no deadlock"

# As one rank of a job, the way torchrun starts them.
export WORLD_SIZE=3 MASTER_ADDR=127.0.0.1 RECKON_JOB_TOKEN=t0ken
MASTER_PORT=$(free_port)
export MASTER_PORT
for rank in 1 2; do
  RANK=$rank "$RECKON" run plan.json -n 3 --tolerance 1e9% > "out$rank" 2> "err$rank" &
done
RANK=0 ok run plan.json -n 3 --tolerance 1e9%
stdout_has "every element correct"
wait
[[ ! -s out1 && ! -s err1 && ! -s out2 && ! -s err2 ]] || fail "ranks other than 0 spoke"
unset WORLD_SIZE MASTER_ADDR MASTER_PORT RECKON_JOB_TOKEN

# Starts a job that does not end by itself, and waits for its first iterations; sets job and ranks (process ids).
start_endless() { # ARGUMENTS...
  : > dead.err # what the one before said is not to be waited for
  "$RECKON" -vv run plan.json -n 1000000 --tolerance 1e9% "$@" > dead.out 2> dead.err &
  job=$!
  at_end "kill -KILL $job 2> /dev/null"
  wait_until 'grep -q "debug: iteration 3" dead.err' $job
  mapfile -t ranks < <(pgrep -P $job)
  [[ ${#ranks[@]} == 3 ]] || fail "${#ranks[@]} ranks: $(tail -5 dead.err)"
}
job_exits() { # STATUS
  local code=0
  wait $job || code=$?
  [[ $code == "$1" ]] || fail "exit code $code: $(cat dead.err)"
}
gone() { ! kill -0 "${ranks[@]}" 2> /dev/null; }

# A rank that dies in the middle: named, exit 4, nobody left, no report.
start_endless -o dead.json
kill -9 "${ranks[2]}"
job_exits 4
grep -q "was ended by signal 9" dead.err || fail "the dead rank is not named: $(cat dead.err)"
[[ $(grep -c '^reckon: error' dead.err) == 1 && ! -s dead.out ]] || fail "more than one line: $(cat dead.err dead.out)"
absent dead.json
gone || fail "a rank is left"

# A killed parent takes its ranks along.
start_endless
kill -9 $job
job_exits 137
wait_until gone

# With too few descriptors, wherever they end: one line with the remedy, or a run.
for limit in 6 8 9 10 12 16; do
  status=0
  (ulimit -n $limit && exec "$RECKON" run plan.json -n 3 --tolerance 1e9%) > few.out 2> few.err || status=$?
  grep '^reckon: error' few.err > few.errors || true
  case $status in
    0) [[ ! -s few.errors ]] ;;
    4) [[ $(wc -l < few.errors) == 1 ]] && grep -q 'ulimit -n' few.errors ;;
    *) false ;;
  esac || fail "$limit descriptors: $status, $(cat few.err)"
done

# Ctrl-C ends the whole job: 130, nothing written, nobody left.
start_endless -o interrupted.json
kill -INT $job
job_exits 130
absent interrupted.json
gone || fail "a rank is left"

# Never over its own input; a tolerance is a percentage or a fraction.
refused input run plan.json -n 3 -o plan.json
refused "write 15%" run plan.json --tolerance 15
exits 2 run plan.json -n 0

# An ablation is marked wherever its report is shown.
ok run plan.json -n 2 --tolerance 1e9% --without address-once,aligned -o ablation.json
stdout_has address-once,aligned
stdout_has "every element correct"
ok show ablation.json
stdout_matches '^  without +address-once,aligned'
if grep -q 'tcp;ofi_rxm' transports; then
  ok run plan.json -n 2 --tolerance 1e9% --without shm
  stdout_has 'tcp;ofi_rxm'
  refused nothing run plan.json --transport 'tcp;ofi_rxm' --without shm
fi
for wrong in '' aligned, page,aligned; do
  refused register-once \
    run plan.json --without "$wrong"
done
refused "shm comes twice" run plan.json --without shm,shm

# Bad input.
head -c 500 plan.json > cut.json
refused "cut.json" run cut.json
exits 3 run plan.json --transport pigeon
stderr_has "available: host"
exits 3 run plan.json --transport hots --check
stderr_has "'host'?"
exits 3 run plan.json --transport hots
stderr_has "'host'?"
RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=29999 refused "the plan is for 3 ranks and the launcher started 2" \
  run plan.json
exits 2 run
