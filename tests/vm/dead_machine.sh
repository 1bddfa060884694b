# SPDX-License-Identifier: Apache-2.0
# labels: nightly
# A machine whose power goes in the middle of a run over verbs: the rank on the other one ends with exit 4 and names it.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

strategies='byteps_split' make_plans --workers 2 --servers 0
vm pair << 'END'
"$RECKON" run byteps_split.json -n 1000000 --tolerance 1e9% &
if [[ $RANK == 1 ]]; then
  sent_since 0 1000
  echo b > /proc/sysrq-trigger # on the spot
fi
wait $!
END
expect_status 4
stderr_matches '^A: reckon: error: .*rank 1\>'
stderr_has 'B: the machine ended without a result'
