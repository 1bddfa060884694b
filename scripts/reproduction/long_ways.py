# SPDX-License-Identifier: Apache-2.0
"""Prediction against measurement where packets take long: clusters with delays of up to 20 ms a port."""

import json
import math
import random
import statistics

from reproduction.lab import Lab, build, measure, own_bound, percent, plan, probe, say, size, table, workload

SPEEDS = (50, 100, 200, 300, 500)  # Mbit/s
DELAYS = (0, 1, 2, 5, 10, 15, 20)  # ms, of a port: between two machines the sum of both
BYTES = {50: 4 << 20, 100: 8 << 20, 200: 16 << 20, 300: 16 << 20, 500: 32 << 20}  # by the slowest port
MOST = 1200  # Mbit/s of all ports of a lab together: every byte passes this computer's processors several times
PAYLOAD = 1448 / 1514 / 8 * 1e6  # bytes/s that TCP carries at 1 Mbit/s


def lab_of(number, seed):
    """The same for a number and a seed, whatever else is measured."""
    chance = random.Random(f"{seed} {number}")
    workers, servers = chance.choice(((2, 1), (3, 0), (3, 1), (2, 2), (4, 0), (3, 2), (4, 2), (3, 3)))
    machines = workers + servers
    rates, delays = [MOST] * machines, [chance.choice(DELAYS)] * machines
    if number % 2 == 1:
        delays = [chance.choice(DELAYS) for _ in range(machines)]
    while sum(rates) > MOST:
        rates = [chance.choice(SPEEDS[1:]) for _ in rates] if number % 3 == 2 else [chance.choice(SPEEDS)] * machines
    plans = [(chance.choice(("ring", "ps_colocated")), 0), ("auto", servers)]
    if servers > 0:
        plans += [(chance.choice(("ps_noncolocated", "byteps_split")), servers)]
    return {"lab": number, "workers": workers, "servers": servers, "rates": rates, "delays": delays, "plans": plans}


def run_lab(lab, folder):
    rows = []
    model_bytes = BYTES[min(lab["rates"])]
    with Lab(lab["workers"], lab["servers"], [f"{r}mbit" for r in lab["rates"]],
             [f"{d}ms" for d in lab["delays"]]) as cluster:
        profile = probe(cluster, folder, "30s")
        document = json.loads(profile.read_text())
        ports = {c["from"]: c["p50"] for c in document["cells"] if c["case"] == "port_bandwidth" and c.get("p50")}
        seen = [ports.get(m["id"], 0) for m in document["machines"] for _ in range(m["count"])]
        shares = [s / (r * PAYLOAD) for s, r in zip(seen, lab["rates"])]
        model = workload(folder, model_bytes)
        for strategy, servers in lab["plans"]:
            path, made = plan(folder, profile, model, lab["workers"], servers, strategy)
            seconds = measure(cluster, folder, path, lab["workers"] + servers, 3)
            predicted = made["prediction"]["mid_seconds"]
            rows.append({**lab, "bytes": model_bytes, "strategy": strategy, "taken": made["strategy"],
                         "part_bytes": made["part_bytes"], "window_parts": made["window_parts"],
                         "bound": own_bound(made), "predicted": predicted, "samples": seconds,
                         "measured": statistics.median(seconds), "error": statistics.median(seconds) / predicted - 1,
                         "ports": [min(shares), max(shares)]})
            say(f"lab {lab['lab']}: {strategy}: predicted {predicted:.3f} measured {rows[-1]['measured']:.3f} error "
                f"{percent(rows[-1]['error'])}, {rows[-1]['measured'] / rows[-1]['bound']:.3f} of the bound")
    return rows


def cause(row):
    """What of the figures explains a row's error, the most certain first."""
    low, high = row["ports"]
    spread = (max(row["samples"]) - min(row["samples"])) / row["measured"]
    if low < 0.97 or high > 1.03:
        return f"ports were probed at {100 * low:.0f} to {100 * high:.0f} % of what their links carry"
    if spread > abs(row["error"]):
        return f"iterations differ by {100 * spread:.0f} %"
    return "ports were probed right and iterations agree: " + (
        "waiting that the play does not have" if row["error"] > 0 else "less waiting than the play has")


