# SPDX-License-Identifier: Apache-2.0
"""Mixes of trees inside machines and over several: bound, named schemes, optimum, certificate, play, simulation."""

import concurrent.futures
import itertools
import json
import os
import random
import signal
import subprocess
import time

from reproduction.computed import DIFFERS, finish, milliseconds, need_build
from reproduction.lab import RECKON, die, say, size, table
from reproduction.networks import (CHANGE, DGX1, DGX2_GPUS, DGX2_NVLINKS, GRID_LINK, MEMORY, MESH, MI250, NIC, NVLINK,
                                   PCIE4, SOCKETS, TORUS, XGMI, changed, counted, gpus_in, grid_links, joined, machine,
                                   published, renamed, shipped, write)

MODELS = ("bert-large", "resnet50")
PLAN_LIMIT, SIMULATION_LIMIT = 120, 60  # seconds
NO_NAMED = ("optimum", "mix", "inside_optimum", "inside_mix")  # candidates that are not schemes by themselves
SEED = 1
FAR_OPEN = 10  # beyond this the certificate says nothing, and the page says only that
INSIDE = ("byteps-pcie", "byteps-nvlink")
CLUSTERS = ("h100-cluster", "a100-cluster")
MACHINES = (1, 2, 4, 8, 16)
MOST_CHANGED = 4  # machines: with rates changed none is like another, and more take long to plan for
WITH_SERVERS = ("a100-cluster", 4, (1, 2, 4))
MIXED = (("a100-cluster", 2), ("h100-cluster", 2))
BYTEPS_MACHINES, BYTEPS_SERVERS = 4, (0, 1, 2, 4)


# network: where its rates are from
PROVENANCE = {
    ", ".join((*INSIDE, *CLUSTERS)): "the shipped profiles: [profiles/README.md](../../profiles/README.md)",
    "byteps-pcie and byteps-nvlink in clusters":
        "these profiles with their NICs of 100 Gb/s; a server is a CPU machine of the profile `byteps-cluster` with "
        f"its sums and a port of {NIC / 1e9:g} GB/s, the NIC's rate without protocols",
    "DGX-1":
        f"eight V100 in NVIDIA's hybrid cube mesh, {NVLINK / 1e9:g} GB/s each way a NVLink, some pairs with two; "
        "assumed: PCIe 3.0 x16, two GPUs a switch, and the host below",
    "NDv2":
        "eight V100 with NVLink and one NIC of 100 Gb/s (Microsoft, NDv2 series); assumed: the NVLinks, switches and "
        "host are DGX-1's, the NIC is at the switch of GPUs 0 and 1",
    "DGX-2":
        f"16 V100, each with {DGX2_NVLINKS} NVLinks of {NVLINK / 1e9:g} GB/s each way to NVSwitches, which are taken "
        "as one; assumed: PCIe 3.0 x16, two GPUs a switch, DGX-1's host",
    "MI250":
        "which dies xGMI joins, and that eight of 16 PCIe lanes reach a die: RCCL's model of such a machine "
        f"(ROCm/rccl, `tools/topo_expl/models/topo_16p1h.xml`); {XGMI / 1e9:g} GB/s each way a link (AMD, MI250 "
        "microarchitecture); assumed: one PCIe 4.0 x16 switch a NUMA node, and between any two of the four NUMA "
        "nodes and in their memory the rates of DGX-1's host",
    "torus, mesh":
        f"assumed: a link carries {size(GRID_LINK)}/s each way; a PCIe 3.0 x16 switch for each GPU; DGX-1's host",
    "DGX-1's host":
        f"assumed: {SOCKETS / 1e9:g} GB/s each way between two processors (two QPI links), memory that reads and "
        f"writes {MEMORY / 1e9:g} GB/s each (half of two processors' four channels DDR4-2400)"}


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
    """Exit status (None: not ended within the limit), seconds, standard error."""
    start = time.monotonic()
    with subprocess.Popen([str(a) for a in command], text=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          start_new_session=True) as process:
        try:
            _, said = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # with what it started
            process.communicate()
            return None, time.monotonic() - start, ""
        return process.returncode, time.monotonic() - start, said


def best_named(document):
    """The fastest scheme by itself."""
    named = [c for c in document["candidates"] if c["strategy"] not in NO_NAMED]
    return min(named, key=lambda c: c["prediction"]["mid_seconds"])["strategy"] if named else ""


def simulated(plan, profile):
    """Seconds; None and why, where it takes too long or there is no simulator. Every part is played by itself."""
    report = plan.with_name(f"report-{plan.name}")
    status, _, said = limited(SIMULATION_LIMIT, RECKON, "simulate", plan, "--profile", profile, "--coarsen",
                              "none", "-o", report)
    if status in DIFFERS:
        seconds = json.loads(report.read_text())["p50_seconds"]
        report.unlink()
        plan.unlink()
        return seconds, ""
    if status is None:
        return None, f"over {SIMULATION_LIMIT} s"
    if status in (2, 3):
        return None, said.strip()
    die(f"reckon simulate {plan}\n{said}exit code {status}", 4)


