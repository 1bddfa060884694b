# SPDX-License-Identifier: Apache-2.0
"""Prediction against measurement where packets take long: clusters with delays of up to 20 ms a port."""

import json
import random
import statistics

from reproduction.lab import Lab, build, measure, own_bound, percent, plan, probe, say, workload
from reproduction.pages import ERRORS, Page, error_row, grouped, number, publish

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


def cells(row, seed):
    return {"campaign": f"seed {seed}", "lab": row["lab"], "workers": row["workers"], "servers": row["servers"],
            "rates_Mbit_per_s": numbers(row["rates"]), "delays_ms": numbers(row["delays"]), "strategy": row["strategy"],
            "chosen": row["taken"], "gradient_bytes": row["bytes"], "part_bytes": row["part_bytes"],
            "window_parts": row["window_parts"], "bound_s": row["bound"], "predicted_s": row["predicted"],
            "measured_s": row["measured"], "error_percent": 100 * row["error"], "cause": cause(row),
            "samples_s": " ".join(f"{s:.3f}" for s in row["samples"])}


def summary(tables):
    rows = []
    for (campaign,), some in grouped(tables[""], "campaign").items():
        least = min(number(r, "measured_s") / number(r, "bound_s") for r in some)
        rows.append((campaign, len({r["lab"] for r in some}), *error_row("", some, "predicted_s", "measured_s")[1:], f"{least:.3f}"))
    return ("clusters drawn by", "clusters", *ERRORS[1:], "least measured/bound"), rows


PAGE = Page("long-delay-links", ("",), summary)


def long_delay_links(arguments, folder):
    build(False)
    first, last = 0, arguments.labs - 1
    if arguments.only:
        first, last = (int(n) for n in arguments.only.split("-"))
    for order in range(first, last + 1):
        say(f"lab {order}: {lab_of(order, arguments.seed)}")
        own = folder / f"lab-{order}"
        own.mkdir(exist_ok=True)
        (folder / f"lab-{order}.json").write_text(json.dumps(run_lab(lab_of(order, arguments.seed), own), indent=1))
    rows = [r for path in folder.glob("lab-*.json") for r in json.loads(path.read_text())]
    publish(PAGE, {"": [cells(r, arguments.seed) for r in sorted(rows, key=lambda r: r["lab"])]}, folder)


EXPERIMENTS = {"long-delay-links": long_delay_links}
