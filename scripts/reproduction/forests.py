# SPDX-License-Identifier: Apache-2.0
"""Mixes of trees inside machines and over several: bound, named schemes, optimum, certificate, play, simulation."""

import dataclasses
import itertools
import json
import os
import random
import re
import signal
import statistics
import subprocess

from reproduction.computed import DIFFERS, need_build
from reproduction.lab import RECKON, die
from reproduction.networks import (DGX1, DGX2_GPUS, DGX2_NVLINKS, GRID_LINK, MESH, MI250, NIC, NVLINK, PCIE4, TORUS, XGMI, changed,
                                   counted, gpus_in, grid_links, joined, machine, published, renamed, shipped, write)
from reproduction.pages import Job, Page, grouped, make, number

MODELS = ("bert-large", "resnet50")
PLAN_LIMIT, SIMULATION_LIMIT = 120, 60  # seconds
NO_NAMED = ("optimum", "mix", "inside_optimum", "inside_mix")  # candidates that are not schemes by themselves
SEED = 1
INSIDE = ("byteps-pcie", "byteps-nvlink")
CLUSTERS = ("h100-cluster", "a100-cluster")
MACHINES = (1, 2, 4, 8, 16)
MOST_CHANGED = 4  # machines: with rates changed none is like another, and more take long to plan for
WITH_SERVERS = ("a100-cluster", 4, (1, 2, 4))
MIXED = (("a100-cluster", 2), ("h100-cluster", 2))
BYTEPS_MACHINES, BYTEPS_SERVERS = 4, (0, 1, 2, 4)


class Networks:
    """What is planned on, in the order of the page: (name, profile, options of the plan, GPUs)."""

    def __init__(self, folder, seed):
        self._folder, self._seed, self.all = folder, seed, []

    def _add(self, text, profile, options, gpus):
        self.all.append((text, profile, options, gpus))

    def inside(self, text, file, document=None):
        """One machine, shipped or written here, as it is and with its rates changed."""
        as_it_is = document or shipped(file)
        draw = random.Random(f"{file} {self._seed}")
        self._add(text, write(self._folder, file, document) if document else file, ("--inside",), gpus_in(as_it_is))
        self._add(f"{text}, rates changed", write(self._folder, f"{file}-changed", changed(as_it_is, draw)),
                  ("--inside",), gpus_in(as_it_is))

    def cluster(self, text, file, members, servers=0, cpus=(), alike=None):
        """Machines [(document, count)] of which the last `servers` only sum, or CPU machines do; `alike`: the shipped
        profile or the document that says the same with groups of equal machines. Rates are changed from one machine to
        the next, alike for any number of servers."""
        machines = sum(count for _, count in members) - servers
        servers += len(cpus)
        options = ("--places", "gpu", "--workers", machines, *(("--servers", servers) if servers else ()))
        text += f" and {several(servers, 'server')}" if servers else ""
        own = joined(file, members, cpus)
        gpus = gpus_in(own, machines)
        file += f"-{machines}-{servers}"
        self._add(text, alike if isinstance(alike, str) else write(self._folder, file, alike or own), options, gpus)
        if machines <= MOST_CHANGED:
            draw = random.Random(f"{own['name']} {self._seed}")
            self._add(f"{text}, rates changed",
                      write(self._folder, f"{file}-changed", joined(file, members, cpus, draw)), options, gpus)


def several(count, what):
    return f"{count} {what}{'s' if count > 1 else ''}"


def cpu_machines(count):
    """BytePS's machines without GPUs: [(group, cells)]."""
    sums = [cell for cell in shipped("byteps-cluster")["cells"]
            if cell["case"] == "reduce_sum" and cell["from"] == "cpu-machine"]
    return [({"id": f"cpu{i}", "name": "CPU only, 100 GbE", "count": 1, "cores": 32},
             [published("port_bandwidth", NIC, **{"from": f"cpu{i}"}), *renamed(sums, "cpu-machine", f"cpu{i}")])
            for i in range(count)]


def networks(folder, seed):
    found = Networks(folder, seed)
    for name in INSIDE:
        found.inside(name, name)
    for name, machines in itertools.product(CLUSTERS, MACHINES):
        found.cluster(f"{name}, {several(machines, 'machine')}", name, [(shipped(name), machines)], alike=name)
    name, machines, servers = WITH_SERVERS
    for k in servers:
        found.cluster(f"{name}, {several(machines, 'machine')}", name, [(shipped(name), machines + k)], k, alike=name)
    found.cluster(f"{' and '.join(f'{count} {name}' for name, count in MIXED)} machines", "mixed",
                  [(shipped(name), count) for name, count in MIXED])
    found.cluster(f"{' and '.join(INSIDE)}, one each", "byteps-both", [(shipped(name), 1) for name in INSIDE])
    for k in BYTEPS_SERVERS:
        found.cluster(f"byteps-pcie, {several(BYTEPS_MACHINES, 'machine')}", "byteps-pcie",
                      [(shipped("byteps-pcie"), BYTEPS_MACHINES)], 0, cpu_machines(k))
    dgx1 = {pair: count * NVLINK for pair, count in DGX1.items()}
    ndv2 = machine("ndv2", 8, dgx1, 2, nics=(0,))
    found.cluster("NDv2, 2 machines", "ndv2", [(ndv2, 2)], alike=counted(ndv2, "ndv2", 2))
    found.inside("DGX-1", "dgx1", machine("dgx1", 8, dgx1, 2))
    found.inside("DGX-2", "dgx2", machine("dgx2", DGX2_GPUS, {}, 2, switched=DGX2_NVLINKS * NVLINK))
    found.inside("MI250, 16 dies", "mi250", machine(
        "mi250", 16, {pair: count * XGMI for pair, count in MI250.items()}, 4, nodes=4, pcie=PCIE4,
        gpu_pcie={**PCIE4, "width": 8}))
    found.inside("torus 3x3x3", "torus", machine("torus", 27, dict.fromkeys(grid_links(TORUS, True), GRID_LINK), 1))
    found.inside("mesh 5x5", "mesh", machine("mesh", 25, dict.fromkeys(grid_links(MESH, False), GRID_LINK), 1))
    return found.all


