# shellcheck shell=bash disable=SC2154
# SPDX-License-Identifier: MIT
# The steps of tools/gpu-check.sh, which sources this file. A function that a step runs is in a shell of its own: it sees what is
# exported only ($build, $quick, $wheels, $gpus, $cuda_folders), and its last line goes into the table.

export_steps()
{
    export -f machine capability configure compile devices doctor run_test refused sanitize watch_clocks rates torch_ops beside_torch network pixels \
        run_plan profile ranks_plan session check_stored strike engine_python engine_folder engine \
        gpu_tests without_gpu
}

# ---- the machine and the build

machine()
{
    uname -srm && nproc && free -m | sed -n 2p && nvcc --version | tail -n 2
    nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.max.sm,power.limit --format=csv,noheader ||
        echo "no nvidia-smi, or no driver"
}

# What the cards here run, as CMake writes it: 90-real.
capability()
{
    local found
    found=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | sed -n 's/^\([0-9]*\)[.]\([0-9]\)$/\1\2-real/p' | sort -u | paste -sd';')
    echo "${found:-90-real}"
}

configure()
{
    cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DDT_CUDA=ON -DDT_ONEDNN=OFF -DDT_MPI=OFF -DDT_TESTS=ON \
        "-DCMAKE_CUDA_ARCHITECTURES=$(capability)" "-DDT_CUDA_PREFIX=$cuda_folders" ${DT_FA3:+"-DDT_FA3=$DT_FA3"} &&
        cat "$build/back-ends.txt"
}

# Only what is run below.
compile()
{
    local targets
    targets=$(ninja -C "$build" -t targets all | sed -n 's/^\(test_gpu_[a-z0-9_]*\|test_cudnn_execute\): phony$/\1/p')
    # shellcheck disable=SC2086 # names without spaces
    cmake --build "$build" -j "$(nproc)" --target dittune dittune-worker dittune-worker-cuda bench-gpu $targets
}

devices() { "$build/dittune-worker-cuda" --devices; }
doctor() { "$build/dittune" doctor; }

# ---- A: is it right?

# The tests that need a real GPU: rows "NAME PROGRAM ARGUMENT", the most valuable first.
gpu_tests()
{
    local name names
    names=$("$build/tests/cuda/test_gpu_cuda" 2>&1 </dev/null | sed -n 's/^usage: .* one of //p' | tr ' ' '\n')
    for name in attention passes linear ops; do
        ! grep -qx "$name" <<<"$names" || echo "gpu_cuda_$name tests/cuda/test_gpu_cuda $name"
    done
    for name in $(grep -vxE 'attention|passes|linear|ops' <<<"$names"); do
        echo "gpu_cuda_$name tests/cuda/test_gpu_cuda $name"
    done
    [ ! -x "$build/tests/cudnn/test_cudnn_execute" ] || echo "cudnn_execute tests/cudnn/test_cudnn_execute"
}

# A program of cmocka, at its full dose.
run_test() # program, argument
{
    local status=0
    DITTUNE_DOSE=${DITTUNE_DOSE:-full} "$build/$1" "${@:2}" || status=$?
    [ $status -ne 77 ] || echo 'it finds no GPU'
    return $status
}

# Where there is no GPU: each program that needs one starts, and says so by its exit code.
without_gpu()
{
    local name program argument status wrong=0 count=0
    while read -r name program argument; do
        status=0
        "$build/$program" $argument || status=$?
        echo "$name: exit code $status"
        count=$((count + 1))
        [ $status -eq 77 ] || wrong=$((wrong + 1))
    done < <(gpu_tests && echo bench-gpu bench-gpu)
    echo "$((count - wrong)) of $count programs find no GPU"
    [ $wrong -eq 0 ] || return 1
    return 77
}

# refused PATTERN COMMAND...: 77 when the command fails and has printed such a line, which becomes the last one.
refused()
{
    local pattern=$1 status=0 output
    shift
    output=$("$@" 2>&1) || status=$?
    echo "$output"
    if [ $status -ne 0 ] && grep -qE "$pattern" <<<"$output"; then
        grep -E "$pattern" <<<"$output" | head -n 1
        return 77
    fi
    return $status
}

