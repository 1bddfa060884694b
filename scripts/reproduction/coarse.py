# SPDX-License-Identifier: Apache-2.0
"""COARSE (HPCA 2022): what its sections III and V say, predicted and measured side by side."""

import json
import statistics
import subprocess

from reproduction.lab import RECKON, TRANSPORT, Lab, build, call, die, measure, percent, plan, probe, say, size, table

MODEL = "resnet50"
WORKERS = DEVICES = 4
PASSES = ("--forward", "1s", "--backward", "3s")


def quantity(document, name):
    return next((q["value"] for q in document["quantities"] if q["name"] == name), None)


def finish(folder, name, lines, rows):
    (folder / f"{name}.json").write_text(json.dumps(rows, indent=1) + "\n")
    (folder / f"{name}.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))
    say(f"\nwritten: {folder}/{name}.md and .json")


def profile_of(arguments, lab, folder):
    return arguments.profile or probe(lab, folder)


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
    """The time over m from 0 to all; the solved m must be as good as the best of the measured."""
    build(False)
    settings = {"1:1": (DEVICES, ()), "1:1, passes of 4 s": (DEVICES, PASSES), "2:1": (DEVICES // 2, ())}
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
        rows.append({"setting": setting, "asked": m, "m": quantity(document, "proxy_bytes"), "solved": m == "auto",
                     "paper_m": quantity(document, "paper_proxy_bytes"),
                     "corrected_m": quantity(document, "corrected_proxy_bytes"),
                     "predicted": document["prediction"]["mid_seconds"], "measured": statistics.median(samples),
                     "samples": samples})
    lines = ["# COARSE III-F: time over m", "",
             f"{WORKERS} workers, {DEVICES} devices (2:1: {DEVICES // 2}), {MODEL}, links of {arguments.rate}; medians of "
             f"{2 * arguments.rounds} iterations; to repeat: scripts/reproduce coarse-m", ""]
    for setting in settings:
        mine = sorted((r for r in rows if r["setting"] == setting), key=lambda r: r["m"])
        solved = next(r for r in mine if r["solved"])
        best = min(mine, key=lambda r: r["measured"])
        lines += [f"## {setting}", "",
                  table(("m", "", "predicted s", "measured s", "error"),
                        [(size(int(r["m"])), "solved" if r["solved"] else "", f"{r['predicted']:.3f}",
                          f"{r['measured']:.3f}", percent(r["measured"] / r["predicted"] - 1)) for r in mine]), "",
                  f"Best measured: {best['measured']:.3f} s at {size(int(best['m']))}; at the solved m of "
                  f"{size(int(solved['m']))}: {solved['measured']:.3f} s, {percent(solved['measured'] / best['measured'] - 1)} "
                  f"(asked for: 5 %). The paper's formula (32) gives {size(int(solved['paper_m']))}, (33) "
                  f"{size(int(solved['corrected_m']))}.", ""]
    plot_m(folder, rows, settings)
    finish(folder, "coarse-m", lines, rows)


def plot_m(folder, rows, settings):
    script = ['set terminal pngcairo size 900,540 font "Liberation Sans,11"', f'set output "{folder}/coarse-m.png"',
              'set xlabel "m, what goes through the proxies (MiB)"', 'set ylabel "an iteration (s)"', "set key top left",
              "set grid", "set yrange [0:*]"]
    curves = []
    for number, setting in enumerate(settings):
        mine = sorted((r for r in rows if r["setting"] == setting), key=lambda r: r["m"])
        for what in ("predicted", "measured"):
            values = "\n".join(f"{r['m'] / 2**20} {r[what]}" for r in mine)
            script.append(f"$d{number}{what} << E\n{values}\nE")
        solved = next(r for r in mine if r["solved"])
        script.append(f"$s{number} << E\n{solved['m'] / 2**20} {solved['measured']}\nE")
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
    settings = {"zero compute": (0, ()), "passes of 4 s": (4, PASSES)}
    jobs = [(setting, workers, system) for setting in settings for workers in (WORKERS, 2) for system in systems
            if workers == WORKERS or system in ("COARSE 1:1", "DENSE", "all-reduce")]
    with Lab(WORKERS, DEVICES, [arguments.rate]) as lab:
        profile = profile_of(arguments, lab, folder)
        two = folder / "two.json"

        def one(job):
            setting, workers, system = job
            strategy, devices, more = systems[system]
            devices = min(devices, workers)
            options = [*settings[setting][1], *more]
            if workers == WORKERS:
                path, document = plan(folder, profile, MODEL, workers, devices, strategy, *options)
                return document, measure(lab, folder, path, workers + devices)
            # Two workers are the first two machines; their devices the next.
            path, document = plan(folder, profile, MODEL, workers, devices, strategy, *options)
            return document, measure(lab, folder, path, workers + devices)

        documents, seconds = rounds_of(jobs, arguments.rounds, one)
    rows = []
    for setting, workers, system in jobs:
        document, samples = documents[setting, workers, system], seconds[setting, workers, system]
        passes = settings[setting][0]
        rows.append({"setting": setting, "workers": workers, "system": system,
                     "predicted": document["prediction"]["mid_seconds"], "measured": statistics.median(samples),
                     "exposed_predicted": document["prediction"]["mid_seconds"] - passes,
                     "exposed_measured": statistics.median(samples) - passes, "samples": samples})
    lines = ["# COARSE V-D and V-E: against DENSE, all-reduce and parameter servers on the same links", "",
             f"{MODEL}, links of {arguments.rate}, the device of DENSE and the parameter servers are the devices' machines; "
             f"medians of {2 * arguments.rounds} iterations; to repeat: scripts/reproduce coarse-baselines", ""]
    for setting in settings:
        for workers in (WORKERS, 2):
            mine = [r for r in rows if r["setting"] == setting and r["workers"] == workers]
            dense = next(r for r in mine if r["system"] == "DENSE")
            ring = next(r for r in mine if r["system"] == "all-reduce")
            lines += [f"## {workers} workers, {setting}", "",
                      table(("system", "predicted s", "measured s", "error", "exposed s", "speedup over DENSE",
                             "exposed, of DENSE's", "exposed, against all-reduce"),
                            [(r["system"], f"{r['predicted']:.3f}", f"{r['measured']:.3f}",
                              percent(r["measured"] / r["predicted"] - 1), f"{r['exposed_measured']:.3f}",
                              f"{dense['measured'] / r['measured']:.2f}",
                              f"{100 * r['exposed_measured'] / dense['exposed_measured']:.0f} %",
                              percent(r["exposed_measured"] / ring["exposed_measured"] - 1))
                             for r in sorted(mine, key=lambda r: r["measured"])]), ""]
    finish(folder, "coarse-baselines", lines, rows)


# ---------------------------------------------------------------- III-F, figure 10: queues

def figure10(folder):
    """Two clients and two devices, each client with a near device for short and the other's for long tensors."""
    machines = ["gpu0", "gpu1", "dev0", "dev1"]

    def cell(case, value, unit, **key):
        made = {"case": case, "unit": unit, "p50": value, "min": value, "max": value, "p99": value, "n": 0, "spread": 0,
                "status": "published", "reason": "made for COARSE figure 10", "transport": "host", **key}
        return made if unit == "seconds" else {**made, "bytes_convention": "payload"}

    cells = [cell("port_bandwidth", 1e9, "bytes_per_second", **{"from": m}) for m in machines]
    for client in (0, 1):
        for device in (0, 1):
            pair = {"from": f"gpu{client}", "to": f"dev{device}", "direction": "one_way"}
            near = client == device
            cells += [cell("pair_latency", 1e-5 if near else 1e-3, "seconds", bytes=8, **pair),
                      cell("pair_bandwidth", 5e7 if near else 5e8, "bytes_per_second", **pair)]
    documents = {
        "profile": {"schema": "reckon/profile", "schema_version": 1, "name": "figure10",
                    "source": "made for COARSE figure 10", "context": {}, "fits": [], "topology": {"objects": []},
                    "machines": [{"id": m, "name": m, "count": 1, "cores": 2} for m in machines], "cells": cells},
        "roles": {"schema": "reckon/roles", "schema_version": 1, "name": "two pairs",
                  "groups": [{"machine": m, "count": 1, "worker": m.startswith("gpu"), "server": m.startswith("dev"),
                              "lanes": 1} for m in machines]},
        "workload": {"schema": "reckon/workload", "schema_version": 1, "name": "figure10", "dtype": "fp32",
                     "tensors": [{"name": "short", "elements": 5000}, {"name": "long", "elements": 25000}]}}
    for name, document in documents.items():
        (folder / f"{name}.json").write_text(json.dumps(document))


def coarse_queues(arguments, folder):
    """Runs on this machine alone: what deadlocks does so on any."""
    del arguments
    if not RECKON.exists():
        die("there is no release build; scripts/quickstart makes it", 3)
    figure10(folder)
    rows = []
    for queues in ("fcfs", "client"):
        path = folder / f"{queues}.json"
        call(RECKON, "plan", "-p", folder / "profile.json", "-r", folder / "roles.json", "-m", folder / "workload.json",
             "--strategy", "coarse", "--proxy-bytes", "all", "--queues", queues, "-o", path)
        for what, more in (("proof", ["--check"]), ("run", ["--iterations", 50, "--tolerance", "100000%"] +
                                                     (["--unchecked", "--limit", "3s"] if queues == "fcfs" else []))):
            done = subprocess.run([str(a) for a in (RECKON, "run", path, *more)], text=True, capture_output=True, timeout=60)
            lines = (done.stderr if done.returncode else done.stdout).strip().splitlines()
            said = next((l for l in lines if l.startswith(("reckon: error", "verified"))), lines[-1] if lines else "")
            rows.append({"queues": queues, "what": what, "status": done.returncode, "says": said})
    good = [r["status"] for r in rows] == [4, 4, 0, 0] or [r["status"] for r in rows] == [2, 4, 0, 0]
    lines = ["# COARSE III-F, figure 10: queues", "",
             "Two clients, two devices, two tensors that go to different devices; to repeat: scripts/reproduce coarse-queues", "",
             table(("queues", "what", "exit status", "says"), [(r["queues"], r["what"], r["status"], r["says"]) for r in rows])]
    finish(folder, "coarse-queues", lines, rows)
    if not good:
        die("that is not what section III-F says", 4)


# ---------------------------------------------------------------- IV-A: directions of the rings

def coarse_rings(arguments, folder):
    build(False)
    jobs = [(devices, directions) for devices in (DEVICES, 3, 2) for directions in (1, 2)]
    with Lab(WORKERS, DEVICES, [arguments.rate]) as lab:
        profile = profile_of(arguments, lab, folder)

        def one(job):
            devices, directions = job
            path, document = plan(folder, profile, MODEL, WORKERS if devices != 3 else 3, devices, "coarse",
                                  "--proxy-bytes", "all", "--ring-directions", directions)
            return document, measure(lab, folder, path, (WORKERS if devices != 3 else 3) + devices)

        documents, seconds = rounds_of(jobs, arguments.rounds, one)
    rows = [{"devices": d, "directions": n, "predicted": documents[d, n]["prediction"]["mid_seconds"],
             "measured": statistics.median(seconds[d, n]), "samples": seconds[d, n]} for d, n in jobs]
    by = {(r["devices"], r["directions"]): r for r in rows}
    lines = ["# COARSE IV-A: rings in opposite directions", "",
             f"{MODEL}, all through the proxies, links of {arguments.rate}; medians of {2 * arguments.rounds} iterations; to "
             "repeat: scripts/reproduce coarse-rings", "",
             table(("devices", "one direction s", "two s", "predicted gain", "measured gain"),
                   [(d, f"{by[d, 1]['measured']:.3f}", f"{by[d, 2]['measured']:.3f}",
                     f"{by[d, 1]['predicted'] / by[d, 2]['predicted']:.3f}",
                     f"{by[d, 1]['measured'] / by[d, 2]['measured']:.3f}") for d in (DEVICES, 3, 2)])]
    finish(folder, "coarse-rings", lines, rows)


EXPERIMENTS = {"coarse-m": coarse_m, "coarse-baselines": coarse_baselines, "coarse-queues": coarse_queues,
               "coarse-rings": coarse_rings}
