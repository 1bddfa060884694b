# SPDX-License-Identifier: Apache-2.0
"""PHub's PBox (SysML 2018, section 2) at its own scale: one server with ten ports and up to 160 workers, planned and simulated."""

import json

from reproduction.computed import claims, finish, milliseconds, need_build, plan, plot, simulate, solve
from reproduction.lab import die, own_bound, percent, say, table

PORTS, PORT = 10, "56Gb/s"
PORT_BYTES = 56e9 / 8
CHUNK = 32 * 1024
BATCH, IMAGES = 32, 190  # a worker's, and images a second of one (table 1, MXNet, local)
ITERATION = BATCH / IMAGES
WORKERS = (20, 40, 60, 80, 100, 115, 120, 140, 160)
PAPERS = 120
MODEL = "resnet50"
# The paper's workers compute; of the order in which their gradients go it says nothing.
PASSES = ("--forward", f"{ITERATION / 3}s", "--backward", f"{ITERATION * 2 / 3}s")
WAYS = {"exchange": ("--zero-compute",), "in gradient order": (*PASSES, "--order", "gradient"),
        "by priority": (*PASSES, "--order", "priority"), "with a credit of 2 MiB": (*PASSES, "--order", "priority", "--window", 64)}


def profile_of(folder):
    """Workers and interfaces of the box, a port each: an interface and the chunks on it share nothing with the others (2)."""
    cells = [{"case": "port_bandwidth", "unit": "bytes_per_second", "p50": PORT_BYTES, "min": PORT_BYTES, "max": PORT_BYTES,
              "p99": PORT_BYTES, "n": 0, "spread": 0, "status": "published", "from": machine, "transport": "verbs;ofi_rxm",
              "bytes_convention": "payload", "reason": "section 2: 56 Gb/s"} for machine in ("worker", "pbox")]
    path = folder / "pbox-profile.json"
    path.write_text(json.dumps({
        "schema": "reckon/profile", "schema_version": 1, "name": "pbox", "source": "published: PHub, SysML 2018, section 2",
        "context": {}, "fits": [], "topology": {"objects": []}, "cells": cells,
        "machines": [{"id": "worker", "name": "a worker's machine", "count": max(WORKERS), "cores": 16},
                     {"id": "pbox", "name": "an interface of the box", "count": PORTS, "cores": 28}]}))
    return path


def capacity(*more, iteration=ITERATION):
    return solve("capacity", "--workload", MODEL, "--interfaces", PORTS, "--interface-bandwidth", PORT, "--batch", BATCH,
                 "--iteration", f"{iteration!r}s", *more)


def at_scale(folder, profile):
    rows = []
    for n in WORKERS:
        box = next(p for p in capacity("--workers", n)["placements"] if p["servers"] == 1)
        row = {"n": n, "capacity": box["iteration_seconds"]}
        for name, more in WAYS.items():
            path, document = plan(folder, profile, MODEL, n, PORTS, "ps_noncolocated", "--part-bytes", CHUNK, *more)
            report, why = simulate(path, profile)
            if report is None:
                die(f"{n} workers: {why}", 4)
            row[name] = {"planned": document["prediction"]["mid_seconds"], "bound": own_bound(document),
                         "simulated": report["p50_seconds"], "busiest": report["simulation"]["stations"][0],
                         "merged": report["simulation"]["merged_parts"]}
        rows.append(row)
        say(f"{n} workers: " + ", ".join(f"{name} {milliseconds(row[name]['simulated'])} ms" for name in WAYS))
    return rows


CASES = (  # name, iteration, an interface, PCIe to memory
    ("190 images a second (table 1)", ITERATION, PORT, None), ("the same, FDR's 54.5 Gb/s of data a port", ITERATION, "54.5Gb/s", None),
    ("182.5 images a second", BATCH / 182.5, PORT, None), ("190, and 139.6 GB/s between PCIe and memory", ITERATION, PORT, "139.6GB/s"),
    ("190, 11 ports, and 145.7 GB/s between PCIe and memory", ITERATION, "61.6Gb/s", "145.7GB/s"))


def limits():
    rows = []
    for name, iteration, port, memory in CASES:
        answer = solve("capacity", "--workload", MODEL, "--interfaces", PORTS, "--interface-bandwidth", port, "--iteration",
                       f"{iteration!r}s", *(("--memory-bandwidth", memory) if memory else ()))
        rows.append((name, answer["workers"], answer["limited_by"], f"{answer['workers'] - PAPERS:+d}"))
    return rows


def first_over(rows, of):
    """The most workers whose time is within 2 % of the compute time."""
    return max((r["n"] for r in rows if of(r) <= 1.02 * ITERATION), default=0)


def both(row, way):
    planned, simulated = row[way]["planned"], row[way]["simulated"]
    return f"{milliseconds(planned)} / {milliseconds(simulated)}"


