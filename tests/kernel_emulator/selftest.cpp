// SPDX-License-Identifier: MIT
// The emulator itself: instructions against plain arithmetic by the tables of the PTX ISA, and every kind of mistake
// planted once and found.
#include "tests/kernel_emulator/include/kernels/cuda/ptx.cuh"

#include <csetjmp>
#include <cstdarg>
#include <cstdint>
#include <cstdlib>

extern "C" {
#include <cmocka.h>
}

static uint32_t state = 1;

static uint32_t draw()
{
    state = state * 1664525u + 1013904223u;
    return state >> 8;
}

static float value() // a bfloat16 number with 5 bits: products and sums of 16 are exact in float32
{
    return (float)((int)(draw() % 31) - 15) / 4.0f;
}

// ---- instructions

__global__ static void mma_kernel(const uint16_t *a, const uint16_t *b, float *c)
{
    int group = threadIdx.x / 4, member = threadIdx.x % 4;
    uint32_t left[4], right[2];
    float sum[4];
    for (int i = 0; i < 4; i++) { // registers: rows group and + 8 alternate, then columns + 8
        const uint16_t *at = a + (group + i % 2 * 8) * 16 + member * 2 + i / 2 * 8;
        left[i] = at[0] | (uint32_t)at[1] << 16;
    }
    for (int i = 0; i < 2; i++) {
        const uint16_t *at = b + (member * 2 + i * 8) * 8 + group;
        right[i] = at[0] | (uint32_t)at[8] << 16;
    }
    for (int i = 0; i < 4; i++)
        sum[i] = c[(group + i / 2 * 8) * 8 + member * 2 + i % 2];
    dt_mma_bf16(sum, left, right);
    for (int i = 0; i < 4; i++)
        c[(group + i / 2 * 8) * 8 + member * 2 + i % 2] = sum[i];
}

static void mma_is_the_product(void **)
{
    for (int round = 0; round < 20; round++) {
        uint16_t *a = (uint16_t *)emu_alloc(512, 0), *b = (uint16_t *)emu_alloc(256, 0);
        float *c = (float *)emu_alloc(512, 0), want[128];
        for (int i = 0; i < 256; i++)
            a[i] = emu_bfloat16_bits(value());
        for (int i = 0; i < 128; i++) {
            b[i] = emu_bfloat16_bits(value());
            want[i] = c[i] = value();
        }
        for (int i = 0; i < 16; i++)
            for (int j = 0; j < 8; j++)
                for (int k = 0; k < 16; k++)
                    want[i * 8 + j] += __uint_as_float((uint32_t)a[i * 16 + k] << 16) *
                                       __uint_as_float((uint32_t)b[k * 8 + j] << 16);
        assert_int_equal(DT_LAUNCH(mma_kernel, 1, 32, 0, nullptr, a, b, c), 0);
        for (int i = 0; i < 128; i++)
            assert_true(c[i] == want[i]);
        emu_forget();
    }
}

// Four 8x8 matrices row after row; each lane writes what it got, as (matrix, row, column) would have it.
template <bool TRANSPOSED> __global__ static void ldmatrix_kernel(const uint16_t *in, uint16_t *out)
{
    __shared__ __align__(16) uint16_t rows[32][8];
    for (int i = 0; i < 8; i++)
        rows[threadIdx.x][i] = in[threadIdx.x * 8 + i];
    __syncthreads();
    uint32_t got[4], at = dt_shared_address(rows[threadIdx.x]);
    if (TRANSPOSED)
        dt_load_matrices_transposed(got, at);
    else
        dt_load_matrices(got, at);
    int row = threadIdx.x / 4, column = threadIdx.x % 4 * 2;
    for (int m = 0; m < 4; m++)
        for (int i = 0; i < 2; i++)
            out[m * 64 + (TRANSPOSED ? (column + i) * 8 + row : row * 8 + column + i)] =
                (uint16_t)(got[m] >> (16 * i));
}

static void ldmatrix_is_the_table(void **)
{
    for (int transposed = 0; transposed < 2; transposed++) {
        uint16_t *in = (uint16_t *)emu_alloc(512, 0), *out = (uint16_t *)emu_alloc(512, 0);
        for (int i = 0; i < 256; i++)
            in[i] = (uint16_t)draw();
        int code = transposed ? DT_LAUNCH(ldmatrix_kernel<true>, 1, 32, 0, nullptr, in, out)
                              : DT_LAUNCH(ldmatrix_kernel<false>, 1, 32, 0, nullptr, in, out);
        assert_string_equal(emu_error(), "");
        assert_int_equal(code, 0);
        assert_memory_equal(in, out, 512);
        emu_forget();
    }
}

