# SPDX-License-Identifier: Apache-2.0
# serial
# On a terminal: an estimate first, a line of progress that goes away; without one, neither.
source "$(dirname "$0")/../support/shell.sh"

reckon_tty 80 probe --only core_to_core_latency_cas,optimizer_step -o p.json
expect_status 0
stdout_matches 'measuring this machine: [0-9]+ cells, about [0-9]+ s'
stdout_matches '[0-9]+ % [0-9]+ s left  [a-z]'
stdout_has "wrote p.json"
# The last thing that happens to the progress line is that it is erased.
python3 - << 'PY'
text = open(".last/stdout", encoding="utf-8").read()
end = text.rindex("s left")
assert "\x1b[K" in text[end:], text[end:end + 200]
PY
ok probe --time 1s --only core_to_core_latency_cas -o p.json
stderr_lacks "s left" # it may warn of a noisy machine
stderr_lacks "measuring this machine"