def numbers(values):
    return f"{values[0]}" if len(set(values)) == 1 else " ".join(str(v) for v in values)


def write_page(folder, rows, seed):
    errors = sorted(abs(r["error"]) for r in rows)
    def at(q):
        return errors[min(len(errors) - 1, math.ceil(q * len(errors)) - 1)]
    def cells(some):
        return [(r["lab"], f"{r['workers']}+{r['servers']}", numbers(r["rates"]), numbers(r["delays"]),
                 r["strategy"] + (f" ({r['taken']})" if r["taken"] != r["strategy"] else ""), size(r["bytes"]),
                 f"{size(r['part_bytes'])} x {r['window_parts']}", f"{r['bound']:.3f}", f"{r['predicted']:.3f}",
                 f"{r['measured']:.3f}", percent(r["error"]), f"{r['measured'] / r['bound']:.3f}") for r in some]
    heads = ("lab", "machines", "Mbit/s", "delay ms", "strategy", "M", "part x window", "bound s", "predicted s",
             "measured s", "error", "measured/bound")
    worst = sorted(rows, key=lambda r: -abs(r["error"]))[:10]
    below = [r for r in rows if r["measured"] < 0.99 * r["bound"]]
    labs = len({r["lab"] for r in rows})
    text = "\n".join([
        "# Long ways on netlab", "",
        f"{labs} clusters of 3 to 6 machines with ports of {SPEEDS[0]} to {SPEEDS[-1]} Mbit/s, equal and unequal, each with a "
        f"delay of 0 to {DELAYS[-1]} ms, equal and unequal: between two machines a packet takes the sum of both, and as "
        f"long back. Each was probed (--time 30s), planned for and run, {len(rows)} plans in all; medians of 3 "
        "iterations, every sum checked. Two clusters at a time on a virtual machine with two processors.", "",
        f"**Error of the prediction, without its sign: median {100 * at(0.5):.1f} %, 95 % of all at most {100 * at(0.95):.1f} %, greatest "
        f"{100 * errors[-1]:.1f} %.** Mean error with its sign {percent(statistics.mean(r['error'] for r in rows))}. "
        + (f"{len(below)} of {len(rows)} were measured more than 1 % below their bound." if below else
           "None was measured more than 1 % below its bound."), "",
        table(("error at most", "plans"), [(f"{limit} %", sum(e <= limit / 100 for e in errors))
                                           for limit in (1, 2, 3, 4, 6, 10, 20)]), "",
        "The worst ten, and what explains them:", "",
        table((*heads, "cause"), [(*c, cause(r)) for c, r in zip(cells(worst), worst)]), "",
        "All of them:", "", table(heads, cells(sorted(rows, key=lambda r: r["lab"]))), "",
        f"To repeat: `sudo scripts/reproduce long-ways --labs {labs} --seed {seed}`; `--only 10-19` measures these labs, and the "
        "page is of all that have been measured."])
    (folder / "long-ways.md").write_text(text + "\n")
    print(text)


def long_ways(arguments, folder):
    build(False)
    first, last = 0, arguments.labs - 1
    if arguments.only:
        first, last = (int(n) for n in arguments.only.split("-"))
    for number in range(first, last + 1):
        say(f"lab {number}: {lab_of(number, arguments.seed)}")
        own = folder / f"lab-{number}"
        own.mkdir(exist_ok=True)
        (folder / f"lab-{number}.json").write_text(json.dumps(run_lab(lab_of(number, arguments.seed), own), indent=1))
    rows = [r for path in sorted(folder.glob("lab-*.json")) for r in json.loads(path.read_text())]
    write_page(folder, rows, arguments.seed)


EXPERIMENTS = {"long-ways": long_ways}
