# SPDX-License-Identifier: MIT
"""Messages between the speaker and the ranks of a worker, and how a fault becomes one."""
import json

MOST = 64 << 20  # bytes of a message


class Refused(Exception):
    """A request that cannot be served: (kind, sentence). kind: infeasible, memory or error."""


def fault(error):
    """An exception as the fields of `failed`."""
    if isinstance(error, Refused):
        kind, say = error.args
    else:
        text = str(error).strip()
        say = f"{type(error).__name__}: {' '.join(text.split())[:400]}"
        memory = isinstance(error, MemoryError) or "OutOfMemory" in type(error).__name__ \
            or "out of memory" in text.lower() or "can't allocate memory" in text.lower()
        kind = "memory" if memory else "error"
    return dict(op="failed", kind=kind, say=say)


def check_kept(engine, asked, kept):
    """Refused when an engine has dropped a setting without a word. asked, kept: {name: value}, what was set and what it runs with,
    as far as it tells."""
    for name, value in asked.items():
        if kept.get(name, value) != value:
            raise Refused("error", f"{engine} dropped {name}={value} without a word: it runs with {kept[name]}")


class Link:
    """Messages, one JSON object a line, over a socket."""

    def __init__(self, end):
        self.end, self.rest = end, b""

    def fileno(self):
        return self.end.fileno()

    def send(self, message):
        self.end.sendall(json.dumps(message).encode() + b"\n")

    def waiting(self):
        """A whole message has been read already, so that receive() does not wait."""
        return b"\n" in self.rest

    def receive(self):
        """The next message; None at the end."""
        while not self.waiting():
            try:
                piece = self.end.recv(1 << 16)
            except ConnectionResetError:
                piece = b""
            if not piece:
                return None
            self.rest += piece
            if len(self.rest) > MOST:
                raise ValueError(f"a message of more than {MOST >> 20} MiB")
        line, _, self.rest = self.rest.partition(b"\n")
        return json.loads(line)
