# SPDX-License-Identifier: Apache-2.0
"""Prediction against measurement where all ranks share one machine: no network, no root, nothing else may be at work on it."""

import itertools
import json
import os
import pathlib
import random
import shutil
import statistics
import subprocess

from reproduction.lab import BENCH, RECKON, ROOT, call, die, percent, say
from reproduction.pages import ERRORS, Page, error_row, grouped, number, publish

MODELS = ("resnet50", "gpt2", "vgg16")
ROLES = ((2, 0), (3, 0), (4, 0), (6, 0), (8, 0), (2, 1), (3, 1), (5, 1), (6, 2))
TRANSPORTS = ("host", "host sent", "shm", "tcp;ofi_rxm")
PARTS = ("", "512KiB", "1MiB", "4MiB")  # "": the planner's
BLOCK = 17  # configurations of one probe
BASELINES = ((2, "resnet50"), (2, "gpt2"), (4, "resnet50"), (4, "gpt2"))  # ranks, model
TUNED = ("--mca", "coll_tuned_use_dynamic_rules", "1", "--mca", "coll_tuned_allreduce_algorithm")
# OpenMPI's settings that change an all-reduce in one memory; each with each is tried.
OPENMPI = (
    {"": (), "ring": (*TUNED, "4"), "segmented ring": (*TUNED, "5"), "Rabenseifner": (*TUNED, "6"),
     "han": ("--mca", "coll_han_priority", "100"), "sm": ("--mca", "coll_sm_priority", "100")},
    {"one copy (CMA)": ("--mca", "btl_vader_single_copy_mechanism", "cma"), "two copies": ("--mca", "btl_vader_single_copy_mechanism", "none")},
    {"": ("--bind-to", "none"), "bound": ("--bind-to", "core")})


def strategies(servers, transport):
    if servers == 0:
        return ("ps_colocated",) if transport == "host sent" else ("ring", "ps_colocated")  # rings are always sent
    return ("ps_noncolocated", "byteps_split")


def configurations(seed):
    """In an order that the seed draws, as it draws models and sizes of parts."""
    chance = random.Random(seed)
    rows = []
    for (workers, servers), transport in itertools.product(ROLES, TRANSPORTS):
        for strategy in strategies(servers, transport):
            long = transport == "tcp;ofi_rxm" and workers + servers > 4  # an iteration takes seconds
            rows.append({"workers": workers, "servers": servers, "transport": transport, "strategy": strategy,
                         "model": MODELS[0] if long else chance.choice(MODELS), "part": chance.choice(PARTS)})
    chance.shuffle(rows)
    return [{"number": number, **row} for number, row in enumerate(rows)]


def plan(folder, profile, row, *more):
    path = folder / f"plan-{row['number']}.json"
    transport, *sums = row["transport"].split()
    arguments = ["--profile", profile, "--workload", row["model"], "--workers", row["workers"], "--servers", row["servers"],
                 "--transport", transport, "--strategy", row["strategy"], "--zero-compute", "-o", path]
    arguments += ["--sums", "sent"] if sums else []
    arguments += ["--part-bytes", row["part"]] if row["part"] else []
    call(RECKON, "plan", *arguments, *more)
    return path, json.loads(path.read_text())


def measure(folder, profile, row, *more):
    path, made = plan(folder, profile, row, *more)
    report_path = folder / f"report-{row['number']}.json"
    call(RECKON, "run", path, "--profile", profile, "--time", "2s", "--tolerance", "1000%", "-o", report_path)
    report = json.loads(report_path.read_text())
    if not report["verification"]["ok"]:
        die(f"wrong sums: {report['verification']}", 4)
    return {**row, "sums": made.get("sums", "sent"), "part_bytes": made["part_bytes"], "window_parts": made["window_parts"],
            **{key: made["prediction"][f"{key}_seconds"] for key in ("bound", "lo", "mid", "hi")},
            "samples": report["iteration_seconds"], "measured": report["p50_seconds"], "cause": report["cause"],
            "now": report.get("machine_now")}


def error(row):
    return row["measured"] / row["mid"] - 1


def cells(row):
    """Before the run and after it a rehearsal took so much of what it took when the machine was probed."""
    now = row["now"] or {}
    then = {f"rehearsal_{when}_percent": 100 * now[f"{when}_seconds"] / now["probed_seconds"] if now else None for when in ("before", "after")}
    return {"number": row["number"], "model": row["model"], "workers": row["workers"], "servers": row["servers"],
            "transport": row["transport"].split()[0], "strategy": row["strategy"], "sums": row["sums"], "part_bytes": row["part_bytes"],
            "window_parts": row["window_parts"], **{f"{name}_ms": 1e3 * row[key] for name, key in (
                ("lo", "lo"), ("predicted", "mid"), ("hi", "hi"), ("measured", "measured"))},
            "meanwhile_ms": 1e3 * now["predicted_seconds"] if now else None, **then}


def summary(tables):
    rows = []
    for name, key in (("all", None), ("sums", "sums"), ("transport", "transport"), ("strategy", "strategy")):
        for (value,), some in grouped(tables[""], key).items() if key else [(("",), tables[""])]:
            inside = sum(number(r, "lo_ms") <= number(r, "measured_ms") <= number(r, "hi_ms") for r in some)
            rows.append((*error_row(f"{name} {value}".strip(), some, "predicted_ms", "measured_ms"), f"{inside} of {len(some)}"))
    paired = [r for r in tables[""] if r.get("meanwhile_ms")]
    if paired:
        rows.insert(1, (*error_row("all, at the speed meanwhile", paired, "meanwhile_ms", "measured_ms"), ""))
    return (*ERRORS, "within lo to hi"), rows


