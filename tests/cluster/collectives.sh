# SPDX-License-Identifier: Apache-2.0
# Reduce-scatter, all-gather, broadcast and reduce between four machines over tcp: right, and no faster than the ports.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need_netlab

netlab up --workers 4 --rate 200mbit
rate=$(netlab payload 200mbit) make_profiles << 'END'
import os
ports = cell("port_bandwidth", float(os.environ["rate"]), at="m0", bytes=65536, direction="two_way", transport="tcp;ofi_rxm")
write("profile.json", "lab", [{"id": "m0", "count": 4, "members": ["w0", "w1", "w2", "w3"]}], [ports])
END
printf 'name,elements,dtype\ngradient,500001,fp32\n' > model.csv
for collective in reduce-scatter all-gather broadcast reduce; do
  ok plan --profile profile.json --workload model.csv --workers 4 --collective "$collective" -o "$collective.json"
  stdout_matches "^plan: .* over tcp;ofi_rxm$" "^ +collective +$collective"
  ok run "$collective.json" --check
  stdout_has 'no deadlock' 'no races'
  # How much later than predicted a busy computer is, is no matter here.
  cluster_run -- "$RECKON" run "$collective.json" --iterations 2 --warm-up 1 --tolerance 1e9% -o report.json
  expect_status 0
  json_check report.json collective="$collective" rate="$(netlab payload 200mbit)" << 'END'
assert report["transport"] == "tcp;ofi_rxm" and len({r["host"] for r in report["ranks"]}) == 4, report["ranks"]
# 2 MB: of a reduce-scatter and an all-gather three quarters pass each port, of the others all of it.
least = 500001 * 4 * (1 if collective in ("broadcast", "reduce") else 3 / 4) / float(rate)
assert near(report["prediction"]["bound_seconds"], least, 0.01), (report["prediction"], least)
assert report["min_seconds"] > 0.9 * least, (report["min_seconds"], least)
verified = report["verification"]
assert verified["wrong_elements"] == 0 and verified["checked_bytes"] > 0, verified
END
done
