# SPDX-License-Identifier: Apache-2.0
# timeout: 600
# A link that slows down in the middle of a run: `run --reprofile-every` measures it, the routing tables leave the device
# behind it, the sums stay right, and the iterations after the change are faster than those before it.
source "$(dirname "${BASH_SOURCE[0]}")/../cli/common.sh"

[[ $(id -u) == 0 ]] || skip "network namespaces need root"
for tool in ip tc bridge unshare python3; do
  command -v $tool > /dev/null || skip "$tool is not installed"
done
"$RECKON" run --list > transports
grep -qx 'tcp;ofi_rxm' transports || skip "libfabric's tcp is not available"
export NETLAB=again$((RANDOM % 10000))
netlab() { "$source_dir/scripts/netlab" "$@"; }
netlab up --workers 4 --servers 4 --rate 200mbit > up.log 2>&1 || skip "no network namespaces here: $(tail -1 up.log)"
trap 'netlab down; at_exit' EXIT

# 15.9 MiB in tensors of 4 KiB to 3 MiB.
printf 'name,elements,dtype\n' > model.csv
n=0
for elements in 1024 262144 131072 524288 2048 786432 524288 262144 4096 655360 1024 524288 393216 100000; do
  printf 'conv%d,%d,fp32\n' $((n++)) $elements >> model.csv
done
netlab run --time 150 -- "$RECKON" probe --cluster --seed 1 -o profile.json > probe.out 2>&1 || fail "probe: $(cat probe.out)"
reckon plan -p profile.json -m model.csv --servers 4 --strategy coarse -o plan.json
expect_status 0

# run NAME OPTIONS...: 12 iterations, in which machine s1 gets a quarter of its rate as soon as the fourth has begun.
run() {
  local name=$1 job
  shift
  netlab rate s1 200mbit
  netlab run --time 150 --log "$name" -- "$RECKON" -vv run plan.json -n 12 -w 2 --tolerance 1e9% \
    -o "$PWD/$name.json" "$@" > "$name.out" 2>&1 &
  job=$!
  for _ in $(seq 3000); do
    ! grep -q 'debug: iteration 5$' "$name/rank0.err" 2> /dev/null && kill -0 $job 2> /dev/null || break
    sleep 0.02
  done
  netlab rate s1 50mbit
  wait $job || fail "$name exited with $?: $(cat "$name.out" "$name/rank0.err")"
}
run follow --reprofile-every 3 -p "$PWD/profile.json" -m "$PWD/model.csv"
run stay

grep -q 'changed the plan' follow/rank0.err || fail "nothing was said of the change: $(cat follow/rank0.err)"
python3 - << 'END' || fail "see above: $(cat follow.out)"
import json
follow, stay, plan = (json.load(open(n + ".json")) for n in ("follow", "stay", "plan"))
assert next(r for r in plan["routing"] if r["client"] == 1)["bandwidth_proxy"] == 5, "client 1 did not begin with s1"
pauses = follow["reprofiling"]["pauses"]
assert [p["after_iterations"] for p in pauses] == [3, 6, 9], pauses
assert "replan" not in pauses[0], pauses[0]  # nothing had changed
pause = pauses[1]
slow = [p for p in pause["pairs"] if "s1" in (p["from"], p["to"])]
# From and to four clients, and of the proxies' ring the ways that the plan takes.
clients = [p for p in slow if "w" in p["from"] + p["to"]]
assert len(clients) == 8 and len(slow) > 8 and pause["ports"] == ["s1"], pause
assert all(3 < p["before_bytes_per_second"] / p["after_bytes_per_second"] < 5.5 for p in slow), slow
replan = pause["replan"]
assert any(line.startswith("routing/1/bandwidth_proxy: rank 5 -> rank ") for line in replan["changes"]), replan
assert not any("-> rank 5" in line for line in replan["changes"]), replan
assert "replan" not in pauses[2], pauses[2]
for report in (follow, stay):
    assert report["verification"]["ok"], report["verification"]
# Through the slow port of s1 an iteration takes about three times as long, without s1 little more than before.
assert replan["gain"] > 0.4, replan
fast = sorted(stay["iteration_seconds"][:3])[1]
late = sorted(stay["iteration_seconds"][6:])[3]
assert late > 1.8 * fast, stay["iteration_seconds"]
assert replan["after_seconds"] < 0.6 * late, (replan["after_seconds"], late)
assert abs(replan["after_seconds"] / replan["predicted_seconds"] - 1) < 0.15, replan
print(f"before the slow-down {fast:.3f} s, on the slow link {late:.3f} s, after the change {replan['after_seconds']:.3f} s")
print("pauses", [(p["measuring_seconds"], p["planning_seconds"]) for p in pauses])
END

# A rank that dies in a pause is named by all others.
netlab rate s1 200mbit
rm -rf dead
netlab run --time 100 --log dead -- "$RECKON" -vv run plan.json -n 12 -w 0 --tolerance 1e9% --peer-limit 2s \
  --reprofile-every 1 -p "$PWD/profile.json" -m "$PWD/model.csv" > dead.out 2>&1 &
job=$!
for _ in $(seq 3000); do
  ! grep -q 'debug: pause 1$' dead/rank6.err 2> /dev/null && kill -0 $job 2> /dev/null || break
  sleep 0.02
done
for pid in $(ip netns pids "$NETLAB-s2"); do
  [[ $(cat /proc/"$pid"/comm 2> /dev/null) != reckon ]] || kill -KILL "$pid"
done
wait $job && fail "a dead rank must be an error"
for rank in 0 1 2 3 4 5 7; do
  [[ $(cat dead/rank$rank.status) == 4 ]] || fail "rank $rank ended with $(cat dead/rank$rank.status): $(cat dead/rank$rank.err)"
  grep -q 'rank 6 (s2) died' dead/rank$rank.err || fail "rank $rank does not name the dead one: $(cat dead/rank$rank.err)"
done
echo "run --reprofile-every: all good"
