# SPDX-License-Identifier: Apache-2.0
"""ACE's question on a CPU: what does it cost to communicate where one computes? Two ranks of this machine compute products of
matrices in their passes and sum a gradient meanwhile: alone, one after the other, with processors of their own, sharing all."""

import datetime
import json
import os
import pathlib
import statistics

from reproduction.lab import RECKON, call, die, parse_bytes, percent, say, size, table

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
    return document["p50_seconds"], worked[0] if worked else None, document["context"].get("compute", "")


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
    seconds, work, said = {}, {}, {}
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
            said[what, cores] = done[2]
            say(f"round {number + 1}: {what} {cores}: {done[0]:.4f} s")
    finish(folder, arguments, places, seconds, work, said, {
        "compute": lambda _: alone["prediction"]["mid_seconds"], "traffic": lambda _: traffic["prediction"]["mid_seconds"],
        "after": lambda _: after["prediction"]["mid_seconds"],
        "beside": lambda cores: beside[cores][1]["prediction"]["mid_seconds"]},
        {cores: beside[cores][2] for cores in places}, model_bytes, (load_before, os.getloadavg()[0]))


def finish(folder, arguments, places, seconds, work, said, planned, factors, model_bytes, load):
    names = {"compute": "computation alone", "traffic": "communication alone", "after": "one after the other",
             "beside": "at the same time"}
    medians = {key: statistics.median(values) for key, values in seconds.items()}
    rows = []
    for cores in places:
        computing, communicating = medians["compute", cores], medians["traffic", cores]
        composed = {"after": computing + communicating}
        if factors[cores]:
            composed["beside"] = iteration(computing, communicating, LAYERS, factors[cores])
        for what, name in names.items():
            measured = medians[what, cores]
            worked = [w for w in work[what, cores] if w is not None]
            rows.append({"what": name, "cores": cores, "planned": planned[what](cores), "composed": composed.get(what),
                         "measured": measured, "work": statistics.median(worked) if what != "traffic" and worked else None,
                         "samples": seconds[what, cores]})
    cells = [(r["what"], places[r["cores"]], f"{1e3 * r['planned']:.1f}",
              f"{1e3 * r['composed']:.1f}" if r["composed"] else "", f"{1e3 * r['measured']:.1f}",
              percent(r["measured"] / (r["composed"] or r["planned"]) - 1),
              f"{1e3 * r['work']:.1f}" if r["work"] else "") for r in rows]
    best = {cores: medians["beside", cores] for cores in places}
    lines = ["# Offload on a CPU: lanes with processors of their own, and without", "",
             f"Two ranks on this machine ({len(processors())} processors), {size(model_bytes)} of gradient in {LAYERS} layers, ring, "
             f"{WORK} on one thread of each rank. Medians of {arguments.rounds} runs of 15 iterations, ms, "
             f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d %H:%M} UTC; to repeat: `scripts/reproduce offload`. "
             f"Load average {load[0]:.1f} before and {load[1]:.1f} after (the experiment's own threads are about 2 of it): "
             + ("other programs were at work, and the figures are theirs as much as ours." if max(load) > 3 else "quiet."), "",
             table(("", "lanes and work on", "planned", "from the first two rows", "measured", "error", "work in the passes"), cells), "",
             "Contention factors of the profile (computation, communication): " +
             "; ".join(f"{places[c]} {f['f_compute']:.3f}, {f['f_communication']:.3f}" if (f := factors[c]) else
                       f"{places[c]} not measured, the plan is without" for c in places) + ".",
             "The error is against what equations 18 and 55 make of the computation and the communication measured alone in the same "
             "places; in the first two rows, and without factors, against the plan.", "",
             f"At the same time with processors of their own: {1e3 * best['dedicated']:.1f} ms; sharing all: "
             f"{1e3 * best['shared']:.1f} ms ({percent(best['shared'] / best['dedicated'] - 1)}).", "",
             *[f"- {names[what]}, {places[cores]}: {text}" for (what, cores), text in said.items() if text], ""]
    (folder / "offload.md").write_text("\n".join(lines))
    (folder / "offload.json").write_text(json.dumps(rows, indent=1) + "\n")
    print("\n".join(lines))


EXPERIMENTS = {"offload": offload}
