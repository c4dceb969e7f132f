# SPDX-License-Identifier: MIT
# ctest: ranks
"""--server: started once a plan on a free port, asked request by request, ended with all its ranks; how a start, a request and an answer
go wrong; files and addresses that are refused."""
import contextlib
import json
import os
import pathlib
import shlex
import socket
import sys
import threading
import time

import lib_command
from lib_command import WORKER, t

PROGRAM = pathlib.Path(__file__).with_name("lib_server.py")
LOG = t.path / "server.log"
t.environment["SERVER_LOG"] = str(LOG)
SPACE = t.write("served.json", {"parameters": [{"name": "ranks", "role": "ranks", "values": [1, 2, 3], "default": 1}]})
ASK = t.write("ask.http", 'POST /v1/images\n\n{"prompt": "a cat"}')
COMMAND = f"{sys.executable} {shlex.quote(str(PROGRAM))} port={{port}} ranks={{ranks}} ms=60"


class Worker(lib_command.Worker):
    def __init__(self, more="", *options, command=COMMAND):
        super().__init__(f"{command} {more}", "--space", SPACE, "--request", ASK, *options, option="--server")

    def prepare(self, ranks=1):
        return self.ask(op="prepare", plan={"ranks": ranks}, seed=1, verify={"projections": 2, "seed": 1})

    def run(self, handle=1, n=1):
        return self.ask(op="run", handle=handle, n=n, mode="measure")


def servers():
    return [pid for pid, line in t.processes() if PROGRAM.name in line and not line.startswith(str(WORKER))]


def starts():
    return [line.split() for line in LOG.read_text().splitlines() if line.startswith("start ")]


def once_a_plan():
    """One start, any number of requests, each with its time; ranks of any kind are gone after the plan."""
    LOG.write_text("")
    worker = Worker("", "--time", "json:seconds", "--requests", "5")
    t.check("the job is that of the key", set(worker.hello["job"]) >= {"command", "time", "unit", "request"} and shlex.split(worker.hello["job"]["command"]) == shlex.split(COMMAND), worker.hello)
    t.check("hello says what a step is", worker.hello["unit"] == "request" and worker.hello["alone"] is True and worker.hello["samples"] == 5, worker.hello)
    answer = worker.prepare(ranks=3)
    t.check("prepared: the time of the first request", answer["op"] == "prepared" and answer["cold_ns"][0] >= 20_000_000 and answer["peak_bytes"][0] > 1 << 20
            and len(answer["cold_ns"]) == 3, answer)
    t.check("its ranks run, in sessions of their own", len(servers()) == 4 and len({os.getsid(pid) for pid in servers()}) == 4, servers())
    answer = worker.run(n=4)
    t.check("each request is a sample", answer["op"] == "samples" and answer["ns"] == [[20_000_000] * 3] * 4, answer)
    again = worker.prepare(ranks=1)
    t.check("a second plan finds the machine taken", again["op"] == "failed" and again["kind"] == "memory" and "one at a time" in again["say"], again)
    t.check("while the first goes on", worker.run()["op"] == "samples")
    answer = worker.ask(op="release", handle=1)
    t.check("released: nothing of it is left", answer["op"] == "released" and not servers(), (answer, servers()))
    answer = worker.prepare(ranks=2)
    t.check("then the next plan is started", answer["op"] == "prepared" and worker.run(handle=2)["ns"] == [[30_000_000] * 2], answer)
    requests = sum(line.startswith("request ") for line in LOG.read_text().splitlines())
    t.check("one start a plan", [words[3] for words in starts()] == ["ranks=3", "ranks=2"] and requests == 1 + 4 + 1 + 1 + 1, LOG.read_text())
    ports = {words[2] for words in starts()}
    t.check("quit: nothing is left", worker.end() == 0 and not servers(), servers())
    t.check("each on a port of its own", len(ports) == 2, ports)
    most = Worker("", "--metric", "s=json:seconds", "--objective", "max:s")
    first, run = most.prepare(ranks=3), most.run(n=2)
    most.end()
    t.check("a metric of the answer is sent as its inverse", run["ns"] == [[50_000_000_000] * 3] * 2 and first["cold_ns"][0] < 20_000_000_000
            and most.hello["objective"] == "max:s", (first, run))