sanitize() # tool, program, arguments
{
    command -v compute-sanitizer >/dev/null || { echo 'no compute-sanitizer'; return 77; }
    refused 'not supported|Unable to|nsufficient|before first instrumented' \
        env DITTUNE_DOSE=thin compute-sanitizer --tool "$1" --error-exitcode 1 --launch-timeout 60 "$build/$2" "${@:3}"
}

# Clocks, power and temperature twice a second until the process ends; then the range of each.
watch_clocks() # process
{
    local log=$build/log/clocks.csv
    command -v nvidia-smi >/dev/null || { echo 'clocks: no nvidia-smi'; return; }
    while kill -0 "$1" 2>/dev/null; do
        nvidia-smi --query-gpu=clocks.sm,clocks.mem,power.draw,temperature.gpu --format=csv,noheader,nounits 2>/dev/null | head -n 1
        sleep 0.5
    done >"$log"
    awk -F', *' '$1 ~ /^[0-9.]+$/ { for (i = 1; i <= 4; i++) { if (!n || $i < a[i]) a[i] = $i; if (!n || $i > b[i]) b[i] = $i } n++ }
        END { if (n) printf "clocks: SM %d-%d MHz, memory %d-%d MHz, %d-%d W, %d-%d C, %d looks\n", a[1], b[1], a[2], b[2], a[3], b[3], a[4], b[4], n
              else print "clocks: nvidia-smi does not tell" }' "$log"
}

rates() # arguments of bench-gpu
{
    local status=0
    "$build/bench-gpu" "$@" &
    local bench=$!
    watch_clocks $bench
    wait $bench || status=$?
    echo "rates of single operations: see above"
    return $status
}

# Not where what is computed is wrong: such times would be of something else.
timed() # a step
{
    local name
    for name in "${broken[@]}"; do
        if [[ $name =~ ^(gpu_cuda_|staged|cudnn_execute) ]]; then
            add_row "$1" skipped '' "not timed: $name failed"
            return
        fi
    done
    step "$@"
}

# Tests and sanitizers side by side: they ask what is right, not how long it takes.
group_A()
{
    local name program argument how='' lenient='' limit
    local -A limits=([attention]=150 [passes]=75 [linear]=45 [ops]=30)
    [ -z "$quick" ] || how=--quick
    gpu_tests >"$build/log/tests"
    while read -r name program argument; do
        limit=${limits[${argument:-none}]:-45}
        # shellcheck disable=SC2086 # a word or none
        begin "$name" $limit run_test "$program" $argument
    done <"$build/log/tests"
    gather
    step doctor 15 doctor
    # shellcheck disable=SC2086 # a word or none
    timed rates 75 rates $how
    timed torch-ops 45 torch_ops
    # shellcheck disable=SC2034 # begin reads it
    lenient=yes # their time differs a hundred times by driver
    for name in attention passes linear; do
        ! grep -q " $name\$" "$build/log/tests" || begin "memcheck-$name" 90 sanitize memcheck tests/cuda/test_gpu_cuda $name
    done
    for name in attention ops; do # our kernels only: cuBLASLt's and cuDNN's are NVIDIA's matter
        ! grep -q " $name\$" "$build/log/tests" || begin "racecheck-$name" 90 sanitize racecheck tests/cuda/test_gpu_cuda $name
    done
    gather
}

# ---- B: is it fast?

# The network named, or that of --quick; and its size in pixels, or that network's own.
network() { echo "${quick:-$1}"; }
pixels() { [ -n "$quick" ] || echo "--size $1"; }

# One plan, measured, its output checked against the 1-rank plan's.
run_plan() # model, options
{
    local output status=0 words=(--model "$(network "$1")" "${@:2}")
    [ -z "$quick" ] || [[ " ${words[*]} " == *' --quick '* ]] || words+=(--quick)
    output=$("$build/dittune" run --quiet --backend cuda --seed 1 "${words[@]}" 2>&1) || status=$?
    echo "$output"
    [ $status -ne 0 ] || sed -n 's/^warm step *\([^[]*\).*/\1/p; s/^verified.* by /off by /p' <<<"$output" | paste -sd' '
    return $status
}

