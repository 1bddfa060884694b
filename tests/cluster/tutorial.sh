# SPDX-License-Identifier: Apache-2.0
# labels: nightly
# The cluster of docs/tutorial.md: every command of its blocks "lab" runs as it stands there.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need_netlab
page=$source_dir/docs/tutorial.md
sed -n '/^```csv model.csv$/,/^```$/{/^```/!p}' "$page" > model.csv

reckon() { "$RECKON" "$@"; }
sudo() { # scripts/netlab, with reckon where it is built
  shift
  local words=("${@/#reckon/"$RECKON"}")
  netlab "${words[@]}"
}
mapfile -t lines < <(sed -n '/^```lab$/,/^```$/{/^```/!p}' "$page")
[[ ${#lines[@]} -ge 11 ]] || fail "$page has ${#lines[@]} lines in its blocks \"lab\""
for line in "${lines[@]}"; do
  run_as_last eval "$line"
  # 1 is a verdict: a link became slow, or this machine is busy.
  [[ $status == 0 || $status == 1 ]] || fail "$line: status $status"
  case $line in
    *'diff cluster.json slow.json'*)
      expect_status 1
      stdout_has 'w2'
      ;;
    *'diff cluster-plan.json slow-plan.json'*) expect_status 1 ;;
  esac
done
json_check cluster-report.json slow-report.json << 'END'
for verified in (cluster_report["verification"], slow_report["verification"]):
    assert verified["wrong_elements"] == 0 and verified["checked_bytes"] > 0, verified
END
