# SPDX-License-Identifier: MIT
# ctest: ranks
"""Three hosts on one machine (bed.py): plans over hosts compute what one rank does, a session tunes over them, and bad hosts are named.
The full dose has more plans, engines' workers and commands, shapes the link so that the best plan changes, kills a host and cuts a
link amid a trial."""
import json
import os
import pathlib
import re
import sys

sys.path[:0] = [str(pathlib.Path(__file__).parents[1] / "lib"), str(pathlib.Path(__file__).parent)]
import bed

bed.inside()
from dittune_test import BUILD, FULL, SOURCE, Dittune

NETWORK = {"name": "placed", "family": "dit", "hidden": 64, "heads": 4, "depth": 2, "patch": 2, "in_channels": 4, "latent_size": 16,
           "classes": 10, "mlp_ratio": 4.0, "learn_sigma": True}
t = Dittune(clock="real")
hosts = bed.Bed(t.path, 4 if FULL else 3)
t.environment.update(hosts.environment())
MODEL = t.write("placed.json", NETWORK)
HOSTS = ",".join(f"{name}:2" for name in hosts.names[:3])
TWO = ",".join(f"{name}:2" for name in hosts.names[:2])


def dittune(*words, on=TWO):
    return t.run(*hosts.words(0, BUILD / "dittune", *words, "--model", MODEL, "--hosts", on))


def timed(command, budget, *words):
    """A command with a budget, which ends after so many looks at the clock, however long steps take here."""
    return t.run(*hosts.words(0, BUILD / "dittune-virtual", command, "--json", "--budget", budget, "--model", MODEL, *words),
                 env={"DITTUNE_CLOCK_LOOK": "20000000"})


def measured(plan, on=TWO):
    done = dittune("run", "--quick", "--json", "--plan", plan, on=on)
    return done.json if done.code == 0 else t.check(f"{plan} runs", False, done)


def same_output():
    """A plan's output is that of one rank, wherever its ranks are."""
    plans = (("ranks=4 ulysses=2 ring=2 hosts=2", TWO), ("ranks=3 ring=3 hosts=3", HOSTS), ("ranks=2 cfg=2 hosts=2", TWO),
             ("ranks=4 ulysses=2 ring=2 hosts=2 neighbours=ring", TWO), ("ranks=2 ulysses=2 hosts=1", TWO))
    for plan, on in plans if FULL else plans[:2]:
        found = measured(plan, on)
        if not found or not found["verified_error"] < 2e-6 or found["ranks"] != int(plan[6]):
            t.check(f"{plan}: as one rank", False, found)
    t.check("plans over one, two and three hosts compute what one rank does", True)


def session():
    done = timed("tune", "20s" if FULL else "12s", "--hosts", TWO)
    plans = [trial["plan"] for trial in (done.json or {"trials": []})["trials"]]
    t.check("a session over two hosts", done.code in (0, 6) and {1, 2} <= {plan["hosts"] for plan in plans}
            and not [trial for trial in done.json["trials"] if trial["outcome"] in ("crashed", "hung", "wrong")], done)
    t.check("it measures the links, and says so", "\nlinks: " in done.err, done.err[:500])
    links = [json.loads(line) for path in (t.path / "db" / "runs").glob("*.jsonl") for line in path.read_text().splitlines() if '"links"' in line]
    t.check("so does its journal", len(links) == 1 and links[0]["hosts"] == [{"host": name, "slots": 2} for name in hosts.names[:2]]
            and all(link is None or link["bytes_per_second"] > 0 for link in (links[0]["inside"], links[0]["across"])), links)  # on a busy machine the time may end
    key = t.tool("db", "show", "--json", clock="virtual").json["entries"][0]["fingerprint"]["hard"]
    t.check("its entry is of two hosts", key["hosts"] == 2, key)
    for on, part in (([], "it was measured on 2 hosts with 4 slots, which must be named: --hosts"),
                     (["--hosts", HOSTS], "and those named now are 3 with 6")):
        done = timed("check", "20s", *on)
        t.check(f"check on other hosts: {part[:20]}", done.code == 5 and part in done.json["entries"][0]["reason"], done)
    done = timed("check", "45s", "--hosts", TWO)
    entry = done.json["entries"][0] if done.json else {}
    t.check("its entry is checked on the same hosts", done.code in (0, 4, 5) and (entry["verdict"] not in ("not checked", "unsupported") or "the budget ended" in entry["reason"])
            and entry["retune"].count(f"--hosts {TWO} "), done)
    found = dittune("lookup", "--json")
    t.check("which is looked up for two hosts alone", found.code in (0, 10) and found.json["tier"] == "exact"
            and dittune("lookup", "--json", on=HOSTS).json["tier"] != "exact", found)


