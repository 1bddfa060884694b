#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the examples of a Markdown file and compares what they print: check_examples.py RECKON FILE.md

An example is a line "$ reckon ..." in a block marked "console"; below it stands its standard output, in which a line
"..." stands for any lines. All examples of a file run one after another in the current directory, so that one can
use the file that another has written; a block marked "csv NAME", "json NAME" or "text NAME" is written to the file NAME first.
UPDATE_GOLDEN=1 rewrites outputs in which nothing is left out.
"""

import difflib
import os
import pathlib
import re
import shlex
import subprocess
import sys


def examples(lines):
    """(number of the first line of output, number of the line after it, command)"""
    start = command = None
    inside = False
    for number, line in enumerate(lines):
        if inside and (line.startswith("$ ") or line == "```"):
            if command:
                yield start, number, command
            command = None
            inside = line != "```"
        if line == "```console":
            inside = True
        elif inside and line.startswith("$ "):
            start, command = number + 1, line[2:]


def write_tables(lines):
    """The files that blocks marked "csv NAME", "json NAME" or "text NAME" hold."""
    for start, line in enumerate(lines):
        if re.match("```(csv|json|text) ", line):
            end = lines.index("```", start)
            pathlib.Path(line.split()[1]).write_text("\n".join(lines[start + 1 : end]) + "\n", encoding="utf-8")


def matches(expected, printed):
    pattern = "".join(r"(?:.*\n)*?" if line == "..." else re.escape(line) + r"\n" for line in expected)
    return re.fullmatch(pattern, "".join(line + "\n" for line in printed)) is not None


def main():
    reckon, name = sys.argv[1:]
    path = pathlib.Path(name)
    lines = path.read_text(encoding="utf-8").splitlines()
    wrong, updated, run = 0, list(lines), 0
    results = []
    write_tables(lines)
    for start, end, command in examples(lines):
        program, *words = shlex.split(command)
        assert program == "reckon", f"{name}:{start}: an example runs reckon"
        done = subprocess.run([reckon, *words], capture_output=True, text=True, check=False)
        run += 1
        if done.returncode == 3 and words[0] == "simulate":
            print(f"{name}:{start}: not checked: {done.stderr.strip()}")
            continue
        # 1 is a verdict, which an example may well show.
        if done.returncode not in (0, 1) or done.stderr:
            print(f"{name}:{start}: {command}: exit status {done.returncode}, {done.stderr}")
            wrong += 1
            continue
        results.append((start, end, done.stdout.splitlines()))
    for start, end, printed in reversed(results):
        expected = lines[start:end]
        if matches(expected, printed):
            continue
        if os.environ.get("UPDATE_GOLDEN") and "..." not in expected:
            updated[start:end] = printed
            continue
        wrong += 1
        print(f"{name}:{start}: {lines[start - 1]}")
        print("\n".join(difflib.unified_diff(expected, printed, "documented", "printed", lineterm="")))
    if updated != lines:
        path.write_text("\n".join(updated) + "\n", encoding="utf-8")
    print(f"{name}: {run} examples, {wrong} wrong")
    return 1 if wrong or not run else 0


if __name__ == "__main__":
    sys.exit(main())
