# SPDX-License-Identifier: Apache-2.0
"""One rank of a plan: joining, steps, leaving. Needs no PyTorch."""
import atexit
import collections
import contextlib
import ctypes
import datetime
import json
import math
import os
import time

from . import _library
from ._library import ReckonError

SLICE_S = 0.1  # of a wait: how long Ctrl-C may take

Place = collections.namedtuple("Place", "name offset_bytes elements dtype")
Place.__doc__ = """Where a tensor's gradient lies in the job's memory; dtype as PyTorch calls it, as "float32"."""


class Work:
    """A step under way, as torch.distributed's handles of asynchronous work."""

    def __init__(self, job):
        self._job, self._over = job, False

    def is_completed(self):
        """Whether the sums are there. Waits for nothing."""
        return self._over or self._advance(0)

    def wait(self, timeout=None):
        """Waits until the gradients hold the mean (or sum) over all workers. Tensors that are not ready yet count as
        ready: what has no gradient in this step, has zeros. `timeout`: seconds or a timedelta; None: without a limit.
        A rank that has died ends the wait with a ReckonError that names it, whatever the timeout. Returns True.

        Where the gradients are on a GPU its stream waits instead, and this returns at once: what is queued after this sees
        the sums. An error is raised by the next step, or by Job.synchronize(); the sums that did not come are NaN then."""
        limit = seconds_of(timeout)
        if self._over or self._job._queued is self:
            return True
        self._job._finish_step()
        if self._job._on_gpu is not None:
            self._job._on_gpu.wait()
            self._job._work, self._job._queued = None, self
            return True
        return self._until_over(limit)

    def _until_over(self, limit=math.inf):
        end = time.monotonic() + limit
        while not self._advance(min(SLICE_S, max(0, end - time.monotonic()))):
            if time.monotonic() < end:
                continue
            raise ReckonError(f"the step was not over after {limit:g} s, and no rank is known to be dead: another worker "
                              "has not begun its backward pass or not finished it. Wait again, or end the job by "
                              "Job.abandon()", _library.PENDING)
        return True

    def _advance(self, seconds):
        # Ctrl-C may come anywhere here: the library says the same again, and the mark is the last thing.
        if self._job._call("reckon_wait", seconds) == _library.OK:
            self._job._step_is_over()
            self._over = True
        return self._over