torch_ops() # our own rates are those of the step before
{
    local python=${BENCH_PYTHON:-python3}
    "$python" -c 'import torch' 2>/dev/null || { echo "no PyTorch in $python"; return 77; }
    [ -s "$build/log/rates.txt" ] || { echo 'no rates to compare with'; return 77; }
    "$python" bench/torch_ops.py "$build/log/rates.txt" ${quick:+--quick}
}

beside_torch() # options of bench/torch_gpu.py
{
    local python=${BENCH_PYTHON:-python3} words=("$@")
    [ -z "$quick" ] || words=(--model "$quick" --quick)
    "$python" -c 'import torch' 2>/dev/null || { echo "no PyTorch in $python"; return 77; }
    "$python" bench/torch_gpu.py --build "$build" "${words[@]}"
}

profile() # group of bench-gpu, kernel: part of its mangled name
{
    command -v ncu >/dev/null || { echo 'no ncu'; return 77; }
    refused 'ERR_NVGPUCTRPERM|not supported|resource was unavailable' \
        ncu --clock-control none --set full --kernel-name-base mangled --kernel-name "regex:$2" --launch-skip 2 --launch-count 1 \
        "$build/bench-gpu" --short "$1"
}

group_B()
{
    local words
    # shellcheck disable=SC2207 # words or none
    words=(dit-xl/2 $(pixels 512) --dtype bfloat16)
    timed torch 170 beside_torch --model dit-xl/2 --case 512,2 --seconds 90
    timed run-own 30 run_plan "${words[@]}" --plan attention=own
    timed run-cudnn 30 refused 'which are not here' run_plan "${words[@]}" --plan attention=cudnn
    timed run-own-8 35 run_plan "${words[@]}" --batch 8 --plan attention=own
    timed run-cudnn-8 35 refused 'which are not here' run_plan "${words[@]}" --batch 8 --plan attention=cudnn
    timed run-eager 25 run_plan "${words[@]}" --plan "attention=own graph=0"
    timed run-fa3 15 refused 'which are not here' run_plan "${words[@]}" --plan attention=fa3
    timed run-residual 25 run_plan "${words[@]}" --lossy --plan residual=bfloat16
    timed ncu-attention 30 profile attention Li128ELi64ELi1ELi4ELi72E # the default tile
    timed ncu-modulate 30 profile passes modulate
    timed run-float32 40 run_plan dit-xl/2 --dtype float32
}

# ---- C: ranks and sessions

# Beside other steps, and several ranks share a card where there are too few; NCCL then takes them for ranks of as many hosts.
ranks_plan() # comm, plan
{
    export DITTUNE_COMM=$1 DITTUNE_LOCK=none
    [ "$gpus" -ge 4 ] || export NCCL_SOCKET_IFNAME=lo NCCL_IB_DISABLE=1 NCCL_NVLS_ENABLE=0
    # shellcheck disable=SC2046 # words or none
    run_plan dit-s/2 $(pixels 256) --dtype bfloat16 --quick --shared-devices --plan "$2"
}

# session SECONDS OPTIONS...: exit code 6 is no failure: the budget ended before the final comparison.
session()
{
    local status=0 budget=$1
    [ -z "$quick" ] || budget=4
    "$build/dittune" --backend cuda --budget "${budget}s" --db "$build/log/db" --quiet --model "$(network "$2")" "${@:3}" || status=$?
    [ $status -ne 6 ] || { echo "provisional: the budget ended first"; return 0; }
    return $status
}

