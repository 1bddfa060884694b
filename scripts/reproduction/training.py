# SPDX-License-Identifier: Apache-2.0
"""PyTorch models trained over plans, beside DistributedDataParallel over gloo: on netlab, on one machine, and with a worker that
is killed."""

import datetime
import json
import os
import secrets
import signal
import socket
import statistics
import subprocess
import sys
import time

from reproduction.lab import NETLAB, RECKON, ROOT, TRANSPORT, Lab, build, call, die, probe, say
from reproduction.lab import LAB as LAB_NAME
from reproduction.pages import Page, grouped, publish

RANK_PROGRAM = ROOT / "scripts/reproduction/training_rank.py"
PARTS = ("netlab", "machine", "killed")
BATCHES = {"resnet18": 4, "transformer": 2, "naps": 2}  # samples of a worker
WORKERS, SERVERS = 4, (0, 2, 4)
WARM_UP = {"netlab": 1, "machine": 2}
STEPS = {"netlab": 4, "machine": 10}
COMPARED = 5  # steps whose losses are compared with those of one process
PORT = 29700
KILLED_RANK, KILLED_STEP = 1, 3
NAMES = {"none": "no communication", "ddp": "DDP over gloo", "after": "plan, after the pass", "overlapped": "plan, overlapped",
         "hook": "DDP with ddp_hook", "backend": "DDP over reckon.torch", "ddp_fp16": "DDP over gloo, fp16",
         "wire": "plan, overlapped, bf16", "backend_wire": "DDP over reckon.torch, bf16"}
HALVES = [NAMES[mode] for mode in ("ddp_fp16", "wire", "backend_wire")]  # gradients travel as such
SETTINGS = {"netlab": f"{WORKERS} workers on netlab", "machine": "one machine"}
QUIET = 1  # load average: above it other programs are at work


def python():
    """One that has PyTorch."""
    for candidate in (sys.executable, "/usr/bin/python3"):
        if subprocess.run([candidate, "-c", "import torch, torchvision"], capture_output=True).returncode == 0:
            return candidate
    die("there is no PyTorch with torchvision; scripts/install-packages --torch installs them", 3)


def free_port():
    """Of two ports in a row, the first."""
    while True:
        with socket.socket() as one, socket.socket() as two:
            one.bind(("127.0.0.1", 0))
            try:
                two.bind(("127.0.0.1", one.getsockname()[1] + 1))
                return one.getsockname()[1]
            except OSError:
                continue