def bad_hosts():
    first = hosts.names[0]
    for on, code, part in ((f"{first}:1,10.77.0.9:1", 2, "host 10.77.0.9 does not start"), (f"{first}:0", 2, "'10.77.0.1:0' is not of the form"),
                           (f"{first}:1,{first}:1", 2, "the host 10.77.0.1 is there twice"), ("-x:1", 2, "'-x' is no name of a host"),
                           ("a b:1", 2, "'a b' is no name of a host"), ("", 2, "--hosts is empty"), (",", 2, "'' is no name of a host"),
                           (f"{first}:99999", 2, "1 to 1024 slots")):
        t.exits(f"--hosts '{on}'", dittune("run", "--quick", "--plan", "ranks=2 hosts=2", on=on), code, err=part)
    for text, part in (("a slots=x\n", "line 1: 'x' is not a number of slots"), ("# none\n\n", "names no host"),
                       ("a slots=2\nb cores=2\n", "line 2: 'cores=2' is not understood"), ("a;b\n", "line 1: 'a;b' is no name")):
        done = t.tool("space", "--hostfile", t.write("hostfile", text))
        t.exits(f"a hostfile {text!r}", done, 2, err=part)
    t.exits("no hostfile", t.tool("space", "--hostfile", "none"), 74, err="cannot read the hostfile none")
    t.exits("both", t.tool("space", "--hostfile", "x", "--hosts", "a"), 2, err="both name the hosts")
    good = t.tool("space", "--json", "--hostfile", t.write("hostfile", "a slots=2 # two\nb slots=2\na slots=1 max_slots=4\n"))
    t.check("a good one", good.code == 0 and {p["name"]: p["values"] for p in good.json["parameters"]}["hosts"] == [1, 2], good)
    t.exits("a launcher that is not there", dittune("run", "--launcher", "none {program}"), 2, err="the launcher none was not found")
    t.exits("a placeholder that is not there", dittune("run", "--launcher", "env {rank} {program}"), 2, err="{rank} is no placeholder")
    t.exits("no program", dittune("run", "--launcher", "env"), 2, err="has no word {program}")
    t.exits("a launcher without hosts", t.tool("run", "--launcher", "srun"), 2, err="--launcher has no effect without --hosts")
    t.scenario(ns=[1000000])
    t.exits("a worker that starts its ranks", t.tool("run", "--worker", t.worker, "--hosts", "a:1"), 2, err="starts its ranks by itself, on one host")


def hosts_that_differ():
    """The second host sees another processor, then another version of the worker."""
    plan = ("run", "--quick", "--json", "--plan", "ranks=2 cfg=2 hosts=2")
    cpu, worker = pathlib.Path("/proc/cpuinfo"), BUILD / "dittune-worker"
    hosts.replace(1, cpu, re.sub(rb"(?m)^model name.*", b"model name\t: Planted 9000", cpu.read_bytes()))
    t.exits("hosts with two processors", dittune(*plan), 2, err="has Planted 9000; leave one out, or give --mixed-hosts")
    done = dittune(*plan, "--mixed-hosts")
    t.check("are taken when asked for", done.code == 0 and done.json["verified_error"] < 2e-6, done)
    hosts.replace(1, cpu, None)
    version = (SOURCE / "CMakeLists.txt").read_text().split("VERSION ", 2)[2].split()[0].rstrip(")")
    own = worker.read_bytes()
    hosts.replace(1, worker, own.replace(f"\0{version}\0".encode(), f"\0{version[:-1]}9\0".encode()))
    t.exits("hosts with two versions", dittune(*plan, "--mixed-hosts"), 2, err=f"has {version[:-1]}9: install the same version on all hosts")
    hosts.replace(1, worker, None)
    t.check("and as they were", dittune(*plan).code == 0)


def own_launcher():
    """A command of the user's starts the ranks: here mpirun by hand."""
    words = "mpirun -np {ranks} --host {hosts} --map-by ppr:{per_host}:node --bind-to none --oversubscribe -x DITTUNE_FIRST_HOST {program}"
    done = dittune("run", "--quick", "--json", "--plan", "ranks=2 cfg=2 hosts=2", "--launcher", words)
    t.check("a launcher of one's own", done.code == 0 and done.json["verified_error"] < 2e-6, done)


def other_worker():
    """A worker with ranks of torchrun's kind: each host runs them, with the variables that torchrun would set."""
    example = SOURCE / "examples/workers/torchrun.py"
    for launcher in ("mpirun", "mpirun -np {ranks} --host {hosts} --map-by ppr:{per_host}:node --oversubscribe -x DITTUNE_FIRST_HOST -x DITTUNE_PORT -x DITTUNE_TOKEN {program}")[:2 if FULL else 1]:
        done = t.run(*hosts.words(0, BUILD / "dittune", "run", "--quick", "--json", "--worker", example, "--plan", "ranks=3", "--hosts", HOSTS.replace(":2", ":1"),
                                  "--launcher", launcher))
        t.check(f"another worker on three hosts, {launcher.split()[0]}", done.code == 0 and done.json["ranks"] == 3 and done.json["verified_error"] < 1e-9, done)
    done = t.run(*hosts.words(0, BUILD / "dittune", "run", "--quick", "--json", "--worker", example, "--plan", "ranks=3", "--hosts", TWO))
    t.check("the last host may have fewer ranks", done.code == 0 and done.json["verified_error"] < 1e-9, done)


