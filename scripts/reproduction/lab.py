# SPDX-License-Identifier: Apache-2.0
"""What the experiments share: a cluster of network namespaces, the steps of the loop on it, tables."""

import json
import os
import pathlib
import re
import secrets
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
RECKON = pathlib.Path(os.environ.get("RECKON", ROOT / "build/release/apps/reckon/reckon"))
BENCH = ROOT / "build/release/bench"
NETLAB = ROOT / "scripts/netlab"
LAB = os.environ.get("NETLAB", "reproduce")
TRANSPORT = "tcp;ofi_rxm"


def die(text, code=2):
    print(f"reproduce: {text}", file=sys.stderr)
    sys.exit(code)


def say(text):
    print(text, file=sys.stderr, flush=True)


def call(*arguments, check=True, timeout=900, quiet=True, **options):
    """Runs a command; its standard output comes back. What went wrong is shown whole."""
    environment = dict(os.environ, NETLAB=LAB, **options.pop("env", {}))
    done = subprocess.run([str(a) for a in arguments], text=True, env=environment, timeout=timeout,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE if quiet else None, **options)
    if check and done.returncode != 0:
        die(f"{' '.join(str(a) for a in arguments)}\n{done.stderr or ''}exit code {done.returncode}", 4)
    return done.stdout


def parse_bytes(text):
    match = re.fullmatch(r"(\d+)(KiB|MiB|GiB|B)?", text)
    if not match:
        die(f"'{text}' is not a size; write it as 64MiB")
    return int(match[1]) * {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30}.get(match[2], 1)


def whole(column):
    """A column of a plan's parts with its repeats written out (docs/documents.md)."""
    numbers = []
    for entry in column:
        if isinstance(entry, list):
            count, back, step = entry
            for _ in range(count):
                numbers.append(numbers[-back] + step)
        else:
            numbers.append(entry)
    return numbers


def size(value):
    for unit, factor in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if value >= factor:
            return f"{value / factor:.4g} {unit}"
    return f"{value} B"


