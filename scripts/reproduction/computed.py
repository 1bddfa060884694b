# SPDX-License-Identifier: Apache-2.0
"""What experiments share that need no cluster: plans, simulations of them, documents, plots. Same input, same bytes."""

import json
import subprocess

from reproduction.lab import RECKON, call, die

# reckon-sim's exit status of a simulation whose prediction missed the tolerance: not an error here.
DIFFERS = (0, 1)


def need_build():
    if not RECKON.exists():
        die("there is no release build; scripts/quickstart makes it", 3)


def solve(*arguments):
    return json.loads(call(RECKON, "solve", *arguments, "--json"))


def plan(folder, profile, model, workers, servers, strategy, *more):
    """The plan's file and the plan."""
    path = folder / "plan.json"
    call(RECKON, "plan", "--profile", profile, "--workload", model, "--workers", workers, "--servers", servers, "--strategy",
         strategy, "-o", path, *more)
    return path, json.loads(path.read_text())


def simulate(path, profile, *more, timeout=900):
    """The report of a simulation on the links of a profile; None and why, where it is refused."""
    done = subprocess.run([str(a) for a in (RECKON, "simulate", path, "--profile", profile, "--json", *more)], text=True, capture_output=True,
                          timeout=timeout)
    if done.returncode in DIFFERS:
        return json.loads(done.stdout), ""
    if done.returncode == 2:
        return None, done.stderr.strip()
    die(f"reckon simulate {path}\n{done.stderr}exit code {done.returncode}", 4)


def one_tensor(folder, model_bytes):
    path = folder / "one-tensor.json"
    path.write_text(json.dumps({
        "schema": "reckon/workload", "schema_version": 1, "name": "one tensor", "dtype": "fp32",
        "provenance": "scripts/reproduce", "tensors": [{"name": "gradient", "elements": model_bytes // 4}]}))
    return path


def milliseconds(seconds, digits=4):
    if seconds is None:
        return "-"
    value = 1e3 * seconds
    return f"{value:.0f}" if value >= 10 ** (digits - 1) else f"{value:.{digits}g}"


def gigabits(model_bytes, seconds):
    """Goodput M / t."""
    return 8e-9 * model_bytes / seconds


def plot(folder, name, settings, curves, width=1000, height=600):
    """Curves of (title, gnuplot style, [(x, y), ...])."""
    script = [f'set terminal pngcairo noenhanced size {width},{height} font "Liberation Sans,11"', f'set output "{folder}/{name}.png"',
              "set grid", *settings]
    for number, (_, _, points) in enumerate(curves):
        script += [f"$d{number} << E", *(f"{x:g} {y:.6g}" for x, y in points), "E"]
    script.append("plot " + ", \\\n  ".join(f'$d{i} with {style} title "{title}"'
                                              for i, (title, style, _) in enumerate(curves)))
    call("gnuplot", input="\n".join(script) + "\n")
