# SPDX-License-Identifier: Apache-2.0
# `python3 -m reckon.record` works in a clone, from an installation and after `pip install ./python`, which needs no network; each
# finds the library. Needs no PyTorch.
source "$(dirname "$0")/../support/shell.sh"
need_build
need_unsanitized "Python, which is not sanitized, cannot load the library"
export PYTHONDONTWRITEBYTECODE=1

# works PYTHON: it runs, and loads a library; `library` is which
works() {
  "$1" -m reckon.record --help > help || fail "reckon.record: $(cat help)"
  grep -q FILE:FUNCTION help || fail "reckon.record --help: $(cat help)"
  library=$("$1" -c 'from reckon import _library; _library.load(); print(_library.places()[0])') || fail "no library"
}

# As the README prints it for a clone, whose build may lie anywhere.
readme=$(sed -n 's/^    export PATH=[^ ]* PYTHONPATH=$PWD\/\([^ ]*\).*/\1/p' "$source_dir/README.md")
[[ $readme ]] || fail "the README sets no PYTHONPATH"
clone=$PATH:$(dirname "$RECKON")
PATH=$clone PYTHONPATH=$source_dir/$readme works python3

cmake --install "$build" --prefix "$PWD/first" > installed.txt
mv first prefix # an installation works wherever it lies
PYTHONPATH=$(compgen -G "$PWD/prefix/lib/python3*/*-packages") works python3
[[ $library == "$PWD"/prefix/lib/* ]] || fail "an installation's package loads $library"

python3 -c 'import ensurepip, venv' 2> /dev/null || skip "Python has no venv (package python3-venv)"
python3 -m venv environment
alone=()
unshare -n true 2> /dev/null && alone=(unshare -n) # no network
cp -r "$source_dir/python" python
"${alone[@]}" environment/bin/pip install -q --disable-pip-version-check ./python > pip.txt 2>&1 || fail "pip install: $(cat pip.txt)"
[[ $(cd python && find . -name __pycache__ -prune -o -type f -print | sort) == "$(cd "$source_dir/python" && find . -name __pycache__ -prune -o -type f -print | sort)" ]] ||
  fail "pip leaves something behind: $(find python)"
[[ $(environment/bin/pip list | sed -n 's/^reckon *//p') == "$("$RECKON" --version | sed 's/^reckon //')" ]] || fail "its version is not the program's"
PATH=$PWD/prefix/bin:$PATH works environment/bin/python
[[ $library == "$PWD"/prefix/lib/* ]] || fail "it loads $library, not that of the reckon on PATH"
PATH=$clone works environment/bin/python
[[ $library == "$build"/* ]] || fail "it loads $library, not that of the build"
environment/bin/pip uninstall -qy reckon
[[ ! $(compgen -G 'environment/lib/python3*/site-packages/reckon*' || true) ]] || fail "pip leaves files behind"
"${alone[@]}" environment/bin/pip install -q --disable-pip-version-check -e ./python > pip.txt 2>&1 || fail "pip install -e: $(cat pip.txt)"
PATH=$clone works environment/bin/python