class Job:
    """This process as one rank of a plan, from join() to leave(). As a context manager it leaves at the end, or abandons
    the job where an exception comes out, so that no other rank waits in vain; so it does when the process ends.

    rank, size: of the job. workers: how many ranks have gradients. is_worker: whether this is one of them; else serve().
    tensors: the plan's gradients in the order of the backward pass, each a Place."""

    def __init__(self, library, session, average):
        self._library, self._session, self._average = library, session, average
        self._process = os.getpid()
        self._failed = False
        self._work = None        # the step under way
        self._on_gpu = None      # the GPU of the gradients
        self._queued = None      # the step whose sums only the GPU waits for
        self._missing = set()    # its tensors that are not ready
        self._asked = set()      # of these: the library may know of them, but Ctrl-C came before its answer
        self._synchronizing = True
        self._before_finish = []  # called with the missing tensors before they count as ready
        self._at_end = []         # called before the memory goes
        about = _library.Description(ctypes.sizeof(_library.Description))
        self._call("reckon_describe", ctypes.byref(about))
        self.rank, self.size, self.workers, self.is_worker = about.rank, about.size, about.workers, bool(about.worker)
        self._address, self._bytes = about.gradient, about.gradient_bytes
        self.tensors = [self._place(i) for i in range(about.tensors)]
        OPEN.add(self)

    def _place(self, index):
        place = _library.TensorPlace(ctypes.sizeof(_library.TensorPlace))
        self._call("reckon_tensor", index, ctypes.byref(place))
        return Place(place.name.decode(), place.offset_bytes, place.elements, _library.DTYPES[place.dtype])

    def begin(self):
        """Begins a step: from now on tensors may become ready. Returns its Work. attach() and ddp_hook() do it."""
        if self._work is not None:
            raise ReckonError("the step before is not over; call Job.wait() first")
        self.synchronize()
        self._missing, self._asked = set(range(len(self.tensors))), set()
        self._work = work = Work(self)
        try:
            self._call("reckon_begin")
        except BaseException:  # Ctrl-C comes before or after the library has begun
            if self._library.reckon_wait(self._session, 0) != _library.PENDING:
                self._work = None
            raise
        return work

    def ready(self, first, count=1):
        """The gradients of these tensors are in the job's memory, which must not be touched until the step is over."""
        if not 0 <= first <= first + count <= len(self.tensors):  # ctypes would take them modulo 2^64
            raise ReckonError(f"{count} tensors from number {first} on: there are {len(self.tensors)}")
        self._make_ready(range(first, first + count), "reckon_ready", first, count)

    def ready_on_stream(self, index, gradient, stream):
        """ready() of a tensor on the job's GPU, whose elements lie one after another and are made by what is queued in the CUDA
        stream of this address so far."""
        self._make_ready((index,), "reckon_ready_on_stream", index, gradient.data_ptr(), stream)

    def _make_ready(self, tensors, function, *arguments):
        again = self._asked.intersection(tensors)
        self._asked.update(tensors)
        try:
            self._call(function, *arguments)
        except ReckonError:
            self._asked.difference_update(tensors)
            if not again:
                raise
        self._missing.difference_update(tensors)
        self._asked.difference_update(tensors)

    def wait(self, timeout=None):
        """Waits for the step under way as Work.wait() does, and returns True. Where there was no backward pass since the
        last step, this worker takes part with zeros, so that the others can go on."""
        if not self.is_worker:
            raise ReckonError(f"rank {self.rank} only sums, and has no steps of its own; call reckon.serve(job)")
        limit = seconds_of(timeout)  # before a step begins that nobody would wait for
        return (self._work or self.begin()).wait(limit)

    def synchronize(self):
        """Where the gradients are on a GPU: waits until the last step is over, or raises what has ended it. wait() leaves that
        to the GPU. Before a checkpoint this says whether all sums have come."""
        if self._queued is not None:
            self._queued._until_over()
            self._queued = None

    @contextlib.contextmanager
    def no_sync(self):
        """Backward passes in this context only add to the gradients: for all micro-batches of a step but the last."""
        before, self._synchronizing = self._synchronizing, False
        try:
            yield
        finally:
            self._synchronizing = before

    def memory(self):
        """The gradient memory, as a writable buffer of bytes. It is gone after leave() and abandon()."""
        self._require()
        if not self._address:
            raise ReckonError(f"rank {self.rank} only sums, and has no gradients")
        return (ctypes.c_char * self._bytes).from_address(self._address)

    def report(self):
        """What this rank knows of the steps so far, a dict: docs/library.md has its members."""
        if not self._failed:
            self.synchronize()
        text = ctypes.c_char_p()
        self._call("reckon_report", ctypes.byref(text))
        return json.loads(text.value)

    def summary(self):
        """report() in a line: a step's exposed communication, predicted and measured (from the last gradient that is ready
        at any worker to the end). Where the gradients were made in another time than the plan counts on, so is that."""
        report = self.report()
        predicted, measured = (report["prediction"][key] for key in ("seconds", "measured_seconds"))
        error = f" ({100 * (measured / predicted - 1):+.1f} %)" if predicted > 0 and measured > 0 else ""
        made, recorded = report["gradients_seconds"]["p50"], report["prediction"]["gradients_seconds"]
        if recorded > 0 and made > 0 and abs(made / recorded - 1) > 0.05:
            error += (f"; a backward pass took {1e3 * made:.4g} ms after its first gradient, and {1e3 * recorded:.4g} ms when it was "
                      f"recorded; beside passes as long as here the plan exposes {1e3 * report['prediction']['of_these_passes_seconds']:.4g} ms")
        return (f"{report['steps']} steps over {report['transport']}: exposed communication {1e3 * predicted:.4g} ms a step "
                f"predicted, {1e3 * measured:.4g} ms measured{error}")

    def leave(self):
        """Leaves together with all other ranks: waits until all workers leave. Gradients stay as they are, in memory of
        their own. Nothing more where the job has ended already, by an error or otherwise."""
        if self._session is None:
            return
        if self._failed:
            self.abandon()
            return
        if self._work is not None:
            raise ReckonError("a step is not over; call Job.wait() before Job.leave(), or end the job by Job.abandon()")
        self.synchronize()
        session = self._close()
        in_slices(self._library, session, lambda: self._library.reckon_leave_within(ctypes.byref(session), SLICE_S))

    def abandon(self, why="abandoned"):
        """Ends the job for all ranks: their calls raise a ReckonError with this rank and `why`."""
        if self._session is not None:
            text = (" ".join(str(why).split())[:500] or "abandoned").encode(errors="replace")
            self._library.reckon_abandon(self._close(), text)

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if kind is None:
            self.leave()
        else:
            self.abandon(f"{kind.__name__}: {error}" if str(error) else kind.__name__)

    def _call(self, function, *arguments):
        self._require()
        status = getattr(self._library, function)(self._session, *arguments)
        self._failed = self._failed or status in (_library.FAILED, _library.PEER, _library.INTERNAL)
        return check(status, self._library.reckon_error() if status > _library.PENDING else b"")

    def _require(self):
        if self._session is None:
            raise ReckonError("the job has ended; reckon.join() begins another")

    def _close(self):
        if self._process == os.getpid():
            for ending in self._at_end:
                ending()
        session, self._session, self._work = self._session, None, None
        OPEN.discard(self)
        return session

    def _finish_step(self):
        if self._missing:
            for finish in self._before_finish:
                finish(sorted(self._missing))
            for index in sorted(self._missing):
                self.ready(index)

    def _step_is_over(self):
        self._work = None


