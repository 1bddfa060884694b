# SPDX-License-Identifier: Apache-2.0
"""BytePS (OSDI 2020), figures 12, 15 and 16 at the paper's own scale: planned and simulated on its published links."""

import json

from reproduction.computed import (claims, finish, gigabits, milliseconds, need_build, one_tensor, plan, plot, simulate, solve)
from reproduction.lab import RECKON, call, own_bound, percent, say, table, whole

PROFILE, INSIDE = "byteps-cluster", "byteps-nvlink"
GOODPUT = "90Gb/s"
PAPERS_PARTS = 4_096_000  # bytes: the released code's default, "4 MB" in the text
WORKERS = 8
TENSOR_BYTES = 2**29
MODELS = {"resnet50": "ResNet-50", "vgg16": "VGG-16", "ugatit": "UGATIT", "transformer-big": "Transformer (big)",
          "bert-large": "BERT-large", "gpt2": "GPT-2"}
MACHINES = (2, 4, 8, 16, 32)
MOST = MACHINES[-1]


# ---------------------------------------------------------------- figure 12

def exchange(folder, model, n, k, strategy, *more, unbuffered=False):
    """`unbuffered`: also where nothing waits between links."""
    path, document = plan(folder, PROFILE, model, n, k, strategy, *more)
    report, _ = simulate(path, PROFILE)
    return {"planned": document["prediction"]["mid_seconds"], "bound": own_bound(document),
            "part_bytes": document["part_bytes"], "simulated": report["p50_seconds"],
            "merged": report["simulation"]["merged_parts"],
            "unbuffered": simulate(path, PROFILE, "--no-buffers")[0]["p50_seconds"] if unbuffered else None}


def figure12(folder):
    model = one_tensor(folder, TENSOR_BYTES)
    ring = exchange(folder, model, WORKERS, 0, "ring")
    rows = []
    for k in range(WORKERS + 1):
        formula = solve("split", "--workers", WORKERS, "--servers", k, "--bytes", TENSOR_BYTES, "--bandwidth", GOODPUT)
        row = {"k": k, "optimal": formula["time_seconds"], "server_formula": formula["parameter_server_seconds"],
               "split": exchange(folder, model, WORKERS, k, "byteps_split", unbuffered=True),
               "papers_parts": exchange(folder, model, WORKERS, k, "byteps_split", "--part-bytes", PAPERS_PARTS),
               "server": exchange(folder, model, WORKERS, k, "ps_noncolocated") if k else None, "ring": ring}
        rows.append(row)
        say(f"figure 12, k={k}: optimal {milliseconds(row['optimal'])} ms, planned {milliseconds(row['split']['planned'])}, "
            f"simulated {milliseconds(row['split']['simulated'])}")
    return rows


def goodput(seconds):
    return f"{gigabits(TENSOR_BYTES, seconds):.2f}"


def below(row, which, what):
    """By how much a goodput is below the optimal one, percent."""
    return 100 * (1 - row["optimal"] / row[which][what])


