# SPDX-License-Identifier: Apache-2.0
"""ACE (ISCA 2021): sections III, V and VI as computed by `reckon solve torus` and `reckon solve overlap`, and its all-reduce on a
torus planned and simulated. Nothing is run."""

import json
import math
import statistics

from reproduction.ace_orderings import (NAMES, OURS, PUBLISHED, SHAPES, held, iterations, orderings, overlap, published_lines, solve,
                                        times, with_latencies, with_torus)
from reproduction.lab import RECKON, call, die, parse_bytes, say, size, table, whole, workload

RINGS = ("--local-bandwidth", "400GB/s", "--vertical-bandwidth", "50GB/s", "--horizontal-bandwidth", "50GB/s")
# Of the text, for 128 nodes: percent of the ideal, and iterations of both baselines over ACE's.
OF_IDEAL = {"resnet50": (35.3, 37.3, 94.3), "gnmt": (55.9, 76, 88.7), "dlrm": (55.6, 72.8, 86.5)}


def torus(shape, *options):
    return json.loads(call(RECKON, "solve", "torus", "--shape", shape, *RINGS, "--json", *options))


def sweep(shape, kind):
    return json.loads(call(RECKON, "solve", "overlap", "--shape", shape, f"--{kind}-sweep", "--json"))


def least(points, given, reached, ideal):
    return next((p[given] for p in points if p[reached] >= 0.9 * ideal), None)


def memory_rows():
    rows = []
    for row, shape, key, paper, scale in (
            ("A16", "4x4x4", "baseline_memory_bandwidth", "450 GB/s to send 300", 1e9),
            ("A17", "4x4x4", "offload_memory_bandwidth", "133 GB/s to send 300", 1e9),
            ("A17", "4x4x4", "bytes_sent_per_byte_loaded", "2.25 N sent for N", 1),
            ("A18", "4x4x4", "ideal_bandwidth", "300 GB/s", 1e9),
            ("A18", "4x2x2", "ideal_bandwidth", "300 GB/s for 16 nodes too, shape not given", 1e9),
            ("A18", "4x4x1", "ideal_bandwidth", "the same", 1e9),
            ("A19", "4x4x4", "sms", "6 SMs", 1)):
        rows.append((row, shape, key.replace("_", " "), paper, f"{torus(shape)[key] / scale:.4g}"))
    for shape in ("4x2x2", "4x4x1", "4x4x4"):
        memory = sweep(shape, "memory")
        for reached, paper in (("network_bandwidth", "450 GB/s for 90 % of the ideal"),
                               ("engine_network_bandwidth", "128 GB/s for 90 %")):
            value = least(memory["points"], "memory_bandwidth", reached, memory["ideal_bandwidth"])
            rows.append(("A20", shape, f"memory for 90 %, {reached.replace('_', ' ')}", paper, f"{value / 1e9:.4g}"))
        sms = sweep(shape, "sm")
        rows.append(("A19", shape, "SMs for 90 %", "6",
                     least(sms["points"], "sms", "network_bandwidth", sms["ideal_bandwidth"])))
    return rows


def of_ideal(results, workload, names=("comm-opt", "comp-opt", "ace"), nodes=128):
    row = results[workload, nodes]
    return [100 * row["ideal"] / row[name] for name in names]


def beside(results, workloads):
    rows = []
    for workload in workloads:
        ours, row = of_ideal(results, workload), results[workload, 128]
        texts = OF_IDEAL[workload.split("-")[0]]
        for name, printed, computed in zip(("CommOpt", "CompOpt", "ACE"), texts, ours):
            rows.append((workload, f"{name}, of the ideal", f"{printed} %", f"{computed:.1f} %", f"{computed - printed:+.1f}"))
        for name, base, text in (("ACE over CommOpt", "comm-opt", texts[2] / texts[0]),
                                 ("ACE over CompOpt", "comp-opt", texts[2] / texts[1])):
            computed = row[base] / row["ace"]
            rows.append((workload, name, f"{text:.2f}", f"{computed:.2f}", f"{computed - text:+.2f}"))
    return rows


def aside():
    rows = []
    for shape in (SHAPES[16], SHAPES[128]):
        default, faster = overlap("dlrm", shape), overlap("dlrm", shape, "--dlrm-overlap")
        for name, printed in (("comp-opt", 1.05), ("ace", 1.2)):
            gain = default[name]["iteration_seconds"] / faster[name]["iteration_seconds"]
            rows.append((shape, name, printed, f"{gain:.3f}"))
    return rows


