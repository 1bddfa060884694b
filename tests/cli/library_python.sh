# SPDX-License-Identifier: Apache-2.0
# The installed Python package finds the installed library, and declares what the header does. Needs no PyTorch.
source "$(dirname "$0")/../support/shell.sh"
need_build
need_unsanitized "Python, which is not sanitized, cannot load the library"

cmake --install "$build" --prefix "$PWD/first" > installed.txt
mv first prefix # an installation works wherever it lies
export PYTHONPATH=$PWD/prefix/share/reckon/python PYTHONDONTWRITEBYTECODE=1
python3 - << 'PYTHON' || fail "the package does not fit the library"
import os, re
import reckon
from reckon import _library

assert _library.places()[0].startswith(os.getcwd() + "/prefix/lib"), _library.places()
assert _library.load().reckon_version()
header = re.sub(r"/\*.*?\*/", "", open("prefix/include/reckon/reckon.h").read(), flags=re.DOTALL)
for struct, fields in ("options", _library.Options), ("description", _library.Description), ("tensor_place", _library.TensorPlace):
    body = re.search(r"typedef struct reckon_%s \{(.*?)\}" % struct, header, re.DOTALL)[1]
    assert re.findall(r"(\w+)[,;]", body) == [name for name, _ in fields._fields_], struct
for name, (_, arguments) in _library.FUNCTIONS.items():
    declared = re.search(r"\b%s\((.*?)\);" % name, header, re.DOTALL)[1]
    assert len(arguments) == (0 if declared == "void" else declared.count(",") + 1), name
statuses = dict(re.findall(r"RECKON_(OK|PENDING|INPUT|UNAVAILABLE|FAILED|PEER|INTERNAL) = (\d+)", header))
assert len(statuses) == 7 and all(getattr(_library, name) == int(value) for name, value in statuses.items()), statuses
assert len(reckon.__all__) <= 8
PYTHON
status=0
python3 -m reckon none.json > out 2> err || status=$?
[[ $status == 2 && ! -s out ]] || fail "a plan that is not there: $status"
grep -q '^reckon: error: .*none.json' err || fail "$(cat err)"
[[ $(wc -l < err) == 1 ]] || fail "more than a line: $(cat err)"
