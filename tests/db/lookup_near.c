/* SPDX-License-Identifier: MIT */
/* Among random entries of one machine the nearest is found by going through all of them, with a
 * distance of the test's own. */
#include "tests/db/lookup.h"

#include "base/rng.h"

#include <math.h>

enum { ENTRIES = 40, STORES = 150, QUERIES = 4 };

struct place {
    int height, width, batch; /* pixels */
    int64_t age;
};

static const int sides[] = {256, 272, 320, 384, 400, 512, 528, 640, 768, 1024};

static struct place draw(struct dt_rng *rng)
{
    static const int batches[] = {1, 2, 3, 4, 6, 8};
    return (struct place){.height = sides[dt_rng_below(rng, 10)],
                          .width = sides[dt_rng_below(rng, 10)],
                          .batch = batches[dt_rng_below(rng, 6)],
                          .age = (int64_t)(1 + dt_rng_below(rng, 170))};
}

static bool same(const struct place *a, const struct place *b)
{
    return a->height == b->height && a->width == b->width && a->batch == b->batch;
}

static double distance(const struct place *a, const struct place *b)
{
    double tokens = log(1.0 * a->height * a->width / (1.0 * b->height * b->width)) / log(2);
    double batch = log(1.0 * a->batch / b->batch) / log(2);
    return hypot(tokens, batch);
}

static json_t *entry_at(const struct place *place, int number)
{
    json_t *entry = entry_of("plan.ranks=1; plan.cfg=1; plan.ulysses=1");
    set_at(entry, "key.height", json_integer(place->height / 8));
    set_at(entry, "key.width", json_integer(place->width / 8));
    set_at(entry, "key.batch", json_pack("[i]", place->batch));
    set_at(entry, "plan.batch", json_integer(place->batch));
    set_at(entry, "fingerprint.info.t_wall_ns", json_integer(NOW - place->age * DAY));
    set_at(entry, "number", json_integer(number));
    return entry;
}

/* The place that is equal, else the nearest within a factor 2, the newest
 * among equals; -1: none. */
static int nearest(const struct place places[], int n, const struct place *asked)
{
    int best = -1;
    double least = 1 + 2e-6;
    for (int i = 0; i < n; i++)
        if (same(&places[i], asked))
            return i;
    for (int i = 0; i < n; i++) {
        double apart = distance(&places[i], asked);
        bool nearer = apart < least - 1e-6;
        bool tie = best >= 0 && fabs(apart - least) < 1e-6 && places[i].age < places[best].age;
        if (!nearer && !tie)
            continue;
        least = apart < least ? apart : least;
        best = i;
    }
    return best;
}

static void ask(const struct dt_snapshot *snapshot, const struct dt_machine *machine,
                const struct place places[], int n, const struct place *asked)
{
    char sets[128];
    snprintf(sets, sizeof sets, "size=%dx%d;batch=%d", asked->width, asked->height, asked->batch);
    struct dt_query *query = query_of(machine, sets);
    struct dt_answer *answer = answer_of(snapshot, query);
    int best = nearest(places, n, asked);
    if (best < 0) {
        assert_int_equal(answer->tier, DT_TIER_HEURISTIC);
    } else {
        const struct place *found =
            &places[json_integer_value(json_object_get(answer->entry, "number"))];
        assert_int_equal(answer->tier, same(&places[best], asked) ? DT_TIER_EXACT : DT_TIER_NEAR);
        assert_true(fabs(answer->distance - distance(&places[best], asked)) < 1e-6);
        assert_true(fabs(distance(found, asked) - distance(&places[best], asked)) < 1e-6);
        assert_int_equal(found->age, places[best].age);
        assert_int_equal(answer->age_ns, places[best].age * DAY);
        assert_int_equal(json_integer_value(json_object_get(answer->plan, "batch")), asked->batch);
    }
    dt_answer_free(answer);
    dt_query_free(query);
}

static void nearest_answer_matches_a_linear_scan(void **state)
{
    (void)state;
    struct dt_rng rng = dt_rng_at(5, "near");
    struct dt_machine *machine = machine_of("");
    for (int store = 0; store < STORES; store++) {
        struct place places[ENTRIES];
        json_t *entries = json_array();
        int n = 0, wanted = 1 + (int)dt_rng_below(&rng, ENTRIES);
        while (n < wanted) {
            bool known = false;
            places[n] = draw(&rng);
            for (int i = 0; i < n; i++)
                known = known || same(&places[i], &places[n]);
            if (known)
                continue;
            json_array_append_new(entries, entry_at(&places[n], n));
            n++;
        }
        struct dt_snapshot *snapshot = snapshot_of(entries);
        for (int k = 0; k < QUERIES; k++) {
            struct place asked = draw(&rng);
            ask(snapshot, machine, places, n, &asked);
        }
        dt_snapshot_close(snapshot);
    }
    dt_machine_free(machine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(nearest_answer_matches_a_linear_scan)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
