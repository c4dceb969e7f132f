#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The machine's description: what it holds, against the system's own words; when the cache counts; what foreign workers tell.
set -u
. "$(dirname "$0")/lib.sh"
export DITTUNE_TRANSCRIPT=$T/transcript
cache=$XDG_CACHE_HOME/dittune/machine.json
unset "${!OMP_@}" "${!OPENBLAS_@}" "${!NCCL_@}" "${!CUDA_@}" "${!OMPI_MCA_@}"

# asked NAME YES|NO: whether the last call started the worker
asked() {
    local was=no
    [ -s "$DITTUNE_TRANSCRIPT" ] && was=yes
    : >"$DITTUNE_TRANSCRIPT"
    if [ "$was" = "$2" ]; then echo "ok   $1"; else echo "FAIL $1: worker started: $was"; failed=1; fi
}

: >"$DITTUNE_TRANSCRIPT"
tool machine --json
check "describes the machine" 'code == 0 and o["format"] == "dittune-machine" and o["version"] == {"major": 1, "minor": 0} and sorted(o) == ["format", "hard", "info", "limits", "soft", "version"]'
check "hard fields as the system has them" \
    'sorted(o["hard"]) == ["cores", "device", "memory_gib", "topology"] and o["hard"]["device"] == ([l.split(": ", 1)[1].strip() for l in open("/proc/cpuinfo") if l.startswith("model name")] or ["unknown"])[0] and 0 <= o["hard"]["memory_gib"] - int(next(open("/proc/meminfo")).split()[1]) / 2**20 <= max(1, o["hard"]["memory_gib"] / 5)'
check "soft fields of dittune, worker and libraries" \
    'all(isinstance(o["soft"][k], str) and o["soft"][k] for k in ("dittune", "worker", "hwloc", "method", "openblas", "compiler", "kernel")) and o["soft"]["kernel"] == os.uname().release and o["soft"]["environment"] == {}'
if ldd "$build/dittune-worker" | grep -q libmpi; then
    check "the version of MPI without starting it" '"MPI" in o["soft"]["mpi"]'
fi
if ldd "$build/dittune-worker" | grep -q libdnnl; then
    check "the version of oneDNN" 'o["soft"]["onednn"][0].isdigit()'
fi
check "info is for people" 'o["info"]["boot_id"] == open("/proc/sys/kernel/random/boot_id").read().strip() and o["info"]["host"] == os.uname().nodename'
asked "the first time the worker is asked" yes
cp "$T/out" "$T/first"
tool machine --json
check "the second answer is the first" 'text == open(T + "/first").read()'
asked "the second time the cache is" no
tool machine --renew --json
asked "--renew asks" yes
check "a renewed one is equal but for its date" '[o["info"].pop("t_wall_ns") and o, (f := json.load(open(T + "/first")))["info"].pop("t_wall_ns") and f][0] == f'
cp "$build/dittune-worker" "$T/worker"
DITTUNE_WORKER=$T/worker tool machine --json
asked "another program is asked" yes
DITTUNE_WORKER=$T/worker tool machine --json
asked "and then known" no
touch -d '2001-01-01' "$T/worker"
DITTUNE_WORKER=$T/worker tool machine --json
asked "a changed date asks" yes
cp "$build/dittune-worker" "$T/other" && touch -d '2001-01-01' "$T/other" && mv "$T/other" "$T/worker"
DITTUNE_WORKER=$T/worker tool machine --json
asked "the same size and date in another inode asks" yes
for change in 's/"boot_id":"[0-9a-f]*-/"boot_id":"0-/2' 's/"dittune":"[0-9.]*","worker":{/"dittune":"0.0.9","worker":{/' 's/}$//' 's/.*//' 's/"hard":{/"hart":{/' 's/"processors":"[^"]*"/"processors":"0-4000"/'; do
    tool machine --renew
    : >"$DITTUNE_TRANSCRIPT"
    cp "$cache" "$T/before"
    sed -i "$change" "$cache"
    cmp -s "$cache" "$T/before" && { echo "FAIL $change changes nothing"; failed=1; }
    tool machine --json
    check "an unusable cache is made anew ($change)" 'code == 0 and o["hard"]["cores"] > 0'
    asked "by asking" yes
done
NCCL_ALGO=Ring CUDA_VISIBLE_DEVICES=0 OMPI_MCA_btl=self OMP_NUM_THREADS=3 tool machine --json
check "variables are those of now, and of those that reach the worker" \
    'o["soft"]["environment"] == {"NCCL_ALGO": "Ring", "CUDA_VISIBLE_DEVICES": "0", "OMPI_MCA_btl": "self"}'
asked "which the cache does not decide" no
worker=$source/examples/workers/minimal.py
OMP_NUM_THREADS=3 tool machine --worker "$worker" --json
check "a foreign worker's versions and the thread variables it gets" \
    'o["soft"]["python"][0] == "3" and o["soft"]["worker"].startswith("minimal") and o["soft"]["environment"]["OMP_NUM_THREADS"] == "3" and "openblas" not in o["soft"]'
asked "it is asked" yes
OMP_NUM_THREADS=3 tool machine --worker "$worker" --json
asked "once" no
tool machine --json
asked "and the other is still known" no
tool machine
check "people get a table" 'code == 0 and "memory_gib" in text and "boot_id" in text'
tool machine --worker "$T/none"
check "no such worker" 'code == 2 and "none" in err'
tool machine --worker /bin/false
check "one that ends" 'code == 1 and "did not start" in err'
XDG_CACHE_HOME=/proc/none tool machine --json
check "no place for a cache is no error" 'code == 0 and o["hard"]["cores"] > 0'
none_left
exit $failed
