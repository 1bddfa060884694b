# SPDX-License-Identifier: Apache-2.0
"""A worker of training.sh: trains small models in all the ways that people do, and compares with one process on the joint
batch. Each worker makes the same numbers from the same seeds, and takes its part of each batch."""
import json
import sys

import torch
import torch.distributed
import torch.nn.functional as F

import made_up
import reckon
import reckon.record

WORKERS, SAMPLES = 2, 4
ON_GPU = False
TOLERANCE = 1e-6  # of the greatest element of a tensor: rounding of fp32 sums in another order


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.GroupNorm(2, 8), torch.nn.ReLU(),
                                        torch.nn.Conv2d(8, 16, 3, stride=2), torch.nn.GroupNorm(4, 16), torch.nn.ReLU(),
                                        torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten())
        self.head = torch.nn.Linear(16, 10)

    def forward(self, samples):
        return self.head(self.body(samples))


class Odd(torch.nn.Module):
    """A tied weight, a layer that only the first part of a batch uses, and one that nothing uses."""

    def __init__(self):
        super().__init__()
        self.embed = torch.nn.Embedding(20, 8)
        self.first = torch.nn.Linear(8, 8)
        self.idle = torch.nn.Linear(3, 3)
        self.head = torch.nn.Linear(8, 20, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, ids, part):
        x = self.embed(ids)
        return self.head(torch.tanh(self.first(x)) if part == 0 else x)


def batch(step, part):
    """Of one worker (part) or of all (None)."""
    generator = torch.Generator().manual_seed(step)
    samples = torch.randn(WORKERS * SAMPLES, 3, 12, 12, generator=generator)
    labels = torch.randint(10, (WORKERS * SAMPLES,), generator=generator)
    here = slice(None) if part is None else slice(part * SAMPLES, (part + 1) * SAMPLES)
    return samples[here], labels[here]


def require_equal(what, model, reference):
    for (name, p), q in zip(model.named_parameters(), reference.parameters()):
        p, q = p.detach(), q.detach()
        difference = float((p - q).abs().max() / q.abs().max())
        assert difference <= TOLERANCE, f"{what}: {name} differs by {difference:.3g} of its greatest element"


def built(kind):
    torch.manual_seed(7)
    model = kind()
    return model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


def mean_over_workers(loss):
    total = loss.detach().clone()
    torch.distributed.all_reduce(total)
    return float(total / WORKERS)


def train(what, job, model, steps):
    """model(samples) and its parameters against Net in one process; steps: what to do in each."""
    bare = getattr(model, "module", model)
    optimizer = torch.optim.SGD(bare.parameters(), lr=0.1, momentum=0.9)
    reference, reference_optimizer = built(Net)
    for number, mode in enumerate(steps):
        what_step = f"{what}, step {number} ({mode})"
        optimizer.zero_grad(set_to_none=mode == "none")
        reference_optimizer.zero_grad()
        samples, labels = batch(number, job.rank)
        if mode == "accumulate":
            with (job if model is bare else model).no_sync():
                F.cross_entropy(model(samples), labels).backward()
        if mode == "evaluate" and job.rank == 0:
            with torch.no_grad():
                for _ in range(20):
                    model(samples)
        loss = F.cross_entropy(model(samples), labels)
        loss.backward()
        if model is bare:
            job.wait()
            assert all(p.grad is not None for p in model.parameters()), what_step
        optimizer.step()

        joint_samples, joint_labels = batch(number, None)
        for _ in range(2 if mode == "accumulate" else 1):
            joint = F.cross_entropy(reference(joint_samples), joint_labels)
            joint.backward()
        reference_optimizer.step()
        mean = mean_over_workers(loss)
        assert abs(mean - joint.item()) <= TOLERANCE * abs(joint.item()), f"{what_step}: loss {mean}, {joint.item()}"
        require_equal(what_step, bare, reference)


def with_attach():
    with reckon.join("net-plan.json") as job:
        assert job.is_worker and job.workers == WORKERS and job.size == WORKERS + 1, vars(job)
        model, _ = built(Net)
        reckon.attach(model, job)
        memory = None if ON_GPU else [p.grad.data_ptr() for p in model.parameters()]
        train("attach", job, model, ["plain"] * 5 + ["none", "accumulate", "evaluate", "none"])
        if not ON_GPU:
            assert [p.grad.data_ptr() for p in model.parameters()] == memory, "the gradients are no views any more"
        assert "exposed communication" in job.summary() and " ms measured" in job.summary(), job.summary()
        of_plan = job.report()["prediction"]
        assert of_plan["seconds"] >= 0 and of_plan["contention_seconds"] >= 0, of_plan
        # A worker without a batch counts as zeros.
        alone = torch.autograd.grad(F.cross_entropy(model(batch(0, 0)[0]), batch(0, 0)[1]), list(model.parameters()))
        model.zero_grad()
        if job.rank == 0:
            F.cross_entropy(model(batch(0, 0)[0]), batch(0, 0)[1]).backward()
        job.wait()
        for p, gradient in zip(model.parameters(), alone):
            assert torch.allclose(WORKERS * p.grad, gradient, rtol=TOLERANCE, atol=TOLERANCE), (p.grad, gradient)
        last = [p.grad.clone() for p in model.parameters()]
    # After the end the gradients are there, in memory of their own, and the model trains alone.
    assert all(torch.equal(p.grad, grad) for p, grad in zip(model.parameters(), last))
    assert ON_GPU or [p.grad.data_ptr() for p in model.parameters()] != memory
    F.cross_entropy(model(batch(0, 0)[0]), batch(0, 0)[1]).backward()