def workers_of_engines():
    """The protocol of the workers that are shipped, with an engine without arithmetic, its ranks forked and as fresh processes."""
    engine, source = t.path / "engine", SOURCE / "tests/workers/lib_engine.py"
    engine.write_text(f"#!/bin/sh\nexec {sys.executable} {source} \"$@\"\n")
    engine.chmod(0o755)
    t.environment["PYTHONPATH"] = str(source.parent)
    for more in ([], ["--", "--spawn"]):
        for ranks, on in (2, TWO.replace(":2", ":1")), (4, TWO):
            done = t.run(*hosts.words(0, BUILD / "dittune", "run", "--quick", "--json", "--worker", engine, "--plan", f"ranks={ranks}", "--hosts", on, *more))
            t.check(f"an engine's {ranks} ranks on two hosts", done.code == 0 and done.json["ranks"] == ranks and done.json["verified_error"] == 0, done)
    for mode, code, says in (("raised", 1, "ValueError: in a step"), ("memory", 3, "MemoryError: of rank 1"), ("killed", 1, "")):
        done = t.run(*hosts.words(0, BUILD / "dittune", "run", "--quick", "--json", "--worker", engine, "--plan", f"ranks=2 mode={mode}",
                                  "--hosts", TWO.replace(":2", ":1")))
        t.check(f"a rank of it that fails: {mode}", done.code == code and says in done.err, done)
    space = t.write("modes.json", {"parameters": [{"name": "ranks", "values": [1, 2]}, {"name": "mode", "values": ["well", "memory"]}]})
    done = t.run(*hosts.words(0, BUILD / "dittune", "tune", "--budget", "20s", "--json", "--search", "exhaustive", "--worker", engine, "--space", space,
                              "--hosts", TWO.replace(":2", ":1"), "--db", t.path / "engine-db"))
    outcomes = {(trial["plan"]["ranks"], trial["plan"]["mode"]): trial["outcome"] for trial in (done.json or {"trials": []})["trials"]}
    t.check("a session goes on after one whose ranks had to be started again", done.code in (0, 6) and outcomes.get((2, "memory"), "out of memory") in ("out of memory", "interrupted")
            and outcomes.get((2, "well"), "ok") in ("ok", "slow", "interrupted") and "crashed" not in outcomes.values(), (outcomes, done))
    del t.environment["PYTHONPATH"]


def own_command():
    """A program's own launcher spans the hosts by itself: dittune gives it the plan's values, and reads the time that rank 0 prints."""
    space = t.write("space.json", {"parameters": [{"name": "ranks", "role": "ranks", "values": [1, 3], "default": 1}]})
    program = t.path / "program"
    program.write_text(f"#!/bin/sh\nuname -n >{t.path}/seen.$OMPI_COMM_WORLD_SIZE.$OMPI_COMM_WORLD_RANK\n[ $OMPI_COMM_WORLD_RANK = 0 ] && echo step took 0.25 s\nexit 0\n")
    program.chmod(0o755)
    command = f"mpirun -np {{ranks}} --host {HOSTS.replace(':2', ':1')} --map-by node {program}"
    done = t.run(*hosts.words(0, BUILD / "dittune", "run", "--quick", "--json", "--plan", "ranks=3", "--space", space, "--devices", "3",
                              "--time", "regex:step took ([0-9.]+) s", "--command", command))
    seen = [path.read_text().strip() for path in sorted(t.path.glob("seen.3.*"))]
    t.check("a command with its own launcher spans three hosts", done.code == 0 and abs(done.json["median_seconds"] - 0.25) < 1e-9 and done.json["ranks"] == 3
            and sorted(seen) == ["host0", "host1", "host2"], (seen, done))


def left_behind():
    t.until(lambda: not any(hosts.pids(i) for i in range(len(hosts.names))), 60)
    t.check("no process is left on any host", not any(hosts.pids(i) for i in range(len(hosts.names))), [hosts.pids(i) for i in range(len(hosts.names))])


same_output()
session()
hosts_that_differ()
own_launcher()
other_worker()
bad_hosts()
left_behind()
if FULL:
    workers_of_engines()
    own_command()
    left_behind()
    import namespaces_full
    namespaces_full.all_of_it(t, hosts, dittune, measured, left_behind)
hosts.close()
t.none_left()
t.finish()
