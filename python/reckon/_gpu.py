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


def use(job, device):
    """Gradients may be on this GPU from now on; between two steps."""
    job._call("reckon_use_gpu", 0 if device.index is None else device.index)


class Gpu:
    """The GPU of a job: what attach() and ddp_hook() do with gradients there."""

    def __init__(self, job, device):
        self.job, self.device, self.held = job, device, {}
        use(job, device)
        job._on_gpu = self

    def ready(self, index, gradient):
        """`gradient`, whose elements lie one after another, is what this thread's stream has been told to make."""
        if is_capturing():
            raise ReckonError("a CUDA graph is being captured: its replays would send no gradients. Capture the forward and "
                              "backward passes without the job, or train without graphs")
        self.held[index] = gradient  # until it has its sum
        self.job.ready_on_stream(index, gradient, stream_of(self.device))

    def wait(self):
        """This thread's stream goes on when the sums are there; the thread does so now."""
        self.job._call("reckon_wait_on_stream", stream_of(self.device))
        self.held.clear()  # what takes their memory now is queued behind the sums


class Side:
    """A stream beside the program's: as a context, PyTorch queues in it."""

    def __init__(self, device):
        import torch

        self.stream = torch.cuda.Stream(device)
        self.address = self.stream.cuda_stream

    def __enter__(self):
        import torch

        self.context = torch.cuda.stream(self.stream)
        self.context.__enter__()

    def __exit__(self, *error):
        self.context.__exit__(*error)

    def after(self, mark):
        self.stream.wait_event(mark)

    def keep(self, tensor):
        """Its memory is not given away before what is queued here so far is over."""
        tensor.record_stream(self.stream)

    def follow(self, job):
        """Goes on when the sums that job has waited for are in the GPU's memory."""
        job._call("reckon_follow_on_stream", self.address)


def is_on_gpu(tensor):
    return tensor.device.type == "cuda"


def mark_of(device):
    """Of all that this thread has queued on the GPU so far."""
    import torch

    return torch.cuda.current_stream(device).record_event()


def future_on(device):
    """A future whose result is used on the GPU when what its setter has queued there is over."""
    import torch

    return torch.futures.Future(devices=[device])
