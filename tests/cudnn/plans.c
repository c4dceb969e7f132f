/* SPDX-License-Identifier: MIT */
/* cuDNN's plans for described GPUs: every attention of our networks has one, and unsupported
 * shapes are refused with a sentence. cuDNN compiles the kernels for real (NVRTC),
 * tests/cudnn/driver.c takes them; nothing runs. Each device is a process of its own: a
 * description that cuDNN does not like may crash it. */
#include "kernels/cuda/cudnn.h"
#include "tests/lib/dose.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define WORKSPACE (32LL << 20)

/* The properties cuDNN 9.19 reads of a device, under its names. deviceVer is 10 times that
 * of __CUDA_ARCH__ / 10. */
struct device {
    int version, multiprocessors, shared_optin, l2;
    const char *name;
};

static const struct device a100 = {800, 108, 166912, 41943040, "NVIDIA A100-SXM4-80GB"};
static const struct device h200 = {900, 132, 232448, 62914560, "NVIDIA H200"};
static const struct device b200 = {1000, 148, 232448, 132644864, "NVIDIA B200"};
static const struct device t4 = {750, 40, 65536, 4194304, "Tesla T4"};

static const char *describe(const struct device *device)
{
    static char json[1024];
    snprintf(json, sizeof json,
             "{\"cudaDeviceId\":0,\"deviceVer\":%d,\"driverVer\":13000,\"maxGridSize\":[2147483647,"
             "65535,"
             "65535],\"maxBlockSize\":[1024,1024,64],\"regsPerBlock\":65536,\"totalGlobalMem\":"
             "80000000000,"
             "\"multiProcessorCount\":%d,\"warpSize\":32,\"maxSharedMemoryPerBlock\":49152,"
             "\"maxSharedMemoryPerBlockOptin\":%d,\"reservedSharedMemoryPerBlock\":1024,"
             "\"maxRegistersPerSM\":65536,\"pciDeviceId\":0,\"maxCtasPerSM\":32,"
             "\"maxThreadsPerBlock\":1024,"
             "\"maxThreadsPerSM\":2048,\"isTccDriver\":0,\"supportCoopLaunch\":1,"
             "\"smClockRateKHz\":1500000,"
             "\"memClockRateKHz\":2000000,\"l2CacheSize\":%d,\"deviceName\":\"%s\"}",
             device->version, device->multiprocessors, device->shared_optin, device->l2,
             device->name);
    return json;
}

/* Runs body in a child: 0 when it returned 0. What it found goes to standard error. */
static int in_child(int (*body)(const void *arg), const void *arg)
{
    int status = -1;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        _exit(body(arg));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFSIGNALED(status))
        fprintf(stderr, "killed by signal %d\n", WTERMSIG(status));
    return status;
}

/* Queries, keys and values as the linear layer writes them: in one row of three matrices. */
static struct dt_attention interleaved(int heads, int head, int tokens)
{
    int64_t row = 3LL * heads * head, out = (int64_t)heads * head;
    return (struct dt_attention){.q_at = {row * tokens, row},
                                 .kv_at = {row * tokens, row},
                                 .out_at = {out * tokens, out},
                                 .sequences = 2,
                                 .heads = heads,
                                 .head = head,
                                 .queries = tokens,
                                 .keys = tokens};
}

/* One sequence of a ring: queries of this rank, keys of another, packed each for itself. */
static struct dt_attention ring(int heads, int head, int queries, int keys)
{
    int64_t row = (int64_t)heads * head;
    return (struct dt_attention){.q_at = {0, row},
                                 .kv_at = {0, 2 * row},
                                 .out_at = {0, row},
                                 .sequences = 1,
                                 .heads = heads,
                                 .head = head,
                                 .queries = queries,
                                 .keys = keys};
}

static int complain(const struct dt_attention *op, const char *what)
{
    fprintf(stderr, "head %d, %d queries, %d keys: %s\n", op->head, op->queries, op->keys, what);
    return 1;
}

