# SPDX-License-Identifier: Apache-2.0
"""Prediction against measurement where all ranks share one machine: no network, no root, nothing else may be at work on it."""

import itertools
import json
import math
import os
import pathlib
import random
import shutil
import statistics
import subprocess

from reproduction.lab import BENCH, RECKON, ROOT, call, die, percent, say, size, table

MODELS = ("resnet50", "gpt2", "vgg16")
ROLES = ((2, 0), (3, 0), (4, 0), (6, 0), (8, 0), (2, 1), (3, 1), (5, 1), (6, 2))
TRANSPORTS = ("host", "host sent", "shm", "tcp;ofi_rxm")
PARTS = ("", "512KiB", "1MiB", "4MiB")  # "": the planner's
BLOCK = 17  # configurations of one probe
BASELINES = ((2, "resnet50"), (2, "gpt2"), (4, "resnet50"), (4, "gpt2"))  # ranks, model
COLLECTIVES = {"as it comes": (), "ring": ("--mca", "coll_tuned_use_dynamic_rules", "1", "--mca", "coll_tuned_allreduce_algorithm", "4"),
               "Rabenseifner": ("--mca", "coll_tuned_use_dynamic_rules", "1", "--mca", "coll_tuned_allreduce_algorithm", "6")}


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


def error_now(row):
    """At the rates that the run found before and after its iterations."""
    return row["now"]["error"] if row["now"] else error(row)


def in_range(row):
    return row["lo"] <= row["measured"] <= row["hi"]


def state(row):
    """What the machine gave around the run, of what the profile says."""
    if not row["now"]:
        return "not measured"
    return " ".join(f"{what} {100 * row['now'][f'{key}_bytes_per_second'] / row['now'][f'profile_{key}_bytes_per_second']:.0f} %"
                    for what, key in (("sums", "sum"), ("copies", "copy")))


def at(values, q):
    return sorted(values)[max(0, math.ceil(q * len(values)) - 1)]


def distribution(rows):
    groups = {"all": rows}
    for name, key in (("sums", "sums"), ("transport", "transport"), ("strategy", "strategy"), ("ranks", None), ("model", "model")):
        for row in rows:
            value = row[key] if key else row["workers"] + row["servers"]
            groups.setdefault(f"{name} {value}", []).append(row)
    cells = []
    for name, some in [(n, groups[n]) for n in ["all", *sorted(set(groups) - {"all"})]]:
        errors, now = [abs(error(r)) for r in some], [abs(error_now(r)) for r in some]
        cells.append((name, len(some), *(f"{100 * e:.1f} %" for e in (at(errors, 0.5), at(errors, 0.95))),
                      f"{100 * sum(map(in_range, some)) / len(some):.0f} %", percent(statistics.median(map(error, some))),
                      *(f"{100 * e:.1f} %" for e in (at(now, 0.5), at(now, 0.95)))))
    return table(("configurations", "number", "median", "95 % at most", "in lo..hi", "with its sign",
                  "median, machine now", "95 %, machine now"), cells)


def cells_of(rows):
    return [(r["number"], r["model"], f"{r['workers']}+{r['servers']}", r["transport"].split()[0], r["strategy"], r["sums"],
             f"{size(r['part_bytes'])} x {r['window_parts']}", *(f"{1e3 * r[key]:.2f}" for key in ("lo", "mid", "hi", "measured")),
             percent(error(r)), percent(error_now(r)), state(r)) for r in rows]


HEADS = ("", "model", "workers + servers", "transport", "strategy", "sums", "part x window", "lo ms", "predicted ms", "hi ms",
         "measured ms", "error", "of the machine now", "machine now, of the profile")


def baselines(folder, profile, rounds):
    """Sums in place beside OpenMPI's and Gloo's all-reduce, by turns."""
    rows = []
    for number, (ranks, model) in enumerate(BASELINES):
        row = {"number": f"baseline-{number}", "workers": ranks, "servers": 0, "transport": "host", "strategy": "ps_colocated",
               "model": model, "part": ""}
        path, made = plan(folder, profile, row)
        elements = sum(t["elements"] for t in json.loads(
            (ROOT / f"profiles/workloads/{model}.json").read_text())["tensors"])
        seconds, others = [], {}
        for _ in range(rounds):
            seconds += measure(folder, profile, row)["samples"]
            for name, settings in COLLECTIVES.items():
                text = call("mpirun", "-n", ranks, "--oversubscribe", "--bind-to", "none", "--mca", "btl", "vader,self", "--mca", "pml",
                            "ob1", *settings, BENCH / "baseline_mpi", elements, 5,
                            env={"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"})
                others.setdefault(f"OpenMPI, {name}", []).extend([float(line) for line in text.split()][1:])
            others.setdefault("Gloo", []).extend(gloo(folder, ranks, elements))
        ours = statistics.median(seconds)
        best = min((n for n in others if n.startswith("OpenMPI")), key=lambda n: statistics.median(others[n]))
        mpi, of_gloo = statistics.median(others[best]), statistics.median(others["Gloo"])
        rows.append((model, ranks, *(f"{1e3 * s:.2f}" for s in (made["prediction"]["bound_seconds"], made["prediction"]["mid_seconds"],
                                                                ours)),
                     f"{100 * made['prediction']['bound_seconds'] / ours:.0f} %", f"{1e3 * mpi:.1f} ({best.split(', ')[1]})",
                     f"{1e3 * of_gloo:.1f}", f"{mpi / ours:.1f}", f"{of_gloo / ours:.1f}"))
        say(" ".join(str(c) for c in rows[-1]))
    return table(("model", "ranks", "bound ms", "predicted ms", "measured ms", "of the bound", "OpenMPI's best ms", "Gloo ms",
                  "times as fast as OpenMPI", "as Gloo"), rows)


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


def write_page(folder, rows, seed, compared):
    worst = sorted(rows, key=lambda r: -abs(error(r)))[:10]
    lines = [
        "# One machine", "",
        f"{len(rows)} configurations on {os.cpu_count()} processors: workloads, ranks, schemes, transports and part sizes as the seed {seed} "
        f"draws them, in a shuffled order; a probe before each {BLOCK} of them. Every sum checked. No constant of the predictions comes from them.",
        "`machine now`: the prediction at the rates of a copy and a sum that the run itself measured before and after its iterations.", "",
        distribution(rows), "", "The worst ten:", "",
        table((*HEADS, "what the run says"), [(*c, r["cause"]) for c, r in zip(cells_of(worst), worst)]), "",
        *(["Sums in place beside other programs' all-reduce in the same minutes:", "", compared, ""] if compared else []),
        "All of them:", "", table(HEADS, cells_of(rows)), "",
        f"To repeat: `scripts/reproduce one-machine --seed {seed}` (12 minutes; `--only 0-15` measures these, `--only goodput` the comparison, "
        "and the page is of all that there is)."]
    (folder / "one-machine.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


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
        say(f"{row['number']}: {' '.join(str(c) for c in cells_of([measured])[0][1:])}")
    compared = folder / "goodput.md"
    if arguments.only in ("", "goodput") and arguments.baselines == "all":
        profile = profile or max(pathlib.Path(folder).glob("profile-*.json"), key=lambda p: p.stat().st_mtime)
        compared.write_text(baselines(folder, profile, arguments.rounds))
    rows = [json.loads(path.read_text()) for path in sorted(folder.glob("row-*.json"))]
    write_page(folder, rows, arguments.seed, compared.read_text() if compared.exists() else "")


EXPERIMENTS = {"one-machine": one_machine}
