/* SPDX-License-Identifier: MIT */
#include "base/array.h"
#include "base/clock.h"
#include "base/rng.h"
#include "kernels/cuda/cuda_int.h"
#include "kernels/cuda/launch.h"

#include <stdlib.h>
#include <string.h>
#define DT_CUDA_BIAS_MOST 262144 /* outputs of a layer */

/* cuBLASLt adds biases of the output's data type only (cublasLt.h,
 * CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE), and biases are float32. There are few of them and they do
 * not change, so each is converted to bfloat16 once, at its first use, and found again by its
 * address. During capture nothing may be remembered, because the captured work may never run: the
 * copy is then part of the graph, and made on each replay in a place of its own. */

enum { ENTRIES = 4096, MOST = ENTRIES * 3 / 4 }; /* a power of two */

/* The end of the memory is for a temporary copy of the largest bias that linear.make accepts. */
#define KEPT_BYTES (DT_CUDA_BIAS_BYTES - DT_CUDA_BIAS_MOST * (int64_t)sizeof(uint16_t))
#define ALIGN      64

struct entry {
    const float *bias; /* NULL: free */
    int count;         /* 0: removed; the probe continues past it */
    int64_t at;        /* offset of the copy in bytes */
};

struct dt_cuda_biases {
    struct entry entries[ENTRIES];
    int taken, live; /* entries that are not free, and valid entries */
    int64_t used;    /* bytes of copies */
};

dt_status dt_cuda_biases_new(struct dt_cuda *cuda)
{
    cuda->biases = calloc(1, sizeof *cuda->biases);
    return cuda->biases != NULL ? DT_OK : dt_fail(DT_ENOMEM, "no memory for a table of biases");
}

void dt_cuda_biases_free(struct dt_cuda *cuda)
{
    free(cuda->biases);
    cuda->biases = NULL;
}

static struct entry *find_bias(struct dt_cuda_biases *biases, const float *bias, int count)
{
    uint64_t hash = (uint64_t)(uintptr_t)bias * 0x9e3779b97f4a7c15U;
    for (int i = (int)(hash >> 52);; i = (i + 1) % ENTRIES) {
        struct entry *entry = &biases->entries[i];
        if (entry->bias == NULL || (entry->bias == bias && entry->count == count))
            return entry;
    }
}

/* cuBLASLt adds only biases of the output's data type. Returns the bfloat16 copy of a float32 bias
 * on the device: made at the first request, kept until forget is called for changed memory. NULL
 * when an error was kept. */
static const void *cuda_bias(struct dt_cuda *cuda, const float *bias, int count)
{
    struct dt_cuda_biases *biases = cuda->biases;
    struct entry *entry = find_bias(biases, bias, count);
    char *copies = cuda->workspace + DT_CUDA_LIBRARY_BYTES;
    int64_t bytes = ((int64_t)count * (int64_t)sizeof(uint16_t) + ALIGN - 1) / ALIGN * ALIGN;
    if (entry->bias != NULL)
        return copies + entry->at;
    bool kept = !cuda->recording && biases->taken < MOST && biases->used + bytes <= KEPT_BYTES;
    char *to = copies + (kept ? biases->used : KEPT_BYTES);
    dt_cuda_keep(cuda, dt_launch_narrow(DT_BFLOAT16, bias, to, count, cuda->stream),
                 "narrow a bias");
    if (kept && cuda->error.status == DT_OK) {
        *entry = (struct entry){bias, count, biases->used};
        biases->used += bytes;
        biases->taken++;
        biases->live++;
    }
    return cuda->error.status == DT_OK ? to : NULL;
}

/* A copy's memory is not reused while any other copy exists: a graph may still read it. */
void dt_cuda_biases_forget(struct dt_cuda *cuda, const void *memory, int64_t bytes)
{
    struct dt_cuda_biases *biases = cuda->biases;
    uintptr_t first = (uintptr_t)memory, end = first + (uintptr_t)bytes;
    if (biases == NULL || biases->live == 0)
        return;
    for (int i = 0; i < ENTRIES; i++) {
        struct entry *entry = &biases->entries[i];
        uintptr_t at = (uintptr_t)entry->bias;
        if (entry->count > 0 && at < end && at + (uintptr_t)entry->count * sizeof(float) > first) {
            entry->count = 0;
            biases->live--;
        }
    }
    if (biases->live == 0)
        *biases = (struct dt_cuda_biases){0};
}

