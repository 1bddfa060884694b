# SPDX-License-Identifier: Apache-2.0
"""BytePS (OSDI 2020), figures 12, 15 and 16 at the paper's own scale: planned and simulated on its published links."""

import json

from reproduction.computed import gigabits, milliseconds, need_build, one_tensor, plan, plot, simulate, solve
from reproduction.lab import RECKON, call, own_bound, percent, whole
from reproduction.pages import Job, Page, experiment, grouped, number

PROFILE, INSIDE = "byteps-cluster", "byteps-nvlink"
GOODPUT = "90Gb/s"
PAPERS_PARTS = 4_096_000  # bytes: the released code's default, "4 MB" in the text
WORKERS = 8
TENSOR_BYTES = 2**29
MODELS = {"resnet50": "ResNet-50", "vgg16": "VGG-16", "ugatit": "UGATIT", "transformer-big": "Transformer (big)",
          "bert-large": "BERT-large", "gpt2": "GPT-2"}
MACHINES = (2, 4, 8, 16, 32)
MOST = MACHINES[-1]



def exchange(own, model, n, k, strategy, *more, limit=(), unbuffered=False):
    """`unbuffered`: also where nothing waits between links."""
    path, document = plan(own, PROFILE, model, n, k, strategy, *more)
    row = {"gradient_bytes": document["gradient_bytes"], "parts": len(whole(document["parts"]["bytes"])), "part_bytes": document["part_bytes"],
           "bound_ms": 1e3 * own_bound(document), "predicted_ms": 1e3 * document["prediction"]["mid_seconds"]}
    if limit is not None:
        report, _ = simulate(path, PROFILE, *limit)
        row |= {"simulated_ms": 1e3 * report["p50_seconds"], "merged_parts": report["simulation"]["merged_parts"]}
    if unbuffered:
        row["without_buffers_ms"] = 1e3 * simulate(path, PROFILE, "--no-buffers")[0]["p50_seconds"]
    return row


# ---------------------------------------------------------------- figure 12

def figure12_jobs():
    def by_formula(k, key):
        found = solve("split", "--workers", WORKERS, "--servers", k, "--bytes", TENSOR_BYTES, "--bandwidth", GOODPUT)
        return {"gradient_bytes": TENSOR_BYTES, "predicted_ms": 1e3 * found[key]}

    def played(own, *arguments, **options):
        return exchange(own, one_tensor(own, TENSOR_BYTES), WORKERS, *arguments, **options)

    jobs = [Job({"servers": 0, "what": "all-reduce"}, lambda own: played(own, 0, "ring"))]
    for k in range(WORKERS + 1):
        jobs += [Job({"servers": k, "what": "optimal by (7)"}, lambda _, k=k: by_formula(k, "time_seconds")),
                 Job({"servers": k, "what": "split"}, lambda own, k=k: played(own, k, "byteps_split", unbuffered=True)),
                 Job({"servers": k, "what": f"split, parts of {PAPERS_PARTS} B"},
                     lambda own, k=k: played(own, k, "byteps_split", "--part-bytes", PAPERS_PARTS))]
        if k:
            jobs += [Job({"servers": k, "what": "parameter server by (2)"}, lambda _, k=k: by_formula(k, "parameter_server_seconds")),
                     Job({"servers": k, "what": "parameter server"}, lambda own, k=k: played(own, k, "ps_noncolocated"))]
    return jobs


# ---------------------------------------------------------------- figures 15 and 16: between the machines

SYSTEMS = {"split, k = n": ("byteps_split", True), "split, k = 0": ("byteps_split", False), "all-reduce": ("ring", False),
           "PS, k = n": ("ps_noncolocated", True)}
RATIO = ("split, k = n", "all-reduce")


def exchange_jobs():
    jobs = []
    for model in MODELS:
        for n in MACHINES:
            for system, (strategy, with_servers) in SYSTEMS.items():
                if n == MOST or system in RATIO:
                    jobs.append(Job({"model": model, "machines": n, "system": system},
                                    lambda own, a=(model, n, n if with_servers else 0, strategy), last=n == MOST: exchange(
                                        own, *a, limit=("--time", "20s") if last else None)))
        jobs.append(Job({"model": model, "machines": MOST, "system": f"split, k = n, parts of {PAPERS_PARTS} B"},
                        lambda own, m=model: exchange(own, m, MOST, MOST, "byteps_split", "--part-bytes", PAPERS_PARTS, limit=None)))
    return jobs


