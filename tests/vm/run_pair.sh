# SPDX-License-Identifier: Apache-2.0
# `reckon run` of every strategy over verbs, four ranks on two machines.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

strategies='ring ps_colocated' make_plans --workers 4 --servers 0
strategies='ps_noncolocated' make_plans --workers 2 --servers 2
strategies='coarse' make_plans --workers 2 --servers 2 --proxy-bytes all
strategies='byteps_split' make_plans --workers 3 --servers 1
strategies+=' coarse'
vm pair --ranks 2 << 'END'
for strategy in $strategies; do
  ((MASTER_PORT++)) # the last job's may still be in use
  before=$(sent)
  "$RECKON" run $strategy.json -n 3 --tolerance 1e9% || exit
  [[ $LOCAL_RANK != 0 ]] || echo "$strategy: packets $(($(sent) - before))"
done
END
expect_status 0
[[ $(grep -c 'every element correct' "$last/stdout") == 5 ]] || fail "not five correct results"
# Each machine's two ranks send at least a gradient each (164 packets of 4 KiB and some more) in each of five iterations:
# in the ring 2 * 3/4 of one, workers with servers on the other machine one, that server as much, in the split 1.2; of coarse's memory devices
# each has both workers' shards and half of what the other has.
for strategy in $strategies; do
  for node in A B; do
    packets=$(sed -n "s/^$node: $strategy: packets //p" "$last/stdout")
    [[ $packets -gt $((5 * 2 * 164)) ]] || fail "$strategy: the device of $node sent only $packets packets"
  done
done
