#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the Python of standard input with documents as variables: json_check.py NAME... < PYTHON

FILE.json gives the variable FILE; the file .last/stdout, stdout; NAME=TEXT, the text NAME. An assertion that fails is
shown with its line, and ends with status 1.
"""

import json
import linecache
import pathlib
import re
import sys


def near(value, wanted, within):
    """Whether a value differs from what is wanted by no more than this fraction of it; shows one that does not."""
    if abs(value - wanted) <= within * abs(wanted):
        return True
    print(f"is {value!r}, expected {wanted!r}", file=sys.stderr)
    return False


def main():
    variables = {"near": near, "json": json, "sys": sys}
    for argument in sys.argv[1:]:
        name, is_text, text = argument.partition("=")
        path = pathlib.Path(argument)
        variables[name if is_text else re.sub(r"\W", "_", path.stem)] = text if is_text else json.loads(path.read_text())
    code = sys.stdin.read()
    linecache.cache["json_check"] = (len(code), None, code.splitlines(True), "json_check")
    exec(compile(code, "json_check", "exec"), variables)


if __name__ == "__main__":
    main()
