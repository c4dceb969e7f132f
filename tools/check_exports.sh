#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Exports plans for every engine and has each line read by the engine's own parser; prints the table of docs/exports.md.
#
#     tools/check_exports.sh [DITTUNE [FOLDER]]        DITTUNE build/dev/dittune, FOLDER a new one, kept when named
#
# Needs the Python registry and some 4 GB (torch; the engines' packages are unpacked, nothing of them is started), so no test
# runs it. $DITTUNE_TORCH names a site-packages folder that has torch, to be used instead of another copy.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
dittune=${1:-$here/../build/dev/dittune}
folder=${2:-$(mktemp -d)}
[ $# -ge 2 ] || trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder/download"
if [ ! -x "$folder/venv/bin/python" ]; then
    python3 -m venv "$folder/venv"
    if [ -n "${DITTUNE_TORCH:-}" ]; then
        echo "$DITTUNE_TORCH" >"$folder/venv/lib/$(basename "$folder"/venv/lib/python3*)/site-packages/torch.pth"
    else
        "$folder/venv/bin/pip" install -q torch
    fi
    # what the parsers import and would not run without; the rest is stubbed (tools/exports/stubs.py)
    "$folder/venv/bin/pip" install -q packaging pydantic pydantic-settings huggingface_hub safetensors regex requests \
        importlib_metadata filelock pillow pyyaml aiohttp fastapi 'transformers>=5.13,<5.15' msgspec psutil cloudpickle \
        pyzmq einops cachetools prometheus_client pybase64 py-cpuinfo blake3 cbor2 depyf openai tiktoken lark
fi

# engine, its package, and one that its parser is part of
while read -r engine package; do
    for version in $("$dittune" lookup --engines | sed -n "s/^$engine:\([^ ]*\) .*/\1/p"); do
        [ -d "$folder/${package//-/_}-$version" ] && continue
        "$folder/venv/bin/pip" download -q --no-deps -d "$folder/download" "$package==$version"
        mkdir "$folder/${package//-/_}-$version"
        "$folder/venv/bin/python" -m zipfile -e "$folder/download/${package//-/_}-$version"-*.whl \
            "$folder/${package//-/_}-$version"
    done
done <<'PACKAGES'
xdit xfuser
xdit-runner xfuser
sglang sglang
vllm-omni vllm-omni
vllm-omni vllm
diffusers diffusers
cache-dit cache-dit
PACKAGES
"$folder/venv/bin/python" "$here/exports/check.py" "$dittune" "$folder/venv/bin/python" "$folder"
