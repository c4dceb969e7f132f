# SPDX-License-Identifier: MIT
"""The speaker for an engine that starts its own ranks: each resident plan has a process of ours, its driver."""
from dittune_workers.protocol import Group, Refused, Speaker


class Drivers(Speaker):
    """groups: handle -> the driver of that plan. A released plan's driver, which has imported the engine, serves the next."""
    spreads = False

    def __init__(self, engine):
        super().__init__(engine)
        self.free = []

    def ask(self, request, plan):
        handle = request["handle"]
        if handle not in self.groups:
            self.groups[handle] = self.free.pop() if self.free else Group(self.engine, 1, [self.out])
        try:
            return self.groups[handle].ask(request, self.beat)
        except Refused as refused:
            if request["op"] == "prepare":
                self.groups.pop(handle).kill()  # and with it what the engine had started
            raise Refused(*refused.args[:2]) from None

    def release(self, request):
        self.ask(request, self.plan(request))
        del self.plans[request["handle"]]
        self.free.append(self.groups.pop(request["handle"]))
        return dict(op="released", handle=request["handle"])
