# SPDX-License-Identifier: Apache-2.0
"""One trial of faults: what runs, what goes wrong, and how it must end. play() runs in namespaces of its own."""
import collections
import contextlib
import ctypes
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time

PEER_S, PROBE_PEER_S, STEP_S = 5, 10, 15  # --peer-timeout, probe's, --step-timeout and joining
GRACE_S, HANGS_S = 60, 300                # what a busy machine may add to a stated time; what hangs

WALL = 0x40000000                         # __WALL of wait(2)

Trial = collections.namedtuple("Trial", "number what fault phase victim delay_s chance")
Result = collections.namedtuple("Result", "seconds statuses problems skipped")
Stated = collections.namedtuple("Stated", "victim others seconds")  # exit statuses; seconds None: when its work is done

# How a fault of one rank may end for it and for the others, who then name it. A negative status is a signal's number.
FAULTS = {
    "kill": Stated({-9}, {4}, 2),                    # its process is killed
    "orphan": Stated({-9}, {-9}, 2),                 # the command is killed whose children the ranks are
    "term": Stated({130}, {4}, 2),                   # SIGTERM
    "stop": Stated({4, -9}, {4}, PEER_S + 2),        # stopped; wakes up when the others have ended, or is killed
    "cut": Stated({4}, {4}, PEER_S + 2),             # its cable is pulled
    "half": Stated({4}, {4}, PEER_S + 2),            # packets from it, or to it, vanish
    "close": Stated({4}, {4}, 2),                    # one of its connections is shut down
    "hang": Stated({4, -9}, {4}, STEP_S + 4),        # a thread gets no further; nothing ends a rank whose watch that is
    "forever": Stated({-9}, {4}, PEER_S + 2),        # it computes and never comes to its step; the others give up
    "memory": Stated({0, 3, 4}, {0, 4}, None),       # no more memory: RLIMIT_AS
    "handles": Stated({0, 3, 4}, {0, 4}, None),      # no more descriptors: RLIMIT_NOFILE
    "shm": Stated({0, 3, 4}, {0, 3, 4}, None),       # /dev/shm is read-only, or full: nothing to host, an error of shm
    "disk": Stated({4}, {0, 4}, None),               # rank 0 cannot write its report, nor any rank its checkpoint
    "pause": Stated({0}, {0}, None),                 # stopped for less than the peer limit
    "slow": Stated({0}, {0}, None),                  # its link has a hundredth of its rate for a second
    "clock": Stated({0}, {0}, None),                 # its calendar's clock jumps
}
UNNAMED = {"shm", "disk", "pause", "slow", "clock"}
GIVE_UP = {"forever", "hang"}  # the other workers of a training do, and say so
ENDLESS = {"kill", "orphan", "term", "stop", "cut", "half", "close", "hang"}
OTHERWISE = {  # a program that answers a fault in its own way
    **{(what, fault): Stated(victim, others, seconds) for what in ("train", "train-tcp")
       for fault, victim, others, seconds in (
           ("term", {-15, 1}, {4}, 2), ("memory", {0, 1, 4}, {0, 4}, None), ("handles", {0, 1, 2, 4}, {0, 4}, None),  # Python's own way
           ("hang", {4, -9}, {4}, PEER_S + 2))},  # as "forever": the library has no limit, the program that waits has
    # A transport's error waits for news of a death before it counts as a cause.
    ("tcp", "close"): Stated({4}, {4}, PEER_S + 2), ("train-tcp", "close"): Stated({4}, {4}, PEER_S + 2),
    ("probe", "close"): Stated({4}, {4}, PROBE_PEER_S + 2),
    ("probe", "slow"): Stated({0, 4}, {0, 4}, None),    # some cells failed
    ("probe", "pause"): Stated({0, 4}, {0, 4}, None),
    ("probe", "stop"): Stated({4, -9}, {4}, PROBE_PEER_S + 2),
    ("probe", "cut"): Stated({4}, {4}, PROBE_PEER_S + 2),
    ("probe", "half"): Stated({4}, {4}, PROBE_PEER_S + 2),
    ("run", "stop"): Stated({-9}, {4}, PEER_S + 2 + 5),  # the job ends its ranks 5 s after the first has ended
    ("run", "hang"): Stated({4}, {4}, STEP_S + 4 + 5),
    **{(what, fault): Stated(statuses, set(), None) for what in ("plan", "import", "simulate")
       for fault, statuses in (("kill", {-9, 0}), ("term", {130, -15, 0}), ("memory", {0, 4, 127}), ("handles", {0, 3, 4, 127}),  # 127: the loader's
                               ("disk", {0, 4}), ("pause", {0}), ("clock", {0}))},
}
ON_HOST = "kill term stop close hang memory handles shm disk pause clock".split()
ON_LAB = "kill term stop cut half close hang memory handles disk pause slow clock".split()
OF_TRAINING = "forever".split()
WHATS = {
    "run": [*ON_HOST, "orphan"], "ranks": ON_HOST, "tcp": ON_LAB,
    "train": [fault for fault in ON_HOST if fault != "disk"] + OF_TRAINING,
    "train-tcp": [fault for fault in ON_LAB if fault != "disk"] + OF_TRAINING,
    "probe": [fault for fault in ON_LAB if fault != "hang"],
    **{what: "kill term memory handles disk pause clock".split() for what in ("plan", "import", "simulate")},
}
# What a rank has said when it is there; "checkpoint" looks for a file.
RUN_PHASES = {"join": "rendezvous", "connect": "registration", "iterate": "iteration [2-9]", "checkpoint": "", "leave": "debug: end"}
TRAIN_PHASES = {"join": "", "connect": "joined", "iterate": "step [2-4]", "leave": "leaving"}
PHASES = {"run": RUN_PHASES, "ranks": RUN_PHASES, "tcp": RUN_PHASES, "train": TRAIN_PHASES, "train-tcp": TRAIN_PHASES,
          "probe": {"join": "rendezvous", "iterate": "rendezvous"},
          **{what: {"iterate": ""} for what in ("plan", "import", "simulate")}}
