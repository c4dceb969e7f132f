/* SPDX-License-Identifier: MIT */
/* The fastest of cuBLASLt's proposals for a product. Its heuristics order them without running any; by how much the best of eight is
 * faster than the first differs by shape, so it is measured where a plan is prepared. In a step a layer's weight comes from memory, and
 * its input, which was just written, from the cache: so successive calls take copies of the weight that the L2 cache cannot all hold. */
#include "kernels/cuda/gemm_int.h"

#include "base/clock.h"
#include "base/rng.h"

#include <stdlib.h>
#include <string.h>

#define PATIENCE_NS (60 * DT_NS_PER_SECOND)
#define ENOUGH_NS   50000000 /* of the device's time for one shape, after the first round */
#define CLOSE       1.01 /* an earlier proposal is kept when it takes at most this much longer */

enum { ROUNDS = 3, CALLS = 4, COPIES_MOST = 32 };

/* All that decides which product it is; zeroed before it is filled, so that it can be compared as bytes. */
struct form {
    struct dt_linear_shape shape;
    enum dt_dtype dtype;
    bool batched, seeded;
};

struct dt_cuda_choice {
    struct dt_cuda_choice *next;
    struct form form;
    cublasLtMatmulAlgo_t algorithm;
};

static void form_of(const struct dt_linear *linear, struct form *form)
{
    const struct dt_linear_shape *shape = &linear->shape;
    memset(form, 0, sizeof *form);
    form->shape.rows = shape->rows;
    form->shape.in = shape->in;
    form->shape.out = shape->out;
    form->shape.act = linear->after != shape->act ? shape->act : DT_ACT_NONE; /* the epilogue's */
    form->shape.wide = shape->wide;
    form->shape.groups = shape->groups;
    form->shape.group_stride = shape->group_stride;
    form->dtype = linear->dtype;
    form->batched = linear->batched;
    form->seeded = linear->seeded;
}

static const struct dt_cuda_choice *known(const struct dt_cuda *cuda, const struct form *form)
{
    const struct dt_cuda_choice *choice = cuda->choices;
    while (choice != NULL && memcmp(&choice->form, form, sizeof *form) != 0)
        choice = choice->next;
    return choice;
}

/* Without memory it is measured again the next time. */
static void remember(struct dt_cuda *cuda, const struct form *form,
                     const cublasLtMatmulAlgo_t *algorithm)
{
    struct dt_cuda_choice *choice = malloc(sizeof *choice);
    if (choice == NULL)
        return;
    choice->next = cuda->choices;
    memcpy(&choice->form, form, sizeof *form);
    choice->algorithm = *algorithm;
    cuda->choices = choice;
}

void dt_cuda_gemm_forget(struct dt_cuda *cuda)
{
    while (cuda->choices != NULL) {
        struct dt_cuda_choice *next = cuda->choices->next;
        free(cuda->choices);
        cuda->choices = next;
    }
}

/* x, copies of a weight, bias and y in one piece of memory. */
struct operands {
    char *memory, *x, *weight, *bias, *y;
    int64_t weight_bytes;
    int copies, turn;
};

