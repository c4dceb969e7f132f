# SPDX-License-Identifier: MIT
"""The worker protocol (docs/protocol.md) for engines in Python; standard library only.

The process that dittune starts is the speaker: it reads requests, starts groups of ranks and passes
requests on to them by socket. It never computes, so it notices at once when a rank fails or dies. An
engine is an object with

    hello(job, devices)   the message `hello`, or Refused
    ready()               loads what the ranks share (by fork), gives the fields of rank 0 in `ready`
    devices, text_and_vae_ns    (optional) from then on: these fields of `ready`
    fork                  True: ranks are forked from the speaker; False: fresh processes that run
                          its `module`
    compiles(plan)        (optional) True: a first step of this plan may take minutes in which no
                          rank waits for others
    join(rank, ranks)     in a rank: connect to the others (MASTER_ADDR, MASTER_PORT are set) and to
                          the device
    prepare(plan, seed)   in a rank: a plan with step(), measure(), output(projections, seed) and
                          close(). Steps take two sets of inputs in turn, so that what is left of the
                          step before shows as an error; output() sums up the whole output of the
                          last step, as this rank has it, and is asked for after an even number of
                          steps. image(projections, seed), optional, sums up the whole image of the
                          first step in the same way, each time that it was made, in a list: its
                          error is only told. applied(), optional, is asked for after two steps:
                          {parameter: value} that the engine says it runs with; another value than
                          the plan's is a failure
    verifies_runs         (optional) False: output() is only asked for after the first two steps, as
                          a step is long
    own_ranks             (optional) True: the engine starts its ranks itself, on this host; each
                          resident plan has one process of ours, which is told join(0, 1)
    alone                 (optional) True: a plan changes the modules of its processes, which end with it
    paths, descriptors    (optional) of what its ranks read: handed to fresh processes
    memory()              in a rank: resident_bytes, and peak_bytes since the last call; perhaps
                          free_bytes and total_bytes
    usable()              (optional) in a rank that has failed: False when its device can do no more
                          work in this process; all ranks of the group are then started again

and a worker of it is `protocol.serve(engine)`. See diffusers/worker.py.

On several hosts dittune starts all ranks, as torchrun would: this program is then rank 0's speaker,
or becomes another rank.
"""
import contextlib
import ctypes
import errno
import json
import os
import pathlib
import random
import select
import signal
import socket
import subprocess
import sys
import threading
import time

from dittune_workers import hosts
from dittune_workers.link import Link, Refused, check_applied, fault

# Ticks of 10 ms in a second: a compilation or a load uses more, ranks that only wait use none.
LEAST_USED = 2
# For Python below 3.11, which has no -P.
AS_MODULE = ("import sys; del sys.path[0]; import runpy; "
             "runpy.run_module(sys.argv.pop(1), run_name='__main__', alter_sys=True)")
GRACE = 10  # seconds that the other ranks have to answer after one has failed
PR_SET_PDEATHSIG = 1


class Lost(Exception):
    """A rank has died: (sentence,)."""


def signs(seed, k, count):
    """The signs of projection k for `count` elements: `count` bits as an integer, 1 for +1 and 0 for -1."""
    return random.Random(f"{seed}/{k}").getrandbits(count)


