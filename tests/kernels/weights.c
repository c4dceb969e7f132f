/* SPDX-License-Identifier: MIT */
/* Weights from a file: what was written comes back, the table of positions is used
 * only where it belongs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/safetensors.h"
#include "kernels/weights_int.h"
#include "tests/kernels/case.h"
#include "tests/lib/path.h"

#include <unistd.h>

enum { MOST = 64 };

/* The seeded tensors of a workload under their names. */
struct made {
    struct dt_weights *seeded;
    float *values[MOST]; /* owned */
    struct dt_tensor about[MOST];
    struct dt_safetensor tensors[MOST];
    int count, position; /* position: of the table of positions */
};

static void make(struct made *made, const struct dt_workload *workload)
{
    *made = (struct made){.count = dt_tensor_count(&workload->network)};
    assert_true(made->count <= MOST);
    assert_int_equal(dt_weights_new(workload, case_device(), &made->seeded), DT_OK);
    for (int i = 0; i < made->count; i++) {
        struct dt_tensor *about = &made->about[i];
        dt_tensor_init(about, workload, i);
        if (about->kind == DT_TENSOR_POSITION)
            made->position = i;
        made->values[i] = calloc((size_t)about->size, sizeof(float));
        assert_non_null(made->values[i]);
        dt_weights_seeded(workload, i, made->values[i]);
        made->tensors[i] = (struct dt_safetensor){.name = about->name,
                                                  .dtype = "F32",
                                                  .rank = about->rank,
                                                  .data = made->values[i],
                                                  .bytes = about->size * (int64_t)sizeof(float)};
        memcpy(made->tensors[i].shape, about->shape, sizeof about->shape);
    }
}

static void forget(struct made *made)
{
    dt_weights_free(made->seeded);
    for (int i = 0; i < MOST; i++)
        free(made->values[i]);
}

static dt_status read_back(struct made *made, struct dt_workload workload, struct dt_weights **read)
{
    assert_int_equal(dt_safetensors_write(path, made->tensors, made->count), DT_OK);
    snprintf(workload.weights, sizeof workload.weights, "%s", path);
    return dt_weights_new(&workload, case_device(), read);
}

static void weights_come_back_from_a_file(void **state)
{
    (void)state;
    struct dt_workload workload = case_workload(2, 8, 8, 8);
    struct dt_weights *read = NULL;
    struct made made;
    make(&made, &workload);
    assert_int_equal(dt_weights_bytes(made.seeded), dt_workload_weight_bytes(&workload));
    for (int i = 0; i < made.count; i++)
        for (int64_t e = 0; e < made.about[i].size && i != made.position; e++)
            assert_true(made.values[i][e] != 0.0f);
    for (int without = 0; without < 2; without++) {
        if (without)
            made.tensors[made.position] = made.tensors[--made.count];
        assert_int_equal(read_back(&made, workload, &read), DT_OK);
        assert_memory_equal(dt_weights_at(read, 0, 0), dt_weights_at(made.seeded, 0, 0),
                            (size_t)dt_weights_bytes(made.seeded));
        dt_weights_free(read);
    }
    made.tensors[3].name = "t_embedder.mlp.0.bios";
    assert_int_equal(read_back(&made, workload, &read), DT_EUSAGE);
    assert_non_null(strstr(dt_message(), "t_embedder.mlp.0.bios"));
    forget(&made);
}

/* True when an input of height x width uses the table of `tokens` rows in the file of a network of
 * 8 x 8 pixels; false when it uses the formula. */
static bool table_is_used(int tokens, int height, int width)
{
    struct dt_workload workload = case_workload(2, 8, 8, 8);
    struct dt_weights *read = NULL, *formula = NULL;
    struct made made;
    float table[64 * 16];
    for (int i = 0; i < tokens * 16; i++)
        table[i] = (float)i;
    make(&made, &workload);
    struct dt_safetensor *position = &made.tensors[made.position];
    position->shape[1] = tokens;
    position->data = table;
    position->bytes = tokens * 16 * (int64_t)sizeof(float);
    workload.height = height;
    workload.width = width;
    assert_int_equal(dt_weights_new(&workload, case_device(), &formula), DT_OK);
    assert_int_equal(read_back(&made, workload, &read), DT_OK);
    size_t bytes = (size_t)dt_workload_tokens(&workload) * 16 * sizeof(float);
    const float *found = dt_weights_at(read, made.position, 0);
    bool used = memcmp(found, table, bytes) == 0;
    assert_true(used || memcmp(found, dt_weights_at(formula, made.position, 0), bytes) == 0);
    dt_weights_free(read);
    dt_weights_free(formula);
    forget(&made);
    return used;
}

static void positions_belong_to_their_grid(void **state)
{
    (void)state;
    assert_true(table_is_used(16, 8, 8));    /* the network's own */
    assert_false(table_is_used(16, 4, 16));  /* as many tokens, another grid */
    assert_false(table_is_used(16, 12, 12)); /* another size */
    assert_true(table_is_used(36, 12, 12));  /* the input's */
    assert_false(table_is_used(36, 8, 8));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_come_back_from_a_file),
        cmocka_unit_test(positions_belong_to_their_grid),
    };
    return cmocka_run_group_tests(tests, make_path, remove_path);
}
