# SPDX-License-Identifier: Apache-2.0
"""PyTorch's side of a job: gradients that lie in the plan's memory, and the hook for DistributedDataParallel."""
from ._library import ReckonError


def named_tensors(model, job):
    """The model's parameters with a gradient by their names, which must be those of the plan's workload."""
    parameters = {name: p for name, p in model.named_parameters() if p.requires_grad}
    planned = {place.name: place for place in job.tensors}
    remedy = "make the workload again (python3 -m reckon.record), and the plan"
    for name, parameter in parameters.items():
        if name not in planned:
            raise ReckonError(f"the plan has no tensor {name}, which the model has; {remedy}, or freeze it by "
                              "requires_grad_(False)")
        place = planned[name]
        has = (parameter.numel(), str(parameter.dtype).rpartition(".")[2])
        if has != (place.elements, place.dtype):
            raise ReckonError(f"{name} has {has[0]} elements of {has[1]} in the model and {place.elements} of {place.dtype} "
                              f"in the plan; {remedy}")
    missing = [name for name in planned if name not in parameters]
    if missing:
        raise ReckonError(f"the plan has {missing[0]}" + (f" and {len(missing) - 1} more" if len(missing) > 1 else "") +
                          f", of which the model has no parameter with a gradient; {remedy}")
    return parameters


def views_of(job):
    """Each tensor's part of the job's memory, flat, in the plan's order."""
    import torch

    memory = job.memory()
    return [torch.frombuffer(memory, dtype=getattr(torch, place.dtype), count=place.elements, offset=place.offset_bytes)
            for place in job.tensors]


def require_same(parameters, views, job, average_of):
    """All workers must begin with the same parameters: the mean over them is then each one's own."""
    import torch

    work = job.begin()
    for view, parameter in zip(views, parameters):
        view.copy_(parameter.detach().reshape(-1))
    work.wait()
    for place, view, parameter in zip(job.tensors, views, parameters):
        mean, own = view.float() * average_of, parameter.detach().reshape(-1).float()
        allowed = 1e-5 if place.dtype == "float32" else 1e-2
        if not torch.allclose(mean, own, rtol=allowed, atol=allowed * float(own.abs().max())):
            raise ReckonError(f"{place.name} is not the same at all workers; begin with the same seed "
                              "(torch.manual_seed) or the same checkpoint at each")
        view.zero_()


class Attached:
    """The gradients of a model in a job's memory."""

    def __init__(self, model, job):
        import torch

        named = named_tensors(model, job)
        self.job = job
        self.parameters = [named[place.name] for place in job.tensors]
        for place, parameter in zip(job.tensors, self.parameters):
            if parameter.device.type != "cpu":
                raise ReckonError(f"{place.name} is on {parameter.device}, and the plan's memory is the processor's; leave the "
                                  "model there, or use DistributedDataParallel with reckon.ddp_hook(job), which copies")
        flat = views_of(job)
        require_same(self.parameters, flat, job, self.factor())
        self.views = [view.view(parameter.shape) for view, parameter in zip(flat, self.parameters)]
        self.hooks = []
        for index, parameter in enumerate(self.parameters):
            parameter.grad = self.views[index]
            # The node that adds up the parameter's gradient. The hook belongs to it, so it is kept.
            with torch.enable_grad():
                node = parameter.expand_as(parameter).grad_fn.next_functions[0][0]
            self.hooks.append((node, node.register_hook(lambda *_, index=index: self.computed(index))))
        job._before_finish.append(self.fill)
        job._at_end.append(self.detach)

    def factor(self):
        return 1.0 if self.job._average else 1.0 / self.job.workers

    def computed(self, index):
        job = self.job
        if not job._synchronizing:
            return
        if job._work is None:
            job.begin()
        elif index not in job._missing:
            raise ReckonError(f"a second gradient of {job.tensors[index].name} came before Job.wait(). With several backward "
                              "passes a step, run all but the last in `with job.no_sync():`")
        self.place(index)
        job.ready(index)

    def place(self, index):
        """Brings a gradient that is elsewhere (zero_grad(set_to_none=True) lets PyTorch make a new one) to its place."""
        parameter, view = self.parameters[index], self.views[index]
        if parameter.grad is None:
            view.zero_()
        elif parameter.grad.is_sparse:
            raise ReckonError(f"the gradient of {self.job.tensors[index].name} is sparse, and a plan's are not; build the "
                              "embedding with sparse=False")
        elif parameter.grad is not view and parameter.grad.data_ptr() != view.data_ptr():
            view.copy_(parameter.grad.detach())
        parameter.grad = view

    def fill(self, missing):
        for index in missing:
            self.place(index)

    def detach(self):
        for node, hook in self.hooks:
            hook.remove()
        for parameter, view in zip(self.parameters, self.views):
            if parameter.grad is not None and parameter.grad.data_ptr() == view.data_ptr():
                parameter.grad = parameter.grad.detach().clone()
        self.hooks, self.views = [], []


def attach(model, job):
    """From now on a backward pass of `model` sends each gradient on its way as soon as it is there; after Job.wait() the
    gradients are the mean over all workers. They lie in the plan's memory, until the job ends: p.grad are views of it, and
    other views of them must not be used after that.

    The model's parameters that require a gradient must be the plan's tensors, on the processor, and the same at all
    workers, which is checked. Of what has no gradient in a step, this worker's part is zeros. A job has one model.
    Raises ReckonError."""
    if not job.is_worker:
        raise ReckonError(f"rank {job.rank} only sums, and has no model; call reckon.serve(job)")
    if job._before_finish:
        raise ReckonError("a model is attached to this job already; a job has one")
    Attached(model, job)


def ddp_hook(job):
    """The hook that lets DistributedDataParallel sum by the plan, after the last bucket of a backward pass:

        model.register_comm_hook(model, reckon.ddp_hook(job))

    where `model` is the DistributedDataParallel and stands first as well. Gradients are copied to the plan's memory, which
    is the processor's, and back; those of a model on a GPU as well, which nobody has tried yet."""
    import torch

    if not job.is_worker:
        raise ReckonError(f"rank {job.rank} only sums, and has no model; call reckon.serve(job)")
    views, index_of, waiting = views_of(job), {}, []

    def numbers(model, bucket):
        if not index_of:
            if not isinstance(model, torch.nn.parallel.DistributedDataParallel):
                raise ReckonError("register the hook with the DistributedDataParallel itself as its state: "
                                  "model.register_comm_hook(model, reckon.ddp_hook(job))")
            order = {place.name: i for i, place in enumerate(job.tensors)}
            index_of.update({p: order[name] for name, p in named_tensors(model.module, job).items()})
        return [index_of[parameter] for parameter in bucket.parameters()]

    def hook(model, bucket):
        if job._work is None:
            waiting.clear()
            job.begin()
        buffer = bucket.buffer()
        future = torch.futures.Future(devices=[buffer.device] if buffer.is_cuda else None)
        entry = (future, buffer, bucket.gradients(), numbers(model, bucket))
        waiting.append(entry)
        for gradient, index in zip(entry[2], entry[3]):
            views[index].copy_(gradient.reshape(-1))
            job.ready(index)
        if bucket.is_last():
            job._work.wait()
            for done, buffer, gradients, indices in waiting:
                for gradient, index in zip(gradients, indices):
                    gradient.copy_(views[index].view(gradient.shape))
                done.set_result(buffer)
            waiting.clear()
        return future

    return hook