/* Linear layers by cuBLASLt. It is column-major: a row-major matrix is its transpose there, so y^T
 * [out, rows] = W x^T, with W, which it sees as [in, out], transposed, and bias and activation as
 * an epilogue on y's rows.
 *
 * Its GELU is computed with tanh.approx.f32, whose relative error is 2^-11 (PTX ISA), for outputs
 * in float32, too (read in the sm_90 code of cuBLASLt 13.1). So only outputs in bfloat16 take it;
 * float32 outputs are activated by a kernel of our own after the product.
 *
 * Where it has no algorithm, simpler calls are tried: the groups one after the other,
 * then no epilogue, with the bias stored in y before (beta 1) and the activation after
 * (float32 outputs only). */

enum { DT_CUDA_PROPOSALS = 8 };

struct dt_linear {
    struct dt_cuda *cuda;
    enum dt_dtype dtype;
    struct dt_linear_shape shape;
    int groups;               /* 1 or more */
    bool batched;             /* all groups in one product */
    bool seeded;              /* y holds the bias before and is added to */
    enum dt_activation after; /* activation to apply after the product */
    cublasLtMatmulDesc_t product;
    cublasLtMatrixLayout_t weight, x, y;
    cublasLtMatmulAlgo_t algorithm;
};

/* The fastest of cuBLASLt's proposals for a product. Its heuristics order them without running any;
 * by how much the best of eight is faster than the first differs by shape, so it is measured where
 * a plan is prepared, but for long products: on an H100 those measured side by side were up to 15 %
 * slower by themselves than the first proposal, perhaps since the card is then at its limit of
 * power. In a step a layer's weight comes from memory, and its input, which was just written, from
 * the cache: so successive calls take copies of the weight that the L2 cache cannot all hold. */

#define PATIENCE_NS (60 * DT_NS_PER_SECOND)
#define WARM_NS                                                                                    \
    10000000 /* the device computes so long before: an idle GPU raises its clock in steps */
#define WINDOW_NS  300000   /* time of a proposal in a round */
#define MANY_FLOPS 1e11     /* operations from which a product is not measured */
#define ENOUGH_NS  60000000 /* for one shape, after the first round */
#define CLOSE      1.02     /* an earlier proposal is kept when it takes at most this much longer */

enum { ROUNDS = 5, CALLS = 4, CALLS_MOST = 40, WARM_ROUNDS_MOST = 50, COPIES_MOST = 32 };

/* All that decides which product it is; zeroed before it is filled, so that it can
 * be compared as bytes. */
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

static const struct dt_cuda_choice *known_choice(const struct dt_cuda *cuda,
                                                 const struct form *form)
{
    const struct dt_cuda_choice *choice = cuda->choices;
    while (choice != NULL && memcmp(&choice->form, form, sizeof *form) != 0)
        choice = choice->next;
    return choice;
}