def wall():
    """Without --time: the time of the request, from sending it to the last byte of the answer."""
    worker = Worker("wall=1")
    answer = worker.prepare()
    ns = worker.run(n=2)["ns"]
    t.check("the wall time of the request, not of the start", answer["op"] == "prepared" and all(60_000_000 <= row[0] for row in ns), ns)
    worker.end()


def ends():
    """However the worker ends, and whatever the ranks ignore."""
    for more in ("", "mode=deaf", "mode=background"):
        worker = Worker(more)
        answer = worker.prepare(ranks=2)
        t.check(f"up {more}", answer["op"] == "prepared" and len(servers()) == 3, (answer, servers()))
        t.check(f"the end of the input: nothing is left {more}", worker.end() == 0 and not servers(), servers())
    worker = Worker("mode=chatty")
    answer = worker.prepare()
    t.check("a server that prints much", answer["op"] == "prepared" and worker.run()["op"] == "samples", answer)
    worker.end()
    worker = Worker("mode=wedge at=1")
    worker.process.stdin.write(json.dumps({"op": "prepare", "plan": {"ranks": 2}, "seed": 1}) + "\n")
    worker.process.stdin.flush()
    t.until(lambda: "request" in LOG.read_text().splitlines()[-1])
    t.check("the controller is gone amid a request: so is all", worker.end() == 0 and not servers(), servers())


def fails():
    """What goes wrong is told apart, by its kind and the last words of the server."""
    cases = [("mode=typo", "error", "the server exited with 1 before it was ready; its output ends with: loading the model|error: unknown argument --usp"),
             ("mode=large", "memory", "the server exited with 1 before it was ready; its output ends with: RuntimeError: [enforce fail] CUDA out of memory"),
             ("mode=loading", "hung", "the server was not ready within 1.5 s (--start-timeout): on port "),
             ("mode=silent", "hung", "the server was not ready within 1.5 s (--start-timeout): on port "),
             ("mode=wedge at=1", "hung", "the server did not answer the request within 1 s (--timeout)"),
             ("mode=memory at=1", "memory", "the server answered 500: torch.OutOfMemoryError: CUDA out of memory. Tried"),
             ("mode=error at=1", "error", "the server answered 500: internal error; the server's output ends with: Traceback: no such scheduler"),
             ("mode=dies at=1", "error", "the server was killed by signal 9 while it was asked; its output ends with: rank 1 lost its device")]
    for more, kind, part in cases:
        worker = Worker(more, "--timeout", "1", *(("--start-timeout", "1.5") if "start-timeout" in part else ()))
        answers = [worker.prepare(ranks=2) for _ in range(2 if "typo" in more else 1)]
        t.check(f"{more}: {kind}", all(answer["op"] == "failed" and answer["kind"] == kind and part in answer["say"] for answer in answers), answers)
        t.check("nothing is left, and the worker ends well", not servers() and worker.end() == 0, servers())
    for more, kind, part in (("mode=wedge", "hung", "within 1 s (--timeout)"), ("mode=memory", "memory", "CUDA out of memory"),
                             ("mode=dies", "crashed", "was killed by signal 9 while it was asked"), ("mode=error", "error", "the server answered 500")):
        worker = Worker(more, "--timeout", "1")
        t.check("the first request is answered", worker.prepare()["op"] == "prepared")
        answer = worker.run()
        t.check(f"a later one, {more}: {kind}", answer["op"] == "failed" and answer["kind"] == kind and part in answer["say"], answer)
        if kind == "error":
            t.check("which the server survives", worker.run()["op"] == "samples")
        t.check("its end is as usual", worker.ask(op="release", handle=1)["op"] == "released" and not servers() and worker.end() == 0, servers())
    worker = Worker(command="./nowhere {port} {ranks}")
    answer = worker.prepare()
    t.check("no such program", answer["kind"] == "infeasible" and "the program './nowhere' of the server cannot be run" in answer["say"], answer)
    worker.end()


