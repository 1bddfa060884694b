#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""scripts/reproduce all: a page's one table is renewed and its text kept; differences are named; what fails is named, the rest is made, the
status is 4."""

import argparse
import contextlib
import io
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(sys.argv[1]) / "scripts"))
from reproduction import everything, pages  # noqa: E402

WRITTEN = "# Question?\n\n| n |\n|---|\n\nBy hand, with | in it.\n"
MADE = "# Question?\n\n| n |\n|---|\n| 3 |\n\nBy hand, with | in it.\n"


def expect(what, got, wanted):
    if got != wanted:
        sys.exit(f"{what}: {got!r} instead of {wanted!r}")


def page(name, compute, **more):
    return pages.Page(name, ("",), lambda rows: (("n",), [(len(rows[""]),)]),
                      lambda folder: {"": [pages.Job({"row": n}, lambda own, n=n: compute(n)) for n in range(3)]}, **more)


def tables():
    expect("rows in the place of the table", pages.with_table(WRITTEN, "| n |\n|---|\n| 3 |"), MADE)
    try:
        pages.with_table("# x\n", "| n |")
        sys.exit("a page without a table is no error")
    except ValueError:
        pass


def differences():
    for column, one, other, wanted in (("a_ms", "1.00001", "1.00002", False), ("a_ms", "1.001", "1.002", True), ("a_ms", "", "1", True),
                                       ("a_percent", "0.001", "0.004", False), ("a", "x", "y", True)):
        expect(f"{column} {one} {other}", pages.differs(column, one, other), wanted)


def everything_once():
    def bad(_):
        raise RuntimeError("not today")

    with tempfile.TemporaryDirectory() as place:
        root = pathlib.Path(place)
        everything.ROOT, pages.DOCUMENTS, everything.need_build = root, root, lambda: None
        (root / "good.md").write_text(WRITTEN)
        good = page("good", lambda n: {"value_ms": n + 0.25, "limited_ms": None}, limited=("limited_ms",))
        good.file, good.document = (lambda name, folder=root: folder / "good.csv"), (lambda folder=root: folder / "good.md")
        (root / "good.csv").write_text("row\n")
        said, errors, status = io.StringIO(), io.StringIO(), 0
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(errors):
            try:
                everything.run_all(argparse.Namespace(only="", output=root), [page("bad", bad), good])
            except SystemExit as end:
                status = end.code
        expect("status", status, 4)
        expect("the last line", errors.getvalue().splitlines()[-1], "reproduce: failed: bad")
        expect("what went well", (root / "good.md").read_text(), MADE)
        expect("its rows", (root / "good.csv").read_text(), "row,value_ms,limited_ms\n0,0.25,\n1,1.25,\n2,2.25,\n")
        with contextlib.redirect_stderr(errors):
            expect("as computed", pages.compared(good), [])
            (root / "good.csv").write_text("row,value_ms,limited_ms\n0,0.5,7\n1,1.25,\n3,1,\n")
            expect("differences", pages.compared(good), ["good.csv: 0: value_ms: '0.5' on the page, '0.25' computed", "good.csv: 2: no such row",
                                                         "good.csv: 3: a row that nothing computes"])


tables()
differences()
everything_once()
