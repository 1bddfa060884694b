# SPDX-License-Identifier: Apache-2.0
"""Gradients on a GPU: the library copies each part of them to the plan's memory, and its sum back. What is asked of
torch.cuda here is the same in PyTorch 1.13 and 2.9."""
from ._library import ReckonError


def device_of(parameters):
    """The GPU that these named parameters are on; None: they are the processor's."""
    devices = {parameter.device: name for name, parameter in parameters.items()}
    kinds = {device.type for device in devices}
    if kinds <= {"cpu"}:
        return None
    if kinds == {"cuda"} and len(devices) == 1:
        return next(iter(devices))
    (first, one), (second, other) = (list(devices.items()) * 2)[:2]
    if len(devices) == 1:
        raise ReckonError(f"{one} is on {first}; gradients are summed on processors and on CUDA's GPUs")
    raise ReckonError(f"{one} is on {first} and {other} on {second}; a job has a model on one device: start one process for "
                      "each GPU, with a plan of as many workers")


def stream_of(device):
    """The address of CUDA's stream that this thread queues its work in."""
    import torch

    return torch.cuda.current_stream(device).cuda_stream


def is_capturing():
    import torch

    return torch.cuda.is_current_stream_capturing()


class Gpu:
    """The GPU of a job: what attach() and ddp_hook() do with gradients there."""

    def __init__(self, job, device):
        self.job, self.device, self.held = job, device, {}
        job._call("reckon_use_gpu", 0 if device.index is None else device.index)
        job._on_gpu = self

    def ready(self, index, gradient):
        """`gradient`, whose elements lie one after another, is what this thread's stream has been told to make."""
        if is_capturing():
            raise ReckonError("a CUDA graph is being captured: its replays would send no gradients. Capture the forward and "
                              "backward passes without the job, or train without graphs")
        self.held[index] = gradient  # until it has its sum
        self.job._call("reckon_ready_on_stream", index, gradient.data_ptr(), stream_of(self.device))
        self.job._missing.discard(index)

    def wait(self):
        """This thread's stream goes on when the sums are there; the thread does so now."""
        self.job._call("reckon_wait_on_stream", stream_of(self.device))
        self.held.clear()  # what takes their memory now is queued behind the sums
