# SPDX-License-Identifier: Apache-2.0
"""docs/results/headlines.md: what the four papers say, number by number, the command that gives it here, and what it gives. The page is made
from docs/results/headlines.toml, whose rows have:

    id, where   its name here; section, figure or table of the paper
    says        what the paper says, in words
    paper       its numbers, separated by spaces: 51.43, >200, 1..9, yes; ours agrees if it is that when rounded to as many digits
    unit        of the numbers
    within      relative tolerance instead of the digits: "2 %"
    command     a line of bash; its output is read as JSON documents
    value       what of them is ours, a Python expression for each number: a document's keys are its names, `docs` is all documents, `status`
                the exit status, `text` the output, of(list, key=value) an entry of a list
    same        a note, or nothing: ours is the paper's. A row claims this if it has none of the next
    formula     the same; `paper` is what the paper's formula gives, worked out by hand
    holds       the same; `paper` is what a statement without numbers comes to
    differs     why ours is not the paper's
    runs        there is no number in the paper's text to compare with
    not_run     why the command is not run by the test
    none        why there is no command"""

import concurrent.futures
import difflib
import functools
import json
import os
import pathlib
import re
import subprocess
import tempfile
import tomllib
import types

from reproduction.lab import RECKON, ROOT, die
from reproduction.lab import table as aligned
from reproduction.pages import DOCUMENTS

ROWS, PAGE = DOCUMENTS / "headlines.toml", DOCUMENTS / "headlines.md"
LIMIT = 600  # seconds of a command: only ends what hangs
# What a row may claim: what the page's counts call it, and its own words.
CLAIMS = {"same": ("the paper's number", "same: {}"), "formula": ("the number of the paper's formula, worked out by hand", "by the formula: {}"),
          "holds": ("a statement without a number, which holds", "holds: {}"), "differs": ("another number, and why", "**differs**: {}"),
          "runs": ("nothing in the text to compare with", "{}"), "not_run": ("measured: not run by the test", "not run by the test: {}"),
          "none": ("no command, and why", "{}")}


def kind(row):
    return next((k for k in CLAIMS if k in row), "same")


def documents(text):
    """The JSON documents that follow each other in a text; none where it is something else."""
    found, decoder = [], json.JSONDecoder(object_hook=lambda d: types.SimpleNamespace(**d))
    while text := text.lstrip():
        try:
            document, end = decoder.raw_decode(text)
        except json.JSONDecodeError:
            return []
        found.append(document)
        text = text[end:]
    return found


@functools.cache
def table():
    """headlines.toml."""
    return tomllib.loads(ROWS.read_text())


@functools.cache
def output(command):
    """(status, text, documents) of a line of bash, in a folder of its own; rows may share it."""
    with tempfile.TemporaryDirectory() as place:
        (pathlib.Path(place) / "bin").mkdir()
        (pathlib.Path(place) / "bin/reckon").symlink_to(RECKON.resolve())
        for name, text in table()["files"].items():
            (pathlib.Path(place) / name).write_text(text)
        done = subprocess.run(["bash", "-c", command], cwd=place, text=True, capture_output=True, timeout=LIMIT, check=False,
                              env={**os.environ, "PATH": f"{place}/bin:{os.environ['PATH']}", "RECKON_DATA_DIR": str(ROOT / "profiles")})
    return done.returncode, done.stdout + done.stderr, documents(done.stdout)


def of(entries, **wanted):
    return next(e for e in entries if all(getattr(e, key) == value for key, value in wanted.items()))


def values(row):
    """Ours: numbers and words."""
    status, text, docs = output(row["command"])
    expressions = [row["value"]] if isinstance(row["value"], str) else row["value"]
    shared, made = {"docs": docs, "status": status, "text": text, "of": of}, []
    for document in docs or [types.SimpleNamespace()]:
        for expression in expressions:
            try:
                got = eval(expression, shared | (vars(document) if isinstance(document, types.SimpleNamespace) else {}))  # of our own file
                made += got if isinstance(got, (list, tuple)) else [got]
            except Exception as error:
                die(f"{row['id']}: {expression}: {error!r}\n{row['command']}\n{text[:2000]}", 4)
        if "docs" in str(expressions):
            break
    return made


def shown(value):
    if value is None or isinstance(value, (bool, str)):
        return {None: "none", True: "yes", False: "no"}.get(value, value)
    value *= 1 + 1e-12  # a tie is rounded alike whatever the compiler did to the last bit
    return f"{value:.5g}" if abs(value) < 1e5 else f"{value:,.0f}"


def agrees(said, value, within):
    """Whether ours is the paper's number, as far as its digits say, or its word."""
    if value is None or isinstance(value, (bool, str)):
        return shown(value) == said
    if said[0] in "<>":
        return value < float(said[1:]) if said[0] == "<" else value > float(said[1:])
    if ".." in said:
        least, most = map(float, said.split(".."))
        return least <= value <= most
    try:
        number = float(said.replace(",", ""))
    except ValueError:
        return False
    digits = len(said.partition(".")[2])
    return abs(value - number) <= (within * abs(number) if within else 0.5 * 10**-digits * (1 + 1e-9))


