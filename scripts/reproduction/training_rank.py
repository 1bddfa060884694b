# SPDX-License-Identifier: Apache-2.0
"""One process of scripts/reproduce training: a worker that trains a model in one mode after the other, a server of their
plans, or the one process that trains on the joint batch. `training_rank.py JOB.json` with the rank in RECKON_RANK; the
models are here too, for reckon.record."""

import contextlib
import json
import os
import pathlib
import signal
import sys
import time

import torch
import torch.distributed
import torch.nn.functional as F
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_hook

import reckon
import reckon.torch

CLASSES, WORDS, TOKENS = 100, 2000, 16
RATE = 1e-4  # of SGD: at 0.01 ResNet-18 makes differences of 1e-7, of sums in another order, to 1e-4 within five steps


class Transformer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(WORDS, 256)
        layer = torch.nn.TransformerEncoderLayer(256, 4, 1024, dropout=0.0, batch_first=True, norm_first=True)
        self.layers = torch.nn.TransformerEncoder(layer, 6)
        self.head = torch.nn.Linear(256, WORDS)

    def forward(self, words):
        return self.head(self.layers(self.embed(words))).flatten(0, 1)


def resnet18_model():
    import torchvision  # only where it is trained

    return torchvision.models.resnet18(num_classes=CLASSES, norm_layer=lambda channels: torch.nn.GroupNorm(32, channels))


def resnet18_data(batch, generator):
    return (torch.randn(batch, 3, 64, 64, generator=generator), torch.randint(CLASSES, (batch,), generator=generator))


def transformer_data(batch, generator):
    words = torch.randint(WORDS, (batch, TOKENS), generator=generator)
    return words, words.roll(-1, 1).flatten()


class Nap(torch.autograd.Function):
    """A pass of a device of its own, which hardly needs the processor."""

    @staticmethod
    def forward(context, samples):
        time.sleep(0.01)
        return samples.view_as(samples)

    @staticmethod
    def backward(context, gradients):
        time.sleep(0.02)
        return gradients


class Naps(torch.nn.Module):
    """Layers of 4 MiB whose passes take the time of a device of their own: workers on the processors of one computer do not slow
    each other down."""

    def __init__(self):
        super().__init__()
        self.weights = torch.nn.ParameterList(torch.nn.Parameter(torch.randn(1024, 1024) / 100) for _ in range(11))

    def forward(self, samples):
        for weight in self.weights:
            samples = Nap.apply(samples + weight[0, :CLASSES])
        return samples


def naps_data(batch, generator):
    return torch.randn(batch, CLASSES, generator=generator), torch.randint(CLASSES, (batch,), generator=generator)


MODELS = {"resnet18": (resnet18_model, resnet18_data), "transformer": (Transformer, transformer_data),
          "naps": (Naps, naps_data)}


def recorded(name, batch):
    make, data = MODELS[name]
    samples, labels = data(batch, torch.Generator().manual_seed(0))
    return make(), (samples,), lambda output: F.cross_entropy(output, labels)


def resnet18(batch):
    return recorded("resnet18", batch)


def transformer(batch):
    return recorded("transformer", batch)


def naps(batch):
    return recorded("naps", batch)


def data_of(job, step, rank):
    """A worker's part of a step's batch."""
    return MODELS[job["model"]][1](job["batch"], torch.Generator().manual_seed(1000 * step + rank))


def built(job):
    torch.manual_seed(7)
    model = MODELS[job["model"]][0]()
    return model, torch.optim.SGD(model.parameters(), lr=RATE)