LABS = {"tcp", "train-tcp", "probe"}
TRAINING = {"train", "train-tcp"}
MACHINES = ["w0", "w1", "s0"]


def faults_of(what):
    return WHATS[what]


def phases_of(what, fault):
    without = {"forever": {"join", "connect", "leave", "checkpoint"}, "hang": {"join", "leave", "checkpoint"}}.get(fault, set())
    return [phase for phase in PHASES[what] if phase not in without]


def victims_of(what, fault):
    if what in ("plan", "import", "simulate") or fault in ("disk", "orphan"):
        return [0]
    return [0, 1] if fault == "forever" else [0, 1, 2]  # of workers


def stated(what, fault):
    return OTHERWISE.get((what, fault), FAULTS[fault])


def limit_of(trial):
    """Seconds from the fault until all have ended, as stated; None: when its work is done."""
    return STEP_S + 4 if trial.phase == "join" else stated(trial.what, trial.fault).seconds


def compiled_clock(folder):
    """The library that moves a process's calendar; nothing without a compiler."""
    library = f"{folder}/clock.so"
    compiler = shutil.which("cc")
    made = compiler and subprocess.run([compiler, "-shared", "-fPIC", "-o", library, pathlib.Path(__file__).with_name("clock.c")])
    return library if made and made.returncode == 0 else ""


def until(condition, seconds):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


