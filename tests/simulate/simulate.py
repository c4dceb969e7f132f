# SPDX-License-Identifier: MIT
# ctest: dose
"""`simulate`: what it prints against the same computed by Python from the table and the plans that were evaluated;
repeats, seeds and jobs; tables that are broken."""
import gzip
import json
import pathlib
import random
import resource
import statistics
import sys

import lib_oracle
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import FULL, SOURCE, Dittune

VALUES = {"x": [1, 2, 4, 8, 16], "y": list(range(10)), "z": list(range(8))}
T975 = 1.96593  # of Student's distribution with 399 degrees of freedom
PIECES = [b"", b"0", b"-1", b"[", b"}", b'"', b"null", b"1e999", b"\0", b"99999999999"]


def make_tables():
    """400 plans with failures, and another machine's of half of them."""
    rng, table = random.Random(7), {}
    for x in VALUES["x"]:
        for y in VALUES["y"]:
            for z in VALUES["z"]:
                row = {"x": x, "y": y, "z": z, "compile_time": 10.0, "benchmark_time": 5.0,
                       "time": "RuntimeFailedConfig"}
                if (x + y + z) % 6 != 0:
                    true = 1 + abs(x - 4) / 4 + (y - 3) ** 2 / 10 + (z % 3)
                    times = [true * rng.lognormvariate(0, .2) for _ in range(8)]
                    row.update(time=sum(times) / 8, times=times)
                table[f"{x},{y},{z}"] = row
    prior = {key: row for key, row in table.items() if row["z"] % 2}
    for name, cache in ("table", table), ("prior", prior):
        t.write(name + ".json", {"device_name": name, "kernel_name": "k", "tune_params_keys": list(VALUES),
                                 "tune_params": VALUES, "cache": cache})


def simulate(*words, table="table.json"):
    return t.tool("simulate", "--landscape", t.path / table, *words)


def replay(*words, table="table.json"):
    return simulate("--json", *words, table=table).json


def right(name, o, path):
    wrong = lib_oracle.differences(o, path)
    t.check(name, not wrong, wrong)


# ---- what it prints

def check_scores():
    for search in "random", "exhaustive":
        o = replay("--search", search, "--evals", "60", "--repeats", "11")
        right(f"{search}: what is printed is what its plans give", o, t.path / "table.json")
    score = replay("--search", "random", "--evals", "40", "--repeats", "400")["score_p"]
    error = statistics.stdev(score["each"]) / 20
    t.check("random search scores 0", abs(score["mean"]) < 4 * error, score["mean"])
    t.check("the interval is Student's", abs(score["interval"][1] - score["mean"] - T975 * error) < 1e-4, score)
    o = replay("--search", "random", "--evals", "400", "--repeats", "2")
    t.check("every plan once, then the optimum", all(len(set(keys)) == 400 for keys in o["evaluated"])
            and o["regret"][-1] == 1 and o["gap"]["150"]["mean"] >= 1, o["gap"])
    o = replay("--search", "random", "--evals", "500", "--repeats", "1")
    run = o["runs"][0]
    t.check("a search that ends says so", run["evals"] == 400 and run["note"] and len(o["regret"]) == 500, run)
    t.check("recorded costs are summed", abs(run["seconds"] - 400 * .015) < 1e-9, run)


def check_spend():
    o = replay("--search", "random", "--evals", "400", "--repeats", "1", "--spend", "1s")
    run = o["runs"][0]
    t.check("recorded cost ends a repeat", run["evals"] == 67 and abs(run["seconds"] - 67 * .015) < 1e-9, run)
    t.check("recorded cost to a distance", all(costs_as_recorded(row) for row in o["within"].values()), o["within"])


def costs_as_recorded(row):
    evals, seconds = row["median_evals"], row["median_seconds"]
    return seconds is None if evals is None else abs(seconds - .015 * evals) < 1e-9