__global__ static void shuffles_kernel(float *out)
{
    float mine = (float)threadIdx.x;
    out[threadIdx.x] = __shfl_xor_sync(0xffffffffu, mine, 5);
    out[32 + threadIdx.x] = __shfl_down_sync(0xffffffffu, mine, 3);
    out[64 + threadIdx.x] = __shfl_sync(0xffffffffu, mine, 7);
    out[96 + threadIdx.x] = (float)__ballot_sync(0xffffffffu, threadIdx.x < 5);
}

static void shuffles_move_words(void **)
{
    float *out = (float *)emu_alloc(512, 0);
    assert_int_equal(DT_LAUNCH(shuffles_kernel, 1, 32, 0, nullptr, out), 0);
    for (int i = 0; i < 32; i++) {
        assert_true(out[i] == (float)(i ^ 5));
        assert_true(out[32 + i] == (float)(i + 3 < 32 ? i + 3 : i));
        assert_true(out[64 + i] == 7.0f && out[96 + i] == 31.0f);
    }
    emu_forget();
}

static void bfloat16_rounds_to_even(void **)
{
    static const float pairs[][2] = {{1.0f, 1.0f},
                                     {1.00390625f, 1.0f},
                                     {1.01171875f, 1.015625f},
                                     {1.00390637f, 1.0078125f},
                                     {-1.00390625f, -1.0f},
                                     {3.4e38f, INFINITY},
                                     {1e-45f, 0.0f},
                                     {INFINITY, INFINITY},
                                     {9.183549615799121e-41f, 9.183549615799121e-41f}};
    for (auto &pair : pairs)
        assert_true(__bfloat162float(__float2bfloat16_rn(pair[0])) == pair[1]);
    assert_true(std::isnan(__bfloat162float(__float2bfloat16_rn(NAN))));
}

// A row of 16-byte pieces through shared memory; what is left out on the way is what the test asks for.
enum { WAIT = 1, BARRIER = 2 };
template <int WITH> __global__ static void async_kernel(const float *in, float *out)
{
    float *memory = (float *)dt_shared_memory();
    int id = (int)threadIdx.x, other = (id + 1) % 64;
    dt_copy_async(dt_shared_address(memory + id * 4), in + id * 4, id < 60);
    dt_copy_commit();
    if (WITH & WAIT)
        dt_copy_wait<0>();
    if (WITH & BARRIER)
        __syncthreads();
    for (int i = 0; i < 4; i++)
        out[id * 4 + i] = memory[other * 4 + i];
    dt_copy_wait<0>();
}

static void cp_async_is_seen_after_wait_and_barrier(void **)
{
    float *in = (float *)emu_alloc(1024, 0), *out = (float *)emu_alloc(1024, 0);
    for (int i = 0; i < 256; i++)
        in[i] = value();
    emu_reset();
    assert_int_equal(DT_LAUNCH(async_kernel<WAIT | BARRIER>, 1, 64, 1024, nullptr, in, out), 0);
    for (int i = 0; i < 256; i++)
        assert_true(out[i] == ((i / 4 + 1) % 64 < 60 ? in[(i + 4) % 256] : 0.0f));
    assert_int_equal(emu_counts().cp_async.units, emu_counts().cp_async.least);
    assert_int_equal(DT_LAUNCH(async_kernel<BARRIER>, 1, 64, 1024, nullptr, in, out), EMU_FAILED);
    assert_non_null(strstr(emu_error(), "a cp.async nobody waited for"));
    emu_reset();
    assert_int_equal(DT_LAUNCH(async_kernel<WAIT>, 1, 64, 1024, nullptr, in, out), EMU_FAILED);
    assert_true(emu_error()[0] != '\0');
    emu_forget();
}

// Groups are waited for from the oldest.
__global__ static void groups_kernel(const float *in, float *out, int early)
{
    float *memory = (float *)dt_shared_memory() + threadIdx.x * 8;
    for (int i = 0; i < 2; i++) {
        dt_copy_async(dt_shared_address(memory + i * 4), in + i * 4, true);
        dt_copy_commit();
    }
    dt_copy_wait<1>();
    out[threadIdx.x] = memory[early ? 4 : 0];
    dt_copy_wait<0>();
    out[32 + threadIdx.x] = memory[4];
}

