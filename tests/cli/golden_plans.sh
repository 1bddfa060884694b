# SPDX-License-Identifier: Apache-2.0
# The plans under plans/ are planned again and compared: by meaning, and byte for byte.
# release only: the planners run sanitized in their unit tests
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

for args in "$source_dir"/plans/*.args; do
  golden=${args%.args}.json
  read -r -a arguments < "$args"
  reckon plan "${arguments[@]}" -o again.json
  expect_status 0
  if [[ ${UPDATE_GOLDEN:-} ]]; then
    cp again.json "$golden"
  fi
  reckon diff "$golden" again.json
  expect_status 0
  cmp "$golden" again.json || fail "the bytes differ though the meaning does not: $golden"
done

# And a plan that moved is seen: one server less.
reckon plan --profile byteps-cluster --workload resnet50 --workers 8 --servers 3 -o other.json
expect_status 0
reckon diff "$source_dir/plans/split-8+4.json" other.json
expect_status 1