class Lab:
    """A cluster that is up inside a `with` and gone after it."""

    def __init__(self, workers, servers, rates, delays=(), more=()):
        self.arguments = ["--workers", workers, "--servers", servers, "--rates", ",".join(rates),
                          *(["--delays", ",".join(delays)] if delays else []), *more]
        self.workers, self.servers = workers, servers

    def __enter__(self):
        call(NETLAB, "down")
        try:
            call(NETLAB, "up", *self.arguments)
        except BaseException:  # Ctrl-C ends netlab before it has cleaned up
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        call(NETLAB, "down", check=False)

    def run(self, ranks, *command, **options):
        return call(NETLAB, "run", "--ranks", ranks, "--", *command, **options)

    def run_on(self, machines, *command, timeout=300):
        """One rank on each of these machines, in that order."""
        environment = dict(os.environ, NETLAB=LAB, WORLD_SIZE=str(len(machines)), MASTER_ADDR="10.77.0.1", MASTER_PORT="29600",
                           RECKON_JOB_TOKEN=secrets.token_hex(16))
        ranks = [subprocess.Popen([str(a) for a in (NETLAB, "exec", machine, "--", *command)], text=True,
                                  env=dict(environment, RANK=str(rank)), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                 for rank, machine in enumerate(machines)]
        try:
            for machine, rank in zip(machines, ranks):
                _, said = rank.communicate(timeout=timeout)
                if rank.returncode != 0:
                    die(f"{machine}: {said}exit code {rank.returncode}", 4)
        finally:
            for rank in ranks:
                rank.kill()


def build(baselines):
    if os.geteuid() != 0:
        die("network namespaces need root; start it with sudo", 3)
    for tool in ("gnuplot", "cmake", "ninja"):
        if not shutil.which(tool):
            die(f"'{tool}' is missing; scripts/install-packages installs it", 3)
    if not RECKON.exists():
        die("there is no release build; scripts/quickstart makes it", 3)
    present = []
    for name in ("openmpi", "gloo") if baselines else ():
        target = {"openmpi": "baseline_mpi", "gloo": "baseline_gloo"}[name]
        done = subprocess.run(["ninja", "-C", RECKON.parents[2], target], capture_output=True, text=True)
        if done.returncode == 0:
            present.append(name)
        else:
            say(f"reproduce: without {name}: {target} cannot be built (scripts/install-packages --reproduce, then cmake --preset release)")
    return present


def workload(folder, model_bytes):
    path = folder / "workload.json"
    path.write_text(json.dumps({
        "schema": "reckon/workload", "schema_version": 1, "name": f"one tensor of {size(model_bytes)}",
        "description": "one tensor, as the traffic benchmark of BytePS 7.1 sends it", "dtype": "fp32",
        "provenance": "scripts/reproduce", "tensors": [{"name": "gradient", "elements": model_bytes // 4}]}))
    return path


def probe(lab, folder, budget=None):
    profile = folder / "cluster.json"
    start = time.monotonic()
    say(f"probing {lab.workers + lab.servers} machines")
    lab.run(lab.workers + lab.servers, RECKON, "probe", "--cluster", "--transport", TRANSPORT, "-o", profile, "--force",
            *(["--time", budget] if budget else []))
    say(f"probed in {time.monotonic() - start:.0f} s")
    return profile


def plan(folder, profile, model, workers, servers, strategy, *more):
    path = folder / "plan.json"
    call(RECKON, "plan", "--profile", profile, "--workload", model, "--workers", workers, "--servers", servers,
         "--strategy", strategy, "--transport", TRANSPORT, "-o", path, *more)
    return path, json.loads(path.read_text())


def measure(lab, folder, path, ranks, iterations=2, more=()):
    """Seconds of each counted iteration on the first `ranks` machines, or on those named; every sum was checked."""
    report = folder / "report.json"
    machines = ("--ranks", ranks) if isinstance(ranks, int) else ("--on", ",".join(ranks))
    call(NETLAB, "run", *machines, "--", RECKON, "run", path, "--iterations", iterations, "--warm-up", 1, "--tolerance",
         "1000%", "--step-timeout", "120s", "-o", report, *more)
    document = json.loads(report.read_text())
    if not document["verification"]["ok"]:
        die(f"wrong sums: {document['verification']}", 4)
    return document["iteration_seconds"]


def measure_gloo(lab, folder, workers, elements, iterations=2):
    store = folder / "gloo-store"
    shutil.rmtree(store, ignore_errors=True)
    store.mkdir()
    text = lab.run(workers, BENCH / "baseline_gloo", elements, iterations + 1,
                   env={"GLOO_STORE": str(store), "GLOO_INTERFACE": "d0"})
    shutil.rmtree(store)
    return [float(line) for line in text.split()][1:]


# Its own choice for long messages is half as fast on such links; the ring is its best.
OPENMPI_RING = ("--mca", "coll_tuned_use_dynamic_rules", "1", "--mca", "coll_tuned_allreduce_algorithm", "4")


def measure_openmpi(folder, workers, elements, iterations=2, places=1, settings=OPENMPI_RING):
    """Seconds of each iteration of `places` ranks on each of `workers` machines, inside them by shared memory."""
    agent = folder / "mpi-agent"
    agent.write_text(f"""#!/bin/bash
# mpirun's remote shell: ADDRESS COMMAND...
number=$((${{1##*.}} - 1))
exec "{NETLAB}" exec "w$number" -- sh -c "${{*:2}}"
""")
    agent.chmod(0o755)
    subnet = "10.77.0.0/24"
    text = call(NETLAB, "exec", "w0", "--", "mpirun", "--host",
                ",".join(f"10.77.0.{i + 1}:{places}" for i in range(workers)), "-n", workers * places, "--bind-to", "none",
                "--mca", "plm_rsh_agent", agent, "--mca", "oob_tcp_if_include", subnet, "--mca", "btl_tcp_if_include", subnet,
                "--mca", "btl", "tcp,vader,self" if places > 1 else "tcp,self", "--mca", "pml", "ob1",
                "--mca", "mpi_yield_when_idle", "1", *settings, BENCH / "baseline_mpi", elements, iterations + 1,
                env={"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"})
    agent.unlink()
    return [float(line) for line in text.split()][1:]


def own_bound(document):
    """Seconds that a plan's own strategy takes at least: its bound where no other strategy needs less."""
    return document["prediction"].get("busiest_seconds", document["prediction"]["bound_seconds"])


def percent(value):
    return f"{100 * value:+.1f} %"


def table(headers, rows):
    widths = [max(len(str(r[i])) for r in [headers, *rows]) for i in range(len(headers))]
    def line(cells):
        return "| " + " | ".join(str(c).ljust(w) for c, w in zip(cells, widths)) + " |"
    return "\n".join([line(headers), "|" + "|".join("-" * (w + 2) for w in widths) + "|", *[line(r) for r in rows]])
