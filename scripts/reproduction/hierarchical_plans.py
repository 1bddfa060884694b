# SPDX-License-Identifier: Apache-2.0
"""Whole clusters: several ranks on each machine, which share its memory and its port, and machines that only sum. Hierarchical
plans and flat ones, OpenMPI's and Gloo's all-reduce on the same links, collectives, racks, unequal machines: planned, run by two
transports at once, every sum checked."""

import json
import os
import re
import statistics
import subprocess

from reproduction.lab import (NETLAB, OPENMPI_RING, RECKON, TRANSPORT, Lab, build, call, die, measure, measure_gloo,
                              measure_openmpi, own_bound, parse_bytes, percent, say, workload)
from reproduction.pages import Page, number, publish

PLACES = 4
# OpenMPI's ways to do it; the fastest stands in the table. Its own choice is "as it comes".
OPENMPI = {
    "as it comes": (),
    "tuned, ring": OPENMPI_RING,
    "tuned, segmented ring": ("--mca", "coll_tuned_use_dynamic_rules", "1", "--mca", "coll_tuned_allreduce_algorithm", "5"),
    "tuned, Rabenseifner": ("--mca", "coll_tuned_use_dynamic_rules", "1", "--mca", "coll_tuned_allreduce_algorithm", "6"),
    "han": ("--mca", "coll_han_priority", "100"),
}


class Cluster(Lab):
    """Machines of `places` ranks (a number, or one of each worker), and servers of one."""

    def __init__(self, workers, servers, rates, places, more=()):
        super().__init__(workers, servers, rates, more=("--places", places, *more))
        numbers = [int(p) for p in str(places).split(",")]
        self.places = str(places)
        self.ranks = [numbers[min(i, len(numbers) - 1)] for i in range(workers)]

    def probe(self, folder):
        profile = folder / "cluster.json"
        say(f"probing {self.workers + self.servers} machines of {self.places} ranks")
        self.run(sum(self.ranks) + self.servers, RECKON, "probe", "--cluster", "--transport", TRANSPORT, "-o", profile, "--force")
        return profile

    def plan(self, folder, profile, model, servers, *more):
        path = folder / "plan.json"
        call(RECKON, "plan", "--profile", profile, "--workload", model, "--workers", self.workers, "--servers", servers,
             "--places", self.places, "--transport", TRANSPORT, "-o", path, *more)
        return path, json.loads(path.read_text())

    def measure(self, folder, path, document, iterations=3):
        """Machines that the plan leaves out are the last ones."""
        return measure(self, folder, path, len(document["ranks"]), iterations)


def row_of(name, document, seconds, link_seconds):
    """`link_seconds`: of the whole gradient over one port."""
    bound, predicted, measured = own_bound(document), document["prediction"]["mid_seconds"], statistics.median(seconds)
    return {"name": name, "strategy": document["strategy"], "bound": bound, "predicted": predicted, "measured": measured,
            "samples": seconds, "error": measured / predicted - 1, "ports": bound / link_seconds}


def port_of(profile):
    cells = [c for c in json.loads(profile.read_text())["cells"] if c["case"] == "port_bandwidth" and "p50" in c]
    return max(c["p50"] for c in cells)