def figure12_lines(folder, rows):
    cells = [(r["k"], goodput(r["optimal"]), goodput(r["split"]["planned"]), goodput(r["split"]["simulated"]),
              f"{below(r, 'split', 'simulated'):.1f} %", goodput(r["split"]["unbuffered"]),
              f"{below(r, 'split', 'unbuffered'):.1f} %", goodput(r["papers_parts"]["simulated"]),
              f"{below(r, 'papers_parts', 'simulated'):.1f} %", goodput(r["ring"]["simulated"]),
              goodput(r["server_formula"]) if r["server"] else "-", goodput(r["server"]["simulated"]) if r["server"] else "-")
             for r in rows]
    gbit = lambda which, what: [(r["k"], gigabits(TENSOR_BYTES, r[which][what])) for r in rows if r[which]]
    plot(folder, "byteps-figure12", [
        'set xlabel "CPU machines (k)"', 'set ylabel "goodput M / t (Gb/s)"', "set key outside right", "set yrange [0:100]",
        "set xrange [-0.3:8.3]"], [
        ("optimal (7)", "lines lw 2 lc 1 dt 2", [(r["k"], gigabits(TENSOR_BYTES, r["optimal"])) for r in rows]),
        ("split, planned", "lines lw 2 lc 1", gbit("split", "planned")),
        ("split, simulated", "points pt 7 ps 1.4 lc 1", gbit("split", "simulated")),
        ("split, without buffers", "points pt 1 ps 1.4 lc 1", gbit("split", "unbuffered")),
        ("parts of 4 096 000 B, simulated", "points pt 6 ps 1.6 lc 1", gbit("papers_parts", "simulated")),
        ("all-reduce, planned", "lines lw 2 lc 2", gbit("ring", "planned")),
        ("all-reduce, simulated", "points pt 9 ps 1.4 lc 2", gbit("ring", "simulated")),
        ("parameter server, planned", "lines lw 2 lc 3", gbit("server", "planned")),
        ("parameter server, simulated", "points pt 5 ps 1.2 lc 3", gbit("server", "simulated"))])
    return ["## Figure 12: eight machines with a GPU each, 0 to 8 CPU machines", "",
            f"One tensor of 512 MiB on `{PROFILE}`, ports of {GOODPUT} each way, no latencies (the text gives none). Goodput M/t in Gb/s; "
            "\"below\" is against the optimal line.", "",
            table(("k", "optimal (7)", "split planned", "simulated", "below", "without buffers", "below", f"parts of {PAPERS_PARTS} B, simulated", "below",
                   "all-reduce simulated", "PS by (2)", "PS simulated"), cells), "",
            "![goodput over the number of CPU machines](byteps-figure12.png)", ""]


# ---------------------------------------------------------------- figures 15 and 16: between the machines

SYSTEMS = {"split, k = n": ("byteps_split", True), "split, k = 0": ("byteps_split", False), "all-reduce": ("ring", False),
           "PS, k = n": ("ps_noncolocated", True)}
RATIO = ("split, k = n", "all-reduce")


def between(folder):
    rows = []
    for model in MODELS:
        for n in MACHINES:
            for system, (strategy, with_servers) in SYSTEMS.items():
                if n < MOST and system not in RATIO:
                    continue
                path, document = plan(folder, PROFILE, model, n, n if with_servers else 0, strategy)
                row = {"model": model, "n": n, "system": system, "bytes": document["gradient_bytes"],
                       "bound": own_bound(document), "planned": document["prediction"]["mid_seconds"],
                       "part_bytes": document["part_bytes"], "simulated": None, "merged": None}
                if n == MOST:
                    report, _ = simulate(path, PROFILE, "--time", "20s")
                    row["simulated"] = report["p50_seconds"]
                    row["merged"] = report["simulation"]["merged_parts"]
                rows.append(row)
                say(f"{model} n={n} {system}: planned {milliseconds(row['planned'])} ms"
                    + (f", simulated {milliseconds(row['simulated'])}" if n == MOST else ""))
            if n == MOST:
                _, document = plan(folder, PROFILE, model, n, n, "byteps_split", "--part-bytes", PAPERS_PARTS)
                rows.append({"model": model, "n": n, "system": "4 MB", "bytes": document["gradient_bytes"],
                             "planned": document["prediction"]["mid_seconds"], "bound": own_bound(document),
                             "parts": len(whole(document["parts"]["bytes"])), "simulated": None})
    return {(r["model"], r["n"], r["system"]): r for r in rows}


# ---------------------------------------------------------------- figures 15 and 16: inside a machine

NIC = 100e9 / 8  # bytes a second: of the NIC and of each PCIe link of byteps-nvlink