/* Without memory it is measured again the next time. */
static void remember_choice(struct dt_cuda *cuda, const struct form *form,
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

static int64_t padded_bytes(int64_t bytes)
{
    return (bytes + 255) / 256 * 256;
}

/* Random numbers of magnitude 0.5 to 2, in either data type: a GPU multiplies zeros with
 * less power, so faster. */
static dt_status fill_operand(struct dt_cuda *cuda, char *memory, int64_t bytes)
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

/* Enough copies for more than twice the cache, but for no more than a 32nd of the memory, which
 * ranks in tests share. */
static int copies_of(const struct dt_cuda *cuda, int64_t weight)
{
    int64_t most = cuda->memory_bytes / 32, cache = 2 * cuda->l2_bytes;
    int64_t copies = (cache < most ? cache : most) / weight + 1;
    return copies < COPIES_MOST ? (int)copies : COPIES_MOST;
}

static int64_t element_of(cudaDataType_t type)
{
    return type == CUDA_R_16BF ? 2 : 4;
}

static cudaDataType_t type_of(enum dt_dtype dtype)
{
    return dtype == DT_BFLOAT16 ? CUDA_R_16BF : CUDA_R_32F;
}

/* Bytes of an element of x and weight, and of y and bias. */
static int64_t cuda_gemm_in_bytes(const struct dt_linear *linear)
{
    return element_of(type_of(linear->dtype));
}

static bool is_wide(const struct dt_linear *linear)
{
    return linear->shape.wide || linear->dtype != DT_BFLOAT16;
}

static cudaDataType_t y_type(const struct dt_linear *linear)
{
    return is_wide(linear) ? CUDA_R_32F : CUDA_R_16BF;
}

static int64_t cuda_gemm_out_bytes(const struct dt_linear *linear)
{
    return element_of(y_type(linear));
}

static dt_status take_operands(const struct dt_linear *linear, int copies,
                               struct operands *operands)
{
    const struct dt_linear_shape *shape = &linear->shape;
    const int64_t in = cuda_gemm_in_bytes(linear), out = cuda_gemm_out_bytes(linear);
    const int64_t outs = shape->out / linear->groups, groups = linear->batched ? linear->groups : 1;
    const int64_t x = padded_bytes((int64_t)shape->rows * shape->in * in);
    const int64_t weight = padded_bytes(groups * outs * shape->in * in);
    const int64_t bias = padded_bytes(groups * outs * out);
    const int64_t y = padded_bytes(((groups - 1) * shape->group_stride + shape->rows * outs) * out);
    void *memory = NULL;
    copies = copies > 0 ? copies : copies_of(linear->cuda, weight);
    const int64_t all = x + copies * weight + bias + y;
    DT_TRY(dt_cuda_alloc(&linear->cuda->base, all, &memory));
    *operands = (struct operands){.memory = memory, .weight_bytes = weight, .copies = copies};
    operands->x = memory;
    operands->weight = operands->x + x;
    operands->bias = operands->weight + copies * weight;
    operands->y = operands->bias + bias;
    return fill_operand(linear->cuda, memory, all);
}

/* The library refuses the call itself; the stream is as before. */
static bool refuses_proposal(cublasStatus_t code)
{
    return code == CUBLAS_STATUS_NOT_SUPPORTED || code == CUBLAS_STATUS_INVALID_VALUE ||
           code == CUBLAS_STATUS_ARCH_MISMATCH;
}

/* Queues one product, of one group unless batched. bias: in y's data type; not used when seeded. */
static cublasStatus_t cuda_multiply(struct dt_linear *linear, const void *x, const void *weight,
                                    const void *bias, void *y)
{
    static const float one = 1.0F, none = 0.0F;
    struct dt_cuda *cuda = linear->cuda;
    if (!linear->seeded) {
        cublasStatus_t code = cublasLtMatmulDescSetAttribute(
            linear->product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias);
        if (code != CUBLAS_STATUS_SUCCESS)
            return code;
    }
    return cublasLtMatmul(cuda->lt, linear->product, &one, weight, linear->weight, x, linear->x,
                          linear->seeded ? &one : &none, y, linear->y, y, linear->y,
                          &linear->algorithm, cuda->workspace, (size_t)DT_CUDA_LIBRARY_BYTES,
                          cuda->stream);
}

static cublasStatus_t call_product(struct dt_linear *linear, struct operands *operands,
                                   const cublasLtMatmulHeuristicResult_t *proposal)
{
    const char *weight =
        operands->weight + operands->turn++ % operands->copies * operands->weight_bytes;
    linear->algorithm = proposal->algo;
    return cuda_multiply(linear, operands->x, weight, operands->bias, operands->y);
}

static dt_status call_status(struct dt_cuda *cuda, cublasStatus_t code)
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
        cublasStatus_t code = call_product(linear, operands, &found[i]);
        if (refuses_proposal(code)) {
            (void)cudaGetLastError();
            continue;
        }
        DT_TRY(call_status(linear->cuda, code));
        kept[(*n)++] = i;
    }
    return dt_cuda_finish(&linear->cuda->base, dt_clock_ns() + PATIENCE_NS, NULL, NULL);
}

/* The input and the result of time_round. */
struct round {
    const cublasLtMatmulHeuristicResult_t *found;
    const int *kept; /* n of found */
    int n, calls;
    bool backwards;
    int64_t ns[DT_CUDA_PROPOSALS], spent; /* time of a call of each; time of all */
};

