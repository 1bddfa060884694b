# SPDX-License-Identifier: Apache-2.0
# Sourced by every script of tests/cli, tests/cluster and tests/vm. Needs RECKON, the program under test; each script
# works in an empty directory of its own that goes when the script ends. KEEP=1 leaves it there.
#
#   reckon ARGUMENTS...          runs the program; its exit code, standard output and standard error are kept apart
#   ok ARGUMENTS...              the same, and it exits with 0
#   exits N ARGUMENTS...         the same, and it exits with N
#   refused TEXT ARGUMENTS...    the same, as bad usage or input: it exits with 2, prints nothing on standard output, and
#                                an error that stderr_says TEXT
#   reckon_tty COLUMNS ARGS...   the same as reckon under a pseudo-terminal: both streams go to standard output
#   run_as_last COMMAND...       the same as reckon for another program
#   example_documents            writes profile.json, plan.json, report.json, workload.json and roles.json
#   make_profiles < PYTHON       runs standard input, which may use profiles.py
#   expect_status N              what the last run exited with
#   stdout_has / stderr_has TEXT...       the stream contains each TEXT, as it stands
#   stdout_says / stderr_says TEXT...  the same, and golden/SCRIPT.messages.txt beside the script has each line that contains
#                                it: a test names the word that matters, the file has the wording. UPDATE_GOLDEN=1 writes it
#   stdout_lacks / stderr_lacks TEXT...
#   stdout_matches / stderr_matches REGEX...  some line of it matches each (grep -E)
#   stdout_is < TEXT             the stream is exactly standard input's text
#   stdout_empty / stderr_empty
#   absent FILE...               none of them exists
#   json_check NAME... < PYTHON  the assertions of standard input hold; see json_check.py
#   wait_until CONDITION [PID]   waits until the command is true; fails when the process ends before that. The limit of
#                                five minutes only ends what hangs
#   free_port                    a TCP port of 127.0.0.1 that nobody has
#   need_build                   sets `build`, the build folder that the program lies in; skips where there is none
#   need_unsanitized REASON      after that: skips where it is of a sanitized build
#   skip REASON                  ends the script; ctest shows it as skipped
#   fail MESSAGE                 ends the script; shows the last run
#   at_end COMMAND               run when the script ends, however it does; its exit code stays what it was
set -euo pipefail
: "${RECKON:?set RECKON to the program under test}"
RECKON=$(realpath "$RECKON")
[[ ! ${WRITE_DOCUMENTS:-} ]] || WRITE_DOCUMENTS=$(realpath "$WRITE_DOCUMENTS")
messages=$(realpath "$(dirname "$0")")/golden/$(basename "$0" .sh).messages.txt
source_dir=${RECKON_SOURCE_DIR:-$(realpath "$(dirname "${BASH_SOURCE[0]}")/../..")}

work=$(mktemp -d "${TMPDIR:-/tmp}/reckon-test.XXXXXX")
endings=()
at_end() { endings+=("$1"); }
at_exit() {
  local status=$? ending
  for ending in "${endings[@]}"; do eval "$ending" || true; done
  if [[ ${UPDATE_GOLDEN:-} && $status == 0 && -e $last/said ]]; then
    mkdir -p "$(dirname "$messages")"
    sort -u "$last/said" > "$messages"
  fi
  cd /
  if [[ ${KEEP:-} ]]; then echo "kept: $work" >&2; else rm -rf "$work"; fi
  exit "$status"
}
trap at_exit EXIT
cd "$work"
last=$work/.last # out of the way of scripts that list their directory
mkdir "$last"
# Whatever the caller's terminal and configuration are, the runs see the same.
unset NO_COLOR COLORTERM
export LC_ALL=C.UTF-8 TERM=xterm-256color
while read -r name; do unset "$name"; done < <(compgen -e | grep '^RECKON_' || true)

fail() {
  echo "FAIL ($(basename "$0"):${BASH_LINENO[-2]}): $*" >&2
  if [[ -e "$last/command" ]]; then
    echo "command: $(cat "$last/command")" >&2
    echo "exit code: $(cat "$last/status" 2> /dev/null)" >&2
    sed 's/^/stdout| /' "$last/stdout" >&2
    sed 's/^/stderr| /' "$last/stderr" >&2
  fi
  exit 1
}

skip() {
  echo "skipped: $*"
  exit 77
}

