#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs peers on recorded tables and keeps what each evaluated, one JSON object a line.

  peers.py --out FILE [--tables A.json.gz,B.json.gz] [--peers NAME,NAME] [--evals 150] [--repeats 10] [--seed 1]

Run r of a table and a peer has seed S + r. A run that FILE holds already is not run again, so an interrupted sweep is taken up
where it ended, and a larger --repeats adds the runs that are missing. report.py makes tables of FILE."""
import argparse
import importlib
import json
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import score

MODULES = {"kt": "with_kernel_tuner", "optuna": "with_optuna"}


def held(path):
    """What FILE holds: (table, peer, seed, evals) of each run."""
    if not os.path.exists(path):
        return set()
    with open(path) as file:
        rows = [json.loads(line) for line in file if line.strip()]
    return {(row["table"], row["peer"], row["seed"], row["evals"]) for row in rows}


def sweep(args, path, peer, out):
    name = os.path.basename(path).removesuffix(".gz").removesuffix(".json")
    done = held(args.out)
    seeds = [seed for seed in range(args.seed, args.seed + args.repeats) if (name, peer, seed, args.evals) not in done]
    if not seeds:
        return
    table = score.Table(path)
    module = importlib.import_module(MODULES[peer.split("-")[0]])
    runs = module.Runs(table, peer)
    for seed in seeds:
        start = time.process_time()
        keys, notes = runs.run(seed, args.evals)
        assert len(set(keys)) == len(keys) <= args.evals and all(key in table.times for key in keys)
        row = {"table": name, "peer": peer, "version": module.VERSION, "seed": seed, "evals": args.evals, "evaluated": keys,
               "cpu_seconds": round(time.process_time() - start, 3), **notes}
        out.write(json.dumps(row) + "\n")
        out.flush()
        print(f"{name} {peer} seed {seed}: {len(keys)} evaluations, P {table.score(keys, args.evals):.3f}, "
              f"{row['cpu_seconds']:.1f} s {notes}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True)
    parser.add_argument("--tables", required=True, help="paths, by commas")
    parser.add_argument("--peers", required=True, help="names, by commas")
    parser.add_argument("--evals", type=int, default=150)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    with open(args.out, "a") as out:
        for peer in args.peers.split(","):
            for path in args.tables.split(","):
                sweep(args, path, peer, out)


if __name__ == "__main__":
    main()
