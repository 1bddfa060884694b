# SPDX-License-Identifier: Apache-2.0
"""`scripts/reproduce all`: what is computed or simulated is made anew, and its documents with it; what is measured is named."""

import contextlib
import io
import os
import re
import shutil
import time

from reproduction.computed import need_build
from reproduction.lab import ROOT, die, say, table

DOCUMENTS = ROOT / "docs/results"
# Computed or simulated: about how long each takes, in turn.
MADE = {"ace": "2 min", "coarse-queues": "10 s", "pbox-scale": "2 min", "coarse-scale": "5 min", "byteps": "15 min", "scale": "10 min",
        "forests": "8 min", "winners": "3 min"}
# Documents that people wrote around the tables that these make.
WRITTEN_AROUND = {"ace": "ace", "coarse-queues": "coarse"}
# Measured: what for, where, about how long, by the number and length of their iterations.
MEASURED = {
    "figure12": ("BytePS figure 12", "root", "15 min"), "figure12 --unequal": ("the same, unequal links", "root", "20 min"),
    "table1": ("BytePS table 1", "root", "5 min"), "modes": ("what a plan can ask for", "root", "10 min"),
    "grid": ("prediction against measurement", "root", "20 min"),
    "long-ways": ("prediction against measurement on long ways", "root", "40 min"), "coarse-m": ("COARSE III-F", "root", "40 min"),
    "coarse-routes": ("COARSE III-E", "root", "15 min"), "coarse-baselines": ("COARSE V-D", "root", "30 min"),
    "coarse-rings": ("COARSE IV-A", "root", "15 min"), "coarse-machines": ("COARSE V-C, emulated", "", "10 min"),
    "whole": ("machines of several ranks", "root", "25 min"),
    "phub": ("PHub: ports, placements, chunks", "root", "20 min"), "offload": ("ACE on processors", "", "10 min"),
    "training": ("PyTorch models trained over plans", "root", "12 min")}


def tables_of(text):
    """Its tables as (header's cells, text), in order."""
    found = []
    for block in re.findall(r"(?:^\|.*\n?)+", text, re.MULTILINE):
        lines = block.rstrip("\n").split("\n")
        found.append((tuple(cell.strip() for cell in lines[0].strip("|").split("|")), "\n".join(lines)))
    return found


def with_tables(document, made):
    """A document written by hand with the tables of one that was made, each in the place of the one with the same header."""
    old, new = {}, {}
    for of, text in ((old, document), (new, made)):
        for header, block in tables_of(text):
            of.setdefault(header, []).append(block)
    for header, blocks in new.items():
        places = old.get(header, [])
        if len(places) != len(blocks):
            raise ValueError(f"{len(places)} tables '{' | '.join(header)}' where {len(blocks)} were made")
        for place, block in zip(places, blocks):
            if document.count(place) != 1:
                raise ValueError(f"table '{' | '.join(header)}' is there {document.count(place)} times with the same rows")
            document = document.replace(place, block)
    return document


def hand_over(name, folder, to):
    """Copies what an experiment made to the documents; of one that people wrote around, only its tables."""
    target = to / f"{WRITTEN_AROUND.get(name, name)}.md"
    made = (folder / f"{name}.md").read_text()
    before = target.read_text() if target.exists() else ""
    if name in WRITTEN_AROUND and before:
        made = with_tables(before, made)
    target.write_text(made)
    for picture in sorted(folder.glob(f"{name}*.png")):
        shutil.copyfile(picture, to / picture.name)
    return "made" if not before else "as before" if before == made else "changed"


def run_all(arguments, experiments):
    need_build()
    to = arguments.output or DOCUMENTS
    to.mkdir(parents=True, exist_ok=True)
    rows, failed = [], []
    chosen = {name: about for name, about in MADE.items() if arguments.only in name}
    if not chosen:
        die(f"--only {arguments.only}: none of {', '.join(MADE)}")
    for number, (name, about) in enumerate(chosen.items(), 1):
        say(f"[{number}/{len(chosen)}] {name}, about {about} on two processors that do nothing else")
        folder = ROOT / "results" / name
        folder.mkdir(parents=True, exist_ok=True)
        start = time.monotonic()
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                experiments[name](arguments, folder)
            result = hand_over(name, folder, to)
        except (SystemExit, Exception) as error:  # the others still tell something
            if isinstance(error, SystemExit) and not error.code:
                raise
            say(f"reproduce: {name} failed: {error}")
            result = "FAILED"
            failed.append(name)
        rows.append((name, result, f"{time.monotonic() - start:.0f} s"))
    print(table(("experiment", "document", "took"), rows))
    print("\nNot among them, for they measure, each on a machine that does nothing else (scripts/reproduce NAME):\n")
    print(table(("experiment", "what", "needs", "about"), [
        (name, what, "root, a cluster of namespaces" if needs == "root" else "-", about)
        for name, (what, needs, about) in MEASURED.items()]))
    if os.geteuid() != 0:
        print("\nYou are not root: those that need it end with status 3.")
    if failed:
        die(f"failed: {', '.join(failed)}", 4)
