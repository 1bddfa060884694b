# SPDX-License-Identifier: Apache-2.0
# `faults` finds what it is there for: programs that end otherwise, or leave something. Each is reckon with one fault.
source "$(dirname "$0")/../support/shell.sh"

unshare --mount --pid --net --ipc --fork --mount-proc true 2> last.err || skip "no namespaces here: unshare(1) needs root"
program=$RECKON
planted() { # WORD FAULT COMMANDS-BEFORE COMMANDS-AFTER: a trial of import with that fault says so
  printf '#!/bin/bash\n[[ $1 == import ]] || exec %q "$@"\n%s\n%q "$@"\nstatus=$?\n%s\nexit $status\n' "$program" "$3" "$program" "$4" > reckon
  chmod +x reckon
  RECKON=$PWD/reckon run_as_last "$source_dir/tests/trust/faults" --trials 1 --only "import,$2"
  [[ $status == "$5" ]] || fail "exit status $status of a program with: $3 $4"
  stdout_has "$1"
}
planted '1 trials, 0 otherwise' clock '' '' 0
planted 'ends with 3' clock '' 'status=3' 1
planted 'process' clock 'sleep 100 &' '' 1
planted 'left: mine' clock 'touch /dev/shm/mine' '' 1
planted 'left: mine' clock 'touch $TMPDIR/mine' '' 1
planted 'left: half.tmp' clock 'touch out/half.tmp' '' 1
planted 'torn' clock '' 'truncate -s 10 out/result.json' 1
planted 'no output' clock '' 'rm out/result.json' 1
