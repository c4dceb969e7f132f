# SPDX-License-Identifier: MIT
"""Shared by the checks of tests/db/faults: the actor, stores to begin with, what must hold after a fault. Standard library
only. A check ends with one line of figures, and with exit code 1 when something was lost.

    DITTUNE_DOSE=full    the doses of field practice, with a seed that is drawn
    DITTUNE_SEED=N       of what is drawn
"""
import collections
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time

BUILD = sys.argv[1]
FULL = os.environ.get("DITTUNE_DOSE", "short") == "full"
SEED = int(os.environ.get("DITTUNE_SEED") or (random.SystemRandom().getrandbits(32) if FULL else 1))
ACTOR = os.path.join(BUILD, "tests/db/faults/fault_actor")
SHIM = os.path.join(BUILD, "tests/db/faults/libfault_shim.so")
DITTUNE = os.path.join(BUILD, "dittune")
MODES = ("before", "after", "first", "half", "last", "zeros")
WRITE_MODES = MODES[2:]
RANDOM = random.Random(SEED)
failures = []


def some(points, share):
    """All of them; in the plain run a share of them: those of the ends, and others that are drawn."""
    points = list(points)
    count = len(points) if FULL else max(2, round(share * len(points)))
    if len(points) <= count:
        return points
    chosen = {0, len(points) - 1, *RANDOM.sample(range(1, len(points) - 1), count - 2)}
    return [point for number, point in enumerate(points) if number in chosen]


