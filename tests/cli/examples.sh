# SPDX-License-Identifier: Apache-2.0
# The examples of the documentation still print what it says.
source "$(dirname "$0")/../support/shell.sh"
for file in docs/cli.md; do
  python3 "$source_dir/tests/support/check_examples.py" "$RECKON" "$source_dir/$file" || fail "$file: see above; UPDATE_GOLDEN=1 rewrites"
done
