# SPDX-License-Identifier: Apache-2.0
# serial
# Ctrl-C in the middle of a probe keeps what was measured, marks the rest and says so in the exit code.
source "$(dirname "$0")/../support/shell.sh"

mkfifo log
"$RECKON" -vv probe -o p.json > .last/stdout 2> log &
pid=$!
# As soon as five measurements were made; the rest of the log is drained.
exec 3< log
seen=0
while read -r line <&3; do
  if [[ $line == *" after "* ]] && ((++seen == 5)); then kill -INT "$pid"; fi
  echo "$line" >> .last/stderr
done
status=0
wait "$pid" || status=$?
echo "$status" > .last/status
echo "probe, interrupted" > .last/command
expect_status 130
stdout_has "wrote p.json" "interrupted"
json_check p.json << 'END'
measured = [c for c in p["cells"] if c["status"] in ("ok", "noisy")]
rest = [c for c in p["cells"] if c["status"] not in ("ok", "noisy")]
assert 1 <= len(measured) < len(rest), (len(rest), len(measured))
assert all(c["status"] == "skipped" and c["reason"] == "interrupted" for c in rest), rest
assert p["context"]["interrupted"] == "yes"
END
