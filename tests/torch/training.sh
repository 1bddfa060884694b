# SPDX-License-Identifier: Apache-2.0
# Models are trained by two workers and a server as by one process on the joint batch: with gradients in the plan's
# memory and with DistributedDataParallel; and what cannot be is said.
source "$(dirname "$0")/common.sh"
needs_library

plan_for_models
start_rank 2 "$python" "$tests/serve.py" net-plan.json net-plan.json odd-plan.json wire-plan.json net-plan.json
for rank in 0 1; do
  RANK=$rank WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$torch_port start_rank $rank "$python" "$tests/train.py" train
done
ranks_end 0 0 0
for rank in 0 1; do
  [[ $(tr '\n' ' ' < rank-$rank.out) == "with_attach with_ddp with_odd_model with_wire mistakes " ]] || fail "rank $rank: $(cat rank-$rank.out)"
done
