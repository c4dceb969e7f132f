/* SPDX-License-Identifier: MIT */
/* ctest: dose */
/* Rules against two other evaluators: the C compiler, on expressions written once for both, and a
 * walk over random trees in 128-bit arithmetic. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "space/expr/expr.h"
#include "tests/lib/dose.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#pragma GCC diagnostic ignored "-Wparentheses"

static const char *const names[] = {"a", "b", "c", "heads", "ulysses"};
enum { NAMES = sizeof names / sizeof names[0] };

static dt_status eval(const char *text, const int64_t values[], int64_t *result)
{
    struct dt_expr *expr = NULL;
    dt_status status = dt_expr_new(text, names, NAMES, &expr);
    if (status == DT_OK)
        status = dt_expr_eval(expr, values, result);
    dt_expr_free(expr);
    return status;
}

static int64_t min(int64_t x, int64_t y)
{
    return x < y ? x : y;
}

static int64_t max(int64_t x, int64_t y)
{
    return x > y ? x : y;
}

#define SAME(expression)                                                                           \
    do {                                                                                           \
        int64_t result = 0;                                                                        \
        assert_int_equal(eval(#expression, values, &result), DT_OK);                               \
        assert_true(result == (int64_t)(expression));                                              \
    } while (0)

/* The compiler reads the same text; what it would write otherwise is what is compared. */
#pragma GCC diagnostic ignored "-Wlogical-not-parentheses"

static void compare_with_c(int64_t a, int64_t b, int64_t c)
{
    const int64_t values[] = {a, b, c, 6, 4}, heads = 6, ulysses = 4;
    SAME(a + b * c);
    SAME(a - b - c);
    SAME(a * b % 7);
    SAME(a % 5 * b);
    SAME(-a * -b);
    SAME(- -a - -b);
    SAME(!a + !!b);
    SAME(!a == b);
    SAME((a < b) == (b < c));
    SAME((a <= b) != (c >= b));
    SAME(a || b && c);
    SAME(a && b || c);
    SAME(a == 1 || b == 2 && c != 3);
    SAME((a + b) * (c - 1) / 3);
    SAME(a / 3 * 3 + a % 3);
    SAME(-7 / 2 + a);
    SAME(-7 % 3 + a);
    SAME(min(a, b) + max(b, c));
    SAME(min(max(a, b), min(b + 1, c * 2)));
    SAME((a > b) > c);
    SAME(heads % ulysses == 0);
    SAME(ulysses == 0 || heads % ulysses == 2);
    SAME(a == 0 || 100 / a < 50);
    SAME(b != 0 && 100 % b > 1);
    SAME(a - (b - c) == a - b + c);
    SAME(9223372036854775807 - 0 * a);
}

static void values_are_those_of_c(void **state)
{
    (void)state;
    for (int64_t a = -3; a <= 3; a++)
        for (int64_t b = -3; b <= 3; b++)
            for (int64_t c = -3; c <= 3; c++)
                compare_with_c(a, b, c);
}

static void in_tests_membership(void **state)
{
    static const struct {
        const char *text;
        int64_t expected;
    } rows[] = {
        {"a in (1, 2, 4)", 1},      {"b in (1, 2, 4)", 0},
        {"a + b in (8)", 0},        {"a + b in (8, 9)", 1},
        {"!(b in (1, 2))", 1},      {"a in (1, 2) && b in (7)", 1},
        {"a in (b - 5, heads)", 1}, {"(1 + a in (3)) == 1", 1},
        {"1 == (a in (-2, 2))", 1}, {"a in(2)", 1},
        {"(b in (7)) in (1)", 1},   {"0 in (1) || a in (2)", 1},
    };
    const int64_t values[] = {2, 7, 0, 6, 4};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int64_t result = -1;
        assert_int_equal(eval(rows[i].text, values, &result), DT_OK);
        assert_int_equal(result, rows[i].expected);
    }
}

