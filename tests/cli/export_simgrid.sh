# SPDX-License-Identifier: Apache-2.0
# What SimGrid makes of an exported platform: a transfer takes its latency and its bytes at the slowest link, and two that
# share one get half of it each.
source "$(dirname "$0")/../support/shell.sh"
[[ -n ${PLAY_TRANSFER:-} ]] || skip "this build found no SimGrid"
# Ranks 0 to 3 have ports of 12.5e9 bytes a second, ranks 4 and 5 of 3.125e9.
ok export "$source_dir/plans/slow-servers-4+2.json" --format simgrid -o platform.xml
stdout_empty

# expect SECONDS WHAT: of a line of .transfer, to 1e-9 of it.
expect() {
  python3 - "$1" "$2" <<'PY' || fail "$2"
import sys, xml.etree.ElementTree as tree
latency = max(float(link.get("latency").rstrip("s")) for link in tree.parse("platform.xml").iter("link"))
expected = eval(sys.argv[1], {"latency": latency})
for line in open(".transfer"):
    if abs(float(line) - expected) > 1e-9 * expected:
        sys.exit(f"{line.strip()} s instead of {expected} s")
PY
}
"$PLAY_TRANSFER" platform.xml rank0 rank1 1000000000 > .transfer
expect 'latency + 1e9 / 12.5e9' "a transfer between fast ports"
"$PLAY_TRANSFER" platform.xml rank0 rank4 1000000000 > .transfer
expect 'latency + 1e9 / 3.125e9' "a transfer into a slow port"
"$PLAY_TRANSFER" platform.xml rank0 rank4 1000000000 rank1 rank4 1000000000 > .transfer
expect 'latency + 2e9 / 3.125e9' "two transfers into one port"
"$PLAY_TRANSFER" platform.xml rank0 rank4 1000000000 rank4 rank0 1000000000 > .transfer
expect 'latency + 1e9 / 3.125e9' "transfers in both directions at once"
