# SPDX-License-Identifier: Apache-2.0
# timeout: 1800
# The pages of docs/results: a sample of the computed rows (all of them at night, 9 minutes) is what computing them gives, and each
# page's table is that of its CSV files.
source "$(dirname "$0")/../support/shell.sh"
need_build
need_unsanitized 'it computes plans for a minute'
[[ -x $(dirname "$RECKON")/reckon-sim ]] || skip 'reckon-sim is not built: SimGrid was not found (libsimgrid-dev)'
check() { run_as_last env PYTHONDONTWRITEBYTECODE=1 python3 "$1/scripts/reproduce" all --check "${@:2}"; }
export RECKON

sample=(--sample 10)
[[ ! ${NIGHTLY:-} ]] || sample=()
check "$source_dir" "${sample[@]}"
expect_status 0
stdout_has 'as computed'

# A value that is not what is computed is named by file, row and column, with both values.
mkdir -p copy/docs
cp -r "$source_dir/scripts" "$source_dir/profiles" copy
cp -r "$source_dir/docs/results" copy/docs
sed -i 's/^20,equation 48,168.421/20,equation 48,170/' copy/docs/results/pbox-scale.csv
sed -i '$d' copy/docs/results/pbox-scale-limits.csv
check copy --only pbox
expect_status 1
stdout_says "'170'"
stdout_has 'pbox-scale-limits.csv: ' 'no such row'
stdout_says pbox-scale.md
stderr_has '3 differences'
