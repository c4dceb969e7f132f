// SPDX-License-Identifier: MIT
// What the compiler calls before each load and store of the kernels (-fsanitize=thread): the interface of a race
// detector's library, which is not linked.
#include "tests/kernel_emulator/emulator_int.h"

namespace
{
void access(const void *at, size_t bytes, int kind, bool aligned, const void *pc)
{
    if (!emu_now.running)
        return;
    bool shared = emu_is_shared(at);
    if (!shared && !emu_is_device(at)) {
        emu_check(at, bytes, kind, pc);
        return;
    }
    if (aligned && reinterpret_cast<uintptr_t>(at) % bytes != 0)
        emu_fail("%s: an access of %zu bytes that is not aligned to them", emu_source(pc), bytes);
    emu_check(at, bytes, kind, pc);
    emu_stream stream = shared ? (kind == EMU_READ ? EMU_SHARED_LOAD : EMU_SHARED_STORE)
                               : (kind == EMU_READ ? EMU_LOAD : EMU_STORE);
    emu_note(at, bytes, stream, pc);
}
} // namespace

#define PC __builtin_return_address(0)
#define HOOKS(bytes)                                                                               \
    void __tsan_read##bytes(void *at)                                                              \
    {                                                                                              \
        access(at, bytes, EMU_READ, true, PC);                                                     \
    }                                                                                              \
    void __tsan_write##bytes(void *at)                                                             \
    {                                                                                              \
        access(at, bytes, EMU_WRITE, true, PC);                                                    \
    }                                                                                              \
    void __tsan_unaligned_read##bytes(void *at)                                                    \
    {                                                                                              \
        access(at, bytes, EMU_READ, false, PC);                                                    \
    }                                                                                              \
    void __tsan_unaligned_write##bytes(void *at)                                                   \
    {                                                                                              \
        access(at, bytes, EMU_WRITE, false, PC);                                                   \
    }

extern "C" {
void __tsan_init(void)
{
}
HOOKS(1)
HOOKS(2)
HOOKS(4)
HOOKS(8)
HOOKS(16)
void __tsan_read_range(void *at, size_t bytes)
{
    access(at, bytes, EMU_READ, false, PC);
}
void __tsan_write_range(void *at, size_t bytes)
{
    access(at, bytes, EMU_WRITE, false, PC);
}
}
