# SPDX-License-Identifier: Apache-2.0
"""PHub (SysML 2018): what a central server with several ports is worth, predicted and measured side by side."""

import json
import statistics

from reproduction.lab import RECKON, Lab, build, call, measure, own_bound, parse_bytes, probe, say, whole, workload
from reproduction.pages import Page, number, publish

PORTS = 10
RATE, PORT_RATE = "40mbit", "20mbit"  # a worker's port, and each of the server's: they bind from 5 workers on
MODEL_BYTES = "4MiB"
CHUNKED = "dlrm"  # few tensors, of very different lengths
MOST = 8
BUDGET = "150s"  # of a probe: so many lanes on few processors need long windows


def machines_of(n, k):
    return [f"w{i}" for i in range(n)] + [f"s{i}" for i in range(k)]


def roles_of(folder, profile, n, k, lanes):
    """Rank i < n on worker machine i, the next k on the server machines, whatever groups the probe found."""
    groups, left = [], {"w": n, "s": k}
    for group in json.loads(profile.read_text())["machines"]:
        for kind in "ws":
            here = min(left[kind], sum(name.startswith(kind) for name in group["members"]))
            if here:
                groups.append({"machine": group["id"], "count": here, "worker": kind == "w", "server": True, "lanes": lanes})
                left[kind] -= here
    path = folder / "roles.json"
    path.write_text(json.dumps({"schema": "reckon/roles", "schema_version": 1, "name": f"{n} workers, {k} servers",
                                "groups": groups}))
    return path


def plan_on(folder, profile, model, n, k, lanes, strategy, *more):
    path = folder / "plan.json"
    call(RECKON, "plan", "--profile", profile, "--workload", model, "--roles", roles_of(folder, profile, n, k, lanes), "--strategy",
         strategy, "--transport", "tcp;ofi_rxm", "--zero-compute", "-o", path, *more)
    return path, json.loads(path.read_text())


def one_curve(lab, folder, profile, model, strategy, servers_for, arguments, lanes=1):
    rows = []
    for n in range(1, MOST + 1):
        k = servers_for(n)
        if n + k < 2:
            continue
        path, document = plan_on(folder, profile, model, n, k, lanes, strategy)
        seconds = [s for _ in range(arguments.rounds) for s in measure(lab, folder, path, machines_of(n, k))]
        prediction = document["prediction"]
        rows.append({"n": n, "servers": k, "lanes": document["ranks"][0]["lanes"], "bound": own_bound(document),
                     "predicted": prediction["mid_seconds"], "measured": statistics.median(seconds), "samples": seconds})
        say(f"{strategy} n={n} k={k}: predicted {rows[-1]['predicted']:.3f} s, measured {rows[-1]['measured']:.3f} s")
    return rows


def ports(arguments, folder):
    """A central server with several ports."""
    model = workload(folder, parse_bytes(MODEL_BYTES))
    with Lab(MOST, 1, [RATE] * MOST + [PORT_RATE], more=("--server-nics", PORTS)) as lab:
        profile = arguments.profile or probe(lab, folder, BUDGET)
        return {f"central, {PORTS} ports": one_curve(lab, folder, profile, model, "ps_noncolocated", lambda n: 1, arguments,
                                                     PORTS)}


def servers(arguments, folder):
    """Servers with one port each: one for all, one for each worker, on the workers themselves."""
    model = workload(folder, parse_bytes(MODEL_BYTES))
    with Lab(MOST, MOST, [RATE]) as lab:
        profile = arguments.profile or probe(lab, folder, BUDGET)
        return {name: one_curve(lab, folder, profile, model, strategy, servers_for, arguments)
                for name, strategy, servers_for in (("central, 1 port", "ps_noncolocated", lambda n: 1),
                                                    ("sharded, not colocated", "ps_noncolocated", lambda n: n),
                                                    ("sharded, colocated", "ps_colocated", lambda n: 0))}


def plot(folder, curves):
    script = ['set terminal pngcairo size 960,600 font "Liberation Sans,11"', f'set output "{folder}/phub.png"',
              'set xlabel "workers"', 'set ylabel "iterations a second, all workers together"', "set key outside right", "set grid",
              "set yrange [0:*]", f"set xrange [0.7:{MOST + 0.3}]"]
    drawn = []
    for number, (name, rows) in enumerate(curves.items()):
        for what in ("predicted", "measured"):
            values = "\n".join(f"{r['n']} {r['n'] / r[what]}" for r in rows)
            script.append(f"$d{number}{what} << E\n{values}\nE")
        drawn += [f'$d{number}predicted with lines lc {number + 1} title "{name}, predicted"',
                  f'$d{number}measured with points lc {number + 1} pt {number + 5} ps 1.4 title "measured"']
    script.append("plot " + ", \\\n  ".join(drawn))
    (folder / "phub.gnuplot").write_text("\n".join(script) + "\n")
    call("gnuplot", folder / "phub.gnuplot")


