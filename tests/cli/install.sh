# SPDX-License-Identifier: Apache-2.0
# An installation works wherever it lies, and finds the profiles and workloads beside itself.
source "$(dirname "$0")/../support/shell.sh"
need_build

cmake --install "$build" --prefix "$PWD/first" > installed.txt
for file in bin/reckon share/man/man1/reckon-plan.1 share/bash-completion/completions/reckon \
  share/zsh/site-functions/_reckon share/fish/vendor_completions.d/reckon.fish share/reckon/profiles/workloads/resnet50.json share/reckon/schemas/plan.schema.json share/reckon/python/reckon/record.py share/doc/reckon/LICENSE; do
  [[ -s first/$file ]] || fail "not installed: $file"
done
[[ -x first/bin/reckon ]] || fail "bin/reckon cannot be executed"

# Moved, and with a workload that only this installation has: the source tree and the build are not looked at.
mv first second
mv second/share/reckon/profiles/workloads/resnet50.json second/share/reckon/profiles/workloads/only-here.json
RECKON=$PWD/second/bin/reckon
ok --version
stdout_has "reckon "
ok plan --list
stdout_matches '^only-here$'
ok solve placement --workload only-here --cores 4
stderr_empty
