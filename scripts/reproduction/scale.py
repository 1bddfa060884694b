# SPDX-License-Identifier: Apache-2.0
"""Beyond the papers: every strategy from 2 to 100 000 workers in the planner, and as far as the simulator goes."""

import json

from reproduction.computed import finish, milliseconds, need_build, plan, plot, simulate
from reproduction.lab import RECKON, call, die, own_bound, percent, say, size, table

PORT_BYTES = 90e9 / 8
WRITE_COST = 1e-6       # seconds a write costs its port beside its bytes
LATENCIES = (0, 5e-6, 50e-6)
LATENCY = 5e-6
RACK = 32               # workers below one uplink
OVERSUBSCRIPTION = 4
COUNTS = (2, 8, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 100000)
MODELS = ("resnet50", "bert-large")
BY_LATENCY = ("ring", "ps_colocated", "split, k = n")
IN_RACKS = ("ring", "ps_colocated", "rack_hierarchical")
LISTED = 512            # workers over which a plan lists the trees of sums in each rack
# As far as the simulator is asked, so that all of it takes minutes; results/simulate.md has what takes longer.
SIMULATED = {"ring": (8, 32, 128, 512), "ps_colocated": (8, 32, 128), "split, k = n/2": (8, 32, 128),
             "split, k = n": (8, 32, 128, 512)}
