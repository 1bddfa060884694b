# SPDX-License-Identifier: Apache-2.0
"""LogGOPSim plays exported plans: its times beside the predictions."""

import json
import os
import pathlib
import re
import shutil

from reproduction.computed import need_build, one_tensor
from reproduction.lab import RECKON, call, die, percent, say, size
from reproduction.networks import profile_of, published, shipped, write
from reproduction.pages import Page, number, publish
from reproduction.strategy_by_size import LATENCY, TRANSPORT, between_machines

ADDRESS = "https://github.com/spcl/LogGOPSim"
COMMIT = "76451de16546c7ea39651c183cbc532f4a3457c0"  # what the page was made with
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "reckon/LogGOPSim"
TOLERANCE = 0.03
KIB, MIB = 2**10, 2**20
SIZES = (64 * KIB, 256 * KIB, MIB, 4 * MIB, 16 * MIB)
MODELS = ("resnet50", "vgg16")
WORKERS = (4, 8)
RACK = 4        # machines of one of two racks
PORT = 11.25e9  # as of byteps-cluster
EAGER = 2**31 - 1  # -S: a send is over when it is posted, as ours are
MOST_UNITS = 100000  # a nanosecond: L has 31 bits


class Simulator:
    """LogGOPSim and its txt2bin, from a clone (--loggopsim) or the public address, built outside of this tree."""

    def __init__(self, clone):
        for tool in ("gengetopt", "re2c", "g++", "make"):
            if not shutil.which(tool):
                die(f"'{tool}' is missing; scripts/install-packages --reproduce installs it", 3)
        if not clone:
            clone = CACHE
            if not clone.exists():
                say(f"cloning {ADDRESS} into {clone}; --loggopsim FOLDER takes a clone that is there")
                call("git", "clone", "--quiet", ADDRESS, clone)
                call("git", "-C", clone, "checkout", "--quiet", COMMIT)
        self.commit = call("git", "-C", clone, "rev-parse", "HEAD").strip()
        self.folder = clone / "src/LogGOPSim"
        call("make", "-C", self.folder, "CXXFLAGS=-std=c++11 -O2 -w", "CCFLAGS=-O2 -w")

    def seconds(self, goal, folder):
        """What the exported text takes by the parameters in it, and its line of them; None where it has none."""
        text = goal.read_text()
        line = text.split("\n", 3)[2].removeprefix("// ")
        found = {name: float(value) for name, value in re.findall(r"(\w)=(\S+)", line)}
        if "G" not in found:
            return None, line
        units = whole_units(found["G"])
        scaled, binary = folder / "scaled.goal", folder / "scaled.bin"
        scaled.write_text(re.sub(r"calc (\d+)", lambda m: f"calc {int(m[1]) * units}", text))
        call(self.folder / "txt2bin", "-i", scaled, "-o", binary)
        parameters = [word for name in "LogGO" for word in (f"-{name}", round(units * found[name]))]
        said = call(self.folder / "LogGOPSim", "--batchmode", "-f", binary, "-S", EAGER, *parameters)
        end = re.search(r"finishing time at host \d+: (\d+)", said)
        if not end:
            die(f"LogGOPSim {goal}: {said}", 4)
        return 1e-9 * int(end[1]) / units, line


def whole_units(gap):
    """LogGOPSim's parameters are whole numbers: the units of a nanosecond in which G is one, within 0.02 %."""
    units = 1
    while units < MOST_UNITS and abs(round(gap * units) - gap * units) > 2e-4 * gap * units:
        units *= 10
    return units