static void test_edges_of_64_bits(void **state)
{
    static const struct {
        const char *text, *sentence; /* NULL: fine */
    } rows[] = {
        {"a / b", "rule 'a / b', column 3: the result does not fit 64 bits"},
        {"a % b", "rule 'a % b', column 3: the result does not fit 64 bits"},
        {"-a", "rule '-a', column 1: the result does not fit 64 bits"},
        {"a - 1", "rule 'a - 1', column 3: the result does not fit 64 bits"},
        {"a + b", "rule 'a + b', column 3: the result does not fit 64 bits"},
        {"a * 2", "rule 'a * 2', column 3: the result does not fit 64 bits"},
        {"a / c", "rule 'a / c', column 3: division by zero"},
        {"b  % c", "rule 'b  % c', column 4: division by zero"},
        {"c == 0 || b / c > 0", NULL},
        {"c != 0 && b / c > 0", NULL},
        {"a == -9223372036854775807 - 1", NULL},
        {"a / 1 + 0 * b", NULL},
    };
    const int64_t values[] = {INT64_MIN, -1, 0, 6, 4};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int64_t result = 77;
        dt_status status = eval(rows[i].text, values, &result);
        assert_int_equal(status, rows[i].sentence == NULL ? DT_OK : DT_EUSAGE);
        if (rows[i].sentence != NULL) {
            assert_string_equal(dt_message(), rows[i].sentence);
            assert_int_equal(result, 77);
        }
    }
}

static void test_mistakes_name_their_column(void **state)
{
    static const struct {
        const char *text, *sentence;
    } rows[] = {
        {"heads % ulises == 0",
         "rule 'heads % ulises == 0', column 9: unknown name 'ulises', did you mean 'ulysses'?"},
        {"zzzzzzzzz", "rule 'zzzzzzzzz', column 1: unknown name 'zzzzzzzzz'"},
        {"", "rule '', column 1: the rule ends where a value is expected"},
        {"   ", "rule '   ', column 4: the rule ends where a value is expected"},
        {"a +", "rule 'a +', column 4: the rule ends where a value is expected"},
        {"a b", "rule 'a b', column 3: found 'b' where an operator or the end is expected"},
        {"(a", "rule '(a', column 3: the rule ends where ')' is expected"},
        {"a)", "rule 'a)', column 2: found ')' where an operator or the end is expected"},
        {"1x", "rule '1x', column 1: '1x' is not an integer"},
        {"010", "rule '010', column 1: 010 begins with a zero, numbers are decimal here"},
        {"9223372036854775808",
         "rule '9223372036854775808', column 1: 9223372036854775808 is larger "
         "than the largest integer, 9223372036854775807"},
        {"a = 1", "rule 'a = 1', column 3: '=' is not read in rules; they have + - * / // % **, "
                  "comparisons, in, && || !, min, max, abs and range"},
        {"a & b", "rule 'a & b', column 3: '&' is not read in rules; they have + - * / // % **, "
                  "comparisons, in, && || !, min, max, abs and range"},
        {"a in ()", "rule 'a in ()', column 7: found ')' where a value is expected"},
        {"a in 1",
         "rule 'a in 1', column 6: found '1' where '(' and the values after 'in' is expected"},
        {"min(1)", "rule 'min(1)', column 6: found ')' where ',' and a second value is expected"},
        {"max", "rule 'max', column 4: the rule ends where '(' is expected"},
        {"in", "rule 'in', column 1: found 'in' where a value is expected"},
        {"a\001b", "rule 'a?b', column 2: found '?' where an operator or the end is expected"},
    };
    const int64_t values[NAMES] = {0};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int64_t result;
        assert_int_equal(eval(rows[i].text, values, &result), DT_EUSAGE);
        assert_string_equal(dt_message(), rows[i].sentence);
    }
}

static char *repeat(const char *piece, int n, const char *end)
{
    struct dt_text text = {0};
    for (int i = 0; i < n; i++)
        dt_text_add(&text, "%s", piece);
    dt_text_add(&text, "%s", end);
    return dt_text_take(&text);
}

