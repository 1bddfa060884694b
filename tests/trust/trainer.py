# SPDX-License-Identifier: Apache-2.0
"""A rank of a training job, for faults and soak: trainer.py PLAN [STEPS], by the launcher's variables.

Gradients are whole numbers, so that each step's sums must be right to the bit. Says what it comes to on standard output, a
line each: joined, step N (the first ones and each hundredth), hanging, right N (all steps were). RECKON_TRAINER_HANG=N: in
step N this rank computes for ever, and the others give up after RECKON_TRAINER_WAIT seconds. RECKON_TRAINER_LATE=P: it comes
up to 20 ms late to so many steps. RECKON_TRAINER_MINUTES: instead of STEPS; worker 0's clock decides.

Exit status: 0; 1 a sum was wrong; 4 the job failed; 130 interrupted."""
import os
import random
import struct
import sys
import time

import reckon

PATTERNS = 8  # the gradient of a step is one of so many
LAST = -1.0   # in place of worker 0's first number: the time is over


def say(text):
    print(text, flush=True)


def pattern(elements, step, factor):
    period = struct.pack(f"{PATTERNS}f", *[factor * ((step + i) % PATTERNS) for i in range(PATTERNS)])
    return (period * (elements // PATTERNS + 1))[:4 * elements]


def train(job, steps):
    elements = len(job.memory()) // 4
    own = [pattern(elements, step, job.rank + 1) for step in range(PATTERNS)]
    sums = [pattern(elements, step, job.workers * (job.workers + 1) / 2) for step in range(PATTERNS)]
    memory = memoryview(job.memory()).cast("B")
    hang, wait = int(os.environ.get("RECKON_TRAINER_HANG", -1)), float(os.environ.get("RECKON_TRAINER_WAIT", 0)) or None
    late = float(os.environ.get("RECKON_TRAINER_LATE", 0))
    end = time.monotonic() + 60 * float(os.environ.get("RECKON_TRAINER_MINUTES", 0)) if steps is None else None
    chance, step = random.Random(job.rank), 0
    while step != steps:
        job.begin()
        memory[:] = own[step % PATTERNS]
        over = end is not None and job.rank == 0 and time.monotonic() > end
        if over:
            memory[:4] = struct.pack("f", LAST)
        if step == hang:
            say("hanging")
            while True:
                pass
        if chance.random() < late:
            time.sleep(chance.uniform(0, 0.02))
        job.wait(timeout=wait)
        right = sums[step % PATTERNS]
        first, = struct.unpack("f", right[:4])
        if end is not None and struct.unpack("f", memory[:4]) == (first - step % PATTERNS + LAST,):
            steps, memory[:4] = step + 1, right[:4]  # all workers see it in the same step
        if memory != right:
            job.abandon(f"wrong sums in step {step}")
            say(f"wrong sums in step {step}")
            sys.exit(1)
        if step < 5 or step % 100 == 0:
            say(f"step {step}")
        step += 1
    say(f"right {step}")


def main():
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else None
    try:
        with reckon.join(sys.argv[1], average=False, by_parts=True, join_seconds=15, peer_seconds=5) as job:
            say("joined")
            if job.is_worker:
                train(job, steps)
            else:
                reckon.serve(job)
            say("leaving")
    except (reckon.ReckonError, MemoryError, OSError) as error:
        print(f"reckon: error: {error or type(error).__name__}", file=sys.stderr)
        sys.exit(4)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
