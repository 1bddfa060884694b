# SPDX-License-Identifier: Apache-2.0
# What the system says of the machine's paths: read by probe, kept by --record, judged by check.
source "$(dirname "$0")/../support/shell.sh"

ok probe --time 1s --only host_memcpy --record kept --name box -o here.json
ok probe --topology kept --name box -o there.json
json_check here.json there.json << 'END'
# What this computer says, and what its files say elsewhere.
kernel = open("/proc/sys/kernel/osrelease").read().strip()
said = {(s["place"], s["name"]): s["value"] for s in here["settings"]}
assert said["m0", "kernel"] == kernel, said
stays = lambda p: [s for s in p["settings"] if not s["name"].endswith("_while_measured")]
assert stays(here) == stays(there)
# A virtual machine may have been given memory meanwhile.
tree = lambda p: [{k: v for k, v in o.items() if k != "bytes"} for o in p["topology"]["objects"]]
assert tree(here) == tree(there)
END
ok probe --topology kept --name box -o again.json
cmp -s there.json again.json || fail "the same files give another profile"

# A finding has its place, its value and its status; another machine's values are a cause of differences.
echo 'always madvise [never]' > kept/sys/kernel/mm/transparent_hugepage/enabled
ok probe --topology kept --name box -o bad.json
reckon check bad.json --json
expect_status 1
json_check .last/stdout << 'END'
found = [f for f in stdout["findings"] if f["what"] == "transparent huge pages"]
assert [(f["kind"], f["place"], f["value"]) for f in found] == [("setting", "m0", "never")], stdout["findings"]
assert "/sys/kernel/mm/transparent_hugepage/enabled" in found[0]["remedy"], found
END
reckon diff there.json bad.json
stdout_has "transparent_huge_pages"

# No setting of a recorded or described machine is a fault.
for file in "$source_dir"/tests/golden/topology/machines/*.xml; do
  ok probe --topology "$file" --force -o other.json
  reckon check other.json --json
  json_check .last/stdout <<< 'assert all(f["kind"] != "setting" for f in stdout["findings"]), stdout["findings"]'
done
for file in $(grep -rl --include='*.json' '"schema": "reckon/profile"' "$source_dir"/{profiles,docs/results,tests/golden}); do
  reckon check "$file" --json
  json_check .last/stdout <<< 'assert all(f["kind"] != "setting" for f in stdout["findings"]), stdout["findings"]'
done

# No folder is written over, and only what is measured here is kept.
refused kept probe --time 1s --only host_memcpy --record kept -o no.json
refused --record probe --topology kept --record other -o no.json
refused --record probe --cluster --record other -o no.json
absent no.json
refused machine.xml probe --topology . -o no.json