static void hostile_text_is_refused(void **state)
{
    static const struct {
        const char *piece;
        int n;
        const char *end;
        dt_status expected;
    } rows[] = {
        {"(", 100000, "", DT_EUSAGE}, {"(", 4000, "", DT_EUSAGE},    {"-", 4000, "a", DT_EUSAGE},
        {"!", 4000, "a", DT_EUSAGE},  {"min(", 1000, "", DT_EUSAGE}, {"a in (", 600, "", DT_EUSAGE},
        {"a+", 2000, "a", DT_EUSAGE}, {"a+", 255, "a", DT_OK},       {"a+", 256, "a", DT_EUSAGE},
        {"-", 32, "a", DT_OK},        {"-", 33, "a", DT_EUSAGE},     {"!(", 1000, "", DT_EUSAGE},
        {"a&&", 170, "a", DT_OK},     {"a||", 1000, "a", DT_EUSAGE}, {" ", 4095, "a", DT_OK},
        {" ", 4096, "a", DT_EUSAGE},  {"1", 4000, "", DT_EUSAGE},    {"x", 4000, "", DT_EUSAGE},
    };
    const int64_t values[NAMES] = {0};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char *text = repeat(rows[i].piece, rows[i].n, rows[i].end);
        int64_t result;
        assert_int_equal(eval(text, values, &result), rows[i].expected);
        free(text);
    }
}

/* Random strings of the language's own pieces: no crash, and a message for each that is refused. */
static void random_text_is_refused_or_read(void **state)
{
    static const char *const pieces[] = {"a",   "b", "heads", "(", ")",  "+",  "-", "*",
                                         "/",   "%", "==",    "<", "&&", "||", "!", "in",
                                         "min", ",", "7",     "0", " ",  "="};
    struct dt_rng rng = dt_rng_at(dose_seed("texts", 11), "expr text");
    (void)state;
    for (int i = 0; i < 30000; i++) {
        const int64_t values[NAMES] = {1, 0, -1, 6, INT64_MAX};
        char text[128] = "";
        int64_t result;
        for (uint64_t n = dt_rng_below(&rng, 12); n > 0; n--)
            strcat(text, pieces[dt_rng_below(&rng, sizeof pieces / sizeof pieces[0])]);
        dt_status status = eval(text, values, &result);
        assert_true(status == DT_OK || status == DT_EUSAGE);
    }
}

/* A random tree: printed into text with parentheses only where they are needed (or by
 * chance), and walked. */
struct tree {
    struct dt_rng rng;
    const int64_t *values;
    bool undefined;
};

static const struct {
    const char *text;
    int rank;
} binary[] = {{"||", 1}, {"&&", 2}, {"==", 4}, {"!=", 4}, {"<", 4}, {"<=", 4}, {">", 4},
              {">=", 4}, {"+", 5},  {"-", 5},  {"*", 6},  {"/", 6}, {"%", 6}};

/* Holds every product of two values. */
__extension__ typedef __int128 wide;

static wide apply(struct tree *tree, int op, wide x, wide y)
{
    switch (op) {
    case 2:
        return x == y;
    case 3:
        return x != y;
    case 4:
        return x < y;
    case 5:
        return x <= y;
    case 6:
        return x > y;
    case 7:
        return x >= y;
    case 8:
        return x + y;
    case 9:
        return x - y;
    case 10:
        return x * y;
    default:
        if (y == 0) {
            tree->undefined = true;
            return 0;
        }
        /* The language gives up on INT64_MIN % -1 as C does. */
        tree->undefined = tree->undefined || (x == INT64_MIN && y == -1);
        return op == 11 ? x / y : x % y;
    }
}

static int64_t fit(struct tree *tree, wide x)
{
    if (x < INT64_MIN || x > INT64_MAX) {
        tree->undefined = true;
        return 0;
    }
    return (int64_t)x;
}

static int64_t grow(struct tree *tree, int depth, int rank, bool live, struct dt_text *out);

static int64_t grow_leaf(struct tree *tree, struct dt_text *out)
{
    if (dt_rng_below(&tree->rng, 2) == 0) {
        int64_t number = (int64_t)dt_rng_below(&tree->rng, 5);
        dt_text_add(out, "%lld", (long long)number);
        return number;
    }
    uint64_t name = dt_rng_below(&tree->rng, NAMES);
    dt_text_add(out, "%s", names[name]);
    return tree->values[name];
}