PAGE = Page("one-machine", ("", "in-place"), summary)


def openmpi(ranks, elements, settings, iterations):
    """Seconds of each counted iteration; none: it refuses these settings."""
    done = subprocess.run([str(word) for word in ("mpirun", "-n", ranks, "--oversubscribe", "--mca", "btl", "vader,self", "--mca", "pml", "ob1",
                                                  *settings, BENCH / "baseline_mpi", elements, iterations)], check=False,
                          capture_output=True, text=True, timeout=300,
                          env={**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"})
    return [float(line) for line in done.stdout.split()][1:] if done.returncode == 0 else []


def best_openmpi(ranks, elements):
    """Names and arguments of the fastest settings: each with each, some iterations."""
    seconds = {}
    for chosen in itertools.product(*(kind.items() for kind in OPENMPI)):
        names, arguments = zip(*chosen)
        if "bound" in names and ranks > len(os.sched_getaffinity(0)):
            continue
        times = openmpi(ranks, elements, [word for words in arguments for word in words], 4)
        if times:
            seconds[", ".join(filter(None, names))] = (statistics.median(times), [word for words in arguments for word in words])
    for name, (time, _) in sorted(seconds.items(), key=lambda item: item[1][0]):
        say(f"  OpenMPI, {name}: {1e3 * time:.1f} ms")
    best = min(seconds, key=lambda name: seconds[name][0])
    return best, seconds[best][1]


def baselines(folder, profile, rounds):
    """Sums in place, and OpenMPI's and Gloo's all-reduce by turns with them. `of_stream_percent`: of the rate of STREAM's loops."""
    rows = []
    stream = max(c["p50"] for c in json.loads(pathlib.Path(profile).read_text())["cells"] if c["case"] in ("stream_copy", "stream_add"))
    version = call("mpirun", "--version").splitlines()[0]
    for order, (ranks, model) in enumerate(BASELINES):
        row = {"number": f"baseline-{order}", "workers": ranks, "servers": 0, "transport": "host", "strategy": "ps_colocated",
               "model": model, "part": ""}
        _, made = plan(folder, profile, row)
        elements = sum(t["elements"] for t in json.loads(
            (ROOT / f"profiles/workloads/{model}.json").read_text())["tensors"])
        name, settings = best_openmpi(ranks, elements)
        ours, theirs, gloos = [], [], []
        for _ in range(rounds):
            ours += measure(folder, profile, row)["samples"]
            theirs += openmpi(ranks, elements, settings, 5)
            gloos += gloo(folder, ranks, elements)
        measured = statistics.median(ours)
        rows.append({"model": model, "workers": ranks, "bound_ms": 1e3 * made["prediction"]["bound_seconds"],
                     "predicted_ms": 1e3 * made["prediction"]["mid_seconds"], "measured_ms": 1e3 * measured,
                     "of_stream_percent": 100 * (2 * ranks * 4 * elements / stream) / measured,
                     "openmpi_ms": 1e3 * statistics.median(theirs), "openmpi": version, "openmpi_settings": f"vader, ob1, {name}",
                     "gloo_ms": 1e3 * statistics.median(gloos)})
        say(" ".join(str(c) for c in rows[-1].values()))
    return rows


def gloo(folder, ranks, elements):
    """Seconds of each counted iteration, on the loopback."""
    store = folder / "gloo-store"
    shutil.rmtree(store, ignore_errors=True)
    store.mkdir()
    processes = [subprocess.Popen([BENCH / "baseline_gloo", str(elements), "5"], stdout=subprocess.PIPE, text=True,
                                  env=dict(os.environ, RANK=str(rank), WORLD_SIZE=str(ranks), GLOO_STORE=str(store),
                                           GLOO_INTERFACE="lo")) for rank in range(ranks)]
    printed = [process.communicate(timeout=300)[0] for process in processes]
    shutil.rmtree(store)
    if any(process.returncode for process in processes):
        die("baseline_gloo failed", 4)
    return [float(line) for line in printed[0].split()][1:]


def one_machine(arguments, folder):
    if not RECKON.exists():
        die("there is no release build; scripts/quickstart makes it", 3)
    say(f"seed {arguments.seed}")
    all_of_them = configurations(arguments.seed)
    first, last = (int(n) for n in arguments.only.split("-")) if "-" in arguments.only else (0, len(all_of_them) - 1)
    profile = None
    for row in all_of_them[first:last + 1] if arguments.only != "goodput" else ():
        if profile is None or row["number"] % BLOCK == 0:
            profile = arguments.profile or folder / f"profile-{row['number']}.json"
            if not arguments.profile:
                say("probing")
                call(RECKON, "probe", "-o", profile, "--force")
        measured = measure(folder, profile, row)
        (folder / f"row-{row['number']:03}.json").write_text(json.dumps({**measured, "profile": str(profile)}, indent=1))
        say(f"{row['number']}: predicted {measured['mid']:.4f} s, measured {measured['measured']:.4f} s, {percent(error(measured))}")
    compared = folder / "in-place.json"
    if arguments.only in ("", "goodput") and arguments.baselines == "all":
        profile = profile or max(pathlib.Path(folder).glob("profile-*.json"), key=lambda p: p.stat().st_mtime)
        compared.write_text(json.dumps(baselines(folder, profile, arguments.rounds)))
    rows = [json.loads(path.read_text()) for path in sorted(folder.glob("row-*.json"))]
    publish(PAGE, {"": [cells(r) for r in rows], **({"in-place": json.loads(compared.read_text())} if compared.exists() else {})}, folder)


EXPERIMENTS = {"one-machine": one_machine}
