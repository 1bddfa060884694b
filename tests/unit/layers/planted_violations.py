#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plants one violation at a time in a small tree: scripts/check-layers must name it, and only it."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

CHECK = sys.argv.pop(1)

CLEAN = {
    "lib/core/units.hpp": "#include <cstdint>\n#include <sys/stat.h>\n",
    "lib/core/json.cpp": '#include "core/json.hpp"\n#include <nlohmann/json.hpp>\n',
    "lib/kernels/load.cpp": '#include "core/units.hpp"\n#include <Eigen/Dense>\n',
    "lib/movers/mover.hpp": '#include "topology/topology.hpp"\n',
    "lib/run/lanes.cpp": '#include "movers/mover.hpp"\n#include "stats/fit.hpp"\n// #include "strategies/lower.hpp"\n',
    "lib/strategies/lower.cpp": '#include "schedule/schedule.hpp"\n#include "topology/topology.hpp"\n',
    "lib/strategies/CMakeLists.txt": "reckon_module(strategies SOURCES run.cpp DEPENDS documents # not run\n)\n",
    "apps/reckon/commands.hpp": "#include <functional>\n",
    "apps/reckon/run.cpp": '#include "commands.hpp"\n#include "movers/mover.hpp"\n',
    "apps/reckon/command_line.cpp": "#include <CLI/CLI.hpp>\n",
}

# File, its text, what must be said about it.
PLANTED = [
    ("lib/core/file.cpp", '#include "stats/fit.hpp"\n', "core must not include stats"),
    ("lib/run/lanes.cpp", '\n#include "strategies/lower.hpp"\n', ":2: run must not include strategies"),
    ("lib/movers/host.cpp", '#include "documents/plan.hpp"\n', "movers must not include documents"),
    ("lib/schedule/checker.cpp", '  #  include "equations/split.hpp"\n', "schedule must not include equations"),
    ("lib/strategies/ring.cpp", "#include <hwloc.h>\n", "strategies must not include hwloc"),
    ("lib/documents/deep/plan.cpp", "#include <rdma/fabric.h>\n", "documents must not include libfabric"),
    ("lib/kernels/sum.cu", "#include <rdma/fi_rma.h>\n", "kernels must not include libfabric"),
    ("lib/compare/plan.hpp", "#include <cuda_runtime_api.h>\n", "compare must not include CUDA"),
    ("lib/present/plot.cpp", "#include <Eigen/Dense>\n", "present must not include Eigen"),
    ("lib/probe/x.cpp", "#include <zmq.hpp>\n", "<zmq.hpp>: neither"),
    ("lib/core/x.cpp", '#include "file.hpp"\n', 'write "module/file.hpp"'),
    ("lib/core/x.cpp", '#include "../stats/fit.hpp"\n', "no module .."),
    ("lib/core/x.cpp", '#include "support/x.hpp"\n', "no module support"),
    ("lib/transport/x.cpp", "#include <vector>\n", "module transport is not in the table"),
    ("lib/stats/CMakeLists.txt", "reckon_module(stats SOURCES a.cpp DEPENDS core documents)\n", "stats must not link documents"),
    ("lib/run/CMakeLists.txt", "target_link_libraries(reckon_run PUBLIC reckon::strategies)\n", "run must not link strategies"),
    ("lib/equations/CMakeLists.txt", "target_link_libraries(reckon_equations PRIVATE CUDA::cudart_static)\n", "equations must not link CUDA"),
    ("apps/reckon/probe.cpp", '#include "kernels/reduce.hpp"\n', "apps must not include kernels"),
    ("apps/reckon/probe.cpp", '#include "movers/fabric.hpp"\n', "apps must not include movers"),
    ("apps/reckon/run.cpp", "#include <CLI/CLI.hpp>\n", "only apps/reckon/command_line.cpp includes CLI11"),
    ("apps/reckon-sim/main.cpp", '#include "documents/plan.hpp"\n', "apps-sim must not include documents"),
]


def check(files):
    with tempfile.TemporaryDirectory(prefix="reckon-layers.") as root:
        for name, text in files.items():
            path = pathlib.Path(root, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        done = subprocess.run([sys.executable, CHECK, root], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout.splitlines()[:-1], done.stdout + done.stderr


class PlantedViolations(unittest.TestCase):
    def test_clean_tree_passes(self):
        status, violations, output = check(CLEAN)
        self.assertEqual((status, violations), (0, []), output)

    def test_each_violation_is_named(self):
        for name, text, said in PLANTED:
            with self.subTest(file=name, text=text):
                status, violations, output = check({**CLEAN, name: text})
                self.assertEqual((status, len(violations)), (1, 1), output)
                self.assertIn(said, violations[0])
                self.assertTrue(violations[0].startswith(name) or "not in the table" in said, violations[0])

    def test_the_page_lists_the_modules(self):
        page = "docs/architecture.md"
        text = pathlib.Path(CHECK).parent.parent.joinpath(page).read_text(encoding="utf-8")
        self.assertEqual(check({**CLEAN, page: text})[:2], (0, []))
        row = next(line for line in text.splitlines(keepends=True) if line.startswith("| `launch` |"))
        for changed, said in ((row.replace("| core |", "| core stats |"), "launch uses core"), ("", "lacks launch"),
                              (row + row.replace("launch", "lunch"), "there is no such module")):
            _, violations, output = check({**CLEAN, page: text.replace(row, changed)})
            self.assertEqual(len(violations), 1, output)
            self.assertIn(said, violations[0])

    def test_a_folder_without_lib_is_an_error(self):
        self.assertEqual(check({"README.md": ""})[0], 2)


if __name__ == "__main__":
    unittest.main()