def picture(folder, rows):
    curves = [("compute, 32 images at 190 a second", 'lines lw 2 dt 2 lc rgb "black"', [(0, 1e3 * ITERATION), (160, 1e3 * ITERATION)])]
    for number, way in enumerate(WAYS, 1):
        curves += [(f"{way}, planned", f"lines lw 2 lc {number}", [(r["n"], 1e3 * r[way]["planned"]) for r in rows]),
                   ("simulated", f"points pt {number + 4} ps 1.3 lc {number}", [(r["n"], 1e3 * r[way]["simulated"]) for r in rows])]
    plot(folder, "pbox-scale", ['set xlabel "workers"', 'set ylabel "ms"', "set key outside bottom center horizontal",
                                "set yrange [0:*]", "set xrange [0:165]"], curves)


def pbox(arguments, folder):
    del arguments
    need_build()
    profile = profile_of(folder)
    rows, counted = at_scale(folder, profile), limits()
    picture(folder, rows)
    most = {way: first_over(rows, lambda r, way=way: r[way]["simulated"]) for way in WAYS}
    at = {way: next(r for r in rows if r["n"] == PAPERS)[way]["simulated"] for way in WAYS}
    errors = [abs(r[w]["simulated"] / r[w]["planned"] - 1) for r in rows for w in WAYS]
    text = [
        ("one PBox supports up to 120 workers, ResNet-50, batch 32 (2)", f"{counted[0][1]} by (47) at table 1's 190 images a second",
         counted[0][3], "ten ports carry 70 GB/s each way, 120 workers ask for 72.8; at 182.5 images a second they would be 120"),
        ("the same", f"of those simulated up to {most['exchange']} exchange within 2 % of the time in which they compute",
         f"{most['exchange'] - PAPERS:+d}", "exchanges one after another, nothing computed: what ZeroComputeEngine measures"),
        ("the same", f"120 workers whose forward pass waits for its own sums take {milliseconds(at['in gradient order'])} ms in gradient "
         f"order ({percent(at['in gradient order'] / ITERATION - 1)}), {milliseconds(at['by priority'])} by priority, "
         f"{milliseconds(at['with a credit of 2 MiB'])} with less under way; within 2 % of compute: up to "
         f"{most['in gradient order']}, {most['by priority']}, {most['with a credit of 2 MiB']} workers",
         f"{most['in gradient order'] - PAPERS:+d} to {most['with a credit of 2 MiB'] - PAPERS:+d}",
         "in gradient order only the backward pass hides traffic; by priority the forward pass does too, but for what is under way "
         "already"),
        ("the limit is between PCIe and memory, not ports, not cores (2, figure 4)",
         "ports, by what the text says; 120 workers at 190 images a second pass 145.7 GB/s there (a push written, a pull read)",
         "cannot be told", "its bandwidth is in figure 4 only; below 139.6 GB/s it would bind before the ports"),
        ("4 GPUs a worker: a global batch of 15 K", f"{PAPERS * 4 * BATCH}", "none", "120 x 4 x 32")]
    lines = ["# PBox at its own scale", "",
             "Written by `scripts/reproduce pbox-scale`; planned and simulated, nothing is measured (`scripts/reproduce phub` measures eight "
             "workers). The box is ten ports of 56 Gb/s, each with its own chunks of 32 KiB, as PHub's micro-shards inside a box share "
             "nothing; workers have one such port. No latencies, no costs of sums: the text has none of them.", "",
             claims(text), "", "## Time over workers", "",
             "Planned / simulated, ms. `(48)`: the longer of compute and the ports by formula. Exchange: nothing computed. The others: "
             "iterations with a forward pass of a third and a backward pass of two thirds of 168.4 ms (that split is assumed), where each "
             "layer of the forward pass waits for its sums; a worker has "
             f"4 n chunks under way (16) or, in the last column, 64, which are 2 MiB. Greatest difference of any pair: {100 * max(errors):.1f} "
             "%; plans with passes are too large for a play here, and are predicted by the formulas of (18).", "",
             table(("workers", "(48)", *WAYS, "images/s by priority"),
                   [(r["n"], milliseconds(r["capacity"]), *(both(r, way) for way in WAYS),
                     f"{BATCH * r['n'] / r['with a credit of 2 MiB']['simulated']:.0f}") for r in rows]), "",
             "![time over workers](pbox-scale.png)", "", "## What binds", "",
             f"The busiest port of the box carries bytes {100 * rows[-1]['exchange']['busiest']['busy']:.1f} % of the exchange with "
             f"{rows[-1]['n']} workers. By (47):", "", table(("if", "workers", "limited by", "against 120"), counted), ""]
    finish(folder, "pbox-scale", lines, rows)


EXPERIMENTS = {"pbox-scale": pbox}
