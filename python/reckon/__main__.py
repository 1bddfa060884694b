# SPDX-License-Identifier: Apache-2.0
"""python3 -m reckon PLAN: a rank that only sums, until the workers leave."""
import argparse
import sys

from ._job import ReckonError, serve


def main():
    parser = argparse.ArgumentParser(prog="python3 -m reckon", description=__doc__.split(": ", 1)[1])
    parser.add_argument("plan", help="file of `reckon plan`")
    parser.add_argument("--workload", help="the plan's workload: a file or a shipped name (default: beside the plan)")
    parser.add_argument("--transport", help="as `reckon run --transport` (default: the plan's)")
    parser.add_argument("--join-seconds", type=float, default=60, help="how long to wait for the others (default 60)")
    options = parser.parse_args()
    try:
        serve(options.plan, workload=options.workload, transport=options.transport, join_seconds=options.join_seconds)
    except ReckonError as error:
        print(f"reckon: error: {error}", file=sys.stderr)
        return error.status if error.status in (2, 3, 70) else 4
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
