# SPDX-License-Identifier: MIT
# ctest:
"""One measurement at a time on a machine: a second command says for whom it waits, or ends with code 12 with --no-wait, or after --wait;
waiting is no budget; the lock ends with the process that has it. A busy machine is warned of before the first trial."""
import fcntl
import json
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import BUILD, Dittune

BUSY, HOUR_NS = 12, 3600 * 10**9
BUDGET = ["--budget", "20s"]

t = Dittune(scenario=dict(ns=[1000000, 900000], cv=0.01))
LOCK = t.path / "machine.lock"
t.environment["DITTUNE_LOCK"] = str(LOCK)
WAITS = re.compile(r"dittune: pid (\d+) \((.+)\) is measuring: waiting; --no-wait does not wait\n")


def holder(*words):
    """Another process that has the lock, and these words."""
    code = t.write("held", "import fcntl, sys, time\nfile = open(sys.argv[-1])\nfcntl.flock(file, fcntl.LOCK_EX)\n"
                           "print('held', flush=True)\ntime.sleep(3600)\n")
    process = subprocess.Popen([sys.executable, str(code), *words, str(LOCK)], stdout=subprocess.PIPE)
    process.stdout.readline()
    return process


def end(process):
    process.kill()
    process.wait()
    process.stdout.close()


def made_for_everyone():
    mask = os.umask(0o077)
    done = t.tune(*BUDGET, "--json")
    os.umask(mask)
    t.check("the first session makes the lock, readable for everyone", done.code in (0, 6)
            and LOCK.stat().st_mode & 0o777 == 0o644 and LOCK.stat().st_size == 0, done)


def no_wait():
    other = holder("two words")
    for command in (["tune", *BUDGET], ["run"], ["noise", *BUDGET], ["check"], ["worker-test", t.worker]):
        more = [] if command[0] in ("check", "worker-test") else ["--worker", t.worker]
        done = t.tool(*command, *more, "--no-wait")
        t.exits(f"{command[0]} --no-wait", done, BUSY, f"dittune: pid {other.pid} (", "is measuring on this machine")
    t.exits("commands that do not measure need no lock", t.tool("lookup", "--worker", t.worker), 0)
    t.exits("DITTUNE_LOCK=none: no lock", t.tune(*BUDGET, "--no-wait", env={"DITTUNE_LOCK": "none"}), 0)
    end(other)
    t.exits("a killed process holds nothing", t.tune(*BUDGET, "--no-wait"), 0)


def an_hour_passes():
    with open(t.path / "clock", "r+b") as clock:
        now, = struct.unpack("q", clock.read(8))
        clock.seek(0)
        clock.write(struct.pack("q", now + HOUR_NS))


def waits():
    other = holder("tune \033[2Jit")
    session = t.start("tune", "--worker", t.worker, *BUDGET, "--json")
    t.until(lambda: "waiting" in t.read("err") or session.poll() is not None)
    said = WAITS.match(t.read("err"))
    t.check("it says for whom it waits", said and int(said[1]) == other.pid and "[2Jit" in said[2] and "\033" not in said[2]
            and session.poll() is None, t.read("err"))
    an_hour_passes()
    end(other)
    code = session.wait()
    out, err = t.read("out"), t.read("err")
    t.check("then it has its whole budget", code == 0 and json.loads(out)["verdict"] == "faster", (code, out[:300], err))
    t.check("it reports the wait once", len(WAITS.findall(err)) == 1, err)


