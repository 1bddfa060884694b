# SPDX-License-Identifier: Apache-2.0
"""The README's table of a cluster is what docs/results/figure12.csv says: of each number of servers the fastest strategy."""

import csv
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
text = (root / "README.md").read_text(encoding="utf-8")
name, table = re.search(r"<!-- table: (\S+) -->\n(.*?)<!-- end -->", text, re.S).groups()
with (root / name).open(newline="", encoding="utf-8") as file:
    rows = list(csv.DictReader(file))


def seconds(row, key):
    return f"{float(row[key]):.3f} s"


others = {r["what"].split()[0].lower(): seconds(r, "measured_s") for r in rows if r["what"].endswith(" all-reduce")}
planned = {}
for row in (r for r in rows if r["bound_s"]):
    best = planned.setdefault(row["servers"], row)
    if float(row["predicted_s"]) < float(best["predicted_s"]):
        planned[row["servers"]] = row
wanted = ["| machines that only sum | strategy | bound | predicted | measured | error | Gloo | OpenMPI |", "|---|---|---|---|---|---|---|---|"]
for servers, row in sorted(planned.items(), key=lambda item: int(item[0])):
    error = float(row["measured_s"]) / float(row["predicted_s"]) - 1
    beside = [others.get(n, "") if servers == "0" else "" for n in ("gloo", "openmpi")]
    wanted.append("| " + " | ".join([servers, f"`{row['what']}`", *(seconds(row, f"{k}_s") for k in ("bound", "predicted", "measured")),
                                     f"{100 * error:+.1f} %", *beside]) + " |")
if table.splitlines() != wanted:
    sys.exit("README.md has another table than this, of {}:\n{}".format(name, "\n".join(wanted)))
