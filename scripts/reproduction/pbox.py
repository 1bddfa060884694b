# SPDX-License-Identifier: Apache-2.0
"""PHub's PBox (SysML 2018, section 2) at its own scale: one server with ten ports and up to 160 workers, planned and simulated."""

import json

from reproduction.computed import need_build, plan, plot, simulate, solve
from reproduction.lab import die, own_bound
from reproduction.pages import Job, Page, experiment, grouped, number

PORTS, PORT = 10, "56Gb/s"
PORT_BYTES = 56e9 / 8
CHUNK = 32 * 1024
BATCH, IMAGES = 32, 190  # a worker's, and images a second of one (table 1, MXNet, local)
ITERATION = BATCH / IMAGES
WORKERS = (20, 40, 60, 80, 100, 115, 120, 140, 160)
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


CASES = (  # name, iteration, an interface, PCIe to memory
    ("190 images a second (table 1)", ITERATION, PORT, None), ("the same, FDR's 54.5 Gb/s of data a port", ITERATION, "54.5Gb/s", None),
    ("182.5 images a second", BATCH / 182.5, PORT, None), ("190, and 139.6 GB/s between PCIe and memory", ITERATION, PORT, "139.6GB/s"),
    ("190, 11 ports, and 145.7 GB/s between PCIe and memory", ITERATION, "61.6Gb/s", "145.7GB/s"))


def jobs(folder):
    need_build()
    profile = profile_of(folder)

    def formula(n):
        box = next(p for p in capacity("--workers", n)["placements"] if p["servers"] == 1)
        return {"predicted_ms": 1e3 * box["iteration_seconds"]}

    def played(own, n, more):
        path, document = plan(own, profile, MODEL, n, PORTS, "ps_noncolocated", "--part-bytes", CHUNK, *more)
        report, why = simulate(path, profile)
        if report is None:
            die(f"{n} workers: {why}", 4)
        busiest = report["simulation"]["stations"][0]
        return {"bound_ms": 1e3 * own_bound(document), "predicted_ms": 1e3 * document["prediction"]["mid_seconds"],
                "simulated_ms": 1e3 * report["p50_seconds"], "merged_parts": report["simulation"]["merged_parts"],
                "busiest_port_percent": 100 * busiest["busy"]}

    def limit(iteration, port, memory):
        found = solve("capacity", "--workload", MODEL, "--interfaces", PORTS, "--interface-bandwidth", port, "--iteration",
                      f"{iteration!r}s", *(("--memory-bandwidth", memory) if memory else ()))
        return {"workers": found["workers"], "limited_by": found["limited_by"]}

    times = [job for n in WORKERS for job in (
        Job({"workers": n, "what": "equation 48"}, lambda _, n=n: formula(n)),
        *(Job({"workers": n, "what": way}, lambda own, n=n, more=more: played(own, n, more)) for way, more in WAYS.items()))]
    return {"": times, "limits": [Job({"case": name}, lambda _, a=rest: limit(*a)) for name, *rest in CASES]}


def pictures(folder, tables):
    of = grouped(tables[""], "what")
    curves = [("compute, 32 images at 190 a second", 'lines lw 2 dt 2 lc rgb "black"', [(0, 1e3 * ITERATION), (160, 1e3 * ITERATION)])]
    for order, way in enumerate(WAYS, 1):
        line = lambda column, way=way: [(int(r["workers"]), number(r, column)) for r in of[way,]]
        curves += [(f"{way}, predicted", f"lines lw 2 lc {order}", line("predicted_ms")),
                   ("simulated", f"points pt {order + 4} ps 1.3 lc {order}", line("simulated_ms"))]
    plot(folder, "pbox-scale", ['set xlabel "workers"', 'set ylabel "ms"', "set key outside bottom center horizontal",
                                "set yrange [0:*]", "set xrange [0:165]"], curves)


def summary(tables):
    of = {(int(r["workers"]), r["what"]): r for r in tables[""]}
    rows = [(n, f"{number(of[n, 'equation 48'], 'predicted_ms'):.1f}", *(f"{number(of[n, way], 'simulated_ms'):.1f}" for way in WAYS))
            for n in WORKERS]
    return ("workers", "equation 48, ms", *(f"{way}, ms" for way in WAYS)), rows


PAGE = Page("pbox-scale", ("", "limits"), summary, jobs, pictures, sparse=2)
EXPERIMENTS = experiment(PAGE)
