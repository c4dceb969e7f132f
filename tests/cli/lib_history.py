# SPDX-License-Identifier: MIT
"""A store's journals as docs/database.md describes them, written without dittune: sessions and checks of planted times,
at planted dates."""
import dataclasses
import json
import math
import pathlib
import random
import shutil

from lib_store import crc32c

DAY = 86400 * 10**9
BEGIN = 1788220800 * 10**9  # 2026-09-01
HEAD = ("v", "seq", "run", "kind", "t_wall_ns", "t_mono_ns", "crc")  # what a journal adds to a record
HARD = {"device": "cpu", "cores": 2, "memory_gib": 4, "topology": "1", "dtype": "float32", "engine": "worker",
        "mode": "eager"}


def sealed(value):
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))[:-1].encode()
    return text + b',"crc":"%s"}' % crc32c(text).encode()


def body(record):
    return {name: value for name, value in record.items() if name not in HEAD}


def journal(store, run, records, t_wall_ns):
    """A journal of these records: (kind, body), a nanosecond apart."""
    folder = pathlib.Path(store, "runs")
    folder.mkdir(parents=True, exist_ok=True)
    lines = []
    for seq, (kind, record) in enumerate(records):
        head = {"v": 1, "seq": seq, "run": run, "kind": kind, "t_wall_ns": t_wall_ns + seq, "t_mono_ns": seq}
        lines.append(b"\n" + sealed({**head, **record}) + b"\n")
    (folder / f"{run}.jsonl").write_bytes(b"".join(lines))


def gain(ratio):
    return {"ratio": ratio, "interval": [ratio * 0.99, ratio * 1.01], "pairs": 32}


def latest(rows, moment, usual):
    """The value of [[from, value], ...] that holds at a moment."""
    return ([value for begin, value in rows if begin <= moment] or [usual])[-1]


def product(rows, moment):
    """The product of all factors of [[from, factor], ...] that hold at a moment."""
    return math.prod(factor for begin, factor in rows if begin <= moment)


@dataclasses.dataclass
class Line:
    """One entry's moments: a session, then a check a day."""
    number: int
    points: int = 60
    cv: float = 0.005
    drift: float = 1  # the factor of the tuned time from the first moment to the last
    steps: tuple = ()  # [from, factor of the tuned time]
    everyone: tuple = ()  # [from, factor of both times]
    soft: tuple = ()  # [from, {...}]
    plans: tuple = ()  # [from, {...}]
    verdict: str = "wins"  # of the checks
    worker: str = "planted"
    engine: str = "worker"
    workload: str = "w"

    def __post_init__(self):
        self.noise = random.Random(self.number)
        self.key = {"worker": self.worker, "workload": self.workload, "devices": self.number + 1, "space": "0" * 16,
                    "objective": "latency"}

    @property
    def hard(self):
        return {**HARD, "engine": self.engine}

    def times(self, moment):
        """The times of the tuned plan and of the default."""
        both = product(self.everyone, moment) * (1 + self.noise.gauss(0, self.cv))
        tuned = 1e6 * both * product(self.steps, moment) * self.drift ** (moment / max(1, self.points - 1))
        return tuned * (1 + self.noise.gauss(0, self.cv / 4)), 1.25e6 * both

    def session(self, run, when, soft, plan, tuned, default):
        return {"key": self.key, "fingerprint": {"hard": self.hard, "soft": soft, "info": {"host": "h", "t_wall_ns": when}},
                "plan": plan, "verdict": "faster", "provisional": False, "figures": {"median_ns": round(tuned)},
                "default": {"median_ns": round(default)}, "gain": gain(default / tuned), "journal": run}

    def check(self, soft, plan, tuned, default):
        return {"id": "0" * 16, "key": self.key, "hard": self.hard, "verdict": self.verdict, "reason": None, "plan": plan,
                "rivals": [], "tuned_ns": round(tuned), "default_ns": round(default), "default_then_ns": 1250000,
                "gain_then": gain(1.25), "gain_now": gain(default / tuned), "threshold": 0.03, "cv": 0.01,
                "soft_changed": [], "searched_again": False, "soft": soft}

    def write(self, store):
        """Each moment in a journal of its own."""
        for i in range(self.points):
            run, when = f"{i:04d}-{self.number}", BEGIN + i * DAY
            soft, plan = latest(self.soft, i, {"dittune": "0.1.0"}), latest(self.plans, i, {"ranks": 2})
            if i == 0:
                record = ("best", self.session(run, when, soft, plan, *self.times(i)))
            else:
                record = ("check", self.check(soft, plan, *self.times(i)))
            journal(store, run, [record], when)


def plant(store, *lines):
    """Journals of these entries in the place of what was there."""
    shutil.rmtree(store, ignore_errors=True)
    for number, line in enumerate(lines):
        Line(number, **line).write(store)


def read(store, run):
    """The first record of a run, without what the journal added."""
    return body(json.loads(pathlib.Path(store, "runs", f"{run}.jsonl").read_text(encoding="utf-8").split("\n")[1]))


def store(path, entry):
    """best.json of one entry, whose journal is nowhere."""
    pathlib.Path(path).mkdir(parents=True, exist_ok=True)
    text = b'{"format":"dittune-best","version":{"major":2,"minor":0},"incompat":[],"compat":[],"entries":[\n'
    text += sealed(entry) + b"\n]"
    pathlib.Path(path, "best.json").write_bytes(text + b',"checksum":"%s"}\n' % crc32c(text).encode())