def one(simulator, folder, group, profile, model, name, *options):
    path = folder / "plan.json"
    call(RECKON, "plan", "--profile", profile, "--workload", model, *options, "-o", path)
    goal = folder / "plan.goal"
    call(RECKON, "export", path, "--format", "goal", "--profile", profile, "-o", goal)
    document = json.loads(path.read_text())
    played, line = simulator.seconds(goal, folder)
    row = {"network": group, "model": name, "strategy": document["strategy"], "options": " ".join(map(str, options)),
           "parts": -(-document["gradient_bytes"] // document["part_bytes"]),
           "predicted": document["prediction"]["mid_seconds"], "played": played, "line": line}
    say(f"{group}, {name}, {row['options']}: " + (percent(played / row["predicted"] - 1) if played else line))
    return row


def with_latency(folder):
    document = shipped("byteps-cluster")
    return write(folder, "byteps-cluster-latency", {
        **document, "cells": document["cells"] + [c for m in document["machines"] for c in between_machines(m["id"])]})


def racks(folder, uplink):
    """Two racks with this uplink each, and who works in them."""
    names = ("a", "b")
    cells = [published("port_bandwidth", PORT, transport=TRANSPORT, **{"from": f"machines-{n}"}) for n in names]
    cells += [published("uplink_bandwidth", uplink, transport=TRANSPORT, **{"from": f"rack-{n}"}) for n in names]
    machines = [{"id": f"machines-{n}", "name": "90 Gb/s", "count": RACK, "cores": 32, "rack": f"rack-{n}"}
                for n in names]
    roles = folder / "roles.json"
    roles.write_text(json.dumps({
        "schema": "reckon/roles", "schema_version": 1, "name": "two racks",
        "groups": [{"machine": m["id"], "count": RACK, "worker": True, "server": True} for m in machines]}))
    return write(folder, f"racks-{uplink:g}", profile_of("racks", machines, cells, [], [])), roles


def plans(n):
    """Options of the plans of n workers."""
    yield from ((s, 0) for s in ("ring", "ps_colocated", "optimum"))
    yield "byteps_split", n // 2
    yield "ps_noncolocated", n


def rows_of(simulator, folder):
    models = [(path.rename(folder / f"{name.replace(' ', '')}.json"), name) for path, name in (
        (one_tensor(folder, b), size(b)) for b in SIZES)]
    models += [(name, name) for name in MODELS]
    several = dict((name, path) for path, name in models)
    middle = size(16 * MIB)

    def row(*arguments):
        return one(simulator, folder, *arguments)

    for path, name in models:
        for n in WORKERS if name != "vgg16" else WORKERS[:1]:
            for strategy, servers in plans(n):
                yield row("byteps-cluster", "byteps-cluster", path, name, "--workers", n, "--servers", servers,
                          "--strategy", strategy)
    for strategy, servers in plans(4):
        yield row("byteps-cluster", "byteps-cluster", several[middle], middle, "--workers", 4, "--servers", servers,
                  "--strategy", strategy, "--lanes", 1)
    yield row("byteps-cluster", "byteps-cluster", "resnet50", "resnet50", "--workers", 4, "--servers", 0,
              "--strategy", "ring", "--backward", "30ms")
    late = with_latency(folder)
    for strategy, servers in plans(8):
        yield row(f"byteps-cluster and {1e6 * LATENCY:g} us", late, several[middle], middle, "--workers", 8,
                  "--servers", servers, "--strategy", strategy)
    for factor in (RACK, 1):
        profile, roles = racks(folder, factor * PORT)
        yield row(f"two racks, uplinks of {factor} ports" if factor > 1 else "two racks, uplinks of a port", profile,
                  several[middle], middle, "--roles", roles, "--strategy", "rack_hierarchical")
    for cluster in ("h100-cluster", "a100-cluster"):
        for machines, strategy in ((1, "ring"), (1, "reduce_broadcast_gpu0"), (1, "mix"), (2, "hierarchical_ring"),
                                   (2, "mix")):
            yield row(cluster, cluster, several[middle], middle, "--places", "gpu", "--workers", machines, "--servers",
                      0, "--strategy", strategy)


def shorter(options):
    return re.sub(r" ?--(strategy|roles) \S+", "", options).replace("--servers 0", "").strip().replace("  ", " ")


def summary(tables):
    played = [r for r in tables[""] if r["loggopsim_ms"]]
    rows = []
    for name in dict.fromkeys(r["gradient"] for r in played):
        some = [r for r in played if r["gradient"] == name]
        apart = [100 * (number(r, "loggopsim_ms") / number(r, "predicted_ms") - 1) for r in some]
        rows.append((name, len(some), sum(abs(a) <= 100 * TOLERANCE for a in apart), f"{min(apart):+.1f} to {max(apart):+.1f} %"))
    return ("gradient", "plans", f"within {100 * TOLERANCE:.0f} %", "LogGOPSim beside the prediction"), rows


PAGE = Page("loggopsim", ("",), summary)


def loggopsim(arguments, folder):
    need_build()
    simulator = Simulator(arguments.loggopsim)
    publish(PAGE, {"": [
        {"network": r["network"], "gradient": r["model"], "options": shorter(r["options"]), "strategy": r["strategy"], "parts": r["parts"],
         "predicted_ms": 1e3 * r["predicted"], "loggopsim_ms": None if r["played"] is None else 1e3 * r["played"],
         "cannot_have": r["line"].split(": ", 1)[1] if r["played"] is None else ""} for r in rows_of(simulator, folder)]}, folder)
    say(f"LogGOPSim {simulator.commit[:8]}")


EXPERIMENTS = {"loggopsim": loggopsim}