def simulated(folder, model, shape, strategy, part_bytes, window=None, profile=("--profile", "ace-torus")):
    """The all-reduce as planned and as simulated, no parts merged: parts, and what a node sends a second in both."""
    plan, report = folder / "torus-plan.json", folder / "torus-report.json"
    asked = [*(("--part-bytes", part_bytes) if part_bytes else ()), *(("--window", window) if window else ())]
    call(RECKON, "plan", *profile, "-m", model, "--strategy", strategy, "--shape", shape, *asked, "-o", plan)
    call(RECKON, "simulate", plan, *profile, "-o", report, "--coarsen", "none", "--tolerance", "100%", "--time", "5min", timeout=1800)
    planned, played = json.loads(plan.read_text()), json.loads(report.read_text())
    sent = max(rank["egress_bytes"] for rank in planned["ranks"])
    return {"parts": len(whole(planned["parts"]["bytes"])), "part_bytes": planned["part_bytes"], "window": planned["window_parts"],
            "planned": sent / planned["prediction"]["mid_seconds"], "simulated": sent / played["p50_seconds"],
            "seconds": played["p50_seconds"], "sent": sent}


def of_links(shape):
    return torus(shape, "--link-efficiency", "94%")["ideal_bandwidth"]


def difference(value, other):
    return f"{100 * (value / other - 1):+.2f} %"


def gigabytes(value):
    return f"{value / 1e9:.1f}"


def shape_rows(folder, model):
    """Each shape's all-reduce: the closed form, the planner's play, the simulation, and the strategy with fewer bytes; and by shape (44) and
    what the simulation has."""
    rows, rates = [], {}
    for shape, part in (*((s, 65536) for s in SHAPES.values()), (SHAPES[128], 32768)):
        count = math.prod(int(n) for n in shape.split("x"))
        found = simulated(folder, model, shape, "torus", part)
        fewer = simulated(folder, model, shape, "torus_scatter", part)
        ideal = of_links(shape)
        rates.setdefault(shape, (ideal, found["simulated"]))
        rows.append((f"{count} ({shape})", size(part), found["window"],
                     "300 of 300" if shape == "4x4x4" else "-", *map(gigabytes, (ideal, found["planned"], found["simulated"])),
                     difference(found["simulated"], ideal), f"{1e3 * found['seconds']:.3f}", f"{1e3 * fewer['seconds']:.3f}"))
    return rows, rates


def part_rows(folder, model, shape="4x4x4"):
    """Over the size of parts; then over what is under way, and without latency."""
    ideal = of_links(shape)
    rows = []
    for part in (*(2**n for n in range(19, 11, -1)), None):
        found = simulated(folder, model, shape, "torus", part)
        rows.append((size(part) if part else f"{size(found['part_bytes'])}, by auto", found["parts"], found["window"],
                     *map(gigabytes, (found["planned"], found["simulated"])), difference(found["simulated"], ideal),
                     f"{found['parts'] * (ideal / found['simulated'] - 1):.0f}"))
    no_latency = with_latencies(folder, "no-latency", lambda s: 0)
    varied = []
    for part in (65536, 16384, 8192, 4096):
        cells = [*(simulated(folder, model, shape, "torus", part, window) for window in (128, 256, 512)),
                 simulated(folder, model, shape, "torus", part, 256, no_latency)]
        varied.append((size(part), *(f"{gigabytes(c['simulated'])} ({difference(c['simulated'], ideal)})" for c in cells)))
    return rows, varied


def byte_rows(folder, most, shape="4x4x4", part=4096):
    """The shortest parts over how much there is to sum, and how much longer what came last took than (44) has it."""
    rows, before = [], None
    for count in (most >> n for n in range(4, -1, -1)):
        found = simulated(folder, workload(folder, count), shape, "torus", part, 256)
        microseconds = {what: 1e6 * found["sent"] / found[what] for what in ("planned", "simulated")}
        now = (found["sent"], found["seconds"])
        sent, seconds = (a - b for a, b in zip(now, before)) if before else now
        before = now
        rows.append((size(count), f"{microseconds['planned']:.1f}", f"{microseconds['simulated']:.1f}",
                     f"{100 * (of_links(shape) * seconds / sent - 1):+.1f} %"))
    return rows


