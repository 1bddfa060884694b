# SPDX-License-Identifier: Apache-2.0
# reckon probe: measures, summarises, writes a valid profile, and treats other people's files well.
source "$(dirname "$0")/../support/shell.sh"

# A few cases, with more time than any machine needs: each of their cells is measured.
ok probe --time 10min --only core_to_core_latency_cas,optimizer_step --seed 7 --name "test box" -o p.json
stdout_matches '^test box: ' '^[0-9]+ cells: '
stdout_has "wrote p.json"
stderr_lacks "error" "left" # no progress where no terminal is
json_check p.json cores="$(nproc)" << 'END'
assert p["schema"] == "reckon/profile" and p["name"] == "test box" and p["context"]["seed"] == "7", p["context"]
assert p["context"]["budget"] == "600 s" and p["fingerprint"].startswith("sha256:"), p["context"]
assert p["machines"][0]["id"] == "m0" and p["machines"][0]["cores"] >= 1
assert any(o["kind"] == "core" for o in p["topology"]["objects"])
cases = [c["case"] for c in p["cells"]]
# Four optimizers on one thread and on all; and two cores, where there are two.
assert cases.count("optimizer_step") == (4 if cores == "1" else 8), cases
assert set(cases) == {"core_to_core_latency_cas", "optimizer_step"}, cases
for c in p["cells"]:
    if c["case"] == "optimizer_step" or cores != "1":
        assert c["status"] in ("ok", "noisy") and (c["status"] == "ok" or c["reason"]), c
        assert len(c["samples"]) == c["n"] >= 1 and 0 < c["min"] <= c["p50"] <= c["max"], c
        assert c["unit"] == "seconds" or c["bytes_convention"] in ("payload", "stream"), c
END
# The profile is valid: another command reads it.
ok diff p.json p.json

# Everything in so short a time that most is skipped: each cell of it is there, with a value or with the reason why not.
reckon probe --time 0.2s -o whole.json
stderr_has --time
json_check whole.json status="$status" << 'END'
assert len({c["case"] for c in whole["cells"]}) >= 9 and len(whole["cells"]) > 100
states = {c["status"] for c in whole["cells"]}
assert states <= {"ok", "noisy", "skipped", "unsupported", "failed"} and "skipped" in states, states
assert all(c["status"] == "ok" or c["reason"] for c in whole["cells"]), whole["cells"]
assert status == ("4" if "failed" in states else "0"), (status, states)
END

# An older profile is replaced; nothing else is.
ok probe --time 2s --only host_memcpy -o p.json
json_check p.json <<< 'assert {c["case"] for c in p["cells"]} == {"host_memcpy"}'
# Cases between commas, each by its name; and a profile that was cut short says so.
refused "'host_memcopy'" \
  probe --only host_memcpy,host_memcopy -o cut.json
reckon probe --time 0.1s --only host_memcpy,fabric_aggregate -o cut.json
stderr_has --time
echo "my diary" > diary
refused diary probe --time 1s --only host_memcpy -o diary
[[ $(cat diary) == "my diary" ]] || fail "the diary is gone"
ok probe --time 1s --only host_memcpy -o diary --force
json_check diary <<< 'assert diary["schema"] == "reckon/profile"'

# --json: one document on standard output, nothing else, no file.
ok probe --time 1s --only core_to_core_latency_cas --json
json_check .last/stdout <<< 'assert stdout["schema"] == "reckon/profile"'
absent profile.json

# The list of cases, and slips in their names.
ok probe --list
stdout_matches '^host_memcpy +[a-z]' '^reduce_sum ' '^    reduce_sum m0 fp32 cold 2 sources 1 thread 1048576 B' \
  '^[0-9]+ cells on this machine, about [0-9]+ s'
# It is the same list each time, and what a probe measures: nothing in it depends on how busy the machine is.
grep '^    ' .last/stdout | sort > first
ok probe --list
grep '^    ' .last/stdout | sort > second
cmp first second
json_check whole.json listed="$(wc -l < first)" <<< 'assert len(whole["cells"]) == int(listed), listed'
ok probe --list --thorough --only reduce_sum
[[ $(grep -c '^    reduce_sum' .last/stdout) -ge 54 ]] || fail "not all sums are listed"
refused 'host_memcpy?' probe --only host_memcyp
refused "no time unit" probe --time 30
refused "--time" probe --time 1ms
refused "--rails" probe --rails

# Ranks of one machine would measure it at the same time: none of them does.
RANK=1 WORLD_SIZE=2 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=4000 \
  reckon probe --time 1s --only core_to_core_latency_cas -o rank.json
expect_status 2
stderr_has '2 ranks'
stderr_has "give --cluster"
[[ ! -e rank.json ]] || fail "a rank of several has measured"

# Where no memory can be shared by name, there is no shm, and everybody is told why.
if unshare -rm mount -t tmpfs -o ro none /dev/shm 2> /dev/null; then
  with_shm() { # OPTIONS_OF_TMPFS ARGUMENTS...
    run_as_last unshare -rm sh -c 'mount -t tmpfs -o "$1" none /dev/shm; shift; exec "$@"' sh "$1" "$RECKON" "${@:2}"
  }
  no_shm() { with_shm ro "$@"; } # ARGUMENTS...
  if grep -qE "^shm\$|^not available: shm" <<< "$("$RECKON" run --list)"; then
    no_shm run --list
    expect_status 0
    stdout_matches '^not available: shm: shm_open'
    if grep -qx shm "$last/stdout"; then fail "shm is offered"; fi
    no_shm probe --time 1s --only fabric_write_latency --transport shm
    expect_status 3
    stderr_has shm_open
    with_shm size=64k run --list # too small for libfabric, which says nothing
    expect_status 0
    stdout_matches '^not available: shm: libfabric'
  fi
  no_shm probe --time 2s --only fabric_write_latency -o no_shm.json
  json_check no_shm.json <<< 'assert not [c for c in no_shm["cells"] if c["transport"] == "shm"], no_shm'
fi

# No room for the result: said before or after, but never silently.
reckon probe --time 1s --only core_to_core_latency_cas -o /nonexistent/p.json
[[ $status == 2 || $status == 4 ]] || fail "exit code $status"
stderr_has "/nonexistent"
