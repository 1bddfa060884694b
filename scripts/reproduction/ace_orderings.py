# SPDX-License-Identifier: Apache-2.0
"""The orderings of ACE's configurations (section VI-C), of layers that were published and of our own, and what they depend on."""

import itertools
import json

from reproduction.lab import RECKON, ROOT, call, table

# 16 nodes: the text's "up to 300 GB/s" of 16 and 64 nodes (III) allows 4x4x1 (250 by equation 44) and not 4x2x2 (400).
SHAPES = {16: "4x4x1", 32: "4x4x2", 64: "4x4x4", 128: "4x8x4"}
NAMES = ("no-overlap", "comm-opt", "comp-opt", "ace", "ideal")
PUBLISHED = ("resnet50-astra-sim", "gnmt", "dlrm-astra-sim")
OURS = ("resnet50", "dlrm")  # and GNMT, which is published nowhere

# VI-B's text for ResNet-50 on 128 nodes: one iteration in seconds, shares of the ideal, and ratios.
PRINTED_COMP_OPT, OF_IDEAL, COMM_OPT_EXPOSED = 3.5e-3, {"comm-opt": 0.353, "comp-opt": 0.373, "ace": 0.943}, 0.315
COMPUTES_FASTER = {"comp-opt": 1.75, "ace": 1.06}  # than the one before it in NAMES
BEST_BASELINE_OVER_ACE = 1.51  # at most (VI-C)


def is_published(workload):
    return workload.endswith("-astra-sim")


def overlap(workload, shape, *options, bound="memory", dtype="fp16"):
    given = ("--bound", bound) if bound and is_published(workload) else ()
    out = json.loads(call(RECKON, "solve", "overlap", "--workload", workload, "--shape", shape, *given,
                          *(("--dtype", dtype) if dtype else ()), "--json", *options))
    return {row["name"]: row for row in out["configurations"]}


CLAIMS = {"CompOpt beats CommOpt": lambda w, n, r: r["comp-opt"] < r["comm-opt"],
          "NoOverlap beats CommOpt": lambda w, n, r: r["no-overlap"] < r["comm-opt"],
          "NoOverlap beats CompOpt for ResNet-50 above 16 nodes, nowhere else":
              lambda w, n, r: (r["no-overlap"] < r["comp-opt"]) == (w.startswith("resnet50") and n > 16),
          "ACE beats all baselines": lambda w, n, r: r["ace"] < min(r[b] for b in NAMES[:3])}


def milliseconds(seconds):
    return f"{1e3 * seconds:.3f}"


def solve(workloads, shapes=None, more=(), **given):
    """All configurations' rows by workload and nodes."""
    return {(w, n): overlap(w, s, *more, **given) for w in workloads for n, s in (shapes or SHAPES).items()}


def iterations(solved):
    return {key: {name: rows[name]["iteration_seconds"] for name in NAMES} for key, rows in solved.items()}


def both(row):
    return f"{milliseconds(row['computation_seconds'])} + {milliseconds(row['exposed_seconds'])}"


def times(solved):
    return [(w, f"{n} ({SHAPES[n]})", *(both(rows[name]) for name in NAMES)) for (w, n), rows in solved.items()]


def named(cells):
    """(workload, nodes) as text, all nodes of a workload together."""
    nodes = {}
    for workload, count in cells:
        nodes.setdefault(workload, []).append(count)
    return "; ".join(f"{w} {'all' if counts == list(SHAPES) else ', '.join(map(str, counts))}" for w, counts in nodes.items()) or "-"


def failing(results):
    """Of each claim the (workload, nodes) for which it does not hold, of iterations()."""
    return {claim: [(w, n) for (w, n), r in results.items() if not holds(w, n, r)] for claim, holds in CLAIMS.items()}


def orderings(results):
    """(claim, how often it holds, where not)."""
    return [(claim, f"{len(results) - len(cells)} of {len(results)}", named(cells)) for claim, cells in failing(results).items()]


def held(results, workload):
    """How many claims hold for it, of all nodes together."""
    mine = {key: r for key, r in results.items() if key[0] == workload}
    count = sum(holds(w, n, r) for (w, n), r in mine.items() for holds in CLAIMS.values())
    return f"{count} of {len(mine) * len(CLAIMS)}"


