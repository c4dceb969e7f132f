/* SPDX-License-Identifier: MIT */
/* ctest: */
/* Chains, decimals, quotients and powers in rules: values known from arithmetic. What Python says
 * of random rules: tests/cli/space_python.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "space/expr/decimal.h"
#include "space/expr/expr.h"

#include <string.h>

static const char *const names[] = {"a", "b", "mem", "gpu-mem", "fp.8"};
static const int digits[] = {0, 0, 2, 1, 0}; /* mem = 0.85, gpu-mem = 0.1 */
static const int64_t values[] = {2, -7, 85, 1, 8};

static dt_status eval(const char *text, bool python, int64_t *result)
{
    struct dt_expr *expr = NULL;
    const struct dt_vocabulary words = {
        .names = names, .count = 5, .digits = digits, .python = python};
    dt_status status = dt_expr_new_of(text, &words, &expr);
    if (status == DT_OK)
        status = dt_expr_eval(expr, values, result);
    dt_expr_free(expr);
    return status;
}

static const struct {
    const char *text;
    int64_t ours, python; /* -1: refused, or no value */
} rows[] = {
    {"1 <= a <= 3", 1, 1},
    {"3 <= a <= 1", 0, 0},
    {"32 <= a * 16 <= 1024", 1, 1},
    {"a > b > 0", 0, 0},
    {"(a > b) > 0", 1, 1},
    {"1 < a == 2", 1, 1},
    {"3 > a == 1", 0, 0},
    {"a == 2 == 1", 0, 0},
    {"1 < a < 3 < 2", 0, 0},
    {"1 < 2 < 3 < 4 < 5", 1, 1},
    {"1 < a in (2, 3)", 1, 1},
    {"a not in (1, 3)", 1, 1},
    {"a in [2]", 1, 1},
    {"a in (2,)", 1, 1},
    {"a in (2) == 1", -1, -1},
    {"not a == 3 and b < 0", 1, 1},
    {"not (a == 2 or b == 0)", 0, 0},
    {"a == 2 or 1 / 0 == 1", 1, 1},
    {"1 / 0 == 1 or a == 2", -1, -1},
    {"a == 2 && b == 0 or a == 2", 1, -1},
    {"!(a == 3)", 1, -1},
    {"b / 2 == -3", 1, 0},
    {"b / 2 == -3.5", 0, 1},
    {"b // 2 == -4", 1, 1},
    {"b % 4 == -3", 1, 0},
    {"b % 4 == 1", 0, 1},
    {"a ** 10 == 1024", 1, 1},
    {"-a ** 2 == -4", 1, 1},
    {"2 ** 3 ** 2 == 512", 1, 1},
    {"2 ** -1 == 0.5", 1, 1},
    {"9 ** 0.5 == 3", 1, 1},
    {"2 ** 0.3 > 1", -1, -1},
    {"0 ** -1 == 0", -1, -1},
    {"2 ** 70 > 2 ** 69", 1, 1},
    {"mem == 0.85", 1, 1},
    {"0.8 < mem < 0.9", 1, 1},
    {"mem in (0.8, 0.85)", 1, 1},
    {"mem / 2 < 0.43", 1, 1},
    {"gpu-mem * 3 == 0.3", 1, 0},
    {"gpu-mem + 0.2 == 0.3", 1, 0},
    {"gpu-mem * 3 <= 0.3", 1, 0},
    {"0.3 % gpu-mem == 0", 1, 0},
    {"0.3 // gpu-mem == 3", 1, 0},
    {"mem % 0.25 < 0.1001", 1, 1},
    {"fp.8-a == 6", 1, 1},
    {"min(a, mem, 3) == 0.85", 1, 1},
    {"max(a, mem) == 2", 1, 1},
    {"true", 1, -1},
    {"True == (a == 2)", 1, 1},
    {"a == 2 == true", 0, -1},
    {"(a and b) == -7", 0, -1},
    {"(a == 2 and b == -7) + 1 == 2", 1, 1},
    {"1.5e1 == 15 and .5 < 1", 1, 1},
    {"9007199254740993 > 9007199254740992.0", 0, 1},
    {"abs(b) == 7", 1, 1},
    {"abs(-1.5) == 1.5 and abs(a - 5) == 3", 1, 1},
    {"a in range(3)", 1, 1},
    {"a in range(2)", 0, 0},
    {"b in range(-7, 2, 2) and b not in range(-8, 2, 2)", 1, 1},
    {"a / 4 in range(3)", 1, 0},
    {"1 < a in range(a + 1)", 1, 1},
    {"a in range(0, 9, 0)", -1, -1},
    {"max([a, b]) == 2", 1, 1},
    {"a in {1, 2}", -1, 1},
    {"len(a) == 1", -1, -1},
    {"a if b else 1", -1, -1},
    {"a is 2", -1, -1},
    {"a & 1", -1, -1},
    {"a < b or", -1, -1},
    {"a + not b", -1, -1},
    {"1.2.3 > a", -1, -1},
    {"gpu-men < 1", -1, -1},
};