class Answers(threading.Thread):
    """A port of this process on which every request gets the same bytes."""

    def __init__(self, port=0, answer=b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"):
        super().__init__(daemon=True)
        self.socket, self.answer = socket.create_server(("127.0.0.1", port)), answer
        self.port = self.socket.getsockname()[1]
        self.start()

    def run(self):
        try:
            while True:
                connection = self.socket.accept()[0]
                connection.recv(65536)
                connection.sendall(self.answer)
                connection.close()
        except OSError:
            pass

    def close(self):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()


def ports():
    """What answers must be the server that was started, not one that was there before or came in between."""
    left_over = Answers()
    fixed = f"http://127.0.0.1:{left_over.port}/health"
    worker = Worker("", "--ready", fixed, command=COMMAND.replace("{port}", str(left_over.port)))
    answer = worker.prepare()
    t.check("a port that is taken is named with its owner", answer["op"] == "failed" and f"process {os.getpid()} (python" in answer["say"]
            and f"listens on port {left_over.port} before the server is started" in answer["say"], answer)
    left_over.close()
    t.check("and served when it is free", t.until(lambda: worker.prepare()["op"] == "prepared", 20))
    worker.end()
    # The server tells us its port, and we are there first; with `exit 1` it then ends, as one whose port is taken does.
    port, there, thefts = t.path / "port", t.path / "there", []
    os.mkfifo(port)
    os.mkfifo(there)

    def steal():
        while number := port.read_text().strip():
            thefts.append(Answers(int(number)))
            there.write_text("\n")

    threading.Thread(target=steal, daemon=True).start()
    answered = f"is answered by process {os.getpid()} (python"
    for ending, parts in (("sleep 600", [answered]), ("exit 1", ["exited with 1 before it was ready", answered])):
        script = lib_command.program("robbed", f"#!/bin/sh\necho $1 >{port}\nread _ <{there}\n{ending}\n")
        worker = Worker(command=f"{script} {{port}} {{ranks}}")
        answer = worker.prepare()
        t.check(f"another program answers on its port: {ending}", answer["op"] == "failed" and any(part in answer["say"] for part in parts), answer)
        worker.end()
    t.check("a start whose port was taken is tried on others", len({theft.port for theft in thefts}) == 6, thefts)


def shapes():
    """Answers of every shape, as the bytes of a program that is no HTTP library's."""
    ok = "HTTP/1.1 200 OK\r\n"
    good = {"by its length": ok + "content-length:  18 \r\n\r\n" + '{"seconds":0.0123}',
            "to the end of the connection": ok + '\r\n{"seconds":0.0123}',
            "HTTP/1.0, without a reason": 'HTTP/1.0 200 \r\n\r\n{"seconds":0.0123}',
            "by chunks": ok + 'Transfer-Encoding: chunked\r\n\r\n5;ext=1\r\n{"sec\r\n00d \r\nonds":0.0123}\r\n0\r\nTrailer: x\r\n\r\nrest',
            "after two that precede it": "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + ok + '\r\n{"seconds":0.0123}',
            "another 2xx": 'HTTP/1.1 201 Created\r\n\r\n{"seconds":0.0123}',
            "lines that end with LF alone": 'HTTP/1.1 200 OK\nContent-Length: 18\n\n{"seconds":0.0123}'}
    bad = {"cut short": (ok + "Content-Length: 99\r\n\r\n{}", "the connection ended before the answer did"),
           "cut amid its head": (ok + "Content-Le", "the connection ended before the answer did"),
           "cut amid a chunk": (ok + "Transfer-Encoding: chunked\r\n\r\n9\r\n{}", "the connection ended before the answer did"),
           "nothing": ("", "the connection ended before the answer did"),
           "no HTTP": ("SSH-2.0-OpenSSH_9\r\n", "does not begin as one of HTTP/1.1: 'SSH-2.0-OpenSSH_9'"),
           "no chunk": (ok + "Transfer-Encoding: chunked\r\n\r\n{}\r\n", "chunk does not begin with its size: '{}'"),
           "a long chunk": (ok + "Transfer-Encoding: chunked\r\n\r\n1\r\n{}\r\n", "longer than its size says"),
           "another coding": (ok + "Transfer-Encoding: gzip, chunked\r\n\r\n", "not coded as chunked alone: 'gzip, chunked'"),
           "two lengths": (ok + "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}", "Content-Length is no length: '3'"),
           "a length below zero": (ok + "Content-Length: -2\r\n\r\n{}", "Content-Length is no length: '-2'"),
           "a redirection": ("HTTP/1.1 302 Found\r\nLocation: http://10.0.0.1/\r\n\r\n", "the server answered 302"),
           "no body": ("HTTP/1.1 204 No Content\r\n\r\n", "no time where --time says"),
           "no JSON": (ok + "\r\n<html>", "no time where --time says"),
           "no limit": (ok + "x: " + "y" * 70000 + "\r\n\r\n", "a line of more than"),
           "no memory": ("HTTP/1.1 500 x\r\n\r\nHIP out of memory", "the server answered 500: HIP out of memory")}
    served = t.path / "bytes"
    program = t.write("bytes.py", f"""import socket, sys
with socket.create_server(("127.0.0.1", int(sys.argv[1]))) as server:
    while True:
        connection = server.accept()[0]
        asked = connection.recv(65536)
        connection.sendall(b"HTTP/1.1 200 OK\\r\\n\\r\\n" if asked.startswith(b"GET /health ") else open({str(served)!r}, "rb").read())
        connection.close()
""")
    worker = Worker("", "--time", "json:seconds", command=f"{sys.executable} {program} {{port}} {{ranks}}")
    served.write_text(good["by its length"])
    t.check("a server of bytes", worker.prepare()["op"] == "prepared")
    for name, text in good.items():
        served.write_bytes(text.encode())
        answer = worker.run()
        t.check(f"an answer {name}", answer.get("ns") == [[12_300_000]], answer)
    for name, (text, part) in bad.items():
        served.write_bytes(text.encode())
        answer = worker.run()
        lib_command.cause_first(name, answer)
        t.check(f"an answer that has {name}", answer["op"] == "failed" and part in answer["say"] and answer["kind"] == ("memory" if "memory" in part else "error"), answer)
    t.check("and the server serves on", worker.end() == 0 and not servers())


def endless():
    """Answers without an end: drop by drop, in a flood, before the answer and behind its head. Each ends at --timeout, and the server
    with it; and a server that listens on IPv6 alone."""
    ok = "HTTP/1.1 200 OK\\r\\n"
    bodies = {"one byte now and then": (f"{ok}\\r\\n", "x", 0.02), "a head, byte by byte": ("", "x", 0.02), "a body without end": (f"{ok}\\r\\n", "x" * 65536, 0),
              "chunks without end": (f"{ok}Transfer-Encoding: chunked\\r\\n\\r\\n", "1\\r\\nx\\r\\n" * 1000, 0), "interim answers": ("", "HTTP/1.1 100 Continue\\r\\n\\r\\n" * 1000, 0),
              "another protocol": ("HTTP/1.1 101 Switching Protocols\\r\\n\\r\\n", "", 0.02)}
    text = """import contextlib, socket, sys, time
address = sys.argv[2]
with socket.create_server((address, int(sys.argv[1])), family=socket.AF_INET6 if ":" in address else socket.AF_INET) as server:
    while True:
        connection = server.accept()[0]
        health = connection.recv(65536).startswith(b"GET /health ")
        with contextlib.suppress(OSError):
            connection.sendall(b"HTTP/1.1 200 OK\\r\\n\\r\\n" if health or PAUSE is None else b"HEAD")
            while not health and PAUSE is not None:
                connection.sendall(b"PART")
                time.sleep(PAUSE)
        connection.close()
"""
    for name, (head, part, pause) in bodies.items():
        program = t.write("endless.py", text.replace("HEAD", head).replace("PART", part).replace("PAUSE", str(pause)))
        worker = Worker("", "--timeout", "0.5", command=f"{sys.executable} {program} {{port}} 127.0.0.1 {{ranks}}")
        answer = worker.prepare()
        t.check(f"an answer that does not end: {name}", answer["op"] == "failed" and answer["kind"] == "hung" and "within 500 ms (--timeout)" in answer["say"], answer)
        left = [line for _, line in t.processes() if "endless.py" in line and not line.startswith(str(WORKER))]
        t.check("and nothing is left", worker.end() == 0 and not left, left)
    with contextlib.suppress(OSError):
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
        program = t.write("six.py", text.replace("PAUSE", "None"))
        ask = t.write("six.http", "POST http://[::1]:{port}/x\n\n{}")
        worker = Worker("", "--ready", "http://[::1]:{port}/health", "--request", ask, command=f"{sys.executable} {program} {{port}} ::1 {{ranks}}")
        answer = worker.prepare()
        t.check("a server on IPv6 alone", answer["op"] == "prepared" and worker.run()["op"] == "samples", answer)
        worker.end()


def echo(text, *more):
    """The request that the server gets of a file, and the hash of the file."""
    path = t.path / "echo.http"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    seen = t.path / "seen.json"
    program = t.write("seen.py", f"""import http.server, json, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path != "/health":
            json.dump([self.command, self.path, [[k, v] for k, v in self.headers.items()], body.decode("latin-1")], open({str(seen)!r}, "w"))
        self.send_response(200)
        self.end_headers()
    do_POST = do_PUT = do_GET
    def log_message(self, *words): pass
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
""")
    worker = Worker("", "--request", path, *more, command=f"{sys.executable} {program} {{port}} {{ranks}}")
    answer = worker.prepare()
    worker.end()
    if answer["op"] != "prepared":
        t.check("the request is answered", False, answer)
        return ["", "", {}, ""]
    method, target, headers, body = json.loads(seen.read_text())
    names = [name.lower() for name, _ in headers]
    t.check("no header is there twice", len(names) == len(set(names)), headers)
    return [method, target, dict((name.lower(), value) for name, value in headers), body]


def requests():
    """The file becomes the request, byte by byte where it matters."""
    method, target, headers, body = echo('### an image\n# of a cat\nPOST /v1/images/generations?n=1 HTTP/1.1\nAuthorization: Bearer token-1\nhost: evil\n'
                                         'Content-Length: 999\nTransfer-Encoding: chunked\n\n{"prompt": "Katze ü"}\n')
    t.check("method, path, headers and body", (method, target, body) == ("POST", "/v1/images/generations?n=1", '{"prompt": "Katze ü"}\n'.encode().decode("latin-1"))
            and headers["authorization"] == "Bearer token-1" and headers["host"].startswith("127.0.0.1:") and headers["content-length"] == str(len(body))
            and headers["content-type"] == "application/json" and "transfer-encoding" not in headers, (method, target, headers, body))
    binary = bytes(range(256)) * 3000
    method, target, headers, body = echo(b"PUT /edit\r\nContent-Type: multipart/form-data; boundary=x\r\n\r\n" + binary)
    t.check("a body of any bytes, lines with CR LF", method == "PUT" and body.encode("latin-1") == binary and headers["content-type"].startswith("multipart"), headers)
    method, target, headers, body = echo("GET http://localhost:{port}/generate\n", "--ready", "http://localhost:{port}/health")
    t.check("a whole URL, no body", (method, target, body) == ("GET", "/generate", "") and headers["host"].startswith("localhost:") and "content-length" not in headers, headers)


def refused():
    """Files and addresses that are refused, before anything is started."""
    def hello(name, part, text=None, ready=None, command=COMMAND, *more):
        path = t.path / "bad.http"
        if text is not None:
            path.write_text(text)
        worker = Worker("", "--request", path if text is not None else ASK, *(("--ready", ready) if ready else ()), *more, command=command)
        t.check(f"refused: {name}", worker.hello["op"] == "failed" and worker.hello["kind"] == "infeasible" and part in worker.hello["say"], worker.hello)
        worker.end()

    LOG.write_text("")
    for host in ("10.0.0.5", "example.org", "0.0.0.0", "127.0.0.1.example.org", "128.0.0.1", "[::]", "[2001:db8::1]", "127.1", "2130706433", "localhost.example.org", "user@10.0.0.5"):
        hello(f"--ready on {host}", "is not on this machine, whose addresses are 127.0.0.1, [::1] and localhost", ready=f"http://{host}:{{port}}/health")
        hello(f"a request to {host}", "is not on this machine", text=f"GET http://{host}:{{port}}/x\n")
    for ready in ("https://127.0.0.1:{port}/health", "127.0.0.1:{port}/health", "http://127.0.0.1/health", "http://127.0.0.1:0/", "http://127.0.0.1:70000/", "http://127.0.0.1:{ports}/",
                  "http://user@127.0.0.1:{port}/", "http://127.0.0.1:80@10.0.0.5/", "http://127.0.0.1:{port}/a b", "http://:{port}/", "http://[::1:{port}/"):
        hello(ready, "--ready '", ready=ready)
    for name, text in (("an empty file", ""), ("only comments", "# none\n\n"), ("JSON alone", '{"prompt": "a cat"}'), ("a path alone", "/v1/images\n\n{}"),
                       ("small letters", "post /v1/images\n\n{}"), ("too many words", "POST /v1 /images\n\n{}"), ("no header", "POST /v1\nprompt\n\n{}"), ("a fragment", "POST /v1#x\n\n{}")):
        hello(name, "bad.http", text=text)
    for name, part, more in (("a limit", "--limit belongs to --command", ("--metric", "s=json:seconds", "--limit", "s <= 1")),
                             ("a bar", "a server's time is read from its answer", ("--time", "tqdm")), ("a result's file", "is read from its answer", ("--time", "json:x.json:t"))):
        hello(name, part, None, None, COMMAND, *more)
    hello("no such file", "cannot read the request's file", None, None, COMMAND, "--request", t.path / "none.http")
    hello("no {port}", "the server has no {port}", command=COMMAND.replace("{port}", "8000"))
    hello("no {ranks}", "the command has no {ranks}", command=COMMAND.replace("{ranks}", "1"))
    hello("another placeholder", "placeholder '{tp}' is no parameter", command=COMMAND + " {tp}")
    taken = t.write("taken.json", {"parameters": [{"name": "ranks", "values": [1, 2]}, {"name": "port", "values": [1, 2]}]})
    hello("a parameter called port", "the space has the name 'port'", None, None, COMMAND, "--space", taken)
    hello("--requests 0", "--requests '0' is not a number above zero", None, None, COMMAND, "--requests", "0")
    hello("--start-timeout x", "--start-timeout 'x' is not a number of seconds", None, None, COMMAND, "--start-timeout", "x")
    t.check("nothing was started", LOG.read_text() == "", LOG.read_text())


only = sys.argv[3:]
for part in [part for part in (once_a_plan, wall, ends, fails, ports, shapes, endless, requests, refused) if not only or part.__name__ in only]:
    began = time.monotonic()
    part()
    print(f"-- {part.__name__}: {time.monotonic() - began:.1f} s", flush=True)
t.none_left()
t.finish()
