# SPDX-License-Identifier: Apache-2.0
"""Beyond the papers: every strategy from 2 to 100 000 workers in the planner, and as far as the simulator goes."""

import json

from reproduction.computed import need_build, plan, plot, simulate
from reproduction.lab import RECKON, call, die, own_bound
from reproduction.pages import Job, Page, digits, experiment, grouped, number

PORT_BYTES = 90e9 / 8
WRITE_COST = 1e-6       # seconds a write costs its port beside its bytes
LATENCIES = (0, 5e-6, 50e-6)
LATENCY = 5e-6
RACK = 32               # workers below one uplink
OVERSUBSCRIPTION = 4
COUNTS = (2, 8, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 100000)
MODELS = ("resnet50", "bert-large")
BY_LATENCY = ("ring", "ps_colocated", "split, k = n", "two levels")
IN_RACKS = ("ring", "ps_colocated", "rack_hierarchical")
RACKED = 2048           # workers in racks at most: a plan's memory grows with the square of the machines, 3.6 GB for 4096
LISTED = 512            # workers over which a plan lists the trees of sums in each rack
# As far as the simulator is asked, so that all of it takes minutes; results/simulate.md has what takes longer.
SIMULATED = {"ring": (8, 32, 128, 512), "ps_colocated": (8, 32, 128), "split, k = n/2": (8, 32, 128),
             "split, k = n": (8, 32, 128, 512), "two levels": (8, 32, 128, 512), "two levels, k = n/2": (8, 32, 128)}
