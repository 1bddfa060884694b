# SPDX-License-Identifier: Apache-2.0
"""Every relative link and anchor of the Markdown files leads somewhere, and every script that they name is there."""

import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1])
FOLDERS = ("docs", "examples", "plans", "profiles", "python", "tests")
PAGES = [*ROOT.glob("*.md"), *(page for folder in FOLDERS for page in ROOT.glob(f"{folder}/**/*.md"))]


def plain(path):
    """Without blocks of code."""
    return re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.S | re.M)


def anchors(path):
    """As GitHub makes them of headings."""
    found = set()
    for heading in re.findall(r"^#+ +(.*)$", plain(path), re.M):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        found.add(re.sub(r"[^\w\- ]", "", text).strip().replace(" ", "-"))
    return found


def faults(page):
    text = plain(page)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        name, _, anchor = target.partition("#")
        if re.match(r"[a-z]+:", name):
            continue
        path = (page.parent / name).resolve() if name else page
        if not path.exists():
            yield f"no file {target}"
        elif anchor and path.suffix == ".md" and anchor not in anchors(path):
            yield f"no heading {target}"
    for script in re.findall(r"(?<![\w/])scripts/[a-z][\w-]*(?:\.\w+)?", page.read_text(encoding="utf-8")):
        if not (ROOT / script).exists():
            yield f"no script {script}"


found = [f"{page.relative_to(ROOT)}: {fault}" for page in PAGES for fault in faults(page)]
sys.exit("\n".join(found) if found else None)
