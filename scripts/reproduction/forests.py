# SPDX-License-Identifier: Apache-2.0
"""Mixes of trees inside machines and over several: bound, named schemes, optimum, certificate, play, simulation."""

import itertools
import json
import os
import random
import signal
import subprocess
import time

from reproduction.computed import DIFFERS, finish, milliseconds, need_build
from reproduction.lab import RECKON, ROOT, die, say, size, table

MODELS = ("bert-large", "resnet50")
PLAN_LIMIT, SIMULATION_LIMIT = 120, 60  # seconds
NO_NAMED = ("optimum", "mix", "inside_optimum", "inside_mix")  # candidates that are not schemes by themselves
CHANGE, SEED = 0.2, 1
FAR_OPEN = 10  # beyond this the certificate says nothing, and the page says only that
GIB = 2**30
INSIDE = ("byteps-pcie", "byteps-nvlink")
CLUSTERS = ("h100-cluster", "a100-cluster")
MACHINES = (2, 4, 8, 16)
WITH_SERVERS = ("a100-cluster", 4, (1, 2, 4))
# The host of the machines written here: DGX-1's processors, and GPUs on PCIe 3.0 x16.
PCIE = {"transfers_per_second": 8e9, "width": 16}
SOCKETS = 2 * 19.2e9
MEMORY = 2 * 76.8e9 / 2
NVLINK = 25e9
# DGX-1 with V100: how many NVLinks join two GPUs.
DGX1 = {(0, 1): 1, (0, 2): 1, (0, 3): 2, (0, 4): 2, (1, 2): 2, (1, 3): 1, (1, 5): 2, (2, 3): 2, (2, 6): 1, (3, 7): 1,
        (4, 5): 1, (4, 6): 1, (4, 7): 2, (5, 6): 2, (5, 7): 1, (6, 7): 2}
DGX1_PER_SWITCH, OTHERS_PER_SWITCH = 2, 1
TORUS, MESH = (3, 3, 3), (5, 5)
LINK = 50 * GIB


def grid_links(shape, wraps):
    """Neighbours of a grid as (smaller, larger) numbers, each pair once."""
    places = list(itertools.product(*map(range, shape)))
    number = {place: i for i, place in enumerate(places)}
    pairs = set()
    for place in places:
        for axis, length in enumerate(shape):
            if place[axis] + 1 < length or wraps:
                other = tuple((x + 1) % length if i == axis else x for i, x in enumerate(place))
                pairs.add((min(number[place], number[other]), max(number[place], number[other])))
    return sorted(pairs)


def published(case, value, **key):
    return {"case": case, "unit": "bytes_per_second", "bytes_convention": "payload", "status": "published",
            "reason": "assumed for this page", "n": 0, "spread": 0, "p50": value, "min": value, "max": value,
            "p99": value, **key}


def profile_of(folder, name, gpus, links, per_switch, draw=None):
    """A machine of GPUs with these links {(a, b): bytes a second}; `draw` changes the rate of each, both ways alike."""
    def rate(value):
        return value * (1 + draw.uniform(-CHANGE, CHANGE)) if draw else value

    def pcie():
        return {**PCIE, "transfers_per_second": rate(PCIE["transfers_per_second"])}

    objects = [{"id": "m0", "kind": "machine"}]
    for node in range(2):
        objects += [{"id": f"m0/pkg{node}", "kind": "package", "parent": "m0"},
                    {"id": f"m0/numa{node}", "kind": "numa_node", "os_index": node, "parent": f"m0/pkg{node}"}]
    for gpu in range(gpus):
        switch = gpu // per_switch
        if gpu % per_switch == 0:
            node = 0 if gpu < (gpus + 1) // 2 else 1
            objects += [{"id": f"m0/hb{switch}", "kind": "host_bridge", "parent": f"m0/numa{node}"},
                        {"id": f"m0/sw{switch}", "kind": "pci_bridge", "parent": f"m0/hb{switch}", "pcie": pcie()}]
        objects.append({"id": f"m0/gpu{gpu}", "kind": "gpu", "parent": f"m0/sw{switch}", "pcie": pcie()})
    ways = [{"kind": "socket", "from": "m0/numa0", "to": "m0/numa1", "count": 2, "bytes_per_second": rate(SOCKETS)}]
    ways += [{"kind": "nvlink", "from": f"m0/gpu{a}", "to": f"m0/gpu{b}", "count": 1, "bytes_per_second": rate(value)}
             for (a, b), value in links.items()]
    cells = [published(f"memory_{what}_bandwidth", MEMORY, **{"from": "m0"}) for what in ("read", "write")]
    path = folder / f"{name}.json"
    path.write_text(json.dumps({
        "schema": "reckon/profile", "schema_version": 1, "name": name, "source": "assumed, scripts/reproduce forests",
        "context": {}, "fits": [], "cells": cells, "topology": {"objects": objects, "links": ways},
        "machines": [{"id": "m0", "name": name, "count": 1, "cores": 40}]}, indent=1) + "\n")
    return path


