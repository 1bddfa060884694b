#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times clean builds without a compiler cache: scripts/bench build [TARGET...], of program, tests and sanitized.

program    the release build of what scripts/quickstart builds
tests      the release build of program and all tests
sanitized  the sanitized build of unit and property tests
"""

import os
import pathlib
import shutil
import subprocess
import sys
import time

k_builds = {
    "program": ("release", ["installed"]),
    "tests": ("release", ["code-tests", "program-tests"]),
    "sanitized": ("asan-ubsan", ["code-tests"]),
}
k_slowest = 10


def job_seconds(log):
    """(seconds, output) of each job of a build."""
    seconds = {}
    for line in log.read_text(encoding="utf-8").splitlines()[1:]:
        begin, end, _, output, _ = line.split("\t")
        seconds[output] = (int(end) - int(begin)) / 1000
    return sorted(((time, output) for output, time in seconds.items()), reverse=True)


def main():
    wanted = sys.argv[1:] or list(k_builds)
    for name in wanted:
        if name not in k_builds:
            sys.exit(f"bench: there is no build '{name}'; use {', '.join(k_builds)}")
    environment = os.environ | {"CCACHE_DISABLE": "1"}
    for name in wanted:
        preset, targets = k_builds[name]
        folder = pathlib.Path("build") / f"bench-{name}"
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run(["cmake", "--preset", preset, "-B", str(folder), "-DBUILD_TESTING=ON", "-DRECKON_CCACHE=OFF"], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        begin = time.monotonic()
        subprocess.run(["ninja", "-C", str(folder), "-j", str(os.cpu_count()), "--quiet", *targets], check=True, env=environment)
        wall = time.monotonic() - begin
        jobs = job_seconds(folder / ".ninja_log")
        print(f"{name}: {wall:.0f} s with {os.cpu_count()} jobs at a time, {sum(s for s, _ in jobs):.0f} job-seconds"
              f" in {len(jobs)} jobs; slowest:")
        for seconds, output in jobs[:k_slowest]:
            print(f"  {seconds:6.1f} s  {output.replace('/CMakeFiles', '')}")
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
