# SPDX-License-Identifier: Apache-2.0
# What scripts/quickstart builds can be installed, whole; an installation works wherever it lies, and finds the profiles and
# workloads beside itself.
source "$(dirname "$0")/../support/shell.sh"
need_build

# Each file that is installed from the build folder is made by quickstart's target, or when the build is configured.
files() { sed -n 's/^Remove //p' | sed 's/\.so[.0-9]*$/.so/' | sort -u; } # of ninja's list; a library's links are its
target=$(sed -n 's/^ninja .* //p' "$source_dir/scripts/quickstart")
[[ $target ]] || fail "scripts/quickstart starts no ninja"
ninja -C "$build" -v -n -t clean "$target" | files > made
ninja -C "$build" -v -n -t clean | files > makable
grep -rhoE "\"$build/[^\"]*\"" "$build"/cmake_install.cmake "$build"/apps/*/cmake_install.cmake |
  tr -d '"' | sed "s|^$build/|Remove |" | files > wanted
[[ $(comm -12 wanted makable | wc -l) -ge 19 ]] || fail "install rules name too few files that are built: $(cat wanted)"
lacking=$(comm -12 wanted makable | comm -23 - made)
[[ ! $lacking ]] || fail "'ninja $target' of scripts/quickstart does not make what is installed: $lacking"

cmake --install "$build" --prefix "$PWD/first" > installed.txt
for file in bin/reckon share/man/man1/reckon-plan.1.gz share/bash-completion/completions/reckon \
  share/zsh/site-functions/_reckon share/fish/vendor_completions.d/reckon.fish share/reckon/profiles/workloads/resnet50.json share/reckon/schemas/plan.schema.json share/doc/reckon/LICENSE \
  share/doc/reckon/commands.md share/doc/reckon/documents-fields.md \
  include/reckon/reckon.h 'lib/*/libreckon.so.0' 'lib/python3*/*-packages/reckon/record.py'; do
  [[ -s $(compgen -G "first/$file" || true) ]] || fail "not installed: $file"
done
for page in $(grep -rhoE 'docs/[a-z-]+\.md' "$source_dir"/apps "$source_dir"/lib --include=*.cpp | sort -u) README.md; do
  [[ -s first/share/doc/reckon/$page ]] || fail "help texts name a page that is not installed: $page"
done
[[ -x first/bin/reckon ]] || fail "bin/reckon cannot be executed"
gzip -dc first/share/man/man1/reckon-plan.1.gz | grep -q '^.SH OPTIONS' || fail "no man page of plan"

# Moved, and with a workload that only this installation has: the source tree and the build are not looked at.
mv first second
mv second/share/reckon/profiles/workloads/resnet50.json second/share/reckon/profiles/workloads/only-here.json
RECKON=$PWD/second/bin/reckon
ok --version
stdout_has "reckon "
ok plan --list
stdout_matches '^  only-here$'
ok solve placement --workload only-here --cores 4
stderr_empty