/* The plan there is; the kernel of one that gives a log-sum-exp has ln 2 in it (see cudnn.h). */
static int has_plan(struct dt_cuda_sdpa *sdpa, const struct dt_attention *op)
{
    static const float ln2 = 0.693147182F;
    int (*has)(const void *bytes, size_t size) = NULL;
    struct dt_cuda_sdpa_plan plan;
    if (dt_cuda_sdpa_ready(sdpa, op, WORKSPACE) != DT_OK)
        return complain(op, dt_message());
    if (!dt_cuda_sdpa_plan(sdpa, op, &plan))
        return complain(op, "ready, but there is no plan");
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    *(void **)&has = driver != NULL ? dlsym(driver, "driver_image_has") : NULL;
    if (has == NULL)
        return complain(op, "this is not tests/cudnn/driver.c");
    if (op->lse != NULL && has(&ln2, sizeof ln2) != 1)
        return complain(op, "nothing turns the logarithm to base 2 into the natural one");
    printf("  head %3d, %4d queries, %4d keys, %s: engine %lld, %lld bytes, %d proposed\n",
           op->head, op->queries, op->keys, op->lse != NULL ? "lse" : "   ", (long long)plan.engine,
           (long long)plan.workspace_bytes, plan.proposed);
    return plan.skipped != 0 ? complain(op, "the first proposal was skipped") : 0;
}

/* DITTUNE_DOSE=full: every head on every device; else one, and a second on the H200. */
static int everything_has_a_plan(const void *arg)
{
    static const int heads[] = {64, 72, 88, 128};
    int most = dose_full() ? 4 : arg == &h200 ? 2 : 1;
    struct dt_cuda_sdpa *sdpa = NULL;
    float lse;
    int bad = 0;
    if (dt_cuda_sdpa_describe(describe(arg), &sdpa) != DT_OK)
        return 1;
    printf("%s, cuDNN %s\n", ((const struct device *)arg)->name, dt_cuda_sdpa_version());
    for (int i = 0; i < most; i++) {
        struct dt_attention op = ring(3, heads[i], 129, 77);
        op.lse = &lse;
        bad += has_plan(sdpa, &op);
        op = interleaved(6, heads[i], 256);
        bad += heads[i] <= 72 && most > 1 ? has_plan(sdpa, &op) : 0;
    }
    fflush(stdout);
    dt_cuda_sdpa_close(sdpa);
    return bad;
}

static void every_shape_has_a_plan(void **state)
{
    (void)state;
    assert_int_equal(in_child(everything_has_a_plan, &a100), 0);
    assert_int_equal(in_child(everything_has_a_plan, &h200), 0);
    assert_int_equal(in_child(everything_has_a_plan, &b200), 0);
}

static int refuses(struct dt_cuda_sdpa *sdpa, const struct dt_attention *op, const char *words)
{
    dt_status status = dt_cuda_sdpa_ready(sdpa, op, WORKSPACE);
    struct dt_cuda_sdpa_plan plan;
    if (status == DT_EUNSUP && strstr(dt_message(), words) != NULL &&
        !dt_cuda_sdpa_plan(sdpa, op, &plan))
        return 0;
    fprintf(stderr, "expected '%s': %d %s\n", words, status, status < 0 ? dt_message() : "");
    return 1;
}

static int refusals(const void *arg)
{
    struct dt_cuda_sdpa *sdpa = NULL;
    int bad = dt_cuda_sdpa_describe(describe(arg), &sdpa) != DT_OK;
    struct dt_attention op = interleaved(6, 60, 256);
    bad += refuses(sdpa, &op, "the head dimension 60 is no multiple of 8");
    op = interleaved(6, 264, 256);
    bad += refuses(sdpa, &op, "the head dimension 264 is no multiple of 8 up to 256");
    op = ring(6, 64, 16, 0);
    bad += refuses(sdpa, &op, "16 queries and 0 keys");
    op = interleaved(6, 64, 256);
    op.kv_at.row += 4;
    bad += refuses(sdpa, &op, "a stride is no multiple of 8");
    op = interleaved(6, 64, 256);
    bad += dt_cuda_sdpa_run(sdpa, &op, NULL, 0) != DT_EUNSUP;
    dt_cuda_sdpa_close(sdpa);
    bad += dt_cuda_sdpa_describe(describe(&t4), &sdpa) != DT_OK;
    bad += refuses(sdpa, &op, "cuDNN proposes no engine");
    dt_cuda_sdpa_close(sdpa);
    bad += dt_cuda_sdpa_describe("{\"deviceVer\":900}", &sdpa) != DT_OK;
    bad += dt_cuda_sdpa_ready(sdpa, &op, WORKSPACE) != DT_ELIB ||
           strstr(dt_message(), "maxGridSize") == NULL;
    dt_cuda_sdpa_close(sdpa);
    return bad;
}

