#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Breaks one rule of scripts/tidy at a time in a small tree: it must say so, where, and nothing else."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

TIDY = sys.argv.pop(1)

CLEAN = {
    "lib/core/used.hpp": "int used(int a);\nclass Box {\n  int inner();\npublic:\n  explicit Box(int a);\n  ~Box();\n};\n",
    "lib/core/used.cpp": '#include "core/used.hpp"\nint used(int a) {\n  return a; // } not the end {\n}\n',
    "lib/run/user.cpp": 'const char* k_text = "{";\nint main() { return used(1\'000); }\n',
    "scripts/tool": "#!/bin/sh\nstep() {\n  echo\n}\nstep\n",
}


def lines(count, text="  a = a * 7 + {0} / k_some_{0} - other({0});"):
    return "".join(text.format(number) + "\n" for number in range(count))


def piece(first, name):
    return f"void {name}() {{\n{lines(first, '  keep_what_is_read(values, {0} + offset, limit);')}}}\n"


LONG = "namespace reckon {\nint Box::long_one(const char* text)\n    noexcept {\n" + lines(67) + "}\n}\n"
LONG_TEST = "TEST(Suite, LongCase) {\n" + lines(69) + "}\n"
LONG_PYTHON = "def long_one():\n    a = 1\n" + lines(69, "    a += {0}") + "\n"
LONG_SHELL = "long_one() {\n" + lines(69, "  echo {0}") + "}\n"

# File, its text (None: it is removed), what must be said.
BROKEN = [
    ("lib/core/x.cpp", LONG.replace("a = a", "{ a = a").replace(");", "); }") + "", None),
    ("lib/core/x.cpp", LONG.replace("noexcept {\n", "noexcept {\n\n"), "lib/core/x.cpp:2: Box::long_one: a function of 71 lines; at most 70"),
    ("tests/unit/core/x_test.cpp", LONG_TEST, "tests/unit/core/x_test.cpp:1: Suite.LongCase: a function of 71 lines"),
    ("python/reckon/x.py", LONG_PYTHON, "python/reckon/x.py:1: long_one: a function of 71 lines"),
    ("scripts/x.sh", LONG_SHELL, "scripts/x.sh:1: long_one: a function of 71 lines"),
    ("scripts/x", "#!/usr/bin/env bash\n" + LONG_SHELL, "scripts/x:2: long_one: a function of 71 lines"),
    ("tests/cli/x.sh", lines(601, "echo {0}"), "tests/cli/x.sh: a file of 601 lines; at most 600"),
    ("tests/cli/x.sh", lines(600, "echo {0}"), None),
    ("lib/core/x.hpp", "/// Of nobody.\n[[nodiscard]] double forgotten(double a);\n", "lib/core/x.hpp:2: forgotten: a public function that no other file uses"),
    ("lib/core/x.hpp", "struct X {\n  void forgotten() const noexcept { }\n};\n", "lib/core/x.hpp:2: forgotten: a public function"),
    ("lib/core/x.hpp", "class X : public Y {\n  void own();\npublic:\n  X();\n  bool operator==(const X&) const = default;\n  void write() override;\nprivate:\n  void own_too();\n};\n", None),
    ("lib/core/x.cpp", piece(6, "first") + piece(6, "second"), "lib/core/x.cpp:2, lib/core/x.cpp:10: the same 6 lines of code stand in 2 places"),
    ("lib/core/x.cpp", piece(5, "first") + "int x;\n" + piece(5, "second"), None),
]


def tidy(root, *arguments):
    done = subprocess.run([sys.executable, TIDY, str(root), *arguments], capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    return done.returncode, done.stdout.splitlines()[:-1]


def put(root, files):
    for name, text in files.items():
        path = pathlib.Path(root, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


class Tidy(unittest.TestCase):
    def tree(self):
        folder = tempfile.TemporaryDirectory(prefix="reckon-tidy.")
        self.addCleanup(folder.cleanup)
        put(folder.name, CLEAN | {"tests/tidy.toml": ""})
        self.assertEqual(tidy(folder.name, "--update"), (0, []))
        return pathlib.Path(folder.name)

    def without_modules(self, root):
        status, said = tidy(root)
        rest = [line for line in said if "--update" not in line]
        self.assertEqual(status, 1 if said else 0)
        return rest

    def test_each_rule_is_said_and_nothing_else(self):
        for name, text, wanted in BROKEN:
            with self.subTest(name=name, wanted=wanted):
                root = self.tree()
                put(root, {name: text})
                said = self.without_modules(root)
                self.assertEqual(len(said), 0 if wanted is None else 1, said)
                if wanted is not None:
                    self.assertTrue(said[0].startswith(wanted), said)

    def test_a_module_grows_by_a_line_of_the_change(self):
        root = self.tree()
        put(root, {"lib/run/user.cpp": CLEAN["lib/run/user.cpp"] + "\n"})
        self.assertEqual(tidy(root)[1], [
            "lib/run: 3 lines, and 2 in tests/tidy.toml: make it smaller, or let this change raise its line (--update)"])
        self.assertEqual(tidy(root, "--update"), (0, []))

    def test_a_module_that_shrank_lowers_its_line(self):
        root = self.tree()
        put(root, {"lib/run/more.cpp": lines(50, "int a{0};")})
        tidy(root, "--update")
        put(root, {"lib/run/more.cpp": lines(35, "int a{0};")})
        self.assertEqual(tidy(root), (0, []))
        put(root, {"lib/run/more.cpp": ""})
        self.assertIn("tests/tidy.toml: [modules] lib/run: 52, and it has 2 lines by now: lower it", tidy(root)[1][0])

    def test_an_exception_may_only_become_less(self):
        root = self.tree()
        put(root, {"lib/core/x.cpp": LONG.replace("noexcept {\n", "noexcept {\n\n\n")})
        tidy(root, "--update")
        self.assertEqual(tidy(root), (0, []))
        put(root, {"lib/core/x.cpp": LONG.replace("noexcept {\n", "noexcept {\n\n\n\n")})
        self.assertEqual(self.without_modules(root), [
            "lib/core/x.cpp:2: Box::long_one: a function of 73 lines; at most 70 are allowed, of this one 72: split it"])
        put(root, {"lib/core/x.cpp": LONG})
        self.assertEqual(tidy(root)[1], [
            "tests/tidy.toml: [functions] lib/core/x.cpp:Box::long_one: needed no more; delete the line, or all such "
            "with scripts/tidy --update"])


if __name__ == "__main__":
    unittest.main()