BUDGET = "30s"
STRATEGIES = {  # name: strategy, servers for n workers
    "ring": ("ring", lambda n: 0), "ps_colocated": ("ps_colocated", lambda n: 0),
    "ps, k = n/2": ("ps_noncolocated", lambda n: n // 2), "ps, k = n": ("ps_noncolocated", lambda n: n),
    "split, k = n/2": ("byteps_split", lambda n: n // 2), "split, k = n": ("byteps_split", lambda n: n),
    "two levels": ("two_level_split", lambda n: 0), "two levels, k = n/2": ("two_level_split", lambda n: n // 2)}


def cell(case, value, unit, **key):
    out = {"case": case, "unit": unit, "p50": value, "min": value, "max": value, "p99": value, "n": 0, "spread": 0,
           "status": "published", "transport": "verbs;ofi_rxm", "reason": "assumed for this sweep", **key}
    return out if unit == "seconds" else {**out, "bytes_convention": "payload"}


def profile_of(folder, latency, racks=0):
    """Machines with ports of 90 Gb/s, in racks where asked for; latency and the cost of a write are assumed."""
    groups = [f"machines{i}" for i in range(racks)] or ["machine"]
    count = RACK if racks else 2 * COUNTS[-1]
    cells = []
    for group in groups:
        rack = group.replace("machines", "rack")
        cells.append(cell("port_bandwidth", PORT_BYTES, "bytes_per_second", **{"from": group}))
        if racks:
            cells.append(cell("uplink_bandwidth", RACK * PORT_BYTES / OVERSUBSCRIPTION, "bytes_per_second",
                              **{"from": group.replace("machines", "rack")}))
    first = {"from": groups[0]}
    cells += [cell("fabric_write_latency", latency, "seconds", bytes=8, **first)] if latency else []
    cells += [cell("fabric_write", WRITE_COST + 2**e / PORT_BYTES, "seconds", bytes=2**e, **first) for e in range(10, 25)]
    path = folder / f"profile-{1e6 * latency:g}us-{racks}racks.json"
    path.write_text(json.dumps({
        "schema": "reckon/profile", "schema_version": 1, "name": "scale", "source": "assumed, scripts/reproduce many-workers",
        "context": {}, "fits": [], "topology": {"objects": []}, "cells": cells,
        "machines": [{"id": g, "name": g, "count": count, "cores": 32,
                      **({"rack": g.replace("machines", "rack")} if racks else {})} for g in groups]}))
    return path


def roles_of(folder, n):
    """n workers in racks, no machine that only serves."""
    path = folder / "roles.json"
    groups = [{"machine": f"machines{i}", "count": min(RACK, n - RACK * i), "worker": True, "server": True} for i in range(-(-n // RACK))]
    path.write_text(json.dumps({"schema": "reckon/roles", "schema_version": 1, "name": f"{n} workers in racks", "groups": groups}))
    return path


def planned(folder, profiles, latency, racks, model, n, name):
    """One row of a sweep, which is a plan without its document."""
    strategy, servers = STRATEGIES.get(name, (name, lambda n: 0))
    ranks = ("--roles", roles_of(folder, n)) if racks else ("--workers", n, "--servers", servers(n))
    row, = json.loads(call(RECKON, "plan", "--profile", profiles[latency, racks], "--workload", model, *ranks, "--sweep",
                           f"strategy={strategy}", "--json"))
    if "error" in row:
        die(f"{name} of {n}: {row['error']}", 4)
    return {"servers": servers(n), "part_bytes": row["part_bytes"], "bound_ms": 1e3 * row["busiest_seconds"],
            "predicted_ms": 1e3 * row["mid_seconds"],
            **{f"{cause}_ms": 1e3 * seconds for cause, seconds in losses({**row, "n": n}, strategy, latency).items()}}


def losses(row, strategy, latency):
    """What a prediction is longer by than its bound, seconds, by cause: they add up to (14) without a play."""
    bound, terms = row["busiest_seconds"], row["terms_seconds"]
    write = 1 + WRITE_COST * PORT_BYTES / row["part_bytes"]  # a write on the wire, over its bytes
    # Round a ring latency is of the chain, and only what the chain is longer than the traffic (14b).
    hops = 2 * (row["n"] - 1) if strategy == "ring" else 4 if strategy == "two_level_split" else 2
    waits = {"latency": min(terms["fill"], hops * latency) if strategy == "ring" else hops * latency}
    waits["parts_in_a_row"] = max(0, terms["fill"] - waits["latency"])
    waits["cost_of_writes"] = max(0, terms["transport"] * (1 - 1 / write))
    waits["too_few_parts"] = max(0, terms["transport"] / write - bound)
    waits["sums"] = terms.get("reduction", 0)  # which trees count to their way
    return waits



def simulated(own, profile, n, name):
    strategy, servers = STRATEGIES[name]
    path, document = plan(own, profile, MODELS[0], n, servers(n), strategy)
    report, _ = simulate(path, profile, "--time", BUDGET)
    row = {"servers": servers(n), "part_bytes": document["part_bytes"], "window_parts": document["window_parts"],
           "bound_ms": 1e3 * own_bound(document), "predicted_ms": 1e3 * document["prediction"]["mid_seconds"], "simulated_ms": None}
    if report:
        found = report["simulation"]
        row |= {"simulated_ms": 1e3 * report["p50_seconds"], "writes": found["flows"], "merged_parts": found["merged_parts"],
                "busiest_port_percent": 100 * found["stations"][0]["busy"]}
    return row


def jobs(folder):
    need_build()
    cases = [(latency, 0, model, name, n) for latency in LATENCIES for model in (MODELS if latency == LATENCY else MODELS[:1])
             for name in (STRATEGIES if latency == LATENCY else BY_LATENCY) for n in COUNTS]
    cases += [(LATENCY, -(-n // RACK), model, name, n) for model in MODELS for name in IN_RACKS for n in COUNTS
              if RACK < n <= RACKED and (name != "rack_hierarchical" or n <= LISTED)]
    profiles = {key: profile_of(folder, *key) for key in {case[:2] for case in cases}}
    return {"": [Job({"latency_us": 1e6 * latency, "racks": racks, "model": model, "strategy": name, "workers": n},
                     lambda own, a=(latency, racks, model, n, name): planned(own, profiles, *a)) for latency, racks, model, name, n in cases],
            "simulated": [Job({"strategy": name, "workers": n}, lambda own, n=n, s=name: simulated(own, profiles[LATENCY, 0], n, s))
                          for name, counts in SIMULATED.items() for n in counts]}


def over_bound(row):
    return number(row, "predicted_ms") / number(row, "bound_ms")


def pictures(folder, tables):
    """Predicted over bound, by the number of workers."""
    flat = grouped([r for r in tables[""] if r["racks"] == "0"], "latency_us", "model", "strategy")
    usual = f"{1e6 * LATENCY:g}"
    pages = {model: ([(name, (usual, model, name)) for name in STRATEGIES],
                     f"{model}, latency {usual} us, a write costs {1e6 * WRITE_COST:g} us") for model in MODELS}
    pages["latency"] = ([(f"{name}, {1e6 * latency:g} us", (f"{1e6 * latency:g}", MODELS[0], name)) for name in ("ring", "split, k = n")
                         for latency in LATENCIES], f"{MODELS[0]}, by latency")
    for name, (curves, title) in pages.items():
        plot(folder, f"many-workers-{name}", [
            "set logscale x 2", "set logscale y", f'set title "{title}"', 'set xlabel "workers"', 'set ylabel "predicted time over its bound"',
            "set key outside right", "set xrange [2:131072]", "set yrange [0.95:*]"],
            [(label, f"linespoints lw 2 pt {order + 4} lc {order}",
              [(int(r["workers"]), over_bound(r)) for r in flat[key] if number(r, "bound_ms") > 0])
             for order, (label, key) in enumerate(curves, 1)])


def summary(tables):
    """The first count whose prediction is over 1.5 and 2 bounds, and the last, for each strategy."""
    rows = []
    for (model, name), mine in grouped([r for r in tables[""] if r["racks"] == "0" and float(r["latency_us"]) == 1e6 * LATENCY],
                                       "model", "strategy").items():
        first = [next((r["workers"] for r in mine if over_bound(r) > factor), "none") for factor in (1.5, 2)]
        last = mine[-1]
        most = max((c for c in last if c.endswith("_ms") and c not in ("bound_ms", "predicted_ms") and last[c]), key=lambda c: float(last[c]))
        rows.append((model, name, *first, digits(number(last, "bound_ms")), digits(number(last, "predicted_ms")),
                     f"{most.removesuffix('_ms').replace('_', ' ')}, {digits(float(last[most]), 3)}"))
    return ("model", "strategy", "1.5 bounds from n", "2 bounds from n", f"bound, n = {COUNTS[-1]}, ms", "predicted, ms",
            "of it most, ms"), rows


PAGE = Page("many-workers", ("", "simulated"), summary, jobs, pictures, sparse=3,
            limited=("simulated_ms", "writes", "merged_parts", "busiest_port_percent"))
EXPERIMENTS = experiment(PAGE)