def check_repeats():
    five = ["--search", "random", "--repeats", "5", "--seed", "9"]
    one, three = replay(*five), replay(*five, "--jobs", "3")
    t.check("jobs change nothing", {**one, "ask_tell_ms": 0} == {**three, "ask_tell_ms": 0})
    o = replay("--search", "random", "--repeats", "2", "--seed", "11")
    t.check("repeat r has the seed S + r", o["evaluated"] == one["evaluated"][2:4])
    o = replay("--search", "random", "--repeats", "30", "--replay-noise", "--seed", "9")
    right("noise changes what is told, not what is scored", o, t.path / "table.json")
    t.check("and what is chosen", o["chosen"] > o["regret"][-1] >= 1, o["chosen"])
    text = t.read("table.json")
    with gzip.open(t.path / "table.json.gz", "wt") as file:
        file.write(text)
    t.check("gzipped is the same", replay(*five, table="table.json.gz")["evaluated"] == one["evaluated"])
    t.write("open.json", text.rstrip()[:-2] + ",\n")
    t.check("a cache that is still written is the same",
            replay(*five, table="open.json")["evaluated"] == one["evaluated"])


def check_others():
    done = simulate("--json", "--search", "random", "--prior", t.path / "prior.json")
    t.check("a prior is read", done.code == 0 and done.json["prior"].endswith("prior.json"), done)
    t.exits("words for people", simulate("--search", "random"), 0, "score P", "within  5 %")
    o = replay("--search", "random", table=SOURCE / "tests/landscapes/dit_slice_cpu.jsonl.gz")
    t.check("the landscape recorded here", o["feasible"] == 960 and o["failed"] == 163
            and len(o["evaluated"][0]) == 150, (o["feasible"], o["failed"]))
    t.check("the recorded default comes first", all(keys[0] == o["evaluated"][0][0] for keys in o["evaluated"]))
    t.exits("no prior", simulate("--search", "random", "--repeats", "1", "--prior", "none"), 0)
    t.exits("no landscape", t.tool("simulate", "--search", "random"), 2, "--landscape FILE")
    for path in sorted(SOURCE.glob("../shared/landscapes/convolution_*.json.gz")):  # where they lie beside the sources
        right(path.name, replay("--search", "random", "--evals", "30", "--repeats", "3", table=path), path)


# ---- what is wrong with a table

def texts(good):
    """Files that are no table, by name."""
    whole, journal = json.dumps(good).encode(), b'{"kind": "session"}\n{"kind": "trial"}\n'
    packed = gzip.compress(whole)
    return {
        "empty": b"", "text": b"hello\n", "list": b"[1, 2]", "other": b'{"a": 1}', "cut": whole[:1000],
        "cut.gz": packed[:-900], "crc.gz": packed[:-6] + b"abcdef", "bomb.gz": gzip.compress(b" " * 300000000, 1),
        "deep": b'{"cache": ' + b"[" * 1000 + b"]" * 1000 + b"}",
        "values": b'{"cache": {}, "x": [' + b"1," * 17000000 + b"1]}",
        "t4": b'{"results": [{"configuration": {"a": 1}, "times": {}, "invalidity": "correct"}]}',
        "t4_text": b'{"results": [{"configuration": {"a": 1}, "times": {}, "invalidity": "correct", "measurements": [{"name": "time", "value": "5"}]}]}',
        "t4_kind": b'{"results": [5]}', "journal": journal, "journal_cut": journal[:25]}


# Changes that spoil a table, and one of its rows.
TABLES = {
    "no_plans": lambda o: o["cache"].clear(),
    "all_failed": lambda o: [row.update(time="RuntimeFailedConfig") for row in o["cache"].values()],
    "row": lambda o: o["cache"].update({"1,1,1": 5}),
    "keys": lambda o: o.update(tune_params_keys=[1, 2]),
    "keys_kind": lambda o: o.update(tune_params_keys=7),
    "names": lambda o: o.update(tune_params_keys=["x", "x"]),
    "many": lambda o: o.update(tune_params_keys=["x"] * 40)}
