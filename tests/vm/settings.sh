# SPDX-License-Identifier: Apache-2.0
# timeout: 900
# ACS bits that are set in the ports of a machine with PCIe switches are found, with the path; recorded files say the same.
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

vm run --numa --displays --timeout 600 --log "$PWD/vm" << 'END'
cd /vmlab
"$RECKON" probe --time 1s --only host_memcpy --record clean --name vm -o clean.json || exit
# The port above the second display: request and completion redirect, bits 2 and 3 of the control register. QEMU has the
# capability of a root port at 0x148, its control register 6 bytes further on.
display=$(grep -l 0x0380 /sys/bus/pci/devices/*/class | tail -n 1)
port=$(basename "$(dirname "$(readlink -f "$(dirname "$display")")")")
printf '\x0c\x00' | dd of="/sys/bus/pci/devices/$port/config" bs=1 seek=$((0x148 + 6)) conv=notrunc status=none || exit
"$RECKON" probe --time 1s --only host_memcpy --record bad --name vm -o bad.json || exit
echo "$port" > port
END
expect_status 0
cp vm/clean.json measured.json
ok probe --topology vm/clean --name vm -o clean.json
ok probe --topology vm/bad --name vm -o bad.json
reckon check clean.json --json
cp "$last/stdout" good.json
reckon check bad.json --json
cp "$last/stdout" faulty.json
json_check clean.json measured.json good.json faulty.json port="$(< vm/port)" << 'END'
assert clean["settings"] == measured["settings"] and clean["topology"] == measured["topology"]
acs = lambda verdict: [f for f in verdict["findings"] if f["what"].startswith("ACS")]
assert acs(good) == [], good["findings"]
[found] = acs(faulty)
# Below that switch are two displays and the ports p0, p1 and, behind another switch, p2: four paths pass the second
# display's port.
assert found["place"].startswith("m0/gpu1 -> ") and found["what"] == f"ACS of {port}", found
assert found["others"] == 3 and "ReqRedir+ CmpltRedir+" in found["value"], found
END
