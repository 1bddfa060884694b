# SPDX-License-Identifier: Apache-2.0
"""ACE's question on a CPU: what does it cost to communicate where one computes? Two ranks of this machine compute products of
matrices in their passes and sum a gradient meanwhile: alone, one after the other, with processors of their own, sharing all."""

import json
import os
import pathlib
import statistics

from reproduction.lab import RECKON, call, die, parse_bytes, say, size
from reproduction.pages import Page, publish

LAYERS = 8
WORK = "gemm_256"
FORWARD = 1 / 3  # of the passes


def workload(folder, name, model_bytes, layers):
    path = folder / f"{name}.json"
    path.write_text(json.dumps({
        "schema": "reckon/workload", "schema_version": 1, "name": name, "dtype": "fp32",
        "description": f"{layers} tensors, {size(model_bytes)} together", "provenance": "scripts/reproduce offload",
        "tensors": [{"name": f"layer{i}", "elements": model_bytes // 4 // layers} for i in range(layers)]}))
    return path


def plan(folder, profile, model, name, *more):
    path = folder / f"{name}-plan.json"
    call(RECKON, "plan", "--profile", profile, "--workload", model, "--workers", 2, "--servers", 0, "--strategy", "ring",
         "--lanes", 1, "-o", path, *more)
    return path, json.loads(path.read_text())


def plan_beside(folder, profile, model, cores, passes):
    """With the factors for these places, or without where the probe had no time for them; the factors, or none."""
    profiled = json.loads(pathlib.Path(profile).read_text())
    threads = [c.get("threads") for c in profiled["cells"] if c["case"].startswith("contention") and c.get("operation") == WORK
               and c.get("bytes")]
    wanted = (min if cores == "dedicated" else max)(threads)
    measured = {c["case"] for c in profiled["cells"] if c["case"].startswith("contention") and c.get("operation") == WORK
                and c.get("bytes") and c.get("threads") == wanted and c.get("p50")}
    if len(measured) < 2:
        say(f"the profile has no factors for lanes and work on {cores} processors: that plan is made without")
        return (*plan(folder, profile, model, f"beside-{cores}", *passes), None)
    path, document = plan(folder, profile, model, f"beside-{cores}", *passes, "--contention", WORK, "--processors", cores)
    return path, document, next(q["inputs"] for q in document["quantities"] if q["name"] == "contention_seconds")


def processors():
    return sorted(os.sched_getaffinity(0))


def run(folder, path, *more, one_processor=False):
    """Seconds of an iteration, median, and the longest rank's work in its passes."""
    report = folder / "report.json"
    before = ["taskset", "-c", processors()[0]] if one_processor else []
    call(*before, RECKON, "run", path, "--iterations", 15, "--tolerance", "1000000%", "-o", report, *more)
    document = json.loads(report.read_text())
    if not document["verification"]["ok"]:
        die(f"wrong sums: {document['verification']}", 4)
    worked = [s.get("measured_seconds") for s in document["stages"] if s["name"] == "passes"]
    return document["p50_seconds"], worked[0] if worked else None


def iteration(computing, communicating, layers, factors):
    """Equations 18 and 55 for passes and traffic of these times alone."""
    backward, first = computing * (1 - FORWARD), computing * (1 - FORWARD) / layers
    together = max(backward + communicating / layers, first + communicating) + computing * FORWARD
    beside = computing - first
    hidden = min(max(communicating - (together - computing), 0), beside)
    stretched = {"compute": beside * factors["f_compute"], "communication": hidden * factors["f_communication"]}
    if stretched["compute"] <= stretched["communication"]:
        return together + hidden + stretched["compute"] * (1 - 1 / factors["f_communication"]) - max(beside, hidden)
    return together + beside + stretched["communication"] * (1 - 1 / factors["f_compute"]) - max(beside, hidden)


def offload(arguments, folder):
    if len(processors()) < 2:
        die("offload needs two processors: one for lanes, one to compute", 3)
    if not RECKON.exists():
        die("there is no release build; scripts/quickstart makes it", 3)
    load_before = os.getloadavg()[0]
    profile = arguments.profile
    if not profile:
        profile = folder / "profile.json"
        say("probing this machine, 2 minutes")
        cases = ("contention_communication", "contention_compute", "fabric_aggregate", "reduce_sum")
        call(RECKON, "probe", *[a for case in cases for a in ("--only", case)], "--time", "2min", "-o", profile, "--force")
    model_bytes = parse_bytes(arguments.bytes)
    whole = workload(folder, "layers", model_bytes, LAYERS)
    traffic_plan, traffic = plan(folder, profile, whole, "traffic", "--zero-compute")
    computing = max(0.12, 3 * traffic["prediction"]["mid_seconds"])
    passes = ("--forward", f"{computing * FORWARD}s", "--backward", f"{computing * (1 - FORWARD)}s")
    alone_plan, alone = plan(folder, profile, workload(folder, "tiny", 4096 * LAYERS, LAYERS), "alone", *passes)
    after_plan, after = plan(folder, profile, workload(folder, "one-layer", model_bytes, 1), "after", *passes)
    places = {"dedicated": "processors of their own", "shared": "all processors"}
    beside = {cores: plan_beside(folder, profile, whole, cores, passes) for cores in places}
    seconds, work = {}, {}
    jobs = [(what, cores) for what in ("compute", "traffic", "after", "beside") for cores in places]
    for number in range(arguments.rounds):  # by turns, so that a slow minute hits all alike
        for what, cores in jobs:
            if what == "traffic":  # lanes where they are with dedicated processors: all on the first
                done = run(folder, traffic_plan, one_processor=cores == "dedicated" and len(processors()) == 2)
            else:
                path = {"compute": alone_plan, "after": after_plan, "beside": beside[cores][0]}[what]
                done = run(folder, path, "--compute", WORK, "--processors", cores)
            seconds.setdefault((what, cores), []).append(done[0])
            work.setdefault((what, cores), []).append(done[1])
            say(f"round {number + 1}: {what} {cores}: {done[0]:.4f} s")
    rows = list(cells(places, seconds, work, {
        "compute": lambda _: alone["prediction"]["mid_seconds"], "traffic": lambda _: traffic["prediction"]["mid_seconds"],
        "after": lambda _: after["prediction"]["mid_seconds"],
        "beside": lambda cores: beside[cores][1]["prediction"]["mid_seconds"]}, {cores: beside[cores][2] for cores in places}))
    publish(PAGE, {"": rows}, folder)
    say(f"load average {load_before:.1f} before and {os.getloadavg()[0]:.1f} after, of it about 2 the experiment's own; contention factors "
        + "; ".join(f"{places[c]} {f['f_compute']:.3f}, {f['f_communication']:.3f}" if (f := beside[c][2]) else
                    f"{places[c]} not measured" for c in places))


NAMES = {"compute": "computation alone", "traffic": "communication alone", "after": "one after the other", "beside": "at the same time"}


def cells(places, seconds, work, planned, factors):
    medians = {key: statistics.median(values) for key, values in seconds.items()}
    for cores in places:
        computing, communicating = medians["compute", cores], medians["traffic", cores]
        composed = {"after": computing + communicating}
        if factors[cores]:
            composed["beside"] = iteration(computing, communicating, LAYERS, factors[cores])
        for what, name in NAMES.items():
            worked = [w for w in work[what, cores] if w is not None] if what != "traffic" else []
            yield {"what": name, "processors": places[cores], "planned_ms": 1e3 * planned[what](cores),
                   "composed_ms": 1e3 * composed[what] if what in composed else None, "measured_ms": 1e3 * medians[what, cores],
                   "work_in_passes_ms": 1e3 * statistics.median(worked) if worked else None}


def summary(tables):
    return ("", "lanes and work on", "planned, ms", "composed of the first two, ms", "measured, ms"), [
        (r["what"], r["processors"], *(f"{float(r[c]):.1f}" if r[c] else "" for c in ("planned_ms", "composed_ms", "measured_ms")))
        for r in tables[""]]


PAGE = Page("offload", ("",), summary)
EXPERIMENTS = {"offload": offload}
