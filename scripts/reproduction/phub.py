# SPDX-License-Identifier: Apache-2.0
"""PHub (SysML 2018): what a central server with several ports is worth, predicted and measured side by side."""

import json
import statistics

from reproduction.lab import (RECKON, Lab, build, call, measure, own_bound, parse_bytes, percent, probe, say, size, table,
                              whole, workload)

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


def scaling_lines(curves, arguments):
    lines = ["## Worker scaling with zero compute", "",
             f"Workers' ports of {RATE}; a central server with {PORTS} ports of {PORT_RATE} each, or servers with one port of {RATE}; "
             f"{MODEL_BYTES} exchanged; medians of {2 * arguments.rounds} iterations. Iterations of all workers together a "
             "second:", ""]
    cells = []
    for name, rows in curves.items():
        for r in rows:
            cells.append((name, r["n"], r["servers"], f"{r['n'] / r['bound']:.3f}", f"{r['n'] / r['predicted']:.3f}",
                          f"{r['n'] / r['measured']:.3f}", percent(r["measured"] / r["predicted"] - 1)))
    return [*lines, "![iterations a second over workers](phub.png)", "",
            table(("placement", "workers", "servers", "bound", "predicted", "measured", "error of the time"), cells), ""]


def at(curves, name, n):
    """Predicted and measured iterations a second of all n workers together; None where that was not run."""
    row = next((r for r in curves.get(name, ()) if r["n"] == n), None)
    return row and {what: n / row[what] for what in ("predicted", "measured")}


def ratio_text(above, below):
    if not above or not below:
        return "not run"
    return f"{above['measured'] / below['measured']:.2f} measured, {above['predicted'] / below['predicted']:.2f} predicted"


def linear_texts(curves, box, binding):
    """2 to `binding` workers over 1, and how far (2) is linear with what the probe found."""
    rows = {r["n"]: r for r in curves.get(box, ())}
    if not {1, *range(2, binding + 1), MOST} <= set(rows):
        return "not run", "-"
    over = {what: [n * rows[1][what] / rows[n][what] for n in range(2, binding + 1)] for what in ("measured", "predicted")}
    carried = MOST * rows[1]["bound"] / rows[MOST]["bound"]
    short = [100 * (1 - ratio / n) for n, ratio in enumerate(over["measured"], 2)]
    here = ", ".join(f"{r:.2f}" for r in over["measured"]) + " measured, " + ", ".join(f"{r:.2f}" for r in over["predicted"])
    return (f"{', '.join(map(str, range(2, binding + 1)))} workers over 1: {here} predicted",
            f"(2) is linear as long as the box's ports carry what the workers send: by the probe {carried:.1f} workers' here, {binding} at the "
            "rates that the ports are set to; in the paper, with ten ports of the workers' own speed, ten. Measured is short of linear by "
            f"{', '.join(f'{s:.0f}' for s in short)} %")


def claim_lines(curves, chunk_rows, workers):
    box, one = f"central, {PORTS} ports", "central, 1 port"
    binding = PORTS * int(PORT_RATE[:-4]) // int(RATE[:-4])  # workers whose ports together are the server's
    cut = {r["name"]: r for r in chunk_rows}
    small, whole = cut.get("chunks of 32 KiB"), cut.get("whole tensors")
    rows = [
        ("linear scaling on 8 workers; nothing computed (2)", *linear_texts(curves, box, binding)),
        ("the same, beyond what the ports carry",
         f"{MOST} workers over 1: {ratio_text(at(curves, box, MOST), at(curves, box, 1))}",
         "the most by (2), as above: the box's ports bind"),
        ("a central server with many interfaces against servers on the workers: up to 3.8 times at 10 Gb/s, 2 to 7 at 56 (2, figure 3)",
         f"{binding} workers: {ratio_text(at(curves, box, binding), at(curves, 'sharded, colocated', binding))}",
         f"placement alone gives 2 (n - 1) / n, {2 * (binding - 1) / binding:.2f} of {binding} workers (3); the paper finds the rest in "
         "MXNet's server (copies, sums, the step), a program that is not here"),
        ("a central server needs its interfaces",
         f"{binding} workers, {PORTS} ports over 1: {ratio_text(at(curves, box, binding), at(curves, one, binding))}",
         f"{binding} by (2): one port carries what all workers send"),
        ("central against sharded, neither colocated",
         f"{binding} workers: {ratio_text(at(curves, box, binding), at(curves, 'sharded, not colocated', binding))}",
         "1 by (2): the workers' ports bind either way; a box does it with one machine instead of a server for each worker"),
        ("32 KiB chunks balance the cores and overlap (2)",
         f"fullest lane {small['evenness']:.3f} of the mean against {whole['evenness']:.3f}; "
         f"{whole['measured'] / small['measured']:.2f} times as fast as whole tensors measured, "
         f"{whole['predicted'] / small['predicted']:.2f} predicted" if small and whole else "not run",
         "the paper gives no number"),
        ("one PBox supports up to 120 workers (2)", f"{workers} by (47)",
         "from table 1's 190 images a second; 120 would need 182.598, 175.2483 ms an iteration. The paper's own limit is PCIe to memory, whose bandwidth is only in "
         "its figure 4"),
    ]
    return ["In short:", "", table(("the paper", "here", "the difference, and why"), rows), ""]


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