def with_ddp():
    with reckon.join("net-plan.json") as job:  # a second job in the same process
        model = torch.nn.parallel.DistributedDataParallel(built(Net)[0])
        model.register_comm_hook(model, reckon.ddp_hook(job))
        train("ddp_hook", job, model, ["plain"] * 5 + ["none", "accumulate", "evaluate"])


def with_wire():
    """Gradients that travel as bf16: within the plan's error of the mean, and the same bits everywhere."""
    with reckon.join("wire-plan.json") as job:
        model, _ = built(Net)
        reckon.attach(model, job)
        error = job.report()["wire_error"]
        assert 0.007 < error < 0.008, error  # two roundings of 2^-8
        for number in range(3):
            samples, labels = batch(number, job.rank)
            own = torch.autograd.grad(F.cross_entropy(model(samples), labels), list(model.parameters()))
            model.zero_grad()
            F.cross_entropy(model(samples), labels).backward()
            job.wait()
            rounded = 0
            for p, gradient in zip(model.parameters(), own):
                total, magnitudes = gradient.clone(), gradient.abs()
                torch.distributed.all_reduce(total)
                torch.distributed.all_reduce(magnitudes)
                off = (WORKERS * p.grad - total).abs()
                assert p.grad.dtype == torch.float32 and (off <= error * magnitudes + 1e-30).all(), float((off / magnitudes).max())
                rounded += int((off > 1e-4 * magnitudes).sum())
                theirs = [torch.empty_like(p.grad) for _ in range(WORKERS)]
                torch.distributed.all_gather(theirs, p.grad)
                assert all(torch.equal(one, p.grad) for one in theirs)
            assert rounded > 0, "nothing was rounded"


def with_odd_model():
    with reckon.join("odd-plan.json") as job:
        model, optimizer = built(Odd)
        reference, reference_optimizer = built(Odd)
        reckon.attach(model, job)
        for step in range(5):
            ids = torch.randint(20, (WORKERS, SAMPLES), generator=torch.Generator().manual_seed(step))
            optimizer.zero_grad(set_to_none=step % 2 == 0)
            F.cross_entropy(model(ids[job.rank], job.rank), ids[job.rank]).backward()
            job.wait()
            assert not model.idle.weight.grad.any()
            optimizer.step()
            reference_optimizer.zero_grad()
            sum(F.cross_entropy(reference(ids[part], part), ids[part]) / WORKERS for part in range(WORKERS)).backward()
            reference_optimizer.step()
            require_equal(f"odd, step {step}", model, reference)


def refuses(text, call):
    try:
        call()
    except reckon.ReckonError as error:
        assert text in str(error), f"no '{text}' in: {error}"
        return
    raise AssertionError(f"nothing said '{text}'")


def mistakes():
    job = reckon.join("net-plan.json")
    refuses("the plan has no tensor embed.weight, which the model has", lambda: reckon.attach(built(Odd)[0], job))
    wide = Net()
    wide.head = torch.nn.Linear(16, 11)
    refuses("head.weight has 176 elements of float32 in the model and 160 of float32 in the plan",
            lambda: reckon.attach(wide, job))
    refuses("the model has no parameter with a gradient", lambda: reckon.attach(Net().head.requires_grad_(False), job))
    refuses("is on meta; gradients are summed on processors and on CUDA's GPUs", lambda: reckon.attach(Net().to("meta"), job))
    spread = Net()
    spread.head.to("meta")
    refuses("a job has a model on one device", lambda: reckon.attach(spread, job))
    torch.manual_seed(job.rank)
    refuses("is not the same at all workers", lambda: reckon.attach(Net(), job))
    model, _ = built(Net)
    reckon.attach(model, job)
    refuses("a job has one", lambda: reckon.attach(model, job))
    samples, labels = batch(0, job.rank)
    F.cross_entropy(model(samples), labels).backward()
    refuses("call Job.wait() before Job.leave()", job.leave)
    refuses("the step before is not over", job.begin)
    refuses("run all but the last in `with job.no_sync():`", lambda: F.cross_entropy(model(samples), labels).backward())
    job.wait()
    job.leave()
    job.leave()
    refuses("the job has ended", job.wait)


def record():
    """The workloads, once for all."""
    def net(count):
        return Net(), (batch(0, None)[0][:count],)

    def odd(count):
        return Odd(), (torch.zeros(count, dtype=torch.long), 0)

    for name, build in (("net", net), ("odd", odd)):
        workload, unused = reckon.record.record(build, 2, warm_up=0, iterations=1, name=name)
        tensors = [(t["name"], t["elements"]) for t in workload["tensors"]]
        tensors += [(u, dict(build(2)[0].named_parameters())[u].numel()) for u in unused]
        with open(f"{name}.csv", "w") as file:
            file.write("name,elements\n" + "".join(f"{tensor},{elements}\n" for tensor, elements in tensors))


def use_made_up_gpu():
    """What is on the processor counts as on the GPU."""
    global ON_GPU
    ON_GPU = True
    stream, synchronize = made_up.use()
    gpu = reckon._gpu
    gpu.device_of = lambda parameters: torch.device("cuda", 0)
    gpu.stream_of = lambda device: stream
    wait_on_stream = gpu.Gpu.wait

    def wait(self):
        wait_on_stream(self)
        synchronize()

    gpu.Gpu.wait = wait


if __name__ == "__main__":
    torch.set_num_threads(1)
    if sys.argv[1] == "record":
        record()
    else:
        torch.distributed.init_process_group("gloo")  # has taken RANK and WORLD_SIZE
        scenarios = [with_attach, with_ddp, with_odd_model, with_wire]
        if sys.argv[1] == "on-gpu":
            use_made_up_gpu()
        else:
            scenarios.append(mistakes)
        for scenario in scenarios:
            scenario()
            print(scenario.__name__, flush=True)