# ---------------------------------------------------------------- figures 15 and 16: inside a machine

NIC = 100e9 / 8  # bytes a second: of the NIC and of each PCIe link of byteps-nvlink
# What the paper's all-reduce may do inside its machines, from the best to the worst (7.3).
ALL_REDUCES = ("network only", "roots in turn", "root 0", "ring through GPU 0")


def inside_jobs():
    """What a machine's links take for each byte of the gradient while the NIC carries its traffic for 32 machines."""
    n = MOST
    around = 2 * (n - 1) / n  # gradients that the NIC sends, and receives, without CPU machines

    def of(network, service, strategy=None):
        document = json.loads(call(RECKON, "plan", "--inside", "-p", INSIDE, "-m", "bert-large", "--network", network, "--service",
                                   service, "--json"))
        strategy = strategy or document["strategy"]
        seconds = next(c["prediction"]["mid_seconds"] for c in document["candidates"] if c["strategy"] == strategy)
        return {"scheme": strategy, "ms_per_GB": 1e12 * seconds / document["gradient_bytes"]}

    return [Job({"all_reduce": what}, lambda _, f=f: f()) for what, f in (
        ("split, k = n", lambda: of(1, 0)), ("split, k = 0", lambda: of((n - 1) / n, (n - 1) / n, of(1, 0)["scheme"])),
        ("roots in turn", lambda: of(around, 0, "reduce_broadcast_all")), ("root 0", lambda: of(around, 0, "reduce_broadcast_gpu0")),
        ("ring through GPU 0", lambda: {"ms_per_GB": 1e12 * 2 * around / NIC}))]


def jobs(folder):
    del folder
    need_build()
    return {"figure12": figure12_jobs(), "exchange": exchange_jobs(), "inside": inside_jobs()}


# ---------------------------------------------------------------- what it comes to

def exchanges(tables, model):
    """Milliseconds of an iteration's traffic with 32 machines: the longer of the network's, simulated, and what the machine's links take."""
    of = {r["system"]: r for r in tables["exchange"] if r["model"] == model and r["machines"] == str(MOST)}
    links = {r["all_reduce"]: number(r, "ms_per_GB") * 1e-9 for r in tables["inside"]}
    ring, size = number(of["all-reduce"], "simulated_ms"), number(of["all-reduce"], "gradient_bytes")
    out = {system: max(number(of[system], "simulated_ms"), size * links[system]) for system in ("split, k = n", "split, k = 0")}
    out["network only"] = ring
    return out | {way: max(ring, size * links[way]) for way in ALL_REDUCES[1:]}


def gain(slow, fast):
    return percent(slow / fast - 1).replace("-0.0", "+0.0")


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



def pictures(folder, tables):
    plot_gains(folder, exchanges(tables, "ugatit"))
    of = grouped(tables["figure12"], "what")
    rate = lambda what, column: [(int(r["servers"]), gigabits(TENSOR_BYTES, 1e-3 * number(r, column))) for r in of[what,]]
    flat = lambda column: [(k, rate("all-reduce", column)[0][1]) for k in range(WORKERS + 1)]
    plot(folder, "byteps-figure12", [
        'set xlabel "CPU machines (k)"', 'set ylabel "goodput M / t (Gb/s)"', "set key outside right", "set yrange [0:100]",
        "set xrange [-0.3:8.3]"], [
        ("optimal (7)", "lines lw 2 lc 1 dt 2", rate("optimal by (7)", "predicted_ms")),
        ("split, predicted", "lines lw 2 lc 1", rate("split", "predicted_ms")),
        ("split, simulated", "points pt 7 ps 1.4 lc 1", rate("split", "simulated_ms")),
        ("split, without buffers", "points pt 1 ps 1.4 lc 1", rate("split", "without_buffers_ms")),
        ("parts of 4 096 000 B, simulated", "points pt 6 ps 1.6 lc 1", rate(f"split, parts of {PAPERS_PARTS} B", "simulated_ms")),
        ("all-reduce, predicted", "lines lw 2 lc 2", flat("predicted_ms")),
        ("all-reduce, simulated", "points pt 9 ps 1.4 lc 2", flat("simulated_ms")),
        ("parameter server, predicted", "lines lw 2 lc 3", rate("parameter server", "predicted_ms")),
        ("parameter server, simulated", "points pt 5 ps 1.2 lc 3", rate("parameter server", "simulated_ms"))])


