// SPDX-License-Identifier: MIT
// What each two bytes of device and shared memory last saw, and so: accesses out of bounds, misaligned, of memory nobody
// wrote, and races. Two accesses are ordered when a barrier of the block stands between them, or a __syncwarp if both
// threads are of one warp. Buffers and dynamic shared memory lie in one arena with the shadow beside it; static shared
// memory is the program's thread-local storage (__shared__ stands for thread_local), with a shadow of its own.
#include "tests/kernel_emulator/emulator_int.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

extern const char image[] asm("__executable_start");
extern const char image_end[] asm("_end");

namespace
{
constexpr size_t arena_bytes = 256 << 20, shared_most = 256 << 10, guard = 1024;
constexpr uint16_t many = 0xffff;

// Who wrote and read two bytes last; an epoch of 0 is long ago.
struct trace {
    uint32_t write_epoch, read_epoch;
    uint16_t writer, reader;        // threads of the block; many: several of one warp
    uint16_t write_turn, read_turn; // the warp's epoch then
    uint16_t read_warp;             // many: several
    uint8_t mine, pending;          // mine: lies in a buffer
};

unsigned char *arena;
trace *traces;
size_t taken = shared_most + guard;

const unsigned char *statics;
size_t static_bytes;
trace *static_traces;
bool anywhere;

int find_statics(dl_phdr_info *info, size_t, void *)
{
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_TLS) {
            statics = static_cast<const unsigned char *>(info->dlpi_tls_data);
            static_bytes = info->dlpi_phdr[i].p_memsz;
        }
    return 1; // the first is the program itself
}

void *map(size_t bytes)
{
    void *at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        abort();
    return at;
}

void open_arena()
{
    if (arena != nullptr)
        return;
    arena = static_cast<unsigned char *>(map(arena_bytes));
    traces = static_cast<trace *>(map(arena_bytes / 2 * sizeof(trace)));
    dl_iterate_phdr(find_statics, nullptr); // their size is the same in every thread
    static_traces = static_cast<trace *>(map((static_bytes / 2 + 1) * sizeof(trace) + 1));
}

enum place { DEVICE, SHARED, STATIC, OTHER };

place place_of(const void *at)
{
    size_t from_arena = static_cast<size_t>(static_cast<const unsigned char *>(at) - arena);
    if (from_arena < arena_bytes)
        return from_arena < shared_most ? SHARED : DEVICE;
    return static_cast<size_t>(static_cast<const unsigned char *>(at) - statics) < static_bytes
               ? STATIC
               : OTHER;
}

trace *trace_of(const void *at, place where)
{
    const unsigned char *byte = static_cast<const unsigned char *>(at);
    return where == STATIC ? static_traces + (byte - statics) / 2 : traces + (byte - arena) / 2;
}

const char *const what[] = {"a read", "a write", "an atomic"};
const char *const places[] = {"device memory", "shared memory", "shared memory", "host memory"};

[[noreturn]] void raced(place where, int access, int other, const char *did, const void *pc)
{
    emu_fail("%s: %s of %s races with thread %d, which %s there", emu_source(pc), what[access],
             places[where], other, did);
}

// Another thread's mark of this epoch, and no barrier between.
bool unordered(place where, uint32_t epoch, unsigned warp, uint16_t thread, uint16_t turn)
{
    if (epoch < emu_now.launched)
        return false;
    if (epoch != emu_now.epoch)
        return where == DEVICE && epoch < emu_now.begun; // another block
    unsigned mine = static_cast<unsigned>(emu_now.id) / 32;
    if (warp != mine)
        return true;
    return thread != emu_now.id && turn == static_cast<uint16_t>(emu_warp_epoch());
}

void note_read(trace *t, uint16_t id, uint16_t turn)
{
    uint16_t warp = id / 32;
    if (t->read_epoch != emu_now.epoch) {
        t->read_epoch = emu_now.epoch;
        t->read_warp = warp;
        t->reader = id;
    } else if (t->read_warp != warp) {
        t->read_warp = many;
    } else if (t->reader != id) {
        t->reader = t->read_turn == turn ? many : id;
    }
    t->read_turn = turn;
}

void check_trace(trace *t, place where, int access, const void *pc)
{
    uint16_t id = static_cast<uint16_t>(emu_now.id), turn = static_cast<uint16_t>(emu_warp_epoch());
    if (where == DEVICE && !t->mine)
        emu_fail("%s: %s outside of every buffer of device memory", emu_source(pc), what[access]);
    if (t->pending)
        emu_fail("%s: %s of shared memory that a cp.async nobody waited for is about to fill",
                 emu_source(pc), what[access]);
    if (access == EMU_ATOMIC)
        return;
    if (unordered(where, t->write_epoch, t->writer / 32u, t->writer, t->write_turn))
        raced(where, access, t->writer, "wrote", pc);
    if (access == EMU_READ) {
        if (where != DEVICE && t->write_epoch < emu_now.begun)
            emu_fail("%s: a read of shared memory that nobody wrote", emu_source(pc));
        note_read(t, id, turn);
        return;
    }
    if (unordered(where, t->read_epoch, t->read_warp, t->reader, t->read_turn))
        raced(where, access, t->reader, "read", pc);
    t->write_epoch = emu_now.epoch;
    t->writer = id;
    t->write_turn = turn;
}

