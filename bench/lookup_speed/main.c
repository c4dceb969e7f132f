/* SPDX-License-Identifier: MIT */
/* How many exact look-ups a second one process makes through the public library, beside
 * parsing the whole file.
 *
 *     bench-lookup-speed make DIRECTORY N           N entries of full size, and a machine description
 *     bench-lookup-speed DIRECTORY N [SECONDS]      JSON: look-ups of all N questions in turn, the best of five turns
 *     bench-lookup-speed parse DIRECTORY            JSON: what Jansson takes to parse the whole file
 *
 * Each look-up is a call of dittune_lookup, a reading of the tier and of one parameter, and
 * dittune_answer_free. Times are of the processor, of the one thread.
 */
#include "bench/lookup_speed/store.h"
#include "db/api/dittune.h"

#include <inttypes.h>
#include <stdlib.h>

enum { TURNS = 5 };

static int fail(const char *why)
{
    fprintf(stderr, "bench-lookup-speed: %s\n", why);
    return 1;
}

struct questions {
    struct dittune_db *db;
    struct dittune_machine *machine;
    struct dittune_query **queries;
    size_t n;
    int64_t open_ns;
};

static int32_t ask(struct questions *all, char *why, size_t room)
{
    int32_t code = DITTUNE_OK;
    for (size_t i = 0; i < all->n && code == DITTUNE_OK; i++) {
        struct made_word words[MADE_WORDS];
        made_question(i, words);
        code = dittune_query_new(all->machine, &all->queries[i], why, room);
        for (int k = 0; k < MADE_WORDS && code == DITTUNE_OK; k++)
            code = dittune_query_set(all->queries[i], words[k].name, words[k].value, why, room);
        if (code == DITTUNE_OK)
            code = dittune_query_seal(all->queries[i], why, room);
    }
    return code;
}

/* Looks each question up once; how many of the answers were not exact. */
static size_t turn(const struct questions *all)
{
    size_t bad = 0;
    for (size_t i = 0; i < all->n; i++) {
        struct dittune_answer *answer = NULL;
        int64_t ranks = 0;
        if (dittune_lookup(all->db, all->queries[i], &answer, NULL, 0) != DITTUNE_OK ||
            dittune_answer_tier(answer) != DITTUNE_EXACT ||
            dittune_answer_integer(answer, "ranks", &ranks) != DITTUNE_OK || ranks != 1)
            bad++;
        dittune_answer_free(answer);
    }
    return bad;
}

static int measure(struct questions *all, double seconds)
{
    char why[512] = "";
    int64_t start = dt_clock_thread_ns();
    size_t bad = turn(all); /* each entry is parsed and checked here */
    int64_t first = dt_clock_thread_ns() - start, best = INT64_MAX;
    for (int k = 0; k < TURNS && bad == 0; k++) {
        int64_t n = 0, spent;
        start = dt_clock_thread_ns();
        do {
            bad += turn(all);
            n++;
            spent = dt_clock_thread_ns() - start;
        } while ((double)spent < 1e9 * seconds / TURNS);
        best = spent / n < best ? spent / n : best;
    }
    if (bad > 0) {
        snprintf(why, sizeof why, "%zu look-ups of %zu were not exact", bad, all->n);
        return fail(why);
    }
    printf("{\"entries\": %zu, \"lookups_per_second\": %.0f, \"lookup_ns\": %.1f, "
           "\"first_lookup_ns\": %.1f, \"open_ms\": %.3f}\n",
           all->n, 1e9 * (double)all->n / (double)best, (double)best / (double)all->n,
           (double)first / (double)all->n, 1e-6 * (double)all->open_ns);
    return 0;
}

static int look_up(const char *directory, size_t n, double seconds)
{
    struct questions all = {.n = n};
    char why[512] = "", path[4096];
    int result = 1;
    snprintf(path, sizeof path, "%s/machine.json", directory);
    all.queries = calloc(n, sizeof(struct dittune_query *));
    int64_t start = dt_clock_thread_ns();
    int32_t code = dittune_db_open(directory, &all.db, why, sizeof why);
    all.open_ns = dt_clock_thread_ns() - start;
    if (code == DITTUNE_OK)
        code = dittune_machine_open(path, &all.machine, why, sizeof why);
    if (code == DITTUNE_OK)
        code = ask(&all, why, sizeof why);
    result = code == DITTUNE_OK ? measure(&all, seconds) : fail(why);
    for (size_t i = 0; i < n; i++)
        dittune_query_free(all.queries[i]);
    free(all.queries);
    dittune_machine_free(all.machine);
    dittune_db_close(all.db);
    return result;
}

static int parse(const char *directory)
{
    char path[4096];
    int64_t best = INT64_MAX;
    snprintf(path, sizeof path, "%s/best.json", directory);
    for (int k = 0; k < TURNS; k++) {
        int64_t start = dt_clock_thread_ns();
        json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, NULL);
        if (root == NULL)
            return fail("Jansson cannot parse the file");
        int64_t spent = dt_clock_thread_ns() - start;
        best = spent < best ? spent : best;
        json_decref(root);
    }
    printf("{\"parse_ms\": %.3f}\n", (double)best * 1e-6);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "make") == 0)
        return made_directory(argv[2], strtoul(argv[3], NULL, 10)) == DT_OK ? 0
                                                                            : fail(dt_message());
    if (argc == 3 && strcmp(argv[1], "parse") == 0)
        return parse(argv[2]);
    if (argc < 3)
        return fail("see the top of bench/lookup_speed/main.c");
    size_t n = strtoul(argv[2], NULL, 10);
    if (n == 0 || n > MADE_MOST)
        return fail("the number of entries is not within 1 and 12288");
    return look_up(argv[1], n, argc > 3 ? strtod(argv[3], NULL) : 1);
}
