# SPDX-License-Identifier: MIT
# ctest: ranks
"""Nothing of a command's run is there when the next one starts: ranks in process groups and sessions of their own, double forks,
servers, what ignores SIGTERM; after a run that ends well, one that fails, and one that takes too long."""
import contextlib
import os
import shutil
import signal
import subprocess
import time

from lib_command import PLAN, USUAL, Worker, prepared, program, t, warnings

MARK = "dittune-left-4713"


def marked():
    """Pids of what this test's programs started, found by the argument that they carry."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                if MARK.encode() in file.read().split(b"\0"):
                    found.append(int(pid))
        except OSError:
            pass
    return found


# A process that runs until it is ended, and says when it is there.
CODE = f'import time; open("{t.path}/there", "w"); time.sleep(600)'
SLEEPER = program("sleeper", f"#!/bin/sh\nexec python3 -c '{CODE}' {MARK}\n")
os.chmod(t.path, 0o777)  # another user's process writes there, too
CGROUP = f"/sys/fs/cgroup/dittune-test-{os.getpid()}"
# Starts it as an argument says, waits until it is there, and goes on as the second says.
START = program("starts", f"""#!/bin/sh
rm -f {t.path}/there
case $1 in
plain) {SLEEPER} & ;;
group) python3 -c 'import os, sys; os.setpgid(0, 0); os.execv(sys.argv[1], sys.argv[1:])' {SLEEPER} & ;;
session) setsid {SLEEPER} </dev/null >/dev/null 2>&1 & ;;
double) (setsid sh -c '{SLEEPER} &' &) ;;
deaf) python3 -c 'import signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
{CODE}' {MARK} & ;;
stopped) {SLEEPER} & stop=$! ;;
closed) python3 -c 'import os
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.chdir("/")
        os.closerange(0, 64)
        os.execv("{SLEEPER}", ["{SLEEPER}"])
os._exit(0)' ;;
namespace) unshare --fork --pid --kill-child {SLEEPER} & ;;
stranger) setsid setpriv --reuid 65534 --clear-groups python3 -c '{CODE}' {MARK} >/dev/null 2>&1 & ;;
cgroup) {SLEEPER} & mkdir {CGROUP} && echo $! >{CGROUP}/cgroup.procs ;;
hopping) python3 -c 'import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    open("{t.path}/there", "w")
    end = time.monotonic() + 600
    while time.monotonic() < end and os.fork() == 0:
        time.sleep(0.0005)
os._exit(0)' {MARK} ;;
esac
until [ -e {t.path}/there ]; do sleep 0.01; done
[ -z "$stop" ] || kill -STOP $stop
case $2 in
well) echo took 0.5 s ;;
badly) exit 3 ;;
hangs) sleep 600 ;;
killed) kill -9 $$ ;;
esac
""")


def every_kind():
    """However it is detached and however the run ends, it is gone when the answer comes."""
    for how in ("plain", "group", "session", "double", "deaf", "stopped"):
        for ends in ("well", "badly", "hangs", "killed"):
            if how in ("deaf", "stopped") and ends in ("badly", "killed"):
                continue
            worker = Worker(f"{START} {how} {ends} {{ranks}} {{mode}}", *USUAL, "--timeout", "3" if ends == "hangs" else "60")
            answer = worker.prepare()
            left = marked()
            t.check(f"{how}, ends {ends}: nothing is left when the answer comes", left == [], (left, answer))
            t.check(f"{how}, ends {ends}: the answer is that of the run", answer["op"] == ("prepared" if ends == "well" else "failed"), answer)
            worker.end()


def daemons():
    """What daemons, containers and launchers of other users do: all descriptors closed, a pid namespace, another uid, another control
    group, a process whose pid changes each half millisecond."""
    kinds = ["closed", "hopping"]
    if os.geteuid() == 0 and shutil.which("setpriv"):
        kinds.append("stranger")
    if shutil.which("unshare") and subprocess.run(["unshare", "--fork", "--pid", "true"], stderr=subprocess.DEVNULL).returncode == 0:
        kinds.append("namespace")
    with contextlib.suppress(OSError):
        os.mkdir(CGROUP)
        os.rmdir(CGROUP)
        kinds.append("cgroup")
    for how in kinds:
        answer = prepared(f"{START} {how} well {{ranks}} {{mode}}")
        left = marked()
        told = "left processes behind" in str(warnings(answer)) or (how == "hopping" and "of a core busy" in answer.get("say", ""))  # its forks compute
        t.check(f"{how}: nothing is left, and it is told", left == [] and told, (left, answer))
    with contextlib.suppress(OSError):
        os.rmdir(CGROUP)
    many = program("many", f"""#!/usr/bin/env python3