def chunks(arguments, folder):
    """32 KiB chunks against whole tensors, on a central server with several ports."""
    rows = []
    with Lab(MOST, 1, [RATE] * MOST + [PORT_RATE], more=("--server-nics", PORTS)) as lab:
        profile = arguments.profile or probe(lab, folder, BUDGET)
        for name, options in (("chunks of 32 KiB", ("--part-bytes", "32KiB")), ("solved", ()),
                              ("whole tensors", ("--cutting", "tensors", "--part-bytes", "16MiB"))):
            path, document = plan_on(folder, profile, CHUNKED, 4, 1, PORTS, "ps_noncolocated", *options)
            seconds = [s for _ in range(arguments.rounds) for s in measure(lab, folder, path, machines_of(4, 1))]
            of_lane = {}
            for lane, bytes_ in zip(whole(document["parts"]["lane"]), whole(document["parts"]["bytes"])):
                of_lane[lane] = of_lane.get(lane, 0) + bytes_
            lanes = document["ranks"][0]["lanes"]
            rows.append({"name": name, "parts": len(whole(document["parts"]["bytes"])), "part_bytes": document["part_bytes"],
                         "evenness": max(of_lane.values()) * lanes / sum(of_lane.values()),
                         "predicted": document["prediction"]["mid_seconds"], "measured": statistics.median(seconds)})
            say(f"{name}: predicted {rows[-1]['predicted']:.3f} s, measured {rows[-1]['measured']:.3f} s")
    return rows


def capacity(folder):
    """Workers of one box at table 1's iteration, and throughput for the money."""
    prices = folder / "prices-example.json"
    prices.write_text('{"currency": "EXAMPLE", "per": "hour", "worker": 3, "box": 10, "server": 1}\n')

    def solve(port, iteration, *more):
        return json.loads(call(RECKON, "solve", "capacity", "--workload", "resnet50", "--interfaces", 10, "--interface-bandwidth", port,
                               "--iteration", iteration, "--json", *more))

    workers = [{"iteration": name, "workers": solve(port, iteration)["workers"], "paper_workers": 120} for name, port, iteration in (
        ("190 images a second (table 1)", "56Gb/s", "168.42ms"), ("182.598, which 120 would need", "56Gb/s", "175.2483ms"),
        ("190, 54.5 Gb/s of data a port", "54.5Gb/s", "168.42ms"))]
    placed = solve("56Gb/s", "168.42ms", "--workers", 120, "--prices", prices, "--batch", 32)["placements"]
    return workers, [{"placement": p["name"], "servers": p["servers"], "iteration_ms": 1e3 * p["iteration_seconds"],
                      "images_per_s": p["samples_per_second"], "cost_per_hour": p["cost"],
                      "images_per_cost": 3600 * p["samples_per_second"] / p["cost"]} for p in placed]


def cells(curves):
    return [{"placement": name, "workers": r["n"], "servers": r["servers"], **{f"{what}_per_s": r["n"] / r[what] for what in (
        "bound", "predicted", "measured")}} for name, rows in curves.items() for r in rows]


def chunk_cells(rows):
    return [{"lab": "eight workers", "ports_known": "as probed", "cut": r["name"], "parts": r["parts"], "part_bytes": r["part_bytes"],
             "fullest_lane": r["evenness"], "predicted_s": r["predicted"], "measured_s": r["measured"]} for r in rows]


def summary(tables):
    rates = {(r["placement"], int(r["workers"])): r for r in tables[""]}
    binding = PORTS * int(PORT_RATE[:-4]) // int(RATE[:-4])  # workers whose ports together are the server's
    box = f"central, {PORTS} ports"

    def ratio(above, below):
        return ", ".join(f"{number(rates[above], f'{what}_per_s') / number(rates[below], f'{what}_per_s'):.2f} {what}"
                         for what in ("measured", "predicted"))

    cut = {r["cut"]: r for r in tables["chunks"] if r["lab"] == "eight workers" and r["parts"]}
    return ("the paper", "here"), [
        ("linear scaling on 8 workers (2)", f"{binding} workers over 1: {ratio((box, binding), (box, 1))}; 8 over 1: {ratio((box, MOST), (box, 1))}"),
        ("a central server up to 3.8 times as fast as servers on the workers at 10 Gb/s (2)",
         f"{binding} workers: {ratio((box, binding), ('sharded, colocated', binding))}"),
        ("a central server needs its interfaces", f"{binding} workers, {PORTS} ports over 1: {ratio((box, binding), ('central, 1 port', binding))}"),
        ("central or sharded, neither colocated", f"{binding} workers: {ratio((box, binding), ('sharded, not colocated', binding))}"),
        ("32 KiB chunks balance the cores (2)", "whole tensors take "
         f"{number(cut['whole tensors'], 'measured_s') / number(cut['chunks of 32 KiB'], 'measured_s'):.2f} times as long, measured"),
        ("one PBox supports up to 120 workers (2)", f"{tables['capacity'][0]['workers']} by (47)")]


PAGE = Page("phub", ("", "chunks", "capacity", "cost"), summary)
PARTS = {"ports": ports, "servers": servers, "chunks": chunks}


def phub(arguments, folder):
    """Worker iterations a second over the number of workers, nothing computed: PHub's ZeroComputeEngine; chunks; capacity."""
    build(False)
    done = {}
    for name, part in PARTS.items():
        path = folder / f"phub-{name}.json"
        if not arguments.only or arguments.only in name:
            path.write_text(json.dumps(part(arguments, folder), indent=1) + "\n")
        if path.exists():  # with --only: from an earlier call
            done[name] = json.loads(path.read_text())
    curves = {**done.get("ports", {}), **done.get("servers", {})}
    if set(PARTS) <= set(done):
        plot(folder, curves)
        workers, cost = capacity(folder)
        publish(PAGE, {"": cells(curves), "chunks": chunk_cells(done["chunks"]), "capacity": workers, "cost": cost}, folder)
    else:
        say(f"not measured yet: {', '.join(set(PARTS) - set(done))}")


EXPERIMENTS = {"phub": phub}
