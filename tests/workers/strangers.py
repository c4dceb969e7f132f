# SPDX-License-Identifier: MIT
# ctest: ranks
"""The port at which ranks meet, called by strangers before the ranks come: whatever they say, or do not say, none becomes a rank, and
none keeps the start waiting. Of the shipped workers on several hosts, and of the example whose ranks dittune starts as torchrun would."""
import contextlib
import json
import os
import pathlib
import select
import socket
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from dittune_test import PATIENCE, SOURCE, Dittune

t = Dittune(clock="real")
TOKEN = "8c" * 16
ROW = json.dumps(dict(rank=1, host="stranger", pid=7))
GREETINGS = {  # what strangers say; None: they are silent, and stay
    "silence": None, "a beginning": b"8c8c", "HTTP": b"GET / HTTP/1.0\r\n\r\n", "a list": b"[1]\n[1]\n", "depth": b"[" * 100_000,
    "a line without end": b"x" * 200_000, "a rank of old": b'{"rank":1,"host":"x","pid":1}\n', "the right rank without a token": f"\n{ROW}\n".encode(),
    "a wrong token": f"{'8d' * 16}\n{ROW}\n{'8d' * 16} 1".encode(), "half a token": f"{TOKEN[:-1]}\n{ROW}\n".encode(), "bytes": bytes(range(256)), "nothing": b"",
}
KNOWN = {  # with the token, as a fault of a launcher might have it: no rank either
    **{f"rank {rank}": f'{TOKEN}\n{{"rank":{rank},"host":"x","pid":1}}\n' for rank in ("true", "1.0", '"1"', "0", "2", "-1", "null", "[1]")},
    "no object": f"{TOKEN}\n[1]\n", "depth behind it": f"{TOKEN}\n{'[' * 3000}\n", "no pid": f'{TOKEN}\n{{"rank":1,"host":"x"}}\n', "a long host": f'{TOKEN}\n{{"rank":1,"host":"{"x" * 300}","pid":1}}\n',
}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def called(port, words):
    """A connection of a stranger."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            end = socket.create_connection(("127.0.0.1", port))
            break
        except ConnectionRefusedError:
            if time.monotonic() > until:
                raise
            time.sleep(0.01)
    end.setblocking(False)
    try:
        if words:
            end.send(words)
        if words == b"":
            end.shutdown(socket.SHUT_WR)
    except OSError:  # dropped amid it
        pass
    return end


def start(program, rank, port, **variables):
    environment = {**t.environment, "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1",
                   "MASTER_PORT": str(port), "DITTUNE_TOKEN": TOKEN, "PYTHONPATH": str(SOURCE / "tests/workers"), **variables}
    return subprocess.Popen([sys.executable, *program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, bufsize=0)


def lines(process, count):
    """So many messages, heartbeats left out."""
    found = []
    while len(found) < count:
        if not select.select([process.stdout], [], [], PATIENCE)[0]:
            raise TimeoutError(found)
        line = process.stdout.readline()
        if not line:
            raise EOFError(process.stderr.read().decode())
        message = json.loads(line)
        found += [] if message["op"] == "heartbeat" else [message]
    return found


def listening(pid):
    """The addresses that a process listens at, as /proc/net/tcp has them."""
    own = set()
    for descriptor in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):  # closed meanwhile
            own.add(os.readlink(descriptor).removeprefix("socket:[").removesuffix("]"))
    rows = [line.split() for name in ("tcp", "tcp6") if os.path.exists(f"/proc/net/{name}")
            for line in pathlib.Path(f"/proc/net/{name}").read_text().splitlines()[1:]]
    return [row[1] for row in rows if row[3] == "0A" and row[9] in own]


def met(name, program, greetings, crowd, **variables):
    port = free_port()
    speaker = start(program, 0, port, **variables)
    speaker.stdin.write(b'{"op":"hello","protocol":2,"ranks":2,"devices":2,"hosts":2,"job":{}}\n')
    speaker.stdin.flush()
    strangers = [called(port, words) for words in greetings.values()] + [called(port, None) for _ in range(crowd)]
    where = listening(speaker.pid)
    rank = start(program, 1, port, **variables)
    try:
        ready = [message for message in lines(speaker, 2) if message["op"] == "ready"]
    except (EOFError, TimeoutError) as error:
        ready = [str(error)]
    t.check(f"{name}: both ranks are there", ready and isinstance(ready[0], dict) and [row["rank"] for row in ready[0]["ranks"]] == [0, 1]
            and ready[0]["ranks"][1]["pid"] == rank.pid, ready)
    t.check(f"{name}: nothing listens but on loopback", where and all(at.startswith("0100007F:") for at in where), where)
    heard = []
    for end in strangers:
        end.settimeout(PATIENCE)
        try:
            heard.append(end.recv(1000))
        except ConnectionError:
            heard.append(b"")
        end.close()
    t.check(f"{name}: strangers are told nothing, and disconnected", not any(heard), heard)
    for process in (speaker, rank):
        process.stdin.close()
    for process in (rank, speaker):
        process.wait(PATIENCE)
        process.stdout.close(), process.stderr.close()


ENGINE, EXAMPLE = [SOURCE / "tests/workers/lib_engine.py"], [SOURCE / "examples/workers/torchrun.py"]
met("a worker of engines", ENGINE, {**GREETINGS, **{name: words.encode() for name, words in KNOWN.items()}}, 300, DITTUNE_FIRST_HOST="127.0.0.1")
met("the example", EXAMPLE, {**GREETINGS, **{name: f"{TOKEN} {rank}".encode() for name, rank in (("rank 0", 0), ("rank 2", 2), ("rank 1.0", 1.0), ("no rank", ""))}}, 100)

for rank in (0, 1):
    process = start(ENGINE, rank, free_port(), DITTUNE_FIRST_HOST="127.0.0.1", DITTUNE_TOKEN="")
    _, err = process.communicate(timeout=PATIENCE)
    t.check(f"rank {rank} of a launcher that loses the token says so", process.returncode == 1 and err.decode().count("\n") == 1
            and "DITTUNE_TOKEN is not set: the launcher must pass it on" in err.decode(), err)

# ---- the token that dittune draws

seen = t.path / "seen"
worker = t.path / "worker"
worker.write_text(f"#!/bin/sh\necho $WORLD_SIZE $DITTUNE_TOKEN >>'{seen}'\nexec '{EXAMPLE[0]}'\n", encoding="utf-8")
worker.chmod(0o755)
for _ in range(2):
    done = t.tool("run", "--quick", "--json", "--worker", worker, "--plan", "ranks=2")
    t.check("two ranks that dittune starts meet", done.code == 0 and done.json["ranks"] == 2, done)
tokens = [line.split()[1] for line in seen.read_text(encoding="ascii").splitlines() if line.startswith("2 ")]
t.check("ranks of a start have one token, of 128 bits, and another start another", len(tokens) == 2 * len(set(tokens)) > 2
        and all(tokens.count(token) == 2 and len(token) == 32 and set(token) <= set("0123456789abcdef") for token in tokens), tokens)
t.none_left()
t.finish()
