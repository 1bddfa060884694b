# SPDX-License-Identifier: Apache-2.0
# The Debian packages hold what is installed, each its part, and say what they need; lintian finds nothing to say, and the
# program works wherever it is unpacked. scripts/package-check installs them.
source "$(dirname "$0")/../support/shell.sh"
need_build
need_unsanitized "nobody packages a sanitized build"
for tool in dh dh_python3 dpkg-shlibdeps; do
  command -v $tool > /dev/null || skip "$tool is not installed (scripts/install-packages --package)"
done

"$source_dir/scripts/package" "$PWD/packed" "$build" > packed.txt 2>&1 || fail "scripts/package: $(cat packed.txt)"
version=$("$RECKON" --version | sed 's/^reckon //')
# holds PACKAGE FILE...: of which none is in another package
holds() {
  local package=$1 file
  shift
  mkdir "$package"
  dpkg-deb --extract packed/"$package"_"$version"_*.deb "$package"
  dpkg-deb --field packed/"$package"_"$version"_*.deb Depends > "$package.needs"
  for file in "$@" usr/share/doc/"$package"/copyright usr/share/doc/"$package"/changelog.gz; do
    compgen -G "$package/$file" > /dev/null || fail "$package lacks $file: $(find "$package")"
  done
}
holds reckon usr/bin/reckon usr/share/man/man1/reckon.1.gz usr/share/bash-completion/completions/reckon \
  usr/share/reckon/profiles/workloads/resnet50.json usr/share/reckon/schemas/plan.schema.json \
  usr/share/doc/reckon/commands.md usr/share/doc/reckon/documents-fields.md
holds libreckon0 'usr/lib/*-linux-*/libreckon.so.0'
holds libreckon-dev usr/include/reckon/reckon.h 'usr/lib/*-linux-*/libreckon.so' 'usr/lib/*-linux-*/pkgconfig/reckon.pc' \
  'usr/lib/*-linux-*/cmake/reckon/reckonConfig.cmake'
holds python3-reckon usr/lib/python3/dist-packages/reckon/record.py
packages=(reckon libreckon0 libreckon-dev python3-reckon)
if [[ -e $build/apps/reckon/reckon-sim ]]; then
  holds reckon-sim usr/bin/reckon-sim usr/share/man/man1/reckon-sim.1.gz
  packages+=(reckon-sim)
  grep -q 'reckon (= ' reckon-sim.needs || fail "reckon-sim does not need this reckon"
fi
twice=$(for package in "${packages[@]}"; do (cd "$package" && find . ! -type d); done | sort | uniq -d)
[[ ! $twice ]] || fail "in two packages: $twice"
grep -q 'libc6' reckon.needs && ! grep -q simgrid reckon.needs || fail "reckon needs $(cat reckon.needs)"
grep -q libreckon0 python3-reckon.needs || fail "the Python package does not need the library"

if command -v lintian > /dev/null; then
  lintian --allow-root --fail-on error,warning packed/*.deb > said.txt 2>&1 || fail "lintian: $(cat said.txt)"
fi

RECKON=$PWD/reckon/usr/bin/reckon
ok --version
stdout_is <<< "reckon $version"
ok plan --profile byteps-cluster --workload resnet50 --workers 2 -o plan.json
ok run plan.json --check
if [[ -d reckon-sim ]]; then
  cp reckon-sim/usr/bin/reckon-sim reckon/usr/bin
  ok simulate plan.json
fi
