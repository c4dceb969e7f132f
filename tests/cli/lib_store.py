# SPDX-License-Identifier: MIT
"""A store as docs/database.md describes it, written without dittune.

Each entry is {"path.in.entry": value, ...}: what differs from a decided plan for small.json at 128 px on all cores of
the machine that `dittune machine --json` described, a day old."""
import json, os, pathlib, sys, time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "lib"))
from plans import CPU


def _table():
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        yield byte


TABLE = list(_table())


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ TABLE[(crc ^ byte) & 0xFF]
    return "%08x" % (crc ^ 0xFFFFFFFF)


def fnv1a(text):
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return "%016x" % value


def base(machine, network, cores):
    return {
        "key": {"model": network["name"], "network": network["hash"], "height": 16, "width": 16, "guidance": True,
                "dtype": "float32", "devices": cores, "batch": [1], "objective": "latency"},
        "fingerprint": {"hard": dict(machine["hard"], dtype="float32", engine="dittune", mode="eager"),
                        "soft": machine["soft"],
                        "info": {"host": "there", "t_wall_ns": time.time_ns() - 86400 * 10**9}},
        "plan": dict(CPU),
        "verdict": "faster", "provisional": False, "figures": {"median_ns": 4000000, "peak_bytes": 3000000},
        "gain": {"ratio": 1.5, "interval": [1.4, 1.6], "pairs": 20}, "journal": "20260101T000000-1"}


def line(entry):
    identity = {"hard": entry["fingerprint"]["hard"], "key": entry["key"]}
    id = fnv1a(json.dumps(identity, sort_keys=True, separators=(",", ":"), ensure_ascii=False))
    body = json.dumps(dict({"id": id}, **entry), separators=(",", ":"))[:-1]
    return '%s,"crc":"%s"}' % (body, crc32c(body.encode()))


def put(folder, lines):
    """Makes the folder a store of these lines."""
    head = '{"format":"dittune-best","version":{"major":2,"minor":0},"incompat":[],"compat":[],"entries":[\n'
    text = head + ",\n".join(lines) + "\n]"
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "best.json"), "w") as file:
        file.write('%s,"checksum":"%s"}\n' % (text, crc32c(text.encode())))


def write(folder, machine, entries):
    """Makes the folder a store of these entries, for the machine that was described."""
    network = json.load(open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "small.json")))
    order = ["family", "hidden", "heads", "depth", "patch", "in_channels", "latent_size", "classes", "mlp_ratio", "learn_sigma"]
    shape = {key: network[key] for key in order}
    shape["mlp_ratio"] = float(shape["mlp_ratio"])
    network["hash"] = fnv1a(json.dumps(shape, separators=(",", ":")))
    lines = []
    for changes in entries:
        entry = json.loads(json.dumps(base(machine, network, machine["hard"]["cores"])))
        for path, value in changes.items():
            *parents, last = path.split(".")
            at = entry
            for name in parents:
                at = at[name]
            at[last] = value
        lines.append(line(entry))
    put(folder, lines)


if __name__ == "__main__":
    write(sys.argv[2], json.load(open(sys.argv[1])), json.load(sys.stdin))