def limited(limit, *command):
    """Exit status (None: not ended within the limit), standard error."""
    with subprocess.Popen([str(a) for a in command], text=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          start_new_session=True) as process:
        try:
            _, said = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # with what it started
            process.communicate()
            return None, ""
        return process.returncode, said


def best_named(document):
    """The fastest scheme by itself."""
    named = [c for c in document["candidates"] if c["strategy"] not in NO_NAMED]
    return min(named, key=lambda c: c["prediction"]["mid_seconds"])["strategy"] if named else ""


def simulated(plan, profile, own):
    """Seconds; None where it takes too long or there is no simulator. Every part is played by itself."""
    report = own / "report.json"
    status, said = limited(SIMULATION_LIMIT, RECKON, "simulate", plan, "--profile", profile, "--coarsen", "none", "-o", report)
    if status in DIFFERS:
        return json.loads(report.read_text())["p50_seconds"]
    if status is not None and status not in (2, 3):
        die(f"reckon simulate {plan}\n{said}exit code {status}", 4)
    return None


def one(own, model, profile, options):
    path = own / "plan.json"
    status, said = limited(PLAN_LIMIT, RECKON, "plan", "--profile", profile, "--workload", model, *options, "-o", path)
    if status != 0:
        die(f"{model} on {profile}: " + (f"over {PLAN_LIMIT} s" if status is None else f"{said}exit code {status}"), 4)
    document = json.loads(path.read_text())
    found = {q["name"]: 1e3 * q["value"] for q in document["quantities"] if q["name"].endswith("_seconds")}
    of_strategy = document["prediction"]
    return {"bound_ms": found.get("lower_bound_seconds", 1e3 * of_strategy["bound_seconds"]), "best_named": best_named(document),
            "best_named_ms": found.get("single_seconds"), "optimum_ms": found.get("optimum_seconds"),
            "certificate_ms": found.get("certificate_seconds"), "chosen": document["strategy"],
            "predicted_ms": 1e3 * of_strategy["mid_seconds"], "simulated_ms": milli(simulated(path, profile, own))}


def milli(seconds):
    return None if seconds is None else 1e3 * seconds


def jobs(folder, seed=SEED):
    need_build()
    return {"": [Job({"model": model, "network": name, "gpus": gpus},
                     lambda own, m=model, p=profile, o=options: one(own, m, p, o))
                 for model, (name, profile, options, gpus) in itertools.product(MODELS, networks(folder, seed))]}


def over(value, base):
    return 100 * (value / base - 1)


def spread(values, form):
    return f"{form.format(statistics.median(values))}, {form.format(max(values))}" if values else "-"


def summary(tables):
    rows = []
    for row in tables[""]:
        row["rates"] = "changed" if "rates changed" in row["network"] else "as given"
        row["machines"] = "several" if re.search("[2-9] machines|16 machines|one each|server|and 2", row["network"]) else "one"
    for key, some in grouped(tables[""], "model", "machines", "rates").items():
        gains = [number(r, "best_named_ms") / number(r, "optimum_ms") for r in some if r["best_named_ms"] and r["optimum_ms"]]
        apart = [over(number(r, "optimum_ms"), max(number(r, "certificate_ms"), number(r, "bound_ms"))) for r in some
                 if r["certificate_ms"] and r["optimum_ms"]]
        parts = [over(number(r, "predicted_ms"), number(r, "optimum_ms")) for r in some if r["optimum_ms"]]
        played = [over(number(r, "simulated_ms"), number(r, "predicted_ms")) for r in some if r["simulated_ms"]]
        rows.append((*key, len(some), spread(gains, "{:.2f}"),
                     f"{sum(a <= 0.1 for a in apart)} of {len(apart)}", spread(parts, "{:.1f} %"),
                     f"{min(played):+.1f} to {max(played):+.1f} %"))
    return ("model", "machines", "rates", "networks", "best named scheme / optimum: median, greatest",
            "optimum within 0.1 % of the certificate", "predicted over optimum: median, greatest", "simulated beside predicted"), rows


PAGE = Page("forests", ("",), summary, jobs, sparse=2, limited=("simulated_ms",))


def forests(arguments, folder):
    make(dataclasses.replace(PAGE, jobs=lambda place: jobs(place, arguments.seed)), folder)


EXPERIMENTS = {"forests": forests}