def inside():
    """What a machine's links take for each byte of the gradient while the NIC carries its traffic for 32 machines, in seconds."""
    n = MOST
    around = 2 * (n - 1) / n  # gradients that the NIC sends, and receives, without CPU machines

    def candidates(network, service):
        document = json.loads(call(RECKON, "plan", "--inside", "-p", INSIDE, "-m", "bert-large", "--network", network, "--service",
                                   service, "--json"))
        return document["strategy"], {c["strategy"]: c["prediction"]["mid_seconds"] / document["gradient_bytes"]
                                      for c in document["candidates"] if c.get("prediction")}

    chosen, with_servers = candidates(1, 0)
    _, alone = candidates((n - 1) / n, (n - 1) / n)
    _, ring = candidates(around, 0)
    return {"split, k = n": with_servers[chosen], "split, k = 0": alone[chosen], "chosen": chosen,
            "roots in turn": ring["reduce_broadcast_all"], "root 0": ring["reduce_broadcast_gpu0"],
            "ring through GPU 0": 2 * around / NIC}


# What the paper's all-reduce may do inside its machines, from the best to the worst (7.3).
ALL_REDUCES = ("network only", "roots in turn", "root 0", "ring through GPU 0")


def exchanges(rows, links, model):
    """Seconds of an iteration's traffic with 32 machines: the longer of the network's, simulated, and what the machine's links take."""
    of = {system: rows[model, MOST, system]["simulated"] for system in SYSTEMS}
    size = rows[model, MOST, "all-reduce"]["bytes"]
    out = {system: max(of[system], size * links[system]) for system in ("split, k = n", "split, k = 0")}
    out["network only"] = of["all-reduce"]
    for way in ALL_REDUCES[1:]:
        out[way] = max(of["all-reduce"], size * links[way])
    return out


def gain(slow, fast):
    return percent(slow / fast - 1).replace(".0 %", " %").replace("-0 %", "0 %")


def most_compute(exchange_seconds, efficiency):
    """No more of an exchange is exposed than it takes: compute / (compute + exposed) = efficiency bounds compute."""
    return exchange_seconds / (1 / efficiency - 1)


def speed_up(compute, slow, fast, overlapped):
    return max(compute, slow) / max(compute, fast) if overlapped else (compute + slow) / (compute + fast)


def plot_gains(folder, of):
    """Over compute time, in units of the exchange of an all-reduce that only the network keeps back."""
    points = [2 ** (e / 8) for e in range(-32, 33)]
    curves = []
    for number, way in enumerate(("network only", "root 0"), 1):
        for overlapped, dash in ((True, 1), (False, 2)):
            curves.append((f"{way}, {'all' if overlapped else 'nothing'} overlaps", f"lines lw 2 lc {number} dt {dash}",
                           [(x, 100 * (speed_up(x * of["network only"], of[way], of["split, k = n"], overlapped) - 1))
                            for x in points]))
    for value, style in ((84, 3), (10, 4)):
        curves.append((f"the paper, +{value} %", f'lines lw 1 dt {style} lc rgb "black"', [(points[0], value), (points[-1], value)]))
    plot(folder, "byteps-figure15", [
        "set logscale x 2", 'set xlabel "compute over the exchange of a ring that only the network keeps back"',
        'set ylabel "BytePS, k = n = 32, over all-reduce, %"', "set key outside bottom center horizontal", "set yrange [0:200]"], curves)


