# SPDX-License-Identifier: Apache-2.0
"""Which scheme wins where: over the size of a message, machines and servers, as the planner predicts it."""

import collections
import json
import statistics
import subprocess

from reproduction.computed import finish, milliseconds, need_build, one_tensor
from reproduction.forests import NO_NAMED
from reproduction.lab import RECKON, die, say, size, table
from reproduction.networks import published, profile_of, shipped, write

KIB, MIB, GIB = 2**10, 2**20, 2**30
SIZES = (16 * KIB, 256 * KIB, 4 * MIB, 64 * MIB, GIB)
CLUSTERS = ("h100-cluster", "a100-cluster")
MACHINES = (1, 2, 4, 8, 16)
PORT_MACHINES = (2, 4, 8, 16)
SERVERS = {"no servers": lambda n: 0, "n/2 servers": lambda n: n // 2, "n servers": lambda n: n}
PORT = 12.5e9       # 100 Gb/s
LATENCY = 5e-6      # seconds, of a write between machines
WRITE_COST = 1e-6   # seconds that a write costs its port beside its bytes
TRANSPORT = "verbs;ofi_rxm"
SHORT = 256 * KIB   # up to here latencies count


def between_machines(machine):
    """Cells of the latency between machines."""
    return [published("fabric_write_latency", LATENCY, "seconds", bytes=8, transport=TRANSPORT, **{"from": machine})]


def with_latency(folder, name):
    document = shipped(name)
    return write(folder, f"{name}-latency",
                 {**document, "cells": document["cells"] + between_machines(document["machines"][0]["id"])})


def ports(folder):
    """Machines that are nothing but a port."""
    cells = [published("port_bandwidth", PORT, transport=TRANSPORT, **{"from": "m"}), *between_machines("m"),
             *(published("fabric_write", WRITE_COST + 2**e / PORT, "seconds", bytes=2**e, transport=TRANSPORT,
                         **{"from": "m"}) for e in range(10, 25))]
    machines = [{"id": "m", "name": "100 Gb/s", "count": 2 * PORT_MACHINES[-1], "cores": 32}]
    return write(folder, "ports", profile_of("ports", machines, cells, [], []))


def planned(folder, profile, model_bytes, machines, servers, *options):
    path = folder / "plan.json"
    done = subprocess.run([str(a) for a in (
        RECKON, "plan", "--profile", profile, "--workload", one_tensor(folder, model_bytes), "--workers", machines,
        "--servers", servers, *options, "-o", path)], text=True, capture_output=True)
    if done.returncode != 0:
        die(f"reckon plan for {size(model_bytes)} and {machines} machines\n{done.stderr}exit code {done.returncode}", 4)
    document = json.loads(path.read_text())
    times = {c["strategy"]: c["prediction"]["mid_seconds"] for c in document["candidates"] if "prediction" in c}
    found, chosen = document["prediction"], document["strategy"]
    second = min((name for name in times if name not in (chosen, *NO_NAMED)), key=times.get, default="")
    return {"bytes": model_bytes, "machines": machines, "servers": servers, "strategy": chosen,
            "played": found["mid_seconds"], "bound": found["bound_seconds"], "runner_up": second,
            "behind": times[second] / times[chosen] - 1 if second else None}


def one_network(folder, text, profile, counts, *options):
    rows = []
    for machines, servers in counts:
        for model_bytes in SIZES:
            rows.append({"network": text, **planned(folder, profile, model_bytes, machines, servers, *options)})
        say(f"{text}, {machines} machines, {servers} servers: " + ", ".join(
            f"{size(r['bytes'])} {r['strategy']}" for r in rows[-len(SIZES):]))
    return rows


def microseconds(seconds):
    return milliseconds(1e3 * seconds)


def cells(row):
    behind = "-"
    if row["behind"] is not None:
        behind = f"{row['runner_up']} ({100 * row['behind']:+.1f} %)".replace("-0.0 ", "+0.0 ")
    return (row["machines"], size(row["bytes"]), row["strategy"], microseconds(row["played"]),
            f"{row['played'] / row['bound']:.2f}",
            f"{row['played'] / LATENCY:.1f}" if row["bytes"] <= SHORT and row["machines"] > 1 else "-", behind)


HEADERS = ("machines", "message", "chosen", "played µs", "times the bound", "in latencies", "next scheme")


def conclusion(rows):
    """Two sentences that say what is in the rows and nothing else."""
    several = [r for r in rows if r["machines"] > 1]

    def winners(mine):
        counts = collections.Counter(r["strategy"] for r in mine)
        return ", ".join(f"`{name}` {count}" for name, count in sorted(counts.items(), key=lambda c: (-c[1], c[0])))

    short, longer = [r for r in several if r["bytes"] <= SHORT], [r for r in several if r["bytes"] > SHORT]
    worst = max(longer, key=lambda r: r["played"] / r["bound"])
    slowest = max(short, key=lambda r: r["played"])
    return (f"Among several machines, messages of up to {size(SHORT)} are won by {winners(short)} (of {len(short)}), "
            f"longer ones by {winners(longer)} (of {len(longer)}). The longer ones take "
            f"{statistics.median(r['played'] / r['bound'] for r in longer):.2f} times the bound in the median and "
            f"{worst['played'] / worst['bound']:.2f} at most ({size(worst['bytes'])}, {worst['machines']} machines), "
            f"the short ones up to {slowest['played'] / LATENCY:.0f} latencies ({size(slowest['bytes'])}, "
            f"{slowest['machines']} machines, `{slowest['strategy']}`).")


def winners(arguments, folder):
    need_build()
    sections = []
    for name in CLUSTERS:
        rows = one_network(folder, name, with_latency(folder, name), [(n, 0) for n in MACHINES], "--places", "gpu")
        sections.append((f"GPUs of the {name}", rows))
    profile = ports(folder)
    for text, servers in SERVERS.items():
        rows = one_network(folder, f"ports, {text}", profile, [(n, servers(n)) for n in PORT_MACHINES])
        sections.append((f"Machines with a port, {text}", rows))
    lines = ["# Which scheme wins where", "",
             "Which strategy does `reckon plan` choose for a message of this length on so many machines, and how far "
             "from the bound is it? Nothing is measured here: every time is a prediction. "
             "`scripts/reproduce all --only winners` makes this page anew; `scripts/reproduce winners` leaves it in "
             "`results/`. A row is one plan of a gradient of one tensor, by hand:", "",
             "    printf 'name,elements,dtype\\nx,1048576,fp32\\n' > 4MiB.csv",
             "    reckon plan -p h100-cluster -m 4MiB.csv --workers 4 --servers 0 --places gpu   # and the latency below", "",
             "| column | says |", "|---|---|",
             "| chosen | the strategy of the plan: [what the names mean](../cli.md#gpus-in-several-machines) |",
             "| played µs | its predicted time: the plan's parts played over the links |",
             "| times the bound | that time over the bound, which counts rates and no latency: far above 1 for short messages |",
             "| in latencies | that time over one latency, of short messages |",
             "| next scheme | the best other scheme with a name of its own (not `mix` or `optimum`, which are several at once), and "
             "how much longer it takes: of GPUs by how long it keeps its busiest link busy, of machines with a port played, or by "
             "the papers' formulas where these are slower already. Below 0: its links have less to do, and it plays slower because "
             "it takes more steps |", "",
             f"Assumed, as in [scale.md](scale.md): a write between machines takes {1e6 * LATENCY:g} µs beside its bytes "
             "(`fabric_write_latency`, added to the shipped profiles, which have none). Writes inside a machine take no time "
             "beside their bytes: rows of one machine are about rates only. The machines with a port send and receive "
             f"{8e-9 * PORT:g} Gb/s at once, and each write costs a port {1e6 * WRITE_COST:g} µs beside its bytes.", ""]
    for title, rows in sections:
        lines += [f"## {title}", "", conclusion(rows), "", table(HEADERS, [cells(r) for r in rows]), ""]
    finish(folder, "winners", lines, [row for _, rows in sections for row in rows])


EXPERIMENTS = {"winners": winners}