def summary(tables):
    of = {(int(r["servers"]), r["what"]): r for r in tables["figure12"]}

    def below(what, column):
        """By how much goodputs are below the optimal ones, percent."""
        losses = [100 * (1 - number(of[k, "optimal by (7)"], "predicted_ms") / number(of[k, what], column)) for k in range(WORKERS + 1)]
        return f"{min(losses):.1f} to {max(losses):.1f} %"

    longer = {r["model"]: number(r, "predicted_ms") / number(r, "bound_ms") - 1 for r in tables["exchange"] if str(PAPERS_PARTS) in r["system"]}
    least, most = min(longer, key=longer.get), max(longer, key=longer.get)
    ugatit, resnet = exchanges(tables, "ugatit"), exchanges(tables, "resnet50")
    ratio = ugatit["network only"] / ugatit["split, k = n"]
    faster = [k for k in range(1, WORKERS + 1)
              if number(of[k, "parameter server"], "simulated_ms") < number(of[0, "all-reduce"], "simulated_ms")]
    ring, optimal = (gigabits(TENSOR_BYTES, 1e-3 * number(of[0, what], column)) for what, column in (
        ("all-reduce", "simulated_ms"), ("optimal by (7)", "predicted_ms")))
    rows = [
        ("figure 12: the split is 1 to 9 % below the optimal line",
         f"simulated {below('split', 'simulated_ms')}; where nothing waits between links {below('split', 'without_buffers_ms')}; in parts of {PAPERS_PARTS} B {below(f'split, parts of {PAPERS_PARTS} B', 'simulated_ms')}"),
        (f"the released code's parts of {PAPERS_PARTS} B, {MOST} + {MOST} machines",
         f"{percent(longer[least])} ({MODELS[least]}) to {percent(longer[most])} ({MODELS[most]}) above the bound"),
        ("figure 12: all-reduce is near the optimum at k = 0", f"{ring:.2f} of {optimal:.2f} Gb/s"),
        ("figure 12: parameter servers are the slowest", f"slower than all-reduce up to k = {min(faster) - 1}, faster from {min(faster)} on"),
        ("7.4, 256 GPUs: 10 to 84 % faster than all-reduce with CPU machines", f"the exchange {gain(ratio, 1)} by the network alone, "
         f"{gain(ugatit['root 0'], ugatit['split, k = n'])} if the all-reduce uses root 0"),
        ("7.4: 9 to 53 % faster without CPU machines", "{} by the network alone, {} with root 0, {} with a ring through GPU 0".format(
            *(gain(ugatit[way], ugatit["split, k = 0"]) for way in ("network only", "root 0", "ring through GPU 0")))),
        ("7.4: UGATIT scales to 74 %, 84 % faster than all-reduce", f"exchange of {milliseconds(1e-3 * ugatit['split, k = n'])} ms, all-reduce "
         f"{gain(ratio, 1)} by the network alone"),
        ("7.4: ResNet-50 scales to 97.5 %, all-reduce to 88 %", "allows for computation of at most "
         f"{milliseconds(1e-3 * most_compute(resnet['split, k = n'], 0.975))} ms by the first, "
         f"{milliseconds(1e-3 * most_compute(resnet['network only'], 0.88))} by the second")]
    return ("the paper", "here"), rows


PAGE = Page("byteps", ("figure12", "exchange", "inside"), summary, jobs, pictures, sparse=3)
EXPERIMENTS = experiment(PAGE)