OPEN = set()


@atexit.register
def abandon_all():
    for job in list(OPEN):
        job.abandon("its process ended without Job.leave()")


def seconds_of(timeout):
    if timeout is None:
        return math.inf
    seconds = timeout.total_seconds() if isinstance(timeout, datetime.timedelta) else timeout
    if not seconds >= 0:  # nor is it a number
        raise ReckonError(f"a timeout of {seconds} s: it must be 0 or more, or None for no limit")
    return seconds


def check(status, text):
    if status <= _library.PENDING:
        return status
    raise ReckonError(text.decode(errors="replace"), status)


def in_slices(library, session, call):
    """Makes a call of the session until it is over. What comes in between, Ctrl-C, ends the job for all."""
    status = _library.PENDING
    try:
        while status == _library.PENDING:
            status = call()
            check(status, library.reckon_error() if status > _library.PENDING else b"")
    except BaseException as error:
        library.reckon_abandon(session, type(error).__name__.encode())  # none is left after an error of the call
        session.value = None
        raise


def join(plan, *, workload=None, transport=None, average=True, pin_lanes=False, by_parts=False, join_seconds=60,
         peer_seconds=10, checksums=False):
    """Becomes the rank of `plan`, a file of `reckon plan`, that the launcher says, and returns a Job when all ranks have.

    The launcher says it by RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, or PMIx; where torch.distributed has taken
    these, RECKON_RANK, RECKON_WORLD_SIZE, RECKON_MASTER_ADDR and RECKON_MASTER_PORT go before them. `workload`: what the
    plan was made from, where it is neither shipped nor beside the plan. `transport`: as `reckon run --transport`.
    `average`: the mean over all workers, not the sum. `pin_lanes`: each lane's thread stays on one processor.
    `by_parts`: Job.tensors are the plan's parts in the order in which they lie, and no workload is needed.
    `join_seconds`: how long the others may take to come. `peer_seconds`: a rank not heard of for so long is dead.
    `checksums`: a part that crossed the network with other bytes than were sent ends the job; at all ranks or at none.
    Raises ReckonError."""
    library = _library.load()
    texts = [None if text is None else os.fsencode(text) for text in (plan, workload, transport)]
    options = _library.Options(ctypes.sizeof(_library.Options), *texts, None, 0, int(bool(average)), int(bool(pin_lanes)),
                               join_seconds, peer_seconds, int(bool(by_parts)), int(bool(checksums)))
    session = _library.SESSION()
    in_slices(library, session, lambda: library.reckon_join_within(ctypes.byref(options), ctypes.byref(session), SLICE_S))
    return Job(library, session, average)


def serve(job, **options):
    """At a rank that only sums: takes part in all steps until all workers have left, and leaves. `job`: a Job, or the
    plan to join, with join()'s options. Raises ReckonError."""
    if not isinstance(job, Job):
        job = join(job, **options)
    with job:
        while job._call("reckon_serve", SLICE_S) == _library.PENDING:
            pass
