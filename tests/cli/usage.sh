# SPDX-License-Identifier: Apache-2.0
# Mistakes on the command line end with 2 and say what is wrong on standard error; help and version are results.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

reckon --version
expect_status 0
stdout_matches '^reckon [0-9]+\.[0-9]+\.[0-9]+$'
stderr_empty

# Loaded when it is wanted: what comes with it costs every start 0.2 s (lib/movers/libfabric.hpp).
! ldd "$RECKON" | grep libfabric || fail "linked to libfabric"

reckon --help
expect_status 0
stdout_has 'Exit status'
stderr_empty

reckon
expect_status 2
stdout_empty

reckon no-such-command
expect_status 2
stdout_empty

# What could not be written was not done.
for command in 'solve torus --shape 4x1x1 --local-bandwidth 400GB/s' 'solve overlap -m gnmt --shape 2x2x1 --json'; do
  status=0
  "$RECKON" $command > /dev/full 2> full.err || status=$?
  [[ $status == 4 ]] || fail "$command: status $status on a full disk"
  grep -q 'cannot write standard output' full.err || fail "$command: $(cat full.err)"
done

status=0
"$RECKON" probe --list > /dev/full 2> full.err || status=$?
[[ $status == 4 ]] || fail "probe --list: status $status on a full disk: $(cat full.err)"

# What the parser refuses reads as every other error, and what does not exist is said before what is missing.
bad() {
  local message=$1
  shift
  reckon "$@"
  expect_status 2
  stdout_empty
  stderr_matches '^reckon: error: '
  stderr_has "$message"
}
bad "there is no command 'solve toruss'; did you mean 'torus'?" solve toruss
bad "there is no command 'sovle'; did you mean 'solve'?" sovle
bad "there is no option '--shap': did you mean '--shape'?" solve torus --shap 4x4x4
bad "there is no option '--shap': did you mean '--shape'?" solve torus --shap=4x4x4
bad "nothing is known to do with 'twice'" solve torus --shape 4x4x4 twice
bad '--shape is required; see reckon solve torus --help' solve torus
bad '--cores = 2.5' solve placement --cores 2.5

# A device without an end is no document, whoever reads it, and no old profile either.
bad '/dev/zero: No such device' show /dev/zero
bad '/dev/zero' plan -p /dev/zero -m resnet50
bad '/dev/zero exists and is no profile' probe --budget 1s -o /dev/zero
