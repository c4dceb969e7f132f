/* SPDX-License-Identifier: MIT */
/* Tables written by hand, of each kind, against what they say; the landscape that is recorded here;
 * noise against the variance of a mean; two tables that share some of their plans. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "search/landscape/landscape.h"
#include "tuner/session/replay.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DATA DT_SOURCE_DIR "/tests/simulate/data/"

static struct dt_landscape *open_table(const char *path)
{
    struct dt_landscape *landscape = NULL;
    if (dt_session_landscape(path, &landscape) != DT_OK)
        fail_msg("%s", dt_message());
    return landscape;
}

static const struct dt_entry *find(const struct dt_landscape *landscape, const char *key)
{
    for (int64_t k = 0; k < landscape->count; k++)
        if (strcmp(landscape->entries[k].key, key) == 0)
            return &landscape->entries[k];
    fail_msg("no plan %s", key);
    return NULL;
}

static void check_axis(const struct dt_landscape *landscape, const char *name, int count,
                       const int64_t values[])
{
    const struct dt_axis *axis =
        dt_space_axis(landscape->space, dt_space_find(landscape->space, name));
    assert_int_equal(axis->count, count);
    assert_memory_equal(axis->values, values, (size_t)count * sizeof *values);
}

static void reads_kernel_tuner_files(void **state)
{
    const int64_t blocks[] = {8, 16, 32}, ratios[] = {25, 50, 100}, bits[] = {0, 1};
    struct dt_landscape *table = open_table(DATA "cache.json");
    (void)state;
    assert_string_equal(table->title, "toy");
    assert_string_equal(table->device, "Test Device");
    assert_int_equal(table->count, 7);
    assert_int_equal(table->failed, 4);
    assert_true(table->optimum == 1.25 && table->slowest == 4 && table->seconds == 1e-3);
    check_axis(table, "block", 3, blocks);
    check_axis(table, "ratio", 3, ratios);
    check_axis(table, "fast", 2, bits);
    const struct dt_axis *layout = dt_space_axis(table->space, 2);
    assert_string_equal(layout->labels[0], "row_major");
    assert_string_equal(layout->labels[1], "tiled");
    const struct dt_entry *entry = find(table, "16,0.5,row major,True");
    assert_true(entry->value == 2 && fabs(entry->cost - 0.116) < 1e-15);
    assert_int_equal(entry->count, 2);
    assert_true(table->samples[entry->first] == 2.5 && table->samples[entry->first + 1] == 1.5);
    assert_int_equal(find(table, "32,1.0,tiled,True")->outcome, DT_TRIAL_INFEASIBLE);
    assert_int_equal(find(table, "32,1.0,tiled,False")->outcome, DT_TRIAL_FAILED);
    assert_int_equal(find(table, "8,1.0,tiled,False")->outcome, DT_TRIAL_FAILED);
    assert_true(isnan(find(table, "16,0.25,tiled,True")->value));
    assert_int_equal(table->start, -1);
    dt_landscape_free(table);
}

static void reads_t4_files(void **state)
{
    struct dt_landscape *table = open_table(DATA "t4.json");
    (void)state;
    assert_int_equal(table->count, 6);
    assert_int_equal(table->failed, 4);
    assert_true(fabs(find(table, "16,tiled")->cost - 0.0555) < 1e-15);
    assert_true(find(table, "8,tiled")->value == 3);
    assert_int_equal(find(table, "8,row")->outcome, DT_TRIAL_INFEASIBLE);
    assert_int_equal(find(table, "16,row")->outcome, DT_TRIAL_WRONG);
    assert_int_equal(find(table, "32,row")->outcome, DT_TRIAL_HUNG);
    assert_int_equal(find(table, "32,tiled")->outcome, DT_TRIAL_FAILED);
    dt_landscape_free(table);
}

/* Seconds of a step for an image: the median of the slowest rank's steps over the batch. The
 * interrupted trial has no value. */
static void reads_journals(void **state)
{
    struct dt_landscape *table = open_table(DATA "journal.jsonl");
    struct dt_trial trial;
    struct dt_point point;
    (void)state;
    assert_int_equal(table->count, 3);
    assert_int_equal(table->failed, 1);
    assert_true(fabs(find(table, "2,1,graph")->value - 4e-3) < 1e-12);
    assert_true(fabs(find(table, "1,2,eager")->value - 3e-3) < 1e-12);
    assert_int_equal(find(table, "4,2,eager")->outcome, DT_TRIAL_MEMORY);
    assert_int_equal(find(table, "4,2,eager")->peak_bytes, 5000);
    assert_true(fabs(find(table, "2,1,graph")->cost - 0.5) < 1e-12);
    assert_int_equal(dt_space_axis(table->space, 0)->role, DT_ROLE_RANKS);
    dt_space_at(table->space, table->start, &point);
    dt_landscape_trial(table, &point, &trial);
    assert_true(fabs(trial.value - 4e-3) < 1e-12 && trial.outcome == DT_TRIAL_OK);
    assert_string_equal(table->entries[table->start].key, "2,1,graph");
    dt_landscape_free(table);
}

