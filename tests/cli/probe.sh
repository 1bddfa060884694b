# SPDX-License-Identifier: Apache-2.0
# serial
# reckon probe: measures, summarises, writes a valid profile, and treats other people's files well.
. "$(dirname "$0")/common.sh"

# Exit code 4 says that something could not be measured, as happens on a machine that stands still for a while.
measured() { [[ $status == 0 || $status == 4 ]] || fail "exit code $status"; }
json() { python3 -c "import json,sys; p=json.load(open('$1')); $2"; }

# A short run of everything.
reckon probe --budget 5s --seed 7 --name "test box" -o p.json
measured
stdout_matches '^test box: '
stdout_matches '^[0-9]+ cells: '
stdout_has "wrote p.json"
[[ $status == 4 ]] || stderr_lacks "error"
stderr_lacks "left" # no progress where no terminal is
json p.json '
assert p["schema"] == "reckon/profile" and p["name"] == "test box" and p["context"]["seed"] == "7", p["context"]
assert p["context"]["budget"] == "5 s" and p["fingerprint"].startswith("sha256:")
assert p["machines"][0]["id"] == "m0" and p["machines"][0]["cores"] >= 1
assert any(o["kind"] == "core" for o in p["topology"]["objects"])
measured = [c for c in p["cells"] if c["status"] in ("ok", "noisy")]
assert len(measured) >= 4, len(measured) # of some 500, as many as a busy machine has time for
for c in measured:
    assert len(c["samples"]) == c["n"] >= 1 and c["p50"] > 0 and c["min"] <= c["p50"] <= c["max"], c
    assert c["unit"] == "seconds" or c["bytes_convention"] in ("payload", "stream"), c
for c in p["cells"]:
    assert c["status"] == "ok" or c["reason"], c
assert len({c["case"] for c in p["cells"]}) >= 9
'
# The profile is valid: another command reads it.
if "$RECKON" diff --help > /dev/null 2>&1; then
  reckon diff p.json p.json
  expect_status 0
fi

# An older profile is replaced; nothing else is.
reckon probe --budget 2s --only host_memcpy -o p.json
measured
json p.json 'assert {c["case"] for c in p["cells"]} == {"host_memcpy"} and p["fits"], p["fits"]'
# Cases between commas, each by its name; and a profile that was cut short says so.
reckon probe --only host_memcpy,host_memcopy -o cut.json
expect_status 2
stderr_has "no case is called 'host_memcopy'; did you mean host_memcpy?"
reckon probe --budget 0.1s --only host_memcpy,fabric_aggregate -o cut.json
stderr_has 'were skipped; give more with --budget'
echo "my diary" > diary
reckon probe --budget 1s --only host_memcpy -o diary
expect_status 2
stderr_has "diary exists and is no profile"
[[ $(cat diary) == "my diary" ]] || fail "the diary is gone"
reckon probe --budget 1s --only host_memcpy -o diary --force
measured
json diary 'assert p["schema"] == "reckon/profile"'

# --json: one document on standard output, nothing else, no file.
reckon probe --budget 1s --only core_to_core_latency_cas --json
measured
cp .last/stdout out.json
json out.json 'assert p["schema"] == "reckon/profile"'
[[ ! -e profile.json ]] || fail "--json also wrote a file"

# The list of cases, and slips in their names.
reckon probe --list
expect_status 0
stdout_matches '^host_memcpy +[a-z]'
stdout_matches '^reduce_sum '
reckon probe --only host_memcyp
expect_status 2
stderr_has "did you mean host_memcpy?"
stdout_empty
reckon probe --budget 30
expect_status 2
stderr_has "no time unit"
reckon probe --budget 1ms
expect_status 2

# Ranks of one machine would measure it at the same time: none of them does.
RANK=1 WORLD_SIZE=2 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=4000 \
  reckon probe --budget 1s --only core_to_core_latency_cas -o rank.json
expect_status 2
stderr_has "2 ranks of this job are on this machine"
stderr_has "give --cluster"
[[ ! -e rank.json ]] || fail "a rank of several has measured"

# Where no memory can be shared by name, there is no shm, and everybody is told why.
if unshare -rm mount -t tmpfs -o ro none /dev/shm 2> /dev/null; then
  no_shm() { # ARGUMENTS...
    status=0
    unshare -rm sh -c 'mount -t tmpfs -o ro none /dev/shm; exec "$@"' sh "$RECKON" "$@" \
      > "$last/stdout" 2> "$last/stderr" || status=$?
  }
  if "$RECKON" run --list | grep -qE '^shm$|^not available: shm'; then
    no_shm run --list
    expect_status 0
    stdout_matches '^not available: shm: shm_open'
    if grep -qx shm "$last/stdout"; then fail "shm is offered"; fi
    no_shm probe --budget 1s --only fabric_write_latency --transport shm
    expect_status 3
    stderr_has "no transport 'shm' here: shm_open"
  fi
  no_shm probe --budget 2s --only fabric_write_latency -o no_shm.json
  measured
  stderr_lacks "cells failed"
fi

# No room for the result: said before or after, but never silently.
reckon probe --budget 1s --only core_to_core_latency_cas -o /nonexistent/p.json
[[ $status == 2 || $status == 4 ]] || fail "exit code $status"
stderr_has "/nonexistent"
