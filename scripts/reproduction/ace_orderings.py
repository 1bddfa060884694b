# SPDX-License-Identifier: Apache-2.0
"""The orderings of ACE's configurations (section VI-C), of layers that were published and of our own, and what they depend on."""

import json

from reproduction.lab import RECKON, ROOT, call

# 16 nodes: the text's "up to 300 GB/s" of 16 and 64 nodes (III) allows 4x4x1 (250 by equation 44) and not 4x2x2 (400).
SHAPES = {16: "4x4x1", 32: "4x4x2", 64: "4x4x4", 128: "4x8x4"}
NAMES = ("no-overlap", "comm-opt", "comp-opt", "ace", "ideal")
PUBLISHED = ("resnet50-astra-sim", "gnmt", "dlrm-astra-sim")
OURS = ("resnet50", "dlrm")  # and GNMT, which is published nowhere



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


def iterations(workloads, shapes=None, more=(), **given):
    """Seconds of an iteration by (workload, nodes) and configuration."""
    return {(w, n): {name: row["iteration_seconds"] for name, row in overlap(w, s, *more, **given).items()}
            for w in workloads for n, s in (shapes or SHAPES).items()}


def named(cells):
    """The nodes of (workload, nodes)."""
    return " ".join(str(nodes) for _, nodes in cells)


def held(results):
    """How many claims hold, of all nodes together, and for which nodes each does not."""
    failing = {claim: [key for key, r in results.items() if not holds(*key, r)] for claim, holds in CLAIMS.items()}
    return {"hold": len(results) * len(CLAIMS) - sum(map(len, failing.values())), "of": len(results) * len(CLAIMS),
            **{f"not for {claim}, nodes": named(cells) for claim, cells in failing.items()}}


def variations(folder, slower):
    """What is changed, one thing at a time: arguments of iterations()."""
    return {"nothing": {},
            "bytes as published (FP32)": {"dtype": "fp32"},
            "arithmetic binds (--bound compute)": {"bound": "compute"},
            "computation not stretched (no --bound)": {"bound": None},
            "16 nodes as 4x2x2": {"shapes": {**SHAPES, 16: "4x2x2"}},
            "32 nodes as 4x8x1": {"shapes": {**SHAPES, 32: "4x8x1"}},
            "128 nodes as 8x4x4": {"shapes": {**SHAPES, 128: "8x4x4"}},
            "first come first served (--policy fifo)": {"more": ("--policy", "fifo")},
            "by need (--policy priority)": {"more": ("--policy", "priority")},
            "latencies in cycles of 1 ns": {"more": with_latencies(folder, "slower-links", lambda s: s * 1.245)},
            "no latency": {"more": with_latencies(folder, "no-latency", lambda s: 0)},
            **{f"layers take {longer:g} x, latencies {latency:g} x": {"more": (
                *with_latencies(folder, f"latency-{latency}", lambda s, factor=latency: s * factor), "--compute-speed", str(1 / longer))}
               for latency in (0, 0.5, 1, 2, 4) for longer in (0.25, 0.5, 1, 2, 4)},
            "links as fast as the simulated all-reduce": slower}
