/* SPDX-License-Identifier: MIT */
/* The command line: every kind of value against hand-computed fields, every row against the help;
 * the sentences of bad input have a table of their own (tests/cli/bad_input.py). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tuner/cli/options_int.h"

#include <stdio.h>
#include <string.h>

#define WORDS 16

/* Parses "a b c"; words may not hold blanks. */
static dt_status parse(const char *line, struct dt_options *options,
                       const struct dt_command **command)
{
    static char text[512];
    static const char *argv[WORDS + 1];
    int argc = 0;
    snprintf(text, sizeof text, "dittune %s", line);
    for (char *word = strtok(text, " "); word != NULL && argc < WORDS; word = strtok(NULL, " "))
        argv[argc++] = word;
    argv[argc] = NULL;
    return dt_options_parse(argc, argv, options, command);
}

static struct dt_options good(const char *line)
{
    struct dt_options options;
    const struct dt_command *command;
    assert_int_equal(parse(line, &options, &command), DT_OK);
    return options;
}

static void reads_times_and_sizes(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t ns;
    } times[] = {{"90s", 90000000000}, {"2m", 120000000000}, {"1.5h", 5400000000000},
                 {"500ms", 500000000}, {".5s", 500000000},   {"2h", 7200000000000}};
    static const struct {
        const char *text;
        int64_t bytes;
    } sizes[] = {{"800MiB", 838860800}, {"16GB", 16000000000}, {"2GiB", 2147483648}, {"1B", 1},
                 {"1.5KiB", 1536},      {"3MB", 3000000}};
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        char line[64];
        snprintf(line, sizeof line, "--budget %s", times[i].text);
        assert_int_equal(good(line).job.budget_ns, times[i].ns);
    }
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        char line[64];
        snprintf(line, sizeof line, "run --max-bytes=%s", sizes[i].text);
        assert_int_equal(good(line).job.max_bytes, sizes[i].bytes);
    }
}

static void reads_lists_and_counts(void **state)
{
    (void)state;
    struct dt_options options = good("--size 256,512 --batch 1,2,4,8 --devices 1..6 --seed 42");
    assert_int_equal(options.job.sizes.count, 2);
    assert_int_equal(options.job.sizes.widths[1], 512);
    assert_int_equal(options.job.batches.count, 4);
    assert_int_equal(options.job.batches.values[3], 8);
    assert_int_equal(options.job.devices, 6);
    assert_int_equal(options.job.seed, 42);
    assert_int_equal(good("--devices 3").job.devices, 3);
    options = good("run --sweep batch=1,16");
    assert_int_equal(options.run.sweep.values.count, 2);
    assert_int_equal(options.run.sweep.values.values[1], 16);
    assert_false(options.run.sweep.ranks);
    options = good("run --sweep ranks=1,2,3");
    assert_int_equal(options.run.sweep.values.count, 3);
    assert_true(options.run.sweep.ranks);
}

static void fills_defaults(void **state)
{
    (void)state;
    struct dt_options options = good("");
    assert_string_equal(options.job.model, "dit-s/2");
    assert_string_equal(options.job.objective, "latency");
    assert_int_equal(options.job.batches.count, 0);
    assert_null(options.session.against);
    assert_false(options.print.json);
}

static void finds_commands_and_words(void **state)
{
    (void)state;
    struct dt_options options;
    const struct dt_command *command;
    for (int i = 0; i < dt_command_count; i++) {
        char line[128];
        snprintf(line, sizeof line, "%s%s", dt_commands[i].name,
                 dt_commands[i].words_min > 0 ? " word" : "");
        assert_int_equal(parse(line, &options, &command), DT_OK);
        assert_ptr_equal(command, &dt_commands[i]);
        assert_int_equal(options.words.rest_count, dt_commands[i].words_min);
    }
    assert_int_equal(parse("explain ranks=2 --devices 4 ulysses=2", &options, &command), DT_OK);
    assert_int_equal(options.words.rest_count, 2);
    assert_string_equal(options.words.rest[1], "ulysses=2");
    assert_int_equal(options.job.devices, 4);
}

static void refuses_bad_lines(void **state)
{
    (void)state;
    static const char *const lines[] = {"--budget",
                                        "--budget 0s",
                                        "--budget 2x",
                                        "--budget nan",
                                        "--devices 0",
                                        "--devices 2..4",
                                        "--devices 1..",
                                        "--batch 1,,2",
                                        "--batch 1,1",
                                        "--batch 0",
                                        "--seed -1",
                                        "--seed 1.5",
                                        "tunes",
                                        "run extra",
                                        "explain",
                                        "--plan x",
                                        "run --budget 2m",
                                        "--json=yes",
                                        "-z",
                                        "--size 256x",
                                        "run --sweep tile=1",
                                        "--seed 99999999999999999999",
                                        "--model="};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        struct dt_options options;
        const struct dt_command *command;
        dt_status status = parse(lines[i], &options, &command);
        if (status != DT_EUSAGE)
            fail_msg("'%s' gives %d", lines[i], (int)status);
    }
}

/* An option may have a row a command, as its words differ. */
static int rows_taken(const struct dt_command *command, const char *name)
{
    int taken = 0;
    for (int k = 0; k < dt_option_row_count; k++)
        taken += strcmp(dt_option_rows[k].name, name) == 0 &&
                 dt_option_taken(command, &dt_option_rows[k]);
    return taken;
}

static int times_in(const char *text, const char *what)
{
    int times = 0;
    for (const char *at = text; (at = strstr(at, what)) != NULL; at += strlen(what))
        times++;
    return times;
}

/* Help and docs/cli.md come from the rows: each option stands under each of its commands, once. */
static void test_help_has_every_row(void **state)
{
    (void)state;
    for (int i = 0; i < dt_command_count; i++)
        for (int markdown = 0; markdown < 2; markdown++) {
            struct dt_text text = {0};
            dt_options_help(&dt_commands[i], markdown, &text);
            for (int k = 0; k < dt_option_row_count; k++) {
                char name[64];
                const struct dt_option_row *row = &dt_option_rows[k];
                snprintf(name, sizeof name, "%s--%s%s", markdown ? "`" : "\n  ", row->name,
                         row->hint != NULL ? " "
                         : markdown        ? "`"
                                           : " ");
                int taken = rows_taken(&dt_commands[i], row->name);
                assert_in_range(taken, 0, 1);
                assert_int_equal(times_in(dt_text_at(&text), name), taken);
            }
            dt_text_fini(&text);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_times_and_sizes), cmocka_unit_test(reads_lists_and_counts),
        cmocka_unit_test(fills_defaults),        cmocka_unit_test(finds_commands_and_words),
        cmocka_unit_test(refuses_bad_lines),     cmocka_unit_test(test_help_has_every_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
