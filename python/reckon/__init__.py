# SPDX-License-Identifier: Apache-2.0
"""Trains PyTorch models with their gradients summed by a plan of `reckon plan`.

    job = reckon.join("plan.json")     this process becomes a rank of the plan
    reckon.attach(model, job)          gradients lie in the plan's memory and travel during the backward pass
    ...
        loss.backward()
        job.wait()                     now each gradient is the mean over all workers
        optimizer.step()
    ...
    job.leave()

A rank that only sums is `python3 -m reckon plan.json`. `reckon.record` makes a workload of a model. docs/training.md has
the whole way.
"""
from ._job import Job, ReckonError, Work, join, serve
from ._training import attach, ddp_hook

__version__ = "0.1.0"
__all__ = ["Job", "ReckonError", "Work", "attach", "ddp_hook", "join", "record", "serve"]