def interrupted():
    for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 143)):
        with open(LOCK, encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            session = t.start("tune", "--worker", t.worker, *BUDGET)
            t.until(lambda: "waiting" in t.read("err"))
            session.send_signal(number)
            t.check(f"signal {number} ends the wait", session.wait() == code and "interrupted" in t.read("err"), t.read("err"))


def ends_with_the_controller():
    """Supervisors and workers, which live on for a moment, do not hold it."""
    t.scenario(ns=[1000000], faults=[{"do": "hang_real"}])
    session = t.start("tune", "--worker", t.worker, *BUDGET)
    log = t.path / "scenario.json.log"
    t.until(lambda: log.exists() and '"hang_real"' in log.read_text(encoding="utf-8"))
    session.kill()
    session.wait()
    t.scenario(ns=[1000000, 900000], cv=0.01)
    t.exits("the lock ends with the controller", t.tune(*BUDGET, "--no-wait"), 0)


def wait_has_a_limit():
    other = holder("tune")
    session = t.start("tune", "--worker", t.worker, *BUDGET, "--wait", "30m")
    t.until(lambda: "waiting" in t.read("err") or session.poll() is not None)
    t.check("a wait with a limit waits", session.poll() is None, t.read("err"))
    an_hour_passes()
    t.check("but not longer", session.wait() == BUSY and f"pid {other.pid} " in t.read("err") and "is measuring still, after a --wait of 1800 s" in t.read("err"),
            t.read("err"))
    t.exits("a limit and no wait", t.tune(*BUDGET, "--wait", "5s", "--no-wait"), 2, err="--wait")
    t.exits("a limit that is none", t.tune(*BUDGET, "--wait", "5"), 2, err="--wait '5' has no unit")
    end(other)
    t.exits("no other, no wait", t.tune(*BUDGET, "--wait", "1s"), 0)


def strangers():
    """Another user's program that is no dittune holds the lock, perhaps for ever: that is said."""
    if os.geteuid() != 0 or shutil.which("flock") is None:
        print("not checked: another user's lock; this is not root, or flock(1) is missing")
        return
    with tempfile.NamedTemporaryFile(prefix="dittune-lock-") as file:  # in a folder that all may enter
        os.chmod(file.name, 0o644)
        other = subprocess.Popen(["flock", "-s", file.name, "sleep", "3600"], preexec_fn=lambda: (os.setgid(65534), os.setuid(65534)), cwd="/",
                                 start_new_session=True)
        t.until(lambda: f" {other.pid} " in pathlib.Path("/proc/locks").read_text(encoding="ascii"))
        t.exits("another user's program is named as such", t.tune(*BUDGET, "--no-wait", env={"DITTUNE_LOCK": file.name}), BUSY,
                f"dittune: pid {other.pid} (", f"which is another user's and no dittune, holds the measuring lock {file.name}")
        os.killpg(other.pid, signal.SIGKILL)
        other.wait()


def folder_of_locks():
    """DITTUNE_LOCK names a folder, which pods share: a lock for each GPU, by UUID; for the machine where there is none."""
    folder = t.path / "locks"
    folder.mkdir()
    machine = folder / f"dittune-{pathlib.Path('/proc/sys/kernel/random/boot_id').read_text(encoding='ascii').strip()}.lock"
    no_gpus = t.write("no_gpus", "#!/bin/sh\nexit 1\n")
    gpus = t.write("gpus", "#!/bin/sh\ncat \"$GPUS\"\n")
    for path in (no_gpus, gpus):
        path.chmod(0o755)
    cores = {"DITTUNE_LOCK": folder, "DITTUNE_WORKER_CUDA": no_gpus, "DITTUNE_WORKER": no_gpus}
    t.exits("a folder: without GPUs a lock of the machine", t.tune(*BUDGET, "--no-wait", env=cores), 0)
    t.check("of its name until it reboots", [path.name for path in folder.iterdir()] == [machine.name], list(folder.iterdir()))
    with open(machine, encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        t.exits("which others hold", t.tune(*BUDGET, "--no-wait", env=cores), BUSY)
    if not (BUILD / "dittune-worker-fake-cuda").exists():
        print("not checked: locks of GPUs; there are no fake ones here")
        return
    row = t.run(BUILD / "dittune-worker-fake-cuda", "--devices", env={"DITTUNE_FAKE_CUDA": "devices=1:memory=8g", "DITTUNE_NVML": "none"}).json
    pods = []
    for uuids in (("GPU-b", "GPU-a"), ("GPU-c",), ("GPU-a/../x",)):
        name = t.write(f"gpus-{len(pods)}", {**row, "devices": [{**row["devices"][0], "uuid": uuid, "index": i} for i, uuid in enumerate(uuids)]})
        pods.append({"DITTUNE_LOCK": folder, "DITTUNE_WORKER_CUDA": gpus, "GPUS": name})
    t.exits("a pod with two GPUs", t.tune(*BUDGET, "--no-wait", env=pods[0]), 0)
    t.exits("one with a name that leads elsewhere", t.tune(*BUDGET, "--no-wait", env=pods[2]), 0)
    found = sorted(path.name for path in folder.iterdir() if path != machine)
    t.check("a lock for each", found == ["dittune-GPU-a.lock", "dittune-GPU-a____x.lock", "dittune-GPU-b.lock"], found)
    with open(folder / "dittune-GPU-b.lock", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        t.exits("one of its GPUs is another's", t.tune(*BUDGET, "--no-wait", env=pods[0]), BUSY)
        t.exits("a pod with others goes on", t.tune(*BUDGET, "--no-wait", env=pods[1]), 0)


def private_commands():
    """Of a private session the commands are not shown to who waits for it."""
    for words in (("--command", "srv TOKEN"), ("--server=srv TOKEN",), ("--prepare", "TOKEN"), ("--cleanup=TOKEN",)):
        other = holder("tune", *words, "--private")
        t.exits(f"not shown: {words[0]}", done := t.tune(*BUDGET, "--no-wait"), BUSY, f"dittune: pid {other.pid} (")
        t.check("nor a part of it", "TOKEN" not in done.err and "srv" not in done.err, done.err)
        end(other)
    before = len(f"{sys.executable}\0{t.path / 'held'}\0tune\0")
    other = holder("tune", "x" * (65536 - before - len("\0--command")), "--command", "srv TOKEN", "--private")  # 65536 bytes are read
    t.exits("what was read ends with the option", t.tune(*BUDGET, "--no-wait"), BUSY, f"dittune: pid {other.pid} (")
    end(other)


def not_a_lock():
    """What is no file, or a link, is not opened, waited for or written."""
    os.mkfifo(t.path / "pipe")
    (t.path / "link").symlink_to(t.path / "elsewhere")
    for path in (t.path / "pipe", t.path / "link", "/dev/full"):
        done = t.tune(*BUDGET, env={"DITTUNE_LOCK": path}, timeout=120)
        t.check(f"{path} is warned of", done.code in (0, 6) and f"warning: cannot open the measuring lock {path} (" in done.err, done)
    t.check("nothing was made through the link", not (t.path / "elsewhere").exists())
    for kind, make in (("a pipe", os.mkfifo), ("a folder", os.mkdir), ("a link", lambda path: path.symlink_to(t.path / "elsewhere"))):
        store = t.path / f"store of {kind}"
        store.mkdir()
        make(store / "lock")
        done = t.tune(*BUDGET, "--db", store, timeout=120)
        t.exits(f"a store whose lock is {kind} is refused before anything is measured", done, 74, err=f"{store}/lock")
        t.check("and no trial was made", "trial 1" not in done.err and not list(store.glob("runs/*")), done.err)
    done = t.tune(*BUDGET, env={"DITTUNE_LOCK": t.path / "none" / "lock"})
    t.exits("a lock that cannot be opened is a warning", done, 0, err="warning: cannot open the measuring lock")


def busy_machine():
    sentence = "dittune: warning: 4000.3 processes want to run on"
    load = {"DITTUNE_CLOCK_LOAD": "4000.3"}
    done = t.tune(*BUDGET, env=load)
    t.check("a busy machine is warned of before the first trial", done.code in (0, 6) and sentence in done.err
            and done.err.index(sentence) < done.err.index("trial 1 "), done)
    t.check("the warning is that of doctor", "4000.3 processes want to run on" in t.tool("doctor", env=load).out)
    t.check("--quiet gives no warning", sentence not in t.tune(*BUDGET, "--quiet", env=load).err)
    t.check("an idle machine gives no warning", "want to run" not in t.tune(*BUDGET).err)


for part in (made_for_everyone, no_wait, waits, wait_has_a_limit, strangers, folder_of_locks, private_commands, interrupted, ends_with_the_controller, not_a_lock, busy_machine):
    part()
t.none_left()
t.finish()