def joint(job):
    """The losses of one process that trains on the batches of all workers together."""
    model, optimizer = built(job)
    losses = []
    for step in range(job["steps"]):
        samples, labels = (torch.cat(parts) for parts in zip(*(data_of(job, step, r) for r in range(job["workers"]))))
        optimizer.zero_grad()
        loss = F.cross_entropy(model(samples), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


class Ready:
    """When the latest gradient was there, and how many were since clear(); `at(count)` is called with each."""

    def __init__(self, parameters, at):
        self.time, self.count, self.at, self.nodes = 0.0, 0, at, []
        for parameter in parameters:
            node = parameter.expand_as(parameter).grad_fn.next_functions[0][0]
            node.register_hook(self.note)
            self.nodes.append(node)  # its hook goes with it

    def note(self, *_):
        self.time, self.count = time.perf_counter(), self.count + 1
        self.at(self.count)


ATTACHED = ("after", "overlapped", "wire")  # modes


def train(job, mode, rank, over):
    """Steps of a worker in a mode; over: its job of a plan, its group of processes, or None. For each step when it began, when the last gradient was
    ready and when the sums were there, on the clock that all processes of a computer share; and the loss."""
    model, optimizer = built(job)
    tensors = sum(1 for _ in model.parameters())
    step = 0

    def die(count):
        if job.get("dies") == [rank, step] and count == tensors // 2:
            write(job, rank, {"ended": time.perf_counter(), "said": ""})
            os.kill(os.getpid(), signal.SIGKILL)

    ready = Ready(model.parameters(), die)  # before all other hooks, so that these do not delay it
    run = model
    if mode in ("ddp", "ddp_fp16", "hook"):
        run = torch.nn.parallel.DistributedDataParallel(model)
    if mode == "ddp_fp16":
        run.register_comm_hook(None, fp16_compress_hook)
    if mode in ("backend", "backend_wire"):
        run = torch.nn.parallel.DistributedDataParallel(model, process_group=over, gradient_as_bucket_view=True)
    if mode == "hook":
        run.register_comm_hook(run, reckon.ddp_hook(over))
    if mode in ATTACHED:
        reckon.attach(model, over)
    rows = []
    for step in range(job["steps"]):
        samples, labels = data_of(job, step, rank)
        optimizer.zero_grad(set_to_none=False)
        ready.count = 0
        torch.distributed.barrier()
        begin = time.perf_counter()
        loss = F.cross_entropy(run(samples), labels)
        with over.no_sync() if mode == "after" else contextlib.nullcontext():
            loss.backward()
        if mode in ATTACHED:
            over.wait()
        rows.append({"begin": begin, "ready": ready.time, "sums": time.perf_counter(), "loss": loss.item()})
        optimizer.step()
    if mode in ATTACHED:
        rows[-1]["of_these_passes"] = over.report()["prediction"]["of_these_passes_seconds"]
    return rows


@contextlib.contextmanager
def over_plan(mode, plan):
    if mode in ("backend", "backend_wire"):
        os.environ["RECKON_PLAN"] = plan
        group = torch.distributed.new_group(backend="reckon")
        yield group
        group.shutdown()
    elif plan:
        with reckon.join(plan) as over:
            yield over
    else:
        yield None


def work(job, rank):
    address, port = os.environ["RECKON_MASTER_ADDR"], int(os.environ["RECKON_MASTER_PORT"])
    torch.distributed.init_process_group("gloo", init_method=f"tcp://{address}:{port + 1}", rank=rank,
                                         world_size=job["workers"])
    results = {}
    for mode, plan in job["modes"]:
        with over_plan(mode, plan) as over:
            results[mode] = train(job, mode, rank, over)
        if rank == 0:
            print(f"  {mode}: {results[mode][-1]['sums'] - results[mode][-1]['begin']:.3f} s the last step", flush=True)
    torch.distributed.barrier()
    return results


def write(job, rank, document):
    (pathlib.Path(job["folder"]) / f"rank-{rank}.json").write_text(json.dumps(document))


def main():
    torch.set_num_threads(1)
    job = json.loads(pathlib.Path(sys.argv[1]).read_text())
    rank = int(os.environ["RECKON_RANK"])
    try:
        if job["modes"] == "joint":
            result = joint(job)
        elif rank < job["workers"]:
            result = work(job, rank)
        else:
            result = [reckon.serve(plan) for _, plan in job["modes"] if plan]
    except reckon.ReckonError as error:
        write(job, rank, {"ended": time.perf_counter(), "said": str(error)})
        print(error, file=sys.stderr)
        return 4
    write(job, rank, result)
    return 0


if __name__ == "__main__":
    sys.exit(main())
