# shellcheck shell=bash disable=SC2154
# SPDX-License-Identifier: MIT
# The steps of tools/gpu-check.sh, which sources this file. A function that a step runs is in a shell of its own: it sees what is
# exported only ($build, $quick, $gpus, $cuda_folders), and its last line goes into the table.

export_steps()
{
    export -f machine capability configure compile devices doctor run_test refused sanitize watch_clocks rates beside_torch network \
        run_plan profile shared ranks_plan session strike
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

run_test() # of ctest
{
    local status=0 found
    found=$(ctest --test-dir "$build" -R "^$1\$" --output-on-failure 2>&1) || status=$?
    echo "$found"
    ! grep -q 'Skipped' <<<"$found" || { echo 'it finds no GPU'; return 77; }
    [ $status -ne 0 ] || grep -E "^ *1/1 Test" <<<"$found"
    return $status
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

group_A()
{
    local name tool tests how=--short
    [ -z "$quick" ] || how=--quick
    tests=$(ctest --test-dir "$build" -N -R '^gpu_|^cudnn_execute$' | sed -n 's/^ *Test *#[0-9]*: //p')
    for name in attention passes linear ops; do # the most valuable first
        grep -E "_$name\$" <<<"$tests"
    done >"$build/log/tests"
    grep -vxFf "$build/log/tests" <<<"$tests" >"$build/log/more"
    while read -r name; do step "$name" 90 run_test "$name"; done <"$build/log/tests"
    for tool in memcheck racecheck; do
        for name in attention passes linear; do
            ! grep -q "^gpu_cuda_$name\$" "$build/log/tests" || step "$tool-$name" 60 sanitize $tool tests/cuda/test_gpu_cuda $name
        done
    done
    step rates 60 rates $how
    while read -r name; do step "$name" 60 run_test "$name"; done <"$build/log/more"
    step doctor 30 doctor
}

# ---- B: is it fast?

# The network named, or that of --quick.
network() { echo "${quick:-$1}"; }

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

beside_torch()
{
    local python=${BENCH_PYTHON:-python3} words=(--model dit-xl/2 --size 512)
    [ -z "$quick" ] || words=(--model "$quick" --quick)
    "$python" -c 'import torch' 2>/dev/null || { echo "no PyTorch in $python"; return 77; }
    "$python" bench/torch_gpu.py --build "$build" "${words[@]}"
}

profile() # group of bench-gpu, kernel
{
    command -v ncu >/dev/null || { echo 'no ncu'; return 77; }
    refused 'ERR_NVGPUCTRPERM|not supported|resource was unavailable' \
        ncu --clock-control none --set full --kernel-name "regex:$2" --launch-skip 2 --launch-count 1 "$build/bench-gpu" --short "$1"
}

group_B()
{
    step torch 150 beside_torch
    step run-bfloat16 60 run_plan dit-xl/2 --dtype bfloat16
    step run-graph 60 run_plan dit-xl/2 --dtype bfloat16 --plan graph=1
    step run-cudnn 60 refused 'which are not here' run_plan dit-xl/2 --dtype bfloat16 --plan attention=cudnn
    step run-fa3 60 refused 'which are not here' run_plan dit-xl/2 --dtype bfloat16 --plan attention=fa3
    step run-own 60 run_plan dit-xl/2 --dtype bfloat16 --plan attention=own
    step run-residual 60 run_plan dit-xl/2 --dtype bfloat16 --lossy --plan residual=bfloat16
    step ncu-attention 60 profile attention attention
    step ncu-modulate 60 profile passes modulate
    step run-float32 60 run_plan dit-xl/2 --dtype float32
}

# ---- C: ranks and sessions

# Several ranks share a card where there are too few; NCCL then takes them for ranks of two hosts.
shared()
{
    [ "$gpus" -ge 2 ] || echo --shared-devices
}

ranks_plan() # comm, plan
{
    export DITTUNE_COMM=$1
    [ "$gpus" -ge 2 ] || export NCCL_SOCKET_IFNAME=lo NCCL_IB_DISABLE=1 NCCL_NVLS_ENABLE=0
    # shellcheck disable=SC2046 # one word or none
    run_plan dit-s/2 --size 256 --dtype bfloat16 --quick $(shared) --plan "ranks=2 $2"
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
    local talk=$build/log/talk-$1.txt db=$build/log/db-$1 status=0 session pid='' hit=''
    rm -rf "$talk" "$db" && : >"$talk"
    DITTUNE_TRANSCRIPT=$talk "$build/dittune" --backend cuda --devices 1 --budget 40s --db "$db" --quiet \
        --model "$(network dit-s/2)" --size 256 --dtype bfloat16 &
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

group_C()
{
    local plan
    for plan in ulysses=2 ring=2 cfg=2; do
        step "staged-${plan%=*}" 45 ranks_plan staged "$plan"
    done
    for plan in ulysses=2 ring=2 'ulysses=2 exchange=direct'; do
        step "nccl-${plan//[ =]/-}" 45 ranks_plan nccl "$plan"
    done
    step tune 90 session 60 dit-xl/2
    step killed 70 strike KILL crashed
    step hung 70 strike STOP hung
    step nccl-graph 45 ranks_plan nccl 'ulysses=2 graph=1' # last: exchanges within a graph are the least tried part
}
