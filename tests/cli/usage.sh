# SPDX-License-Identifier: Apache-2.0
# Mistakes on the command line end with 2 and say what is wrong on standard error; help and version are results.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

reckon --version
expect_status 0
stdout_matches '^reckon [0-9]+\.[0-9]+\.[0-9]+$'
stderr_empty

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
