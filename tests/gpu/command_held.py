# SPDX-License-Identifier: MIT
# ctest:
"""Memory of a GPU that is still held when all processes of a command have ended: it is waited for, and named where it stays. What
others take meanwhile is theirs."""
import pathlib
import sys
import threading
import time

sys.path[:0] = [str(pathlib.Path(__file__).parents[1] / "lib"), str(pathlib.Path(__file__).parents[1] / "worker")]
from lib_command import BUILD, Worker, program, t

GB = 10**9
NVML = BUILD / "libnvidia-ml-fake-listed.so"
VALUES = t.write("values", "")
t.environment |= {"DITTUNE_NVML": str(NVML), "DITTUNE_FAKE_CUDA": f"devices=2:memory={8 * GB}:nvml={VALUES}"}
RUN = program("run", f"#!/bin/sh\ncat {t.path}/taken >>{VALUES}\necho took 0.0001 s\n")


def measured(before, taken, later=None):
    """The answer to a run that leaves NVML with the lines `taken` behind those `before`; after half a second with `later`."""
    VALUES.write_text(before)
    t.write("taken", taken)
    worker = Worker(f"{RUN} {{ranks}} {{mode}}")
    timer = threading.Timer(0.5, lambda: VALUES.write_text(later)) if later is not None else None
    if timer:
        timer.start()
    began = time.monotonic()
    answer = worker.prepare()
    took = time.monotonic() - began
    worker.end()
    return answer, took


answer, took = measured("", f"process 1 4194300 {3 * GB}\n", later="")
t.check("memory that comes back is waited for", answer["op"] == "prepared" and "warnings" not in answer and took > 0.4, (answer, took))
t.check("and is no part of the run's time", answer["cold_ns"][0] * 1e-9 < took - 0.2 or took > 5, (answer, took))
answer, took = measured("", f"process 1 4194300 {3 * GB}\n")
t.check("what stays is named: the GPU, how much, who", answer["op"] == "prepared" and answer["warnings"] == [
    {"say": "left 3.0 GB of GPU 1 still held after 5 s by process 4194300 (not visible from here)", "runs": 1}], answer)
answer, took = measured(f"process 0 77 {GB}\n", "", later=f"process 0 77 {2 * GB}\n")
t.check("one that was there before and grows is another's business", "warnings" not in answer, answer)
answer, took = measured(f"process 0 77 {GB}\n", f"process 0 77 {2 * GB}\n")
t.check("the same at once", "warnings" not in answer, answer)
answer, took = measured("", "process 0 4194300 1000000\n")
t.check("a little is none", "warnings" not in answer, answer)
t.environment["DITTUNE_NVML"] = "/absent/libnvidia-ml.so.1"
answer, took = measured("", f"process 1 4194300 {3 * GB}\n")
t.check("without NVML nothing is waited for", answer["op"] == "prepared" and "warnings" not in answer, answer)
t.none_left()
t.finish()
