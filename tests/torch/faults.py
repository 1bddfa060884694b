# SPDX-License-Identifier: Apache-2.0
"""A worker of training_faults.sh: WHAT happens in the second step. Prints what it comes to, a line each."""
import os
import signal
import sys
import time

import torch

import reckon

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background processes ignore it
torch.set_num_threads(1)
torch.manual_seed(1)
what = sys.argv[1]


def say(text):
    print(text, flush=True)


def until(file):
    while not os.path.exists(file):
        time.sleep(0.02)


def step(model, job):
    model(torch.ones(2, 3)).sum().backward()
    job.wait()


with reckon.join("plan.json") as job:
    model = torch.nn.Linear(3, 2)
    reckon.attach(model, job)
    step(model, job)
    say("trained")
    if what == "raises" and job.rank == 1:
        raise ValueError("sample 17 is empty")
    if what == "dies" and job.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    if what == "late" and job.rank == 1:
        until("go")
    if what == "late" and job.rank == 0:
        model(torch.ones(2, 3)).sum().backward()
        try:
            job.wait(timeout=0.3)
        except reckon.ReckonError as error:
            assert error.status == 1 and "another worker has not begun" in str(error), error
            say("timed out")
            open("go", "w").close()
        job.wait()
        sys.exit(job.leave())
    if what == "interrupted" and job.rank == 1:
        until("go")
    try:
        if what == "interrupted" and job.rank == 0:
            model(torch.ones(2, 3)).sum().backward()
            say("waiting")
            job.wait()
        step(model, job)
    except reckon.ReckonError as error:
        say(f"{error.status} {error}")
        job.leave()  # is nothing to an ended job
        sys.exit(4)