def die_with_parent(parent):
    """This process is killed when `parent`, which started it, ends for whatever reason."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


# ---- in a rank


class Rank:
    """Serves the speaker's requests with an engine."""

    def __init__(self, engine, link, rank):
        self.engine, self.link, self.rank = engine, link, rank
        self.plans, self.steps, self.spoke = {}, {}, time.monotonic()

    def beat(self):
        """Between steps: tells the speaker once a second that work goes on."""
        if time.monotonic() - self.spoke > 1:
            self.spoke = time.monotonic()
            self.link.send(dict(op="heartbeat"))

    def prepare(self, request):
        verify = request.get("verify")
        self.engine.memory()  # the peak until now is that of other plans
        plan = self.engine.prepare(request["plan"], request["seed"])
        cold, _ = plan.measure()
        self.beat()
        plan.step()
        check_applied(request["plan"], plan.applied() if hasattr(plan, "applied") else {})
        self.plans[request["handle"]], self.steps[request["handle"]] = plan, 2
        how = (verify["projections"], verify["seed"]) if verify else None
        summary = plan.output(*how) if how else None
        image = plan.image(*how) if how and hasattr(plan, "image") else None
        return dict(op="prepared", cold_ns=cold, verify=summary, image=image, **self.engine.memory())

    def run(self, request):
        handle, verify, rows = request["handle"], request.get("verify"), []
        plan = self.plans[handle]
        for _ in range(request["n"]):
            rows.append(plan.measure())
            self.beat()
        self.steps[handle] += request["n"]
        if verify and self.steps[handle] % 2:
            plan.step()
            self.steps[handle] += 1
        summary = plan.output(verify["projections"], verify["seed"]) if verify else None
        host, device = [row[0] for row in rows], [row[1] for row in rows]
        return dict(op="samples", ns=host, device_ns=device, verify=summary)

    def release(self, request):
        del self.steps[request["handle"]]
        self.plans.pop(request["handle"]).close()
        return dict(op="released")

    def serve(self):
        for request in iter(self.link.receive, None):
            try:
                answer = getattr(self, request["op"])(request)
            except Exception as error:  # whatever an engine raises is a result of this plan
                answer = fault(error)
            if answer["op"] == "failed" and not getattr(self.engine, "usable", lambda: True)():
                answer["broken"] = True
            self.link.send(answer)


def run_rank(engine, end, rank, ranks):
    """The life of a rank: connects, serves, ends."""
    link = Link(end)
    try:
        try:
            engine.join(rank, ranks)
        except Exception as error:  # told to the speaker instead of a trace
            link.send(fault(error))
        else:
            link.send(dict(op="joined", pid=os.getpid()))
            Rank(engine, link, rank).serve()
    except OSError as error:
        if error.errno not in (errno.EPIPE, errno.ECONNRESET):
            raise