import os, socket, sys, time
ours, theirs = socket.socketpair()
for i in range(20):
    if os.fork() == 0:
        os.setsid()
        if i == 19:
            server = socket.create_server(("127.0.0.1", 0))
        theirs.send(b"x")
        time.sleep(600)
for i in range(20):
    ours.recv(1)
print("took 0.001 s", flush=True)
""")
    answer = prepared(f"{many} {{ranks}} {{mode}} {MARK}")
    t.check("the twentieth of those left listens", answer["op"] == "failed" and "listened on port" in answer["say"] and not marked(), answer)


TORCHRUN = program("torchrun", f"""#!/usr/bin/env python3
# As PyTorch's subprocess_handler: each rank is a session of its own, SIGTERM ends all and waits for them.
import os, signal, subprocess, sys, time
def end(*_):
    for rank in ranks:
        rank.terminate()
    time.sleep(30)
signal.signal(signal.SIGTERM, end)
ranks = [subprocess.Popen([sys.executable, *sys.argv[3:]], env=dict(os.environ, RANK=str(i)), start_new_session=True) for i in range(int(sys.argv[2]))]
for rank in ranks:
    rank.wait()
""")


def torchrun():
    """Its ranks, one of which ignores SIGTERM, hang: they end at --timeout, and are not there beside the runs of the next plan. A real
    one where PyTorch is, and in any case one that starts its ranks as PyTorch does."""
    rank = t.write("rank.py", f"""import os, signal, sys, time
if os.environ["RANK"] == "1":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
open("{t.path}/rank" + os.environ["RANK"], "w")
if sys.argv[1] == "2":
    time.sleep(600)
print("took 0.001 s", flush=True)
""")
    for launcher in (TORCHRUN, *filter(None, [shutil.which("torchrun")])):
        worker = Worker(f"{launcher} --nproc-per-node 2 {rank} {{ranks}} {MARK} {{mode}}", *USUAL, "--timeout", "60" if launcher != TORCHRUN else "3")
        answer = worker.prepare(ranks=2, mode="plain")
        t.check(f"ranks that hang end at the time-out: {launcher}", answer["op"] == "failed" and "did not end within" in answer["say"] and not marked()
                and all((t.path / f"rank{i}").exists() for i in (0, 1)), (marked(), answer))
        answer = worker.prepare(ranks=1)
        t.check(f"and the next plan has no company: {launcher}", answer["op"] == "prepared" and not marked() and not warnings(answer), (marked(), answer))
        worker.end()


def tells():
    """A run that left something is told with its names; one that listened, or kept a core busy, fails."""
    answer = prepared(f"{START} session well {{ranks}} {{mode}}")
    told = warnings(answer)
    t.check("the names are told", told == [{"say": "left processes behind, which were ended: python3", "runs": 1}] and answer["runs"] == 1, answer)
    answer = prepared(f"{START} session well {{ranks}} {{mode}}", *USUAL, "--leftovers", "fail")
    t.check("--leftovers fail", answer["op"] == "failed" and "left process" in answer["say"] and "(python3)" in answer["say"], answer)
    answer = prepared("sh -c 'echo took 1 s # {ranks} {mode}'", *USUAL, "--leftovers", "fail")
    t.check("a program that leaves nothing is well", answer["op"] == "prepared" and not warnings(answer), answer)
    answer = prepared("sh -c 'echo took 1 s # {ranks} {mode}'", *USUAL, "--leftovers", "some")
    t.check("another word", answer["op"] == "failed" and "--leftovers 'some' is neither kill nor fail" in answer["say"], answer)
    for family, address in (("AF_INET", "127.0.0.1"), ("AF_INET6", "::1")):
        try:
            with open("/proc/net/tcp6", encoding="utf-8"):
                pass
        except OSError:
            continue
        server = program("server", f"""#!/bin/sh
