# SPDX-License-Identifier: Apache-2.0
"""A back end of torch.distributed: all-reduces of a program go over a plan.

    import reckon.torch
    torch.distributed.init_process_group("reckon")

DistributedDataParallel and whatever else sums tensors works as before. The plan is the one that RECKON_PLAN or pg_options
(Options) names; without it, the workers' machine is measured for two seconds and a plan made. All else than sums of
tensors of the plan's type goes over Gloo.

Read for PyTorch 1.13 and 2.9: Backend.register_backend() with extended_api, a function of the back end's options (store,
group_rank, group_size, timeout) and the caller's; a ProcessGroup in Python, whose methods have the same names and arguments in both, and whose Work has wait() and get_future(), which
DistributedDataParallel calls from C++ (so Python has to keep it until then)."""
import atexit
import collections
import datetime
import hashlib
import json
import os
import pathlib
import queue
import shutil
import socket
import subprocess
import sys
import tempfile
import threading

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import AllreduceOptions, ReduceScatterOptions, Work

from . import _gpu, _library
from ._job import SLICE_S, join
from ._library import ReckonError

COPIED_AT_ONCE = 4 << 20  # bytes: what has been copied travels while the rest is
SMALL = 16 << 10  # bytes: what is shorter goes over Gloo
TYPES = {torch.float32: "fp32", torch.float16: "fp16", torch.bfloat16: "bf16"}  # as plans call them
JOIN_SECONDS = 60
LAUNCHERS = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_", "TORCHELASTIC_", "RECKON_", "PMI", "OMPI_", "SLURM_")
PROBE_SECONDS = (2, 8, 32)  # the next where a busy machine leaves no time for a single cell
# What is summed, if nobody names a plan: the plan's gradient is as long, and longer tensors go through it again and again.
LEAST_GRADIENT, MOST_GRADIENT = 16 << 20, 1 << 30


Piece = collections.namedtuple("Piece", "data first count offset pad work last")
Piece.__doc__ = """A stretch of the tensor of `work` in consecutive parts; pad: its last part, on a GPU, where the tensor ends in it;
last: the tensor has no more."""


class Sum(Work):
    """An all-reduce under way, of `tensor`, multiplied by `factor` before."""

    def __init__(self, done, tensor, factor):
        super().__init__()
        self.done, self.tensor, self.factor, self.failure = done, tensor, factor, None
        # What is raised here is an error for C++ as well. A future's own set_exception() is one for Python alone, and
        # DistributedDataParallel takes it for tensors.
        self.future = done.then(self.unwrapped)

    def unwrapped(self, done):
        if self.failure is not None:
            raise self.failure
        return done.value()

    def succeed(self):
        self.done.set_result([self.tensor])

    def fail(self, error):
        self.failure = error
        self.done.set_result([])

    def wait(self, timeout=datetime.timedelta(0)):
        self.done.wait()
        if self.failure is not None:
            raise self.failure
        return True

    def is_completed(self):
        return self.done.done()

    def is_success(self):
        return self.done.done() and self.failure is None

    def exception(self):
        return self.failure

    def result(self):
        return self.future.value()

    def get_future(self):
        return self.future


class Then(Work):
    """What `after` makes of the result of `work`, a tensor, once it is there."""

    def __init__(self, work, after):
        super().__init__()
        self.work, self.future = work, work.get_future().then(lambda done: [after(done.value()[0])])

    def wait(self, timeout=datetime.timedelta(0)):
        self.work.wait(timeout)  # raises what went wrong
        self.future.wait()
        return True

    def is_completed(self):
        return self.future.done()

    def result(self):
        return self.future.value()

    def get_future(self):
        return self.future


