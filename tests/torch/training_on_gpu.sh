# SPDX-License-Identifier: Apache-2.0
# Models on a made-up GPU are trained as by one process on the joint batch, by attach() and by ddp_hook().
source "$(dirname "$0")/common.sh"
[[ -e ${MADE_UP_GPU:-} ]] || skip "there is no library with a made-up GPU"
export RECKON_LIBRARY=$MADE_UP_GPU

plan_for_models
start_rank 2 "$python" "$tests/serve.py" net-plan.json net-plan.json odd-plan.json wire-plan.json
for rank in 0 1; do
  RANK=$rank WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$torch_port start_rank $rank "$python" "$tests/train.py" on-gpu
done
ranks_end 0 0 0
for rank in 0 1; do
  [[ $(tr '\n' ' ' < rank-$rank.out) == "with_attach with_ddp with_odd_model with_wire " ]] || fail "rank $rank: $(cat rank-$rank.out)"
done