/* Each in turn, some calls between two marks. */
static dt_status time_round(struct dt_linear *linear, struct operands *operands,
                            struct round *round)
{
    struct dt_device *device = &linear->cuda->base;
    int64_t at[2 * DT_CUDA_PROPOSALS];
    for (int i = 0; i < round->n; i++) {
        int which = round->backwards ? round->n - 1 - i : i;
        dt_cuda_mark(device, 2 * i);
        for (int k = 0; k < round->calls; k++)
            DT_TRY(call_status(linear->cuda,
                               call_product(linear, operands, &round->found[round->kept[which]])));
        dt_cuda_mark(device, 2 * i + 1);
    }
    DT_TRY(dt_cuda_finish(device, dt_clock_ns() + PATIENCE_NS, NULL, NULL));
    DT_TRY(dt_cuda_times(device, 2 * round->n, at));
    round->spent = at[2 * round->n - 1];
    for (int i = 0; i < round->n; i++) {
        int which = round->backwards ? round->n - 1 - i : i;
        round->ns[which] = (at[2 * i + 1] - at[2 * i]) / round->calls;
    }
    return DT_OK;
}

/* Until the clock is up; then as many calls as make a window. */
static dt_status warm_up(struct dt_linear *linear, struct operands *operands, struct round *round)
{
    int64_t all = 0;
    round->calls = CALLS;
    for (int i = 0; i < WARM_ROUNDS_MOST && all < WARM_NS; i++, all += round->spent)
        DT_TRY(time_round(linear, operands, round));
    int64_t each = round->spent / (round->n * CALLS) + 1, calls = WINDOW_NS / each;
    round->calls = calls < CALLS ? CALLS : calls < CALLS_MOST ? (int)calls : CALLS_MOST;
    return DT_OK;
}

/* The middle one of a proposal's times. */
static int64_t median_time(int64_t ns[][DT_CUDA_PROPOSALS], int rounds, int proposal)
{
    int64_t sorted[ROUNDS];
    for (int i = 0; i < rounds; i++)
        sorted[i] = ns[i][proposal];
    qsort(sorted, (size_t)rounds, sizeof sorted[0], dt_ascending_int64);
    return sorted[(rounds - 1) / 2];
}

/* In rounds, forwards and backwards, so that a drift of the clock meets all of them alike. */
static dt_status time_all(struct dt_linear *linear, struct operands *operands, struct round *round,
                          int *fastest)
{
    int64_t ns[ROUNDS][DT_CUDA_PROPOSALS], times[DT_CUDA_PROPOSALS], all = 0;
    int rounds = 0, best = 0;
    DT_TRY(warm_up(linear, operands, round));
    for (; rounds < ROUNDS && all <= ENOUGH_NS; rounds++, all += round->spent) {
        round->backwards = rounds % 2 == 1;
        DT_TRY(time_round(linear, operands, round));
        memcpy(ns[rounds], round->ns, sizeof ns[rounds]);
    }
    for (int i = 0; i < round->n; i++) {
        times[i] = median_time(ns, rounds, i);
        best = times[i] < times[best] ? i : best;
    }
    *fastest = 0;
    while ((double)times[*fastest] > CLOSE * (double)times[best])
        ++*fastest;
    return DT_OK;
}

static dt_status choose_proposal(struct dt_linear *linear, struct operands *operands,
                                 const cublasLtMatmulHeuristicResult_t found[], int count)
{
    int kept[DT_CUDA_PROPOSALS], n, fastest = 0;
    DT_TRY(keep_accepted(linear, operands, found, count, kept, &n));
    if (n == 0)
        return DT_WAIT;
    struct round round = {.found = found, .kept = kept, .n = n};
    const struct dt_linear_shape *shape = &linear->shape;
    if (n > 1 && 2.0 * shape->rows * shape->in * shape->out < MANY_FLOPS)
        DT_TRY(time_all(linear, operands, &round, &fastest));
    linear->algorithm = found[kept[fastest]].algo;
    return DT_OK;
}

/* Sets the algorithm: the fastest of the proposals, best guess first, by the device's clock on
 * random numbers and weights out of memory; once for each shape on an open device, later from
 * memory. Proposals that the library does not run after all are left out; DT_WAIT: that was each of
 * them. Where there is no memory to try them, or while the stream is recorded, the first. count: 1
 * or more. Not reentrant; waits. */