need_build() {
  build=$(realpath "$(dirname "$RECKON")/../..")
  [[ -e $build/cmake_install.cmake ]] || skip "$RECKON does not lie in a build folder"
}
need_unsanitized() {
  ! grep -q '^RECKON_SANITIZE:STRING=.' "$build/CMakeCache.txt" || skip "$1"
}

run_as_last() {
  printf '%q ' "$@" > "$last/command"
  status=0
  "$@" > "$last/stdout" 2> "$last/stderr" || status=$?
  echo "$status" > "$last/status"
}
reckon() { run_as_last "$RECKON" "$@"; }
exits() {
  reckon "${@:2}"
  expect_status "$1"
}
ok() { exits 0 "$@"; }
refused() {
  exits 2 "${@:2}"
  stdout_empty
  stderr_matches '^reckon: error: '
  stderr_says "$1"
}

reckon_tty() {
  local columns=$1 command
  shift
  command -v script > /dev/null || skip "script(1) is not installed (package bsdutils)"
  script -qec true /dev/null < /dev/null > /dev/null 2>&1 || skip "no pseudo-terminals here (is /dev/pts mounted?)"
  command=$(printf '%q ' "$RECKON" "$@")
  run_as_last script -qec "stty cols $columns rows 50; $command" /dev/null < /dev/null
  # The terminal's carriage returns are taken off, so that what is compared is what was written.
  sed -i 's/\r//g' "$last/stdout"
}

example_documents() { "${WRITE_DOCUMENTS:?set WRITE_DOCUMENTS to the built write_documents}" .; }

# each STREAM NAME GREP-OPTIONS WHAT PATTERN...: WHAT is said of a PATTERN that no line of the stream has.
each() {
  local stream=$1 option=$2 what=$3 pattern
  for pattern in "${@:4}"; do
    grep -q"$option" -e "$pattern" "$last/$stream" || fail "$what: $pattern"
  done
}
none() { # STREAM WHAT TEXT...
  local text
  for text in "${@:3}"; do
    ! grep -qF -e "$text" "$last/$1" || fail "$2: $text"
  done
}
says() { # STREAM TEXT...
  local text line
  each "$1" F "no line of $1 has" "${@:2}"
  for text in "${@:2}"; do
    while IFS= read -r line; do
      line=${line//$work/WORK} line=${line//$source_dir/SOURCE}
      if [[ ${UPDATE_GOLDEN:-} ]]; then
        echo "$line" >> "$last/said"
      else
        grep -qxF -e "$line" "$messages" || fail "not in $messages (UPDATE_GOLDEN=1 writes it): $line"
      fi
    done < <(grep -F -e "$text" "$last/$1")
  done
}
make_profiles() { { echo 'from profiles import *' && cat; } | PYTHONPATH=$source_dir/tests/support python3 -B -; }

expect_status() { [[ $status == "$1" ]] || fail "exit code $status, expected $1"; }
stdout_has() { each stdout F "standard output lacks" "$@"; }
stderr_has() { each stderr F "standard error lacks" "$@"; }
stdout_says() { says stdout "$@"; }
stderr_says() { says stderr "$@"; }
stdout_lacks() { none stdout "standard output must not have" "$@"; }
stderr_lacks() { none stderr "standard error must not have" "$@"; }
stdout_matches() { each stdout E "no line of standard output matches" "$@"; }
stderr_matches() { each stderr E "no line of standard error matches" "$@"; }
stdout_is() { diff -u - "$last/stdout" >&2 || fail "standard output differs, see above"; }
stdout_empty() { [[ ! -s "$last/stdout" ]] || fail "standard output is not empty"; }
stderr_empty() { [[ ! -s "$last/stderr" ]] || fail "standard error is not empty"; }
absent() {
  local file
  for file in "$@"; do [[ ! -e $file ]] || fail "there is a file $file"; done
}
json_check() { python3 "$source_dir/tests/support/json_check.py" "$@" || fail "an assertion fails, see above"; }

wait_until() {
  local deadline=$((SECONDS + 300))
  until eval "$1"; do
    [[ ! ${2:-} ]] || kill -0 "$2" 2> /dev/null || eval "$1" || fail "process $2 ended before this: $1"
    ((SECONDS < deadline)) || fail "nobody came to this: $1"
    sleep 0.02
  done
}
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
