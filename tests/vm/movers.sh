# SPDX-License-Identifier: Apache-2.0
# The tests of every mover, over verbs: registered memory, writes with immediate data, lanes, peers that die.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

tests=$("$TEST_TRANSPORTS" --gtest_list_tests --gtest_filter='All/Movers.*/host' | grep -c '^  ')
[[ $tests -ge 10 ]] || fail "only $tests tests of movers"
known+=' TEST_TRANSPORTS'
vm run --rxe << 'END'
"$TEST_TRANSPORTS" --gtest_filter='All/Movers.*/verbs_ofi_rxm' || exit
echo "packets: $(sent)"
END
expect_status 0
stdout_has "[  PASSED  ] $tests tests."
# The longest test alone moves twice 31 MiB in packets of at most 4 KiB.
packets=$(sed -n 's/^packets: //p' "$last/stdout")
[[ $packets -gt 15000 ]] || fail "the device sent only $packets packets"
