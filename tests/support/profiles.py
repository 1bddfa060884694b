# SPDX-License-Identifier: Apache-2.0
"""Profiles made for tests: what make_profiles of shell.sh runs may use all of this."""

import json


def cell(case, value, **key):
    """A published cell: seconds of a latency or a write, else bytes a second. `at` is its key "from"."""
    unit = "seconds" if case in ("pair_latency", "pair_write") else "bytes_per_second"
    made = {"case": case, "unit": unit, "n": 0, "spread": 0, "status": "published", "reason": "made for a test",
            "transport": "host", **dict.fromkeys(("p50", "min", "max", "p99"), value)}  # fmt: skip
    if unit != "seconds":
        made["bytes_convention"] = "payload"
    made.update(key)
    if "at" in made:
        made["from"] = made.pop("at")
    return made


def pairs(names):
    return [(a, b) for a in names for b in names if a != b]


def write(file, name, machines, cells, objects=()):
    """`machines` are documents, or names of single machines with two cores."""
    machines = [m if isinstance(m, dict) else {"id": m, "name": m, "count": 1, "cores": 2} for m in machines]
    with open(file, "w", encoding="utf-8") as out:
        json.dump({"schema": "reckon/profile", "schema_version": 1, "name": name, "source": "made for a test",
                   "context": {}, "fits": [], "topology": {"objects": list(objects)}, "machines": machines,
                   "cells": cells}, out)  # fmt: skip


def cluster(file, name, members, rate, delay=1e-3):
    """Members of one group that reach each other with `rate(a, b)` bytes a second over libfabric's tcp, each with a port
    of `rate(a, a)`."""
    tcp = {"transport": "tcp;ofi_rxm"}
    cells = [cell("port_bandwidth", rate(m, m), at=m, **tcp) for m in ["m0", *members]]
    for a, b in pairs(members):
        for size in (4096, 65536, 1048576):
            cells.append(cell("pair_write", delay + size / rate(a, b), at=a, to=b, bytes=size, direction="one_way", **tcp))
    write(file, name, [{"id": "m0", "name": "all", "count": len(members), "cores": 2, "members": members}], cells)