def means(results):
    """Percent of the ideal by configuration, over all workloads and nodes."""
    return {n: statistics.mean(100 * r["ideal"] / r[n] for r in results.values()) for n in NAMES[:4]}


def mean_line(results):
    return (f"Of the ideal, mean over all {len(results)} cases, {len(PUBLISHED)} workloads on {', '.join(map(str, SHAPES))} nodes: "
            + ", ".join(f"{n} {v:.1f} % (the paper {p} %)" for (n, v), p in zip(means(results).items(), (68.5, 49.9, 75.7, 91))) + ".")


def slower_rows(folder, results, rates):
    """Of the ideal with (44), and with links so much slower that (44) is what the simulated all-reduce reached."""
    slower = {}
    for nodes, shape in SHAPES.items():
        factor = rates[shape][1] / rates[shape][0]
        more = with_torus(folder, f"slower-{shape}", lambda torus, f=factor: torus.update(link_efficiency=f * torus["link_efficiency"]))
        slower |= iterations(solve(PUBLISHED, {nodes: shape}, more))
    both = (results, slower)
    rows = [(f"{workload}, 128 nodes", gigabytes(rate), *(f"{v:.1f} %" for v in of_ideal(found, workload, NAMES[:4])),
             held(found, workload)) for workload in PUBLISHED for found, rate in zip(both, rates[SHAPES[128]])]
    return rows + [("mean of all 12", name, *(f"{v:.1f} %" for v in means(found).values()), "-")
                   for found, name in zip(both, ("by (44)", "as simulated"))]


def ace(arguments, folder):
    if not RECKON.exists():
        die("there is no release build; scripts/quickstart makes it", 3)
    published, of_published = published_lines(folder)
    ours = solve(OURS)
    results = iterations(ours)
    model = workload(folder, parse_bytes(arguments.bytes))
    shapes, rates = shape_rows(folder, model)
    by_part, varied = part_rows(folder, model)
    by_bytes = byte_rows(folder, parse_bytes(arguments.bytes))
    iterations_of_published = iterations(of_published)
    headers = ("workload", "what", "the paper", "here", "difference")
    lines = [
        "# ACE, computed and simulated", "", "Written by `scripts/reproduce ace`; nothing is run. Shapes are assumed: the text gives "
        "none but 4x4x4.", "", "## Memory, SMs, ideal bandwidth", "",
        table(("row", "shape", "what", "the paper", "here"), memory_rows()), "",
        "## The all-reduce, planned and simulated", "",
        f"{arguments.bytes} on table V's links at 94 %, GB/s that a node sends, all its links together.", "",
        table(("nodes", "part", "under way", "the paper", "equation 44", "planned", "simulated", "beside (44)", "ms",
               "torus_scatter, ms"), shapes), "",
        "4x4x4 over the size of parts; the last column is what is lost beside (44), in parts:", "",
        table(("part", "parts", "under way", "planned", "simulated", "beside (44)", "lost"), by_part), "",
        "One thing changed, simulated:", "",
        table(("part", "128 under way", "256", "512", "256, no latency"), varied), "",
        "Parts of 4 KiB, 256 under way, over the bytes of the all-reduce; the last column is what those that a row adds took longer "
        "than by (44):",
        "",
        table(("bytes", "planned, us", "simulated, us", "beside (44)"), by_bytes), "",
        *published, "128 nodes beside the text's figures:", "",
        table(headers, beside(iterations_of_published, PUBLISHED)), "", mean_line(iterations_of_published), "",
        "With links as fast as equation 44 has them, and so slow that it gives what the all-reduce above reached:", "",
        table(("of the ideal", "network, GB/s", *NAMES[:4], "verdicts"), slower_rows(folder, iterations_of_published, rates)), "",
        "## Iterations by table V", "", "Computation + exposed communication, ms.", "",
        table(("workload", "nodes, by table V", *NAMES), times(ours)), "",
        table(("the paper's ordering", "by table V", "not for"), orderings(results)), "",
        table(headers, beside(results, OURS)), "",
        "## DLRM's embeddings aside", "", table(("shape", "configuration", "the paper", "here"), aside()), ""]
    (folder / "ace.md").write_text("\n".join(lines))
    (folder / "ace.json").write_text(json.dumps({f"{w} {n}": r for (w, n), r in results.items()}, indent=1) + "\n")
    print("\n".join(lines))
    say(f"written: {folder}/ace.md and .json")


EXPERIMENTS = {"ace": ace}
