# SPDX-License-Identifier: Apache-2.0
# labels: nightly
# `reckon run` of every strategy over verbs, all ranks in one machine.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

make_plans --workers 3 --servers 1
vm run --rxe << 'END'
"$RECKON" run --list
for strategy in $strategies; do
  before=$(sent)
  "$RECKON" run $strategy.json -n 3 --tolerance 1e9% || exit
  echo "$strategy: packets $(($(sent) - before))"
done
END
expect_status 0
stdout_matches "^$transport\$"
[[ $(grep -c 'every element correct' "$last/stdout") == 4 ]] || fail "not four correct results"
# A gradient has 675004 bytes, 164 packets of 4 KiB and some more. In each of five iterations, each of three workers
# sends and receives at least two thirds of it twice, and what one receives another has sent.
for strategy in $strategies; do
  packets=$(sed -n "s/^$strategy: packets //p" "$last/stdout")
  [[ $packets -gt $((5 * 3 * 2 * 164 * 2 / 3)) ]] || fail "$strategy: the device sent only $packets packets"
done
