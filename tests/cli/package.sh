# SPDX-License-Identifier: Apache-2.0
# The Debian packages hold what is installed, say what they need, and their program works wherever it is unpacked.
source "$(dirname "$0")/../support/shell.sh"
need_build
need_unsanitized "nobody packages a sanitized build"
for tool in cpack dpkg-deb dpkg-shlibdeps; do
  command -v $tool > /dev/null || skip "$tool is not installed (package dpkg-dev)"
done

cpack --config "$build/CPackConfig.cmake" -B "$PWD/packed" > packed.txt 2>&1 || fail "cpack: $(cat packed.txt)"
package=$(find packed -maxdepth 1 -name 'reckon_*.deb')
[[ $package ]] || fail "no package reckon: $(cat packed.txt)"
dpkg-deb --field "$package" > control
grep -qE '^Version: [0-9]+\.[0-9]+\.[0-9]+$' control || fail "no version: $(cat control)"
grep -qE '^Depends: .*libc6' control || fail "it does not say what it needs: $(cat control)"
! grep -qE '^Depends: .*simgrid' control || fail "reckon needs SimGrid: $(cat control)"
dpkg-deb --extract "$package" root
for file in bin/reckon include/reckon/reckon.h share/man/man1/reckon.1 share/bash-completion/completions/reckon \
  share/reckon/python/reckon/record.py; do
  compgen -G "root/usr/$file" > /dev/null || fail "the package lacks $file"
done
[[ $(find root -name 'libreckon.so*' -type f) ]] || fail "the package lacks the library"
[[ ! -e root/usr/bin/reckon-sim ]] || fail "reckon-sim is in the package of reckon"

RECKON=$PWD/root/usr/bin/reckon
ok --version
stdout_is <<< "reckon $(sed -n 's/^Version: //p' control)"
ok plan --profile byteps-cluster --workload resnet50 --workers 2 -o plan.json
ok run plan.json --check

simulator=$(find packed -maxdepth 1 -name 'reckon-sim_*.deb')
if [[ $simulator ]]; then
  dpkg-deb --field "$simulator" Depends | grep -q 'reckon (= ' || fail "reckon-sim does not need reckon"
  dpkg-deb --extract "$simulator" root
  ok simulate plan.json
fi
