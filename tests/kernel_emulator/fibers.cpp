// SPDX-License-Identifier: MIT
// The threads of a block as fibers: entered by makecontext, switched by _setjmp and _longjmp, which make no system call.
// A fiber runs until it must wait for others; then the next one that can go on is taken. If there is none, somebody is
// missing: the error names who waits where.
#undef _FORTIFY_SOURCE // which some distributions set: its longjmp goes no way but up one stack
#include "tests/kernel_emulator/emulator_int.h"

#include <csetjmp>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <ucontext.h>

emu_self emu_now;

namespace
{
constexpr int most = 1024;
constexpr size_t stack_bytes = 64 << 10;

enum state { RUNS, AT_BARRIER, IN_WARP, DONE };

struct fiber {
    jmp_buf at;
    state what;
    int line; // where it waits
    emu_kind kind;
    emu_dim thread;
};

struct warp {
    int lanes, arrived, done;
    uint32_t epoch;
    void *operands[32];
};

fiber fibers[most];
warp warps[most / 32];
char *stacks;
ucontext_t entry_context;
jmp_buf scheduler, failure;
const emu_call *running;
int threads, current, at_barrier, barrier_line, done, backwards;
bool fresh[most];
char sentence[1024];

const char *const kind_names[] = {"__syncwarp", "a shuffle", "a vote", "mma", "ldmatrix"};

void run_fiber()
{
    running->body(running->arg);
    fiber *me = &fibers[current];
    me->what = DONE;
    warps[current / 32].done++;
    done++;
    _longjmp(scheduler, 1);
}

void enter(int id)
{
    if (stacks == nullptr) {
        void *all = mmap(nullptr, stack_bytes * most, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (all == MAP_FAILED)
            abort();
        stacks = static_cast<char *>(all);
    }
    getcontext(&entry_context);
    entry_context.uc_stack.ss_sp = stacks + stack_bytes * static_cast<size_t>(id);
    entry_context.uc_stack.ss_size = stack_bytes;
    entry_context.uc_link = nullptr;
    makecontext(&entry_context, run_fiber, 0);
    setcontext(&entry_context);
}

// Gives the processor back to the scheduler; returns when the fiber's turn has come again.
void leave()
{
    if (_setjmp(fibers[current].at) == 0)
        _longjmp(scheduler, 1);
    emu_now.thread = fibers[current].thread;
    emu_now.id = current;
}

[[noreturn]] void missing()
{
    for (int i = 0; i < threads; i++) {
        const fiber *f = &fibers[i];
        if (f->what == IN_WARP)
            emu_fail(
                "thread %d waits at %s of line %d, and %d of the %d lanes of its warp do not come",
                i, kind_names[f->kind], f->line, warps[i / 32].lanes - warps[i / 32].arrived,
                warps[i / 32].lanes);
    }
    for (int i = 0; i < threads; i++)
        if (fibers[i].what == AT_BARRIER)
            emu_fail(
                "thread %d waits at the barrier of line %d, and %d of the %d threads do not come",
                i, fibers[i].line, threads - at_barrier, threads);
    abort();
}

void start_block(emu_dim block)
{
    emu_now.block = block;
    emu_now.begun = ++emu_now.epoch;
    emu_now.shared = emu_arena_shared(running->shared_bytes);
    emu_now.shared_bytes = running->shared_bytes;
    at_barrier = done = 0;
    for (int i = 0; i < threads; i++) {
        unsigned u = static_cast<unsigned>(i);
        fresh[i] = true;
        fibers[i].what = RUNS;
        fibers[i].thread = {u % running->block.x, u / running->block.x % running->block.y,
                            u / running->block.x / running->block.y};
    }
    for (int w = 0; w * 32 < threads; w++) {
        int lanes = threads - w * 32;
        warps[w] = {lanes < 32 ? lanes : 32, 0, 0, 1, {}};
    }
}

// Runs a fiber until it waits or ends.
void give_turn(int id)
{
    current = id;
    if (_setjmp(scheduler) != 0)
        return;
    if (!fresh[current])
        _longjmp(fibers[current].at, 1);
    fresh[current] = false;
    emu_now.thread = fibers[current].thread;
    emu_now.id = current;
    enter(current);
}

// Each pass gives every fiber that can run a turn.
void run_block(emu_dim block)
{
    start_block(block);
    while (done < threads) {
        bool ran = false;
        for (int turn = 0; turn < threads; turn++) {
            int id = backwards ? threads - 1 - turn : turn;
            if (fibers[id].what != RUNS)
                continue;
            ran = true;
            give_turn(id);
        }
        if (!ran)
            missing();
    }
    emu_cp_async_forget(false);
    emu_note_end();
}
// What a GPU of compute capability 8.0 and more takes (CUDA C++ Programming Guide, "Technical Specifications"); dynamic
// shared memory beyond 48 KiB only for kernels that were allowed it.
constexpr size_t shared_default = 48 << 10, shared_most = 227 << 10;
struct {
    const void *kernel;
    size_t bytes;
} allowed[256];
int allowed_count;

void check_launch(const emu_call *call, unsigned long long size)
{
    if (size == 0 || size > most || call->block.z > 64 || call->grid.x == 0 || call->grid.y == 0 ||
        call->grid.z == 0 || call->grid.x > 0x7fffffff || call->grid.y > 65535 || call->grid.z > 65535)
        emu_fail("no such launch: grid %u %u %u, block %u %u %u", call->grid.x, call->grid.y,
                 call->grid.z, call->block.x, call->block.y, call->block.z);
    size_t may = shared_default;
    for (int i = 0; i < allowed_count; i++)
        if (allowed[i].kernel == call->kernel && allowed[i].bytes > may)
            may = allowed[i].bytes;
    if (call->shared_bytes > may)
        emu_fail("%zu bytes of dynamic shared memory, and this kernel may have %zu",
                 call->shared_bytes, may);
}
} // namespace

bool emu_allow_shared(const void *kernel, int bytes)
{
    if (bytes < 0 || static_cast<size_t>(bytes) > shared_most)
        return false;
    int i = 0;
    while (i < allowed_count && allowed[i].kernel != kernel)
        i++;
    if (i == static_cast<int>(sizeof allowed / sizeof *allowed))
        abort();
    allowed[i] = {kernel, static_cast<size_t>(bytes)};
    if (i == allowed_count)
        allowed_count++;
    return true;
}

void emu_fail(const char *format, ...)
{
    char what[512];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    if (sentence[0] == '\0')
        snprintf(sentence, sizeof sentence, "%s, block %u %u %u, thread %d: %s",
                 running ? running->name : "", emu_now.block.x, emu_now.block.y, emu_now.block.z,
                 emu_now.id, what);
    _longjmp(failure, 1);
}

int emu_launch(const emu_call *call)
{
    unsigned long long size =
        static_cast<unsigned long long>(call->block.x) * call->block.y * call->block.z;
    emu_enter_thread();
    running = call;
    threads = static_cast<int>(size);
    emu_now.block_size = call->block;
    emu_now.grid_size = call->grid;
    emu_now.launched = emu_now.epoch + 1;
    emu_counted.launches++;
    volatile int code = EMU_FAILED;
    if (_setjmp(failure) == 0) {
        check_launch(call, size);
        emu_now.running = 1;
        for (unsigned z = 0; z < call->grid.z; z++)
            for (unsigned y = 0; y < call->grid.y; y++)
                for (unsigned x = 0; x < call->grid.x; x++)
                    run_block({x, y, z});
        code = 0;
    }
    emu_now.running = 0;
    emu_now.epoch++;
    emu_cp_async_forget(true);
    emu_note_drop();
    return code;
}

bool emu_on_stack(const void *at)
{
    const char *byte = static_cast<const char *>(at);
    if (byte >= stacks && byte < stacks + stack_bytes * most)
        return true;
    const char *launcher = reinterpret_cast<const char *>(running);
    return byte > launcher - 4096 && byte < launcher + 65536;
}

void emu_barrier(int line)
{
    fiber *me = &fibers[current];
    if (at_barrier > 0 && barrier_line != line)
        emu_fail("at the barrier of line %d while others are at that of line %d", line,
                 barrier_line);
    barrier_line = line;
    me->line = line;
    me->what = AT_BARRIER;
    if (++at_barrier < threads) {
        leave();
        return;
    }
    at_barrier = 0;
    emu_now.epoch++;
    emu_counted.barriers++;
    for (int i = 0; i < threads; i++)
        fibers[i].what = RUNS;
}

uint32_t emu_warp_epoch(void)
{
    return warps[current / 32].epoch;
}

void emu_meet(emu_kind kind, int line, void *mine, void (*act)(void *const lanes[32]))
{
    int first = current / 32 * 32;
    warp *w = &warps[current / 32];
    fiber *me = &fibers[current];
    for (int i = first; w->arrived > 0 && i < first + w->lanes; i++)
        if (fibers[i].what == IN_WARP && (fibers[i].kind != kind || fibers[i].line != line))
            emu_fail("at %s of line %d while lane %d is at %s of line %d", kind_names[kind], line,
                     i - first, kind_names[fibers[i].kind], fibers[i].line);
    w->operands[current - first] = mine;
    me->line = line;
    me->kind = kind;
    me->what = IN_WARP;
    if (++w->arrived < w->lanes) {
        leave();
        return;
    }
    w->arrived = 0;
    if (kind == EMU_SYNCWARP)
        w->epoch++;
    else if (w->lanes < 32)
        emu_fail("%s of line %d in a warp of %d lanes", kind_names[kind], line, w->lanes);
    if (act != nullptr)
        act(w->operands);
    for (int i = first; i < first + w->lanes; i++)
        fibers[i].what = RUNS;
}

const char *emu_error(void)
{
    return sentence;
}

void emu_reset(void)
{
    sentence[0] = '\0';
    emu_counted = {};
}

int emu_exponentials = 0;

void emu_order(int order)
{
    backwards = order;
}
