#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills runs with SIGKILL at random moments and resumes them until they end: the parameters must be bit for bit those
of a run that was never killed, and no checkpoint that was complete may be lost.

    kill_and_resume.py RECKON [--kills N] [--seed S] [--iterations I] [--every E]    works in the current folder

A moment is a line of the job's debug output, drawn from all that an undisturbed run prints: before any iteration, in
one, while copies are compared, while files are written. Each case is killed once to three times, the resumed runs too,
and every fourth time one rank alone is killed. Exit 0 when all is right; the last line sums up.
"""

import argparse
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys

PLANS = [  # strategy, workers, servers, optimizer, place
    ("byteps_split", 2, 1, "adam", "server"),
    ("ring", 3, 0, "momentum", "worker"),
    ("ps_noncolocated", 2, 2, "sgd", "server"),
    ("byteps_split", 2, 1, "momentum", "worker"),
    ("ring", 2, 0, "adam", "server"),
    ("ps_colocated", 3, 0, "adam", "worker"),
    ("ring", 3, 0, "sgd", "server"),
    ("byteps_split", 3, 1, "sgd", "worker"),
    ("ps_noncolocated", 2, 1, "momentum", "server"),
]
LIMIT_S = 600  # ends what hangs


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("reckon")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--iterations", type=int, default=40)
    parser.add_argument("--every", type=int, default=5)
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}", flush=True)
    draw = random.Random(arguments.seed)
    pathlib.Path("model.csv").write_text("name,elements,dtype\nhead,200001,fp32\ntail,50000,fp32\n")
    totals = {"kills": 0, "cases": 0, "resumed": 0, "anew": 0, "lone": 0, "steps": []}
    undisturbed = {}
    while totals["kills"] < arguments.kills:
        number = totals["cases"] % len(PLANS)
        if number not in undisturbed:
            undisturbed[number] = first_run(arguments, number)
        case(arguments, number, *undisturbed[number], draw, totals)
        totals["cases"] += 1
    steps = totals["steps"]
    print(
        f"{totals['kills']} kills in {totals['cases']} cases ({totals['lone']} of one rank alone): every run ended with the "
        f"parameters of the one that was never killed; resumed {totals['resumed']} times after step "
        f"{min(steps, default=0)} to {max(steps, default=0)}, started anew {totals['anew']} times before a first checkpoint"
    )
    return 0


def command(arguments, number, *more):
    return [arguments.reckon, "-vv", "run", f"plan{number}.json", "--iterations", str(arguments.iterations), "--warm-up",
            "2", "--tolerance", "1e9%", "-o", "report.json", *more]


def first_run(arguments, number):
    """The digest of a run that is left alone, and how many lines it prints."""
    strategy, workers, servers, optimizer, place = PLANS[number]
    subprocess.run(
        [arguments.reckon, "plan", "--profile", "byteps-cluster", "--workload", "model.csv", "--workers", str(workers),
         "--servers", str(servers), "--port-bandwidth", "1GB/s", "--part-bytes", "64KiB", "--transport", "host",
         "--strategy", strategy, "--optimizer", optimizer, "--update", place, "-o", f"plan{number}.json"],
        check=True, stdout=subprocess.DEVNULL)  # fmt: skip
    run = subprocess.run(command(arguments, number), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                         timeout=LIMIT_S, check=True)  # fmt: skip
    return digest(), run.stderr.count("\n")


def digest():
    report = json.loads(pathlib.Path("report.json").read_text())
    assert report["verification"]["ok"], report["verification"]
    return report["parameters"]["digest"]


def complete_steps(folder):
    return sorted(int(re.fullmatch(r"step-(\d+)", p.stem)[1]) for p in folder.glob("step-*.complete"))


def case(arguments, number, expected, lines, draw, totals):
    folder = pathlib.Path("checkpoints")
    shutil.rmtree(folder, ignore_errors=True)
    kills = draw.randint(1, 3)
    what = f"case {totals['cases']}, plan {number} {PLANS[number]}"
    newest = []
    for attempt in range(kills + 1):
        resume = ["--resume", str(folder)] if newest else []
        pathlib.Path("report.json").unlink(missing_ok=True)
        process = subprocess.Popen(
            command(arguments, number, "--checkpoint", str(folder), "--checkpoint-every", str(arguments.every), *resume),
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True)  # fmt: skip
        lone = False
        heard = []
        moment = draw.randrange(lines) if attempt < kills else None
        for line in process.stderr:
            heard.append(line)
            if moment is not None and len(heard) > moment:
                lone = kill(process, draw)
                totals["lone"] += lone
                totals["kills"] += 1
                moment = None
        process.wait(timeout=LIMIT_S)
        if attempt < kills and process.returncode == 0:
            moment = None  # it was shorter than the moment: a run that goes on has less to print
        elif attempt == kills and process.returncode != 0:
            sys.exit(f"{what}: the last run ended with {process.returncode}: {''.join(heard[-5:])}")
        if newest:
            check_resumed(what, heard, newest, totals)
        elif attempt > 0:
            totals["anew"] += 1
        if process.returncode == 0:
            break
        steps = complete_steps(folder)
        if newest and (not steps or steps[-1] < newest[-1]):
            sys.exit(f"{what}: the checkpoint after step {newest[-1]} is lost; there are {steps}")
        newest = steps
    if (found := digest()) != expected:
        sys.exit(f"{what}: the parameters are {found}, and {expected} without a kill")
    report = json.loads(pathlib.Path("report.json").read_text())
    if newest and report["parameters"]["resumed_from_step"] < newest[-1]:
        sys.exit(f"{what}: resumed after {report['parameters']['resumed_from_step']} instead of {newest[-1]}")
    left = sorted(p.name for p in folder.iterdir() if p.suffix == ".tmp")
    if left or len(complete_steps(folder)) > 2:
        sys.exit(f"{what}: left in the folder: {left}, {complete_steps(folder)}")


def check_resumed(what, heard, newest, totals):
    text = "".join(heard)
    if "is not used" in text:
        sys.exit(f"{what}: a complete checkpoint was not used: {text[:2000]}")
    first = re.search(r"resumed after step (\d+)", text)
    if first:
        if int(first[1]) < newest[-1]:
            sys.exit(f"{what}: resumed after step {first[1]} instead of {newest[-1]}")
        totals["resumed"] += 1
        totals["steps"].append(int(first[1]))


def kill(process, draw):
    """All of the job, or one rank alone; returns whether it was one."""
    children = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children")
    ranks = children.read_text().split() if children.exists() and draw.random() < 0.25 else []
    try:
        if ranks:
            os.kill(int(draw.choice(ranks)), signal.SIGKILL)
        else:
            os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return bool(ranks)


if __name__ == "__main__":
    sys.exit(main())
