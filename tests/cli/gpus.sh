#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# GPUs as a made answer to --devices tells them, and, where the fake ones are built, whole sessions on those: what is found
# is what plans run on, what is not is one sentence.
set -u
. "$(dirname "$0")/lib.sh"
unset DITTUNE_WORKER_CUDA DITTUNE_FAKE_CUDA "${!NCCL_@}" "${!CUDA_@}"

# answer FILE COUNT FREE PROCESSES: a worker that says it has COUNT H200
answer() {
    python3 - "$@" <<'PY'
import json, os, sys
path, count, free, processes = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), json.loads(sys.argv[4])
card = lambda i: {"index": i, "name": "NVIDIA H200", "compute": "9.0", "memory_bytes": 150754820096, "free_bytes": free,
                  "shared_bytes": 232448, "processes": processes}
links = [["self" if i == k else "nvlink" for k in range(count)] for i in range(count)]
text = json.dumps({"op": "devices", "count": count, "why": "" if count else "no CUDA-capable device is detected", "driver": "580.95", "cuda": 13000,
                   "nccl": "2.28.9", "cudnn": "9.19.0", "cublaslt": "13.1.0", "devices": [card(i) for i in range(count)],
                   "peers": [[0 if i == k else 1 for k in range(count)] for i in range(count)], "links": links})
with open(path, "w") as f:
    f.write("#!/bin/sh\ncat <<'J'\n" + text + "\nJ\n")
os.chmod(path, 0o755)
PY
}

answer "$T/four" 4 150000000000 '[]'
export DITTUNE_WORKER_CUDA=$T/four
tool space --json
check "GPUs are found without an option" 'code == 0 and o["title"] == "dit-xl/2, 512 x 512 px (1024 tokens), guided, bfloat16"'
check "their space has their parameters" '{p["name"] for p in o["parameters"]} == set("ranks dp cfg ulysses ring batch tile_q tile_kv overlap chunks stages warps attention graph gemm exchange v_first comm_ctas windows nccl_p2p_channels nccl_p2p_chunk_kib".split())'
tool explain --json ulysses=2 cfg=2
check "a plan is completed for them" 'code == 0 and o["plan"]["tile_kv"] == 64 and o["plan"]["warps"] == 4 and o["plan"]["attention"] == "own" and "threads" not in o["plan"]'
tool explain --json ranks=1 windows=1
check "a rule of theirs is one sentence" 'code == 3 and o["violations"][0]["sentence"] == "one rank exchanges nothing: comm_ctas and windows are 0"'
tool explain ranks=8
check "more ranks than GPUs are for correctness only" 'code == 0 and "8 ranks on 4 GPUs" in text'
tool space --json --dtype tf32 --model dit-b/2
check "tf32 is a data type of GPUs" 'code == 0 and o["title"].endswith("tf32") and o["feasible"] > 0'
tool space --json --backend cpu
check "--backend cpu is what it was" 'code == 0 and o["title"].startswith("dit-s/2, 256") and "threads" in [p["name"] for p in o["parameters"]]'
tool space --backend cpu --dtype tf32
check "tf32 is none of cores" 'code == 2 and "tf32 is computed by GPUs only" in err'
tool space --backend gpu
check "an unknown back end" 'code == 2 and "expected auto, cpu or cuda" in err'

cat >"$T/machine" <<'J'
{"format":"dittune-machine","version":{"major":1,"minor":0},
 "hard":{"device":"NVIDIA H200","gpus":8,"memory_gib":144,"compute":"9.0","topology":"0123456789abcdef"},"soft":{},"info":{},
 "limits":{"memory_bytes":150754820096,"bfloat16":true,"shared_bytes":232448,"nccl":22809,"cudnn":true,"capture":true}}
J
tool lookup --json --machine "$T/machine" --require heuristic
check "a look-up for a described GPU machine asks what a session there tunes" 'code == 0 and o["plan"]["ranks"] == 8 and o["plan"]["cfg"] == 2 and o["plan"]["ulysses"] == 4 and o["plan"]["attention"] == "own" and o["key"]["model"] == "dit-xl/2" and o["key"]["height"] == 64 and o["key"]["dtype"] == "bfloat16"'
tool lookup --json --machine "$T/machine" --require heuristic --engine xdit --format json --checkpoint X
check "and an engine is told of it what it can be told" 'code == 0 and "--ulysses_degree" in o["argv"] and {"tile_q", "stages", "warps"} <= {u["name"] for u in o["unexpressed"]} and "graph" not in {u["name"] for u in o["unexpressed"]}'
sed -i 's/"gpus":8/"gpus":0/' "$T/machine"
tool lookup --json --machine "$T/machine"
check "a description without a GPU is refused" 'code == 2 and "gpus" in err'

