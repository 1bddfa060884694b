# SPDX-License-Identifier: Apache-2.0
# serial
# Without a GPU: a probe says so and asks nothing of one, `run --list` too, and scripts/gpu-check ends with status 3.
source "$(dirname "$0")/../support/shell.sh"
[[ ! -e /dev/nvidiactl ]] || skip "this machine has the driver of a GPU"

ok probe --time 1s --only gpu_copy --only device_local_copy -o p.json
stdout_matches '^no GPU measured: .+'
json_check p.json << 'END'
assert [c["case"] for c in p["cells"]] == ["device_local_copy", "gpu_copy"], p["cells"]
assert all(c["status"] == "unsupported" and c["reason"].startswith("no GPU: ") for c in p["cells"]), p["cells"]
assert p["context"]["gpus_left_out"]
END

ok run --list
stdout_matches '^not available: cuda: .+'

run_as_last "$source_dir/scripts/gpu-check" -o out
expect_status 3
stderr_matches '^gpu-check: no GPU here: ' 'skipped are'
absent out

exits 2 probe --cluster --no-nvlink
