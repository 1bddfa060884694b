# SPDX-License-Identifier: Apache-2.0
# labels: nightly
# A job on a cluster of which something became slow since the profile: the run names it.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"
need_netlab

netlab up --workers 3 --servers 1 --rate 100mbit
rate=$(netlab payload 100mbit) make_profiles << 'END'
import os
members = ["w0", "w1", "w2", "s0"]
ports = cell("port_bandwidth", float(os.environ["rate"]), at="m0", bytes=65536, direction="two_way", transport="tcp;ofi_rxm")
write("profile.json", "lab", [{"id": "m0", "count": 4, "members": members}], [ports])
END
printf 'name,elements,dtype\ngradient,2000000,fp32\n' > model.csv
ok plan --profile profile.json --workload model.csv --workers 3 --servers 1 --strategy byteps_split -o plan.json

# found NAME WANTED...: what a run says of its slow places, in any order.
found() {
  cluster_run -- "$RECKON" run plan.json --iterations 3 --warm-up 1 -o report.json
  expect_status 1
  json_check report.json wanted="${*:2}" << 'END'
d = report["diagnosis"]
print(d["verdict"], file=sys.stderr)
wanted = {place.split("=")[0]: float(place.split("=")[1]) for place in wanted.split()}
names = {p["kind"] + ":" + "-".join(report["ranks"][r]["host"] for r in p["ranks"]): p["factor"] for p in d["places"]}
assert names.keys() == wanted.keys(), d
assert all(0.7 < names[name] / wanted[name] < 1.3 for name in wanted), d
END
}
netlab rate w2 40mbit
found port port:w2=0.4
stdout_matches "^slow place +w2's port carries 0\.[345][0-9] of the profile's 11\.9[0-9] MB/s" '^next +reckon probe --cluster '
netlab rate w2 100mbit
netlab rate s0 60mbit
found server port:s0=0.6
netlab rate s0 100mbit
for machine in w0 w1 w2 s0; do netlab rate $machine 60mbit; done
found all every_port:=0.6
