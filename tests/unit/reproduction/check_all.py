#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""scripts/reproduce all: tables are put into documents that people wrote; what fails is named, the rest is made, the status is 4."""

import argparse
import contextlib
import io
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(sys.argv[1]) / "scripts"))
from reproduction import everything  # noqa: E402

WRITTEN = "# By hand\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nSee above.\n\n| other |\n|---|\n| x |\n\n| a | b |\n|---|---|\n| 3 | 4 |\n"
MADE = "# Made\n\n| a   | b |\n|-----|---|\n| 100 | 2 |\n\n| a | b |\n|---|---|\n| 3 | 4 |\n| 5 | 6 |\n"


def expect(what, got, wanted):
    if got != wanted:
        sys.exit(f"{what}: {got!r} instead of {wanted!r}")


def tables():
    made = everything.with_tables(WRITTEN, MADE)
    expect("in the order of those with the same header", made, WRITTEN
           .replace("| a | b |\n|---|---|\n| 1 | 2 |", "| a   | b |\n|-----|---|\n| 100 | 2 |")
           .replace("| 3 | 4 |", "| 3 | 4 |\n| 5 | 6 |"))
    expect("once more changes nothing", everything.with_tables(made, MADE), made)
    for name, document, text in (("a table more", WRITTEN, MADE + "\n| a | b |\n|---|---|\n"), ("a header nobody has", "# x\n", MADE)):
        try:
            everything.with_tables(document, text)
        except ValueError:
            continue
        sys.exit(f"{name} is no error")


def failures():
    def good(_, folder):
        (folder / "good.md").write_text("# good\n")

    def bad(_, folder):
        raise RuntimeError("not today")

    with tempfile.TemporaryDirectory() as place:
        root, to = pathlib.Path(place), pathlib.Path(place) / "documents"
        everything.ROOT, everything.MADE, everything.need_build = root, {"bad": "1 s", "good": "1 s"}, lambda: None
        said, errors = io.StringIO(), io.StringIO()
        status = 0
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(errors):
            try:
                everything.run_all(argparse.Namespace(only="", output=to), {"bad": bad, "good": good})
            except SystemExit as end:
                status = end.code
        expect("status", status, 4)
        expect("the last line", errors.getvalue().splitlines()[-1], "reproduce: failed: bad")
        expect("what went well", (to / "good.md").read_text(), "# good\n")
        expect("of what failed", (to / "bad.md").exists(), False)


tables()
failures()