class Stream:
    """Tensors of any size, one after another, through the parts of a plan, over and over: each begins with a part of its
    own, so that its sum waits for no other tensor. What is called in the same order at all workers gets the same parts.

    One thread copies tensors in, another one copies sums out; of tensors on a GPU the library does so, and the threads only say
    where they are."""

    def __init__(self, job):
        self.job = job
        dtypes = {place.dtype for place in job.tensors}
        if len(dtypes) != 1:
            raise ReckonError(f"the plan's gradient has several types ({', '.join(sorted(dtypes))}); the back end needs a plan "
                              "for a model of one")
        self.dtype = getattr(torch, dtypes.pop())
        self.memory = torch.frombuffer(job.memory(), dtype=self.dtype)
        self.item = self.memory.element_size()
        self.begins = [place.offset_bytes // self.item for place in job.tensors]
        self.ends = [begin + place.elements for begin, place in zip(self.begins, job.tensors)]
        self.device = self.inward = self.outward = None
        self.next = len(self.ends)  # part; the last step is full, if there was one
        self.calls, self.pieces = queue.SimpleQueue(), queue.Queue()
        self.under_way = collections.deque([])
        self.failure = None
        self.threads = [threading.Thread(target=self.guarded, args=work, daemon=True, name=name)
                        for name, work in (("reckon in", (self.copy_in, self.calls)), ("reckon out", (self.copy_out, self.pieces)))]
        for thread in self.threads:
            thread.start()

    def add(self, tensor, factor=1):
        """Sums `tensor` in place, multiplied by `factor`. Returns the Work."""
        on_gpu = _gpu.is_on_gpu(tensor)
        if on_gpu and _gpu.is_capturing():
            raise ReckonError("a CUDA graph is being captured: its replays would sum nothing")
        work = Sum(_gpu.future_on(tensor.device) if on_gpu else torch.futures.Future(), tensor, factor)
        self.under_way.append(work)
        while self.under_way[0].is_completed():
            self.under_way.popleft()
        self.calls.put((work, _gpu.mark_of(tensor.device) if on_gpu else None))
        return work

    def guarded(self, work, source):
        """Takes what comes from `source` until None does. After a failure all that comes fails with it."""
        while True:
            item = source.get()
            try:
                if item is None:
                    return
                if self.failure is not None:
                    raise self.failure
                work(item)
            except Exception as error:  # of whatever kind: a future has to say so
                self.failure = self.failure or error
                work_of = item.work if isinstance(item, Piece) else item[0]
                if not isinstance(item, Piece) or item.last:
                    work_of.fail(self.failure)
            finally:
                if source is self.pieces:
                    source.task_done()

    def copy_in(self, call):
        work, mark = call
        tensor = work.tensor
        data = tensor.detach().view(-1)
        on_gpu = _gpu.is_on_gpu(tensor)
        if on_gpu:
            self.use(tensor.device)
            self.inward.after(mark)
            if work.factor != 1:
                with self.inward:
                    data.mul_(work.factor)
        while data.numel() > 0:
            if self.next == len(self.ends):
                self.begin()
            first, count = self.next, 0
            begin, most = self.begins[first], min(data.numel(), max(1, COPIED_AT_ONCE // self.item))
            while first + count < len(self.ends) and (count == 0 or self.ends[first + count] - begin <= most):
                count += 1
            if first + count < len(self.ends) and self.ends[first + count - 1] - begin < data.numel() <= most:
                count += 1  # the rest of it
            end = self.ends[first + count - 1]
            now, data = data[:end - begin], data[end - begin:]
            pad = None
            if on_gpu:
                pad = self.send_from_gpu(now, first, count)
            else:
                self.memory[begin:begin + now.numel()].copy_(now)
                if work.factor != 1:
                    self.memory[begin:begin + now.numel()].mul_(work.factor)
                self.memory[begin + now.numel():end].zero_()
                self.job.ready(first, count)
            self.next += count
            self.pieces.put(Piece(now, first, count, begin, pad, work, data.numel() == 0))

    def use(self, device):
        """The GPU of the tensors, from the first one on."""
        if self.device is None:
            self.finish()  # the step of tensors on the processor, if there were some
            _gpu.use(self.job, device)
            self.device = device
            self.inward, self.outward = _gpu.Side(device), _gpu.Side(device)
        elif self.device != device:
            raise ReckonError(f"a tensor is on {device} and others were on {self.device}; start one process for each GPU")

    def send_from_gpu(self, data, first, count):
        """Returns what holds the last part, where the tensor does not fill it."""
        pad = None
        for part in range(first, first + count):
            begin, end = (at - self.begins[first] for at in (self.begins[part], self.ends[part]))
            stretch = data[begin:end]
            if stretch.numel() < end - begin:
                with self.inward:
                    pad = torch.zeros(end - begin, dtype=data.dtype, device=data.device)
                    pad[:stretch.numel()].copy_(stretch)
                stretch = pad
            self.job.ready_on_stream(part, stretch, self.inward.address)
        return pad

    def begin(self):
        """The next step takes the memory of the one before."""
        self.finish()
        self.job.begin()
        self.next = 0

    def finish(self):
        """The step under way is over when its sums are all copied out; parts that nobody filled count as zeros."""
        self.pieces.join()
        if self.failure is not None:
            raise self.failure
        if self.job._work is not None:
            self.job._work.wait()
        self.next = len(self.ends)

    def copy_out(self, piece):
        while self.job._call("reckon_wait_for", piece.first, piece.count, SLICE_S) == _library.PENDING:
            pass
        if not _gpu.is_on_gpu(piece.data):
            piece.data.copy_(self.memory[piece.offset:piece.offset + piece.data.numel()])
            self.give(piece)
            return
        self.outward.follow(self.job)
        with self.outward:
            if piece.pad is not None:
                begin = self.begins[piece.first + piece.count - 1] - piece.offset
                piece.data[begin:].copy_(piece.pad[:piece.data.numel() - begin])
                self.outward.keep(piece.pad)
            self.give(piece)

    @staticmethod
    def give(piece):
        if piece.last:
            piece.work.succeed()

    def end(self):
        """Waits for all that was added, and leaves with the other workers."""
        self.calls.put(None)
        self.threads[0].join()
        self.pieces.put(None)
        self.threads[1].join()
        self.finish()
        self.job.leave()


class Options:
    """What init_process_group() takes as pg_options. `plan`: a file, instead of RECKON_PLAN. `wire`: where the plan is made here, the
    type as which gradients of fp32 travel: "bf16" or "fp16"."""

    def __init__(self, plan=None, wire=None):
        if plan is not None and wire is not None:
            raise ValueError("a plan has its own wire type: reckon plan --wire; leave wire out")
        self.plan, self.wire = plan, wire


class Plan:
    """Where the plan comes from, and how this process joins it. Raises ReckonError at all workers where one has another plan than
    the others, or none that it can read, or the plan is for another world."""

    def __init__(self, store, rank, size, timeout, options):
        self.store, self.rank, self.size = store, rank, size
        self.join_seconds = min(JOIN_SECONDS, timeout.total_seconds())
        self.named, self.wire = options.plan or os.environ.get("RECKON_PLAN"), options.wire
        mine = self.looked_at(self.named) if self.named else "-"
        store.set(f"plan of {rank}", mine)
        of_all = [store.get(f"plan of {other}").decode() for other in range(size)]
        for other, its in enumerate(of_all):
            if its.startswith("!"):
                raise ReckonError(its[1:] if other == rank else f"worker {other}: {its[1:]}")
            if its != of_all[0]:
                raise ReckonError(f"RECKON_PLAN names another plan, or none, at worker {other} than at worker 0; let it be the same "
                                  "plan at all workers")

    def looked_at(self, named):
        """The digest of a plan that fits this world, else ! and the reason."""
        try:
            text = pathlib.Path(named).read_bytes()
            ranks = json.loads(text)["ranks"]
            workers = sum(rank["worker"] for rank in ranks)
        except OSError as error:
            return f"!RECKON_PLAN: {named}: {error.strerror}"
        except (ValueError, KeyError, TypeError):
            return f"!RECKON_PLAN: {named} is no plan of `reckon plan`"
        servers = len(ranks) - workers
        if workers != self.size:
            return f"!{named} is for {workers} workers, and torch.distributed has {self.size}; plan with --workers {self.size}"
        if servers and os.environ.get("RECKON_WORLD_SIZE") != str(len(ranks)):
            return (f"!{named} is for {workers} workers and {servers} that only sum; set RECKON_WORLD_SIZE={len(ranks)}, "
                    "RECKON_MASTER_ADDR and RECKON_MASTER_PORT at all of them, and start `python3 -m reckon PLAN` with "
                    f"RECKON_RANK={workers} and so on")
        return hashlib.sha256(text).hexdigest()

    def join(self, tensor):
        """Called by all workers at the first tensor that the plan is for."""
        with tempfile.TemporaryDirectory(prefix="reckon-") as folder:
            plan = self.named or self.made(pathlib.Path(folder), tensor)
            before = dict(os.environ)
            os.environ.update(self.place())
            try:
                job = join(plan, average=False, by_parts=True, join_seconds=self.join_seconds)
            finally:
                os.environ.clear()
                os.environ.update(before)
        return job

    def place(self):
        """The launcher's variables for the plan's world, which has the workers of this one first."""
        if "RECKON_WORLD_SIZE" in os.environ:
            return {"RECKON_RANK": str(self.rank)}
        address = os.environ.get("MASTER_ADDR", "127.0.0.1")
        port = self.first("port", lambda: str(free_port()))
        return {"RECKON_RANK": str(self.rank), "RECKON_WORLD_SIZE": str(self.size), "RECKON_MASTER_ADDR": address,
                "RECKON_MASTER_PORT": port}

    def first(self, key, make):
        """What worker 0 makes, at all workers; what it fails of fails at all."""
        if self.rank == 0:
            try:
                self.store.set(key, "+" + make())
            except Exception as error:  # the others wait for it
                self.store.set(key, f"-{error}")
        text = self.store.get(key).decode()
        if text[0] == "-":
            raise ReckonError(text[1:])
        return text[1:]

    def made(self, folder, tensor):
        """Of a world on one machine: measures it, and plans."""
        self.store.set(f"host {self.rank}", socket.gethostname())
        hosts = {self.store.get(f"host {rank}").decode() for rank in range(self.size)}
        if len(hosts) > 1:
            raise ReckonError(f"the workers are on {len(hosts)} machines, and no plan is named; make one (reckon probe "
                              f"--cluster, reckon plan --workers {self.size}) and set RECKON_PLAN to its file at all workers")

        def make():
            elements = min(max(2 * tensor.numel() * tensor.element_size(), LEAST_GRADIENT), MOST_GRADIENT) // tensor.element_size()
            (folder / "tensors.csv").write_text(f"name,elements,dtype\nall,{elements},{TYPES[tensor.dtype]}\n")
            tell(f"measures this machine for {PROBE_SECONDS[0]} s; RECKON_PLAN=file spares that")
            for seconds in PROBE_SECONDS:
                # Any cell of this case is enough for a plan; all others would not fit into the time.
                run("probe", "--only", "fabric_aggregate", "--transport", "host", "--time", f"{seconds}s", "--force",
                    "-o", folder / "machine.json")
                if '"p50"' in (folder / "machine.json").read_text():
                    break
            wire = ["--wire", self.wire] if self.wire and tensor.dtype == torch.float32 else []
            run("plan", "-p", folder / "machine.json", "-m", folder / "tensors.csv", "--workers", self.size, *wire, "-o",
                folder / "plan.json")
            return (folder / "plan.json").read_text()

        text = self.first("plan", make)
        plan = folder / "plan.json"
        plan.write_text(text)
        return str(plan)


def run(*arguments):
    program = shutil.which("reckon") or beside_the_library()
    # It is no rank of this program's job, whoever has started that.
    alone = {name: value for name, value in os.environ.items() if name == "RECKON_LOG" or not name.startswith(LAUNCHERS)}
    ended = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, check=False, env=alone)
    if ended.returncode != 0:
        said = ended.stderr.strip().splitlines() or [f"exit status {ended.returncode}"]
        raise ReckonError(f"no plan could be made by itself: {said[-1].removeprefix('reckon: error: ')}; name one by RECKON_PLAN")


def beside_the_library():
    for place in map(pathlib.Path, _library.places()):
        for program in (place.parent / "../reckon/reckon", place.parent / "../bin/reckon", place.parent / "../../bin/reckon"):
            if program.exists():
                return program
    raise ReckonError("there is no program reckon on PATH, which measures and plans; install it, or name a plan by RECKON_PLAN")


def tell(text):
    print(f"reckon: {text}", file=sys.stderr, flush=True)


def free_port():
    with socket.socket() as some:
        some.bind(("", 0))
        return some.getsockname()[1]


class ReckonGroup(dist.ProcessGroup):
    """Sums over a plan, and all else over Gloo."""

    def __init__(self, store, rank, size, timeout, of_all, options):
        super().__init__(rank, size)
        self.gloo = dist.ProcessGroupGloo(dist.PrefixStore("gloo", store), rank, size, timeout=timeout)
        self.plan = Plan(dist.PrefixStore("reckon", store), rank, size, timeout, options) if of_all and size > 1 else None
        self.stream, self.lock = None, threading.Lock()
        atexit.register(self.end)

    def getBackendName(self):
        return "reckon"

    def opened(self, tensor):
        """The stream, from the first tensor on."""
        with self.lock:
            if self.stream is None:
                self.stream = Stream(self.plan.join(tensor))
                job = self.stream.job
                if self.plan.rank == 0:
                    tell(f"sums over {job.report()['transport']}, {job.workers} workers and {job.size - job.workers} servers")
            return self.stream

    def is_for_the_plan(self, tensors, options):
        tensor = tensors[0]
        return (self.plan is not None and len(tensors) == 1 and options.reduceOp in (dist.ReduceOp.SUM, dist.ReduceOp.AVG) and
                tensor.device.type in ("cpu", "cuda") and tensor.dtype in TYPES and tensor.is_contiguous() and
                tensor.numel() * tensor.element_size() >= SMALL)

    def allreduce(self, tensors, options=AllreduceOptions()):
        mean = options.reduceOp == dist.ReduceOp.AVG
        if self.is_for_the_plan(tensors, options):
            stream = self.opened(tensors[0])
            if stream.dtype == tensors[0].dtype:
                return stream.add(tensors[0], 1 / self.size() if mean else 1)
        if not mean:
            return self.gloo.allreduce(tensors, options)
        sums = AllreduceOptions()  # Gloo has no means
        return Then(self.gloo.allreduce(tensors, sums), lambda tensor: tensor.div_(self.size()))

    def _reduce_scatter_base(self, output, tensor, options=ReduceScatterOptions()):
        return self.scattered(output, tensor.detach().contiguous().view(-1).clone(), options)

    def reduce_scatter(self, outputs, tensors, options=ReduceScatterOptions()):
        return self.scattered(outputs[0], torch.cat([one.detach().reshape(-1) for one in tensors[0]]), options)

    def scattered(self, output, whole, options):
        """Gloo has no reduce_scatter: sums all of `whole`, in place, of which each worker takes its own."""
        if whole.numel() != output.numel() * self.size() or whole.dtype != output.dtype:
            raise ValueError(f"reduce_scatter: {output.numel()} elements of {output.dtype} at each of {self.size()} workers are not "
                             f"{whole.numel()} of {whole.dtype}")
        of_all = AllreduceOptions()
        of_all.reduceOp = options.reduceOp
        mine = slice(self.rank() * output.numel(), (self.rank() + 1) * output.numel())
        return Then(self.allreduce([whole], of_all), lambda summed: output.copy_(summed[mine].view_as(output)))

    def shutdown(self):
        self.end()

    def end(self):
        """Leaves with all other workers, at the end of the program at the latest."""
        atexit.unregister(self.end)
        with self.lock:
            stream, self.stream = self.stream, None
        if stream is None:
            return
        last = getattr(sys, "last_value", None)  # what has ended the program
        if last is not None:
            stream.job.abandon(f"{type(last).__name__}: {last}")
            return
        try:
            stream.end()
        except ReckonError as error:
            if stream.failure is None:  # else the program knows
                tell(error)
            stream.job.abandon(error)


def over_gloo(name):
    def call(self, *arguments, **named):
        return getattr(self.gloo, name)(*arguments, **named)

    call.__name__ = name
    return call


for _name in ("broadcast", "allgather", "_allgather_base", "allgather_coalesced", "allgather_into_tensor_coalesced",
              "reduce_scatter_tensor_coalesced", "allreduce_coalesced", "alltoall",
              "alltoall_base", "barrier", "monitored_barrier", "gather", "scatter", "reduce", "send", "recv", "recv_anysource"):
    setattr(ReckonGroup, _name, over_gloo(_name))


def create(group, options):
    """The first group of all workers has the plan: the world, or one in the world of another back end."""
    of_all = not dist.is_initialized() or (group.group_size == dist.get_world_size() and dist.get_backend() != "reckon")
    return ReckonGroup(group.store, group.group_rank, group.group_size, group.timeout, of_all, options or Options())


if not hasattr(dist.Backend, "RECKON"):  # a notebook may load this again
    dist.Backend.register_backend("reckon", create, extended_api=True)
