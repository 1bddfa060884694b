# SPDX-License-Identifier: Apache-2.0
# The workflow of docs/ci.md: its steps pass on a plan that is as it was, and fail on one that became slower.
source "$(dirname "$0")/../support/shell.sh"
page=$source_dir/docs/ci.md

sed -n '/^```yaml /,/^```$/{/^```/!p}' "$page" > workflow.yml
mapfile -t steps < <(sed -n 's/^ *run: \(reckon .*\)/\1/p' workflow.yml)
[[ ${#steps[@]} == 3 ]] || fail "docs/ci.md has ${#steps[@]} steps that run reckon"
if python3 -c 'import yaml' 2> /dev/null; then
  python3 -c 'import yaml; w = yaml.safe_load(open("workflow.yml")); assert w["jobs"]["plan"]["steps"], w' || fail "no workflow"
fi
step() { run_as_last eval "\"$RECKON\" ${steps[$1]#reckon}"; }

cp "$source_dir/profiles/byteps-cluster.json" cluster.json
cp "$source_dir/profiles/workloads/resnet50.json" model.json
made=$(sed -n 's/^| `plan.json` | `reckon \([^`]*\)`.*/\1/p' "$page")
[[ $made ]] || fail "docs/ci.md does not say how plan.json is made"
ok $made
for number in 0 1 2; do
  step $number
  expect_status 0
done

# A model that grows makes the plan slower.
cp "$source_dir/profiles/workloads/bert-large.json" model.json
step 0
expect_status 0
step 1
expect_status 1
stdout_has 'predicted time' 'workload'
