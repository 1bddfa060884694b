# SPDX-License-Identifier: Apache-2.0
"""COARSE's machines (HPCA 2022, V-A and V-D) at their own rates: DENSE, all-reduce and COARSE, planned and simulated."""

import json

from reproduction.computed import need_build, simulate
from reproduction.lab import RECKON, call, own_bound, percent
from reproduction.pages import Job, Page, experiment, number

MODELS = {"resnet50": "ResNet-50", "bert-large": "BERT-large"}
SYSTEMS = {"DENSE": "dense", "all-reduce": "ring", "COARSE": "coarse", "PS on the devices": "ps_noncolocated"}
CASES = [("t4", 2, 2), ("t4", 4, 4), ("p100", 4, 4), ("v100", 4, 4), ("v100", 4, 2)]  # machine, workers, devices
READS = (9, 17)  # over CCI a GPU reads so many times slower than by its own copy engine (V-B, figure 13)


def devices_of(system, devices):
    return {"dense": 1, "ring": 0}.get(SYSTEMS[system], devices)


def roles_of(folder, workers, devices):
    """GPUs work and devices serve; fewer devices than workers: every so many-th."""
    path = folder / "roles.json"
    serving = [f"dev{i * workers // devices}" for i in range(devices)]
    groups = [{"machine": f"gpu{i}", "worker": True, "server": True} for i in range(workers)]
    groups += [{"machine": name, "worker": False, "server": True} for name in serving]
    path.write_text(json.dumps({"schema": "reckon/roles", "schema_version": 1, "name": f"{workers} workers, {devices} devices",
                                "groups": groups}))
    return path


def planned(folder, profile, model, workers, devices, strategy):
    path = folder / "plan.json"
    call(RECKON, "plan", "--profile", profile, "--workload", model, "--roles", roles_of(folder, workers, devices), "--strategy",
         strategy, "-o", path)
    return path, json.loads(path.read_text())


def exchange(own, machine, workers, devices, model, strategy):
    profile = f"coarse-{machine}"
    path, document = planned(own, profile, model, workers, devices, strategy)
    report, _ = simulate(path, profile, "--time", "20s")
    return {"bound_ms": 1e3 * own_bound(document), "predicted_ms": 1e3 * document["prediction"]["mid_seconds"],
            "simulated_ms": 1e3 * report["p50_seconds"] if report else None}


def jobs(folder):
    del folder
    need_build()
    return {"": [Job({"machine": machine, "workers": workers, "devices": devices_of(system, devices), "model": model, "system": system},
                     lambda own, a=(machine, workers, devices_of(system, devices), model, strategy): exchange(own, *a))
                 for machine, workers, devices in CASES for model in MODELS for system, strategy in SYSTEMS.items()]}


# Of the text (V-D): machine, workers, model, speed-up of the training over DENSE.
SPEEDUPS = [("t4", 2, "resnet50", "3.3"), ("t4", 4, "resnet50", "4.3"), ("t4", 2, "bert-large", "11.3"),
            ("t4", 4, "bert-large", "13.3"), ("p100", 4, "bert-large", "3.4"), ("v100", 4, "bert-large", "10.8 to 13.8")]
# V-E: blocked communication of COARSE against all-reduce, BERT.
BLOCKED = [("t4", "+18 to +20 %"), ("p100", "-28 %"), ("v100", "-20 to -42 %")]


def summary(tables):
    def of(machine, workers, model, system):
        return number(next(r for r in tables[""] if (r["machine"], r["workers"], r["model"], r["system"]) == (
            machine, str(workers), model, system)), "simulated_ms")

    rows = []
    for machine, workers, model, paper in SPEEDUPS:
        ratio = of(machine, workers, model, "DENSE") / of(machine, workers, model, "COARSE")
        rows.append((f"{machine}, {workers} workers, {MODELS[model]}: {paper} times as fast as DENSE (V-D)",
                     f"exchange: {ratio:.1f} over the bus, {READS[0] * ratio:.0f} to {READS[1] * ratio:.0f} where pulls go over CCI"))
    for machine, paper in BLOCKED:
        ratio = of(machine, 4, "bert-large", "COARSE") / of(machine, 4, "bert-large", "all-reduce")
        rows.append((f"{machine}: BERT's blocked communication {paper} against all-reduce (V-E)", f"exchange {percent(ratio - 1)}"))
    return ("the paper", "here"), rows


PAGE = Page("coarse-scale", ("",), summary, jobs, sparse=2)
EXPERIMENTS = experiment(PAGE)
