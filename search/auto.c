/* SPDX-License-Identifier: MIT */
/* Chooses another strategy at the first ask, by the space, its size, and the number of trials that fit the budget; the
 * trials so far give the duration of a trial. */
#include "base/array.h"
#include "search/arm_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct automatic {
    struct dt_search_opts opts;
    struct dt_arm arm;      /* open once chosen */
    struct dt_trial *early; /* answers told before the choice */
    int early_count;
    double cost; /* total seconds of the trials told */
    char why[200];
};

static dt_status init(void *state, const struct dt_search_opts *opts)
{
    ((struct automatic *)state)->opts = *opts;
    return DT_OK;
}

/* Number of trials that fit the budget; 0: unknown. */
static double room_for(const struct automatic *search)
{
    if (search->opts.evaluations > 0)
        return (double)search->opts.evaluations;
    double each = search->early_count > 0 ? search->cost / search->early_count : 0;
    return search->opts.seconds > 0 && each > 0 ? search->opts.seconds / each : 0;
}

static const char *choose(struct automatic *search)
{
    const struct dt_space *space = search->opts.space;
    double room = room_for(search);
    const char *name = dt_arm_fitting(space, room);
    if (strcmp(name, "exhaustive") != 0 && dt_space_layout_axes(space) != 0)
        name = "stages";
    struct dt_text why = {0};
    if (!dt_space_listed(space))
        dt_text_add(&why, "the plans are too many to list");
    else
        dt_text_add(&why, "%lld plan%s", (long long)dt_space_count(space),
                    dt_space_count(space) == 1 ? "" : "s");
    if (room > 0)
        dt_text_add(&why, ", room for about %.0f trial%s", room, room < 1.5 ? "" : "s");
    else
        dt_text_add(&why, ", a budget of unknown length");
    snprintf(search->why, sizeof search->why, "%s: %s", name, dt_text_at(&why));
    dt_text_fini(&why);
    return name;
}

static dt_status open_chosen(struct automatic *search)
{
    DT_TRY(dt_arm_open(&search->arm, choose(search), &search->opts));
    for (int i = 0; i < search->early_count; i++)
        dt_arm_tell(&search->arm, &search->early[i]);
    free(search->early);
    search->early = NULL;
    return DT_OK;
}

static dt_status ask(void *state, struct dt_point *point)
{
    struct automatic *search = state;
    if (search->arm.strategy == NULL)
        DT_TRY(open_chosen(search));
    return dt_arm_ask(&search->arm, point);
}

/* 0 when the choice cannot be opened: the next ask fails likewise, and its error is returned. */
static int64_t ahead(void *state)
{
    struct automatic *search = state;
    if (search->arm.strategy == NULL && open_chosen(search) < 0)
        return 0;
    return dt_arm_ahead(&search->arm);
}

static void keep(struct automatic *search, const struct dt_trial *trial)
{
    if (DT_GROW(search->early, search->early_count, 1) < 0)
        return;
    search->early[search->early_count++] = *trial;
    search->cost += trial->cost;
}

static void tell(void *state, const struct dt_trial *trial)
{
    struct automatic *search = state;
    if (search->arm.strategy == NULL)
        keep(search, trial);
    else
        dt_arm_tell(&search->arm, trial);
}

static void fini(void *state)
{
    struct automatic *search = state;
    dt_arm_close(&search->arm);
    free(search->early);
}

static void note(const void *state, struct dt_text *out)
{
    const struct automatic *search = state;
    if (search->arm.strategy != NULL)
        dt_arm_note(&search->arm, out);
}

static void reason(const void *state, struct dt_text *out)
{
    dt_text_add(out, "%s", ((const struct automatic *)state)->why);
}

static struct dt_refits refits(const void *state)
{
    return dt_arm_refits(&((const struct automatic *)state)->arm);
}

static struct dt_chance chance(const void *state)
{
    return dt_arm_chance(&((const struct automatic *)state)->arm);
}

const struct dt_strategy dt_strategy_auto = {
    .name = "auto",
    .doc = "chooses by the size of the space and the trials that the budget has room for",
    .paper = "none: exhaustive where every plan fits into the budget, else stages where there are "
             "layouts, bayes or tpe",
    .state_size = sizeof(struct automatic),
    .init = init,
    .ask = ask,
    .tell = tell,
    .ahead = ahead,
    .fini = fini,
    .note = note,
    .reason = reason,
    .refits = refits,
    .chance = chance,
};