class Job:
    """The processes of a trial, each with its streams in files. Of "run" there is one, whose children are the ranks."""

    def __init__(self, trial, work, root, reckon):
        self.trial, self.work, self.root, self.reckon = trial, work, root, reckon
        self.out = work / "out"
        self.traced, self.unharmed = None, False
        for folder in (self.out, work / "tmp"):
            folder.mkdir()

    def call(self, *command):
        done = subprocess.run([str(word) for word in command], cwd=self.work, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(f"{command}: {done.stderr or done.stdout}")
        return done.stdout

    def netlab(self, *arguments):
        return self.call(self.root / "scripts/netlab", *arguments)

    def prepare(self):
        what = self.trial.what
        (self.work / "model.csv").write_text("name,elements,dtype\nhead,100001,fp32\ntail,50000,fp32\n")
        self.transport = "tcp;ofi_rxm" if what in LABS else "host" if self.trial.chance < 0.5 else "shm"
        step = () if what in TRAINING else ("--optimizer", "adam", "--update", "server")
        self.call(self.reckon, "plan", "--profile", "byteps-cluster", "--workload", "model.csv", "--workers", 2, "--servers", 1,
                  "--port-bandwidth", "50MB/s", "--part-bytes", "64KiB", "--strategy", "byteps_split", "--transport",
                  self.transport, *step, "-o", "plan.json")
        if what in LABS:
            self.netlab("up", "--workers", 2, "--servers", 1, "--rate", "400mbit")
        if self.trial.fault == "disk":
            self.call("mount", "-t", "tmpfs", "-o", "size=3m", "none", self.out)
        if self.trial.fault == "shm":
            self.call("mount", "-t", "tmpfs", "-o", "size=4k" if self.trial.number % 2 else "ro", "none", "/dev/shm")

    def command(self):
        """Of a rank, or of all."""
        what, fault, phase = self.trial.what, self.trial.fault, self.trial.phase
        endless = fault in ENDLESS and phase != "leave"
        if what in TRAINING:
            return [sys.executable, "-B", pathlib.Path(__file__).with_name("trainer.py"), "plan.json", 10**7 if endless else 30]
        if what == "probe":
            return [self.reckon, "-vv", "probe", "--cluster", "--time", "3s", "--step-timeout", f"{STEP_S}s", "-o", "out/result.json"]
        if what == "plan":
            return [self.reckon, "plan", "-p", "byteps-cluster", "-m", "bert-large", "--workers", 8, "--servers", 8, "-o", "out/result.json"]
        if what == "import":
            return [self.reckon, "import", self.root / "tests/golden/import/p2p-6gpu-staging-wins.txt", "-o", "out/result.json"]
        if what == "simulate":
            return [self.reckon, "simulate", "plan.json", "-o", "out/result.json"]
        saved = ["--checkpoint", "out/saved", "--checkpoint-every", 3] if phase == "checkpoint" else []
        return [self.reckon, "-vv", "run", "plan.json", "-n", 10**6 if endless else 30, "-w", 1, "--tolerance", "1e9%", "--step-timeout",
                f"{STEP_S}s", "--peer-timeout", f"{PEER_S}s", "-o", "out/result.json", *saved]

    def start(self):
        environment = {**os.environ, "TMPDIR": str(self.work / "tmp"), "RECKON_JOB_TOKEN": "t", "PYTHONPATH": str(self.root / "python"),
                       "RECKON_LIBRARY": str(pathlib.Path(self.reckon).parent.parent / "libreckon/libreckon.so"),
                       "MASTER_ADDR": "10.77.0.1" if self.trial.what in LABS else "127.0.0.1", "MASTER_PORT": "29500"}
        single = self.trial.what in ("run", "plan", "import", "simulate")
        self.ranks = []
        for rank in range(1 if single else 3):
            own = {} if single else {"RANK": str(rank), "WORLD_SIZE": "3"}
            if rank == self.trial.victim or single:
                own |= self.victims_environment()
            elif self.trial.fault in GIVE_UP and self.trial.what in TRAINING:
                own["RECKON_TRAINER_WAIT"] = str(PEER_S)
            inside = [self.root / "scripts/netlab", "exec", MACHINES[rank], "--"] if self.trial.what in LABS else []
            with open(self.said(rank), "w") as said:
                self.ranks.append(subprocess.Popen([str(word) for word in inside + self.command()], cwd=self.work, stdout=said,
                                                   stderr=said, stdin=subprocess.DEVNULL, env=environment | own))
        self.single = single

    def victims_environment(self):
        if self.trial.fault == "forever":
            return {"RECKON_TRAINER_HANG": "3"}
        if self.trial.fault != "clock":
            return {}
        (self.work / "clock").write_bytes(bytes(8))
        return {"LD_PRELOAD": os.environ["RECKON_CLOCK_LIBRARY"], "RECKON_CLOCK": str(self.work / "clock")}

    def said(self, rank):
        return self.work / f"rank{rank}.said"

    def victims_words(self):
        return self.said(0 if self.single else self.trial.victim).read_text(errors="replace")

    def victim(self):
        """Its process; that of the command where it is no job or its ranks are not there."""
        if self.trial.what != "run" or self.trial.fault == "orphan":
            return self.ranks[0 if self.single else self.trial.victim].pid
        children = pathlib.Path(f"/proc/{self.ranks[0].pid}/task/{self.ranks[0].pid}/children")
        pids = sorted(map(int, children.read_text().split())) if children.exists() else []
        return pids[self.trial.victim] if len(pids) == 3 else None

    def until_phase(self):
        pattern = re.compile(PHASES[self.trial.what][self.trial.phase])

        def there():
            if self.ended(self.trial.victim):
                return True
            if self.trial.phase == "checkpoint":
                return any(self.out.glob("saved/step-*"))
            return self.victim() and pattern.search(self.victims_words())
        until(there, STEP_S)
        long = {"probe": 20, "train": 3, "train-tcp": 3, "plan": 4, "simulate": 2}.get(self.trial.what, 1)
        time.sleep(self.trial.delay_s * (long if self.trial.phase in ("join", "iterate") else 1))

    def ended(self, rank):
        if self.traced:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self.traced, os.WNOHANG | WALL)  # a traced thread that has ended waits for this
        return self.ranks[0 if self.single else rank].poll() is not None

    def names(self):
        return [0] if self.single else range(3)