def first_part(arguments, folder, model, model_bytes, present):
    """All-reduce of 4 x 4 workers: hierarchical and flat, and other people's, by turns."""
    points = [int(k) for k in arguments.points.split(",")] if arguments.points else [0, 1, 2, 4]
    samples, others = {}, {}
    with Cluster(4, max(points), [arguments.rate], PLACES) as lab:
        profile = arguments.profile or lab.probe(folder)
        link = model_bytes / port_of(profile)
        jobs = [(f"hierarchical, {k} servers", k, ()) for k in points]
        jobs += [("flat ring", 0, ("--strategy", "ring")), ("parameter servers on the workers", 0, ("--strategy", "ps_colocated")),
                 (f"parameter servers on {max(points)} machines", max(points), ("--strategy", "ps_noncolocated"))]
        for number in range(arguments.rounds):
            for name, servers, more in jobs:
                slow = "parameter" in name
                if slow and number > 0:
                    continue
                path, document = lab.plan(folder, profile, model, servers, *more)
                seconds = lab.measure(folder, path, document, 1 if slow else 3)
                samples.setdefault(name, (document, []))[1].extend(seconds)
                say(f"round {number + 1}: {name} ({document['strategy']}): {statistics.median(seconds):.3f} s, "
                    f"predicted {document['prediction']['mid_seconds']:.3f} s")
            if "gloo" in present:
                others.setdefault("Gloo", []).extend(measure_gloo(lab, folder, 4 * PLACES, model_bytes // 4, 3))
                say(f"round {number + 1}: Gloo: {statistics.median(others['Gloo']):.3f} s")
            for label, settings in OPENMPI.items() if "openmpi" in present else ():
                label = f"OpenMPI, {label}"
                if number > 0 and label in others and statistics.median(others[label]) > 2 * min(
                        statistics.median(v) for n, v in others.items() if n.startswith("OpenMPI")):
                    continue
                others.setdefault(label, []).extend(
                    measure_openmpi(folder, 4, model_bytes // 4, 3 if number else 1, PLACES, settings))
                say(f"round {number + 1}: {label}: {statistics.median(others[label]):.3f} s")
    rows = [row_of(name, document, seconds, link) for name, (document, seconds) in samples.items()]
    return rows, {name: statistics.median(seconds) for name, seconds in others.items()}


def counted(devices):
    return f"{devices} memory device" + ("" if devices == 1 else "s")


def second_part(arguments, folder, model, model_bytes):
    """Every other scheme once: collectives, one slow port, unequal machines, racks."""
    rows = []

    def one(lab, profile, link, name, servers, *more):
        path, document = lab.plan(folder, profile, model, servers, *more)
        rows.append(row_of(name, document, lab.measure(folder, path, document), link))
        say(f"{name} ({document['strategy']}): {rows[-1]['measured']:.3f} s, {percent(rows[-1]['error'])}")

    with Cluster(4, 2, [arguments.rate], PLACES) as lab:
        profile = lab.probe(folder)
        link = model_bytes / port_of(profile)
        for collective in ("reduce-scatter", "all-gather", "broadcast", "reduce"):
            one(lab, profile, link, collective, 0, "--collective", collective)
        for scheme in ("hierarchical_ring", "hierarchical_servers", "optimum", "byteps_split"):
            one(lab, profile, link, scheme, 2, "--strategy", scheme)
        for scheme, devices in (("coarse", 1), ("coarse", 2), ("dense", 2)):
            one(lab, profile, link, f"{scheme}, {PLACES - devices} workers and {counted(devices)} in each machine", 0, "--strategy", scheme,
                "--devices", devices)
    number, unit = re.fullmatch(r"([\d.]+)(\w+)", arguments.rate).groups()
    half = f"{float(number) / 2:g}{unit}"
    with Cluster(3, 1, [arguments.rate, half, arguments.rate, arguments.rate], "2,4,4") as lab:
        profile = lab.probe(folder)
        one(lab, profile, model_bytes / port_of(profile), "2, 4 and 4 ranks, one port at half its rate", 0)
        one(lab, profile, model_bytes / port_of(profile), "the same with 1 server", 1)
    with Cluster(4, 2, [arguments.rate], PLACES, ("--racks", "2", "--uplink", arguments.rate)) as lab:
        profile = lab.probe(folder)
        one(lab, profile, model_bytes / port_of(profile), "two racks, thin uplinks", 0)
        one(lab, profile, model_bytes / port_of(profile), "two racks with a server each", 2)
    return rows


def faults(folder, model):
    """What becomes of a job when a rank dies inside a machine, and when a machine vanishes."""
    rows = []
    with Cluster(4, 2, ["200mbit"], PLACES) as lab:
        profile = lab.probe(folder)
        path, _ = lab.plan(folder, profile, model, 2)
        for name, act in (("rank 6 on w1 is killed", "kill"), ("w2 is cut off the network", "cut")):
            job = subprocess.Popen([str(a) for a in (NETLAB, "run", "--time", "120", "--", RECKON, "run", path, "--iterations",
                                                     "50", "--peer-timeout", "5s")], text=True, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, env=dict(os.environ, NETLAB=os.environ.get("NETLAB", "reproduce"),
                                                                    NETLAB_QUIET="1"))
            try:
                job.wait(timeout=25)
                die(f"the job ended before anything was done to it: {job.stderr.read()}", 4)
            except subprocess.TimeoutExpired:
                pass
            if act == "kill":
                pids = call("ip", "netns", "pids", f"{os.environ.get('NETLAB', 'reproduce')}-w1").split()
                ranks = [p for p in pids if open(f"/proc/{p}/comm").read().strip() == "reckon"]
                victim = next(p for p in ranks if b"RANK=6\0" in open(f"/proc/{p}/environ", "rb").read())
                call("kill", "-KILL", victim)
            else:
                call(NETLAB, "cut", "w2")
            _, said = job.communicate(timeout=120)
            errors = [line for line in said.splitlines() if "error" in line]
            rows.append((name, job.returncode, errors[0].removeprefix("reckon: error: ") if errors else said.strip()))
            say(f"{name}: exit code {job.returncode}: {rows[-1][2]}")
            if act == "cut":
                call(NETLAB, "restore", "w2")
    return rows


def cells(row, part):
    return {"part": part, "what": row["name"], "strategy": row["strategy"], "bound_gradients": row["ports"], "bound_s": row["bound"],
            "predicted_s": row["predicted"], "measured_s": row["measured"], "samples_s": " ".join(f"{s:.3f}" for s in row["samples"])}


def summary(tables):
    return ("plan", "strategy", "bound, M/B", "predicted, s", "measured, s", "error"), [
        (r["what"], r["strategy"], f"{number(r, 'bound_gradients'):.3f}", f"{number(r, 'predicted_s'):.3f}", f"{number(r, 'measured_s'):.3f}",
         percent(number(r, "measured_s") / number(r, "predicted_s") - 1)) for r in tables[""] if r["part"] == ALL_REDUCE]


ALL_REDUCE = "all-reduce"
PAGE = Page("hierarchical-plans", ("", "others", "faults"), summary)


def hierarchical_plans(arguments, folder):
    model_bytes = parse_bytes(arguments.bytes)
    present = build(arguments.baselines != "none")
    model = workload(folder, model_bytes)
    rows, others = first_part(arguments, folder, model, model_bytes, present)
    more = second_part(arguments, folder, model, model_bytes)
    version = call("mpirun", "--version").splitlines()[0] if "openmpi" in present else ""
    publish(PAGE, {
        "": [*(cells(r, ALL_REDUCE) for r in rows), *(cells(r, "other schemes and machines") for r in more)],
        **({"others": [{"all_reduce": name, "measured_s": seconds, **({"version": version} if name.startswith("OpenMPI") else {})}
                       for name, seconds in sorted(others.items(), key=lambda item: item[1])]} if others else {}),
        "faults": [{"fault": name, "exit_status": status, "says": said} for name, status, said in faults(folder, model)]}, folder)


EXPERIMENTS = {"hierarchical-plans": hierarchical_plans}