static void groups_come_in_order(void **)
{
    float *in = (float *)emu_alloc(32, 0), *out = (float *)emu_alloc(256, 0);
    for (int i = 0; i < 8; i++)
        in[i] = (float)i;
    emu_reset();
    assert_int_equal(DT_LAUNCH(groups_kernel, 1, 32, 1024, nullptr, in, out, 0), 0);
    assert_true(out[31] == 0.0f && out[63] == 4.0f);
    assert_int_equal(DT_LAUNCH(groups_kernel, 1, 32, 1024, nullptr, in, out, 1), EMU_FAILED);
    emu_forget();
}

// ---- mistakes

enum mistake {
    NONE,
    UNORDERED,
    RACE,
    RACE_IN_WARP,
    RACE_OF_BLOCKS,
    NO_BARRIER,
    OTHER_BARRIER,
    NO_LANE,
    PAST_BUFFER,
    BEFORE_BUFFER,
    PAST_SHARED,
    UNWRITTEN,
    CROOKED,
    HOST,
    LEFT_COPY,
    MISTAKES
};
static float on_host[4];

template <int WHICH> __global__ static void mistake_kernel(float *data, float *host)
{
    float *memory = (float *)dt_shared_memory();
    __shared__ float fixed[64];
    int id = (int)threadIdx.x;
    memory[id] = fixed[id] = data[id];
    if (WHICH == UNORDERED)
        data[id] = fixed[id ^ 1];
    __syncwarp();
    data[id] = fixed[id ^ 1] + memory[id ^ 1];
    if (WHICH == RACE_OF_BLOCKS)
        data[64] = 1.0f;
    if (WHICH == OTHER_BARRIER && id < 32)
        __syncthreads();
    else if (WHICH != NO_BARRIER || id != 5)
        __syncthreads();
    if (WHICH != NO_LANE || id != 7)
        data[id] = __shfl_xor_sync(0xffffffffu, data[id], 1);
    if (WHICH == RACE) {
        float other = memory[(id + 32) % 64];
        __syncwarp();
        memory[id] = other;
    }
    if (WHICH == RACE_IN_WARP) {
        float other = fixed[id ^ 1];
        fixed[id] = other;
    }
    if (WHICH == PAST_BUFFER && id == 63)
        data[id] = data[id + 2];
    if (WHICH == BEFORE_BUFFER && id == 0)
        data[-1] = 0.0f;
    if (WHICH == PAST_SHARED)
        memory[id + 1] = 0.0f;
    if (WHICH == UNWRITTEN)
        data[id] = memory[64 + id];
    if (WHICH == CROOKED)
        *(float4 *)(data + id / 32 * 4 + 1) = make_float4(0, 0, 0, 0);
    if (WHICH == HOST)
        host[0] = 1.0f;
    if (WHICH == LEFT_COPY) {
        __syncthreads();
        dt_copy_async(dt_shared_address(memory), data, id == 99);
    }
}

template <int WHICH> static void expect(const char *words, size_t blocks, size_t shared)
{
    emu_reset();
    emu_forget();
    float *data = (float *)emu_alloc(65 * sizeof(float), 0);
    for (int i = 0; i < 65; i++)
        data[i] = 1.0f;
    int code =
        DT_LAUNCH(mistake_kernel<WHICH>, (unsigned)blocks, 64, shared, nullptr, data, on_host);
    if (words == nullptr) {
        assert_string_equal(emu_error(), "");
        assert_int_equal(code, 0);
        return;
    }
    if (strstr(emu_error(), words) == nullptr)
        fail_msg("mistake %d: \"%s\" does not say \"%s\"", WHICH, emu_error(), words);
    assert_int_equal(code, EMU_FAILED);
}