def chunk_lines(rows):
    return ["## Key chunking", "",
            f"DLRM's 16 tensors, 9 MiB, between four workers and the server with {PORTS} ports; fullest lane over the mean of all. (ResNet-50 "
            "has eleven times as much, which takes minutes an iteration on these links; (13) has its evenness.)", "",
            table(("cut into", "parts", "longest", "fullest lane", "predicted s", "measured s", "error"),
                  [(r["name"], r["parts"], size(r["part_bytes"]), f"{r['evenness']:.4f}", f"{r['predicted']:.3f}",
                    f"{r['measured']:.3f}", percent(r["measured"] / r["predicted"] - 1)) for r in rows]), ""]


def capacity(folder):
    """Workers of one box at table 1's iteration, and the tables."""
    prices = folder / "prices-example.json"
    prices.write_text('{"currency": "EXAMPLE", "per": "hour", "worker": 3, "box": 10, "server": 1}\n')
    box = ("--workload", "resnet50", "--interfaces", 10, "--interface-bandwidth", "56Gb/s")
    cells = []
    for name, iteration, more in (("190 images a second (table 1)", "168.42ms", ()), ("182.598, which 120 would need", "175.2483ms", ()),
                                  ("190, 54.5 Gb/s of data a port", "168.42ms", ("--interface-bandwidth", "54.5Gb/s"))):
        words = [str(w) for w in (*box, "--iteration", iteration)]
        if more:
            words[words.index("--interface-bandwidth") + 1] = more[1]
        answer = json.loads(call(RECKON, "solve", "capacity", *words, "--json"))
        cells.append((name, answer["workers"], "120", f"{answer['workers'] - 120:+d}"))
    supported = cells[0][1]
    lines = ["## Capacity (47)", "", "Workers that one PBox supports, ResNet-50 at a batch of 32:", "",
             table(("iteration", "ours", "paper", "difference"), cells), ""]
    answer = json.loads(call(RECKON, "solve", "capacity", *box, "--iteration", "168.42ms", "--workers", 120, "--prices", prices,
                             "--batch", 32, "--json"))
    lines += ["## Throughput for the money (48)", "",
              "With **made-up prices** (a worker 3, a box 10, a server 1 an hour), 120 workers:", "",
              table(("placement", "servers", "iteration ms", "images a second", "cost an hour", "images for one unit"),
                    [(p["name"], p["servers"], f"{1e3 * p['iteration_seconds']:.2f}", f"{p['samples_per_second']:.0f}",
                      f"{p['cost']:g}", f"{3600 * p['samples_per_second'] / p['cost']:.0f}") for p in answer["placements"]]), ""]
    return supported, lines


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
    supported, lines_of_capacity = capacity(folder)
    lines = ["# PHub: what its text says, and what came out here", "",
             "Machines are network namespaces on one computer with two processors ([labs.md](../labs.md)): workers with one port, and a "
             f"server with {PORTS}, as PBox has, or servers with one. `scripts/reproduce phub` repeats this; every sum of every run was "
             "checked. Where the paper has a figure without numbers, none is made up.", "",
             *claim_lines(curves, done.get("chunks", ()), supported), *(scaling_lines(curves, arguments) if curves else ()),
             *(chunk_lines(done["chunks"]) if "chunks" in done else ()), *lines_of_capacity]
    errors = sorted(abs(r["measured"] / r["predicted"] - 1) for curve in curves.values() for r in curve)
    if errors:
        lines.append(f"Error of the predicted time over the {len(errors)} rows of the curves, chunks not among them: median "
                     f"{100 * statistics.median(errors):.1f} %, greatest {100 * errors[-1]:.1f} %.")
        plot(folder, curves)
    (folder / "phub.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))
    say(f"\nwritten: {folder}/phub.md, .json, .png")


EXPERIMENTS = {"phub": phub}