# --- the faults

def kill(job, pid):
    os.kill(pid, signal.SIGKILL)


orphan = kill


def term(job, pid):
    os.kill(pid, signal.SIGTERM)


def stop(job, pid):
    os.kill(pid, signal.SIGSTOP)


def pause(job, pid):
    os.kill(pid, signal.SIGSTOP)
    time.sleep(0.2 + job.trial.chance)
    os.kill(pid, signal.SIGCONT)


def cut(job, pid):
    job.netlab("cut", MACHINES[job.trial.victim])


def half(job, pid):
    port, way = f"{MACHINES[job.trial.victim]}-0", "ingress" if job.trial.chance < 0.5 else "egress"
    switch = ["ip", "netns", "exec", "netlab-switch", "tc"]
    job.call(*switch, "qdisc", "add", "dev", port, "clsact")
    job.call(*switch, "filter", "add", "dev", port, way, "bpf", "direct-action", "bytecode", "1,6 0 0 2")  # TC_ACT_SHOT


def slow(job, pid):
    job.netlab("rate", MACHINES[job.trial.victim], "4mbit")
    time.sleep(1)
    job.netlab("rate", MACHINES[job.trial.victim], "400mbit")


def close(job, pid):
    """Shuts one connection down, by a copy of the victim's descriptor."""
    found = []

    def look():
        rows = [line.split() for line in pathlib.Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]]
        established = {f"socket:[{row[9]}]" for row in rows if row[3] == "01"}
        with contextlib.suppress(FileNotFoundError):  # one that it closes meanwhile
            found.extend(int(link.name) for link in pathlib.Path(f"/proc/{pid}/fd").iterdir() if os.readlink(link) in established)
        return found or job.ended(job.trial.victim)
    until(look, STEP_S)
    if found:
        libc = ctypes.CDLL(None, use_errno=True)
        copy = libc.syscall(438, os.pidfd_open(pid), found[int(job.trial.chance * len(found))], 0)  # pidfd_getfd
        with socket.socket(fileno=copy) as connection:
            connection.shutdown(socket.SHUT_RDWR)
    return bool(found)