def networks(folder, seed):
    """(name, profile, options of the plan, GPUs), as the page has them."""
    def gpus_of(name):
        objects = json.loads((ROOT / f"profiles/{name}.json").read_text())["topology"]["objects"]
        return sum(o["kind"] == "gpu" for o in objects)

    def cluster(name, machines, servers=0):
        options = ("--places", "gpu", "--workers", machines, *(("--servers", servers) if servers else ()))
        text = f"{name}, {machines} machine{'s' if machines > 1 else ''}" + (
            f" and {servers} server{'s' if servers > 1 else ''}" if servers else "")
        return text, name, options, gpus_of(name) * machines

    found = [(name, name, ("--inside",), gpus_of(name)) for name in INSIDE]
    found += [cluster(name, 1) for name in CLUSTERS]
    found += [cluster(name, machines) for name in CLUSTERS for machines in MACHINES]
    name, machines, servers = WITH_SERVERS
    found += [cluster(name, machines, k) for k in servers]
    written = (("dgx1", "DGX-1", 8, {pair: count * NVLINK for pair, count in DGX1.items()}, DGX1_PER_SWITCH),
               ("torus", "torus 3x3x3", 27, dict.fromkeys(grid_links(TORUS, True), LINK), OTHERS_PER_SWITCH),
               ("mesh", "mesh 5x5", 25, dict.fromkeys(grid_links(MESH, False), LINK), OTHERS_PER_SWITCH))
    for file, text, gpus, links, per_switch in written:
        found.append((text, profile_of(folder, file, gpus, links, per_switch), ("--inside",), gpus))
        found.append((f"{text}, rates changed",
                      profile_of(folder, f"{file}-changed", gpus, links, per_switch, random.Random(f"{file} {seed}")),
                      ("--inside",), gpus))
    return found


def limited(limit, *command):
    """Exit status (None: not ended within the limit), seconds, standard error."""
    start = time.monotonic()
    with subprocess.Popen([str(a) for a in command], text=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          start_new_session=True) as process:
        try:
            _, said = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # with what it started
            process.communicate()
            return None, time.monotonic() - start, ""
        return process.returncode, time.monotonic() - start, said


def best_named(document):
    """The fastest scheme by itself."""
    named = [c for c in document["candidates"] if c["strategy"] not in NO_NAMED]
    return min(named, key=lambda c: c["prediction"]["mid_seconds"])["strategy"] if named else ""


def simulated(folder, plan, profile):
    """Seconds; None and why, where it takes too long or there is no simulator. Every part is played by itself."""
    report = folder / "report.json"
    report.unlink(missing_ok=True)
    status, _, said = limited(SIMULATION_LIMIT, RECKON, "simulate", plan, "--profile", profile, "--coarsen",
                              "none", "-o", report)
    if status in DIFFERS:
        return json.loads(report.read_text())["p50_seconds"], ""
    if status is None:
        return None, f"over {SIMULATION_LIMIT} s"
    if status in (2, 3):
        return None, said.strip()
    die(f"reckon simulate {plan}\n{said}exit code {status}", 4)


def one(folder, model, network):
    name, profile, options, gpus = network
    path = folder / "plan.json"
    path.unlink(missing_ok=True)
    row = {"model": model, "network": name, "gpus": gpus, "options": " ".join(map(str, options))}
    status, seconds, said = limited(PLAN_LIMIT, RECKON, "plan", "--profile", profile, "--workload", model, *options,
                                    "-o", path)
    row["planning_seconds"] = seconds
    if status is None:
        return {**row, "failed": f"over {PLAN_LIMIT} s"}
    if status != 0:
        say(f"reproduce: {model}, {name}: exit code {status}: {said.strip()}")
        return {**row, "failed": f"exit code {status}", "why": said.strip()}
    document = json.loads(path.read_text())
    quantities = {q["name"]: q["value"] for q in document["quantities"]}
    for key in ("lower_bound", "single", "mix", "optimum", "certificate", "chosen"):
        row[key] = quantities.get(f"{key}_seconds")
    if row["lower_bound"] is None:
        row["lower_bound"] = document["prediction"]["bound_seconds"]
    row |= {"bytes": document["gradient_bytes"], "named": best_named(document), "strategy": document["strategy"],
            "played": document["prediction"]["mid_seconds"]}
    row["simulated"], row["not_simulated"] = simulated(folder, path, profile)
    if row["not_simulated"]:
        say(f"reproduce: {model}, {name}: not simulated: {row['not_simulated']}")
    return row