class Place:
    """Where ranks run: the machines of a lab, each on one of this computer's processors, in turn, as `netlab run` does it; or,
    without a lab, this machine."""

    def __init__(self, interpreter, folder, lab=None):
        self.interpreter, self.folder, self.lab = interpreter, folder, lab

    def before(self, rank):
        if not self.lab:
            return []
        machine = f"w{rank}" if rank < self.lab.workers else f"s{rank - self.lab.workers}"
        processors = sorted(os.sched_getaffinity(0))
        return ["taskset", "-c", processors[rank % len(processors)], NETLAB, "exec", machine, "--"]

    def run(self, commands, expected=0, limit=400):
        """Each command as a rank, all at once; all have ended when this returns, and those that go on after an error are killed.
        expected: their exit status, or what says whether a rank's is right."""
        environment = dict(os.environ, NETLAB=LAB_NAME, PYTHONPATH=str(ROOT / "python"), PYTHONDONTWRITEBYTECODE="1",
                           OMP_NUM_THREADS="1", GLOO_SOCKET_IFNAME="d0" if self.lab else "lo", RECKON_WORLD_SIZE=str(len(commands)),
                           RECKON_MASTER_ADDR="10.77.0.1" if self.lab else "127.0.0.1",
                           RECKON_MASTER_PORT=str(PORT if self.lab else free_port()), RECKON_JOB_TOKEN=secrets.token_hex(16))
        ranks, logs = [], [self.folder / f"rank-{rank}.log" for rank in range(len(commands))]
        right = expected if callable(expected) else lambda _, status: status == expected
        try:
            for rank, command in enumerate(commands):
                with open(logs[rank], "w") as log:
                    ranks.append(subprocess.Popen(
                        [str(a) for a in (*self.before(rank), self.interpreter, *command)], stdin=subprocess.DEVNULL, stderr=log,
                        stdout=sys.stderr if rank == 0 else log, env=dict(environment, RECKON_RANK=str(rank)),
                        start_new_session=True))
            end = time.monotonic() + limit
            while True:
                statuses = [rank.poll() for rank in ranks]
                for rank, status in enumerate(statuses):
                    if status is not None and not right(rank, status):
                        time.sleep(2)  # what others say of it
                        said = "\n".join(f"rank {i}: {log.read_text().strip()}" for i, log in enumerate(logs))
                        die(f"rank {rank} ended with {status}\n{said}", 4)
                if None not in statuses:
                    return
                if time.monotonic() > end:
                    die(f"ranks {[i for i, s in enumerate(statuses) if s is None]} were not done after {limit} s", 4)
                time.sleep(0.05)
        finally:
            for rank in ranks:
                if rank.poll() is None:
                    os.killpg(rank.pid, signal.SIGKILL)
                rank.wait()

    def train(self, model, workers, ranks, modes, steps, expected=0, **more):
        """What each rank wrote; modes: pairs of a mode and its plan, or "joint"."""
        for old in self.folder.glob("rank-*.json"):
            old.unlink()
        job = self.folder / "job.json"
        job.write_text(json.dumps({"model": model, "batch": BATCHES[model], "workers": workers, "modes": modes, "steps": steps,
                                   "folder": str(self.folder), **more}))
        self.run([[RANK_PROGRAM, job]] * ranks, expected)
        return [json.loads((self.folder / f"rank-{rank}.json").read_text()) for rank in range(ranks)]

    def record(self, model, workers):
        """The workload with the times of so many workers that compute at once: of the middle one of them."""
        paths = [self.folder / f"{model}-{rank}.json" for rank in range(workers)]
        self.run([["-m", "reckon.record", f"{RANK_PROGRAM}:{model}", "--batch", BATCHES[model], "--warm-up", 2, "--iterations", 6,
                   "-o", path] for path in paths])
        return sorted(paths, key=lambda path: sum(passes_of(path)))[workers // 2]


def passes_of(path):
    document = json.loads(path.read_text())
    return document["forward_seconds"], document["backward_seconds"]


def plan(path, profile, workload, workers, servers, transport, *more):
    call(RECKON, "plan", "--profile", profile, "--workload", workload, "--workers", workers, "--servers", servers, "--transport",
         transport, "-o", path, *more)
    document = json.loads(path.read_text())
    terms = {term["name"]: term["seconds"] for term in document["prediction"]["terms"]}
    return document, document["prediction"]["mid_seconds"], terms.get("exposed")


def medians(rows_of_workers, warm_up, losses):
    """Of one mode: medians over the steps after the warm-up, from the first worker's begin to the last one's sums, and of this what
    comes after the last gradient; how far losses are from those of one process."""
    steps = list(zip(*rows_of_workers))
    ends = [max(r["sums"] for r in rows) for rows in steps]
    seconds = [end - min(r["begin"] for r in rows) for end, rows in zip(ends, steps)][warm_up:]
    exposed = [end - max(r["ready"] for r in rows) for end, rows in zip(ends, steps)][warm_up:]
    means = [statistics.fmean(r["loss"] for r in rows) for rows in steps]
    return {"step": statistics.median(seconds), "exposed": statistics.median(exposed), "samples": seconds,
            "compared": min(len(means), len(losses)), "loss_error": max(abs(a / b - 1) for a, b in zip(means, losses))}


def compare(place, model, workers, servers, profile, transport, part, steps, losses, workload):
    """All modes of a model on these machines, taken in turn by the same processes; a row each."""
    after, after_seconds, _ = plan(place.folder / f"{model}-{workers}+{servers}-after.json", profile, workload, workers, servers,
                                   transport, "--zero-compute")
    beside_path = place.folder / f"{model}-{workers}+{servers}.json"
    beside, step_seconds, exposed = plan(beside_path, profile, workload, workers, servers, transport)
    wire_path = place.folder / f"{model}-{workers}+{servers}-bf16.json"
    wire, wire_seconds, wire_exposed = plan(wire_path, profile, workload, workers, servers, transport, "--wire", "bf16")
    forward, backward = passes_of(workload)
    modes = [("none", None), ("ddp", None), ("ddp_fp16", None)] if servers == 0 else []
    modes += [("after", str(place.folder / f"{model}-{workers}+{servers}-after.json")), ("overlapped", str(beside_path)),
              ("hook", str(beside_path)), ("backend", str(beside_path)), ("wire", str(wire_path)), ("backend_wire", str(wire_path))]
    say(f"{part}: {model}, {workers} workers, {servers} servers: predicted {step_seconds:.3f} s overlapped, {exposed:.3f} s exposed")
    warm_up = WARM_UP[part]
    ranks = place.train(model, workers, workers + servers, modes, warm_up + steps)
    predicted = {"none": (forward + backward, None), "after": (forward + backward + after_seconds, after_seconds),
                 "overlapped": (step_seconds, exposed), "wire": (wire_seconds, wire_exposed)}
    rows = []
    for mode, of_plan in modes:
        strategy = {"after": after, "overlapped": beside, "hook": beside, "backend": beside, "wire": wire,
                    "backend_wire": wire}.get(mode, {}).get("strategy", "")
        of_these = [rank[mode][-1].get("of_these_passes") for rank in ranks[:workers]]
        row = {"model": model, "workers": workers, "servers": servers, "mode": mode, "strategy": strategy,
               "forward": forward, "backward": backward, "bytes": beside["gradient_bytes"],
               "predicted_step": predicted.get(mode, (None, None))[0], "predicted_exposed": predicted.get(mode, (None, None))[1],
               "of_these_passes": None if None in of_these else statistics.median(of_these),
               **medians([rank[mode] for rank in ranks[:workers]], warm_up, losses)}
        if mode == "none":
            row["loss_error"] = None  # each worker trains alone
        rows.append(row)
    return rows


def losses_of_one_process(interpreter, folder, model, workers):
    return Place(interpreter, folder).train(model, workers, 1, "joint", COMPARED)[0]


def on_netlab(interpreter, folder, models, steps, rate):
    rows = []
    losses = {model: losses_of_one_process(interpreter, folder, model, WORKERS) for model in models}
    with Lab(WORKERS, max(SERVERS), [rate]) as lab:
        place = Place(interpreter, folder, lab)
        profile = probe(lab, folder, "60s")
        for model in models:
            say(f"netlab: recording {model}, {WORKERS} workers at once")
            workload = place.record(model, WORKERS)
            for servers in SERVERS:
                rows += compare(place, model, WORKERS, servers, profile, TRANSPORT, "netlab", steps, losses[model], workload)
    return {"rows": rows, "rate": rate}


def on_machine(interpreter, folder, models, steps):
    rows = []
    place = Place(interpreter, folder)
    profile = folder / "machine-profile.json"
    say("machine: probing it, 30 s")
    call(RECKON, "probe", "--transport", "host", "--time", "30s", "-o", profile, "--force", check=False)
    if not profile.exists():
        die("reckon probe wrote no profile", 4)
    for model in models:
        for workers in (2, 4):
            losses = losses_of_one_process(interpreter, folder, model, workers)
            say(f"machine: recording {model}, {workers} workers at once")
            workload = place.record(model, workers)
            rows += compare(place, model, workers, 0, profile, "host", "machine", steps, losses, workload)
    return {"rows": rows, "processors": len(os.sched_getaffinity(0))}


def killed(interpreter, folder, rate):
    """The transformer on 4 workers and 2 servers; nothing is measured but time since the kill, so the profile is a shipped one."""
    with Lab(WORKERS, 2, [rate]) as lab:
        place = Place(interpreter, folder, lab)
        say(f"killed: rank {KILLED_RANK} of {WORKERS} workers and 2 servers, in the middle of the backward pass of step {KILLED_STEP + 1}")
        workload = place.record("transformer", 1)
        path = folder / "killed-plan.json"
        bytes_per_second = call(NETLAB, "payload", rate).strip()
        plan(path, "byteps-cluster", workload, WORKERS, 2, TRANSPORT, "--port-bandwidth", f"{float(bytes_per_second) * 8e-6:g}Mb/s")
        said = place.train("transformer", WORKERS, WORKERS + 2, [("overlapped", str(path))], KILLED_STEP + 3,
                           lambda rank, status: status == (-signal.SIGKILL if rank == KILLED_RANK else 4),
                           dies=[KILLED_RANK, KILLED_STEP])
    when = said[KILLED_RANK]["ended"]
    return {"rows": [{"rank": rank, "seconds": one["ended"] - when, "said": one["said"]} for rank, one in enumerate(said)]}


def cells(result, setting):
    """Times only where nothing else was at work."""
    quiet = result["load"] <= QUIET
    if not quiet:
        say(f"{setting}: the load average was {result['load']:.1f} before, so its times are not published")
    for r in result["rows"]:
        times = {"step_s": r["step"], "predicted_step_s": r["predicted_step"], "exposed_s": None if r["mode"] == "none" else r["exposed"],
                 "predicted_exposed_s": r["predicted_exposed"], "of_these_passes_s": r["of_these_passes"]}
        yield {"setting": setting, "model": r["model"], "workers": r["workers"], "servers": r["servers"], "mode": NAMES[r["mode"]],
               "strategy": r["strategy"], **(times if quiet else {}),
               "loss_difference": None if r["loss_error"] is None else f"{r['loss_error']:.1e}"}


def summary(tables):
    rows = []
    for key, some in grouped(tables[""], "setting", "model", "workers").items():
        steps = {(r["mode"], r["servers"]): float(r["step_s"]) for r in some if r.get("step_s")}
        ddp = steps.get((NAMES["ddp"], "0"))
        beside = [f"{100 * (seconds / ddp - 1):+.1f} % ({servers} servers)" for (mode, servers), seconds in steps.items()
                  if ddp and mode == NAMES["overlapped"]]
        of_losses = [max((float(r["loss_difference"]) for r in some if r["loss_difference"] and (r["mode"] in HALVES) == halves),
                         default=0) for halves in (False, True)]
        rows.append((*key, len(some), *(f"{one:.1e}" if one else "" for one in of_losses), ", ".join(beside)))
    headers = ("where", "model", "workers", "runs", "greatest relative difference of a loss", "of gradients that travel as halves",
               "step overlapped beside DDP over gloo")
    timed = any(row[-1] for row in rows)
    return headers if timed else headers[:-1], rows if timed else [row[:-1] for row in rows]


PAGE = Page("training", ("", "killed"), summary)


def write_plot(work, picture, rows):
    """Bars of a step: computation and exposed communication, measured, and the predicted step as a point; a panel for each model."""
    models = list(dict.fromkeys(r["model"] for r in rows))
    script = [f'set terminal pngcairo size {720 * len(models)},640 font "Liberation Sans,11"', f'set output "{picture}"',
              f"set multiplot layout 1,{len(models)}", "set style data histograms", "set style histogram rowstacked",
              "set style fill solid 0.8", "set boxwidth 0.7", "set xtics rotate by -60", "set bmargin 9", "set grid ytics", "set yrange [0:*]",
              "set ylabel 'seconds of a step'", "set key outside top center horizontal"]
    short = {"none": "none", "ddp": "DDP gloo", "ddp_fp16": "DDP gloo fp16", "backend_wire": "backend bf16", "wire": "overlapped bf16"}
    for index, model in enumerate(models):
        values = []
        for r in (r for r in rows if r["model"] == model):
            label = short.get(r["mode"], r["mode"]) + (f" {r['servers']}" if r["mode"] not in ("none", "ddp", "ddp_fp16") else "")
            exposed = 0 if r["mode"] == "none" else r["exposed"]
            values.append(f'"{label}" {r["step"] - exposed} {exposed} {r["predicted_step"] or "NaN"}')
        script += [f"$d{index} << E", *values, "E", f'set title "{model}: mode, number of servers"',
                   f'plot $d{index} using 2:xtic(1) title "computation" lc rgb "#888888", '
                   f'$d{index} using 3 title "exposed communication" lc rgb "#4477aa", '
                   f'$d{index} using 0:4 with points pt 9 ps 1.6 lc rgb "black" title "predicted step"']
    (work / "training.gnuplot").write_text("\n".join(script) + "\n")
    call("gnuplot", work / "training.gnuplot")


def training(arguments, folder):
    build(False)
    chosen = [part for part in PARTS if arguments.only in ("", part)]
    if not chosen:
        die(f"--only {arguments.only}: none of {', '.join(PARTS)}")
    models = arguments.models.split(",")
    if not set(models) <= set(BATCHES):
        die(f"--models {arguments.models}: of {', '.join(BATCHES)}")
    interpreter = python()
    version = "PyTorch " + call(interpreter, "-c", "import torch; print(torch.__version__)").strip()
    work = ROOT / "results/training"  # all but the page
    work.mkdir(parents=True, exist_ok=True)
    try:
        for part in chosen:
            load, start = os.getloadavg()[0], time.monotonic()
            own = work / part
            own.mkdir(exist_ok=True)
            steps = arguments.steps or STEPS.get(part)
            if part == "netlab":
                result = on_netlab(interpreter, own, models, steps, arguments.rate)
            elif part == "machine":
                result = on_machine(interpreter, own, models, steps)
            else:
                result = killed(interpreter, own, arguments.rate)
            result |= {"load": load, "steps": steps, "torch": version,
                       "when": f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d %H:%M} UTC"}
            (work / f"{part}.json").write_text(json.dumps(result, indent=1))
            say(f"{part}: took {time.monotonic() - start:.0f} s")
    except KeyboardInterrupt:
        die("interrupted; nothing is left running", 130)
    found = {part: json.loads((work / f"{part}.json").read_text()) for part in PARTS if (work / f"{part}.json").exists()}
    rows = [row for part, setting in SETTINGS.items() if part in found for row in cells(found[part], setting)]
    publish(PAGE, {**({"": rows} if rows else {}), **({"killed": [
        {"rank": r["rank"], "ended_after_s": r["seconds"] if found["killed"]["load"] <= QUIET else None, "says": r["said"] or "(killed)"}
        for r in found["killed"]["rows"]]} if "killed" in found else {})}, folder)
    if "netlab" in found and found["netlab"]["load"] <= QUIET:
        write_plot(work, folder / "training.png", found["netlab"]["rows"])
    for part, result in found.items():
        say(f"{part}: measured {result['when']} with {result['torch']}, load average before {result['load']:.1f}")


EXPERIMENTS = {"training": training}
