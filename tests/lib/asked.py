# SPDX-License-Identifier: MIT
"""A worker asked as the controller asks (docs/protocol.md), one answer to each request."""
import json
import subprocess


class Asked:
    def __init__(self, words, environment):
        self.process = subprocess.Popen(list(map(str, words)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                        text=True, env=environment)

    def hear(self):
        while (message := json.loads(self.process.stdout.readline() or '{"op": "failed", "say": "it ended"}'))["op"] == "heartbeat":
            pass
        return message

    def ask(self, **request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return self.hear()

    def end(self):
        self.process.stdin.close()
        return self.process.wait(60)