static void refuses_unsupported_shapes(void **state)
{
    (void)state;
    assert_int_equal(in_child(refusals, &h200), 0);
}

/* The first proposal on this device asks for 256 bytes; with fewer, the next one serves. */
static int next_plan(const void *arg)
{
    struct dt_cuda_sdpa *sdpa = NULL;
    struct dt_cuda_sdpa_plan first = {.engine = 0}, second = {.engine = 0};
    struct dt_attention op = interleaved(6, 64, 256), other = interleaved(6, 64, 128);
    int bad = dt_cuda_sdpa_describe(describe(arg), &sdpa) != DT_OK;
    bad += dt_cuda_sdpa_ready(sdpa, &op, WORKSPACE) != DT_OK;
    bad += !dt_cuda_sdpa_plan(sdpa, &op, &first) || first.workspace_bytes == 0;
    bad += dt_cuda_sdpa_ready(sdpa, &other, first.workspace_bytes - 1) != DT_OK;
    bad += !dt_cuda_sdpa_plan(sdpa, &other, &second);
    bad += second.skipped < 1 || second.workspace_bytes >= first.workspace_bytes ||
           second.engine == first.engine;
    dt_cuda_sdpa_close(sdpa);
    if (bad != 0)
        fprintf(stderr, "engine %lld, then %lld after %d: %s\n", (long long)first.engine,
                (long long)second.engine, second.skipped, dt_message());
    return bad;
}

static void skips_plans_beyond_the_workspace(void **state)
{
    (void)state;
    assert_int_equal(in_child(next_plan, &h200), 0);
}

/* Built with room for three plans (CMakeLists.txt): the one not used for longest goes. */
static int least_recent(const void *arg)
{
    struct dt_cuda_sdpa *sdpa = NULL;
    struct dt_attention ops[DT_CUDA_SDPA_PLANS + 1];
    struct dt_cuda_sdpa_plan plan;
    int bad = dt_cuda_sdpa_describe(describe(arg), &sdpa) != DT_OK;
    for (int i = 0; i < DT_CUDA_SDPA_PLANS; i++) {
        ops[i] = interleaved(2, 64, 64 + i);
        bad += dt_cuda_sdpa_ready(sdpa, &ops[i], WORKSPACE) != DT_OK;
    }
    bad += dt_cuda_sdpa_ready(sdpa, &ops[0], WORKSPACE) != DT_OK;
    ops[DT_CUDA_SDPA_PLANS] = interleaved(2, 64, 512);
    bad += dt_cuda_sdpa_ready(sdpa, &ops[DT_CUDA_SDPA_PLANS], WORKSPACE) != DT_OK;
    for (int i = 0; i <= DT_CUDA_SDPA_PLANS; i++)
        if (dt_cuda_sdpa_plan(sdpa, &ops[i], &plan) != (i != 1))
            bad++, fprintf(stderr, "plan %d is %s\n", i, i == 1 ? "still there" : "gone");
    dt_cuda_sdpa_close(sdpa);
    return bad;
}

static void evicts_the_least_recently_used_plan(void **state)
{
    (void)state;
    assert_int_equal(in_child(least_recent, &a100), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_shape_has_a_plan),
        cmocka_unit_test(refuses_unsupported_shapes),
        cmocka_unit_test(skips_plans_beyond_the_workspace),
        cmocka_unit_test(evicts_the_least_recently_used_plan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
