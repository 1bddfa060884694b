# SPDX-License-Identifier: Apache-2.0
# timeout: 900
# serial: what it measures is this machine's, too
# `run --reprofile-every` on one machine: what it refuses and why, and runs with pauses over emulated links, of which some are
# slower than the plan's profile has them. A link that slows down in the middle is in tests/cluster/reprofile.sh.
source "$(dirname "$0")/../support/shell.sh"
command -v python3 > /dev/null || skip "python3 is not installed"

# A cluster of two clients and two devices with links of 150 MB/s; the same with another name; and with s1 at 15 MB/s.
make_profiles << 'END'
for name, slow in ("made", ""), ("another", ""), ("slow", "s1"):
    cluster(f"{name}.json", name, ["w0", "w1", "s0", "s1"], lambda a, b: 1.5e7 if slow in (a, b) else 1.5e8)
END
mv made.json profile.json
# The first and the last with latencies and rates alone.
make_profiles << 'END'
for name, slow in ("rates", ""), ("slow-rates", "s1"):
    names, tcp = ["w0", "w1", "s0", "s1"], {"transport": "tcp;ofi_rxm"}
    rate = lambda *pair: 1.5e7 if slow in pair else 1.5e8
    cells = [cell("port_bandwidth", rate(m), at=m, **tcp) for m in names]
    for a, b in pairs(names):
        cells += [cell("pair_latency", 1e-3, at=a, to=b, bytes=8, direction="one_way", **tcp),
                  cell("pair_bandwidth", rate(a, b), at=a, to=b, bytes=4194304, direction="one_way", **tcp)]
    write(f"{name}.json", name, names, cells)
END
printf 'name,elements,dtype\nhead,200001,fp32\nbody,3000,fp32\ntail,150000,fp32\n' > model.csv
printf 'name,elements,dtype\nhead,200001,fp32\n' > other.csv
make() { ok plan -p profile.json -m model.csv --workers 2 --servers 2 "$@"; }
make --strategy coarse --proxy-bytes all -o plan.json
make --strategy ring -o ring.json
places='server worker' # auto is one of the two
[[ ! ${NIGHTLY:-} ]] || places+=' auto'
for place in $places; do
  make --strategy coarse --proxy-bytes all --optimizer adam --update $place -o step-$place.json
done
# This machine's processors may be full: what that does to writes saves less than half of an iteration; leaving a link of
# slow.json saves some 80 %, and 70 % beside programs that take most of the processors.
again=(--reprofile-every 2 --reprofile-gain 50% -p profile.json -m model.csv)

# What it needs, and that it must be the plan's own.
refused --workload run plan.json --reprofile-every 2
refused --reprofile-every run plan.json --reprofile-every 0 -p profile.json -m model.csv
refused --reprofile-gain run plan.json --reprofile-gain 5%
for gain in 100% -1% much; do
  refused "--reprofile-gain" \
    run plan.json --reprofile-every 2 -p profile.json -m model.csv --reprofile-gain "$gain"
done
refused "'made'" \
  run plan.json --reprofile-every 2 -p another.json -m model.csv
[[ $(grep -o 'sha256:[0-9a-f]\{64\}' "$last/stderr" | sort -u | wc -l) == 2 ]] || fail "the error lacks both digests"
refused "--workload other.csv" run plan.json --reprofile-every 2 -p profile.json -m other.csv
refused --strategy \
  run ring.json "${again[@]}"
for option in --checkpoint --resume --trace; do # of one plan, and the plan may change
  refused "$option" run step-server.json "${again[@]}" $option folder
  stderr_has 'leave one'
done
refused 'tcp;ofi_rxm' \
  run plan.json "${again[@]}" --transport host

"$RECKON" run --list > transports
grep -qx 'tcp;ofi_rxm' transports || skip "the rest needs libfabric's tcp"
# Links as the profile has them: pauses after two and after four of six iterations, none after the last; nothing changes.
export RECKON_FABRIC_ADDRESS=127.0.0.1
ok run plan.json "${again[@]}" -n 6 -w 1 --tolerance 1e9% --inject profile.json -o same.json
stdout_has "every element correct"
# s1 at a tenth of its rate: the first pause shows it, and client 1 leaves it.
ok run plan.json "${again[@]}" -n 6 -w 1 --tolerance 1e9% --inject slow.json -o report.json
stdout_has 'again every 2' 'port of s1'
stdout_has "every element correct"
stdout_matches 'routing/1/bandwidth_proxy: rank 3 -> rank 2'
stderr_has "after 2 iterations: " "changed the plan: "
json_check same.json report.json << 'END'
def segments(report):
    pauses = report["reprofiling"]["pauses"]
    return [report["iteration_seconds"]] + [p["replan"]["iteration_seconds"] for p in pauses if "replan" in p]
