# SPDX-License-Identifier: Apache-2.0
"""`scripts/reproduce all`: makes the computed pages anew, or checks their rows; names what is measured. `pages`: renews pages' tables."""

import os
import shutil
import time

from reproduction import pages
from reproduction.computed import need_build
from reproduction.lab import ROOT, die, say, table

# Measured: what for, where, about how long, by the number and length of their iterations.
MEASURED = {
    "figure12": ("BytePS figure 12", "root", "15 min"), "figure12 --unequal": ("the same, unequal links", "root", "20 min"),
    "table1": ("BytePS table 1", "root", "5 min"), "modes": ("what a plan can ask for", "root", "10 min"),
    "grid": ("prediction against measurement", "root", "20 min"),
    "long-delay-links": ("prediction against measurement with long delays", "root", "40 min"), "coarse-m": ("COARSE III-F", "root", "40 min"),
    "coarse-routes": ("COARSE III-E", "root", "15 min"), "coarse-baselines": ("COARSE V-D", "root", "30 min"),
    "coarse-rings": ("COARSE IV-A", "root", "15 min"), "coarse-machines": ("COARSE V-C, emulated", "", "10 min"),
    "hierarchical-plans": ("machines of several ranks", "root", "25 min"),
    "one-machine": ("prediction against measurement on this machine", "", "12 min"),
    "phub": ("PHub: ports, placements, chunks", "root", "20 min"), "offload": ("ACE on processors", "", "10 min"),
    "training": ("PyTorch models trained over plans", "root", "12 min")}


def chosen(computed, only):
    found = [page for page in computed if only in page.name]
    if not found:
        die(f"--only {only}: none of {', '.join(page.name for page in computed)}")
    return found


def each(some, act):
    """act(page) of each; the others still tell something where one fails. The names of those that failed."""
    failed = []
    for order, page in enumerate(some, 1):
        say(f"[{order}/{len(some)}] {page.name}")
        try:
            act(page)
        except (SystemExit, Exception) as error:
            if isinstance(error, SystemExit) and not error.code:
                raise
            say(f"reproduce: {page.name} failed: {error}")
            failed.append(page.name)
    return failed


def run_all(arguments, computed):
    """Computed pages, or those with --only in their names."""
    need_build()
    to = arguments.output or pages.DOCUMENTS
    to.mkdir(parents=True, exist_ok=True)
    rows = []

    def act(page):
        start = time.monotonic()
        folder = ROOT / "results" / page.name
        folder.mkdir(parents=True, exist_ok=True)
        pages.publish(page, pages.computed(page), folder)
        made = [page.document(folder), *(page.file(name, folder) for name in page.tables)]
        before = [(to / path.name).read_bytes() if (to / path.name).exists() else b"" for path in made]
        for path in (*made, *sorted(folder.glob(f"{page.name}*.png"))):
            shutil.copyfile(path, to / path.name)
        changed = [path.name for path, old in zip(made, before) if path.read_bytes() != old]
        rows.append((page.name, ", ".join(changed) or "nothing", f"{time.monotonic() - start:.0f} s"))

    failed = each(chosen(computed, arguments.only), act)
    print(table(("page", "changed", "took"), rows))
    print("\nNot among them, for they measure, each on a machine that does nothing else (scripts/reproduce NAME):\n")
    print(table(("experiment", "what", "needs", "about"), [
        (name, what, "root, a cluster of namespaces" if needs == "root" else "-", about)
        for name, (what, needs, about) in MEASURED.items()]))
    if os.geteuid() != 0:
        print("\nYou are not root: those that need it end with status 3.")
    if failed:
        die(f"failed: {', '.join(failed)}", 4)


def check(arguments, computed, measured):
    """Status 1 where a computed row is not what a CSV file says, or a page's table not what its CSV files give."""
    need_build()
    found = []
    for page in measured:
        if arguments.only in page.name:
            found += pages.stale(page)

    def act(page):
        start = time.monotonic()
        found.extend(pages.stale(page) + pages.compared(page, arguments.sample))
        say(f"{page.name}: {time.monotonic() - start:.0f} s")

    failed = each(chosen(computed, arguments.only), act)
    for line in found:
        print(line)
    if failed:
        die(f"failed: {', '.join(failed)}", 4)
    if found:
        die(f"{len(found)} differences", 1)
    print(f"as computed: {'one row in ' + str(arguments.sample) if arguments.sample else 'every row'}")


def renew(all_pages, only):
    for page in all_pages:
        if only in page.name:
            page.document().write_text(pages.renewed(page, page.rows()))
            if page.pictures:
                page.pictures(pages.DOCUMENTS, page.rows())
