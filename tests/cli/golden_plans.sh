# SPDX-License-Identifier: Apache-2.0
# The plans under plans/ are planned again and compared: by meaning, and byte for byte.
source "$(dirname "$0")/../support/shell.sh"

for args in "$source_dir"/plans/*.args; do
  golden=${args%.args}.json
  read -r -a arguments < "$args"
  ok plan "${arguments[@]}" -o again.json
  if [[ ${UPDATE_GOLDEN:-} ]]; then
    cp again.json "$golden"
  fi
  ok diff "$golden" again.json
  cmp "$golden" again.json || fail "the bytes differ though the meaning does not: $golden"
done

# And a plan that moved is seen: one server less.
ok plan --profile byteps-cluster --workload resnet50 --workers 8 --servers 3 -o other.json
exits 1 diff "$source_dir/plans/split-8+4.json" other.json
