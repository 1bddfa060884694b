# SPDX-License-Identifier: Apache-2.0
# Sourced by every script here. Needs RECKON, the program under test; each script works in an empty
# directory of its own that goes when the script ends. KEEP=1 leaves it there.
#
#   reckon ARGUMENTS...          runs the program; its exit code, standard output and standard error are kept apart
#   reckon_tty COLUMNS ARGS...   the same under a pseudo-terminal: both streams go to standard output
#   example_documents            writes profile.json, plan.json, report.json, workload.json and roles.json
#   expect_status N              what the last run exited with
#   stdout_has / stderr_has TEXT          the stream contains TEXT, as it stands
#   stdout_lacks / stderr_lacks TEXT
#   stdout_matches / stderr_matches REGEX some line of it matches (grep -E)
#   stdout_is < TEXT             the stream is exactly standard input's text
#   stdout_empty / stderr_empty
#   skip REASON                  ends the script; ctest shows it as skipped
#   fail MESSAGE                 ends the script; shows the last run
#   at_end COMMAND               run when the script ends, however it does; its exit code stays what it was
set -euo pipefail
: "${RECKON:?set RECKON to the program under test}"
RECKON=$(realpath "$RECKON")
[[ ! ${WRITE_DOCUMENTS:-} ]] || WRITE_DOCUMENTS=$(realpath "$WRITE_DOCUMENTS")
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source_dir=${RECKON_SOURCE_DIR:-$(realpath "$here/../..")}

work=$(mktemp -d "${TMPDIR:-/tmp}/reckon-cli.XXXXXX")
endings=()
at_end() { endings+=("$1"); }
at_exit() {
  local status=$? ending
  for ending in "${endings[@]}"; do eval "$ending" || true; done
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

reckon() {
  printf '%q ' reckon "$@" > "$last/command"
  status=0
  "$RECKON" "$@" > "$last/stdout" 2> "$last/stderr" || status=$?
  echo "$status" > "$last/status"
}

reckon_tty() {
  local columns=$1 command
  shift
  command -v script > /dev/null || skip "script(1) is not installed (package bsdutils)"
  script -qec true /dev/null < /dev/null > /dev/null 2>&1 || skip "no pseudo-terminals here (is /dev/pts mounted?)"
  command=$(printf '%q ' "$RECKON" "$@")
  printf '%q ' reckon "$@" > "$last/command"
  status=0
  # The terminal's carriage returns are taken off, so that what is compared is what was written.
  script -qec "stty cols $columns rows 50; $command" /dev/null < /dev/null > "$last/raw" 2> "$last/stderr" || status=$?
  tr -d '\r' < "$last/raw" > "$last/stdout"
  echo "$status" > "$last/status"
}

example_documents() { "${WRITE_DOCUMENTS:?set WRITE_DOCUMENTS to the built write_documents}" .; }

expect_status() { [[ $status == "$1" ]] || fail "exit code $status, expected $1"; }
stdout_has() { grep -qF -e "$1" "$last/stdout" || fail "standard output lacks: $1"; }
stderr_has() { grep -qF -e "$1" "$last/stderr" || fail "standard error lacks: $1"; }
stdout_lacks() { ! grep -qF -e "$1" "$last/stdout" || fail "standard output must not have: $1"; }
stderr_lacks() { ! grep -qF -e "$1" "$last/stderr" || fail "standard error must not have: $1"; }
stdout_matches() { grep -qE -e "$1" "$last/stdout" || fail "no line of standard output matches: $1"; }
stderr_matches() { grep -qE -e "$1" "$last/stderr" || fail "no line of standard error matches: $1"; }
stdout_is() { diff -u - "$last/stdout" >&2 || fail "standard output differs, see above"; }
stdout_empty() { [[ ! -s "$last/stdout" ]] || fail "standard output is not empty"; }
stderr_empty() { [[ ! -s "$last/stderr" ]] || fail "standard error is not empty"; }
