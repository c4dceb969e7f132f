# SPDX-License-Identifier: MIT
# ctest:
"""The limits of a session and of its entry, with a worker that knows nothing of them: what breaks them is neither
stored nor kept, and takes nobody's place."""
import json
import socket

from lib_check import WINS, CheckTest, of_plan

BIG = 8388608
LIMIT = ["--max-bytes", "4MiB"]
t = CheckTest()


def quiet(ns, **fields):
    t.plant(ns, drift_sd=0, **fields)


def the_fastest_takes_too_much():
    quiet([800000, 930000, 1000000, 1100000], bytes={"0": BIG})
    done = t.tool("--worker", t.worker, "--devices", 1, "--budget", "8s", *LIMIT, "--json")
    t.check("a plan over --max-bytes is not the best",
            done.code == 0 and done.json["best"]["plan"] == {"plan": 1} and done.json["verdict"] == "unopposed", done)
    trials = of_plan(done.json["trials"], 0)
    t.check("its trial says why", [trial["outcome"] for trial in trials] == ["out of memory"]
            and all(str(bytes) in trials[0]["cause"] for bytes in (BIG, 4 << 20)), trials)
    found = t.look(*LIMIT)
    t.check("what is stored can be looked up",
            found.code == 0 and found.json["tier"] == "exact" and found.json["plan"] == {"plan": 1}, found)
    entry = found.json["entry"]
    t.check("and nothing in it breaks the limit",
            all(plan["peak_bytes"] <= 4 << 20 for plan in entry["top"] + entry["pareto"] + [entry["figures"]]), found)
    done = t.again()
    rivals = t.entry(done)["rivals"]
    t.check("it does not count as a rival",
            done.code == 0 and [rival["verdict"] for rival in of_plan(rivals, 0)] == ["not checked"]
            and any("--max-bytes" in (rival["reason"] or "") for rival in rivals), done)


def no_plan_keeps_it():
    quiet([800000, 930000], bytes={"0": BIG, "1": 5000000})
    done = t.tool("--worker", t.worker, "--devices", 1, "--budget", "5s", *LIMIT, "--quiet", "--db", t.path / "none")
    t.exits("no plan keeps the limit", done, 9, err="--max-bytes")
    t.check("no plan is stored", not (t.path / "none/best.json").exists())


def a_legal_plan_stays():
    """It is not replaced by an illegal one."""
    quiet(WINS, bytes={"0": BIG})
    t.tuned("legal", *LIMIT)
    t.stored("legal")
    quiet([600000, *WINS[1:]], bytes={"0": BIG})
    done = t.again("--update")
    entry = t.entry(done)
    t.check("a faster plan over the limit takes no place",
            done.code == 0 and entry["plan"] == {"plan": 2} and entry["updated"] != "replaced", done)
    found = t.look(*LIMIT)
    t.check("the stored plan stays", found.code == 0 and found.json["plan"] == {"plan": 2}, found)
    quiet([600000, *WINS[1:]], bytes={"0": BIG, "2": 6000000})
    entry = t.verdict("a stored plan that has grown over the limit loses", t.again("--update"), 4, "loses", "6000000")
    t.check("the stored plan is replaced", entry["updated"] == "replaced", entry)
    found = t.look(*LIMIT)
    t.check("by one that keeps the limit", found.code == 0 and found.json["plan"] in ({"plan": 1}, {"plan": 3}), found)


