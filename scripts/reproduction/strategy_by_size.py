# SPDX-License-Identifier: Apache-2.0
"""Which strategy the planner takes, over the size of a message, machines and servers."""

import collections
import json
import statistics

from reproduction.computed import need_build, one_tensor
from reproduction.forests import NO_NAMED
from reproduction.lab import RECKON, call, size
from reproduction.networks import profile_of, published, shipped, write
from reproduction.pages import Job, Page, experiment, grouped, number

KIB, MIB, GIB = 2**10, 2**20, 2**30
SIZES = (16 * KIB, 256 * KIB, 4 * MIB, 64 * MIB, GIB)
CLUSTERS = ("h100-cluster", "a100-cluster")
MACHINES = (1, 2, 4, 8, 16)
PORT_MACHINES = (2, 4, 8, 16)
SERVERS = {"no servers": lambda n: 0, "n/2 servers": lambda n: n // 2, "n servers": lambda n: n}
PORT = 12.5e9       # 100 Gb/s
LATENCY = 5e-6      # seconds, of a write between machines
WRITE_COST = 1e-6   # seconds that a write costs its port beside its bytes
TRANSPORT = "verbs;ofi_rxm"
SHORT = 256 * KIB   # up to here latencies count


def between_machines(machine):
    """Cells of the latency between machines."""
    return [published("fabric_write_latency", LATENCY, "seconds", bytes=8, transport=TRANSPORT, **{"from": machine})]


def with_latency(folder, name):
    document = shipped(name)
    return write(folder, f"{name}-latency",
                 {**document, "cells": [c for c in document["cells"] if c["case"] != "fabric_write_latency"] + between_machines(document["machines"][0]["id"])})


def ports(folder):
    """Machines that are nothing but a port."""
    cells = [published("port_bandwidth", PORT, transport=TRANSPORT, **{"from": "m"}), *between_machines("m"),
             *(published("fabric_write", WRITE_COST + 2**e / PORT, "seconds", bytes=2**e, transport=TRANSPORT,
                         **{"from": "m"}) for e in range(10, 25))]
    machines = [{"id": "m", "name": "100 Gb/s", "count": 2 * PORT_MACHINES[-1], "cores": 32}]
    return write(folder, "ports", profile_of("ports", machines, cells, [], []))


def planned(folder, profile, model_bytes, machines, servers, *options):
    path = folder / "plan.json"
    call(RECKON, "plan", "--profile", profile, "--workload", one_tensor(folder, model_bytes), "--workers", machines, "--servers", servers,
         *options, "-o", path)
    document = json.loads(path.read_text())
    times = {c["strategy"]: c["prediction"]["mid_seconds"] for c in document["candidates"] if "prediction" in c}
    found, chosen = document["prediction"], document["strategy"]
    second = min((name for name in times if name not in (chosen, *NO_NAMED)), key=times.get, default="")
    return {"chosen": chosen, "predicted_us": 1e6 * found["mid_seconds"], "bound_us": 1e6 * found["bound_seconds"], "next_strategy": second,
            "next_longer_percent": 100 * (times[second] / times[chosen] - 1) if second else None}


def jobs(folder):
    need_build()
    networks = [(f"GPUs of {name}", with_latency(folder, name), [(n, 0) for n in MACHINES], ("--places", "gpu")) for name in CLUSTERS]
    profile = ports(folder)
    networks += [(f"ports, {text}", profile, [(n, servers(n)) for n in PORT_MACHINES], ()) for text, servers in SERVERS.items()]
    return {"": [Job({"network": text, "machines": n, "servers": k, "gradient_bytes": count},
                     lambda own, p=profile, b=count, n=n, k=k, o=options: planned(own, p, b, n, k, *o))
                 for text, profile, counts, options in networks for n, k in counts for count in SIZES]}


def summary(tables):
    def part(row):
        return "1 machine" if row["machines"] == "1" else f"up to {size(SHORT)}" if int(row["gradient_bytes"]) <= SHORT else "longer"

    rows = []
    for (network,), mine in grouped(tables[""], "network").items():
        for name, some in grouped([{**r, "part": part(r)} for r in mine], "part").items():
            chosen = collections.Counter(r["chosen"] for r in some)
            ratios = [number(r, "predicted_us") / number(r, "bound_us") for r in some]
            often = ", ".join(f"`{strategy}` {count}" for strategy, count in sorted(chosen.items(), key=lambda c: (-c[1], c[0])))
            rows.append((network, *name, often, f"{statistics.median(ratios):.2f}", f"{max(ratios):.2f}"))
    return ("network", "message", "chosen strategy and how often", "times the bound, median", "greatest"), rows


PAGE = Page("strategy-by-size", ("",), summary, jobs)
EXPERIMENTS = experiment(PAGE)