// Stacks of fibers, parameters of kernels and constants: not what a kernel is judged by, unless it writes elsewhere.
bool harmless(const void *at, int access)
{
    const char *byte = static_cast<const char *>(at);
    const char *self = reinterpret_cast<const char *>(&emu_now);
    if (byte >= self && byte < self + sizeof emu_now)
        return access == EMU_READ;
    if (byte >= image && byte < image_end)
        return access == EMU_READ;
    return emu_on_stack(at);
}
} // namespace

// The source line of an instruction, when addr2line is at hand.
const char *emu_source(const void *pc)
{
    static char text[200];
    char command[300];
    snprintf(text, sizeof text, "code at %p", pc);
    snprintf(command, sizeof command, "addr2line -s -e /proc/%d/exe 0x%zx 2>/dev/null",
             static_cast<int>(getpid()),
             static_cast<size_t>(static_cast<const char *>(pc) - image) - 1);
    FILE *pipe = popen(command, "r");
    if (pipe == nullptr)
        return text;
    if (fgets(text, sizeof text, pipe) == nullptr || text[0] == '?')
        snprintf(text, sizeof text, "code at %p", pc);
    pclose(pipe);
    text[strcspn(text, "\n")] = '\0';
    return text;
}

void emu_check(const void *at, size_t bytes, int access, const void *pc)
{
    place where = place_of(at);
    if (where == OTHER) {
        if (!anywhere && !harmless(at, access))
            emu_fail("%s: %s of host memory", emu_source(pc), what[access]);
        return;
    }
    const unsigned char *byte = static_cast<const unsigned char *>(at);
    if (where == SHARED && static_cast<size_t>(byte - arena) + bytes > emu_now.shared_bytes)
        emu_fail("%s: %s at byte %zd of the block's %zu bytes of dynamic shared memory",
                 emu_source(pc), what[access], byte - arena, emu_now.shared_bytes);
    trace *first = trace_of(byte, where), *last = trace_of(byte + bytes - 1, where);
    for (trace *t = first; t <= last; t++)
        check_trace(t, where, access, pc);
}

void emu_pending(void *at, size_t bytes, bool pending)
{
    trace *first = trace_of(at, place_of(at));
    for (size_t i = 0; i < bytes / 2; i++)
        first[i].pending = pending;
}

bool emu_is_shared(const void *at)
{
    place where = place_of(at);
    return where == SHARED || where == STATIC;
}

bool emu_is_device(const void *at)
{
    place where = place_of(at);
    return where == DEVICE || (where == OTHER && anywhere && !harmless(at, EMU_READ));
}

void emu_anywhere(int device)
{
    anywhere = device != 0;
}

void emu_enter_thread(void)
{
    open_arena();
    dl_iterate_phdr(find_statics, nullptr);
}

unsigned char *emu_arena_shared(size_t bytes)
{
    open_arena();
    memset(arena, 0xff, bytes);
    for (size_t i = 0; i < bytes / 2; i++)
        traces[i].pending = 0;
    for (size_t i = 0; i < static_bytes / 2; i++)
        static_traces[i].pending = 0;
    return arena;
}

uint32_t emu_shared_number(const void *at)
{
    place where = place_of(at);
    const unsigned char *byte = static_cast<const unsigned char *>(at);
    if (where == SHARED)
        return static_cast<uint32_t>(byte - arena);
    if (where == STATIC)
        return static_cast<uint32_t>(shared_most + static_cast<size_t>(byte - statics));
    emu_fail("the shared address of something in %s", places[where]);
}

void *emu_shared_pointer(uint32_t number)
{
    return number < shared_most ? arena + number
                                : const_cast<unsigned char *>(statics) + (number - shared_most);
}

void *emu_alloc(size_t bytes, size_t shift)
{
    open_arena();
    size_t at = (taken + guard + 255) / 256 * 256 + shift;
    if (at + bytes + guard > arena_bytes)
        abort();
    taken = at + bytes;
    memset(arena + at - guard / 2, 0xff, bytes + guard);
    for (size_t i = at / 2; i < (at + bytes + 1) / 2; i++)
        traces[i].mine = 1;
    return arena + at;
}

void emu_forget(void)
{
    if (arena == nullptr)
        return;
    memset(traces + shared_most / 2, 0, (taken + guard - shared_most) / 2 * sizeof(trace));
    taken = shared_most + guard;
}
