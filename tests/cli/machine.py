# SPDX-License-Identifier: MIT
# ctest:
"""The machine's description: what it holds, by the system's own words; when the cache counts; foreign workers."""
import copy
import json
import os
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import BUILD, SOURCE, Dittune

t = Dittune()
t.environment["DITTUNE_TRANSCRIPT"] = str(t.path / "transcript")
t.environment["XDG_CACHE_HOME"] = str(t.path / "cache")
for name in [n for n in t.environment if n.startswith(("OMP_", "OPENBLAS_", "NCCL_", "CUDA_", "OMPI_MCA_"))]:
    del t.environment[name]
CACHE = t.path / "cache/dittune/machine.json"
MINIMAL = SOURCE / "examples/workers/minimal.py"
YEAR_2001 = (978307200, 978307200)


def machine(*words, asked=None, name=None, **env):
    """`dittune machine --json` with these variables; `asked`: a check of that name, whether it starts the worker."""
    t.write("transcript", "")
    done = t.tool("machine", *words, "--json", env=env)
    if asked is not None:
        t.check(name, done.code == 0 and (t.read("transcript") != "") == asked, done)
    return done


def without_date(description):
    same = copy.deepcopy(description)
    same["info"].pop("t_wall_ns")
    return same


def lines(path):
    return pathlib.Path(path).read_text(encoding="utf-8", errors="replace").splitlines()


# ---- what it holds

def links(library):
    return library in t.run("ldd", BUILD / "dittune-worker").out


def processor_model():
    for line in lines("/proc/cpuinfo"):
        if line.startswith("model name"):
            return line.split(": ", 1)[1].strip()
    return "unknown"


def processor_id():
    """Family, model and stepping; of ARM implementer, part and revision."""
    values = dict(reversed([[part.strip() for part in line.split(":", 1)] for line in lines("/proc/cpuinfo") if ":" in line]))
    for names in (("cpu family", "model", "stepping"), ("CPU implementer", "CPU part", "CPU revision")):
        if all(name in values for name in names):
            return ".".join(values[name] for name in names)
    return ""


def is_hard(hard):
    unused = hard["memory_gib"] - int(lines("/proc/meminfo")[0].split()[1]) / 2**20
    wanted = ["cores", "cpu", "device", "memory_gib", "topology"]
    return (sorted(hard) == [name for name in wanted if name != "cpu" or processor_id()] and hard["device"] == processor_model()
            and hard.get("cpu", "") == processor_id()
            and 0 <= unused <= max(1, hard["memory_gib"] / 5))


def is_soft(soft):
    texts = ("dittune", "worker", "hwloc", "method", "openblas", "compiler", "kernel")
    return (all(isinstance(soft[key], str) and soft[key] for key in texts) and soft["kernel"] == os.uname().release
            and soft["environment"] == {})


def description():
    done = machine(asked=True, name="the first time the worker is asked")
    it = done.json
    t.check("describes the machine", it["format"] == "dittune-machine" and it["version"] == {"major": 1, "minor": 0}
            and sorted(it) == ["format", "hard", "info", "limits", "soft", "version"], done)
    t.check("hard fields as the system has them", is_hard(it["hard"]), done)
    t.check("soft fields of dittune, worker and libraries", is_soft(it["soft"]), done)
    if links("libmpi"):
        t.check("the version of MPI without starting it", "MPI" in it["soft"]["mpi"], done)
    if links("libdnnl"):
        t.check("the version of oneDNN", it["soft"]["onednn"][0].isdigit(), done)
    t.check("info has host and date", it["info"]["boot_id"] == lines("/proc/sys/kernel/random/boot_id")[0]
            and it["info"]["host"] == os.uname().nodename, done)
    return done


# ---- when the cache counts

def the_cache(first):
    done = machine(asked=False, name="the second time the cache is")
    t.check("the second answer is the first", done.out == first.out, done)
    done = machine("--renew", asked=True, name="--renew asks")
    t.check("a renewed one is equal but for its date", without_date(done.json) == without_date(first.json), done)
    t.check("and has a date of its own", done.json["info"]["t_wall_ns"] > first.json["info"]["t_wall_ns"], done)


