#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes profiles/coarse-{t4,p100,v100}.json: the machines of COARSE (HPCA 2022), section V-C, as four worker GPUs and
four memory devices, each GPU with the device that shares its PCIe switch ("local"). profiles/README.md says which
figures are the paper's and which are assumed; each cell says it too.

    scripts/generate_coarse_profiles.py                        writes the files
    scripts/generate_coarse_profiles.py --check                exit 1 if a file differs from what would be written
    scripts/generate_coarse_profiles.py --slower 100 --to DIR  the same machines with all times a hundredfold, for
                                                               `reckon run --inject` on a computer that is slower
"""

import argparse
import json
import pathlib
import re
import sys

TEXT, READ, ASSUMED = "the paper's text", "a third party's reading", "assumed"

# Rates in bytes a second of one direction, latencies in seconds; each with where it is from.
MACHINES = {
    "t4": {
        "name": "AWS g4dn: T4 GPUs",
        "local": {"one_way": (6e9, f"{ASSUMED}: PCIe 3.0 x8"), "two_way": (6e9, f"{ASSUMED}: PCIe 3.0 x8"),
                  "latency": (20e-6, f"{ASSUMED}")},
        "remote": {"one_way": (6e9, f"{TEXT}, section V-C: no difference between local and remote; the rate {ASSUMED}"),
                   "two_way": (6e9, f"{TEXT}, section V-C: no difference between local and remote; the rate {ASSUMED}"),
                   "latency": (20e-6, f"{TEXT}, section V-C: no difference between local and remote; the time {ASSUMED}")},
        "port": (6e9, f"{ASSUMED}: PCIe 3.0 x8"),
    },
    "p100": {
        "name": "SDSC: P100 GPUs",
        "local": {"one_way": (13e9, f"{TEXT}, section III-E: 13 GB/s one way"),
                  "two_way": (12.5e9, f"{TEXT}, section III-E: 25 GB/s both ways together"),
                  "latency": (10e-6, f"{ASSUMED}; {TEXT}, section V-C, says lower than remote")},
        "remote": {"one_way": (10e9, f"{ASSUMED}; {TEXT}, section V-C, says less than local"),
                   "two_way": (9.5e9, f"{ASSUMED}; {TEXT}, section V-C, says less than local"),
                   "latency": (20e-6, f"{ASSUMED}; {TEXT}, section V-C, says higher than local")},
        "port": (13e9, f"{TEXT}, section III-E, of a pair: 13 GB/s one way"),
    },
    "v100": {
        "name": "AWS p3: V100 GPUs",
        "local": {"one_way": (4.5e9, f"{READ} of figure 8a: 9 GB/s both ways together, half each way; one way alone {ASSUMED} equal"),
                  "two_way": (4.5e9, f"{READ} of figure 8a: 9 GB/s both ways together, half each way"),
                  "latency": (10e-6, f"{ASSUMED}; {TEXT}, section V-C, says lower than remote")},
        "remote": {"one_way": (8e9, f"{READ} of figure 8a: 16 GB/s both ways together, half each way; one way alone {ASSUMED} equal"),
                   "two_way": (8e9, f"{READ} of figure 8a: 16 GB/s both ways together, half each way"),
                   "latency": (30e-6, f"{ASSUMED}; {TEXT}, section V-C, says higher than local")},
        "port": (13e9, f"{ASSUMED}: PCIe 3.0 x16 as measured at SDSC, section III-E"),
    },
}

PAIRS = 4
MEBIBYTES_4 = 4 << 20  # sizes from 2 MB on reach the full rate: section V-B


def canonical(match):
    """A number as reckon writes it: the shorter of both notations."""
    value = float(match[0])
    mantissa, exponent = f"{value:.15e}".split("e")
    mantissa = mantissa.rstrip("0").rstrip(".")
    scientific = f"{mantissa}e{int(exponent):+03d}"
    return scientific if len(scientific) < len(f"{value:.0f}") else match[0]


def published(case, unit, value, reason, **key):
    cell = {"case": case, "unit": unit, "status": "published", "reason": reason, "n": 0, "spread": 0, "p50": value,
            "min": value, "max": value, "p99": value, "transport": "host", **key}
    if unit == "bytes_per_second":
        cell["bytes_convention"] = "payload"
    return cell


def profile(kind, slower):
    machine = MACHINES[kind]
    ids = [f"gpu{i}" for i in range(PAIRS)] + [f"dev{i}" for i in range(PAIRS)]
    cells = []

    def add(case, figure, start, direction, size, end=None):
        value, reason = figure
        latency = case == "pair_latency"
        key = {"from": start, "bytes": size, "direction": direction} | ({"to": end} if end else {})
        cells.append(published(case, "seconds" if latency else "bytes_per_second",
                               value * slower if latency else value / slower, reason, **key))

    for a in ids:
        add("port_bandwidth", machine["port"], a, "two_way", MEBIBYTES_4)
        for b in ids:
            if a == b:
                continue
            figures = machine["local" if a[-1] == b[-1] else "remote"]
            add("pair_latency", figures["latency"], a, "one_way", 8, b)
            for direction in ("one_way", "two_way"):
                add("pair_bandwidth", figures[direction], a, direction, MEBIBYTES_4, b)
    text = "published: COARSE, HPCA 2022, sections III-E and V-C; each cell says whether its figure is the paper's, a " \
           "third party's reading of a figure, or assumed"
    if slower != 1:
        text += f"; all times {slower:g} times as long"
    return {
        "schema": "reckon/profile", "schema_version": 1, "name": f"coarse-{kind}" + (f"-slower-{slower:g}" if slower != 1 else ""),
        "source": text, "context": {}, "fits": [],
        # what says that a machine only serves; of the GPUs' insides nothing is known
        "topology": {"objects": [part for i in ids if i.startswith("dev")
                                 for part in ({"id": i, "kind": "machine"},
                                              {"id": f"{i}/memory", "kind": "memory_device", "parent": i})]},
        "machines": [{"id": i, "name": f"{'worker GPU' if i.startswith('gpu') else 'memory device'}, {machine['name']}",
                      "count": 1} for i in ids],
        "cells": sorted(cells, key=lambda c: (c["case"], c["from"], c.get("to", ""), c["direction"])),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--slower", type=float, default=1)
    parser.add_argument("--to", type=pathlib.Path, default=pathlib.Path(__file__).parent.parent / "profiles")
    arguments = parser.parse_args()
    different = 0
    for kind in MACHINES:
        path = arguments.to / f"coarse-{kind}.json"
        text = json.dumps(profile(kind, arguments.slower), indent=2, sort_keys=True) + "\n"
        text = re.sub(r"(?<=: )\d{5,}\.0(?=,?$)", canonical, text, flags=re.MULTILINE)
        if not arguments.check:
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            print(f"{path} differs from what {pathlib.Path(__file__).name} writes", file=sys.stderr)
            different += 1
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
