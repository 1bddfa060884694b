#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What each habit of the movers is worth on this machine: a table in the shape of BytePS table 2. scripts/bench ablation
builds and starts it.

Every variant is the same plan, run by `reckon run --without ...`, in an order that is shuffled anew in each round, so that
all of them meet the same disturbances. A variant's time is the median over the rounds of a run's median iteration.
"""

import argparse
import json
import math
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile

HABITS = ["shm", "aligned", "one-segment", "register-once", "address-once"]
SHARED_MEMORY = ("host", "shm")
# A habit shows when the run without it is slower by more than this at the median of the rounds, and in so many rounds
# that a habit without effect would be there with a probability below CHANCE (sign test).
LEAST_LOSS, CHANCE = 0.02, 0.02


def die(text, code=2):
    print(f"bench ablation: {text}", file=sys.stderr)
    sys.exit(code)


def call(arguments, allowed=(0,)):
    environment = dict(os.environ, RECKON_LOG="error", NO_COLOR="1")
    done = subprocess.run([str(a) for a in arguments], text=True, env=environment, timeout=600,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode not in allowed:
        die(f"{' '.join(str(a) for a in arguments)}\n{done.stderr}exit status {done.returncode}", done.returncode)
    return done.stdout


def variants_for(transport):
    """Name -> what is off. First those that switch one thing after the other on, as table 2 does, where memory is
    registered and addresses are exchanged once from the start; then those that lack one."""
    habits = HABITS if transport in SHARED_MEMORY else HABITS[1:]
    once = ["register-once", "address-once"]
    growing = {"nothing": habits}
    for last in range(len(habits) - len(once) + 1):
        on = habits[:last]
        name = "all" if len(on) + len(once) == len(habits) else "baseline" if not on else "+" + " +".join(on)
        growing[name] = [h for h in habits if h not in on + once]
    lacking = {habit: [habit] for habit in habits}
    return growing, lacking


def measure(reckon, plan, transport, without, iterations):
    """One run: seconds of the median iteration, and the busiest rank's bytes out."""
    command = [reckon, "run", plan, "--transport", transport, "-n", iterations, "-w", 2, "--tolerance", "1e9%", "--json"]
    if without:
        command += ["--without", ",".join(without)]
    report = json.loads(call(command))
    if not report["verification"]["ok"]:
        die(f"wrong sums without {','.join(without) or 'nothing'}: {report['verification']}", 4)
    if report["context"].get("without", "").split(":")[0].count(",") + 1 != max(1, len(without)):
        die("the report does not name what was off", 70)
    return report["p50_seconds"], max(r["egress_bytes"] for r in report["ranks"]), report["transport"], \
        report["context"].get("other_programs", "unknown")


def chance_of(slower, rounds):
    """That a habit without effect is slower in at least so many rounds."""
    return sum(math.comb(rounds, i) for i in range(slower, rounds + 1)) / 2 ** rounds


def print_rows(rows):
    widths = [max(len(row[c]) for row in rows) for c in range(len(rows[0]))]
    for row in rows:
        print("  ".join(cell.ljust(w) if c == 0 else cell.rjust(w) for c, (cell, w) in enumerate(zip(row, widths))).rstrip())