def scratch(where=None):
    """A folder; in memory unless said otherwise, as an fsync there costs nothing and counts all the same."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    folder = tempfile.TemporaryDirectory(prefix="dittune-fault-", dir=where or memory)
    return folder


def skip(word):
    print("skipped: " + word)
    sys.exit(77)


def fail(what):
    failures.append(what)
    if len(failures) <= 20:
        print("FAILED " + what, flush=True)


def finish(figures):
    print(f"{figures}, {len(failures)} failures, DITTUNE_SEED={SEED}")
    sys.exit(1 if failures else 0)


Result = collections.namedtuple("Result", "how calls hits kinds allocations live files message lines acks")


class Actor:
    """A process that works on one store: actor.do("put a 1"), actor.do("put a 2", "3 half")."""

    def __init__(self, root, store, log=None, wrap=()):
        environment = dict(os.environ, FAULT_ROOT=os.path.realpath(root))
        for name in ("FAULT", "FAULT_SHARED", "FAULT_LOG"):
            environment.pop(name, None)
        if log:
            environment["FAULT_LOG"] = log
        self.process = subprocess.Popen([*wrap, ACTOR, store], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True, env=environment)

    def send(self, verb, fault="0"):
        self.process.stdin.write(f"{fault};{verb}\n")
        self.process.stdin.flush()

    def line(self):
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("the actor ended")
        return line.rstrip("\n")

    def end(self):
        lines, acks = [], []
        while True:
            line = self.line()
            word, _, rest = line.partition(" ")
            if word == "end":
                break
            (acks if word == "ack" else lines).append(rest if word == "ack" else line)
        how, *fields = rest.split(" ", 7)
        value = dict(field.split("=", 1) for field in fields[:6])
        return Result(how, int(value["calls"]), int(value["hits"]), value["kinds"], int(value["allocations"]),
                      int(value["live"]), int(value["files"]), fields[6] if len(fields) > 6 else "", lines, acks)

    def do(self, verb, fault="0"):
        self.send(verb, fault)
        return self.end()

    def must(self, verb):
        result = self.do(verb)
        if result.how != "exit:0":
            raise RuntimeError(f"{verb}: {result.how} {result.message}")
        return result

    def entries(self):
        """The store as read: {model: value}, or None and the reason when it cannot be read."""
        result = self.do("dump")
        if result.how != "exit:0":
            return None, f"{result.how} {result.message}"
        pairs = [line.split(" ", 1)[1].split("=") for line in result.lines]
        if len({pair[0] for pair in pairs}) != len(pairs):
            return None, "an entry is there twice"
        return {model: int(value) for model, value in pairs}, ""

    def records(self):
        """The records of all journals, or None."""
        result = self.do("records")
        if result.how != "exit:0":
            return None
        return {line.split(" ", 1)[1] for line in result.lines if line.startswith("record ")}

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


def temps(store):
    """Temporary files below a store."""
    return [os.path.join(folder, name) for folder, _, names in os.walk(store) for name in names
            if name.startswith(".dittune-")]


def damage(path):
    with open(path, "r+b") as file:
        file.seek(100)
        byte = file.read(1)
        file.seek(100)
        file.write(bytes([byte[0] ^ 1]))


class Scenario:
    """states: what a reader may see after 0, 1, ... acknowledged operations; between two, either one. None: the store cannot
    be read, until the operation was done. begin: the verbs, and the functions of a store, that make it."""

    def __init__(self, name, verb, begin, states, broken=False, repair=None, keeps=True):
        self.name, self.verb, self.begin, self.states = name, verb, begin, states
        self.broken = broken  # best.json is set aside as broken
        self.repair = repair  # what the next run does first, and may do twice
        self.keeps = keeps    # every journal

    def make(self, folder):
        """A store to begin with."""
        store = os.path.join(folder, self.name)
        for step in self.begin:
            if callable(step):
                step(store)
                continue
            actor = Actor(folder, store)
            actor.must(step)
            actor.close()
        return store


def break_best(store):
    damage(os.path.join(store, "best.json"))


def break_both(store):
    damage(os.path.join(store, "best.json"))
    damage(os.path.join(store, "best.json.1"))


BASE = ("session a 1", "put b 2 300", "put c 3")
SEEN = {"a": 1, "b": 2, "c": 3}
RESULTS = ("result a 1 10", "result b 2 300", "result c 3 10")
SCENARIOS = (
    Scenario("create", "session a 1", (), [{}, {"a": 1}]),
    Scenario("commit", "put b 7 500", BASE, [SEEN, {**SEEN, "b": 7}]),
    Scenario("commits", "puts n 1 3 50", BASE,
             [SEEN, {**SEEN, "n1": 1}, {**SEEN, "n1": 1, "n2": 2}, {**SEEN, "n1": 1, "n2": 2, "n3": 3}]),
    Scenario("append", "journal 4 300", BASE, [SEEN]),
    # best.json is broken: the version before, which lacks c, stands in for it
    Scenario("rotate", "put d 4", (*BASE, break_best), [{"a": 1, "b": 2}, {"a": 1, "b": 2, "d": 4}], broken=True),
    Scenario("rebuild", "rebuild", (*RESULTS, break_both), [None, SEEN], broken=True, repair="rebuild"),
    Scenario("again", "rebuild", RESULTS, [SEEN, SEEN], repair="rebuild"),
    Scenario("salvage", "rebuild salvage", (*BASE, break_best), [{"a": 1, "b": 2}, SEEN], broken=True,
             repair="rebuild salvage"),
    Scenario("take", "take", BASE, [SEEN, {**SEEN, "d": 4, "e": 5}], repair="take"),
    Scenario("gc", "gc", (*RESULTS, "journal 2 30", "journal 1 10"), [SEEN, SEEN], repair="gc", keeps=False),
)


class Bench:
    """A scenario to be run again and again, each time from the same store."""

    def __init__(self, folder, scenario):
        self.scenario = scenario
        self.template = scenario.make(os.path.join(folder, "templates"))
        self.root = os.path.join(folder, "work")
        self.store = os.path.join(self.root, "a", "store")
        os.makedirs(self.root, exist_ok=True)
        self.actor = Actor(self.root, self.store)
        self.reset()
        self.old_records = self.actor.records() or set() if scenario.keeps else set()
        self.count = self.actor.must(scenario.verb)

    def reset(self):
        shutil.rmtree(os.path.dirname(self.store), ignore_errors=True)
        if os.path.exists(self.template):
            shutil.copytree(self.template, self.store)

    def run(self, fault):
        self.reset()
        return self.actor.do(self.scenario.verb, fault)

    def check(self, what, acks, silent=False):
        """Old or new, every acknowledged record, and the next run succeeds. Returns what was seen."""
        puts = [ack for ack in acks if "/" not in ack]
        states = self.scenario.states
        allowed = states[len(puts):len(puts) + 1 if silent else len(puts) + 2]
        seen, why = self.actor.entries()
        if seen not in allowed:
            fail(f"{what}: read {why or seen}, expected one of {allowed}")
            return
        records = self.actor.records()
        lost = None if records is None else {ack for ack in acks if "/" in ack} | self.old_records
        if lost is None or lost - records:
            fail(f"{what}: records lost: {lost}")
        if len(temps(self.store)) > 1:
            fail(f"{what}: {len(temps(self.store))} temporary files")
        self.recover(what, seen)

    def recover(self, what, seen):
        if self.scenario.repair:
            again = self.actor.do(self.scenario.repair)
            seen = self.scenario.states[-1]
            if again.how != "exit:0" or self.actor.entries()[0] != seen:
                fail(f"{what}: once more: {again.how} {again.message} {self.actor.entries()}")
        after = self.actor.do("put next 1")
        if after.how != "exit:0":
            fail(f"{what}: the next run: {after.how} {after.message}")
            return
        again, why = self.actor.entries()
        if again != {**seen, "next": 1}:
            fail(f"{what}: after the next run: {why or again}")
        if temps(self.store):
            fail(f"{what}: temporary files were not swept")
        bad = [name for name in os.listdir(self.store) if ".bad-" in name]
        if (len(bad) == 0) if self.scenario.broken else (len(bad) > 0):
            fail(f"{what}: {len(bad)} broken files set aside")

    def close(self):
        self.actor.close()
        shutil.rmtree(os.path.dirname(self.store), ignore_errors=True)
