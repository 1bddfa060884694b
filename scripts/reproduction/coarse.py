# SPDX-License-Identifier: Apache-2.0
"""COARSE (HPCA 2022): what its sections III and V say, predicted and measured side by side."""

import json
import re
import statistics
import subprocess

from reproduction.lab import RECKON, ROOT, Lab, build, call, die, measure, plan, probe, say, size
from reproduction.pages import Page, grouped, number, publish

MODEL = "resnet50"
WORKERS = DEVICES = 4
PASSES = ("--forward", "1s", "--backward", "3s", "--order", "priority")


def quantity(document, name):
    return next((q["value"] for q in document["quantities"] if q["name"] == name), None)


def only(arguments, settings):
    return {name: s for name, s in settings.items() if not arguments.only or arguments.only in name}


def profile_of(arguments, lab, folder, budget=None):
    return arguments.profile or probe(lab, folder, budget)


def rounds_of(jobs, rounds, one):
    """one(job) -> (plan's document, seconds), by turns, so that a slow minute hits all alike."""
    documents, seconds = {}, {}
    for number in range(rounds):
        for job in jobs:
            documents[job], samples = one(job)
            seconds.setdefault(job, []).extend(samples)
            say(f"round {number + 1}: {' '.join(str(j) for j in job)}: predicted "
                f"{documents[job]['prediction']['mid_seconds']:.3f} s, measured {statistics.median(samples):.3f} s")
    return documents, seconds


# ---------------------------------------------------------------- III-F: dual synchronization