def implied():
    """What VI-B's figures come to for ResNet-50 on 128 nodes: (computation, exposed) in seconds by configuration."""
    ideal = OF_IDEAL["comp-opt"] * PRINTED_COMP_OPT
    total = {name: ideal / share for name, share in OF_IDEAL.items()}
    computation = {"comm-opt": (1 - COMM_OPT_EXPOSED) * total["comm-opt"]}
    computation["comp-opt"] = computation["comm-opt"] / COMPUTES_FASTER["comp-opt"]
    computation["ace"] = computation["comp-opt"] / COMPUTES_FASTER["ace"]
    parts = {name: (computation[name], total[name] - computation[name]) for name in total}
    return parts, {**total, "ideal": ideal, "no-overlap": BEST_BASELINE_OVER_ACE * total["ace"]}


def implied_rows():
    parts, total = implied()
    columns = [overlap(PUBLISHED[0], SHAPES[128], dtype=dtype) for dtype in ("fp16", None)]
    rows = []
    for name in NAMES:
        text = f"{milliseconds(parts[name][0])} + {milliseconds(parts[name][1])}" if name in parts else "-"
        sign = "at most " if name == "no-overlap" else ""
        cells = [text, f"{sign}{milliseconds(total[name])}"]
        for column in columns:
            row = column[name]
            cells += [both(row), milliseconds(row["iteration_seconds"])]
        rows.append((name, *cells))
    return rows


def with_torus(folder, name, change):
    """ace-torus with other links: change(its torus)."""
    profile = json.loads((ROOT / "profiles/ace-torus.json").read_text())
    change(profile["endpoint"]["torus"])
    profile["name"] = name
    path = folder / f"{name}.json"
    path.write_text(json.dumps(profile))
    return ("--profile", path)


def with_latencies(folder, name, change):
    """ace-torus with other latencies: change(seconds)."""
    def of_all(torus):
        for ring in ("local", "vertical", "horizontal"):
            torus[ring]["latency_seconds"] = change(torus[ring]["latency_seconds"])
    return with_torus(folder, name, of_all)


def variation_rows(folder):
    """One thing changed at a time."""
    cases = {"as above": {},
             "bytes as published (FP32)": {"dtype": "fp32"},
             "arithmetic holds all up (--bound compute)": {"bound": "compute"},
             "computation not stretched (no --bound)": {"bound": None},
             "16 nodes as 4x2x2": {"shapes": {**SHAPES, 16: "4x2x2"}},
             "32 nodes as 4x8x1": {"shapes": {**SHAPES, 32: "4x8x1"}},
             "128 nodes as 8x4x4": {"shapes": {**SHAPES, 128: "8x4x4"}},
             "first come first served (--policy fifo)": {"more": ("--policy", "fifo")},
             "by need (--policy priority)": {"more": ("--policy", "priority")},
             "latencies in cycles of 1 ns": {"more": with_latencies(folder, "slower-links", lambda s: s * 1.245)},
             "no latency": {"more": with_latencies(folder, "no-latency", lambda s: 0)}}
    rows = []
    for label, case in cases.items():
        results = iterations(solve(PUBLISHED, **case))
        rows.append((label, *(held(results, w) for w in PUBLISHED), *(named(cells) for cells in failing(results).values())))
    return rows


def grid_rows(folder):
    """How many orderings hold, over how long layers compute and how long latencies are."""
    rows = []
    for workload, latency in itertools.product(PUBLISHED, (0, 0.5, 1, 2, 4)):
        profile = with_latencies(folder, f"latency-{latency}", lambda s, factor=latency: s * factor)
        cells = [held(iterations(solve((workload,), more=(*profile, "--compute-speed", str(1 / longer)))), workload)
                 for longer in (0.25, 0.5, 1, 2, 4)]
        rows.append((workload, f"{latency:g} x", *cells))
    return rows


def published_lines(folder):
    solved = solve(PUBLISHED)
    return [
        "## Iterations of the published layers", "", "Computation + exposed communication, ms.", "",
        table(("workload", "nodes", *NAMES), times(solved)), "",
        table(("the paper's ordering", "published layers", "not for"), orderings(iterations(solved))), "",
        "ResNet-50 on 128 nodes, computation + exposed, and the iteration, ms:", "",
        table(("configuration", "the text", "iteration, the text", "here, FP16", "iteration, FP16", "here, bytes as published",
               "iteration, as published"), implied_rows()), "",
        "One thing changed at a time:", "",
        table(("changed", *PUBLISHED, "CompOpt, CommOpt: not for", "NoOverlap, CommOpt: not for", "NoOverlap, CompOpt: not for",
               "ACE: not for"), variation_rows(folder)), "",
        "Layers that take so many times longer, against latencies:", "",
        table(("workload", "latencies", "1/4 x", "1/2 x", "1 x", "2 x", "4 x"), grid_rows(folder)), ""], solved
