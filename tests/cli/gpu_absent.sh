# SPDX-License-Identifier: Apache-2.0
# serial
# Without a GPU: a probe says so and asks nothing of one, `run --list` too, a plan of GPUs is not run, and scripts/gpu-check ends
# with status 3.
source "$(dirname "$0")/../support/shell.sh"
[[ ! -e /dev/nvidiactl ]] || skip "this machine has the driver of a GPU"

ok probe --time 1s --only gpu_copy --only device_local_copy --only processor_loop -o p.json
stdout_matches '^no GPU measured: .+'
json_check p.json << 'END'
absent = [c for c in p["cells"] if c["case"] != "processor_loop"]
assert [c["case"] for c in absent] == ["device_local_copy", "gpu_copy"], p["cells"]
assert all(c["status"] == "unsupported" and c["reason"].startswith("no GPU: ") for c in absent), p["cells"]
assert p["context"]["gpus_left_out"]
END
# Nothing of what is asked for is here: then there is nothing to write.
exits 3 probe --only gpu_copy,device_local_copy -o none.json
stderr_has "gpu_copy, device_local_copy: no GPU: "
absent none.json
ok probe --list --only gpu_copy

ok run --list
stdout_matches '^not available: cuda: .+'

# A plan of eight GPUs, and the remedy that its refusal names.
exits 3 run "$source_dir/plans/inside-pcie.json"
stderr_has "the plan needs 8 GPUs, and this machine has none (cuda: "
stderr_has "--transport host"
ok run "$source_dir/plans/inside-pcie.json" --transport host --check

run_as_last "$source_dir/scripts/gpu-check" -o out
expect_status 3
stderr_matches '^gpu-check: no GPU here: ' 'skipped are'
absent out

exits 2 probe --cluster --no-nvlink
