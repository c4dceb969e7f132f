// SPDX-License-Identifier: MIT
// The warp's instructions, from their description in the PTX ISA (9.0). group = lane / 4, member = lane % 4.
#include "tests/kernel_emulator/emulator_int.h"

#include <cstring>

namespace
{
float widen(uint32_t bits)
{
    bits <<= 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

struct mma_operands {
    const uint32_t *a, *b;
    float *c;
};

// 9.7.14.5.8, Matrix Fragments for mma.m16n8k16 with floating point type. Of A, element i (a0 to a7, two in a register):
// row group for i in 0, 1, 4, 5 and group + 8 else, column 2 member + (i & 1), + 8 for i >= 4. Of B, element i: row
// 2 member + (i & 1), + 8 for i >= 2, column group. Of C: row group, + 8 for i >= 2, column 2 member + (i & 1).
void mma(void *const lanes[32])
{
    float a[16][16], b[16][8];
    for (int lane = 0; lane < 32; lane++) {
        const mma_operands *mine = static_cast<const mma_operands *>(lanes[lane]);
        int group = lane / 4, member = lane % 4;
        for (int i = 0; i < 8; i++) {
            int row = i < 2 || (i >= 4 && i < 6) ? group : group + 8,
                column = member * 2 + (i & 1) + (i >= 4 ? 8 : 0);
            a[row][column] = widen(mine->a[i / 2] >> (i % 2 * 16) & 0xffff);
        }
        for (int i = 0; i < 4; i++)
            b[member * 2 + (i & 1) + (i >= 2 ? 8 : 0)][group] =
                widen(mine->b[i / 2] >> (i % 2 * 16) & 0xffff);
    }
    for (int lane = 0; lane < 32; lane++) {
        float *c = static_cast<const mma_operands *>(lanes[lane])->c;
        for (int i = 0; i < 4; i++) {
            int row = lane / 4 + (i >= 2 ? 8 : 0), column = lane % 4 * 2 + (i & 1);
            float sum = c[i];
            for (int k = 0; k < 16; k++)
                sum += a[row][k] * b[k][column];
            c[i] = sum;
        }
    }
    emu_counted.mma++;
}

struct ldmatrix_operands {
    const void *row;
    uint32_t *r;
};

// 9.7.14.5.15: lane l has the address of row l % 8 of matrix l / 8; a lane gets of each matrix row group, columns
// 2 member and + 1, or of the transposed one.
template <bool TRANSPOSED> void ldmatrix(void *const lanes[32])
{
    for (int m = 0; m < 4; m++) {
        const void *rows[8];
        uint16_t elements[8][8];
        for (int i = 0; i < 8; i++) {
            rows[i] = static_cast<const ldmatrix_operands *>(lanes[m * 8 + i])->row;
            memcpy(elements[i], rows[i], sizeof elements[i]);
        }
        emu_note_rows(rows);
        for (int lane = 0; lane < 32; lane++) {
            int group = lane / 4, member = lane % 4 * 2;
            uint32_t low = TRANSPOSED ? elements[member][group] : elements[group][member];
            uint32_t high = TRANSPOSED ? elements[member + 1][group] : elements[group][member + 1];
            static_cast<const ldmatrix_operands *>(lanes[lane])->r[m] = low | high << 16;
        }
    }
}

struct shuffle_operands {
    uint32_t in, out;
    int from;
};

void shuffle(void *const lanes[32])
{
    for (int i = 0; i < 32; i++) {
        shuffle_operands *mine = static_cast<shuffle_operands *>(lanes[i]);
        mine->out = static_cast<const shuffle_operands *>(lanes[mine->from])->in;
    }
}

struct vote_operands {
    bool in;
    unsigned out;
};

void vote(void *const lanes[32])
{
    unsigned all = 0;
    for (int i = 0; i < 32; i++)
        all |= static_cast<unsigned>(static_cast<const vote_operands *>(lanes[i])->in) << i;
    for (int i = 0; i < 32; i++)
        static_cast<vote_operands *>(lanes[i])->out = all;
}

void need_all(unsigned mask, int line)
{
    if (mask != 0xffffffffu)
        emu_fail("line %d: a mask of lanes 0x%x: only whole warps are emulated", line, mask);
}

// The copies a thread has started, oldest first; group: which of its groups, open: not yet committed.
struct copy {
    unsigned char *to;
    const unsigned char *from;
    size_t bytes;
    int group;
    const void *pc;
};
constexpr int most_copies = 512;
struct {
    copy list[most_copies];
    int count, group, landed;
} queues[1024];

void land(const copy *one)
{
    emu_pending(one->to, 16, false);
    emu_check(one->to, 16, EMU_WRITE, one->pc);
    memset(one->to, 0, 16);
    if (one->bytes > 0)
        memcpy(one->to, one->from, one->bytes);
}
} // namespace

void emu_mma_bf16(float c[4], const uint32_t a[4], const uint32_t b[2], int line)
{
    mma_operands mine = {a, b, c};
    emu_meet(EMU_MMA, line, &mine, mma);
}

void emu_ldmatrix(uint32_t r[4], const void *row, bool transposed, int line)
{
    const void *pc = __builtin_return_address(0);
    if (!emu_is_shared(row) || reinterpret_cast<uintptr_t>(row) % 16 != 0)
        emu_fail(
            "line %d: ldmatrix of an address that is not in shared memory or not a multiple of 16",
            line);
    emu_check(row, 16, EMU_READ, pc);
    ldmatrix_operands mine = {row, r};
    emu_meet(EMU_LDMATRIX, line, &mine, transposed ? ldmatrix<true> : ldmatrix<false>);
}

uint32_t emu_shuffle(unsigned mask, uint32_t value, int lane, int line)
{
    need_all(mask, line);
    shuffle_operands mine = {value, 0, lane};
    emu_meet(EMU_SHUFFLE, line, &mine, shuffle);
    return mine.out;
}

unsigned emu_vote(unsigned mask, bool value, int line)
{
    need_all(mask, line);
    vote_operands mine = {value, 0};
    emu_meet(EMU_VOTE, line, &mine, vote);
    return mine.out;
}

// 9.7.9.25.3.1: 16 bytes of which `bytes` are read and the rest is zero. Until it lands the place holds NaN and may not be
// touched; it lands as late as it may, when the group is waited for.
void emu_cp_async(void *to, const void *from, size_t bytes)
{
    const void *pc = __builtin_return_address(0);
    auto &mine = queues[emu_now.id];
    if (!emu_is_shared(to) || reinterpret_cast<uintptr_t>(to) % 16 != 0 ||
        reinterpret_cast<uintptr_t>(from) % 16 != 0)
        emu_fail("%s: cp.async of 16 bytes between addresses that are not so", emu_source(pc));
    if (bytes > 0) {
        emu_check(from, bytes, EMU_READ, pc);
        emu_note(from, bytes, EMU_LOAD, pc);
    }
    emu_check(to, 16, EMU_WRITE, pc);
    emu_note(to, 16, EMU_CP_ASYNC, pc);
    memset(to, 0xff, 16);
    emu_pending(to, 16, true);
    if (mine.count == most_copies)
        emu_fail("more than %d copies of a thread under way", most_copies);
    mine.list[mine.count++] = {static_cast<unsigned char *>(to),
                               static_cast<const unsigned char *>(from), bytes, mine.group, pc};
}

void emu_cp_async_commit(void)
{
    queues[emu_now.id].group++;
}

void emu_cp_async_wait(int groups)
{
    auto &mine = queues[emu_now.id];
    int kept = 0;
    for (int i = 0; i < mine.count; i++) {
        if (mine.list[i].group < mine.group - groups)
            land(&mine.list[i]);
        else
            mine.list[kept++] = mine.list[i];
    }
    mine.count = kept;
}

void emu_cp_async_forget(bool failed)
{
    for (auto &queue : queues) {
        if (queue.count > 0 && !failed)
            emu_fail("%s: a cp.async that is not waited for before the kernel ends",
                     emu_source(queue.list[0].pc));
        queue.count = queue.group = 0;
    }
}

void emu_atomic_load(const void *at, size_t bytes, void *value)
{
    emu_check(at, bytes, EMU_ATOMIC, __builtin_return_address(0));
    memcpy(value, at, bytes);
}

void emu_atomic_store(void *at, size_t bytes, const void *value)
{
    memcpy(at, value, bytes);
}

long long clock64(void)
{
    static long long ticks;
    return ticks += 100;
}

unsigned long long emu_globaltimer(void)
{
    static unsigned long long ns;
    return ns += 50;
}