BUDGET = "30s"
STRATEGIES = {  # name: strategy, servers for n workers
    "ring": ("ring", lambda n: 0), "ps_colocated": ("ps_colocated", lambda n: 0),
    "ps, k = n/2": ("ps_noncolocated", lambda n: n // 2), "ps, k = n": ("ps_noncolocated", lambda n: n),
    "split, k = n/2": ("byteps_split", lambda n: n // 2), "split, k = n": ("byteps_split", lambda n: n)}


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
        "schema": "reckon/profile", "schema_version": 1, "name": "scale", "source": "assumed, scripts/reproduce scale",
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


def planned(profile, model, n, k, strategy, *more):
    """One row of a sweep, which is a plan without its document."""
    ranks = more or ("--workers", n, "--servers", k)
    row, = json.loads(call(RECKON, "plan", "--profile", profile, "--workload", model, *ranks, "--sweep", f"strategy={strategy}",
                           "--json"))
    return row


def in_planner(folder, racked):
    """By (latency, model, strategy's name): rows over n. In racks the strategies share uplinks."""
    rows = {}
    for latency in LATENCIES if not racked else (LATENCY,):
        for model in MODELS if latency == LATENCY else MODELS[:1]:
            for n in COUNTS:
                if racked and n <= RACK:
                    continue
                profile = profile_of(folder, latency, -(-n // RACK) if racked else 0)
                for name in IN_RACKS if racked else STRATEGIES if latency == LATENCY else BY_LATENCY:
                    if name == "rack_hierarchical" and n > LISTED:
                        continue
                    strategy, servers = STRATEGIES.get(name, (name, lambda n: 0))
                    more = ("--roles", roles_of(folder, n)) if racked else ()
                    row = planned(profile, model, n, servers(n), strategy, *more)
                    if "error" in row:
                        die(f"{name} of {n}: {row['error']}", 4)
                    rows.setdefault((latency, model, name), []).append({"n": n, "k": servers(n), **row})
            say(f"{'racks' if racked else 'one switch'}, latency {1e6 * latency:g} us, {model}: {len(COUNTS)} counts planned")
    return rows


def losses(row, strategy, latency):
    """What a prediction is longer by than its bound, seconds, by cause: they add up to (14) without a play."""
    bound, terms = row["busiest_seconds"], row["terms_seconds"]
    write = 1 + WRITE_COST * PORT_BYTES / row["part_bytes"]  # a write on the wire, over its bytes
    # Round a ring latency is of the chain, and only what the chain is longer than the traffic (14b).
    waits = {"latency": min(terms["fill"], 2 * (row["n"] - 1) * latency) if strategy == "ring" else 2 * latency}
    waits["parts in a row"] = max(0, terms["fill"] - waits["latency"])
    waits["cost of a write"] = max(0, terms["transport"] * (1 - 1 / write))
    waits["too few parts"] = max(0, terms["transport"] / write - bound)
    waits["sums"] = terms.get("reduction", 0)  # which trees count to their way
    return waits


def binds(row, strategy, latency):
    waits = losses(row, strategy, latency)
    worst = max(waits, key=waits.get)
    return "ports" if waits[worst] < 0.1 * row["busiest_seconds"] else worst


def stops(rows, factor):
    """The first count whose prediction is `factor` times its bound; None: none does."""
    return next((r["n"] for r in rows if r["mid_seconds"] > factor * r["busiest_seconds"]), None)


def in_simulator(folder):
    rows = []
    profile = profile_of(folder, LATENCY)
    for name, counts in SIMULATED.items():
        strategy, servers = STRATEGIES[name]
        for n in counts:
            path, document = plan(folder, profile, MODELS[0], n, servers(n), strategy)
            report, why = simulate(path, profile, "--time", BUDGET)
            row = {"name": name, "n": n, "k": servers(n), "planned": document["prediction"]["mid_seconds"],
                   "bound": own_bound(document), "part_bytes": document["part_bytes"],
                   "window_parts": document["window_parts"], "simulated": None, "why": why}
            if report:
                simulation = report["simulation"]
                row |= {"simulated": report["p50_seconds"], "flows": simulation["flows"], "merged": simulation["merged_parts"],
                        "busiest": simulation["stations"][0]}
            rows.append(row)
            say(f"{name} n={n}: planned {milliseconds(row['planned'])} ms, simulated {milliseconds(row['simulated'])}")
    return rows


def over_bound(folder, name, rows, of, title):
    """Predicted over bound, by the number of workers."""
    plot(folder, name, ["set logscale x 2", "set logscale y", f'set title "{title}"', 'set xlabel "workers"',
                        'set ylabel "predicted time over its bound"', "set key outside right", "set xrange [2:131072]",
                        "set yrange [0.95:*]"],
         [(label, f"linespoints lw 2 pt {number + 4} lc {number}",
           [(r["n"], r["mid_seconds"] / r["busiest_seconds"]) for r in rows[key] if r["busiest_seconds"] > 0])
          for number, (label, key) in enumerate(of, 1)])


def answers(rows, model, names, latency):
    cells = []
    for name in names:
        mine = rows[latency, model, name]
        strategy = STRATEGIES.get(name, (name,))[0]
        last = mine[-1]
        half, twice = stops(mine, 1.5), stops(mine, 2)
        worst = sorted(losses(last, strategy, latency).items(), key=lambda item: -item[1])[:2]
        at_most = lambda text: text if last["n"] == COUNTS[-1] else f"{text} (n = {last['n']})"
        cells.append((name, milliseconds(mine[0]["busiest_seconds"]), at_most(milliseconds(last["busiest_seconds"])), half or "none",
                      binds(next(r for r in mine if r["n"] == half), strategy, latency) if half else "-", twice or "none",
                      at_most(milliseconds(last["mid_seconds"])), size(last["part_bytes"]),
                      ", ".join(f"{cause} {milliseconds(seconds, 3)}" for cause, seconds in worst)))
    return table(("strategy", f"bound ms, n = {mine[0]['n']}", f"n = {COUNTS[-1]}", "1.5 bounds from n", "by", "2 bounds from n",
                  f"predicted ms, n = {COUNTS[-1]}", "part", "most of what is beyond the bound, ms"), cells)


def over_n(rows, model, names, latency, counts):
    cells = []
    for name in names:
        by = {r["n"]: r for r in rows[latency, model, name]}
        cells.append((name, *(milliseconds(by[n]["mid_seconds"]) if n in by else "-" for n in counts)))
    return table(("predicted ms", *(f"n = {n}" for n in counts)), cells)


def chain(row, latency):
    """A part's way round a ring and back: 2 (n - 1) times its time on the wire and the latency, one after another."""
    return 2 * (row["n"] - 1) * (row["part_bytes"] / PORT_BYTES + WRITE_COST + latency)


def answer(rows, racked, simulated):
    """What binds, in words, with this run's figures."""
    model = MODELS[0]
    most = COUNTS[-1]

    def of(name, n, where=rows):
        return next(r for r in where[LATENCY, model, name] if r["n"] == n)

    def first(name, factor, model=model):
        count = stops(rows[LATENCY, model, name], factor)
        return f"{count}" if count else f"none up to {most}"

    ring = of("ring", most)
    rings = [r for r in simulated if r["name"] == "ring"]
    last = max(rings, key=lambda r: r["n"])
    played = of("ring", last["n"])
    split, half = of("split, k = n", most), of("split, k = n/2", most)
    return ["## In short", "",
            f"- **ring**: the chain. A part is sent on 2(n-1) times, each time for its bytes and the latency: with {most} workers "
            f"{milliseconds(chain(ring, LATENCY))} ms for parts of {size(ring['part_bytes'])}, of it {milliseconds(2 * most * LATENCY)} ms "
            f"latency, against a bound of {milliseconds(ring['busiest_seconds'])} ms. {model} is predicted at 1.5 bounds from n = "
            f"{first('ring', 1.5)} on, {MODELS[1]} from {first('ring', 1.5, MODELS[1])}: the shorter the gradient, the sooner.",
            f"- While a ring has parts enough for its ports the chain costs nothing (14b): n = {last['n']} is predicted with "
            f"{milliseconds(last['planned'])} ms and simulated with {milliseconds(last['simulated'])}; its ports need "
            f"{milliseconds(played['terms_seconds']['transport'])} ms, and the chain takes {milliseconds(chain(played, LATENCY))}.",
            "- **Servers** (colocated, not colocated, split): the granularity of parts; latency counts twice, whatever n is. A server gets a part "
            "from each worker and gives one to each, and a worker has one for each server, so that n and k parts pass a port before and after "
            f"the steady traffic: {model} with k = n is predicted at 1.5 bounds from n = {first('split, k = n', 1.5)} on, {MODELS[1]} from "
            f"{first('split, k = n', 1.5, MODELS[1])}. Once M/n is below the least part, 16 KiB, there are fewer parts than servers, "
            f"besides: at {most} {model} takes {milliseconds(split['mid_seconds'])} ms, with k = n/2 {milliseconds(half['mid_seconds'])}. "
            "Shorter parts help only down to where the cost of a write is as long as its bytes, 11 KiB here.",
            "- **CPU machines** never stop helping by the bounds: 2 M/B without, 4/3 with n/2 of them, 1 with n (7). Where parts bind they "
            f"help little: at {most} {model} takes {milliseconds(of('ps_colocated', most)['mid_seconds'])} ms without any. A parameter server "
            "with n/2 takes 2 M/B.",
            "- **Racks**: servers that do not know of racks are bound by uplinks at once; their bound is "
            f"{of('ps_colocated', LISTED, racked)['busiest_seconds'] / of('rack_hierarchical', LISTED, racked)['busiest_seconds']:.0f} times that of "
            f"sums in each rack at n = {LISTED}. A ring and sums in each rack cross an uplink as often as they must; the ring's chain is long, "
            f"that over racks short: {milliseconds(of('ring', LISTED, racked)['mid_seconds'])} against "
            f"{milliseconds(of('rack_hierarchical', LISTED, racked)['mid_seconds'])} ms with {LISTED} workers. Beyond that a plan does not list "
            "the trees, of which there are as many as workers; where one machine a rack only serves there is one a rack.",
            "- **The planner** itself is not what stops: [simulate.md](simulate.md#the-planner-by-size) has its time and memory. **The simulator** stops where each "
            "worker is like no other (colocated servers, k < n): writes grow with parts times n, and connections with n squared.", ""]


def scale(arguments, folder):
    del arguments
    need_build()
    rows, racked = in_planner(folder, False), in_planner(folder, True)
    simulated = in_simulator(folder)
    for model in MODELS:
        over_bound(folder, f"scale-{model}", rows, [(name, (LATENCY, model, name)) for name in STRATEGIES],
                   f"{model}, latency {1e6 * LATENCY:g} us, a write costs {1e6 * WRITE_COST:g} us")
    over_bound(folder, "scale-latency", rows, [
        (f"{name}, {1e6 * latency:g} us", (latency, MODELS[0], name)) for name in ("ring", "split, k = n") for latency in LATENCIES],
        f"{MODELS[0]}, by latency")
    counts = (2, 8, 32, 128, 512, 2048, 8192, 32768, 100000)
    lines = ["# Beyond the papers: to 100 000 workers", "",
             "Written by `scripts/reproduce scale`: planned by the formulas and, where a job is small enough, the play; simulated further "
             "below. Machines with ports of 90 Gb/s each way on a switch that never binds. **Assumed**, for no paper has them: a "
             f"write costs its port {1e6 * WRITE_COST:g} us beside its bytes and takes {1e6 * LATENCY:g} us to arrive (also "
             f"{', '.join(f'{1e6 * l:g}' for l in LATENCIES if l != LATENCY)}); sums cost nothing. Parts are solved, from 16 KiB up.", "",
             *answer(rows, racked, simulated)]
    for model in MODELS:
        lines += [f"## {model}", "", answers(rows, model, STRATEGIES, LATENCY), "", over_n(rows, model, STRATEGIES, LATENCY, counts), "",
                  f"![predicted over bound, {model}](scale-{model}.png)", ""]
    lines += ["## Latency", "", f"The same for {MODELS[0]}, at each latency:", ""]
    for latency in LATENCIES:
        lines += [f"{1e6 * latency:g} us:", "", answers(rows, MODELS[0], BY_LATENCY, latency), ""]
    lines += ["![predicted over bound, by latency](scale-latency.png)", "", "## Racks", "",
              f"{RACK} workers a rack, uplinks for a quarter of their ports, {1e6 * LATENCY:g} us. A ring crosses each uplink once; servers "
              "without regard to racks send almost everything across.", ""]
    for model in MODELS:
        lines += [f"{model}:", "", answers(racked, model, IN_RACKS, LATENCY), "", over_n(racked, model, IN_RACKS, LATENCY, counts[3:]), ""]
    errors = [abs(r["simulated"] / r["planned"] - 1) for r in simulated if r["simulated"]]
    lines += ["## In the simulator", "",
              f"{MODELS[0]}, {1e6 * LATENCY:g} us, plans as above, at most {BUDGET} of estimated processor time each (parts are merged, or it is "
              f"refused). Greatest difference {100 * max(errors):.0f} %. How long simulations take, to 1024 machines: "
              "[simulate.md](simulate.md).", "",
              table(("strategy", "n", "k", "bound ms", "planned ms", "simulated ms", "difference", "writes played", "busiest port"),
                    [(r["name"], r["n"], r["k"], milliseconds(r["bound"]), milliseconds(r["planned"]), milliseconds(r["simulated"]),
                      percent(r["simulated"] / r["planned"] - 1) if r["simulated"] else "refused", r.get("flows", "-"),
                      f"{100 * r['busiest']['busy']:.0f} %" if r["simulated"] else "-") for r in simulated]), ""]
    finish(folder, "scale", lines, {"planned": [{"latency": l, "model": m, "name": s, "rows": v} for (l, m, s), v in rows.items()],
                                    "racks": [{"model": m, "name": s, "rows": v} for (_, m, s), v in racked.items()],
                                    "simulated": simulated})


EXPERIMENTS = {"scale": scale}
