/* SPDX-License-Identifier: MIT */
/* A kernel that never ends: every call that waits for it comes back, with a status or with the
 * memory left where it is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "kernels/nccl.h"
#include "tests/cuda/case.h"
#include "tests/fake_cuda/fake_cuda.h"

#include <cuda_runtime_api.h>
#include <unistd.h>

/* kernels/cuda/cuda_int.h */
extern int64_t dt_cuda_patience_ns;

static struct dt_device *gpu;
static void *memory;

enum { MOST_PUTS = 64 }; /* more than there are slots of pinned memory */

/* The second kernel of the device hangs: the first wakes it up. */
static void begin(void)
{
    dt_fake_cuda_set("devices=1:delay=0:poison=64k:fault=launch,at=2,do=hang");
    gpu = gpu_open();
    assert_non_null(gpu);
    assert_int_equal(gpu->compute->memory.alloc(gpu, 1 << 16, &memory), DT_OK);
    for (int i = 0; i < 2; i++)
        gpu->compute->rows.narrow(gpu, DT_BFLOAT16, memory, (char *)memory + 4096, 64);
}

/* The exchange waits for the device, and the end of its comm does not. */
static void an_exchange_is_left(void)
{
    struct dt_comm *self = NULL, *comm = NULL;
    struct dt_request request = {.bytes = 0};
    assert_int_equal(dt_comm_self(&self), DT_OK);
    assert_int_equal(dt_comm_nccl(self, gpu, &comm), DT_OK);
    assert_int_equal(dt_comm_alltoall(comm, memory, (char *)memory + 4096, 64, &request), DT_OK);
    dt_comm_free(comm);
    assert_int_equal(cudaGetLastError(), cudaSuccess);
}

/* In one go, as a fake GPU that hangs does so to the end of the process. */
static void every_wait_gives_up(void **state)
{
    static char bytes[1 << 16];
    dt_status status = DT_OK;
    (void)state;
    begin();
    for (int i = 0; i < MOST_PUTS && status == DT_OK; i++)
        status = gpu->compute->memory.put(gpu, memory, bytes, sizeof bytes);
    assert_int_equal(status, DT_ETIMEOUT);
    assert_int_equal(cudaGetLastError(),
                     cudaSuccess); /* the next launch would report it as its own */
    for (int i = 0; i < 2; i++) {
        assert_int_equal(gpu->compute->memory.get(gpu, bytes, memory, 16), DT_ETIMEOUT);
        assert_non_null(strstr(dt_message(), "has not finished yet what was queued"));
    }
    an_exchange_is_left();
    gpu->compute->memory.release(gpu, memory);
    assert_true(dt_fake_cuda_blocks(0) > 0); /* freeing it would wait for ever */
    gpu->compute->close(gpu);
    assert_string_equal(dt_fake_cuda_complaint(), "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_wait_gives_up),
    };
    dt_cuda_patience_ns = 20000000;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    fflush(NULL);
    _exit(failed); /* what the device holds is left to the end of the process: no leak */
}