static void rules_have_their_value(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (int python = 0; python < 2; python++) {
            int64_t result = -1, want = python ? rows[i].python : rows[i].ours;
            if (eval(rows[i].text, python, &result) != DT_OK)
                result = -1;
            if (result != want)
                fail_msg("%s (python %d): %lld, expected %lld; %s", rows[i].text, python,
                         (long long)result, (long long)want, dt_message());
        }
}

static void mistakes_name_what_would_work(void **state)
{
    static const struct {
        const char *text, *says;
    } wrong[] = {
        {"gpu-men < 1",
         "column 1: unknown name 'gpu-men', did you mean 'gpu-mem'? It is written so, "
         "without quotes; a '-' between blanks is a minus"},
        {"a + gpu_mem < 1", "column 5: unknown name 'gpu_mem', did you mean 'gpu-mem'?"},
        {"gpu - mem2 < 1", "unknown name 'gpu', did you mean 'gpu-mem'?"},
        {"gpu < 1", "unknown name 'gpu', did you mean 'gpu-mem'?"},
        {"a-gpu.mem < 1", "did you mean 'gpu-mem'?"},
        {"fp.9 < 1", "unknown name 'fp.9', did you mean 'fp.8'?"},
        {"mem.max < 1", "unknown name 'mem.max'"},
        {"no-such-name < 1", "unknown name 'no' in 'no-such-name'"},
        {"math.ceil(a) == 1",
         "'math.ceil' is no function of rules, which have min, max, abs and 'in range'; "
         "write -(-a // b)"},
        {"a & 1", "'&' is not read in rules; they have + - * / // % **, comparisons, in"},
        {"a in (2) == 1", "put (.. in (..)) in parentheses"},
        {"2 ** mem > 1", "the exponent of ** is a whole number, or written as a half"},
        {"(a and b) == 2", "the value of 'and' or 'or' is used as a number"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        int64_t result;
        assert_int_equal(eval(wrong[i].text, true, &result), DT_EUSAGE);
        if (strstr(dt_message(), wrong[i].says) == NULL)
            fail_msg("%s says %s", wrong[i].text, dt_message());
    }
}

/* A name that is also a difference of two names is not guessed. */
static void a_name_and_a_difference_are_not_confused(void **state)
{
    static const char *const both[] = {"x", "y", "x-y"};
    struct dt_expr *expr = NULL;
    int64_t result = 0;
    (void)state;
    assert_int_equal(dt_expr_new("x-y > 0", both, 3, &expr), DT_EUSAGE);
    assert_non_null(strstr(dt_message(), "put blanks beside the '-'"));
    assert_int_equal(dt_expr_new("x - y > 0", both, 3, &expr), DT_OK);
    assert_int_equal(dt_expr_eval(expr, (const int64_t[]){3, 1, -9}, &result), DT_OK);
    assert_int_equal(result, 1);
    dt_expr_free(expr);
}

static void decimals_are_exact(void **state)
{
    static const struct {
        const char *text, *written;
        int64_t value;
        int digits;
    } numbers[] = {{"0.85", "0.85", 85, 2},
                   {"-0.50", "-0.5", -5, 1},
                   {"1.5e-3", "0.0015", 15, 4},
                   {"12", "12", 12, 0},
                   {"1e3", "1000", 1000, 0},
                   {".25", "0.25", 25, 2},
                   {"-0.0", "0", 0, 0},
                   {"100.0", "100", 100, 0},
                   {"9223372036854775807", "9223372036854775807", INT64_MAX, 0},
                   {"-9223372036854775808", "-9223372036854775808", INT64_MIN, 0},
                   {"0.000000000001", "0.000000000001", 1, 12}};
    (void)state;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        struct dt_decimal decimal;
        struct dt_text text = {0};
        size_t size;
        assert_true(dt_decimal_read(numbers[i].text, &decimal, &size));
        assert_int_equal(size, strlen(numbers[i].text));
        assert_int_equal(decimal.value, numbers[i].value);
        assert_int_equal(decimal.digits, numbers[i].digits);
        dt_decimal_add(decimal.value, decimal.digits, &text);
        assert_string_equal(dt_text_at(&text), numbers[i].written);
        dt_text_fini(&text);
    }
    static const char *const too_large[] = {"9223372036854775808", "-9223372036854775809",
                                            "-922337203685477580.9e1", "0.0000000000001"};
    for (size_t i = 0; i < sizeof too_large / sizeof too_large[0]; i++) {
        struct dt_decimal decimal;
        size_t size;
        assert_false(dt_decimal_read(too_large[i], &decimal, &size));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_have_their_value),
        cmocka_unit_test(mistakes_name_what_would_work),
        cmocka_unit_test(a_name_and_a_difference_are_not_confused),
        cmocka_unit_test(decimals_are_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
