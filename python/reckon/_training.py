# SPDX-License-Identifier: Apache-2.0
"""PyTorch's side of a job: gradients that lie in the plan's memory, and the hook for DistributedDataParallel."""
from . import _gpu
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

    rounded = job.report()["wire_error"] or 0
    work = job.begin()
    for view, parameter in zip(views, parameters):
        view.copy_(parameter.detach().reshape(-1))
    work.wait()
    for place, view, parameter in zip(job.tensors, views, parameters):
        mean, own = view.float() * average_of, parameter.detach().reshape(-1).float()
        allowed = max(1e-5 if place.dtype == "float32" else 1e-2, 2 * rounded)
        if not torch.allclose(mean, own, rtol=allowed, atol=allowed * float(own.abs().max())):
            raise ReckonError(f"{place.name} is not the same at all workers; begin with the same seed "
                              "(torch.manual_seed) or the same checkpoint at each")
        view.zero_()


class Attached:
    """The gradients of a model in a job's memory, or on a GPU."""

    def __init__(self, model, job):
        import torch

        named = named_tensors(model, job)
        self.job = job
        self.parameters = [named[place.name] for place in job.tensors]
        device = _gpu.device_of(named)
        flat = views_of(job)
        require_same(self.parameters, flat, job, self.factor())
        self.gpu = None if device is None else _gpu.Gpu(job, device)
        self.views = [] if self.gpu else [view.view(parameter.shape) for view, parameter in zip(flat, self.parameters)]
        self.strides = [dense_strides(parameter) for parameter in self.parameters]
        self.hooks = []
        for index, parameter in enumerate(self.parameters):
            if not self.gpu:
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
        self.ready(index)

    def ready(self, index):
        """Brings a gradient that is elsewhere (zero_grad(set_to_none=True) lets PyTorch make a new one) to its place."""
        parameter = self.parameters[index]
        if parameter.grad is not None and parameter.grad.is_sparse:
            raise ReckonError(f"the gradient of {self.job.tensors[index].name} is sparse, and a plan's are not; build the "
                              "embedding with sparse=False")
        if self.gpu:
            self.gpu.ready(index, dense_gradient(parameter, self.strides[index]))
            return
        view = self.views[index]
        if parameter.grad is None:
            view.zero_()
        elif parameter.grad is not view and parameter.grad.data_ptr() != view.data_ptr():
            view.copy_(parameter.grad.detach())
        parameter.grad = view
        self.job.ready(index)

    def fill(self, missing):
        for index in missing:
            self.ready(index)

    def detach(self):
        for node, hook in self.hooks:
            hook.remove()
        for parameter, view in zip(self.parameters, self.views):
            if parameter.grad is not None and parameter.grad.data_ptr() == view.data_ptr():
                parameter.grad = parameter.grad.detach().clone()
        self.hooks, self.views = [], []


def dense_strides(parameter):
    """Of a tensor like the parameter whose elements lie one after another, in an order that all workers have."""
    import torch

    return torch.empty_like(parameter, device="meta").stride()


def dense_gradient(parameter, strides):
    """The parameter's gradient, zeros where it has none, with these strides."""
    import torch

    gradient = parameter.grad
    if gradient is None:
        parameter.grad = torch.zeros_like(parameter)
    elif any(size != 1 and has != wanted for size, has, wanted in zip(gradient.shape, gradient.stride(), strides)):
        parameter.grad = torch.empty_like(parameter).copy_(gradient.detach())
    return parameter.grad


def attach(model, job):
    """From now on a backward pass of `model` sends each gradient on its way as soon as it is there; after Job.wait() the
    gradients are the mean over all workers. Those of a model on the processor lie in the plan's memory, until the job ends:
    p.grad are views of it, and other views of them must not be used after that. Those of a model on a GPU stay where they
    are, and its stream waits for the means.

    The model's parameters that require a gradient must be the plan's tensors, on the processor or on one GPU, and the same
    at all workers, which is checked. Of what has no gradient in a step, this worker's part is zeros. A job has one model.
    Raises ReckonError."""
    if not job.is_worker:
        raise ReckonError(f"rank {job.rank} only sums, and has no model; call reckon.serve(job)")
    if job._before_finish:
        raise ReckonError("a model is attached to this job already; a job has one")
    Attached(model, job)


class Buckets:
    """The gradients of a DistributedDataParallel, which come and go in its buckets."""

    def __init__(self, model, job):
        import torch

        if not isinstance(model, torch.nn.parallel.DistributedDataParallel):
            raise ReckonError("register the hook with the DistributedDataParallel itself as its state: "
                              "model.register_comm_hook(model, reckon.ddp_hook(job))")
        order = {place.name: i for i, place in enumerate(job.tensors)}
        named = named_tensors(model.module, job)
        device = _gpu.device_of(named)
        self.job, self.number_of = job, {parameter: order[name] for name, parameter in named.items()}
        self.gpu = None if device is None else _gpu.Gpu(job, device)
        self.views = [] if self.gpu else views_of(job)

    def ready(self, bucket):
        """Sends the bucket's gradients on their way; returns what brings their sums to it."""
        pairs = [(self.number_of[parameter], gradient)
                 for parameter, gradient in zip(bucket.parameters(), bucket.gradients())]
        for index, gradient in pairs:
            if self.gpu:
                self.gpu.ready(index, gradient)
            else:
                self.views[index].copy_(gradient.reshape(-1))
                self.job.ready(index)

        def bring():
            for index, gradient in pairs if not self.gpu else ():
                gradient.copy_(self.views[index].view(gradient.shape))
        return bring


def ddp_hook(job):
    """The hook that lets DistributedDataParallel sum by the plan, after the last bucket of a backward pass:

        model.register_comm_hook(model, reckon.ddp_hook(job))

    where `model` is the DistributedDataParallel and stands first as well. Gradients of a model on the processor are copied
    to the plan's memory and back."""
    import torch

    if not job.is_worker:
        raise ReckonError(f"rank {job.rank} only sums, and has no model; call reckon.serve(job)")
    buckets, waiting = [], []

    def hook(model, bucket):
        if not buckets:
            buckets.append(Buckets(model, job))
        if job._work is None:
            waiting.clear()
            job.begin()
        buffer = bucket.buffer()
        future = torch.futures.Future(devices=[buffer.device] if buffer.is_cuda else None)
        waiting.append((future, buffer, buckets[0].ready(bucket)))
        if bucket.is_last():
            job._work.wait()
            for done, buffer, bring in waiting:
                bring()
                done.set_result(buffer)
            waiting.clear()
        return future

    return hook