for run in same, report:
    again = run["reprofiling"]
    assert again["every_iterations"] == 2 and again["write_bytes"] == [4096, 1048576], again
    assert [p["after_iterations"] for p in again["pauses"]] == [2, 4], again
    assert all(p["measuring_seconds"] > 0 for p in again["pauses"])
    made = segments(run)
    assert sum(map(len, made)) == 6, made
    # Both clients' gradients in 6 counted iterations, one to warm up, and one more after each change.
    assert run["verification"]["ok"]
    assert run["verification"]["checked_bytes"] == (6 + len(made)) * 2 * 353001 * 4, run["verification"]
same, slow = (run["reprofiling"]["pauses"] for run in (same, report))
assert not any("replan" in p for p in same), same
replan = slow[0]["replan"]
# Short writes are at the mercy of this machine's processors; long ones are what is emulated.
found = {(p["from"], p["to"]): p["before_bytes_per_second"] / p["after_bytes_per_second"]
         for p in slow[0]["pairs"] if p["bytes"] == 1048576}
# From and to both clients, and the ways of the proxies' ring. Others may have changed with full processors.
slower = {(a, "s1") for a in ("w0", "w1", "s0")} | {("s1", b) for b in ("w0", "w1", "s0")}
assert slower <= set(found), slow[0]
assert all(found[pair] > 8 for pair in slower), found
assert replan["predicted_seconds"] < 0.5 * replan["running_predicted_seconds"], replan
assert replan["gain"] > 0.2, replan
assert "replan" not in slow[1], slow[1]
END
# Without pair_write the latency and the rate of a pair say how long its writes take.
ok plan -p rates.json -m model.csv --workers 2 --servers 2 --strategy coarse --proxy-bytes all -o rates-plan.json
ok run rates-plan.json --reprofile-every 2 --reprofile-gain 50% -p rates.json -m model.csv -n 4 -w 1 --tolerance 1e9% \
  --inject slow-rates.json
stdout_has "every element correct"
stdout_matches 'routing/1/bandwidth_proxy: rank 3 -> rank 2'
ok show report.json
stdout_says 'what came'
ok diff report.json report.json
exits 1 diff same.json report.json
stdout_matches "replans +0 +-> +1"

# With an optimizer's steps: what parameters and states are does not depend on pauses, nor on a change of plan, which takes
# them along to other ranks, bit for bit. What warms up after a change is one of the steps that were asked for.
for place in $places; do
  ok run step-$place.json -n 4 -w 1 --tolerance 1e9% -o alone.json
  for links in profile slow; do
    [[ $links$place != profileworker || ${NIGHTLY:-} ]] || continue
    ok run step-$place.json "${again[@]}" -n 4 -w 1 --tolerance 1e9% --inject $links.json -o step.json
    stdout_has "every element correct"
    [[ $links == profile ]] || stderr_has "routing/1/bandwidth_proxy: rank 3 -> rank 2"
    json_check step.json alone.json <<< '
step, alone = ((p["digest"], p["steps"]) for p in (step["parameters"], alone["parameters"]))
assert step == alone, (step, alone)'
  done
done

# Ctrl-C in a pause: no report, and nothing left behind.
ls /dev/shm > shm.before
python3 - "$RECKON" << 'END' || fail "see above"
import os, signal, subprocess, sys
run = [sys.argv[1], "-vv", "run", "plan.json", "--reprofile-every", "1", "-n", "1000", "-w", "0", "-p", "profile.json",
       "-m", "model.csv", "--inject", "profile.json", "-o", "none.json"]
job = subprocess.Popen(run, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True)
for line in job.stderr:
    if line.startswith("reckon: debug: pause"):
        break
job.send_signal(signal.SIGINT)
rest = job.stderr.read()  # ends when the last process of the job has
assert job.wait() == 130, (job.returncode, rest)
assert not os.path.exists("none.json")
END
ls /dev/shm | diff shm.before - || fail "shared memory was left"
