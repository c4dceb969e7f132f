# SPDX-License-Identifier: MIT
"""Messages between the speaker and the ranks of a worker, and how a fault becomes one."""
import json

MOST = 64 << 20  # bytes of a message


class Refused(Exception):
    """A request that cannot be served: (kind, sentence). kind: infeasible, memory, unapplied or error."""


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


def check_applied(plan, applied):
    """Refused when the engine runs with another value of a parameter than the plan's: a flag without effect would compare a
    plan with itself. applied: {parameter: what it runs with}, as far as it tells."""
    for name, value in applied.items():
        if plan.get(name, value) != value:
            raise Refused("unapplied", f"the engine runs with {name}={value}, the plan has {name}={plan[name]}")


def first_other(values, asked):
    """Of the values that the parts of a model have, one that is not as asked, else that."""
    return next((value for value in values if value != asked), asked)


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