def other_programs():
    """The cache is of one file: its path, date, size and inode."""
    worker, other = t.path / "worker", t.path / "other"
    shutil.copy(BUILD / "dittune-worker", worker)
    machine(DITTUNE_WORKER=worker, asked=True, name="another program is asked")
    machine(DITTUNE_WORKER=worker, asked=False, name="and then known")
    os.utime(worker, YEAR_2001)
    machine(DITTUNE_WORKER=worker, asked=True, name="a changed date asks")
    shutil.copy(BUILD / "dittune-worker", other)
    os.utime(other, YEAR_2001)
    other.replace(worker)
    machine(DITTUNE_WORKER=worker, asked=True, name="the same size and date in another inode asks")


def changed(text, part, name, value):
    """The description with one field changed; with None as value the field has another name."""
    root = json.loads(text)
    at = root[part] if part else root
    if value is None:
        at["another"] = at.pop(name)
    else:
        at[name] = value
    return json.dumps(root)


def unusable_caches(first):
    machine("--renew")
    good = CACHE.read_text(encoding="utf-8")
    boot = json.loads(good)["cache"]["boot_id"]
    for name, text in (("of another boot", changed(good, "cache", "boot_id", "0" + boot[8:])),
                       ("of another dittune", changed(good, "cache", "dittune", "0.0.9")),
                       ("cut short", good.rstrip()[:-1]), ("that is empty", "\n"),
                       ("without its hard fields", changed(good, None, "hard", None)),
                       ("of other processors", changed(good, "cache", "processors", "0-4000"))):
        t.check(f"a cache {name} is another", text.strip() != good.strip())
        CACHE.write_text(text, encoding="utf-8")
        done = machine(asked=True, name=f"a cache {name} is not used")
        t.check(f"a cache {name} is made anew", without_date(done.json) == without_date(first.json)
                and json.loads(CACHE.read_text(encoding="utf-8"))["cache"] == json.loads(good)["cache"], done)
    rewritten = json.dumps(json.loads(good))
    CACHE.write_text(rewritten, encoding="utf-8")
    machine(asked=False, name="a cache with other spaces is used")


def variables():
    now = {"NCCL_ALGO": "Ring", "CUDA_VISIBLE_DEVICES": "0", "OMPI_MCA_btl": "self"}
    done = machine(**now, OMP_NUM_THREADS=3, asked=False, name="the cache does not decide about variables")
    t.check("variables are those of now, and of those that reach the worker",
            done.json["soft"]["environment"] == now, done)


# ---- foreign workers

def foreign_workers():
    done = machine("--worker", MINIMAL, OMP_NUM_THREADS=3, asked=True, name="a foreign worker is asked")
    soft = done.json["soft"]
    t.check("a foreign worker's versions and the thread variables it gets", soft["python"][0] == "3"
            and soft["worker"].startswith("minimal") and soft["environment"]["OMP_NUM_THREADS"] == "3"
            and "openblas" not in soft, done)
    machine("--worker", MINIMAL, OMP_NUM_THREADS=3, asked=False, name="once")
    machine(asked=False, name="and the other is still known")


def what_people_get():
    t.exits("without --json a table is printed", t.tool("machine"), 0, out=("memory_gib", "boot_id"))
    t.exits("a missing worker is an error", t.tool("machine", "--worker", t.path / "none"), 2, err="none")
    t.exits("a worker that ends is an error", t.tool("machine", "--worker", "/bin/false"), 1, err="did not start")
    done = machine(XDG_CACHE_HOME="/proc/none")
    t.check("no place for a cache is no error", done.code == 0 and done.json["hard"]["cores"] > 0, done)


described = description()
the_cache(described)
other_programs()
unusable_caches(described)
variables()
foreign_workers()
what_people_get()
t.none_left()
t.finish()