answer "$T/used" 4 150000000000 '[{"pid": 4711, "bytes": 1073741824}]'
DITTUNE_WORKER_CUDA=$T/used tool run --plan ranks=1
check "a foreign process is exit code 11" 'code == 11 and "GPU 0 is used by 1 other process" in err and "4711" in err and "--shared-devices" in err'
answer "$T/full" 4 120000000000 '[]'
DITTUNE_WORKER_CUDA=$T/full tool tune --budget 5s
check "so is memory in use" 'code == 11 and "of 140.4 GiB of GPU 0 are in use" in err'

# A worker that is killed, and after whose end 28 GiB do not come back.
answer "$T/after" 4 120000000000 '[]'
printf '#!/bin/sh\n[ "$1" = --devices ] || kill -9 $$\n[ -e %s ] && exec %s\n: >%s\nexec %s\n' "$T/asked" "$T/after" "$T/asked" "$T/four" >"$T/left"
chmod +x "$T/left"
DITTUNE_WORKER_CUDA=$T/left tool tune --budget 30s
check "and what a killed trial left" 'code == 11 and "GPU 0 has 27.9 GiB less free memory than before a trial that was killed" in err'

for case in 'crash:kill -SEGV $$:killed by signal 11' 'words:echo hello:no description of devices' 'exit:exit 3:exited with 3'; do
    IFS=: read -r name body sentence <<<"$case"
    printf '#!/bin/sh\n%s\n' "$body" >"$T/$name"
    chmod +x "$T/$name"
    DITTUNE_WORKER_CUDA=$T/$name tool space --backend cuda
    check "asking for GPUs says what is wrong: $name" "code == 1 and '$sentence' in err and err.count(chr(10)) == 1"
    DITTUNE_WORKER_CUDA=$T/$name tool space --json
    check "without asking, cores do: $name" 'code == 0 and o["title"].startswith("dit-s/2, 256")'
done
answer "$T/none" 0 0 '[]'
DITTUNE_WORKER_CUDA=$T/none tool tune --model "$small" --budget 4s
check "a session on cores says in one sentence why" 'err.splitlines()[0] == "dittune: plans run on cores, as no GPU can be used: no CUDA-capable device is detected"'
DITTUNE_WORKER_CUDA=$T/none tool run --model "$small" --plan ranks=1
check "and so does a measurement of one plan" 'code == 0 and err == "dittune: plans run on cores, as no GPU can be used: no CUDA-capable device is detected\n"'
DITTUNE_WORKER_CUDA=$T/absent tool space --backend cuda
check "there is no such worker" 'code == 1 and "there is no " in err'

if [ ! -x "$build/dittune-worker-fake-cuda" ]; then
    echo "skipped: sessions on fake GPUs, which are not built"
    exit $failed
fi
# From here on fake GPUs. A wrapper notes what its environment says to NCCL.
printf '#!/bin/sh\nenv | grep ^NCCL_ >>%s\nexec %s "$@"\n' "$T/variables" "$build/dittune-worker-fake-cuda" >"$T/fake"
chmod +x "$T/fake"
export DITTUNE_WORKER_CUDA=$T/fake DITTUNE_FAKE_CUDA=devices=2:memory=16g
tool machine --json
check "a GPU machine's fingerprint" 'code == 0 and sorted(o["hard"]) == ["compute", "device", "gpus", "memory_gib", "topology"] and o["hard"]["gpus"] == 2 and o["hard"]["memory_gib"] == 16 and o["limits"]["bfloat16"] and o["limits"]["nccl"] > 22000 and o["soft"]["nccl"]'
: >"$T/variables"
tool run --json --model "$small" --dtype float32 --plan 'cfg=2 nccl_p2p_channels=4 nccl_p2p_chunk_kib=256'
check "two ranks on two GPUs give what one gives" 'code == 0 and o["verified_error"] is not None and o["verified_error"] < 1e-5'
check "NCCL is told the plan's settings" '{"NCCL_MIN_P2P_NCHANNELS=4", "NCCL_MAX_P2P_NCHANNELS=4", "NCCL_P2P_NVL_CHUNKSIZE=262144"} <= set(open(T + "/variables").read().split())'
: >"$T/variables"
tool run --json --model "$small" --dtype float32 --plan 'cfg=2'
check "and nothing when they are 0" 'code == 0 and open(T + "/variables").read() == ""'
tool tune --json --model "$small" --dtype float32 --budget 20s
check "a session on GPUs" 'code in (0, 6) and o["trials"][0]["plan"]["ranks"] == 1 and o["trials"][0]["outcome"] == "ok" and o["trials"][1]["plan"]["ranks"] == 2'
tool lookup --json --model "$small" --dtype float32
check "its plan is found again" 'code == 0 and o["tier"] == "exact" and "attention" in o["plan"]'
tool lookup --json --backend cpu --model "$small" --dtype float32
check "and that of cores for cores" 'code in (0, 10) and "threads" in o["plan"] and "attention" not in o["plan"]'
none_left
exit $failed
