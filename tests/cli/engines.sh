#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# A plan in an engine's words, from the command line: what sh makes of it, what is said beside it, exit codes.
set -u
source "$(dirname "$0")/lib.sh"
command -v python3 >/dev/null || exit 77

tool lookup --engines --json
check "the engines" "code == 0 and {'xdit', 'xdit-runner', 'sglang', 'vllm-omni', 'diffusers', 'cache-dit',
    'trtllm-visualgen', 'wan2.1', 'wan2.2', 'hunyuanvideo'} <= {e['engine'] for e in o['engines']}"
tool lookup --model dit-xl/2 --plan 'ranks=4 ulysses=2 cfg=2 threads=3 chunks=1' --engine xdit:0.4.5 --format argv
check "a command" "code == 0 and text == 'torchrun --nproc_per_node=4 PROGRAM.py --model=MODEL --use_cfg_parallel --ulysses_degree 2 --ring_degree 1 --height 256 --width 256\n'"
check "what it cannot be told" "'not told to the engine: threads=3\n' in err and 'chunks' not in err"
check "who measured it" "'not measured on xdit 0.4.5\n' in err"
tool lookup --model dit-xl/2 --plan 'ranks=4 ulysses=2 cfg=2' --engine xdit-runner --format argv
check "xdit counts processes by the underscore" "'--use_cfg_parallel' in text and 'torchrun' not in text"
tool lookup --model dit-xl/2 --plan 'ranks=4 ulysses=2 dp=2 batch=2' --engine vllm-omni --format json
check "replicas" "o['processes'] == 2 and o['replicas'] == 2 and o['kwargs']['ulysses_degree'] == 2 and not o['measured'] and any(u['name'] == 'dp' for u in o['unexpressed'])"
tool lookup --model dit-xl/2 --plan 'ranks=4 ulysses=2 dp=2 batch=2' --engine vllm-omni --json
check "--json is --format json" "o['processes'] == 2"
tool lookup --model dit-xl/2 --plan 'ranks=4 cfg=2 ulysses=2' --engine trtllm-visualgen --format argv
check "a command without the plan says so, and what it is" "code == 0 and 'ulysses' not in text and 'not in the command: the keywords {' in err and '\"ulysses_size\":2' in err.replace(' ', '') and '--format json' in err"
for engine in sglang vllm-omni; do # the second has keywords, too
    tool lookup --model dit-xl/2 --plan 'ranks=4 cfg=2 ulysses=2' --engine $engine --format argv
    check "one that holds it does not" "code == 0 and '--ulysses-degree 2' in text and 'not in the command' not in err"
done
tool lookup --plan 'ranks=4 ulysses=4' --engine sglang
check "a rule refuses" "code == 3 and 'tensor x ulysses must divide the number of heads' in err and 'ulysses=3 or ulysses=6 would do' in err and text == ''"
tool lookup --plan 'ranks=4 ulysses=2' --engine xdit
check "an incomplete product" "code == 3 and 'product of all degrees' in err"
tool lookup --plan 'ranks=2' --engine xdot
check "an unknown engine" "code == 2 and 'did you mean' in err and 'sglang:' in err"
tool lookup --plan 'ranks=2' --engine xdit:1
check "an unknown version" "code == 2 and 'xdit:0.4.5' in err"
tool lookup --engine xdit --format yaml
check "an unknown form" "code == 2 and 'argv, env, json, table' in err"
tool lookup --plan 'ranks=2' --size 100 --engine xdit
check "a size that is none" "code == 2 and 'multiple of 16' in err"
tool lookup --plan 'ranks=two' --engine xdit
check "a value that is no number" "code == 2 and 'ranks' in err"

# A stored plan, measured by the built-in network and then by xDiT itself.
tool machine --json
cp "$T/out" "$T/machine.json"
for by in dittune xdit; do
    python3 "$source/tests/cli/lib_store.py" "$T/machine.json" "$DITTUNE_DB" <<<"[{\"fingerprint.hard.engine\": \"$by\"}]"
    for engine in xdit:0.4.5 xdit-runner; do
        tool lookup --model "$small" --engine $engine --format json
        check "a plan of $by for $engine" "code == 0 and o['measured'] == ('$by' == 'xdit') and o['answer']['tier'] == ('exact' if '$by' == 'xdit' else 'proxy') and any('not measured on xdit' in n and 'on dittune, mode eager' in n for n in o['notes']) == ('$by' != 'xdit')"
        tool lookup --model "$small" --engine $engine --format argv
        check "said to people, too" "code == 0 and ('not measured on xdit' in err) == ('$by' != 'xdit') and text.count('\n') == 1"
    done
done

# Words of the user's own: sh gives them back as they were.
python3 - "$build/dittune" <<'PY' || failed=1
import os, subprocess, sys
words = ["a b", "it's", '"', "$(touch never)", "`id`", "line\nfeed", "--flag", "A=b", "\x1b[2J", "é€", "\\", "*", "\t", "x\n", "\u009b"]
for word in words:
    base = [sys.argv[1], "lookup", "--plan", "ranks=2 ulysses=2", "--engine", "xdit:0.4.5", "--program=" + word, "--checkpoint=" + word]
    line = subprocess.run(base + ["--format", "argv"], capture_output=True, check=True).stdout.decode()
    back = subprocess.run(["sh", "-c", "printf '%s\\0' " + line], capture_output=True, check=True).stdout.decode().split("\0")[:-1]
    assert back[2] == word and back[3] == "--model=" + word, (word, back)
    env = subprocess.run(base + ["--format", "env"], capture_output=True, check=True).stdout.decode()
    run = env + "eval \"set -- $DITTUNE_COMMAND\"; printf '%s\\0' \"$@\""
    assert subprocess.run(["sh", "-c", run], capture_output=True, check=True).stdout.decode().split("\0")[:-1] == back, word
    for form in "argv", "env", "table":
        shown = subprocess.run(base + ["--format", form], capture_output=True, check=True)
        for byte in (shown.stdout + shown.stderr).decode():
            assert byte == "\n" or not (ord(byte) < 32 or 127 <= ord(byte) < 160), (form, word)
assert not os.path.exists("never")
print("ok   words of the user's own")
PY
exit $failed