/* The README beside it has these counts. */
static void shared_tables_have_the_known_counts(void **state)
{
    static const int measured[] = {0, 72, 168, 119, 438}, failed[] = {0, 0, 48, 25, 90};
    int here[2][5] = {{0}}, memory = 0;
    struct dt_landscape *table =
        open_table(DT_SOURCE_DIR "/tests/landscapes/dit_slice_cpu.jsonl.gz");
    int ranks = dt_space_find(table->space, "ranks");
    (void)state;
    assert_int_equal(table->count, 960);
    for (int64_t k = 0; k < table->count; k++) {
        struct dt_point point;
        dt_space_at(table->space, k, &point);
        here[isnan(table->entries[k].value)][dt_point_value(table->space, &point, ranks)]++;
        memory += table->entries[k].outcome == DT_TRIAL_MEMORY;
        assert_true(table->entries[k].count >= 3 || isnan(table->entries[k].value));
    }
    for (int r = 1; r <= 4; r++) {
        assert_int_equal(here[0][r], measured[r]);
        assert_int_equal(here[1][r], failed[r]);
    }
    assert_int_equal(memory, 5);
    assert_true(fabs(table->optimum - 5.823644e-3) < 1e-9);
    assert_true(table->start >= 0);
    dt_landscape_free(table);
}

/* A bootstrap mean of n repetitions has mean m and variance (sum of squares about m) / n^2. */
static void noisy_trials_are_bootstrap_means(void **state)
{
    enum { DRAWS = 20000 };
    struct dt_landscape *table = open_table(DATA "cache.json");
    struct dt_point point;
    struct dt_trial trial, again;
    double sum = 0, squares = 0;
    (void)state;
    int64_t k = find(table, "16,0.5,row major,True") - table->entries;
    dt_space_at(table->space, k, &point);
    for (uint64_t seed = 0; seed < DRAWS; seed++) {
        dt_landscape_trial_noisy(table, &point, seed, &trial);
        assert_true(trial.value == 1.5 || trial.value == 2 || trial.value == 2.5);
        /* two draws of 1.5 and 2.5: when they differ, the variance of their mean is 0.25, of
         * its logarithm 0.25 / 4 */
        assert_true(fabs(trial.variance - (trial.value == 2 ? 0.0625 : 0)) < 1e-12);
        sum += trial.value;
        squares += (trial.value - 2) * (trial.value - 2);
    }
    assert_true(fabs(sum / DRAWS - 2) < 5 * sqrt(0.125 / DRAWS));
    assert_true(fabs(squares / DRAWS - 0.125) < 5 * 0.125 / sqrt(DRAWS));
    dt_landscape_trial_noisy(table, &point, 7, &trial);
    dt_landscape_trial_noisy(table, &point, 7, &again);
    assert_true(trial.value == again.value);
    dt_landscape_free(table);
}

static const char other[] =
    "{\"tune_params_keys\": [\"fast\", \"layout\", \"ratio\", \"block\"], \"cache\": {"
    "\"a\": {\"fast\": true, \"layout\": \"tiled\", \"ratio\": 0.5, \"block\": 16, \"time\": 9},"
    "\"b\": {\"fast\": true, \"layout\": \"tiled\", \"ratio\": 1, \"block\": 32, \"time\": "
    "\"Fails\"},"
    "\"c\": {\"fast\": true, \"layout\": \"tiled\", \"ratio\": 0.125, \"block\": 32, \"time\": "
    "8}}}";

/* Axes stand in another order and have other values; 0.5 is the same in both though
 * one counts in 1/1000. */
static void maps_another_table_by_names(void **state)
{
    char path[] = "/tmp/dittune-table-XXXXXX";
    struct dt_landscape *table = open_table(DATA "cache.json"), *source;
    double values[7];
    int64_t found;
    (void)state;
    int fd = mkstemp(path);
    FILE *file = fdopen(fd, "w");
    fputs(other, file);
    fclose(file);
    source = open_table(path);
    remove(path);
    assert_int_equal(dt_landscape_map(table, source, values, &found), DT_OK);
    assert_int_equal(found, 2);
    for (int64_t k = 0; k < table->count; k++) {
        if (strcmp(table->entries[k].key, "16,0.5,tiled,True") == 0)
            assert_true(values[k] == 9);
        else if (strcmp(table->entries[k].key, "32,1.0,tiled,True") == 0)
            assert_true(isinf(values[k]));
        else
            assert_true(isnan(values[k]));
    }
    dt_landscape_free(source);
    source = open_table(DATA "t4.json");
    assert_int_equal(dt_landscape_map(table, source, values, &found), DT_EUSAGE);
    assert_string_equal(dt_message(), "the prior has no parameter 'ratio'");
    dt_landscape_free(source);
    dt_landscape_free(table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_kernel_tuner_files),
        cmocka_unit_test(reads_t4_files),
        cmocka_unit_test(reads_journals),
        cmocka_unit_test(shared_tables_have_the_known_counts),
        cmocka_unit_test(noisy_trials_are_bootstrap_means),
        cmocka_unit_test(maps_another_table_by_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