def coarse_m(arguments, folder):
    """The time over m from 0 to all, and at the solved m."""
    build(False)
    settings = only(arguments, {"4 devices": (DEVICES, ()), "4 devices, passes of 4 s": (DEVICES, PASSES), "2 devices": (DEVICES // 2, ())})
    rows = []
    with Lab(WORKERS, DEVICES, [arguments.rate]) as lab:
        profile = profile_of(arguments, lab, folder)
        total = 102_228_128
        points = [*(str(round(total * i / 8)) for i in range(8)), "all", "auto"]

        def one(job):
            setting, m = job
            devices, options = settings[setting]
            path, document = plan(folder, profile, MODEL, WORKERS, devices, "coarse", "--proxy-bytes", m, *options)
            return document, measure(lab, folder, path, WORKERS + devices)

        jobs = [(setting, m) for setting in settings for m in points]
        documents, seconds = rounds_of(jobs, arguments.rounds, one)
    for setting, m in jobs:
        document, samples = documents[setting, m], seconds[setting, m]
        solved = m == "auto"
        rows.append({"setting": setting, "m_bytes": round(quantity(document, "proxy_bytes")), "what": "solved" if solved else "",
                     "predicted_s": document["prediction"]["mid_seconds"], "measured_s": statistics.median(samples),
                     **({f"equation{number}_bytes": round(quantity(document, name)) for number, name in (
                         (32, "paper_proxy_bytes"), (33, "corrected_proxy_bytes"))} if solved else {}),
                     "samples_s": listed(samples)})
    rows.sort(key=lambda r: (list(settings).index(r["setting"]), r["m_bytes"]))
    plot_m(folder, rows, settings)
    publish(PAGE, {"m": rows}, folder)


def plot_m(folder, rows, settings):
    script = ['set terminal pngcairo size 900,540 font "Liberation Sans,11"', f'set output "{folder}/coarse-m.png"',
              'set xlabel "m, what goes through the proxies (MiB)"', 'set ylabel "an iteration (s)"', "set key top left",
              "set grid", "set yrange [0:*]"]
    curves = []
    for number, setting in enumerate(settings):
        mine = [r for r in rows if r["setting"] == setting]
        for what in ("predicted", "measured"):
            values = "\n".join(f"{r['m_bytes'] / 2**20} {r[what + '_s']}" for r in mine)
            script.append(f"$d{number}{what} << E\n{values}\nE")
        solved = next(r for r in mine if r["what"])
        script.append(f"$s{number} << E\n{solved['m_bytes'] / 2**20} {solved['measured_s']}\nE")
        curves += [f'$d{number}predicted with lines lc {number + 1} title "{setting} predicted"',
                   f'$d{number}measured with points lc {number + 1} pt {number + 5} title "{setting} measured"',
                   f'$s{number} with points lc {number + 1} pt 6 ps 3 ' + ('title "solved m"' if number == 0 else "notitle")]
    script.append("plot " + ", \\\n  ".join(curves))
    (folder / "coarse-m.gnuplot").write_text("\n".join(script) + "\n")
    call("gnuplot", folder / "coarse-m.gnuplot")


# ---------------------------------------------------------------- V-D, V-E: against the baselines

def coarse_baselines(arguments, folder):
    build(False)
    systems = {"COARSE 1:1": ("coarse", DEVICES, ()), "COARSE 2:1": ("coarse", DEVICES // 2, ()),
               "COARSE 1:1, all by proxies": ("coarse", DEVICES, ("--proxy-bytes", "all")),
               "DENSE": ("dense", 1, ()), "all-reduce": ("ring", 0, ()),
               "one parameter server": ("ps_noncolocated", 1, ()), "4 parameter servers": ("ps_noncolocated", DEVICES, ()),
               "servers on the workers": ("ps_colocated", 0, ()), "BytePS's split, 4 machines": ("byteps_split", DEVICES, ())}
    settings = only(arguments, {"no computation": (0, ()), "passes of 4 s": (4, PASSES)})
    jobs = [(setting, workers, system) for setting in settings for workers in (WORKERS, 2) for system in systems
            if workers == WORKERS or system in ("COARSE 1:1", "DENSE", "all-reduce")]
    with Lab(WORKERS, DEVICES, [arguments.rate]) as lab:
        profile = profile_of(arguments, lab, folder)

        def one(job):
            setting, workers, system = job
            strategy, devices, more = systems[system]
            devices = min(devices, workers)
            path, document = plan(folder, profile, MODEL, workers, devices, strategy, *settings[setting][1], *more)
            return document, measure(lab, folder, path, workers + devices)

        documents, seconds = rounds_of(jobs, arguments.rounds, one)
    rows = []
    for setting, workers, system in jobs:
        document, samples = documents[setting, workers, system], seconds[setting, workers, system]
        rows.append({"workers": workers, "passes_s": settings[setting][0], "system": system,
                     "predicted_s": document["prediction"]["mid_seconds"], "measured_s": statistics.median(samples),
                     "samples_s": listed(samples)})
    rows.sort(key=lambda r: (r["passes_s"], -r["workers"], r["measured_s"]))
    publish(PAGE, {"baselines": rows}, folder)


# ---------------------------------------------------------------- III-F, figure 10: queues

def published(case, value, unit, **key):
    cell = {"case": case, "unit": unit, "p50": value, "min": value, "max": value, "p99": value, "n": 0, "spread": 0,
            "status": "published", "reason": "made for this experiment", "transport": "host", **key}
    return cell if unit == "seconds" else {**cell, "bytes_convention": "payload"}


def machines_profile(name, machines, cells):
    return {"schema": "reckon/profile", "schema_version": 1, "name": name, "source": "made for this experiment", "context": {},
            "fits": [], "topology": {"objects": []},
            "machines": [{"id": m, "name": m, "count": 1, "cores": 2} for m in machines], "cells": cells}


def figure10(folder):
    """Two clients and two devices, each client with a near device for short and the other's for long tensors."""
    machines = ["gpu0", "gpu1", "dev0", "dev1"]
    cells = [published("port_bandwidth", 1e9, "bytes_per_second", **{"from": m}) for m in machines]
    for client in (0, 1):
        for device in (0, 1):
            pair = {"from": f"gpu{client}", "to": f"dev{device}", "direction": "one_way"}
            near = client == device
            cells += [published("pair_latency", 1e-5 if near else 1e-3, "seconds", bytes=8, **pair),
                      published("pair_bandwidth", 5e7 if near else 5e8, "bytes_per_second", **pair)]
    (folder / "profile.json").write_text(json.dumps(machines_profile("figure10", machines, cells)))
    (folder / "workload.json").write_text(json.dumps({
        "schema": "reckon/workload", "schema_version": 1, "name": "figure10", "dtype": "fp32",
        "tensors": [{"name": "short", "elements": 5000}, {"name": "long", "elements": 25000}]}))


def coarse_queues(arguments, folder):
    """Runs on this machine alone: what deadlocks does so on any."""
    del arguments
    if not RECKON.exists():
        die("there is no release build; scripts/quickstart makes it", 3)
    figure10(folder)
    rows = []
    for queues in ("fcfs", "client"):
        path = f"{queues}.json"
        call(RECKON, "plan", "-p", "profile.json", "-m", "workload.json", "--workers", 2, "--servers", 2, "--strategy", "coarse",
             "--proxy-bytes", "all", "--queues", queues, "-o", path, cwd=folder)
        for what, more in (("proof", ["--check"]), ("run", ["--iterations", 50, "--tolerance", "100000%"] +
                                                     (["--unchecked", "--step-timeout", "3s"] if queues == "fcfs" else []))):
            done = subprocess.run([str(a) for a in (RECKON, "run", path, *more)], text=True, capture_output=True, timeout=60,
                                  cwd=folder)
            lines = (done.stderr if done.returncode else done.stdout).strip().splitlines()
            said = next((l for l in lines if l.startswith(("reckon: error", "verified"))), lines[-1] if lines else "")
            # Which of those that wait in a circle says so first is a matter of chance.
            said = re.sub(r"rank \d+( \([^)]*\) gave up: rank \d+)? did not finish", "a rank did not finish", " ".join(said.split()))
            said = re.sub(r"part \d+ from rank \d+; it could not", "a part from another; it could not", said)
            rows.append({"queues": queues, "what": what, "exit_status": done.returncode, "says": said})
    good = [r["exit_status"] for r in rows] == [2, 4, 0, 0]
    publish(PAGE, {"queues": rows}, folder)
    if not good:
        die("that is not what section III-F says", 4)


# ---------------------------------------------------------------- IV-A: directions of the rings

def links_between_neighbours(folder):
    """Ports eight times as fast as the link of a pair, so that each pair's link is what binds."""
    names = [f"gpu{i}" for i in range(WORKERS)] + [f"dev{i}" for i in range(DEVICES)]
    cells = [published("port_bandwidth", 800e6, "bytes_per_second", **{"from": n}) for n in names]
    for a in names:
        for b in names:
            if a != b:
                pair = {"from": a, "to": b, "direction": "one_way"}
                # Clients' ways are not what is looked at here.
                rate = 100e6 if a.startswith("dev") and b.startswith("dev") else 800e6
                cells += [published("pair_latency", 1e-4, "seconds", bytes=8, **pair),
                          published("pair_bandwidth", rate, "bytes_per_second", **pair)]
    path = folder / "neighbours.json"
    path.write_text(json.dumps(machines_profile("neighbours", names, cells)))
    return path


def coarse_rings(arguments, folder):
    build(False)
    jobs = [(devices, directions) for devices in (DEVICES, 3, 2) for directions in (1, 2)]
    with Lab(WORKERS, DEVICES, [arguments.rate]) as lab:
        profile = profile_of(arguments, lab, folder)

        def one(job):
            devices, directions = job
            workers = 3 if devices == 3 else WORKERS
            path, document = plan(folder, profile, MODEL, workers, devices, "coarse", "--proxy-bytes", "all",
                                  "--ring-directions", directions)
            return document, measure(lab, folder, path, workers + devices)

        documents, seconds = rounds_of(jobs, arguments.rounds, one)
    profile = links_between_neighbours(folder)

    def emulated(job):
        path = plan_on(folder, profile, MODEL, "--proxy-bytes", "all", "--ring-directions", job[1])
        return json.loads(path.read_text()), measure_emulated(folder, path, profile)

    pairs, pair_seconds = rounds_of([("pairs", 1), ("pairs", 2)], arguments.rounds, emulated)
    documents, seconds = {**documents, **pairs}, {**seconds, **pair_seconds}
    what = {DEVICES: f"{DEVICES} devices, one port each", 3: "3 devices, one port each", 2: "2 devices, 4 clients, one port each",
            "pairs": f"{DEVICES} devices, a link for each pair (emulated)"}
    publish(PAGE, {"rings": [
        {"what": name, "one_direction_s": statistics.median(seconds[d, 1]), "two_directions_s": statistics.median(seconds[d, 2]),
         "predicted_gain": documents[d, 1]["prediction"]["mid_seconds"] / documents[d, 2]["prediction"]["mid_seconds"]}
        for d, name in what.items()]}, folder)


# ---------------------------------------------------------------- V-C: three machines, emulated

def plan_on(folder, profile, model, *more):
    path = folder / "plan.json"
    call(RECKON, "plan", "-p", profile, "-m", model, "--workers", WORKERS, "--servers", DEVICES, "--strategy", "coarse", "-o",
         path, *more)
    return path


def measure_emulated(folder, path, profile, iterations=3):
    report = folder / "report.json"
    call(RECKON, "run", path, "--inject", profile, "--transport", "host", "--iterations", iterations, "--warm-up", 1,
         "--tolerance", "1000%", "--step-timeout", "120s", "-o", report)
    document = json.loads(report.read_text())
    if not document["verification"]["ok"]:
        die(f"wrong sums: {document['verification']}", 4)
    return document["iteration_seconds"]


def coarse_machines(arguments, folder):
    """Every machine with the route that its table says, and with the routes that it does not say."""
    if not RECKON.exists():
        die("there is no release build; scripts/quickstart makes it", 3)
    slower = 100
    call(ROOT / "scripts/generate_coarse_profiles.py", "--slower", slower, "--to", folder)
    profiles = {m: folder / f"coarse-{m}.json" for m in ("t4", "p100", "v100")}
    forced = {}
    for route in ("local", "remote"):  # tables that know one device only: here all others are slow
        document = json.loads(profiles["t4"].read_text())
        for c in document["cells"]:
            if c["case"] in ("pair_latency", "pair_bandwidth"):
                a, b = int(c["from"][-1]), int(c["to"][-1])
                good = a == b if route == "local" else b == a ^ 1
                for key in ("p50", "min", "max", "p99"):
                    c[key] *= 1 if good else 10 if c["case"] == "pair_latency" else 0.1
        forced[route] = folder / f"{route}.json"
        forced[route].write_text(json.dumps(document))
    short = folder / "short.json"
    short.write_text(json.dumps({"schema": "reckon/workload", "schema_version": 1, "name": "one tensor of 64 KiB",
                                 "dtype": "fp32", "tensors": [{"name": "short", "elements": 16384}]}))
    models = {"one tensor of 64 KiB": (short, 15), MODEL: (MODEL, 3)}
    routes = {"by its table": None, "local only": forced["local"], "remote only": forced["remote"]}
    jobs = [(machine, model, route) for machine in profiles for model in models for route in routes]

    def one(job):
        machine, model, route = job
        path = plan_on(folder, routes[route] or profiles[machine], models[model][0], "--proxy-bytes", "all",
                       "--part-bytes", "1MiB", "--window", 8, "--lanes", 4,
                       "--ring-directions", 1)
        return json.loads(path.read_text()), measure_emulated(folder, path, profiles[machine], models[model][1])

    documents, seconds = rounds_of(jobs, arguments.rounds, one)
    # The workload of one short tensor has no use for a second proxy: the tables are those of the whole model.
    says = {}
    for machine in profiles:
        table_of = documents[machine, MODEL, "by its table"]["routing"]
        kinds = {tuple("local" if r[k] == r["client"] + WORKERS else "remote" for k in ("latency_proxy", "bandwidth_proxy"))
                 for r in table_of}
        thresholds = {r["threshold_bytes"] for r in table_of if r.get("threshold_bytes") is not None}
        says[machine] = (kinds, thresholds)
    paper = {"t4": "one proxy, no threshold; local and remote alike", "p100": "one proxy, the local one",
             "v100": "local for small tensors, remote for large"}
    publish(PAGE, {
        "thresholds": [{"machine": m, "paper": paper[m], "here": "; ".join(sorted(", ".join(k) for k in says[m][0])),
                        "threshold_bytes": " ".join(str(int(s)) for s in says[m][1])} for m in profiles],
        "machines": [{"machine": m, "workload": model, "predicted_s": documents[m, model, "by its table"]["prediction"]["mid_seconds"],
                      **{f"{route.removesuffix(' only').replace('by its table', 'by_table')}_s": statistics.median(seconds[m, model, route])
                         for route in routes}} for m in profiles for model in models]}, folder)


# ---------------------------------------------------------------- III-E: latency against bandwidth

def coarse_routes(arguments, folder):
    """A near device on a slow link and a far one on a fast link: which is faster, size by size."""
    build(False)
    sizes = sorted({4 * round(1024 * 1024 ** (i / 23)) for i in range(24)})
    near, far = "s0", "s1"
    with Lab(1, 2, ["1gbit", "50mbit", "400mbit"], ["0ms", "0ms", "20ms"]) as lab:
        profile = profile_of(arguments, lab, folder, "180s")  # slow links: every size of a write wants its time
        model = folder / "workload.json"
        model.write_text(json.dumps({
            "schema": "reckon/workload", "schema_version": 1, "name": "24 sizes", "dtype": "fp32",
            "tensors": [{"name": f"t{i}", "elements": s // 4} for i, s in enumerate(sizes)]}))
        _, document = plan(folder, profile, model, 1, 2, "coarse", "--proxy-bytes", "all")
        route = document["routing"][0]
        rank_of = {near: 1, far: 2}
        samples = {}
        for number in range(arguments.rounds):
            for s in sizes:
                single = folder / "single.json"
                single.write_text(json.dumps({
                    "schema": "reckon/workload", "schema_version": 1, "name": size(s), "dtype": "fp32",
                    "tensors": [{"name": "one", "elements": s // 4}]}))
                path, _ = plan(folder, profile, single, 1, 1, "coarse", "--proxy-bytes", "all", "--part-bytes", s)
                for machine in (near, far):
                    report = folder / "report.json"
                    lab.run_on(["w0", machine], RECKON, "run", path, "--iterations", 15 if s < 2**19 else 5, "--warm-up", 2,
                               "--tolerance", "100000%", "--step-timeout", "60s", "-o", report)
                    done = json.loads(report.read_text())
                    if not done["verification"]["ok"]:
                        die(f"wrong sums: {done['verification']}", 4)
                    # The client's own time: the device then still waits to hear that its last bytes have arrived.
                    late = done["p50_seconds"] - done["ranks"][0]["total_seconds"]
                    samples.setdefault((s, machine), []).extend(t - late for t in done["iteration_seconds"])
                say(f"round {number + 1}: {size(s)}: " + ", ".join(
                    f"{m} {1e3 * statistics.median(samples[s, m]):.2f} ms" for m in (near, far)))
    threshold = route.get("threshold_bytes")

    def chosen(s):
        proxy = route["bandwidth_proxy"] if threshold is None or s > threshold else route["latency_proxy"]
        return next(m for m, r in rank_of.items() if r == proxy)

    rows = []
    for s in sizes:
        ordered = {m: sorted(samples[s, m]) for m in (near, far)}
        span = {m: (v[len(v) // 10], v[-1 - len(v) // 10]) for m, v in ordered.items()}
        best = min((near, far), key=lambda m: statistics.median(ordered[m]))
        noise = span[near][0] <= span[far][1] and span[far][0] <= span[near][1]
        rows.append({"tensor_bytes": s, "near_ms": 1e3 * statistics.median(ordered[near]), "far_ms": 1e3 * statistics.median(ordered[far]),
                     "faster": best, "by_table": chosen(s), "remark": "in the noise" if noise else "" if best == chosen(s) else "not the same"})
    publish(PAGE, {"routes": rows}, folder)
    say(f"routing table: up to {size(int(threshold)) if threshold else 'any size'} to {chosen(0)}, above to {chosen(2**40)}")


# ---------------------------------------------------------------- the page

def listed(samples):
    return " ".join(f"{s:.3f}" for s in samples)


def summary(tables):
    clear = [r for r in tables["routes"] if r["remark"] != "in the noise"]
    right = sum(r["faster"] == r["by_table"] for r in clear)
    rows = [("a routing table finds the faster proxy for each size (III-E)", f"for {right} of {len(clear)} sizes outside the noise")]
    for (setting,), some in grouped(tables["m"], "setting").items():
        best, solved = min(some, key=lambda r: number(r, "measured_s")), next(r for r in some if r["what"])
        rows.append((f"dual synchronization has a best m (III-F): {setting}", f"best measured {number(best, 'measured_s'):.3f} s at "
                     f"{size(int(best['m_bytes']))}; at the solved m {number(solved, 'measured_s'):.3f} s"))
    for (workers, passes), some in grouped(tables["baselines"], "workers", "passes_s").items():
        seconds = {r["system"]: number(r, "measured_s") for r in some}
        computing = f"passes of {passes} s" if passes != "0" else "no computation"
        rows.append((f"COARSE beside DENSE and all-reduce (V-D): {workers} workers, {computing}",
                     f"{seconds['DENSE'] / seconds['COARSE 1:1']:.2f} times as fast as DENSE, "
                     f"{seconds['all-reduce'] / seconds['COARSE 1:1']:.2f} times as fast as all-reduce"))
    rows.append(("one queue at a proxy deadlocks, a queue for each client does not (III-F)", "; ".join(
        f"{r['queues']}, {r['what']}: status {r['exit_status']}" for r in tables["queues"])))
    gains = {r["what"]: number(r, "one_direction_s") / number(r, "two_directions_s") for r in tables["rings"]}
    rows.append(("rings in opposite directions (IV-A)", f"{min(gains.values()):.2f} to {max(gains.values()):.2f} times as fast, the most "
                 "with a link for each pair"))
    rows.append(("T4 and P100 use one proxy, V100 local for short and remote for long tensors (V-C)", "; ".join(
        f"{r['machine']}: {r['here']}" + (f" from {size(int(r['threshold_bytes']))}" if r["threshold_bytes"] else "")
        for r in tables["thresholds"])))
    return ("the paper", "here"), rows


PAGE = Page("coarse", ("m", "baselines", "routes", "machines", "thresholds", "queues", "rings"), summary)
EXPERIMENTS = {"coarse-m": coarse_m, "coarse-routes": coarse_routes, "coarse-baselines": coarse_baselines,
               "coarse-queues": coarse_queues, "coarse-machines": coarse_machines, "coarse-rings": coarse_rings}
