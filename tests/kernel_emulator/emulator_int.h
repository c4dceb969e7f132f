/* SPDX-License-Identifier: MIT */
/* emulator_int - what the files of the emulator and its stand-ins for CUDA's headers
 * tell each other (C++) */
#ifndef DT_TESTS_EMULATOR_INT_H
#define DT_TESTS_EMULATOR_INT_H

#include "tests/kernel_emulator/emulator.h"

struct emu_dim {
    unsigned x, y, z;
};

/* State visible to a fiber: one object, so that the hooks can distinguish it from shared memory. */
struct emu_self {
    emu_dim thread, block, block_size, grid_size;
    int id;            /* of the thread in its block */
    uint32_t epoch;    /* a new one with each block and each barrier of it */
    uint32_t launched; /* the epoch in which this launch, and this block of it, began */
    uint32_t begun;
    int running;
    unsigned char *shared;
    size_t shared_bytes;
};
extern emu_self emu_now;

/* fibers.cpp */
struct emu_call {
    void (*body)(void *arg);
    void *arg;
    emu_dim grid, block;
    size_t shared_bytes;
    const char *name;
    const void *kernel;
};
/* Lets launches of a kernel have so much dynamic shared memory; false: no
 * multiprocessor of sm_90 has. */
bool emu_allow_shared(const void *kernel, int bytes);
int emu_launch(const emu_call *call);
[[noreturn]] void emu_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
void emu_barrier(int line);
uint32_t emu_warp_epoch(void); /* counts the __syncwarp of the running thread's warp */

/* A warp-wide instruction: every lane of the warp comes with the same kind and line and `bytes`
 * of operands at `mine`; the last one runs act once over all 32, and each goes on with what act
 * left in its operands. */
enum emu_kind { EMU_SYNCWARP, EMU_SHUFFLE, EMU_VOTE, EMU_MMA, EMU_LDMATRIX };
void emu_meet(emu_kind kind, int line, void *mine, void (*act)(void *const lanes[32]));

/* shadow.cpp: checks an access of the running thread; kind is for the message. */
enum emu_access { EMU_READ = 0, EMU_WRITE = 1, EMU_ATOMIC = 2 };
void emu_check(const void *at, size_t bytes, int access, const void *pc);
void emu_pending(void *at, size_t bytes, bool pending); /* a cp.async on its way */
bool emu_is_shared(const void *at);
bool emu_is_device(const void *at);
void emu_enter_thread(void); /* static shared memory is the calling thread's */
bool emu_on_stack(
    const void *at); /* fibers.cpp: of a fiber, or the launcher's, where parameters are */
const char *emu_source(const void *pc);
/* Implements __cvta_generic_to_shared, and its inverse. */
uint32_t emu_shared_number(const void *at);
void *emu_shared_pointer(uint32_t number);
unsigned char *emu_arena_shared(
    size_t bytes); /* a block's dynamic shared memory: exactly so many bytes can be touched */

/* traffic.cpp: counts an access of the running thread as part of its warp's instruction at pc. */
enum emu_stream {
    EMU_LOAD,
    EMU_STORE,
    EMU_SHARED_LOAD,
    EMU_SHARED_STORE,
    EMU_CP_ASYNC,
    EMU_STREAMS
};
void emu_note(const void *at, size_t bytes, emu_stream stream, const void *pc);
void emu_note_rows(const void *const rows[8]); /* a matrix of ldmatrix */
void emu_note_end(void);  /* of a block: the instructions that not all lanes came to */
void emu_note_drop(void); /* after a launch, also one that failed */
extern struct emu_tally emu_counted;

/* warp.cpp: the instructions; line is the caller's, which makes divergence visible. */
void emu_mma_bf16(float c[4], const uint32_t a[4], const uint32_t b[2], int line);
void emu_ldmatrix(uint32_t r[4], const void *row, bool transposed, int line);
uint32_t emu_shuffle(unsigned mask, uint32_t value, int lane, int line);
unsigned emu_vote(unsigned mask, bool value, int line);
void emu_cp_async(void *to, const void *from, size_t bytes);
/* Accesses of atomics, which run one at a time anyway. */
void emu_atomic_load(const void *at, size_t bytes, void *value);
void emu_atomic_store(void *at, size_t bytes, const void *value);
void emu_cp_async_commit(void);
void emu_cp_async_wait(int groups);
void emu_cp_async_forget(
    bool failed); /* at the end of a block: copies nobody waited for are an error */

#endif
