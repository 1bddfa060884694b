# SPDX-License-Identifier: Apache-2.0
# Sourced by every script of tests/torch: shell.sh, and a Python that has PyTorch as $python.
source "$(dirname "${BASH_SOURCE[0]}")/../support/shell.sh"

# needs MODULE PACKAGE
needs() {
  "$python" -c "import $1" 2> /dev/null || skip "$python has no $1 (package $2; scripts/install-packages --torch)"
}

python=$(type -P python3 || true)
for candidate in "$python" /usr/bin/python3; do
  "$candidate" -c 'import torch' 2> /dev/null && python=$candidate && break
done
needs torch python3-torch
export PYTHONPATH=$source_dir/python PYTHONDONTWRITEBYTECODE=1
tests=$source_dir/tests/torch
at_end 'kill -9 $(jobs -p) 2> /dev/null'

# The library of the build under test.
needs_library() {
  RECKON_LIBRARY=${LIBRECKON:-}
  [[ -e $RECKON_LIBRARY ]] || skip "there is no libreckon.so beside $RECKON"
  export RECKON_LIBRARY
}

# new_job RANKS: of the ranks that start_rank starts from now on
new_job() {
  pids=()
  export RECKON_WORLD_SIZE=$1 RECKON_MASTER_ADDR=127.0.0.1 RECKON_MASTER_PORT
  RECKON_MASTER_PORT=$(free_port)
}

# start_rank RANK COMMAND...: in the background; its streams go to rank-RANK.out and rank-RANK.err
start_rank() {
  local rank=$1
  shift
  RECKON_RANK=$rank "$@" > "rank-$rank.out" 2> "rank-$rank.err" &
  pids[rank]=$!
}

# ranks_end STATUS...: all ranks end so
ranks_end() {
  local rank=0 expected status
  for expected in "$@"; do
    status=0
    wait "${pids[rank]}" || status=$?
    [[ $status == "$expected" ]] || fail "rank $rank ended with $status: $(tail -n 20 rank-*.err)"
    rank=$((rank + 1))
  done
}

# The plans of train.py's models, for two workers and a server: ranks 0 to 2 of a new job.
plan_for_models() {
  local options=(--profile byteps-cluster --workers 2 --servers 1 --part-bytes 1KiB --transport host --port-bandwidth 1GB/s)
  "$python" "$tests/train.py" record
  ok plan "${options[@]}" --workload net.csv -o net-plan.json
  ok plan "${options[@]}" --workload odd.csv -o odd-plan.json
  ok plan "${options[@]}" --workload net.csv --wire bf16 -o wire-plan.json
  torch_port=$(free_port)
  new_job 3
}
