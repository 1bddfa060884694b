# SPDX-License-Identifier: Apache-2.0
# serial
# Without a GPU: a probe says so and asks nothing of one, `run --list` too, and scripts/gpu-check ends with status 3.
source "$(dirname "$0")/../support/shell.sh"
[[ ! -e /dev/nvidiactl ]] || skip "this machine has the driver of a GPU"

ok probe --budget 1s --only gpu_copy --only device_local_copy -o p.json
stdout_matches '^no GPU measured: .+'
python3 - << 'END'
import json
profile = json.load(open("p.json"))
assert [c["case"] for c in profile["cells"]] == ["device_local_copy", "gpu_copy"], profile["cells"]
assert all(c["status"] == "unsupported" and c["reason"].startswith("no GPU: ") for c in profile["cells"]), profile["cells"]
assert profile["context"]["gpus_left_out"]
END

ok run --list
stdout_matches '^not available: cuda: .+'

status=0
"$source_dir/scripts/gpu-check" -o out > stdout 2> stderr || status=$?
[[ $status == 3 ]] || fail "gpu-check ended with status $status"
grep -q '^gpu-check: no GPU here: ' stderr || fail "gpu-check said: $(cat stderr)"
grep -q 'skipped are' stderr || fail "gpu-check does not say what it skipped"
[[ ! -e out ]] || fail "gpu-check made a folder"

exits 2 probe --cluster --no-nvlink