# strike SIGNAL WORD: a session whose worker gets the signal while it runs steps: the trial has that outcome in the journal, the worker
# is gone, and the session ends well.
strike()
{
    local talk=$build/log/talk-$1.txt db=$build/log/db-$1 status=0 session pid='' hit='' budget=40s # a hung trial takes 15 s or more
    [ -z "$quick" ] || budget=120s
    rm -rf "$talk" "$db" && : >"$talk"
    # shellcheck disable=SC2046 # words or none
    DITTUNE_LOCK=none DITTUNE_TRANSCRIPT=$talk "$build/dittune" --backend cuda --devices 1 --shared-devices --budget $budget --db "$db" --quiet \
        --model "$(network dit-s/2)" $(pixels 256) --dtype bfloat16 &
    session=$!
    while [ -z "$hit" ] && kill -0 $session 2>/dev/null; do
        sleep 0.02
        if [ "$(grep -c '^> .*"op":"run"' "$talk")" -ge 4 ] && tail -n 1 "$talk" | grep -q '^> .*"op":"run"'; then
            pid=$(sed -n 's/^< .*"op":"ready".*"pid":\([0-9]*\).*/\1/p' "$talk" | tail -n 1)
            ! kill "-$1" "$pid" || hit=yes
        fi
    done
    wait $session || status=$?
    [ -n "$hit" ] || { echo "the session ended before a worker was met at work"; return 1; }
    [ $status -eq 0 ] || [ $status -eq 6 ] || { echo "the session ended with $status"; return 1; }
    ! kill -0 "$pid" 2>/dev/null || { echo "process $pid is still there"; return 1; }
    grep -q "\"outcome\":\"$2\"" "$db"/runs/*.jsonl || { echo "no trial is $2 in the journal"; return 1; }
    echo "a trial is $2, the session ended with $status"
}

# Does what the session stored still win? No verdict (exit code 5) is no failure of the card.
check_stored()
{
    local status=0 budget=45s
    [ -z "$quick" ] || budget=4s
    "$build/dittune" check --db "$build/log/db" --budget $budget || status=$?
    [ $status -ne 5 ] || { echo "no verdict within $budget"; return 0; }
    return $status
}

# Plans of several ranks beside one another, and those whose worker is struck: what they compute is asked, not how fast.
group_C()
{
    local name comm plan
    while read -r name comm plan; do
        begin "$name" 60 ranks_plan "$comm" "$plan"
    done <<'EOF'
staged-ulysses staged ranks=2 ulysses=2
staged-ring staged ranks=2 ring=2
staged-cfg staged ranks=2 cfg=2
staged-4-ranks staged ranks=4 ulysses=2 ring=2
nccl-ulysses nccl ranks=2 ulysses=2 graph=0
nccl-ring nccl ranks=2 ring=2 graph=0
nccl-direct nccl ranks=2 ulysses=2 exchange=direct graph=0
nccl-4-ranks nccl ranks=4 cfg=2 ulysses=2 graph=0
EOF
    gather
    begin killed 75 strike KILL crashed
    begin hung 75 strike STOP hung
    gather
    # shellcheck disable=SC2046 # words or none
    timed tune 220 session 180 dit-xl/2 $(pixels 512)
    step check 70 check_stored
    step nccl-graph 40 ranks_plan nccl 'ranks=2 ulysses=2 graph=1' # last: exchanges within a graph are the least tried part
}

# ---- D: whole steps of more sizes beside PyTorch's, whose blocks are compiled

group_D()
{
    local words=(--rows 'cudnn, eager' --rows 'cudnn, blocks' --default-only --seconds 120)
    # shellcheck disable=SC2046 # words or none
    timed small-graph 25 run_plan dit-s/2 $(pixels 256) --dtype bfloat16
    # shellcheck disable=SC2046 # words or none
    timed small-eager 25 run_plan dit-s/2 $(pixels 256) --dtype bfloat16 --plan graph=0
    timed torch-sizes 150 beside_torch --model dit-xl/2 --case 512,16 --case 1024,2 "${words[@]}"
    timed torch-wide 110 beside_torch --model bench/dit-3072.json --case 0,1 "${words[@]}" # 4624 tokens
}

# ---- E: an engine

# The wheels, in a folder of the build; 77 with what the worker of diffusers needs and neither they nor this machine have: what its engine's
# file names and, where that cannot be imported, what the wheels ask for.
engine_python()
{
    local lacks
    rm -rf "$build/engine/python" && mkdir -p "$build/engine/python" || return
    if [ -n "$wheels" ]; then
        python3 -m pip install --no-index --no-deps --disable-pip-version-check --root-user-action=ignore --target "$build/engine/python" \
            "$wheels"/*.whl || return
    fi
    lacks=$(PYTHONPATH=$build/engine/python:workers python3 -c '
import importlib.metadata as metadata, sys
from dittune_workers import facts
from pip._vendor.packaging.requirements import Requirement
own = list(filter(None, facts.files("diffusers")[-1]["worker"]["packages"].values()))
todo, seen, lacks, failed = list(own), set(), [], None
for text in todo:
    need = Requirement(text)
    if text in seen or (need.marker and not need.marker.evaluate({"extra": ""})):
        continue
    seen.add(text)
    found = next(iter(metadata.distributions(name=need.name)), None)
    if found is None or not need.specifier.contains(found.version, prereleases=True):
        lacks.append(text.partition(";")[0].strip())
    if found and str(found.locate_file("")).startswith(sys.argv[1]):
        todo += found.requires or []
try:
    import diffusers, torch, transformers
    print(f"diffusers {diffusers.__version__} with {diffusers.FluxPipeline.__name__}, transformers {transformers.__version__}, torch {torch.__version__}", file=sys.stderr)
except Exception as error:  # of any of them, or of what they import
    failed = f"{type(error).__name__}: {error}"
lacks = [text for text in lacks if failed or text in own]
print(*map(repr, lacks or [failed] * bool(failed)))' "$build/engine/python") || return
    [ -z "$lacks" ] || { echo "python3 lacks, and --wheels DIR has to have: $lacks"; return 77; }
}

# dittune and its workers as they are installed: not all of the build that cmake --install needs was made.
engine_folder()
{
    local into=$build/engine
    mkdir -p "$into/bin" "$into/share/dittune" || return
    # one that is ending may still run
    cp --remove-destination "$build"/dittune "$build"/dittune-worker "$build"/dittune-worker-cuda "$into/bin" || return
    install -m 755 "$build/workers/dittune-worker-diffusers" "$into/bin" || return
    rm -rf "$into/share/dittune/workers"
    cp -rL workers "$into/share/dittune/workers"
}

engine() # command of dittune, options
{
    local status=0
    engine_folder || return
    PATH=$build/engine/bin:$PATH PYTHONPATH=$build/engine/python "$build/engine/bin/dittune" "$@" || status=$?
    [ $status -ne 6 ] || { echo "provisional: the budget ended first"; return 0; }
    return $status
}

# A few of FLUX.1-dev's blocks: is another attention, or compiled blocks, faster than the engine's default? All 57 would take a minute to
# start, which a session does for each set of its final comparison. Then a small network: is every plan right? On cores, it is in both.
group_E()
{
    local flux=(--engine diffusers --model bench/flux-6.json --size 1024x1024) budget=280s
    if [ "$gpus" -eq 0 ] || [ -n "$quick" ]; then
        flux=(--engine diffusers --model tiny-flux --size 512x512)
    fi
    [ -z "$quick" ] || budget=10s
    step engine-python 30 engine_python
    if [ "$ran" != ok ]; then
        add_row engine-tune skipped '' "$ran: engine-python"
        add_row engine-test skipped '' "$ran: engine-python"
        return
    fi
    step engine-tune 350 engine tune "${flux[@]}" --steps 28 --budget $budget --db "$build/log/db-engine" --quiet
    # shellcheck disable=SC2034 # begin reads it
    local lenient=yes # it starts the worker four times, and compiles
    step engine-test 95 engine worker-test --engine diffusers --model tiny-flux
}

# ---- F: what takes long: PyTorch's dearest row, what it compiles longest, and a session that chooses the batch, too

group_F()
{
    local words=(--default-only --seconds 90) batches=(--batch 1,2,4,8)
    [ -z "$quick" ] || batches=(--batch 1,2)
    timed torch-large 110 beside_torch --model dit-xl/2 --case 1024,16 --rows 'cudnn, blocks' --rows 'flash, blocks' "${words[@]}"
    timed torch-flash 110 beside_torch --model dit-xl/2 --case 512,2 --case 512,16 --case 1024,2 --rows 'flash, blocks' "${words[@]}"
    timed torch-autotune 130 beside_torch --model dit-xl/2 --case 512,2 --rows 'cudnn, max-autotune' "${words[@]}"
    # shellcheck disable=SC2046 # words or none
    timed tune-batch 120 session 90 dit-xl/2 $(pixels 512) --objective throughput "${batches[@]}"
}
