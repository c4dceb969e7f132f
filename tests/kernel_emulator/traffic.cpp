// SPDX-License-Identifier: MIT
// What a warp's instruction asks of memory. The k-th time each lane comes to an instruction is one execution of it by the
// warp (lanes run one after the other here); when all 32 have come, or the block ends, it is counted:
//   global memory: the sectors of 32 bytes that it touches, against the least that could hold as many different bytes;
//   shared memory: 32 banks of 4 bytes. 16-byte accesses go 8 lanes at a time, 8-byte ones 16, others all 32 (CUDA C++
//   Programming Guide, "Shared Memory"); equal words are one. A pass serves one word of each bank.
#include "tests/kernel_emulator/emulator_int.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

struct emu_tally emu_counted;

namespace
{
struct piece {
    uintptr_t at;
    uint32_t bytes;
    int lane;
};

struct site {
    emu_stream stream;
    uint32_t come[32]; // how often each lane came
    std::vector<std::vector<piece>> open;
};

std::unordered_map<uintptr_t, site> sites; // by instruction and warp

emu_traffic *traffic(emu_stream stream)
{
    switch (stream) {
    case EMU_LOAD:
        return &emu_counted.load;
    case EMU_STORE:
        return &emu_counted.store;
    case EMU_SHARED_LOAD:
        return &emu_counted.shared_load;
    case EMU_SHARED_STORE:
        return &emu_counted.shared_store;
    default:
        return &emu_counted.cp_async;
    }
}

size_t distinct(std::vector<uintptr_t> *units)
{
    std::sort(units->begin(), units->end());
    return static_cast<size_t>(std::unique(units->begin(), units->end()) - units->begin());
}

void count_global(const std::vector<piece> &pieces, emu_traffic *sum)
{
    std::vector<uintptr_t> sectors, bytes;
    for (const piece &p : pieces)
        for (uintptr_t at = p.at; at < p.at + p.bytes; at++) {
            bytes.push_back(at);
            sectors.push_back(at / 32);
        }
    sum->units += static_cast<int64_t>(distinct(&sectors));
    sum->least += static_cast<int64_t>((distinct(&bytes) + 31) / 32);
}

// Passes over the banks for lanes served together.
int64_t passes(const piece *from, const piece *to)
{
    std::vector<uintptr_t> words;
    for (const piece *p = from; p < to; p++)
        for (uintptr_t word = p->at / 4; word <= (p->at + p->bytes - 1) / 4; word++)
            words.push_back(word);
    words.resize(distinct(&words));
    int64_t of_bank[32] = {0}, most = 0;
    for (uintptr_t word : words)
        most = std::max(most, ++of_bank[word % 32]);
    return most;
}

void count_shared(std::vector<piece> &pieces, emu_traffic *sum)
{
    std::sort(pieces.begin(), pieces.end(),
              [](const piece &a, const piece &b) { return a.lane < b.lane; });
    uint32_t widest = 0;
    for (const piece &p : pieces)
        widest = std::max(widest, p.bytes);
    int together = widest > 8 ? 8 : widest > 4 ? 16 : 32;
    for (size_t i = 0; i < pieces.size();) {
        size_t end = i;
        while (end < pieces.size() && pieces[end].lane / together == pieces[i].lane / together)
            end++;
        sum->units += passes(pieces.data() + i, pieces.data() + end);
        sum->least++;
        i = end;
    }
}

void count(emu_stream stream, std::vector<piece> &pieces)
{
    emu_traffic *sum = traffic(stream);
    sum->requests++;
    for (const piece &p : pieces) {
        sum->bytes += p.bytes;
        sum->wide += p.bytes == 16 ? 16 : 0;
    }
    if (stream == EMU_LOAD || stream == EMU_STORE)
        count_global(pieces, sum);
    else
        count_shared(pieces, sum);
    pieces.clear();
}
} // namespace

void emu_note(const void *at, size_t bytes, emu_stream stream, const void *pc)
{
    unsigned warp = static_cast<unsigned>(emu_now.id) / 32;
    int lane = emu_now.id % 32;
    // An instruction and a kind of memory: a generic address may lead to either.
    uintptr_t key = (reinterpret_cast<uintptr_t>(pc) * EMU_STREAMS + stream) * 32 + warp;
    site &here = sites[key];
    here.stream = stream;
    size_t turn = here.come[lane]++;
    if (turn >= here.open.size())
        here.open.resize(turn + 1);
    std::vector<piece> &pieces = here.open[turn];
    pieces.push_back({reinterpret_cast<uintptr_t>(at), static_cast<uint32_t>(bytes), lane});
    if (pieces.size() == 32)
        count(stream, pieces);
}

void emu_note_rows(const void *const rows[8])
{
    piece pieces[8];
    for (int i = 0; i < 8; i++)
        pieces[i] = {reinterpret_cast<uintptr_t>(rows[i]), 16, i};
    emu_counted.ldmatrix.requests++;
    emu_counted.ldmatrix.bytes += 128;
    emu_counted.ldmatrix.wide += 128;
    emu_counted.ldmatrix.units += passes(pieces, pieces + 8);
    emu_counted.ldmatrix.least++;
}

void emu_note_end(void)
{
    for (auto &[key, here] : sites) {
        for (std::vector<piece> &pieces : here.open)
            if (!pieces.empty())
                count(here.stream, pieces);
        here.open.clear();
        std::fill(here.come, here.come + 32, 0u);
    }
}

void emu_note_drop(void)
{
    sites.clear();
}

struct emu_tally emu_counts(void)
{
    return emu_counted;
}