static void mistakes_are_found(void **)
{
    for (int order = 0; order < 2; order++) {
        emu_order(order);
        expect<NONE>(nullptr, 1, 256);
        expect<UNORDERED>("that nobody wrote", 1, 256);
        expect<RACE>("races with thread", 1, 256);
        expect<RACE_IN_WARP>("races with thread", 1, 256);
        expect<RACE_OF_BLOCKS>("races with thread", 2, 256);
        expect<NO_BARRIER>("do not come", 1, 256);
        expect<OTHER_BARRIER>("while others are at", 1, 256);
        expect<NO_LANE>("do not come", 1, 256);
        expect<PAST_BUFFER>("outside of every buffer", 1, 256);
        expect<BEFORE_BUFFER>("outside of every buffer", 1, 256);
        expect<PAST_SHARED>("dynamic shared memory", 1, 256);
        expect<UNWRITTEN>("that nobody wrote", 1, 512);
        expect<CROOKED>("not aligned", 1, 256);
        expect<HOST>("host memory", 1, 256);
        expect<LEFT_COPY>("cp.async", 1, 256);
    }
    emu_order(0);
    emu_forget();
}

// Shared memory beyond 48 KiB is asked for before, kernel by kernel.
__global__ static void large_kernel(int *out)
{
    int *memory = (int *)dt_shared_memory();
    memory[threadIdx.x * 400] = 1;
    out[threadIdx.x] = memory[threadIdx.x * 400];
}

static void large_shared_memory_is_asked_for(void **)
{
    int *out = (int *)emu_alloc(128, 0);
    emu_reset();
    assert_int_equal(DT_LAUNCH(large_kernel, 1, 32, 50000, nullptr, out), EMU_FAILED);
    assert_non_null(strstr(emu_error(), "this kernel may have 49152"));
    emu_reset();
    assert_int_equal(cudaFuncSetAttribute(large_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 50000), cudaSuccess);
    assert_int_equal(DT_LAUNCH(large_kernel, 1, 32, 50000, nullptr, out), 0);
    assert_int_not_equal(cudaFuncSetAttribute(large_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 240000), cudaSuccess);
    assert_int_equal(DT_LAUNCH(large_kernel, 1, 2048, 0, nullptr, out), EMU_FAILED);
    emu_reset();
    emu_forget();
}

// ---- traffic

template <int STEP> __global__ static void traffic_kernel(const float *in, float *out)
{
    float4 *memory = (float4 *)dt_shared_memory();
    float4 piece = *(const float4 *)(in + threadIdx.x * 4 * STEP);
    memory[threadIdx.x * STEP] = piece;
    uint32_t got[4];
    __syncthreads();
    dt_load_matrices(got, dt_shared_address(memory + threadIdx.x * STEP));
    out[threadIdx.x] = (float)got[0]; // not of piece, which a compiler may read a second time
}

template <int STEP> static struct emu_tally moved()
{
    float *in = (float *)emu_alloc(32 * 16 * STEP, 0), *out = (float *)emu_alloc(128, 0);
    memset(in, 0, 32 * 16 * STEP);
    emu_reset();
    assert_int_equal(DT_LAUNCH(traffic_kernel<STEP>, 1, 32, 32 * 16 * STEP, nullptr, in, out), 0);
    emu_forget();
    return emu_counts();
}

static void traffic_is_counted(void **)
{
    struct emu_tally dense = moved<1>(), padded = moved<9>(), wide = moved<8>();
    assert_int_equal(dense.load.requests, 1);
    assert_int_equal(dense.load.bytes, 512);
    assert_int_equal(dense.load.wide, 512);
    assert_int_equal(dense.load.units, 16);
    assert_int_equal(dense.load.least, 16);
    assert_int_equal(dense.store.units, 4);
    assert_int_equal(wide.load.units, 32);
    assert_int_equal(dense.shared_store.units, 4);  // 8 lanes fill the 32 banks
    assert_int_equal(padded.shared_store.units, 4); // rows of 144 bytes: so do they
    assert_int_equal(wide.shared_store.units, 32); // rows of 128 bytes: 8 lanes at the same 4 banks
    assert_int_equal(dense.ldmatrix.units, 4);
    assert_int_equal(padded.ldmatrix.units, 4);
    assert_int_equal(wide.ldmatrix.units, 32);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mma_is_the_product),
        cmocka_unit_test(ldmatrix_is_the_table),
        cmocka_unit_test(shuffles_move_words),
        cmocka_unit_test(bfloat16_rounds_to_even),
        cmocka_unit_test(cp_async_is_seen_after_wait_and_barrier),
        cmocka_unit_test(groups_come_in_order),
        cmocka_unit_test(mistakes_are_found),
        cmocka_unit_test(large_shared_memory_is_asked_for), cmocka_unit_test(traffic_is_counted),
    };
    return cmocka_run_group_tests_name("selftest", tests, nullptr, nullptr);
}
