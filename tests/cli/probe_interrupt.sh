# SPDX-License-Identifier: Apache-2.0
# serial
# Ctrl-C in the middle of a probe keeps what was measured, marks the rest and says so in the exit code.
source "$(dirname "$0")/../support/shell.sh"

mkfifo log
"$RECKON" -vv probe --budget 100s -o p.json > .last/stdout 2> log &
pid=$!
# As soon as five cells are there; the rest of the log is drained.
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
assert len(measured) >= 5, len(measured)
assert len(rest) > len(measured), (len(rest), len(measured))
# A busy machine may leave some cells no time before that.
reasons = [c["reason"] for c in rest if c["status"] == "skipped"]
assert len(reasons) == len(rest) and all(r == "interrupted" or r.startswith("no time left") for r in reasons), rest
assert "interrupted" in reasons, reasons
assert p["context"]["interrupted"] == "yes"
END