def beside_a_server():
    """--reserve: memory that the server also holds, of all ranks' memory on cores, of each GPU elsewhere."""
    total = t.tool("machine", "--json").json["limits"]["memory_bytes"]
    half, reserve = total // 2, ["--reserve", f"{total * 6 // 10}B"]
    quiet([800000, 930000, 1000000, 1100000], bytes={"0": half, "1": total // 4})
    done = t.tool("--worker", t.worker, "--devices", 1, "--budget", "8s", *reserve, "--json", "--db", t.path / "reserved")
    t.check("a plan that leaves too little is not the best", done.code == 0 and done.json["best"]["plan"] == {"plan": 1}, done)
    trials = of_plan(done.json["trials"], 0)
    t.check("it is out of memory once, and the trial has the figures", [trial["outcome"] for trial in trials] == ["out of memory"]
            and f"({half} bytes), and --reserve holds" in trials[0]["cause"] and f"({total}) of the machine" in trials[0]["cause"], trials)
    look = ("lookup", "--worker", t.worker, "--devices", 1, "--json", "--db", t.path / "reserved")
    found = t.tool(*look, *reserve)
    t.check("the entry has it", found.code == 0 and found.json["tier"] == "exact" and found.json["entry"]["key"]["reserve_bytes"] == total * 6 // 10, found)
    found = t.tool(*look)
    t.check("without it the entry is near", found.code == 0 and found.json["tier"] == "near" and "reserve_bytes" in found.json["reason"], found)
    done = t.tool("why", "--db", t.path / "reserved")
    t.check("why judges memory beside it", "reserved, so it is not at risk" in " ".join(done.out.split()), done)
    done = t.tool("check", "--worker", t.worker, "--db", t.path / "reserved", "--budget", "20s", "--json")
    row = done.json["entries"][0]
    t.check("check keeps it", row["verdict"] == "ties" and f"--reserve {total * 6 // 10}B" in row["retune"], done)
    done = t.tool("check", "--worker", t.worker, "--db", t.path / "reserved", "--budget", "20s", "--json", "--reserve", f"{total * 8 // 10}B")
    t.check("and that of today instead", done.json["entries"][0]["verdict"] == "loses" and "--reserve holds" in done.json["entries"][0]["reason"], done)
    quiet([800000, 930000], bytes={"0": half})
    done = t.tool("--worker", t.worker, "--devices", 1, "--budget", "8s", "--quiet", "--db", t.path / "free")
    look = ("lookup", "--worker", t.worker, "--devices", 1, "--json", "--db", t.path / "free")
    t.check("a plan without it answers where it leaves room", t.tool(*look, "--reserve", "1GiB").json["tier"] == "near")
    t.exits("and not where it does not", t.tool(*look, *reserve), 10, f"which with reserve_bytes, {total * 6 // 10}")
    t.exits("run says it, too", t.tool("run", "--worker", t.worker, "--devices", 1, "--plan", "plan=0", *reserve), 3, "--reserve holds")


def beside_a_server_on_gpus():
    card = {"index": 0, "name": "NVIDIA H200", "compute": "9.0", "memory_bytes": 150 << 30, "free_bytes": 150 << 30, "shared_bytes": 232448,
            "processes": []}
    answer = {"op": "devices", "count": 1, "why": "", "driver": "580.95", "cuda": 13000, "nccl": "2.28.9", "cudnn": "", "cublaslt": "13.1.0",
              "devices": [card], "peers": [[0]], "links": [["self"]]}
    gpu = t.write("gpu", f"#!/bin/sh\nexec echo '{json.dumps(answer)}'\n")
    gpu.chmod(0o755)
    for where, host, fields, known in (("found", socket.gethostname(), {}, True), ("described by the worker", "far", {"devices": [card]}, True),
                                       ("unknown", "far", {}, False)):
        ready = {"ranks": [{"rank": 0, "pid": 1, "host": host, "device": "cuda:0"}], **fields}
        quiet([800000, 930000], bytes={"0": 139 << 30, "1": 138 << 30}, faults=[{"do": "answer", "at": "ready", "fields": ready}])
        done = t.tool("--worker", t.worker, "--devices", 1, "--budget", "8s", "--reserve", "12GiB", "--json", "--db", t.path / where,
                      env={"DITTUNE_WORKER_CUDA": gpu} if host != "far" else {})
        if not known:
            t.exits("devices of unknown memory", done, 2, "--reserve cannot be kept: the memory of the devices of the worker")
            continue
        trials = of_plan(done.json["trials"], 0) if done.json else None
        t.check(f"GPUs that are {where}: a rank beside 12 GiB", trials and done.json["best"]["plan"] == {"plan": 1} and trials[0]["outcome"] == "out of memory"
                and "a rank takes 139 GiB" in trials[0]["cause"] and "--reserve holds 12 GiB: more than the 150 GiB" in trials[0]["cause"], done)


def slow_batches(name, ns):
    """A store for images by the second, which are most at a batch that takes too long: the default's."""
    quiet(ns, batches={"1": 1, "4": 2})
    t.tuned(name, "--objective", "throughput", "--max-latency", "1.5ms")
    t.stored(name)


def nothing_left_to_beat():
    slow_batches("alone", [1000000])
    done = t.again()
    entry = t.verdict("nothing is left to beat where all others take longer than the entry allows", done, 0, "ties",
                      "every other plan")
    t.check("its plan is the small batch", entry["plan"]["batch"] == 1, entry)
    whys = {(rival["verdict"], rival["reason"]) for rival in entry["rivals"]}
    t.check("each record has its reason", whys == {("not checked", "it takes longer than the entry allows")}, whys)
    t.verdict("but not of one that was not measured", t.again(budget="1ms"), 5, "not checked")


def a_rival_within_the_limit():
    slow_batches("two", [1000000, 900000])
    done = t.again()
    entry = t.entry(done)
    verdicts = {(rival["plan"]["batch"], rival["verdict"]) for rival in entry["rivals"]}
    t.check("a plan within the limit is a rival still", done.code == 0 and entry["plan"] == {"plan": 1, "batch": 1}
            and verdicts == {(4, "not checked"), (1, "wins")}, done)


for part in (the_fastest_takes_too_much, no_plan_keeps_it, a_legal_plan_stays, beside_a_server, beside_a_server_on_gpus, nothing_left_to_beat,
             a_rival_within_the_limit):
    part()
t.none_left()
t.finish()
