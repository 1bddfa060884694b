# SPDX-License-Identifier: Apache-2.0
# labels: nightly
# timeout: 600
# A link that slows down in the middle of a run: `run --reprofile-every` measures it, the routing tables leave the device
# behind it, and the sums stay right; and a rank that dies in a pause is named.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need_netlab
netlab up --workers 4 --servers 4 --rate 200mbit

# 4 MiB in tensors of 1 KiB to 768 KiB, and a profile that knows the links' rate.
printf 'name,elements,dtype\n' > model.csv
n=0
for elements in 256 65536 32768 131072 512 196608 131072 65536 1024 163840 256 131072 98304 25000; do
  printf 'conv%d,%d,fp32\n' $((n++)) $elements >> model.csv
done
rate=$(netlab payload 200mbit)
make_profiles << END
cluster("profile.json", "made", [f"{kind}{i}" for kind in "ws" for i in range(4)], lambda a, b: $rate, 2e-4)
END
ok show profile.json --case pair_write
stdout_has 'time of a write'
ok plan -p profile.json -m model.csv --workers 4 --servers 4 --strategy coarse --proxy-bytes all -o plan.json
device=$(json_check plan.json <<< 'print(next(r["bandwidth_proxy"] for r in plan["routing"] if r["client"] == 1))')
victim=s$((device - 4))

# That device gets a tenth of its rate as soon as the first pause is over. What busy processors do to short
# writes saves less than leaving it.
start() { # NAME OPTIONS...: sets job
  cluster_run --log "$1" -- "$RECKON" -vv run plan.json --tolerance 1e9% -p "$PWD/profile.json" -m "$PWD/model.csv" \
    "${@:2}" &
  job=$!
}
start follow -n 20 -w 2 --reprofile-every 4 --reprofile-gain 70% -o "$PWD/follow.json"
until_said follow/rank0.err 'debug: iteration 6' $job
netlab rate $victim 20mbit
wait $job
[[ $(cat follow/rank0.status) == 0 ]] || fail "the run ended with $(cat follow/rank0.status): $(cat follow/rank0.err)"
grep -q 'changed the plan' follow/rank0.err || fail "nothing was said of the change: $(cat follow/rank0.err)"
json_check follow.json device="$device" victim="$victim" << 'END'
pauses = follow["reprofiling"]["pauses"]
assert [p["after_iterations"] for p in pauses] == [4, 8, 12, 16], pauses
changed = [p for p in pauses if "replan" in p]
assert changed and "replan" not in pauses[0], pauses  # before the first nothing had changed
pause = changed[0]
measured = [p for p in pause["pairs"] if victim in (p["from"], p["to"])]
# From and to four clients, and of the proxies' ring the ways that the plan takes.
ways = {(p["from"], p["to"]) for p in measured}
assert len([w for w in ways if "w" in w[0] + w[1]]) == 8 and len(ways) > 8, pause
longest = max(p["bytes"] for p in measured)
assert all(p["after_bytes_per_second"] < p["before_bytes_per_second"] / 5 for p in measured if p["bytes"] == longest), measured
lines = [line for p in changed for line in p["replan"]["changes"]]
assert any(line.startswith(f"routing/1/bandwidth_proxy: rank {device} -> rank ") for line in lines), lines
assert not any(f"-> rank {device}" in line for line in lines), lines
assert pause["replan"]["predicted_seconds"] < pause["replan"]["running_predicted_seconds"], pause["replan"]
assert follow["verification"]["ok"], follow["verification"]
print("iterations took", [follow["iteration_seconds"]] + [p["replan"]["iteration_seconds"] for p in changed])
print("pauses", [(p["measuring_seconds"], p["planning_seconds"]) for p in pauses])
END

# A rank that dies in a pause is named by all others.
netlab rate $victim 200mbit
start dead -n 20 -w 0 --reprofile-every 1
until_said dead/rank6.err 'debug: pause 1' $job
# shellcheck disable=SC2046
kill -KILL $(processes s2)
wait $job
for rank in 0 1 2 3 4 5 7; do
  [[ $(cat dead/rank$rank.status) == 4 ]] || fail "rank $rank ended with $(cat dead/rank$rank.status): $(cat dead/rank$rank.err)"
  grep -q 'rank 6 (s2) died' dead/rank$rank.err || fail "rank $rank does not name the dead one: $(cat dead/rank$rank.err)"
done
