# SPDX-License-Identifier: Apache-2.0
"""COARSE's machines (HPCA 2022, V-A and V-D) at their own rates: DENSE, all-reduce and COARSE, planned and simulated."""

import json

from reproduction.computed import claims, finish, milliseconds, need_build, simulate
from reproduction.lab import RECKON, call, own_bound, percent, say, table

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


def exchanges(folder):
    rows = {}
    for machine, workers, devices in CASES:
        for model in MODELS:
            for system in SYSTEMS:
                profile = f"coarse-{machine}"
                path, document = planned(folder, profile, model, workers, devices_of(system, devices), SYSTEMS[system])
                report, why = simulate(path, profile, "--time", "20s")
                rows[machine, workers, devices, model, system] = row = {
                    "planned": document["prediction"]["mid_seconds"], "bound": own_bound(document),
                    "simulated": report["p50_seconds"] if report else None, "why": why,
                    "busiest": report["simulation"]["stations"][0] if report else None}
                say(f"{machine} {workers}+{devices} {model} {system}: planned {milliseconds(row['planned'])} ms, simulated "
                    f"{milliseconds(row['simulated'])}")
    return rows


def both(row):
    return f"{milliseconds(row['planned'])} / {milliseconds(row['simulated'])}"


# Of the text (V-D): machine, workers, model, speed-up of the training over DENSE.
SPEEDUPS = [("t4", 2, "resnet50", "3.3"), ("t4", 4, "resnet50", "4.3"), ("t4", 2, "bert-large", "11.3"),
            ("t4", 4, "bert-large", "13.3"), ("p100", 4, "bert-large", "3.4"), ("v100", 4, "bert-large", "10.8 to 13.8")]
# V-E: blocked communication of COARSE against all-reduce, BERT.
BLOCKED = [("t4", "+18 to +20 %"), ("p100", "-28 %"), ("v100", "-20 to -42 %")]


def claim_rows(rows):
    out = []
    for machine, workers, model, paper in SPEEDUPS:
        mine = {s: rows[machine, workers, workers, model, s]["simulated"] for s in SYSTEMS}
        ratio = mine["DENSE"] / mine["COARSE"]
        reach = f"{ratio:.1f} over the bus, {READS[0] * ratio:.0f} to {READS[1] * ratio:.0f} where pulls go over CCI"
        least = float(paper.split()[0])
        inside = "possible" if least <= READS[1] * ratio else "more than either"
        out.append((f"{machine}, {workers} workers, {MODELS[model]}: {paper} times as fast as DENSE (V-D)", f"exchange: {reach}", inside,
                    "the paper's is of whole iterations, whose compute is not in its text; its DENSE is scaled by figure 13"))
    for machine, paper in BLOCKED:
        mine = {s: rows[machine, 4, 4, "bert-large", s]["simulated"] for s in SYSTEMS}
        ours = mine["COARSE"] / mine["all-reduce"] - 1
        same = (ours < 0) == paper.startswith("-")
        out.append((f"{machine}: BERT's blocked communication {paper} against all-reduce (V-E)", f"exchange {percent(ours)}",
                    "the same side" if same else "the other side",
                    "rates of pairs are assumed but for those of P100's local pair; all-reduce is one ring here, NCCL has several"))
    return out


def coarse_scale(arguments, folder):
    del arguments
    need_build()
    rows = exchanges(folder)
    cells = [(machine, f"{workers} + {devices}", MODELS[model], *(both(rows[machine, workers, devices, model, s]) for s in SYSTEMS))
             for machine, workers, devices in CASES for model in MODELS]
    errors = sorted(((abs(r["simulated"] / r["planned"] - 1), key) for key, r in rows.items() if r["simulated"]), reverse=True)
    worst = ", ".join(f"{100 * e:.1f} % ({k[0]} {k[1]} + {k[2]}, {MODELS[k[3]]}, {k[4]})" for e, k in errors[:3])
    lines = ["# COARSE's machines at their own rates", "",
             "Written by `scripts/reproduce coarse-scale`: planned and simulated on the shipped profiles `coarse-t4`, `coarse-p100` and "
             "`coarse-v100`; nothing is measured (`scripts/reproduce coarse-baselines` measures on emulated links). The paper prints few rates "
             "([profiles](../../profiles/README.md) has which are its own and which are assumed) and no compute times, so that what is "
             "compared is the exchange of gradients, and mainly its order.", "",
             claims(claim_rows(rows)), "", "## Exchange", "", "Planned / simulated, ms; workers + devices. DENSE has one device.", "",
             table(("machine", "ranks", "model", *SYSTEMS), cells), "", f"Greatest differences between planned and simulated: {worst}.", ""]
    finish(folder, "coarse-scale", lines, [{"case": list(k), **r} for k, r in rows.items()])


EXPERIMENTS = {"coarse-scale": coarse_scale}
