# SPDX-License-Identifier: Apache-2.0
# The examples of the documentation still print what it says.
# release only: the commands are those of the other scripts
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
for file in docs/cli.md; do
  python3 "$source_dir/tests/support/check_examples.py" "$RECKON" "$source_dir/$file" || fail "$file: see above; UPDATE_GOLDEN=1 rewrites"
done