static int64_t grow_unary(struct tree *tree, int depth, bool live, struct dt_text *out)
{
    bool negate = dt_rng_below(&tree->rng, 2) == 0;
    dt_text_add(out, negate ? "-" : "!");
    int64_t value = grow(tree, depth - 1, 7, live, out);
    return negate ? (live ? fit(tree, -(wide)value) : 0) : value == 0;
}

static int64_t grow_binary(struct tree *tree, int depth, int rank, bool live, struct dt_text *out)
{
    int op = (int)dt_rng_below(&tree->rng, sizeof binary / sizeof binary[0]);
    bool parentheses = binary[op].rank < rank || dt_rng_below(&tree->rng, 4) == 0;
    dt_text_add(out, parentheses ? "(" : "");
    /* The left side of a comparison is none: that were a chain. */
    int64_t x = grow(tree, depth - 1, binary[op].rank + (binary[op].rank == 4), live, out);
    dt_text_add(out, " %s ", binary[op].text);
    bool decided = op < 2 && (x != 0) == (op == 0);
    int64_t y = grow(tree, depth - 1, binary[op].rank + 1, live && !decided, out);
    dt_text_add(out, parentheses ? ")" : "");
    if (op < 2)
        return decided ? op == 0 : y != 0;
    return live ? fit(tree, apply(tree, op, x, y)) : 0;
}

static int64_t grow(struct tree *tree, int depth, int rank, bool live, struct dt_text *out)
{
    uint64_t kind = depth == 0 ? 0 : dt_rng_below(&tree->rng, 8);
    if (kind == 0)
        return grow_leaf(tree, out);
    if (kind == 1)
        return grow_unary(tree, depth, live, out);
    return grow_binary(tree, depth, rank, live, out);
}

static void random_trees_match_their_value(void **state)
{
    const int64_t values[] = {3, -2, 0, INT64_MAX, INT64_MIN};
    struct tree tree = {.rng = dt_rng_at(dose_seed("trees", 5), "expr trees"), .values = values};
    int defined = 0;
    (void)state;
    for (int i = 0; i < 20000; i++) {
        struct dt_text text = {0};
        int64_t result = 0;
        tree.undefined = false;
        int64_t expected = grow(&tree, 4, 0, true, &text);
        dt_status status = eval(dt_text_at(&text), values, &result);
        assert_int_equal(status, tree.undefined ? DT_EUSAGE : DT_OK);
        if (!tree.undefined)
            assert_true(result == expected);
        defined += !tree.undefined;
        dt_text_fini(&text);
    }
    assert_in_range(defined, 5000, 19000);
}

static void lists_names_and_explains(void **state)
{
    static const struct {
        const char *text, *explained;
        uint64_t used;
    } rows[] = {
        {"heads % ulysses == 0", "heads=6 % (ulysses=4) == 0", 24},
        {"a in (1, b)", "a=1 in (1, (b=-2))", 3},
        {"min(a, b)>(c)", "min((a=1), (b=-2))>(c=3)", 7},
        {"1 == 1", "1 == 1", 0},
        {"a == 0 || heads/a > 1", "a=1 == 0 || (heads=6)/(a=1) > 1", 9},
    };
    const int64_t values[] = {1, -2, 3, 6, 4};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct dt_expr *expr = NULL;
        struct dt_text text = {0};
        assert_int_equal(dt_expr_new(rows[i].text, names, NAMES, &expr), DT_OK);
        assert_int_equal(dt_expr_names(expr).bits[0], rows[i].used);
        assert_string_equal(dt_expr_text(expr), rows[i].text);
        dt_expr_explain(expr, values, &text);
        assert_string_equal(dt_text_at(&text), rows[i].explained);
        dt_text_fini(&text);
        dt_expr_free(expr);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_those_of_c),
        cmocka_unit_test(in_tests_membership),
        cmocka_unit_test(test_edges_of_64_bits),
        cmocka_unit_test(test_mistakes_name_their_column),
        cmocka_unit_test(hostile_text_is_refused),
        cmocka_unit_test(random_text_is_refused_or_read),
        cmocka_unit_test(random_trees_match_their_value),
        cmocka_unit_test(lists_names_and_explains),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