static int64_t padded(int64_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

/* Random numbers of magnitude 0.5 to 2, in either data type: a GPU multiplies zeros with less power, so faster. */
static dt_status fill(struct dt_cuda *cuda, char *memory, int64_t bytes)
{
    const int64_t most = 1 << 20, piece = bytes < most ? bytes : most; /* a multiple of 8 */
    uint64_t *words = malloc((size_t)piece);
    if (words == NULL)
        return dt_fail(DT_ENOMEM, "no memory to choose a product's algorithm");
    for (size_t i = 0; i < (size_t)piece / sizeof *words; i++)
        words[i] = 0x3f003f003f003f00 | (dt_rng_hash(3, 5, i) & 0x80ff80ff80ff80ff);
    dt_status status = DT_OK;
    for (int64_t at = 0; status == DT_OK && at < bytes; at += piece)
        status =
            dt_cuda_put(&cuda->base, memory + at, words, bytes - at < piece ? bytes - at : piece);
    free(words);
    return status;
}

/* As many as are more than twice the cache, but of no more than a 32nd of the memory, which ranks in tests share. */
static int copies_of(const struct dt_cuda *cuda, int64_t weight)
{
    int64_t most = cuda->memory_bytes / 32, cache = 2 * cuda->l2_bytes;
    int64_t copies = (cache < most ? cache : most) / weight + 1;
    return copies < COPIES_MOST ? (int)copies : COPIES_MOST;
}

static dt_status take_operands(const struct dt_linear *linear, int copies,
                               struct operands *operands)
{
    const struct dt_linear_shape *shape = &linear->shape;
    const int64_t in = dt_cuda_gemm_in_bytes(linear), out = dt_cuda_gemm_out_bytes(linear);
    const int64_t outs = shape->out / linear->groups, groups = linear->batched ? linear->groups : 1;
    const int64_t x = padded((int64_t)shape->rows * shape->in * in);
    const int64_t weight = padded(groups * outs * shape->in * in);
    const int64_t bias = padded(groups * outs * out);
    const int64_t y = padded(((groups - 1) * shape->group_stride + shape->rows * outs) * out);
    void *memory = NULL;
    copies = copies > 0 ? copies : copies_of(linear->cuda, weight);
    const int64_t all = x + copies * weight + bias + y;
    DT_TRY(dt_cuda_alloc(&linear->cuda->base, all, &memory));
    *operands = (struct operands){.memory = memory, .weight_bytes = weight, .copies = copies};
    operands->x = memory;
    operands->weight = operands->x + x;
    operands->bias = operands->weight + copies * weight;
    operands->y = operands->bias + bias;
    return fill(linear->cuda, memory, all);
}

/* The library refuses the call itself; the stream is as before. */
static bool refuses(cublasStatus_t code)
{
    return code == CUBLAS_STATUS_NOT_SUPPORTED || code == CUBLAS_STATUS_INVALID_VALUE ||
           code == CUBLAS_STATUS_ARCH_MISMATCH;
}

static cublasStatus_t call(struct dt_linear *linear, struct operands *operands,
                           const cublasLtMatmulHeuristicResult_t *proposal)
{
    const char *weight =
        operands->weight + operands->turn++ % operands->copies * operands->weight_bytes;
    linear->algorithm = proposal->algo;
    return dt_cuda_multiply(linear, operands->x, weight, operands->bias, operands->y);
}

static dt_status called(struct dt_cuda *cuda, cublasStatus_t code)
{
    if (code == CUBLAS_STATUS_SUCCESS)
        return DT_OK;
    DT_CUDA(cuda, cudaGetLastError(), "multiply matrices");
    return dt_fail(DT_ELIB, "cuBLASLt could not multiply matrices: %s",
                   cublasLtGetStatusName(code));
}

/* One call of each, which also loads its kernel; keeps the numbers of those that run. */
static dt_status keep_accepted(struct dt_linear *linear, struct operands *operands,
                               const cublasLtMatmulHeuristicResult_t found[], int count, int kept[],
                               int *n)
{
    *n = 0;
    for (int i = 0; i < count; i++) {
        cublasStatus_t code = call(linear, operands, &found[i]);
        if (refuses(code)) {
            (void)cudaGetLastError();
            continue;
        }
        DT_TRY(called(linear->cuda, code));
        kept[(*n)++] = i;
    }
    return dt_cuda_finish(&linear->cuda->base, dt_clock_ns() + PATIENCE_NS, NULL, NULL);
}

/* Each in turn, some calls between two marks. least: of all rounds so far; *spent: of this one. */
static dt_status time_round(struct dt_linear *linear, struct operands *operands,
                            const cublasLtMatmulHeuristicResult_t found[], const int kept[], int n,
                            int64_t least[], int64_t *spent)
{
    struct dt_device *device = &linear->cuda->base;
    int64_t at[2 * DT_CUDA_PROPOSALS];
    for (int i = 0; i < n; i++) {
        dt_cuda_mark(device, 2 * i);
        for (int k = 0; k < CALLS; k++)
            DT_TRY(called(linear->cuda, call(linear, operands, &found[kept[i]])));
        dt_cuda_mark(device, 2 * i + 1);
    }
    DT_TRY(dt_cuda_finish(device, dt_clock_ns() + PATIENCE_NS, NULL, NULL));
    DT_TRY(dt_cuda_times(device, 2 * n, at));
    *spent = at[2 * n - 1];
    for (int i = 0; i < n; i++) {
        int64_t ns = at[2 * i + 1] - at[2 * i];
        least[i] = ns < least[i] ? ns : least[i];
    }
    return DT_OK;
}

/* Their least times, in rounds, so that a change of the clock frequency meets all of them. */
static dt_status time_all(struct dt_linear *linear, struct operands *operands,
                          const cublasLtMatmulHeuristicResult_t found[], const int kept[], int n,
                          int *fastest)
{
    int64_t least[DT_CUDA_PROPOSALS], all = 0, spent = 0;
    for (int i = 0; i < n; i++)
        least[i] = INT64_MAX;
    for (int round = 0; round < ROUNDS && all <= ENOUGH_NS; round++, all += spent)
        DT_TRY(time_round(linear, operands, found, kept, n, least, &spent));
    int best = 0;
    for (int i = 1; i < n; i++)
        best = least[i] < least[best] ? i : best;
    *fastest = 0;
    while ((double)least[*fastest] > CLOSE * (double)least[best])
        ++*fastest;
    return DT_OK;
}

static dt_status choose(struct dt_linear *linear, struct operands *operands,
                        const cublasLtMatmulHeuristicResult_t found[], int count)
{
    int kept[DT_CUDA_PROPOSALS], n, fastest = 0;
    DT_TRY(keep_accepted(linear, operands, found, count, kept, &n));
    if (n == 0)
        return DT_WAIT;
    if (n > 1)
        DT_TRY(time_all(linear, operands, found, kept, n, &fastest));
    linear->algorithm = found[kept[fastest]].algo;
    return DT_OK;
}

dt_status dt_cuda_gemm_choose(struct dt_linear *linear,
                              const cublasLtMatmulHeuristicResult_t found[], int count)
{
    struct dt_cuda *cuda = linear->cuda;
    struct form form;
    form_of(linear, &form);
    const struct dt_cuda_choice *choice = known(cuda, &form);
    linear->algorithm = choice != NULL ? choice->algorithm : found[0].algo;
    if (choice != NULL || cuda->recording)
        return DT_OK;
    struct operands operands = {.memory = NULL};
    dt_status status = take_operands(linear, 0, &operands);
    if (status == DT_ENOMEM && !cuda->lost && operands.memory == NULL)
        status = take_operands(linear, 1, &operands);
    if (status == DT_OK)
        status = choose(linear, &operands, found, count);
    else if (status == DT_ENOMEM && !cuda->lost) /* the plan itself may still fit */
        status = DT_OK;
    if (status == DT_OK && operands.memory != NULL)
        remember(cuda, &form, &linear->algorithm);
    dt_cuda_release(&cuda->base, operands.memory);
    return status;
}