def figure15_lines(folder, rows, links):
    sizes = {m: rows[m, MOST, "all-reduce"]["bytes"] for m in MODELS}
    cells = []
    for model, name in MODELS.items():
        cells.append((name, f"{sizes[model] / 1e6:.1f}", *(
            f"{milliseconds(rows[model, MOST, s]['planned'])} / {milliseconds(rows[model, MOST, s]['simulated'])}" for s in SYSTEMS)))
    by_n = [(MODELS[m], *(f"{rows[m, n, 'all-reduce']['planned'] / rows[m, n, 'split, k = n']['planned']:.3f}" for n in MACHINES))
            for m in MODELS]
    by_n.append(("2(n-1)/n, (1) over (7)", *(f"{2 * (n - 1) / n:.3f}" for n in MACHINES)))
    large = [(MODELS[m], rows[m, MOST, "4 MB"]["parts"], milliseconds(rows[m, MOST, "4 MB"]["bound"]),
              milliseconds(rows[m, MOST, "4 MB"]["planned"]),
              percent(rows[m, MOST, "4 MB"]["planned"] / rows[m, MOST, "split, k = n"]["planned"] - 1)) for m in MODELS]
    of = exchanges(rows, links, "ugatit")
    plot_gains(folder, of)
    ways = [(way, "-" if way == "network only" else f"{1e12 * links[way]:.1f}", gain(of[way], of["split, k = n"]),
             gain(of[way], of["split, k = 0"])) for way in ALL_REDUCES]
    return ["## Figures 15 and 16: 8 to 256 GPUs", "",
            "The text gives no batch sizes and no compute times, and the figures' points are not in it. So what is here is the exchange: "
            "what an iteration's gradients take, and what speed-up any compute time leaves of it. One machine (8 GPUs) exchanges "
            "nothing over the network.", "",
            f"Exchange between 32 machines on `{PROFILE}` (256 GPUs), planned / simulated, ms. With k = 0 each worker sums parts of its own and "
            f"is played itself; up to {max(r.get('merged') or 1 for r in rows.values())} of its parts are played as one, to simulate within 20 "
            "s:", "",
            table(("model", "MB", *SYSTEMS), cells), "",
            "All-reduce over the split with k = n, planned, by machines:", "", table(("model", *(f"n = {n}" for n in MACHINES)), by_n), "",
            f"With the released code's parts of {PAPERS_PARTS} B on 32 + 32 machines, in place of solved ones (some servers have one part more "
            "than others or none, and all workers send the parts in one order):", "",
            table(("model", "parts", "bound ms", "planned ms", "longer by"), large), "",
            f"Inside a machine (`{INSIDE}`, with the NIC's traffic of 32 machines) the split's best scheme, `{links['chosen']}`, keeps up "
            f"with the NIC: {1e12 * links['split, k = n']:.1f} ms a GB with k = n, {1e12 * links['split, k = 0']:.1f} with k = 0, where the "
            "network takes longer. What an all-reduce does there decides what it is compared with (UGATIT, simulated between the machines; the "
            "others differ by fill only):", "",
            table(("all-reduce", "links inside, ms a GB", "the split is faster by at most, k = n", "k = 0"), ways), "",
            "`roots in turn` is what the paper says of Horovod's hierarchical mode, `root 0` of plain NCCL (7.3); in `ring through GPU 0` all "
            "that the NIC sends is first copied out of GPU 0 over the link that both share.", "",
            "![speed-up over compute time](byteps-figure15.png)", ""]