def disagreeing(row, ours):
    """(the paper's, ours) where these differ."""
    within = float(row.get("within", "0").rstrip(" %")) / 100
    return [(said, value) for said, value in zip(row["paper"].split(), ours) if not agrees(said, value, within)]


def false_claims(row, ours):
    if len(row["paper"].split()) != len(ours):
        return [f"{row['id']}: {len(row['paper'].split())} numbers of the paper, {len(ours)} here: {' '.join(map(shown, ours))}"]
    apart = disagreeing(row, ours)
    if kind(row) == "differs":
        return [] if apart else [f"{row['id']}: is said to differ, and agrees"]
    return [f"{row['id']}: is said to be the same: {said} is {shown(value)} here" for said, value in apart]


def check_form(row):
    claim, number = kind(row), {"command", "value", "paper"}
    needs = {"id", "where", "says"} | {"runs": {"command", "value"}, "not_run": {"command"}, "none": set()}.get(claim, number)
    allowed = needs | {claim, "unit"} | ({"within"} if "value" in needs else {"paper"})
    if needs - set(row) or set(row) - allowed:
        die(f"{ROWS}: {row.get('id')}: missing, or not in a row that says {claim}: {', '.join(sorted((needs - set(row)) | (set(row) - allowed)))}")


def unknown_options(row):
    """Options that a command has not: of what is not run, only this is checked."""
    found = []
    for name, given in re.findall(r"\breckon ((?:solve )?[a-z]+)([^;&|#]*)", row["command"]):
        known = re.findall(r"--[a-z][a-z-]*", output(f"reckon {name} --help-all")[1])
        found += [f"{row['id']}: reckon {name} has no {o}" for o in re.findall(r"(?<=\s)--[a-z][a-z-]*", given) if o not in known]
    return found


def line(row, ours):
    unit = f" {row['unit']}" if "unit" in row else ""
    said = row["says"] + (f": {', '.join(row['paper'].split())}{unit}" if "paper" in row else "")
    cells = [row["id"], row["where"], said, f"`{row['command']}`" if "command" in row else "",
             ", ".join(map(shown, ours)) + unit if ours else "", CLAIMS[kind(row)][1].format(row.get(kind(row), "")).rstrip(": ")]
    return "| " + " | ".join(c.replace("|", "\\|").replace("\n", " ") for c in cells) + " |"


def page(papers, ours):
    """The page's text."""
    rows = [row for paper in papers for row in paper["row"]]
    counts = []
    for name, (words, _) in CLAIMS.items():
        some = [r for r in rows if kind(r) == name]
        numbers = sum(len(disagreeing(r, ours[r["id"]]) if name == "differs" else ours[r["id"]]) for r in some if r["id"] in ours)
        counts.append((words, len(some), numbers or ""))
    text = ["# Which of the papers' numbers come out?", "", aligned(("", "rows", "numbers"), counts), "", table()["about"].strip()]
    for paper in papers:
        text += ["", f"## {paper['title']}", "", "| id | where | the paper | command | here | |", "|---|---|---|---|---|---|"]
        text += [line(row, ours.get(row["id"])) for row in paper["row"]]
    return "\n".join(text) + "\n"


def checked_rows(only=""):
    """Papers with the rows whose ids contain `only`."""
    papers = [{**paper, "row": [row for row in paper["row"] if only in row["id"]]} for paper in table()["paper"]]
    ids = [row["id"] for paper in papers for row in paper["row"]]
    if not ids:
        die(f"--only {only}: {ROWS.name} has no row with this in its name")
    if len(ids) > len(set(ids)):
        die(f"{ROWS}: more than one row: {', '.join(sorted({i for i in ids if ids.count(i) > 1}))}")
    for paper in papers:
        for row in paper["row"]:
            check_form(row)
    return papers


def computed(papers):
    """Ours by id, and what is false of the rows' claims."""
    rows = [row for paper in papers for row in paper["row"] if "value" in row]
    with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        list(pool.map(output, dict.fromkeys(row["command"] for row in rows)))
    ours = {row["id"]: values(row) for row in rows}
    return ours, [wrong for row in rows if "paper" in row for wrong in false_claims(row, ours[row["id"]])]


def headlines(arguments, _):
    """Makes the page; with --check status 1 where it is another, or a row's claim is false. With --only shows some rows alone."""
    papers = checked_rows(arguments.only)
    ours, wrong = computed(papers)
    wrong += [text for paper in papers for row in paper["row"] if "not_run" in row for text in unknown_options(row)]
    if arguments.only:
        print("\n".join(line(row, ours.get(row["id"])) for paper in papers for row in paper["row"]))
    elif not arguments.check:
        PAGE.write_text(page(papers, ours))
    elif (now := page(papers, ours)) != (was := PAGE.read_text()):
        wrong += [f"{PAGE.name}: {text}" for text in difflib.unified_diff(was.splitlines(), now.splitlines(), "on the page", "computed", n=0,
                                                                          lineterm="")]
    print("\n".join(wrong or [f"{len(ours)} rows are as they say"]))
    if wrong:
        die(f"{PAGE.name}: rows are not as they say; `scripts/reproduce headlines` renews what is here, {ROWS.name} has the claims", 1)


EXPERIMENTS = {"headlines": headlines}
