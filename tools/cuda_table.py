#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The table of attention kernels in docs/cuda_kernels.md, from what the compiler made of them.

    tools/cuda_table.py BUILD            prints it
    tools/cuda_table.py BUILD --check    fails where a kernel spills, uses local memory, has no tensor-core instruction or is
                                         missing, and where docs/cuda_kernels.md says otherwise (with the same compiler)

Registers and spills are ptxas's words (kept beside each object), instructions are counted in the machine code of the objects,
by the operation codes below; where cuobjdump is on PATH it must count the same. Shared memory is what the launcher asks
for. No GPU is needed: occupancy is theoretical, and NVIDIA's cuda_occupancy.h must come to the same.
"""
import collections
import pathlib
import re
import shutil
import struct
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "cuda_kernels.md"

# Of a multiprocessor: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability". The units in which
# registers and shared memory are given out, and what the system keeps of the latter for each block: cuda_occupancy.h.
LIMITS = {80: {"warps": 64, "blocks": 32, "registers": 65536, "shared": 164 * 1024},
          90: {"warps": 64, "blocks": 32, "registers": 65536, "shared": 228 * 1024}}
REGISTER_UNIT, WARP_UNIT, SHARED_UNIT, SHARED_SYSTEM = 256, 4, 128, 1024

# The low 12 bits of an instruction (16 bytes each, since Volta), as cuobjdump -sass prints them.
CODES = {"HMMA": 0x23c, "LDSM": 0x83b, "LDGSTS": 0xfae, "STL": 0x387, "LDL": 0x983}


def fail(sentence):
    sys.exit(f"cuda_table: {sentence}")


def cubins(path):
    """Architecture and bytes of each ELF file for a GPU in an object."""
    data = path.read_bytes()
    at = data.find(b"\x7fELF", 4)
    while at >= 0:
        machine, = struct.unpack_from("<H", data, at + 18)
        if machine == 190:
            flags, = struct.unpack_from("<I", data, at + 48)
            arch = flags & 0xff if flags & 0xff in LIMITS else flags >> 8 & 0xff
            yield arch, data[at:]
        at = data.find(b"\x7fELF", at + 4)


def code_sections(elf):
    """Name and bytes of each kernel's machine code."""
    table, = struct.unpack_from("<Q", elf, 40)
    size, count, names = struct.unpack_from("<HHH", elf, 58)
    rows = [struct.unpack_from("<IIQQQQIIQQ", elf, table + i * size) for i in range(count)]
    strings = rows[names][4]
    for row in rows:
        name = elf[strings + row[0]:elf.index(b"\0", strings + row[0])].decode()
        if name.startswith(".text."):
            yield name[len(".text."):], elf[row[4]:row[4] + row[5]]


def instructions(path):
    """{(architecture, kernel): {name of an instruction: how many}} of an object."""
    counts = {}
    for arch, elf in cubins(path):
        for kernel, code in code_sections(elf):
            here = counts.setdefault((arch, kernel), dict.fromkeys(CODES, 0))
            words = collections.Counter(zip(code[0::16], code[1::16]))
            for (low, high), times in words.items():
                for name, bits in CODES.items():
                    here[name] += times * (low + high % 16 * 256 == bits)
    return counts


def agree_with_cuobjdump(path, counts):
    text = subprocess.run(["cuobjdump", "-sass", path], capture_output=True, text=True, check=True).stdout
    arch, kernel, theirs = 0, "", {}
    for line in text.splitlines():
        if found := re.search(r"arch = sm_(\d+)", line):
            arch = int(found[1])
        elif found := re.search(r"Function : (\S+)", line):
            kernel = found[1]
            theirs[arch, kernel] = dict.fromkeys(CODES, 0)
        elif found := re.match(r"\s+/\*[0-9a-f]+\*/\s+(?:@!?U?P\d+ )?([A-Z0-9]+)", line):
            if found[1] in CODES:
                theirs[arch, kernel][found[1]] += 1
    if theirs != counts:
        fail(f"{path.name}: cuobjdump counts {theirs}, this program {counts}")


