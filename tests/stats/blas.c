/* SPDX-License-Identifier: MIT */
/* Debian's libgsl needs some library of cblas, and its own reference one is the slow default: GSL must run on OpenBLAS. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/stats/noise.h"

#include <dlfcn.h>
#include <gsl/gsl_blas.h>
#include <gsl/gsl_linalg.h>
#include <string.h>

/* What the dynamic linker gives to libgsl, which calls cblas by name. */
static void gsl_runs_on_openblas(void **state)
{
    (void)state;
    static const char *const names[] = {"cblas_dgemm", "cblas_dsyrk", "cblas_dtrsm", "cblas_ddot"};
    for (int i = 0; i < LENGTH(names); i++) {
        Dl_info info = {0};
        void *found = dlsym(RTLD_DEFAULT, names[i]);
        assert_non_null(found);
        assert_true(dladdr(found, &info) != 0);
        assert_non_null(info.dli_fname);
        if (strstr(info.dli_fname, "openblas") == NULL)
            fail_msg("%s is that of %s", names[i], info.dli_fname);
    }
}

static gsl_matrix *filled(size_t rows, size_t columns, struct dt_rng *rng)
{
    gsl_matrix *matrix = gsl_matrix_alloc(rows, columns);
    assert_non_null(matrix);
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < columns; j++)
            gsl_matrix_set(matrix, i, j, dt_rng_normal(rng));
    return matrix;
}

static void products_are_right(void **state)
{
    (void)state;
    struct dt_rng rng = dt_rng_at(71, "blas");
    gsl_matrix *a = filled(37, 53, &rng), *b = filled(53, 29, &rng), *c = filled(37, 29, &rng);
    gsl_matrix *before = gsl_matrix_alloc(37, 29);
    assert_non_null(before);
    gsl_matrix_memcpy(before, c);
    assert_int_equal(gsl_blas_dgemm(CblasNoTrans, CblasNoTrans, 2, a, b, -0.5, c), 0);
    for (size_t i = 0; i < 37; i++)
        for (size_t j = 0; j < 29; j++) {
            double sum = 0;
            for (size_t k = 0; k < 53; k++)
                sum += gsl_matrix_get(a, i, k) * gsl_matrix_get(b, k, j);
            assert_near(gsl_matrix_get(c, i, j), 2 * sum - 0.5 * gsl_matrix_get(before, i, j),
                        1e-10);
        }
    gsl_matrix_free(a);
    gsl_matrix_free(b);
    gsl_matrix_free(c);
    gsl_matrix_free(before);
}

/* L L' is the matrix that was decomposed: the way the models of the search go. */
static void a_decomposition_is_right(void **state)
{
    (void)state;
    struct dt_rng rng = dt_rng_at(72, "cholesky");
    gsl_matrix *a = filled(60, 60, &rng), *spd = gsl_matrix_alloc(60, 60);
    assert_non_null(spd);
    gsl_matrix_set_identity(spd);
    gsl_blas_dgemm(CblasNoTrans, CblasTrans, 1, a, a, 1, spd);
    gsl_matrix_memcpy(a, spd);
    assert_int_equal(gsl_linalg_cholesky_decomp1(a), 0);
    for (size_t i = 0; i < 60; i++)
        for (size_t j = 0; j <= i; j++) {
            double sum = 0;
            for (size_t k = 0; k <= j; k++)
                sum += gsl_matrix_get(a, i, k) * gsl_matrix_get(a, j, k);
            assert_near(sum, gsl_matrix_get(spd, i, j), 1e-9);
        }
    gsl_matrix_free(a);
    gsl_matrix_free(spd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gsl_runs_on_openblas),
        cmocka_unit_test(products_are_right),
        cmocka_unit_test(a_decomposition_is_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
