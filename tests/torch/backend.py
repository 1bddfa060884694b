# SPDX-License-Identifier: Apache-2.0
"""A worker of backend.sh: a program of torch.distributed, which knows nothing of plans but the name of the back end."""
import os
import sys
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel

import made_up
import reckon.torch

WORKERS = 2
STEPS = 6


def numbers(count, rank, seed):
    """Whole numbers, whose sums are exact."""
    generator = torch.Generator().manual_seed(1000 * seed + rank)
    return torch.randint(-1000, 1000, (count,), generator=generator).float()


def expect_sum(tensor, seed, count):
    expected = sum(numbers(count, rank, seed) for rank in range(WORKERS))
    assert torch.equal(tensor, expected), f"{count} elements: {int((tensor != expected).sum())} differ"


def sums(rank):
    """One by one and many at once, shorter and longer than the plan's gradient and its parts."""
    counts = [5000, 70_000, 1, 1_000_000, 16_384, 16_385, 4096, 9_999_999, 3, 65_536]
    for seed, count in enumerate(counts):
        tensor = numbers(count, rank, seed)
        dist.all_reduce(tensor)
        expect_sum(tensor, seed, count)
    for _ in range(3):
        tensors = [numbers(count, rank, seed) for seed, count in enumerate(counts)]
        works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
        for number in (4, 0, 7, 1, 2, 9, 3, 5, 6, 8):
            works[number].wait()
            expect_sum(tensors[number], number, counts[number])


def others(rank):
    """What is no sum of the plan's type."""
    greatest = torch.full((50_000,), float(rank))
    dist.all_reduce(greatest, op=dist.ReduceOp.MAX)
    assert (greatest == WORKERS - 1).all()
    whole = torch.full((50_000,), rank + 1)
    dist.all_reduce(whole)
    assert (whole == 3).all() and whole.dtype == torch.int64
    doubles = torch.full((50_000,), 0.5 + rank, dtype=torch.float64)
    dist.all_reduce(doubles)
    assert (doubles == 2).all()
    turned = numbers(90_000, rank, 5).view(300, 300).t()
    dist.all_reduce(turned)
    assert torch.equal(turned, sum(numbers(90_000, r, 5) for r in range(WORKERS)).view(300, 300).t())
    for count in (50_000, 7):  # over the plan, and over Gloo, which has neither
        mean = numbers(count, rank, 9)
        dist.all_reduce(mean, op=dist.ReduceOp.AVG)
        assert torch.equal(mean, sum(numbers(count, r, 9) for r in range(WORKERS)) / WORKERS)
        whole = [numbers(WORKERS * count, r, 10).view(WORKERS, count) for r in range(WORKERS)]
        mine = torch.empty(count)
        dist.reduce_scatter(mine, list(whole[rank]))
        assert torch.equal(mine, sum(whole)[rank])
        mine.zero_()
        dist._reduce_scatter_base(mine, whole[rank].reshape(-1), op=dist.ReduceOp.AVG, async_op=True).wait()
        assert torch.equal(mine, sum(whole)[rank] / WORKERS)
    given = numbers(50_000, rank, 6)
    dist.broadcast(given, src=1)
    assert torch.equal(given, numbers(50_000, 1, 6))
    gathered = [torch.empty(50_000) for _ in range(WORKERS)]
    dist.all_gather(gathered, numbers(50_000, rank, 7))
    assert all(torch.equal(tensor, numbers(50_000, r, 7)) for r, tensor in enumerate(gathered))
    names = [None] * WORKERS
    dist.all_gather_object(names, f"worker {rank}")
    assert names == ["worker 0", "worker 1"], names
    leaf = numbers(50_000, rank, 8).requires_grad_()
    dist.all_reduce(leaf)
    assert torch.equal(leaf.detach(), sum(numbers(50_000, r, 8) for r in range(WORKERS)))
    some = dist.new_group([0])
    if rank == 0:
        alone = torch.ones(50_000)
        dist.all_reduce(alone, group=some)
        assert (alone == 1).all()
    dist.barrier()


