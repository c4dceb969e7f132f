# SPDX-License-Identifier: MIT
"""A worker that is talked to by docs/protocol.md."""
import json
import subprocess


class Worker:
    def __init__(self, words, **how):
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, **how)

    def hear(self):
        while True:
            line = self.process.stdout.readline()
            if not line:
                raise RuntimeError("the worker ended")
            message = json.loads(line)
            if message["op"] == "failed":
                raise RuntimeError(message["say"])
            if message["op"] != "heartbeat":
                return message

    def ask(self, **message):
        print(json.dumps(message), file=self.process.stdin, flush=True)
        return self.hear()
