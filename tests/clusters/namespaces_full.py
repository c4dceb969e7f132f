# SPDX-License-Identifier: MIT
"""The long doses of namespaces.py: links that are shaped, a host that dies, a link that is cut."""
import json
import pathlib
import statistics
import sys

from dittune_test import BUILD, SOURCE

PLACED = "ranks=4 ulysses=2 ring=2 hosts=2 threads=1"


def median(measured, plan):
    return statistics.median(measured(plan)["median_seconds"] for _ in range(3))


def placement(t, hosts, measured):
    """Over a slow link the plan is faster whose degree across it sends less."""
    for i in range(2):
        hosts.shape(i, "20mbit")
    times = {order: median(measured, f"{PLACED} neighbours={order}") for order in ("ulysses", "ring")}
    within = median(measured, "ranks=2 cfg=2 hosts=1 threads=1")
    across = median(measured, "ranks=2 cfg=2 hosts=2 threads=1")
    t.check("what crosses a slow link decides", within < across and times["ring"] != times["ulysses"], (times, within, across))
    print(f"     20 Mbit/s: neighbours=ulysses {times['ulysses'] * 1e3:.1f} ms, neighbours=ring {times['ring'] * 1e3:.1f} ms; cfg=2 on one "
          f"host {within * 1e3:.2f} ms, across {across * 1e3:.2f} ms")
    return times


def finds(t, hosts, dittune):
    """One slot a host: over a link of 1 Mbit/s the session stays on one host."""
    one = ",".join(f"{name}:1" for name in hosts.names[:2])
    for i in range(2):
        hosts.shape(i, "1mbit")
    done = dittune("tune", "--json", "--budget", "60s", "--db", t.path / "slow", on=one)
    rate = [json.loads(line)["across"]["bytes_per_second"] for path in (t.path / "slow" / "runs").glob("*.jsonl") for line in path.read_text().splitlines()
            if '"links"' in line]
    t.check("the link of 1 Mbit/s is measured", len(rate) == 1 and 0.05e6 < rate[0] < 0.3e6, rate)  # both ways at once; a bucket of 64 kB
    t.check("over a slow link one host wins", done.code in (0, 6) and done.json["best"]["plan"]["hosts"] == 1, done)
    for i in range(2):
        hosts.shape(i, "10gbit")


SPLIT = {"name": "split", "family": "dit", "hidden": 256, "heads": 4, "depth": 2, "patch": 2, "in_channels": 4, "latent_size": 32,
         "classes": 10, "mlp_ratio": 4.0, "learn_sigma": True}
SPLIT_BYTES = "14000000B"  # leaves three and four ranks: fewer need more


def split(t, hosts, dittune):
    """Four hosts of one slot. Where the link is fast a ring wins; where it is slow, ulysses, whose exchange in chunks goes both ways at once."""
    on, model, found = ",".join(f"{name}:1" for name in hosts.names), t.write("split.json", SPLIT), {}
    t.environment["OMPI_MCA_mpi_yield_when_idle"] = "1"  # four ranks on fewer cores
    for rate in ("10gbit", "40mbit"):
        for i in range(4):
            hosts.shape(i, rate)
        done = t.run(*hosts.words(0, BUILD / "dittune", "tune", "--json", "--model", model, "--hosts", on, "--budget", "300s", "--max-bytes", SPLIT_BYTES,
                                  "--db", t.path / rate))
        found[rate] = done.json and {name: (done.json[name]["plan"], done.json[name]["median_seconds"]) for name in ("best", "default")}
        t.check(f"a session over links of {rate}", done.code in (0, 6) and found[rate], done)
        print(f"     {rate}: {found[rate]}")
    del t.environment["OMPI_MCA_mpi_yield_when_idle"]
    fast, slow = found["10gbit"]["best"][0], found["40mbit"]["best"][0]
    t.check("the split follows the link", fast["ring"] >= 2 and fast["ulysses"] == 1 and slow["ulysses"] >= 2, found)
    for i in range(4):
        hosts.shape(i, "10gbit")


def engine(t, hosts):
    """A network of diffusers on PyTorch's gloo: its ranks on two hosts compute what one rank does."""
    sys.path.insert(0, str(SOURCE / "tests/workers"))
    from lib_real import environment, program
    worker = program(t, "dittune-worker-diffusers", environment("diffusers", "diffusers"), "from dittune_workers.diffusers.worker import main\nmain()")
    t.environment["GLOO_SOCKET_IFNAME"] = "eth0"
    for plan in ("ranks=2 ulysses=2 threads=1", "ranks=2 ring=2 threads=1"):
        done = t.run(*hosts.words(0, BUILD / "dittune", "run", "--quick", "--json", "--worker", worker, "--model", "tiny-flux", "--plan", plan,
                                  "--start-timeout", "5m", "--hosts", ",".join(f"{name}:1" for name in hosts.names[:2])))
        t.check(f"tiny-flux on two hosts, {plan}", done.code == 0 and done.json["ranks"] == 2 and done.json["verified_error"] < 1e-5, done)


def start(t, hosts, *words, on):
    with open(t.path / "out", "w") as out, open(t.path / "err", "w") as err:
        import subprocess
        return subprocess.Popen(hosts.words(0, BUILD / "dittune", *words, "--hosts", on), env=t.environment, stdout=out, stderr=err,
                                stdin=subprocess.DEVNULL)


def after_trials(t, process, n):
    return t.until(lambda: process.poll() is not None or f"trial {n} " in t.read("err"))


def died(t, hosts, model, on, name, harm, mend):
    """From amid the third trial on a host is gone: that costs trials, and the session goes on with what is left."""
    process = start(t, hosts, "tune", "--model", model, "--budget", "150s", "--json", "--db", t.path / name, on=on)
    after_trials(t, process, 3)
    harm()
    code = process.wait(600)
    said, out = t.read("err"), t.read("out")
    mend()
    t.check(f"{name}: the session goes on and ends", code in (0, 6) and '"best":{' in out, (code, said[-3000:]))
    t.check(f"{name}: it says which host is left out", f"host {hosts.names[2]} did not answer twice and is left out" in said, said[-3000:])


def all_of_it(t, hosts, dittune, measured, left_behind):
    placement(t, hosts, measured)
    finds(t, hosts, dittune)
    split(t, hosts, dittune)
    on, model = ",".join(f"{name}:1" for name in hosts.names[:3]), t.path / "placed.json"
    agent = pathlib.Path(hosts.agent)
    text = agent.read_text()

    def kill():
        agent.write_text(text.replace(f"{hosts.names[2]}) pid=", f"{hosts.names[2]}.dead) pid="))
        hosts.kill(2)

    died(t, hosts, model, on, "a host that is killed", kill, lambda: agent.write_text(text))
    left_behind()
    died(t, hosts, model, on, "a link that is cut", lambda: (agent.write_text(text.replace(f"{hosts.names[2]}) pid=", f"{hosts.names[2]}.dead) pid=")),
                                                             hosts.cut(2)), lambda: (hosts.join(2), agent.write_text(text)))
    left_behind()
    engine(t, hosts)
    left_behind()