def fresh(module, *words, path=()):
    """The command of an interpreter that runs a module, and its environment. It searches `path`, then
    this package, wherever that lies; not the current folder, where `python -m` looks before all else:
    what lies there may be anybody's."""
    search = [*path, str(pathlib.Path(__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
    start = ["-P", "-m"] if sys.version_info >= (3, 11) else ["-c", AS_MODULE]
    return [sys.executable, *start, module, *words], dict(os.environ, PYTHONPATH=os.pathsep.join(search))


def become_rank(engine):
    """What the engine's module does with the words --rank FD PARENT: a rank in a fresh process."""
    descriptor, parent = int(sys.argv[2]), int(sys.argv[3])
    die_with_parent(parent)
    engine.job = json.loads(os.environ["DITTUNE_WORKER_JOB"])
    engine.paths = json.loads(os.environ["DITTUNE_WORKER_PATHS"])
    run_rank(engine, socket.socket(fileno=descriptor), int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]))


# ---- in the speaker


def stat(path):
    """The fields of /proc/PID/stat behind the program's name."""
    return path.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()


def descendants(pid):
    """The processes that this one has started, and theirs."""
    started = {}
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended
            started.setdefault(int(stat(path)[1]), []).append(int(path.parent.name))
    found = [pid]
    for each in found:
        found += started.get(each, [])
    return found[1:]


def processor_time(pids):
    """Ticks that these processes, and those they have waited for, have used."""
    ticks = 0
    for pid in pids:
        with contextlib.suppress(OSError):  # it has ended
            fields = stat(pathlib.Path(f"/proc/{pid}/stat"))
            ticks += sum(int(fields[place]) for place in range(11, 15))
    return ticks


def kill(pids):
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


class Group:
    """Ranks that work together, each with its link. spread: those of other hosts, which were not started
    here (process None); one that is lost cannot be started again here: dittune starts all of them again."""

    def __init__(self, engine, ranks, keep, spread=None):
        self.links, self.processes, self.poll = [], [], select.poll()
        self.start(engine, ranks, keep, spread)
        for link in self.links:
            self.poll.register(link.end, select.POLLIN)
        try:
            self.collect(lambda: None)
        except Exception:
            self.kill()
            raise

    def start(self, engine, ranks, keep, spread):
        if spread is not None:
            self.begin(engine, 0, ranks, [spread.server, *spread.met.values(), *keep])
            self.links += [spread.met[rank] for rank in range(1, ranks)]
            self.processes += [None] * (ranks - 1)
            return
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(hosts.free_port()),
                          WORLD_SIZE=str(ranks), LOCAL_WORLD_SIZE=str(ranks))
        for rank in range(ranks):
            os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank))
            self.begin(engine, rank, ranks, keep)

    def begin(self, engine, rank, ranks, keep):
        """One rank on this host, with the variables as they are."""
        ours, theirs = socket.socketpair()
        start = self.fork if engine.fork else self.spawn
        self.processes.append(start(engine, theirs, rank, ranks, [ours, *self.links, *keep]))
        theirs.close()
        self.links.append(Link(ours))

    @staticmethod
    def fork(engine, end, rank, ranks, foreign):
        parent = os.getpid()
        pid = os.fork()
        if pid:
            return pid
        code = 1
        try:
            die_with_parent(parent)
            for link in foreign:
                os.close(link if isinstance(link, int) else link.fileno())
            run_rank(engine, end, rank, ranks)
            code = 0
        except BaseException as error:  # the speaker's own stack must not continue in a rank
            print(f"rank {rank}: {fault(error)['say']}", file=sys.stderr, flush=True)
        finally:
            os._exit(code)

    @staticmethod
    def spawn(engine, end, rank, ranks, foreign):
        del rank, ranks, foreign  # in the environment, and closed by exec
        words = "--rank", str(end.fileno()), str(os.getpid())
        command, environment = fresh(engine.module, *words, path=getattr(engine, "path", []))
        environment["DITTUNE_WORKER_JOB"] = json.dumps(engine.job)
        environment["DITTUNE_WORKER_PATHS"] = json.dumps(list(getattr(engine, "paths", [])))
        return subprocess.Popen(command, pass_fds=[end.fileno(), *getattr(engine, "descriptors", [])],
                                stdin=subprocess.DEVNULL, env=environment).pid

    def lost(self, rank):
        """The sentence of a rank that has closed its link."""
        if self.processes[rank] is None:
            return f"rank {rank}, which was on another host, has ended"
        _, status = os.waitpid(self.processes[rank], 0)
        self.processes[rank] = None
        code = os.waitstatus_to_exitcode(status)
        how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
        return f"rank {rank} {how}"

    def collect(self, beat):
        """One answer a rank. The first fault is raised: at once when all have answered, after a grace
        when the others wait for the rank that failed; this group is broken then, as one with a rank whose
        device is lost (Refused has a third value)."""
        answers, failed, until = {}, None, None
        ranks = {link.fileno(): rank for rank, link in enumerate(self.links)}
        while len(answers) < len(self.links):
            ready = [rank for rank, link in enumerate(self.links) if link.waiting()]
            if not ready:
                left = None if until is None else max(0, 1000 * (until - time.monotonic()))
                ready = [ranks[descriptor] for descriptor, _ in self.poll.poll(left)]
            if not ready:
                raise Refused(failed["kind"], failed["say"], "broken")
            for rank in ready:
                message = self.links[rank].receive()
                if message is None:
                    if failed is not None:
                        raise Refused(failed["kind"], failed["say"], "broken")
                    raise Lost(self.lost(rank))
                if message["op"] == "heartbeat":
                    beat()
                    continue
                answers[rank] = message
                if message["op"] == "failed" and failed is None:
                    who = f"rank {rank}: " if len(self.links) > 1 else ""
                    failed = dict(message, say=who + message["say"])
                    until = time.monotonic() + GRACE
        if failed is not None:
            broken = any(answer.get("broken") for answer in answers.values())
            raise Refused(failed["kind"], failed["say"], *(["broken"] if broken else []))
        return [answers[rank] for rank in range(len(self.links))]

    def ask(self, request, beat):
        for rank, link in enumerate(self.links):
            try:
                link.send(request)
            except OSError:
                raise Lost(self.lost(rank)) from None
        return self.collect(beat)

    def kill(self):
        """The ranks, and the processes that an engine has started in them, which may be stopped and
        would outlive them."""
        for pid in filter(None, self.processes):
            kill([pid, *descendants(pid)])
        for pid in filter(None, self.processes):
            os.waitpid(pid, 0)
        for link in self.links:
            link.end.close()
        self.processes = []