def one(path, model, network):
    """A row without the simulation of its plan, which is left at `path`."""
    name, profile, options, gpus = network
    path.unlink(missing_ok=True)
    row = {"model": model, "network": name, "gpus": gpus, "options": " ".join(map(str, options))}
    status, seconds, said = limited(PLAN_LIMIT, RECKON, "plan", "--profile", profile, "--workload", model, *options,
                                    "-o", path)
    row["planning_seconds"] = seconds
    if status is None:
        return {**row, "failed": f"over {PLAN_LIMIT} s"}
    if status != 0:
        say(f"reproduce: {model}, {name}: exit code {status}: {said.strip()}")
        return {**row, "failed": f"exit code {status}", "why": said.strip()}
    document = json.loads(path.read_text())
    quantities = {q["name"]: q["value"] for q in document["quantities"]}
    for key in ("lower_bound", "single", "mix", "optimum", "certificate", "chosen"):
        row[key] = quantities.get(f"{key}_seconds")
    if row["lower_bound"] is None:
        row["lower_bound"] = document["prediction"]["bound_seconds"]
    row |= {"bytes": document["gradient_bytes"], "named": best_named(document), "strategy": document["strategy"],
            "played": document["prediction"]["mid_seconds"]}
    return row


def over(value, base):
    """How far a time is over another."""
    if value is None or base is None:
        return "-"
    if base <= 0 or value / base - 1 > FAR_OPEN:
        return f"over {100 * FAR_OPEN} %"
    percent = round(100 * (value / base - 1), 2)
    return f"{percent if percent else 0:.2f} %"  # no -0.00


def cells(row):
    first = (row["network"], row["gpus"])
    if "failed" in row:
        return (*first, *["-"] * 8, row["failed"], "-")
    return (*first, milliseconds(row["lower_bound"]), row["named"], milliseconds(row["single"]),
            milliseconds(row["optimum"]), over(row["optimum"], max(row["certificate"], row["lower_bound"])),
            milliseconds(row["played"]), over(row["played"], row["optimum"]), milliseconds(row["simulated"]),
            row["strategy"], f"{row['planning_seconds']:.1f}")


HEADERS = ("network", "GPUs", "bound", "best named scheme", "its time", "optimum", "left open", "played",
           "over optimum", "simulated", "chosen", "planning s")


def rows_of(folder, found):
    """Each plan is simulated while the next is made."""
    rows, waiting = [], []
    with concurrent.futures.ThreadPoolExecutor(max_workers=1) as simulator:
        for number, (model, network) in enumerate(itertools.product(MODELS, found), 1):
            path = folder / f"plan-{number}.json"
            row = one(path, model, network)
            rows.append(row)
            say(f"[{number}/{len(MODELS) * len(found)}] {model}, {network[0]}: " + (
                row["failed"] if "failed" in row else f"optimum {milliseconds(row['optimum'])} ms, played "
                f"{milliseconds(row['played'])} ms, planned in {row['planning_seconds']:.1f} s"))
            if "failed" not in row:
                waiting.append((row, simulator.submit(simulated, path, network[1])))
        for row, simulation in waiting:
            row["simulated"], row["not_simulated"] = simulation.result()
            if row["not_simulated"]:
                say(f"reproduce: {row['model']}, {row['network']}: not simulated: {row['not_simulated']}")
    return rows


def page(rows, seed):
    lines = ["# Mixes of trees", "",
             "`scripts/reproduce all --only forests` makes this page (`scripts/reproduce forests` leaves it in "
             "`results/`): each row is one `reckon plan` and one `reckon simulate` of that plan. Times are in ms. "
             "Nothing is measured but the time of the planning.", "",
             "No plan can beat `bound` (equation 27). `optimum` is the best mix of trees that the planner found; by "
             "the certificate (the planner's dual values) or the bound, whichever is more, it is at most `left open` "
             "over the best mix there is. The plan predicts `played` for the strategy that it chose, with parts of a "
             "finite size. `reckon simulate` plays every part of the same plan in `simulated`; `-` stands there if that takes "
             f"over {SIMULATION_LIMIT} s or no simulator is built.", "",
             "`rates changed` is the same network where the rate of each link, NIC, port and measured copy is up to "
             f"{100 * CHANGE:g} % higher or lower, at random and alike in both directions (seed {seed}; `--seed` "
             "takes another). Each machine has rates of its own then, the same whatever the number of servers; the "
             f"rates of memories and sums stay. Rows with more than {MOST_CHANGED} machines have no such twin.", "",
             "NUMA nodes sum only where no more than twelve places only sum ([cli.md](../cli.md)).", "",
             "## Where the rates are from", "",
             *(f"- **{network}**: {rates}." for network, rates in PROVENANCE.items()), ""]
    for model in MODELS:
        mine = [r for r in rows if r["model"] == model]
        known = next((r["bytes"] for r in mine if "bytes" in r), None)
        lines += [f"## {model}" + (f", {size(known)}" if known else ""), "", table(HEADERS, [cells(r) for r in mine]),
                  ""]
    return lines


def forests(arguments, folder):
    need_build()
    rows = rows_of(folder, networks(folder, arguments.seed))
    finish(folder, "forests", page(rows, arguments.seed), rows)


EXPERIMENTS = {"forests": forests}
