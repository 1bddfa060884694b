#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""scripts/test-results: a test that was skipped for want of a package fails, one that lacks a device does not."""

import os
import pathlib
import subprocess
import sys
import tempfile
from xml.sax.saxutils import escape

CASES = [  # ctest's name, its output, whether it is an executable of GoogleTest, the exit status
    ("cli.run", "", False, 0),
    ("gpu", "[ RUN      ] a.b\nx.hpp:25: Skipped\ncudaGetDeviceCount(): no CUDA-capable device is detected\n", True, 0),
    ("discover", "x.cpp:55: Skipped\nthis machine has a GPU\n", True, 0),
    ("torch.training", "skipped: /usr/bin/python3 has no torch (package python3-torch; scripts/install-packages --torch)\n", False, 0),
    ("cluster.probe", "skipped: no clusters here: network namespaces need root; start it with sudo\n", False, 0),
    ("cluster.probe", "skipped: no clusters here: 'ip' is missing; install iproute2 and util-linux\n", False, 1),
    ("cluster.probe", "skipped: libfabric's tcp is not available\n", False, 1),
    ("vm.run", "skipped: install qemu-system-x86 cpio\n", False, 1),
    ("vm.run", "skipped: the machine is an x86-64 one, and this computer is aarch64\n", False, 0),
    ("documents.schemas", "skipped: the Python module jsonschema is missing (Debian: python3-jsonschema)\n", False, 1),
    ("present", "x.cpp:95: Skipped\ngnuplot is not installed\n", True, 1),
]

with tempfile.TemporaryDirectory() as folder:
    file = pathlib.Path(folder, "results.xml")
    for name, output, executable, wanted in CASES:
        skipped = "" if executable or not output else '<skipped message="SKIP_RETURN_CODE=77"/>'
        file.write_text(f'<testsuite><testcase name="{name}" time="1.5">{skipped}<system-out>{escape(output)}</system-out></testcase></testsuite>')
        for packages in ("", "1"):
            environment = {**os.environ, "RECKON_SKIP_PACKAGES": packages}
            done = subprocess.run([sys.executable, sys.argv[1], file], capture_output=True, text=True, env=environment, check=False)
            assert done.returncode == (0 if packages else wanted), (name, output, done)
            assert (f"NOT RUN: {name}: " in done.stdout) == (wanted == 1), (name, output, done)