static dt_status cuda_gemm_choose(struct dt_linear *linear,
                                  const cublasLtMatmulHeuristicResult_t found[], int count)
{
    struct dt_cuda *cuda = linear->cuda;
    struct form form;
    form_of(linear, &form);
    const struct dt_cuda_choice *choice = known_choice(cuda, &form);
    linear->algorithm = choice != NULL ? choice->algorithm : found[0].algo;
    if (choice != NULL || cuda->recording)
        return DT_OK;
    struct operands operands = {.memory = NULL};
    dt_status status = take_operands(linear, 0, &operands);
    if (status == DT_ENOMEM && !cuda->lost && operands.memory == NULL)
        status = take_operands(linear, 1, &operands);
    if (status == DT_OK)
        status = choose_proposal(linear, &operands, found, count);
    else if (status == DT_ENOMEM && !cuda->lost) /* the plan itself may still fit */
        status = DT_OK;
    if (status == DT_OK && operands.memory != NULL)
        remember_choice(cuda, &form, &linear->algorithm);
    dt_cuda_release(&cuda->base, operands.memory);
    return status;
}

enum { GEMM_ALIGN = 16 };

static dt_status cublas_status(cublasStatus_t code, const char *what)
{
    if (code == CUBLAS_STATUS_SUCCESS)
        return DT_OK;
    return dt_fail(code == CUBLAS_STATUS_ALLOC_FAILED ? DT_ENOMEM : DT_ELIB,
                   "cuBLASLt could not %s: %s", what, cublasLtGetStatusName(code));
}

static cublasComputeType_t compute_of(enum dt_dtype dtype)
{
    return dtype == DT_TF32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
}

/* Bytes that every row of `bytes` bytes starts at a multiple of, GEMM_ALIGN at
 * most, if the first does. */
static uint32_t byte_alignment(int64_t bytes)
{
    uint32_t align = GEMM_ALIGN;
    while (bytes % align != 0)
        align /= 2;
    return align;
}

static dt_status set_attribute(cublasLtMatmulDesc_t product, cublasLtMatmulDescAttributes_t name,
                               const void *value, size_t size)
{
    return cublas_status(cublasLtMatmulDescSetAttribute(product, name, value, size),
                         "describe a product");
}

/* layout is new: rows x cols in cuBLASLt's order, rows contiguous; of `count` matrices
 * `stride` elements apart. */
static dt_status lay_out(cublasLtMatrixLayout_t *layout, cudaDataType_t type, int rows, int cols,
                         const int64_t batch[2])
{
    int32_t count = (int32_t)batch[0];
    DT_TRY(cublas_status(
        cublasLtMatrixLayoutCreate(layout, type, (uint64_t)rows, (uint64_t)cols, rows),
        "describe a matrix"));
    if (count == 1)
        return DT_OK;
    DT_TRY(cublas_status(cublasLtMatrixLayoutSetAttribute(
                             *layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count),
                         "describe a matrix"));
    return cublas_status(
        cublasLtMatrixLayoutSetAttribute(*layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                         &batch[1], sizeof batch[1]),
        "describe a matrix");
}

static void forget_linear(struct dt_linear *linear)
{
    if (linear->product != NULL)
        (void)cublasLtMatmulDescDestroy(linear->product);
    if (linear->weight != NULL)
        (void)cublasLtMatrixLayoutDestroy(linear->weight);
    if (linear->x != NULL)
        (void)cublasLtMatrixLayoutDestroy(linear->x);
    if (linear->y != NULL)
        (void)cublasLtMatrixLayoutDestroy(linear->y);
    linear->product = NULL;
    linear->weight = linear->x = linear->y = NULL;
}

static cublasLtEpilogue_t epilogue_of(const struct dt_linear *linear)
{
    if (linear->seeded)
        return CUBLASLT_EPILOGUE_DEFAULT;
    return linear->after != linear->shape.act ? CUBLASLT_EPILOGUE_GELU_BIAS
                                              : CUBLASLT_EPILOGUE_BIAS;
}