class Speaker:
    """Answers dittune. plans: handle -> the request that made it resident; groups: Group of a rank count, or
    of a handle where the engine starts its ranks: one process, of which a plan that is released leaves
    its own, which has imported the engine, to the next (free)."""

    def __init__(self, engine):
        # The protocol keeps a descriptor of its own; whatever else prints goes to standard error.
        self.out = os.dup(1)
        os.dup2(2, 1)
        self.lock, self.busy, self.compiling = threading.Lock(), False, False
        self.engine, self.groups, self.plans, self.handles = engine, {}, {}, 0
        self.own_ranks, self.free = getattr(engine, "own_ranks", False), []
        self.hosts, self.over = None, False

    @property
    def alone(self):
        return getattr(self.engine, "alone", False)

    def say(self, **message):
        line = json.dumps(message).encode() + b"\n"
        with self.lock:
            while line:
                line = line[os.write(self.out, line):]

    def beat(self):
        self.say(op="heartbeat")

    def watch(self):
        """A thread: ends the worker when dittune has ended, and tells once a second that a load or a
        start goes on, or a compilation, while the ranks and their compilers use processor time. Not
        that steps do: ranks that wait for each other for ever look the same from here, and tell by
        themselves between steps that they go on."""
        poll, used = select.poll(), 0
        poll.register(0, 0)  # POLLHUP and POLLERR are always reported
        while True:
            if poll.poll(1000):
                self.end(0)
            before, used = used, processor_time(descendants(os.getpid())) if self.compiling else 0
            if self.busy or (self.compiling and used - before >= LEAST_USED):
                self.beat()

    def make_group(self, ranks):
        """Ranks in which the plans that are resident with so many are resident, too."""
        busy, self.busy = self.busy, True
        if self.hosts is not None and ranks != self.hosts.ranks:
            started = self.hosts.ranks
            raise Refused("error", f"{started} ranks were started, and the plan has {ranks}")
        group = self.groups[ranks] = Group(self.engine, ranks, [self.out], self.hosts)
        self.busy = busy
        for request in self.plans.values():
            if request["plan"]["ranks"] == ranks:
                group.ask(request, self.beat)
        return group

    def ask(self, request, plan):
        """Asks the ranks of the plan; drops the group when it can no longer work together, and with it
        what an engine had started."""
        which = request["handle"] if self.own_ranks else plan["ranks"]
        try:
            if which not in self.groups and self.own_ranks and request["op"] != "prepare":
                raise Refused("error", "the engine of this plan has ended")
            if which not in self.groups and self.own_ranks:
                free = self.free.pop() if self.free else Group(self.engine, 1, [self.out])
                self.groups[which] = free
            group = self.groups[which] if which in self.groups else self.make_group(which)
            return group.ask(request, self.beat)
        except Refused as refused:
            used = (self.own_ranks or self.alone) and request["op"] == "prepare"
            broken = len(refused.args) == 3 or used
            if broken and which in self.groups:
                self.groups.pop(which).kill()
                self.over = self.hosts is not None
            raise Refused(*refused.args[:2]) from None

    def plan(self, request):
        if request.get("handle") not in self.plans:
            raise Refused("error", f"no plan of handle {request.get('handle')} is resident")
        return self.plans[request["handle"]]["plan"]

    def prepare(self, request):
        plan = request["plan"]
        self.engine.check(plan)
        self.handles += 1
        request["handle"] = self.handles
        self.compiling = getattr(self.engine, "compiles", lambda plan: False)(plan)
        parts = self.ask(request, plan)
        self.plans[self.handles] = request
        answer = dict(op="prepared", handle=self.handles, cold_ns=[part["cold_ns"] for part in parts],
                      resident_bytes=max(part["resident_bytes"] for part in parts))
        for field in ("peak_bytes", "free_bytes", "total_bytes"):
            if field in parts[0]:
                answer[field] = [part[field] for part in parts]
        if parts[0]["verify"] is not None:
            answer["verify"] = [part["verify"] for part in parts]
            answer["verifies_runs"] = getattr(self.engine, "verifies_runs", True)
        if parts[0]["image"] is not None:
            answer["image"] = parts[0]["image"]
        return answer

    def run(self, request):
        parts = self.ask(request, self.plan(request))
        steps = {name: list(zip(*[part[name] for part in parts])) for name in ("ns", "device_ns")}
        answer = dict(op="samples", handle=request["handle"], ns=steps["ns"])
        if parts[0]["device_ns"][0] is not None:
            answer["device_ns"] = steps["device_ns"]
        if parts[0]["verify"] is not None:
            answer["verify"] = [part["verify"] for part in parts]
        return answer

    def release(self, request):
        plan, handle = self.plan(request), request["handle"]
        which = handle if self.own_ranks else plan["ranks"]
        if which in self.groups:
            self.ask(request, plan)
        del self.plans[handle]
        if self.alone and which in self.groups:
            self.groups.pop(which).kill()
        if self.own_ranks and handle in self.groups:
            self.free.append(self.groups.pop(handle))
        return dict(op="released", handle=handle)

    def hello(self, request):
        job, devices = request.get("job") or {}, request.get("devices") or 1
        message = self.engine.hello(job, devices)
        spread = not self.own_ranks and (request.get("hosts") or 1) > 1
        if spread:
            message.pop("switch", None)
        self.say(**dict(message, op="hello", protocol=2, launch="torchrun" if spread else "self"))
        self.busy = True
        others = self.hosts.meet(job, devices) if self.hosts is not None else []
        rank = dict(rank=0, pid=os.getpid(), host=socket.gethostname(),
                    cores=sorted(os.sched_getaffinity(0)), **self.engine.ready())
        answer = dict(op="ready", ranks=[rank, *others], comm=self.engine.comm)
        more = {field: getattr(self.engine, field, None) for field in ("devices", "text_and_vae_ns")}
        return dict(answer, **{field: value for field, value in more.items() if value is not None})

    def answer(self, request):
        if request.get("op") not in ("hello", "prepare", "run", "release"):
            raise Refused("error", f"this worker does not know '{request.get('op')}'")
        return getattr(self, request["op"])(request)

    def serve(self):
        if "DITTUNE_FIRST_HOST" in os.environ and int(os.environ.get("WORLD_SIZE", "1")) > 1:
            try:
                if os.environ["RANK"] != "0":
                    hosts.follow(self.engine, run_rank)
                    return
                self.hosts = hosts.Hosts()
            except (Refused, OSError) as error:
                sys.exit(f"{self.engine.name}: rank {os.environ['RANK']}: {fault(error)['say']}")
        threading.Thread(target=self.watch, daemon=True).start()
        for line in sys.stdin:
            request = json.loads(line)
            if request.get("op") == "quit":
                break
            try:
                answer = self.answer(request)
            except Lost as lost:
                print(f"{self.engine.name}: {lost}", file=sys.stderr, flush=True)
                self.end(1)  # dittune counts a crash, and starts a fresh worker
            except Exception as error:  # a fault of the engine or of a plan, never of this worker
                answer = fault(error)
            self.busy = self.compiling = False
            self.say(**answer, **({"last": True} if self.over else {}))
            if self.over:
                break
        self.end(0)

    @staticmethod
    def end(code):
        """Ends this process. Ranks are killed with their parent, but not what an engine has started
        in them."""
        kill(descendants(os.getpid()))
        os._exit(code)


def serve(engine):
    Speaker(engine).serve()
