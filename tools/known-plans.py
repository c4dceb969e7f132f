#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Of published models on described devices: what each engine that has a worker does by itself, what its documentation tells a user to
set, and the best plan that a store has. As Markdown, or into the page that has the table.

    known-plans.py DITTUNE [--page FILE] [--db FOLDER]
"""
import argparse
import json
import pathlib
import subprocess

ENGINES = ("sglang", "vllm-omni", "diffusers", "xdit")
MODELS = (("black-forest-labs/FLUX.1-dev", "80GiB"),)
USUAL = (("latency", (2, 8)), ("throughput", (8,)))
BEGIN, END = "<!-- tools/known-plans.py -->\n", "<!-- end -->\n"


def words(plan):
    """A plan without what is 1; None: there is none."""
    if plan is None:
        return "none that it takes"
    shown = [f"{name}={value}" for name, value in plan.items() if value != 1 and name not in ("ranks", "batch")]
    return f"`{' '.join(shown)}`" if shown else "one device"


def best(entries, model, engine, devices, objective):
    for entry in entries:
        key, hard = entry["key"], entry["fingerprint"]["hard"]
        if (hard.get("engine"), key.get("job", {}).get("model"), key.get("devices"), key.get("objective")) == (engine, model, devices, objective):
            return words(entry["plan"])
    return "not measured"


def table(dittune, db):
    def ask(*asked):
        return json.loads(subprocess.check_output([dittune, *map(str, asked), "--json"]))

    entries = ask("db", "show", "--db", db)["entries"] if db else []
    rows, sources = [], []
    for (model, memory), (objective, counts) in ((model, usual) for model in MODELS for usual in USUAL):
        for engine in ENGINES:
            for devices in counts:
                known = ask("models", model, "--engine", engine, "--devices", devices, "--objective", objective, *(("--max-bytes", memory) if memory else ()))
                told = known["documented"] or {"plan": None, "source": "", "date": ""}
                source = f"{told['source']} (read {told['date']})"
                if known["documented"] and source not in sources:
                    sources.append(source)
                mark = f" [{sources.index(source) + 1}]" if known["documented"] else ""
                if told.get("refused") or any("changes the output" in remark for remark in told.get("remarks", ())):
                    mark += ", lossy"
                rows.append(f"| {model.split('/')[1]} | {objective} | {engine} | {devices} | {words(known['default']['plan'])} | {words(told['plan'])}{mark} "
                            f"| {best(entries, model, engine, devices, objective)} |")
    head = "| model | objective | engine | devices | default | documented | best |\n|---|---|---|---|---|---|---|\n"
    return head + "\n".join(rows) + "\n\n" + "".join(f"{i}. {source}\n" for i, source in enumerate(sources, 1))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("dittune")
    parser.add_argument("--page", type=pathlib.Path)
    parser.add_argument("--db")
    asked = parser.parse_args()
    made = table(asked.dittune, asked.db)
    if asked.page is None:
        print(made, end="")
        return
    text = asked.page.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    asked.page.write_text(before + BEGIN + "\n" + made + "\n" + END + rest.split(END, 1)[1], encoding="utf-8")


main()