def ptxas(path):
    """{(architecture, kernel): registers, stack, spilled bytes, shared} of an object, by ptxas."""
    said, key = {}, None
    for line in path.read_text().splitlines():
        if found := re.search(r"Compiling entry function '(.*)' for 'sm_(\d+)'", line):
            key = int(found[2]), found[1]
            said[key] = {"static": 0}
        elif found := re.search(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", line):
            said[key].update(stack=int(found[1]), spills=int(found[2]) + int(found[3]))
        elif found := re.search(r"Used (\d+) registers", line):
            said[key]["registers"] = int(found[1])
            if shared := re.search(r"(\d+) bytes smem", line):
                said[key]["static"] = int(shared[1])
    return said


def up(n, unit):
    return (n + unit - 1) // unit * unit


def blocks_at_once(arch, registers, shared, warps):
    limits = LIMITS[arch]
    by_registers = limits["registers"] // up(registers * 32, REGISTER_UNIT) // WARP_UNIT * WARP_UNIT // warps
    by_shared = limits["shared"] // up(shared + SHARED_SYSTEM, SHARED_UNIT)
    return min(limits["blocks"], limits["warps"] // warps, by_registers, by_shared)


def rows_of(build):
    text = (ROOT / "model" / "tiles_cuda.def").read_text()
    wanted = [tuple(map(int, row)) for row in re.findall(r"^DT_ATTN_TILE\((\d+), (\d+), (\d+), (\d+)\)", text, re.M)]
    heads = [int(head) for head in re.findall(r"^DT_ATTN_HEAD\((\d+)\)", text, re.M)]
    listed = subprocess.run([build / "cuda-instances"], capture_output=True, text=True, check=True).stdout
    shared = {tuple(map(int, line.split()[:5])): int(line.split()[5]) for line in listed.splitlines()}
    objects = build / "CMakeFiles" / "dt_cuda_kernels.dir" / "generated"
    rows = []
    for tile in wanted:
        path = objects / "attention_{}x{}_s{}_w{}.cu.o".format(*tile)
        counts, said = instructions(path), ptxas(path.with_name(path.name + ".ptxas"))
        if shutil.which("cuobjdump"):
            agree_with_cuobjdump(path, counts)
        for head in heads:
            if (*tile, head) not in shared:
                fail(f"row {tile} has no instance for head dimension {head}")
            shape = "dt_attention_shape" + "I" + "".join(f"Li{n}E" for n in (*tile, head)) + "E" # of the mangled name
            for arch in sorted(LIMITS):
                key = next((key for key in counts if key[0] == arch and shape in key[1]), None)
                if key not in said:
                    fail(f"{path.name} has no code for head dimension {head} on sm_{arch}")
                rows.append({"tile": tile, "head": head, "arch": arch, "counts": counts[key], **said[key],
                             "shared": shared[(*tile, head)]})
    return rows


def occupancies(build, rows):
    for row in rows:
        row["blocks"] = blocks_at_once(row["arch"], row["registers"], row["shared"] + row["static"], row["tile"][3])
    asked = "".join(f"{r['arch']} {r['registers']} {r['static']} {r['shared']} {r['tile'][3] * 32}\n" for r in rows)
    answer = subprocess.run([build / "cuda-instances", "--occupancy"], input=asked, capture_output=True, text=True,
                            check=True).stdout.split()
    if len(answer) != len(rows):
        fail(f"cuda-instances answers {len(answer)} of {len(rows)} questions")
    for row, blocks in zip(rows, answer):
        if int(blocks) != row["blocks"]:
            fail(f"{name_of(row)}: cuda_occupancy.h has {blocks} blocks, this program {row['blocks']}")


def name_of(row):
    return "({}, {}, {}, {}) head {}".format(*row["tile"], row["head"]) + f" sm_{row['arch']}"


def complaints(rows):
    for row in rows:
        if row["counts"]["HMMA"] == 0:
            yield f"{name_of(row)}: no tensor-core instruction"
        if row["spills"] or row["stack"] or row["counts"]["STL"] or row["counts"]["LDL"]:
            yield f"{name_of(row)}: spills {row['spills']} bytes, stack frame {row['stack']} bytes"
        if row["blocks"] == 0:
            yield f"{name_of(row)}: does not fit a multiprocessor"


def compiler(build):
    path = re.search(r"^CMAKE_CUDA_COMPILER:[A-Z]+=(.*)$", (build / "CMakeCache.txt").read_text(), re.M)[1]
    text = subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout
    return "nvcc " + re.search(r"V([\d.]+)", text)[1]


def page(build, rows):
    text = f"""# Attention kernels of the CUDA back end

What {compiler(build)} made of each row of [model/tiles_cuda.def](../model/tiles_cuda.def) for each head dimension, written by
`tools/cuda_table.py BUILD > docs/cuda_kernels.md` and compared by a test. Those of sm_90 have run on an H100
([hardware.md](hardware.md)): registers and instructions are read from the compiled code, occupancy is theoretical.

- *registers* of a thread: ptxas. No kernel spills or has a stack frame: a test fails otherwise.
- *shared*: bytes of shared memory a block asks for, beside the 1024 the system keeps for each.
- *blocks*: of a multiprocessor at once, the least of four bounds: 64 warps, 32 blocks, 65536 registers (given out to warps in
  units of 256, to four warps alike), and 164 KiB (sm_80) or 228 KiB (sm_90) of shared memory in units of 128 bytes (CUDA C++
  Programming Guide, technical specifications per compute capability; units: `cuda_occupancy.h`, which has to come to the same).
- *occupancy*: warps at once of 64.
- *HMMA*, *LDSM*, *LDGSTS*: tensor-core products of 16x8x16, loads of matrices from shared memory, and asynchronous copies into it,
  as many as stand in the code.

| tile_q | tile_kv | stages | warps | head | sm | registers | shared | blocks | occupancy | HMMA | LDSM | LDGSTS |
|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|
"""
    for row in rows:
        warps = row["blocks"] * row["tile"][3]
        cells = [*row["tile"], row["head"], row["arch"], row["registers"], row["shared"] + row["static"], row["blocks"],
                 f"{100 * warps / 64:.1f} %"] + [row["counts"][name] for name in ("HMMA", "LDSM", "LDGSTS")]
        text += "| " + " | ".join(map(str, cells)) + " |\n"
    return text


def main():
    if len(sys.argv) not in (2, 3) or sys.argv[2:] not in ([], ["--check"]):
        sys.exit(__doc__)
    build = pathlib.Path(sys.argv[1])
    rows = rows_of(build)
    occupancies(build, rows)
    if not sys.argv[2:]:
        print(page(build, rows), end="")
        return
    bad = list(complaints(rows))
    stands = PAGE.read_text() if PAGE.exists() else ""
    if compiler(build) not in stands and stands:
        print(f"cuda_table: {PAGE.name} is of another compiler than {compiler(build)}: not compared")
    elif stands != page(build, rows):
        bad.append(f"{PAGE.name} does not say what was built: tools/cuda_table.py BUILD > docs/{PAGE.name}")
    if bad:
        fail("\n".join(bad))
    print(f"cuda_table: {len(rows)} kernels, none spills, all use tensor cores")


main()
