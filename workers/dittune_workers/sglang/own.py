# SPDX-License-Identifier: MIT
"""Asks the installed SGLang which degrees it takes for a model under its speed mode:

    python -m dittune_workers.sglang.own MODEL DEVICES      -> {"plan": {..}, "date": ..}, as the last line"""
import contextlib
import json
import os
import sys
import time

FIELDS = dict(cfg="cfg_parallel_degree", kv_gather="kv_gather_degree", ulysses="ulysses_degree",
              ring="ring_degree", tensor="tp_size")


def main():
    model, devices = sys.argv[1], int(sys.argv[2])
    os.environ["HF_HUB_OFFLINE"] = "1"  # the name alone decides
    with contextlib.redirect_stdout(sys.stderr):
        from sglang.multimodal_gen.runtime.server_args import ServerArgs
        args = ServerArgs.from_kwargs(model_path=model, model_id=model, num_gpus=devices,
                                      performance_mode="speed")
    plan = {name: getattr(args, field) for name, field in FIELDS.items()}
    if plan["kv_gather"] > 1:  # whose groups are those of ulysses
        plan["ulysses"] = 1
    print(json.dumps(dict(plan={name: str(value) for name, value in plan.items()},
                          date=time.strftime("%Y-%m-%d"))))


if __name__ == "__main__":
    main()