/* The heuristics use only the alignment of the bias's address. */
static dt_status describe_linear(struct dt_linear *linear)
{
    const struct dt_linear_shape *shape = &linear->shape;
    const cublasOperation_t transposed = CUBLAS_OP_T;
    const cublasLtEpilogue_t epilogue = epilogue_of(linear);
    const int64_t out = shape->out / linear->groups, count = linear->batched ? linear->groups : 1;
    const void *bias = (const void *)(uintptr_t)byte_alignment(out * element_of(y_type(linear)));
    cudaDataType_t type = type_of(linear->dtype);
    DT_TRY(cublas_status(
        cublasLtMatmulDescCreate(&linear->product, compute_of(linear->dtype), CUDA_R_32F),
        "describe a product"));
    DT_TRY(set_attribute(linear->product, CUBLASLT_MATMUL_DESC_TRANSA, &transposed,
                         sizeof transposed));
    DT_TRY(
        set_attribute(linear->product, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue));
    if (!linear->seeded)
        DT_TRY(
            set_attribute(linear->product, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias));
    if (!linear->seeded && count > 1)
        DT_TRY(set_attribute(linear->product, CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, &out,
                             sizeof out));
    DT_TRY(lay_out(&linear->weight, type, shape->in, (int)out,
                   (const int64_t[]){count, out * shape->in}));
    DT_TRY(lay_out(&linear->x, type, shape->in, shape->rows, (const int64_t[]){count, 0}));
    return lay_out(&linear->y, y_type(linear), (int)out, shape->rows,
                   (const int64_t[]){count, shape->group_stride});
}

/* Matrices are aligned like their rows; tensors and buffers are aligned more strictly. */
static dt_status prefer_workspace(const struct dt_linear *linear,
                                  cublasLtMatmulPreference_t preference)
{
    const uint64_t most = (uint64_t)DT_CUDA_LIBRARY_BYTES;
    const struct dt_linear_shape *shape = &linear->shape;
    int64_t out = shape->out / linear->groups, element = element_of(y_type(linear));
    uint32_t in_align = byte_alignment(shape->in * element_of(type_of(linear->dtype)));
    uint32_t out_align = byte_alignment(out * element),
             apart = byte_alignment(shape->group_stride * element);
    if (linear->groups > 1 && apart < out_align)
        out_align = apart;
    const struct {
        cublasLtMatmulPreferenceAttributes_t name;
        const void *value;
        size_t size;
    } rows[] = {
        {CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most, sizeof most},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &in_align, sizeof in_align},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &in_align, sizeof in_align},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &out_align, sizeof out_align},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &out_align, sizeof out_align},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        DT_TRY(cublas_status(cublasLtMatmulPreferenceSetAttribute(preference, rows[i].name,
                                                                  rows[i].value, rows[i].size),
                             "take a preference"));
    return DT_OK;
}

/* DT_WAIT: cuBLASLt has no algorithm, or rejects the combination, in its heuristics
 * or when it is called. */
static dt_status propose_algorithms(struct dt_linear *linear, cublasLtMatmulPreference_t preference)
{
    cublasLtMatmulHeuristicResult_t found[DT_CUDA_PROPOSALS];
    int count = 0, usable = 0;
    DT_TRY(prefer_workspace(linear, preference));
    cublasStatus_t code = cublasLtMatmulAlgoGetHeuristic(
        linear->cuda->lt, linear->product, linear->weight, linear->x, linear->y, linear->y,
        preference, DT_CUDA_PROPOSALS, found, &count);
    if (code == CUBLAS_STATUS_NOT_SUPPORTED || code == CUBLAS_STATUS_INVALID_VALUE ||
        (code == CUBLAS_STATUS_SUCCESS && count == 0))
        return DT_WAIT;
    DT_TRY(cublas_status(code, "propose algorithms"));
    for (int i = 0; i < count; i++)
        if (found[i].state == CUBLAS_STATUS_SUCCESS &&
            found[i].workspaceSize <= (size_t)DT_CUDA_LIBRARY_BYTES)
            found[usable++] = found[i];
    if (usable == 0)
        return DT_WAIT;
    int choice = linear->shape.choice;
    if (choice == 0)
        return cuda_gemm_choose(linear, found, usable);
    linear->algorithm = found[choice <= usable ? choice - 1 : usable - 1].algo;
    return DT_OK;
}

/* Tries the most fused form first. */
static dt_status gemm_choose(struct dt_linear *linear)
{
    const struct dt_linear_shape *shape = &linear->shape;
    cublasLtMatmulPreference_t preference = NULL;
    dt_status status = DT_WAIT;
    DT_TRY(cublas_status(cublasLtMatmulPreferenceCreate(&preference), "take a preference"));
    for (int less = linear->groups > 1 ? 0 : 1; less < 4 && status == DT_WAIT; less++) {
        if (less == 2 && linear->groups == 1)
            continue;
        linear->batched = less % 2 == 0;
        linear->seeded = less >= 2;
        bool fused = shape->act == DT_ACT_GELU && !is_wide(linear) && !linear->seeded;
        linear->after = fused ? DT_ACT_NONE : shape->act;
        if (linear->after != DT_ACT_NONE && !is_wide(linear))
            break;
        forget_linear(linear);
        status = describe_linear(linear);
        if (status == DT_OK)
            status = propose_algorithms(linear, preference);
    }
    (void)cublasLtMatmulPreferenceDestroy(preference);
    if (status == DT_WAIT)
        return dt_fail(DT_EUNSUP, "cuBLASLt has no %s product of %d x %d by %d",
                       dt_dtype_text(linear->dtype), shape->rows, shape->in, shape->out);
    return status;
}