def halves(rank):
    """A plan that was made here, over which fp32 travels as bf16."""
    whole = numbers(50_000, rank, 1)
    dist.all_reduce(whole)
    exact = sum(numbers(50_000, r, 1) for r in range(WORKERS))
    magnitudes = sum(numbers(50_000, r, 1).abs() for r in range(WORKERS))
    off = (whole - exact).abs()
    assert (off <= 0.008 * magnitudes).all() and (off > 0).any(), float((off / magnitudes).max())
    print("bf16", flush=True)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(128, 128) for _ in range(12))
        self.head = torch.nn.Linear(128, 10)

    def forward(self, samples):
        for layer in self.layers:
            samples = torch.relu(layer(samples))
        return self.head(samples)


def train(rank):
    """As one process on the joint batch."""
    torch.manual_seed(3)
    reference = Net()
    torch.manual_seed(3 + rank)  # DistributedDataParallel gives all workers those of the first
    model = DistributedDataParallel(Net(), gradient_as_bucket_view=True, bucket_cap_mb=0.2)
    optimizers = [torch.optim.SGD(m.parameters(), lr=0.05, momentum=0.9) for m in (model, reference)]
    for step in range(STEPS):
        samples, labels = numbers(32 * 128, 0, step).view(32, 128) / 1000, torch.arange(32) % 10
        for optimizer in optimizers:
            optimizer.zero_grad()
        F.cross_entropy(model(samples[rank::WORKERS]), labels[rank::WORKERS]).backward()
        F.cross_entropy(reference(samples), labels).backward()
        for optimizer in optimizers:
            optimizer.step()
        for (name, p), q in zip(model.module.named_parameters(), reference.parameters()):
            assert torch.allclose(p, q, rtol=1e-4, atol=1e-6), f"step {step}: {name} differs by {(p - q).abs().max()}"
    mine = torch.cat([p.detach().view(-1) for p in model.parameters()])
    theirs = [torch.empty_like(mine) for _ in range(WORKERS)]
    dist.all_gather(theirs, mine)
    assert torch.equal(theirs[0], theirs[1])


def use_made_up_gpu():
    """What is on the processor counts as on the GPU."""
    stream, synchronize = made_up.use()
    gpu = reckon._gpu

    class Side:
        address = stream
        used = []

        def __init__(self, device):
            pass

        def __enter__(self):
            pass

        def __exit__(self, *error):
            pass

        def after(self, mark):
            self.used.append("after")

        def keep(self, tensor):
            self.used.append("keep")

        def follow(self, job):
            job._call("reckon_follow_on_stream", self.address)
            synchronize()
            self.used.append("follow")

    gpu.Side = Side
    gpu.is_on_gpu = lambda tensor: True
    gpu.mark_of = lambda device: None
    gpu.future_on = lambda device: torch.futures.Future()
    return Side.used


def main():
    torch.set_num_threads(1)
    used = use_made_up_gpu() if sys.argv[1] == "on-gpu" else None
    options = reckon.torch.Options(plan=os.environ.pop("PLAN_OF_OPTIONS", None), wire="bf16" if sys.argv[1] == "bf16" else None)
    dist.init_process_group("reckon", pg_options=options)
    rank = dist.get_rank()
    if sys.argv[1] == "bf16":
        halves(rank)
        return
    if sys.argv[1] in ("dies", "dies-in-ddp"):
        tensor, model = torch.ones(100_000), DistributedDataParallel(Net())

        def once():
            if sys.argv[1] == "dies":
                dist.all_reduce(tensor)
            else:
                model(torch.ones(4, 128)).sum().backward()

        # DistributedDataParallel lays its buckets out anew after the first step, over Gloo. The other worker may still wait for
        # the third when this one dies: a worker that is done may leave others without its last sums.
        try:
            for step in range(4):
                if rank == 1 and step == 3:
                    os.kill(os.getpid(), 9)
                once()
        except RuntimeError as error:
            print(error, flush=True)
            time.sleep(0.1)
            os._exit(4)
        raise AssertionError("nothing said that a worker is dead")
    for part in (sums, others, train):
        part(rank)
        print(part.__name__, flush=True)
    if used is None:
        dist.destroy_process_group()  # a program may begin again
        os.environ["MASTER_PORT"] = sys.argv[2]
        if "RECKON_WORLD_SIZE" not in os.environ:
            dist.init_process_group("reckon")
            tensor = numbers(50_000, rank, 9)
            dist.all_reduce(tensor)
            expect_sum(tensor, 9, 50_000)
            print("again", flush=True)
    assert used is None or {"after", "keep", "follow"} == set(used), set(used)


if __name__ == "__main__":
    main()