def hang(job, pid):
    """Stops the thread that has worked most, as a debugger does; the others go on."""
    threads = pathlib.Path(f"/proc/{pid}/task").iterdir()
    thread = int(max(threads, key=lambda thread: int((thread / "schedstat").read_text().split()[0])).name)
    ptrace = ctypes.CDLL(None, use_errno=True).ptrace
    ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    for request in (0x4206, 0x4207):  # PTRACE_SEIZE, PTRACE_INTERRUPT
        if ptrace(request, thread, None, None) != 0:
            raise ProcessLookupError
    os.waitpid(thread, WALL)
    job.traced = thread if thread != pid or job.trial.what == "run" else None  # a child of ours is waited for already


def forever(job, pid):
    """It does so by itself."""


def memory(job, pid):
    used = int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[0]) * resource.getpagesize()
    limit = used + (1 << 20) + int(job.trial.chance * 4) * (8 << 20)  # a stack that cannot grow is the kernel's SIGSEGV
    resource.prlimit(pid, resource.RLIMIT_AS, (limit, limit))


def handles(job, pid):
    limit = len(list(pathlib.Path(f"/proc/{pid}/fd").iterdir())) + int(job.trial.chance * 6)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (limit, limit))


def shm(job, pid):
    """prepare() has done it."""


def disk(job, pid):
    with contextlib.suppress(OSError), open(job.out / "filler", "wb", buffering=0) as filler:
        while filler.write(bytes(4096)):
            pass


def clock(job, pid):
    seconds = (-3600, 3600, 10**8, -10**8)[int(job.trial.chance * 4)]
    with open(job.work / "clock", "r+b") as shared:  # which must not be short at any moment: it is mapped
        shared.write(struct.pack("l", seconds))


# --- what must be true afterwards

def errors_of(job, rank):
    return re.findall(r"^reckon: (?:internal )?error: .*", job.said(rank).read_text(errors="replace"), re.MULTILINE)


def names_it(job, rank, line):
    trial = job.trial
    either_end = r"\brank \d( \(\S+\))? died: " if trial.fault == "close" else "$^"
    gave_up = "the step was not over" if trial.fault in GIVE_UP else "$^"
    if re.search(rf"\brank {trial.victim}\b|{either_end}|{gave_up}", line):
        return True
    # Who has not joined when rank 0 learns of the death finds nobody there any more, or is let go.
    missing = re.search(r"\branks? ([\d, and-]+) .*did not join", line)
    return trial.phase == "join" and bool(missing or re.search(r"cannot reach rank 0 at |let rank \d go before the job began", line))


def judge_statuses(job, hit, statuses):
    trial, problems = job.trial, []
    allowed = stated(trial.what, trial.fault)
    late = trial.phase == "leave" or not hit or trial.fault == "close" and not any(statuses)  # who has all it needs ends well
    for rank, status in zip(job.names(), statuses):
        own = rank == trial.victim or trial.what in ("plan", "import", "simulate")
        fine = allowed.victim if own and trial.what != "run" else allowed.others
        if status not in fine and not (late and status == 0):
            problems.append(f"rank {rank} ends with {status}: {job.said(rank).read_text(errors='replace')[-300:].strip()}")
        said = errors_of(job, rank)
        twice = (trial.what, trial.fault) == ("run", "hang")  # the rank that is ended says so as well
        if status in (3, 4) and len(said) != 1 and not (twice and len(said) == 2) and trial.fault != "disk":
            problems.append(f"rank {rank} has {len(said)} messages: {said}")
        if status == 4 and not own and said and trial.fault not in UNNAMED and not names_it(job, rank, said[-1]):
            problems.append(f"rank {rank} does not name rank {trial.victim}: {said[-1]}")
    if statuses.count(0) not in (0, len(statuses)) and not late and trial.fault not in ("disk",):
        problems.append("some ranks end well and others do not")
    return problems