dt_status dt_cuda_linear_new(struct dt_device *device, enum dt_dtype dtype,
                             const struct dt_linear_shape *shape, struct dt_linear **linear)
{
    struct dt_cuda *cuda = dt_cuda_of(device);
    DT_TRY(dt_cuda_ready(cuda));
    if (!shape->wide && shape->out > DT_CUDA_BIAS_MOST)
        return dt_fail(DT_EUNSUP, "a layer of %d outputs, at most %d are supported", shape->out,
                       DT_CUDA_BIAS_MOST);
    struct dt_linear *made = calloc(1, sizeof *made);
    if (made == NULL)
        return dt_fail(DT_ENOMEM, "no memory for a linear layer");
    made->cuda = cuda;
    made->dtype = dtype;
    made->shape = *shape;
    made->groups = shape->groups > 1 ? shape->groups : 1;
    dt_status status = gemm_choose(made);
    if (status != DT_OK) {
        dt_cuda_linear_free(made);
        return status;
    }
    *linear = made;
    return DT_OK;
}

/* Writes the bias to every row of a group's matrix, in y's data type. */
static void seed_operands(const struct dt_linear *linear, const void *bias, void *y, int64_t out)
{
    const struct dt_copy op = {.to = y,
                               .from = bias,
                               .count = {1, 1, linear->shape.rows},
                               .to_stride = {0, 0, out},
                               .width = out,
                               .element = (int)element_of(y_type(linear))};
    dt_cuda_keep(linear->cuda, dt_launch_copy(&op, linear->cuda->stream), "spread a bias");
}

/* cuBLASLt's error may hide an error of CUDA, which is more precise. */
static void keep_product(struct dt_cuda *cuda, cublasStatus_t code)
{
    static const char what[] = "multiply matrices";
    cudaError_t cause = code == CUBLAS_STATUS_SUCCESS ? cudaSuccess : cudaGetLastError();
    dt_cuda_keep(cuda, (int)cause, what);
    if (cause == cudaSuccess)
        dt_error_keep(&cuda->error, cublas_status(code, what));
}

void dt_cuda_linear(struct dt_device *device, struct dt_linear *linear,
                    const struct dt_linear_call *call)
{
    struct dt_cuda *cuda = dt_cuda_enter(device);
    const struct dt_linear_shape *shape = &linear->shape;
    const int64_t out = shape->out / linear->groups, y_element = element_of(y_type(linear));
    if (cuda == NULL)
        return;
    const void *bias = is_wide(linear) ? call->bias : cuda_bias(cuda, call->bias, shape->out);
    for (int i = 0; i < linear->groups && linear->seeded && cuda->error.status == DT_OK; i++)
        seed_operands(linear, (const char *)bias + i * out * y_element,
                      (char *)call->y + i * shape->group_stride * y_element, out);
    for (int i = 0; i < (linear->batched ? 1 : linear->groups) && cuda->error.status == DT_OK;
         i++) {
        const char *weight =
            (const char *)call->weight + i * out * shape->in * element_of(type_of(linear->dtype));
        keep_product(cuda, cuda_multiply(linear, call->x, weight,
                                         (const char *)bias + i * out * y_element,
                                         (char *)call->y + i * shape->group_stride * y_element));
    }
    for (int i = 0;
         i < linear->groups && cuda->error.status == DT_OK && linear->after != DT_ACT_NONE; i++)
        dt_cuda_keep(cuda,
                     dt_launch_activation(linear->after, (float *)call->y + i * shape->group_stride,
                                          shape->rows * out, cuda->stream),
                     "apply an activation");
}

void dt_cuda_linear_free(struct dt_linear *linear)
{
    if (linear != NULL)
        forget_linear(linear);
    free(linear);
}
