# SPDX-License-Identifier: MIT
"""dittune-worker-sglang: tunes the degrees of SGLang diffusion by whole requests (docs/engines.md).

    dittune --engine sglang --model Wan-AI/Wan2.1-T2V-1.3B-Diffusers --budget 2h
"""
import json
import os
import pathlib
import subprocess

from dittune_workers import protocol
from dittune_workers.network.worker import main as serve
from dittune_workers.request import folder, worker


class Sglang(worker.Worker):
    """Tunes the degrees of SGLang diffusion by whole requests."""
    engine, on_cores = "sglang", "SGLang on cores with two kernels replaced"
    path = ()

    def begin(self):
        super().begin()
        os.environ["HF_HUB_OFFLINE"] = "1"
        if not self.gpu:
            self.path = [str(pathlib.Path(__file__).parent / "standin")]

    def known_as(self):
        """The name by which SGLang knows the network."""
        file, _ = self.discover()
        if any(row["engine"] == self.engine for row in self.card.get("engines", [])):
            return self.card["name"].rpartition("/")[2]
        return file["worker"]["networks"][self.card["diffusers"]["class"]]["model"]

    def documented(self, known):
        """Its choice under its speed mode, asked once for a model and a number of devices."""
        file, version = self.discover()
        words = [version, self.known_as(), str(known["devices"])]
        cache = folder.cache() / ("-".join(["sglang", *words, "gpus" if self.gpu else "cores"]) + ".json")
        if not cache.exists():
            command, environment = protocol.fresh("dittune_workers.sglang.own", *words[1:], path=self.path)
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                                  check=False, env=environment)
            answer = done.stdout.splitlines()[-1:]
            if done.returncode != 0 or not answer:
                return {}  # the file's row stands
            cache.parent.mkdir(parents=True, exist_ok=True)
            cache.write_text(answer[0], encoding="utf-8")
        row = next(row for row in file["documented"] if row["source"] == "docs_speed")
        own = json.loads(cache.read_text(encoding="utf-8"))
        source = f"sglang {version} as it is installed, ServerArgs with performance_mode=speed"
        return dict(docs_speed=dict(plan={**row["plan"], **own["plan"]}, source=source, date=own["date"]))

    @staticmethod
    def resident():
        from dittune_workers.sglang.plan import Plan
        return Plan


def main():
    serve(Sglang)


if __name__ == "__main__":
    main()
