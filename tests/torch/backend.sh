# SPDX-License-Identifier: Apache-2.0
# A program of torch.distributed with "reckon" as its back end: without a plan, with one that has a server, and when a
# worker dies.
source "$(dirname "$0")/common.sh"
needs_library

start_worlds() { # start_worlds WHAT [VARIABLE=VALUE of worker 1]: the workers
  local rank port next
  port=$(free_port)
  next=$(free_port)
  for rank in 0 1; do
    env $([[ $rank == 0 ]] || printf '%s' "${2:-}") RANK=$rank WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port "$python" "$tests/backend.py" "$1" "$next" > rank-$rank.out 2> rank-$rank.err &
    pids[rank]=$!
  done
}

start_with_server() { # start_with_server WHAT: a new job
  new_job 3
  start_rank 2 "$python" -m reckon plan.json --workload model.csv
  start_worlds "$1"
}

has_done() { # has_done WHAT
  for rank in 0 1; do
    [[ $(tr '\n' ' ' < rank-$rank.out) == "$1 " ]] || fail "rank $rank: $(cat rank-$rank.out rank-$rank.err)"
  done
}

# Nobody has written a plan.
start_worlds all
ranks_end 0 0
has_done "sums others train again"
grep -q 'reckon: sums over .*, 2 workers and 0 servers' rank-0.err || fail "$(cat rank-0.err)"

export LOCAL_WORLD_SIZE=2 # as torchrun says, of workers that would measure the machine at once
start_worlds bf16
ranks_end 0 0
has_done bf16
unset LOCAL_WORLD_SIZE

# A plan with a server, which torch.distributed does not know of.
printf 'name,elements\nall,3000000\n' > model.csv
ok plan --profile byteps-cluster --workload model.csv --strategy byteps_split --workers 2 --servers 1 --part-bytes 64KiB --transport host --port-bandwidth 1GB/s -o plan.json
export RECKON_PLAN=$PWD/plan.json
start_with_server all
ranks_end 0 0 0
has_done 'sums others train'
grep -q 'reckon: sums over host, 2 workers and 1 servers' rank-0.err || fail "$(cat rank-0.err)"

# The same plan, named by the script.
unset RECKON_PLAN
export PLAN_OF_OPTIONS=$PWD/plan.json
start_with_server all
ranks_end 0 0 0
has_done 'sums others train'
unset PLAN_OF_OPTIONS
export RECKON_PLAN=$PWD/plan.json

# The same with tensors on a made-up GPU.
usual=$RECKON_LIBRARY
RECKON_LIBRARY=$MADE_UP_GPU
start_with_server on-gpu
RECKON_LIBRARY=$usual
ranks_end 0 0 0
has_done 'sums others train'

# A worker that dies is named, to Python and through DistributedDataParallel's C++.
for what in dies dies-in-ddp; do
  start_with_server $what
  ranks_end 4 137 4
  grep -q 'rank 1 (.*) died' rank-0.out || fail "$what: $(cat rank-0.out rank-0.err)"
done

# What cannot be is said at all workers, before anything is summed.
refused() { # refused TEXT [VARIABLE=VALUE of worker 1]
  local rank
  pids=()
  start_worlds all "${2:-}"
  ranks_end 1 1
  for rank in 0 1; do
    grep -qF -- "$1" rank-$rank.err || fail "no '$1' at rank $rank: $(cat rank-$rank.err)"
  done
}
refused 'No such file or directory' RECKON_PLAN=nope.json
refused 'is no plan' RECKON_PLAN=model.csv
refused 'names another plan, or none, at worker 1' RECKON_PLAN=
ok plan --profile byteps-cluster --workload model.csv --workers 3 --servers 0 --transport host --port-bandwidth 1GB/s -o three.json
RECKON_PLAN=$PWD/three.json refused 'is for 3 workers, and torch.distributed has 2'
unset RECKON_WORLD_SIZE
refused 'set RECKON_WORLD_SIZE=3'