setsid python3 -c 'import socket, time
s = socket.socket(socket.{family}); s.bind(("{address}", 0)); s.listen()
open("{t.path}/port", "w").write(str(s.getsockname()[1]))
time.sleep(600)' {MARK} >/dev/null 2>&1 &
until [ -s {t.path}/port ]; do sleep 0.01; done
echo took 0.5 s
""")
        answer = prepared(f"{server} {{ranks}} {{mode}}")
        port = t.read("port")
        t.check(f"a server that is left fails the run: {family}", answer["op"] == "failed" and f"listened on port {port}" in answer["say"], answer)
        t.check("and is ended", not marked())
        os.unlink(t.path / "port")
    answer = prepared(f"sh -c 'setsid sh -c \"while :; do :; done\" {MARK} & echo took 1 s # {{ranks}} {{mode}}'")
    t.check("one that computes fails the run", answer["op"] == "failed" and "of a core busy" in answer["say"], answer)
    answer = prepared("sh -c 'setsid sleep 0.02 & echo took 1 s # {ranks} {mode}'")
    t.check("what ends by itself a moment later is none", answer["op"] == "prepared" and not warnings(answer), answer)


def time_is_the_runs():
    """The clean-up, here of a process that ignores SIGTERM for the whole grace, is no part of the run's time."""
    worker = Worker(f"{START} deaf well {{ranks}} {{mode}}", "--space", USUAL[1], "--time", "wall")
    began = time.monotonic()
    answer = worker.prepare()
    took = time.monotonic() - began
    t.check("the time of the run lacks the grace", answer["op"] == "prepared" and took - answer["cold_ns"][0] * 1e-9 > 0.45, (took, answer))
    worker.end()


def says_goodbye():
    """TERM comes before KILL, so a launcher can end its ranks. It has the time to begin on a busy machine."""
    launcher = program("launcher", f"""#!/bin/sh
trap 'echo asked >{t.path}/asked; exit 0' TERM
sleep 600 &
wait
""")
    answer = prepared(f"{launcher} {{ranks}} {{mode}}", *USUAL, "--timeout", "3")
    t.check("a run that takes too long is asked to end", answer["op"] == "failed" and (t.path / "asked").exists(), answer)


def mpirun():
    """Ranks of mpirun, each in a process group of its own."""
    if shutil.which("mpirun") is None:
        return
    t.environment |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    answer = prepared(f"mpirun --oversubscribe -np 2 {SLEEPER} {{ranks}} {{mode}}", *USUAL, "--timeout", "4")
    t.check("ranks of mpirun end with it", answer["op"] == "failed" and not marked(), (marked(), answer))


def the_controller_goes():
    """Whatever runs goes with the controller, or on SIGTERM of the worker's tree."""
    worker = Worker(f"{START} double hangs {{ranks}} {{mode}}")
    worker.process.stdin.write('{"op":"prepare","plan":' + str(PLAN).replace("'", '"') + ',"seed":1}\n')
    worker.process.stdin.flush()
    t.until(marked)
    worker.process.stdin.close()
    t.check("the controller has gone: so has everything", worker.process.wait(60) == 0 and not marked(), marked())


def a_signal():
    """SIGTERM of dittune during a run does not wait for the run: it ends with all that it started (7.5 s went by before)."""
    space = t.write("one.json", {"parameters": {"a": [1, 2]}})
    running = t.start("--budget", "10m", "--space", space, "--time", "wall", "--command", f"{START} session hangs {{a}}")
    t.until(lambda: marked() or running.poll() is not None)
    began = time.monotonic()
    running.terminate()
    code, took = running.wait(60), time.monotonic() - began
    t.check("SIGTERM during a run", code == 143 and took < 6 and not marked(), (code, took, marked()))


for part in (every_kind, daemons, torchrun, tells, time_is_the_runs, says_goodbye, mpirun, the_controller_goes, a_signal):
    part()
for pid in marked():
    os.kill(pid, signal.SIGKILL)
t.none_left()
t.finish()
