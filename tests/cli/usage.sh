# SPDX-License-Identifier: Apache-2.0
# Mistakes on the command line end with 2 and say what is wrong on standard error; help and version are results.
source "$(dirname "$0")/../support/shell.sh"

ok --version
stdout_matches '^reckon [0-9]+\.[0-9]+\.[0-9]+$'
stderr_empty

# Loaded when it is wanted: what comes with it costs every start 0.2 s (lib/movers/libfabric.hpp).
! ldd "$RECKON" | grep libfabric || fail "linked to libfabric"

ok --help
stdout_has 'Exit status'
stderr_empty

exits 2
stdout_empty

exits 2 no-such-command
stdout_empty

# What could not be written was not done.
for command in 'solve torus --shape 4x1x1 --local-bandwidth 400GB/s' 'solve overlap -m gnmt --shape 2x2x1 --json' \
  'probe --list'; do
  run_as_last sh -c "exec '$RECKON' $command > /dev/full"
  expect_status 4
  stderr_has 'cannot write'
done

# What the parser refuses reads as every other error, and what does not exist is said before what is missing.
refused "there is no command 'solve toruss'; did you mean 'torus'?" solve toruss
refused "there is no command 'sovle'; did you mean 'solve'?" sovle
refused "there is no option '--shap': did you mean '--shape'?" solve torus --shap 4x4x4
refused "there is no option '--shap': did you mean '--shape'?" solve torus --shap=4x4x4
refused "reckon solve torus does not take 'twice': see reckon solve torus --help" solve torus --shape 4x4x4 twice
refused '--shape is required; see reckon solve torus --help' solve torus
refused '--cores = 2.5' solve placement --cores 2.5

# A device without an end is no document, whoever reads it, and no old profile either.
refused '/dev/zero: No such device' show /dev/zero
refused '/dev/zero' plan -p /dev/zero -m resnet50
refused '/dev/zero exists and is no profile' probe --budget 1s -o /dev/zero