def over(value, base):
    """How far a time is over another."""
    if value is None or base is None:
        return "-"
    if base <= 0 or value / base - 1 > FAR_OPEN:
        return f"over {100 * FAR_OPEN} %"
    percent = round(100 * (value / base - 1), 2)
    return f"{percent if percent else 0:.2f} %"  # no -0.00


def cells(row):
    first = (row["network"], row["gpus"])
    if "failed" in row:
        return (*first, *["-"] * 8, row["failed"], "-")
    return (*first, milliseconds(row["lower_bound"]), row["named"], milliseconds(row["single"]),
            milliseconds(row["optimum"]), over(row["optimum"], max(row["certificate"], row["lower_bound"])), milliseconds(row["played"]),
            over(row["played"], row["optimum"]), milliseconds(row["simulated"]), row["strategy"],
            f"{row['planning_seconds']:.1f}")


HEADERS = ("network", "GPUs", "bound", "best named scheme", "its time", "optimum", "left open", "played",
           "over optimum", "simulated", "chosen", "planning s")


def forests(arguments, folder):
    need_build()
    found = networks(folder, arguments.seed)
    rows = []
    for number, (model, network) in enumerate(itertools.product(MODELS, found), 1):
        row = one(folder, model, network)
        rows.append(row)
        say(f"[{number}/{len(MODELS) * len(found)}] {model}, {network[0]}: " + (
            row["failed"] if "failed" in row else f"optimum {milliseconds(row['optimum'])} ms, played "
            f"{milliseconds(row['played'])} ms, simulated {milliseconds(row['simulated'])} ms, planned in "
            f"{row['planning_seconds']:.1f} s"))
    own = sum(profile not in (*INSIDE, *CLUSTERS) for _, profile, _, _ in found)
    lines = ["# Mixes of trees", "",
             "`scripts/reproduce all --only forests` makes this page (`scripts/reproduce forests` leaves it in "
             "`results/`): each row is one `reckon plan` and one `reckon simulate` of that plan. Times are in ms. "
             "Nothing is measured but the time of the planning.", "",
             "No plan can beat `bound` (equation 27). `optimum` is the best mix of trees that the planner found; by "
             "the certificate (the planner's dual values) or the bound, whichever is more, it is at most `left open` over "
             "the best mix there is. The plan predicts `played` for the strategy that it chose, with parts of a "
             "finite size. SimGrid plays every part of the same plan in `simulated`; `-` stands there if that takes "
             f"over {SIMULATION_LIMIT} s or no simulator is built.", "",
             f"The script writes the last {own} networks itself. DGX-1 is eight V100 in a hybrid cube mesh of "
             f"NVLinks of {NVLINK / 1e9:g} GB/s each way, where some pairs have two; a link of the torus and the "
             f"mesh carries {size(LINK)}/s each way. Copies between GPUs without a direct link cross PCIe, which is "
             f"assumed, and mixes use it where it helps: each GPU has PCIe 3.0 x16 below a switch ({DGX1_PER_SWITCH} "
             f"GPUs a switch in DGX-1, {OTHERS_PER_SWITCH} in the others), two processors have {SOCKETS / 1e9:g} "
             f"GB/s each way between them, and their memory reads and writes {MEMORY / 1e9:g} GB/s each. `rates "
             "changed` is the same machine where the rate of each link, those of PCIe and between the processors "
             f"too, is up to {100 * CHANGE:g} % higher or lower, at random and alike in both directions (seed "
             f"{arguments.seed}; `--seed` takes another).", ""]
    for model in MODELS:
        mine = [r for r in rows if r["model"] == model]
        known = next((r["bytes"] for r in mine if "bytes" in r), None)
        lines += [f"## {model}" + (f", {size(known)}" if known else ""), "", table(HEADERS, [cells(r) for r in mine]),
                  ""]
    finish(folder, "forests", lines, rows)


EXPERIMENTS = {"forests": forests}
