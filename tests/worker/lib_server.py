# SPDX-License-Identifier: MIT
"""A small HTTP server whose ranks live in sessions of their own and compute each request together, with planted times and faults.

    python3 lib_server.py port=4711 ranks=2 ms=40 [mode=..] [at=N]

Its answer to POST /v1/images is JSON: "seconds" is ms / ranks, "sum" what the ranks computed, "echo" the request as it came. The request
number `at` meets the fault of `mode`. $SERVER_LOG gets a line for each start and each request.
"""
import http.server
import json
import os
import signal
import socket
import sys
import time

WORDS = dict(word.split("=", 1) for word in sys.argv[1:])
PORT, RANKS = int(WORDS.get("port", 0)), int(WORDS.get("ranks", 1))
SECONDS, MODE, AT = float(WORDS.get("ms", 1)) / 1000 / RANKS, WORDS.get("mode", "well"), int(WORDS.get("at", 2))
EACH = 20000  # numbers that a rank adds for a request


def note(text):
    with open(os.environ["SERVER_LOG"], "a", encoding="utf-8") as log:
        log.write(text + "\n")


def rank(number):
    """A process in a session of its own, whose parent has ended, which adds its share of the numbers for each request."""
    ours, theirs = socket.socketpair()
    if os.fork() == 0:
        os.setsid()
        if os.fork() > 0:
            os._exit(0)
        if MODE == "deaf":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        ours.close()
        while theirs.recv(1):
            theirs.sendall(sum(range(number * EACH, (number + 1) * EACH)).to_bytes(8, "big"))
        os._exit(0)
    os.wait()
    theirs.close()
    return ours


def compute(ranks):
    for one in ranks:
        one.sendall(b"x")
    return sum(int.from_bytes(one.recv(8), "big") for one in ranks)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    count = 0

    def log_message(self, *words):
        pass

    def say(self, status, text):
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Length", len(body))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.say(503 if MODE == "loading" else 200, "health")

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        Handler.count += 1
        note(f"request {os.getpid()} {Handler.count}")
        fault = MODE if Handler.count == AT else "well"
        if fault == "wedge":
            time.sleep(600)
        if fault == "dies":
            print("rank 1 lost its device", file=sys.stderr, flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
        if fault == "memory":
            return self.say(500, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB")
        if fault == "error":
            print("Traceback: no such scheduler", file=sys.stderr, flush=True)
            return self.say(500, "internal error")
        if WORDS.get("wall"):
            time.sleep(SECONDS)
        echo = dict(method=self.command, path=self.path, headers=dict(self.headers), body=body.decode("latin-1"))
        return self.say(200, json.dumps(dict(seconds=SECONDS, sum=compute(RANK), echo=echo)))


note(f"start {os.getpid()} {' '.join(sys.argv[1:])}")
if MODE == "typo":
    print("loading the model", flush=True)
    sys.exit("error: unknown argument --usp")
if MODE == "large":
    sys.exit("RuntimeError: [enforce fail] CUDA out of memory while loading shards")
if MODE == "chatty":
    sys.stdout.write("x" * 8_000_000 + "\n")
RANK = [rank(number) for number in range(RANKS)]
if MODE == "silent":
    time.sleep(600)
if MODE == "background" and os.fork() > 0:
    os._exit(0)
http.server.HTTPServer(("127.0.0.1", PORT), Handler).serve_forever()