def main():
    parser = argparse.ArgumentParser(prog="scripts/bench ablation", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--transport", default="host", help="of `reckon run --list`; default host")
    parser.add_argument("--ranks", type=int, default=2, help="workers that sum as well (ps_colocated); default 2")
    parser.add_argument("--bytes", default="16MiB", help="of each worker's gradient, fp32; default 16MiB")
    parser.add_argument("--part-bytes", default="256KiB", help="of one write; default 256KiB")
    parser.add_argument("--rounds", type=int, default=9, help="default 9")
    parser.add_argument("--iterations", type=int, default=10, help="in each run; default 10")
    parser.add_argument("--reckon", default="build/release/apps/reckon/reckon", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.ranks < 2 or arguments.rounds < 1 or arguments.iterations < 1:
        parser.error("--ranks at least 2, --rounds and --iterations at least 1")
    units = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
    size = next((float(arguments.bytes[:-3]) * f for u, f in units.items()
                 if arguments.bytes.endswith(u) and arguments.bytes[:-3].replace(".", "", 1).isdigit()), 0)
    if size < 4096:
        parser.error(f"--bytes {arguments.bytes}: write it as 16MiB, at least 4KiB")

    with tempfile.TemporaryDirectory(prefix="reckon-ablation-") as folder:
        workload, plan = pathlib.Path(folder, "model.csv"), pathlib.Path(folder, "plan.json")
        workload.write_text(f"name,elements,dtype\ngradient,{int(size) // 4},fp32\n")
        call([arguments.reckon, "plan", "--profile", "byteps-cluster", "--workload", workload, "--workers", arguments.ranks,
              "--servers", 0, "--strategy", "ps_colocated", "--port-bandwidth", "100Gb/s", "--part-bytes",
              arguments.part_bytes, "--transport", arguments.transport, "-o", plan])
        growing, lacking = variants_for(arguments.transport)
        names = {habit: next((n for n, o in growing.items() if o == off), "all but " + habit)
                 for habit, off in lacking.items()}  # some stand in both tables and run once
        every = {**growing, **{names[habit]: off for habit, off in lacking.items()}}
        times = {name: [] for name in every}
        transports, bytes_out, others = {}, 0, "unknown"
        order = random.Random(1)
        for done in range(arguments.rounds):
            for name in order.sample(list(every), len(every)):
                print(f"round {done + 1} of {arguments.rounds}: {name}", file=sys.stderr, flush=True)
                seconds, bytes_out, transports[name], others = \
                    measure(arguments.reckon, plan, arguments.transport, every[name], arguments.iterations)
                times[name].append(seconds)

    def gbps(name):
        return bytes_out * 8 / statistics.median(times[name]) / 1e9

    cpu = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "unknown")
    print(f"ablation over {arguments.transport}: {arguments.ranks} ranks of this machine, each sends {bytes_out / 2**20:.4g} "
          f"MiB an iteration in parts of {arguments.part_bytes}; {arguments.rounds} rounds of {arguments.iterations} "
          "iterations")
    print(f"processor: {cpu}, {len(os.sched_getaffinity(0))} usable; load average "
          f"{' '.join(open('/proc/loadavg').read().split()[:3])}; other programs had {others} in the last run")
    print()
    base = gbps("baseline")
    print_rows([["solution"] + list(growing),
                ["transport"] + [transports[n] for n in growing],
                ["throughput in Gb/s"] + [f"{gbps(n):.3g}" for n in growing],
                ["to baseline"] + [f"{gbps(n) / base:.2f}x" for n in growing],
                ["slowest and fastest round"] +
                [f"{bytes_out * 8e-9 / max(times[n]):.3g} to {bytes_out * 8e-9 / min(times[n]):.3g}" for n in growing]])
    print("nothing: all are off. From baseline on, memory is registered and addresses are exchanged once, as in the paper.")
    print()
    rows = [["without", "Gb/s", "to all", "slower in"]]
    quiet = []
    for habit in lacking:
        name = names[habit]
        ratios = [slow / fast for slow, fast in zip(times[name], times["all"])]
        slower = sum(r > 1 for r in ratios)
        rows.append([habit, f"{gbps(name):.3g}", f"{gbps(name) / gbps('all'):.2f}x", f"{slower} of {len(ratios)} rounds"])
        if chance_of(slower, len(ratios)) >= CHANCE or statistics.median(ratios) < 1 + LEAST_LOSS:
            quiet.append(habit)
    print_rows(rows)
    print()
    if quiet:
        print(f"No difference shown on {arguments.transport} for: {', '.join(quiet)}. (Shown is a loss above "
              f"{LEAST_LOSS:.0%} in so many rounds that chance alone would do it with a probability below {CHANCE}.)")
    if "shm" not in lacking:
        print(f"{arguments.transport} is no shared memory, so that there is no shm to switch off.")
    print(f"To repeat: scripts/bench ablation --transport '{arguments.transport}' --ranks {arguments.ranks} --bytes "
          f"{arguments.bytes} --part-bytes {arguments.part_bytes} --rounds {arguments.rounds} --iterations "
          f"{arguments.iterations}")


if __name__ == "__main__":
    main()
