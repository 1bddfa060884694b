# SPDX-License-Identifier: Apache-2.0
# The installed Python package finds the installed library, and declares what the header does. Needs no PyTorch.
source "$(dirname "$0")/../support/shell.sh"
need_build
need_unsanitized "Python, which is not sanitized, cannot load the library"

cmake --install "$build" --prefix "$PWD/first" > installed.txt
mv first prefix # an installation works wherever it lies
export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH
PYTHONPATH=$(compgen -G "$PWD/prefix/lib/python3*/*-packages")
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

# --- Ctrl-C while others are waited for ends the wait at once and leaves nothing behind.
printf 'name,elements\nbias,2\nweight,6\n' > model.csv
ok plan --profile byteps-cluster --workload model.csv --workers 2 --servers 0 --transport host --port-bandwidth 1GB/s -o plan.json
cat > rank.py << 'PYTHON'
import os, signal, sys, time

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background processes ignore it
import reckon

again = sys.argv[1] == "again"
while True:
    try:
        job = reckon.join("plan.json")
        break
    except KeyboardInterrupt:
        print("interrupted", flush=True)
        if not again:
            raise
        again = False
job.wait()
while sys.argv[1] == "later" and not os.path.exists("go"):
    time.sleep(0.02)
print("leaving", flush=True)
job.leave()
PYTHON
export RECKON_WORLD_SIZE=2 RECKON_MASTER_ADDR=127.0.0.1 RECKON_MASTER_PORT
start() { # RANK HOW
  : > "rank-$1.out" # what the last one wrote is not this one's word
  RECKON_RANK=$1 python3 rank.py "$2" > "rank-$1.out" 2> "rank-$1.err" &
  pids[$1]=$!
}
ends() { # RANK STATUS
  local status=0
  wait "${pids[$1]}" || status=$?
  [[ $status == "$2" ]] || fail "rank $1 ended with $status: $(cat rank-*.err)"
}
listens() { grep -qi " 0100007F:$(printf %04X "$RECKON_MASTER_PORT") 00000000:0000 0A " /proc/net/tcp; }
at_end 'kill -9 $(jobs -p) 2> /dev/null'

# A rank that waits for others, and one that looks for rank 0.
for rank in 0 1; do
  RECKON_MASTER_PORT=$(free_port)
  start "$rank" once
  wait_until "[[ $rank == 1 ]] || listens" "${pids[rank]}"
  wait_until 'grep -q libreckon /proc/${pids[$rank]}/maps' "${pids[rank]}"
  kill -INT "${pids[rank]}"
  ends "$rank" 130
  tail -n 1 "rank-$rank.err" | grep -q '^KeyboardInterrupt' || fail "$(cat "rank-$rank.err")"
done

# The same process may join again: its port is free.
RECKON_MASTER_PORT=$(free_port)
start 0 again
wait_until listens "${pids[0]}"
kill -INT "${pids[0]}"
wait_until 'grep -q interrupted rank-0.out' "${pids[0]}"
start 1 once
ends 0 0
ends 1 0

# At the end, to which the other worker does not come: that one learns why.
RECKON_MASTER_PORT=$(free_port)
start 0 once
start 1 later
wait_until 'grep -q leaving rank-0.out' "${pids[0]}"
kill -INT "${pids[0]}"
ends 0 130
touch go
ends 1 1
grep -q 'reckon.ReckonError: rank 0 (.*) gave up: KeyboardInterrupt' rank-1.err || fail "$(cat rank-1.err)"

# --- Ctrl-C while the library says that a step has begun, or that it is over: the step can still be waited for.
cat > interrupted.py << 'PYTHON'
import math
import reckon
from reckon import _library

job = reckon.join("plan.json")
library = job._library


class Interrupting:
    """The library, whose user presses Ctrl-C when a call of this name has returned OK, once."""

    def __init__(self, name):
        self.name = name

    def __getattr__(self, name):
        call = getattr(library, name)
        return self.interrupted(call) if name == self.name else call

    def interrupted(self, call):
        def called(*arguments):
            status = call(*arguments)
            if status == _library.OK:
                self.name = None
                raise KeyboardInterrupt
            return status
        return called


def refused(call):
    try:
        call()
    except reckon.ReckonError as error:
        assert error.status == _library.INPUT, error
        return
    raise AssertionError("not refused")


def interrupted(call):
    try:
        call()
    except KeyboardInterrupt:
        return
    raise AssertionError("not interrupted")


for timeout in -1, math.nan, -math.inf:
    refused(lambda: job.wait(timeout))
job._library = Interrupting("reckon_begin")
interrupted(job.begin)
for first, count in (1 << 64, 1), (0, 3), (-1, 1), (1, -1):
    refused(lambda: job.ready(first, count))
job._library = Interrupting("reckon_ready")
interrupted(lambda: job.ready(0))
job._library = Interrupting("reckon_ready")
interrupted(job.wait)  # in the middle of what counts as ready
job._library = Interrupting("reckon_wait")
interrupted(job.wait)
assert job.wait(math.inf) and job._work is None
assert job.wait(60)  # another step
job.leave()
job = reckon.join("plan.json")
job.abandon("a name that is no text: \udcff")
PYTHON
cat > steps.py << 'PYTHON'
import reckon

job = reckon.join("plan.json")
job.wait()
job.wait()
job.leave()
job = reckon.join("plan.json")
try:
    job.wait()
except reckon.ReckonError as error:
    assert error.status == 5 and "no text: ?" in str(error), error
else:
    raise AssertionError("rank 0 had abandoned the job")
PYTHON
RECKON_MASTER_PORT=$(free_port)
RECKON_RANK=0 python3 interrupted.py 2> rank-0.err & pids[0]=$!
RECKON_RANK=1 python3 steps.py 2> rank-1.err & pids[1]=$!
ends 0 0
ends 1 0