ROWS = {
    "no_time": lambda row: row.pop("time"),
    "missing": lambda row: row.pop("x"),
    "mixed": lambda row: row.update(x="one"),
    "huge": lambda row: row.update(x=1e300),
    "list_value": lambda row: row.update(x=[1]),
    "times": lambda row: row.update(times=["a"]),
    "times_zero": lambda row: row.update(times=[0]),
    "times_negative": lambda row: row.update(times=[3.5, -1]),
    "times_kind": lambda row: row.update(times=3)}


def bad_files():
    """(name, bytes), one after the other."""
    text = t.read("table.json")
    yield from texts(json.loads(text)).items()
    for edits, part in (TABLES, lambda o: o), (ROWS, lambda o: o["cache"]["1,1,1"]):
        for name, edit in edits.items():
            table = json.loads(text)
            edit(part(table))
            yield name, json.dumps(table).encode()


def one_sentence(done):
    return done.err.count("\n") == 1 and len(done.err) < 500


def check_refusals():
    """One sentence, exit code 2 (or 74: cannot be read), and little memory."""
    memory = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (2500000 * 1024, memory[1]))
    for name, content in bad_files():
        (t.path / f"bad_{name}").write_bytes(content)
        done = simulate("--search", "random", "--repeats", "1", table=f"bad_{name}")
        t.check(f"{name} is refused", done.code == 2 and not done.out and one_sentence(done), done)
    for path in t.path, t.path / "none", "/dev/zero":
        done = simulate("--search", "random", table=path)
        t.check(f"{path} cannot be read", done.code == 74 and one_sentence(done), done)
    for words in (["--evals", "0"], ["--evals", "1000000"], ["--repeats", "0"], ["--jobs", "65"],
                  ["--search", "nothing"], ["--prior", "cost"], ["--prior", t.path / "bad_text"],
                  ["--prior", t.path / "none"]):
        done = simulate("--search", "random", *words)
        t.check(f"{words} is refused", done.code in (2, 74) and not done.out and done.err.count("\n") == 1, done)
    resource.setrlimit(resource.RLIMIT_AS, memory)


def check_tight_packing():
    """A file of some kilobytes must not take a gigabyte: it is refused before it is unpacked whole."""
    values = b'{"cache": {}, "x": [' + b"1," * 16000000 + b"1]}"
    (t.path / "tight.gz").write_bytes(gzip.compress(values))
    memory = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (300000 * 1024, memory[1]))
    done = simulate("--search", "random", "--repeats", "1", table="tight.gz")
    resource.setrlimit(resource.RLIMIT_AS, memory)
    t.exits("what is packed too tightly is refused, in little memory", done, 2, err=["unpacks to more than", "64 times its size"])


def spoilt(good, rng):
    text = bytearray(good)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(text))
        text[at:at + rng.randint(0, 12)] = rng.choice(PIECES)
    return bytes(text)


def check_wrong_bytes():
    """Whatever a file says: an answer, or one sentence."""
    seed = random.randrange(1 << 32) if FULL else 1
    rng, bad = random.Random(seed), []
    print(f"wrong bytes: seed {seed}")
    for path in sorted((SOURCE / "tests/simulate/data").iterdir()):
        for i in range(1000 if FULL else 40):
            (t.path / "fuzz").write_bytes(spoilt(path.read_bytes(), rng))
            done = simulate("--search", "random", "--repeats", "1", table="fuzz")
            if done.code not in (0, 2, 7) or (done.code != 0 and done.err.count("\n") != 1):
                bad.append((path.name, i, str(done)))
    t.check("a table with wrong bytes", not bad, bad[:3])


t = Dittune()
make_tables()
check_scores()
check_spend()
check_repeats()
check_others()
check_refusals()
check_tight_packing()
check_wrong_bytes()
t.finish()