def judge_outputs(job, statuses):
    problems = []
    result = job.out / "result.json"
    if result.exists():
        try:
            json.loads(result.read_text())
        except ValueError as error:
            problems.append(f"the output is torn: {error}")
        # A checkpoint that could not be written is said at the end, after the report.
        if statuses[0] not in (0, 130) and job.trial.phase not in ("leave", "checkpoint") and job.trial.what in ("run", "ranks", "tcp"):
            problems.append("a report is left")
    elif statuses[0] == 0 and job.trial.what not in TRAINING:
        problems.append("ends with 0 and no output")
    return problems


def left_behind(job):
    def others():
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        return [pid for pid in os.listdir("/proc") if pid.isdigit() and int(pid) != os.getpid()]
    problems = []
    if not until(lambda: not others(), 15):
        for pid in others():
            with contextlib.suppress(OSError):  # it has ended meanwhile
                words = pathlib.Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")[:200]
                problems.append(f"process {pid} is left: {words}")
                os.kill(int(pid), signal.SIGKILL)
    if job.trial.what in LABS:
        job.netlab("down")
        if job.call("ip", "netns", "list").strip():
            problems.append("a network namespace is left")
    left = os.listdir("/dev/shm") + os.listdir(job.work / "tmp") + [path.name for path in job.work.rglob("*.tmp")]
    return problems + [f"left: {name}" for name in left]


def end_job(job, pid):
    """Waits until all have ended who can; a stopped victim then wakes up, or is killed as the others are."""
    trial = job.trial
    last = trial.fault == "stop" or trial.fault in GIVE_UP
    begin = time.monotonic()
    others = [rank for rank in job.names() if job.single or rank != trial.victim]
    over = until(lambda: all([job.ended(rank) for rank in others]), STEP_S + GRACE_S)
    spent = time.monotonic() - begin
    if not last:
        over = until(lambda: job.ended(trial.victim), GRACE_S) and over
    elif not job.single:
        if trial.fault == "stop" and trial.chance < 0.5:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
            over = until(lambda: job.ended(trial.victim), GRACE_S) and over
        with contextlib.suppress(ProcessLookupError):
            job.ranks[trial.victim].kill()
    problems = [] if over else ["ranks have not ended: " + ", ".join(str(rank) for rank in job.names() if not job.ended(rank))]
    if trial.fault in ("close", "hang") and not any([job.ended(rank) for rank in others]):  # it was one that nothing needs
        job.unharmed, problems = True, []
    for rank in job.ranks:
        with contextlib.suppress(subprocess.TimeoutExpired):
            rank.wait(1)
        rank.kill()
    job.ended(trial.victim)
    return spent, [rank.wait() for rank in job.ranks], problems


def play(trial, work, root, reckon):
    for folder in ("/dev/shm", "/run"):
        subprocess.run(["mount", "-t", "tmpfs", "none", folder], check=True)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    os.environ["NETLAB"] = "netlab"
    if trial.fault == "clock" and not os.environ.get("RECKON_CLOCK_LIBRARY"):
        return Result(0, "", [], "there is no C compiler for the library that moves a clock")
    if trial.what == "simulate" and not pathlib.Path(reckon).with_name("reckon-sim").exists():
        return Result(0, "", [], "there is no reckon-sim beside reckon")
    job = Job(trial, work, root, reckon)
    job.prepare()
    job.start()
    job.until_phase()
    pid, hit = job.victim(), False
    if pid and not job.ended(trial.victim):
        with contextlib.suppress(ProcessLookupError, FileNotFoundError):
            hit = globals()[trial.fault](job, pid) is not False
    spent, statuses, problems = end_job(job, pid)
    if trial.fault == "cut":
        job.netlab("restore", MACHINES[trial.victim])
    limit = limit_of(trial)
    if job.unharmed:
        return Result(0, "unharmed", left_behind(job), "")
    if limit and spent > limit + GRACE_S:
        problems.append(f"after {spent:.0f} s, stated are {limit} s")
    problems += judge_statuses(job, hit, statuses) + judge_outputs(job, statuses) + left_behind(job)
    return Result(spent, " ".join(map(str, statuses)) + ("" if hit else " (over)"), problems, "")