def claim_rows(twelve, rows, links):
    near = [below(r, "split", "simulated") for r in twelve]
    bare = [below(r, "split", "unbuffered") for r in twelve]
    far = [below(r, "papers_parts", "simulated") for r in twelve]
    of = exchanges(rows, links, "ugatit")
    resnet = exchanges(rows, links, "resnet50")
    ring = twelve[0]["ring"]
    optimal = gigabits(TENSOR_BYTES, twelve[0]["optimal"])
    ratio = of["network only"] / of["split, k = n"]
    fits = of["split, k = n"] * 0.74
    return [
        ("figure 12: the split is 1 to 9 % below the optimal line", f"simulated {min(near):.1f} to {max(near):.1f} % below, where "
         f"the network keeps nothing {min(bare):.1f} to {max(bare):.1f} %, in parts of {PAPERS_PARTS} B {min(far):.1f} to {max(far):.1f} %; planned at most {max(below(r, 'split', 'planned') for r in twelve):.1f} %",
         f"greatest: {max(near) - 9:+.1f} points, {max(bare) - 9:+.1f} without buffers",
         "how much the paper's network keeps is not in the text; connections with unequal bytes share a port equally, and one exchange is "
         "played, whose first and last parts fill and drain the links: long ones cost it most. The paper's benchmark goes on and on; hosts' own costs are not simulated"),
        ("figure 12: all-reduce is near the optimum at k = 0, and the same for all k",
         f"{gigabits(TENSOR_BYTES, ring['simulated']):.2f} of {optimal:.2f} Gb/s", percent(ring["planned"] / ring["simulated"] - 1),
         "nothing but ports binds"),
        ("figure 12: PS is the slowest", "with k <= 4; from k = 5 on it is faster than all-reduce, at k = n as fast as the split",
         "the paper's PS stays below", "(2) has no losses: the paper's are its software's (6.2)"),
        ("7.4, 256 GPUs: +10 to +84 % over all-reduce with CPU machines", f"at most {gain(ratio, 1)} by the network alone, "
         f"{gain(of['root 0'], of['split, k = n'])} with root 0", "in the range: 84 % is less than either",
         "compute time dilutes; the text has none"),
        ("7.4: +9 to +53 % without CPU machines", f"{gain(of['network only'], of['split, k = 0'])} by the network alone, at most "
         f"{gain(of['root 0'], of['split, k = 0'])} with root 0, {gain(of['ring through GPU 0'], of['split, k = 0'])} where all passes "
         "GPU 0", "53 % is more than root 0 explains", "8 names asynchronicity besides; it is not in a model of bytes"),
        ("7.4: from 8 to 256 GPUs the speed-up grows", "all-reduce over split: 1 (n = 2) to "
         f"{ratio:.2f} (n = 32)", "-", "2(n-1)/n: beyond 32 machines at most 2"),
        ("7.4: UGATIT scales to 74 %, 84 % over all-reduce", f"if traffic is what takes the time: {milliseconds(of['split, k = n'])} ms, so "
         f"compute is {milliseconds(fits)} ms; with an all-reduce that only the network keeps back an iteration takes {gain(ratio, 1)}",
         f"{100 * (ratio - 1.84):+.0f} points", "the only case of the six in which the network must bind"),
        ("7.4: ResNet-50 scales to 97.5 %, all-reduce to 88 %", "compute is at most "
         f"{milliseconds(most_compute(resnet['split, k = n'], 0.975))} ms by the first, by the second "
         f"{milliseconds(most_compute(resnet['network only'], 0.88))} (network alone), "
         f"{milliseconds(most_compute(resnet['root 0'], 0.88))} (root 0)", "no contradiction",
         f"its exchanges are short: {milliseconds(resnet['split, k = n'])} and {milliseconds(resnet['network only'])} ms"),
        ("7.4: the other five scale to 91.6 % or more", f"compute is at least {1 / (1 / 0.916 - 1):.1f} times the exchange, or hides traffic",
         "-", "not tested: no compute times"),
        ("abstract: up to 245 % over PS; VGG-16: 52 % = 19 + 18 + 15", "a PS with k = n exchanges as fast as the split", "all of it",
         "19 is the machines' inside, 18 the optimizer on CPUs, 15 software: none is a matter of who sends what to whom")]


def byteps(arguments, folder):
    del arguments
    need_build()
    twelve = figure12(folder)
    rows, links = between(folder), inside()
    lines = ["# BytePS at its own scale: figures 12, 15 and 16", "",
             "Written by `scripts/reproduce byteps`: planned by the equations ([equations.md](../equations.md)) and the planner's play, "
             "simulated by `reckon simulate` (flows at a link share it equally, what it is too slow for waits before it). Nothing is measured here; `scripts/reproduce figure12` measures "
             "on emulated links. Figures that stand only in the paper's plots are not guessed.", "",
             claims(claim_rows(twelve, rows, links)), "", *figure12_lines(folder, twelve), *figure15_lines(folder, rows, links)]
    finish(folder, "byteps", lines, {"figure12": twelve, "figure15": [dict(r) for r in rows.values()], "inside": links})


EXPERIMENTS = {"byteps": byteps}
