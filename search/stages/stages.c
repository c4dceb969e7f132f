/* SPDX-License-Identifier: MIT */
/* Two stages, for spaces in which few layouts (how the work is split among ranks) have very many
 * settings each: first each layout at its default settings, then the settings of the best few. What
 * only the environment of new processes can set is tried last, with the best plan, and no more
 * often than processes can stay loaded. docs/search.md has the reasons and the measurements. */
#include "base/array.h"
#include "search/arm_int.h"
#include "search/seen.h"

#include <math.h>
#include <stdlib.h>

enum { KEEP, SHARE, FIRST, KNOBS };
enum { REFUSALS = 64, ENVIRONMENTS_MOST = 8, NEAR_ROOM = 4096 };

#define ENVIRONMENT_SHARE 0.2 /* at most this share of all trials tries environments */

static const struct dt_knob knobs[] = {
    [KEEP] = {"keep", "layouts whose settings are searched", 3, 1, 64},
    [SHARE] = {"share", "most of the budget that the first look at layouts may take", 0.5, 0.05, 1},
    [FIRST] = {"first", "leading parameters that are the layout, where none has the role layout", 1,
               1, 31},
    [KNOBS] = {.name = NULL},
};

/* A layout at its default settings, their value, and the best value of its plans so far. */
struct layout {
    struct dt_point point;
    uint64_t group;
    int turn;                  /* its group's turn; the lowest first */
    double prior, first, best; /* INFINITY: unknown, nothing ran */
};

struct stages {
    struct dt_search_opts opts;
    struct dt_rng rng;
    uint32_t axes;        /* axes of the layout */
    uint32_t environment; /* axes of that role */
    struct layout *layouts;
    int count, next; /* next: of those not yet asked for */
    int searched;    /* layouts whose settings were searched, the best first */
    struct dt_trial *told;
    int told_count;
    double seconds; /* spent on the trials told, but for those before the first ask */
    int64_t early;  /* points that were known at the first ask: the budget is for others */
    bool asked;
    struct dt_point *last; /* the best plan in other environments */
    int last_count, last_next;
    bool waiting; /* for answers about layouts */
    struct {
        struct dt_space *space; /* those layouts; NULL: not opened */
        struct dt_seen seen;    /* points seen in this part */
        struct dt_arm arm;
    } part;
};

static uint32_t axes_of_role(const struct dt_space *space, enum dt_role role)
{
    uint32_t axes = 0;
    for (int i = 0; i < dt_space_axes(space); i++)
        if (dt_space_axis(space, i)->role == role && dt_space_axis(space, i)->count > 1)
            axes |= UINT32_C(1) << i;
    return axes;
}

static int by_turn(const void *a, const void *b)
{
    const struct layout *x = a, *y = b;
    if (x->turn != y->turn)
        return x->turn < y->turn ? -1 : 1;
    return (x->prior > y->prior) - (x->prior < y->prior);
}

static int by_best(const void *a, const void *b)
{
    const struct layout *x = a, *y = b;
    return (x->best > y->best) - (x->best < y->best);
}

static double prior_of(const struct stages *search, const struct dt_point *point)
{
    const struct dt_prior *prior = search->opts.prior;
    double value = prior != NULL ? prior->value(prior->context, point) : NAN;
    return isnan(value) ? INFINITY : value;
}

static void shuffle_points(struct dt_rng *rng, struct dt_point points[], int n)
{
    for (int i = 0; i < n; i++) {
        int k = i + (int)dt_rng_below(rng, (uint64_t)(n - i));
        struct dt_point other = points[k];
        points[k] = points[i];
        points[i] = other;
    }
}

/* Layouts are in the order of their numbers of ranks, most first, or of the prior, except that
 * those of one group follow its first one: what is loaded for it is loaded once. */
static void set_turns(struct stages *search)
{
    const struct dt_groups *groups = search->opts.groups;
    for (int i = 0; i < search->count; i++) {
        struct layout *layout = &search->layouts[i];
        layout->group = groups != NULL ? groups->of(groups->context, &layout->point) : 0;
        layout->turn = groups != NULL ? i : 0;
        for (int k = 0; groups != NULL && k < i; k++)
            if (search->layouts[k].group == layout->group) {
                layout->turn = search->layouts[k].turn;
                break;
            }
    }
}

static int64_t value_of_role(const struct dt_space *space, enum dt_role role,
                             const struct dt_point *point)
{
    int axis = dt_space_role(space, role);
    return axis >= 0 ? dt_point_value(space, point, axis) : 1;
}

/* Ranks of all replicas: layouts that take more devices come first. */
static int devices_of(const struct dt_space *space, const struct dt_point *point)
{
    return (int)(value_of_role(space, DT_ROLE_RANKS, point) *
                 value_of_role(space, DT_ROLE_REPLICAS, point));
}

static dt_status list_layouts(struct stages *search)
{
    dt_auto_free struct dt_point *points = NULL;
    int count = 0;
    DT_TRY(dt_space_tuples(search->opts.space, search->axes, &points, &count));
    search->layouts = calloc((size_t)count + 1, sizeof *search->layouts);
    if (search->layouts == NULL)
        return dt_fail(DT_ENOMEM, "out of memory for %d layouts", count);
    shuffle_points(&search->rng, points, count);
    for (int i = 0; i < count; i++)
        search->layouts[i] = (struct layout){.point = points[i],
                                             .turn = -devices_of(search->opts.space, &points[i]),
                                             .prior = prior_of(search, &points[i]),
                                             .first = INFINITY,
                                             .best = INFINITY};
    search->count = count;
    for (int i = 0; search->opts.prior != NULL && i < count; i++)
        search->layouts[i].turn = 0;
    qsort(search->layouts, (size_t)count, sizeof *search->layouts, by_turn);
    set_turns(search);
    qsort(search->layouts, (size_t)count, sizeof *search->layouts, by_turn);
    return DT_OK;
}

static dt_status stages_init(void *state, const struct dt_search_opts *opts)
{
    struct stages *search = state;
    *search = (struct stages){.opts = *opts, .rng = dt_rng_at(opts->seed, "stages")};
    int first = (int)opts->knobs[FIRST];
    search->axes = dt_space_layout_axes(opts->space);
    if (search->axes == 0)
        search->axes = (UINT32_C(1) << (first < dt_space_axes(opts->space) ? first : 1)) - 1;
    search->environment = axes_of_role(opts->space, DT_ROLE_ENVIRONMENT) & ~search->axes;
    return list_layouts(search);
}

static void close_part(struct stages *search)
{
    if (search->part.space == NULL)
        return;
    dt_arm_close(&search->part.arm);
    dt_seen_fini(&search->part.seen);
    dt_space_free(search->part.space);
    search->part.space = NULL;
}

static void stages_fini(void *state)
{
    struct stages *search = state;
    close_part(search);
    free(search->layouts);
    free(search->told);
    free(search->last);
}

/* ---- first stage */

/* The first look has had its share of the budget. */
static bool looked_enough(const struct stages *search)
{
    double share = search->opts.knobs[SHARE];
    const struct dt_search_opts *opts = &search->opts;
    return (opts->evaluations > 0 && (double)(opts->seen->count - search->early) >=
                                         fmax(1, share * (double)opts->evaluations)) ||
           (opts->seconds > 0 && search->seconds >= share * opts->seconds);
}

static bool ask_layout(struct stages *search, struct dt_point *point)
{
    while (search->next < search->count && !looked_enough(search)) {
        *point = search->layouts[search->next++].point;
        if (!dt_seen_has(search->opts.seen, point))
            return true;
    }
    return false;
}

/* Answers are missing, and it is the first time that this is noticed: they may never arrive. */
static bool must_wait(struct stages *search)
{
    search->waiting = !search->waiting && search->opts.seen->count > search->told_count;
    return search->waiting;
}

/* ---- second stage */

static void tell_part(struct stages *search, const struct dt_trial *trial)
{
    if (search->part.space == NULL || !dt_space_feasible(search->part.space, &trial->point))
        return;
    if (!dt_seen_has(&search->part.seen, &trial->point))
        dt_seen_add(&search->part.seen, &trial->point);
    dt_arm_tell(&search->part.arm, trial);
}

/* Evaluations that remain, at least 1; 0: unknown. */
static int64_t room_left(const struct stages *search)
{
    int64_t left = search->opts.evaluations - (search->opts.seen->count - search->early);
    return search->opts.evaluations == 0 ? 0 : left > 1 ? left : 1;
}

static dt_status open_arm(struct stages *search)
{
    struct dt_search_opts opts = search->opts;
    opts.space = search->part.space;
    opts.seen = &search->part.seen;
    opts.evaluations = room_left(search);
    opts.seconds = opts.seconds > 0 ? fmax(opts.seconds - search->seconds, 1e-3) : 0;
    opts.start = NULL;
    opts.known_count = 0;
    DT_TRY(dt_arm_open(&search->part.arm, dt_arm_fitting(opts.space, (double)opts.evaluations),
                       &opts));
    for (int i = 0; i < search->told_count; i++)
        tell_part(search, &search->told[i]);
    return DT_OK;
}

/* Settings have made no layout faster than this, as a factor of its time at default settings. */
static double largest_gain(const struct stages *search)
{
    double gain = 1;
    for (int i = 0; i < search->searched; i++)
        if (isfinite(search->layouts[i].first))
            gain = fmax(gain, search->layouts[i].first / search->layouts[i].best);
    return gain;
}

/* There are layouts left, and the best of them could win if its settings gained as much as
 * those of any other have. All of them where every plan of the others was tried: then nothing
 * better is left to do. */
static bool more_layouts(const struct stages *search)
{
    double best = INFINITY, next = INFINITY;
    for (int i = 0; i < search->count; i++) {
        best = fmin(best, search->layouts[i].best);
        if (i >= search->searched)
            next = fmin(next, search->layouts[i].best);
    }
    return search->searched < search->count &&
           (dt_seen_all(&search->part.seen) || next / largest_gain(search) < best);
}

/* The settings of the next best layouts, in the default environment. */
static dt_status open_part(struct stages *search)
{
    int keep = (int)search->opts.knobs[KEEP], n = 0;
    dt_auto_free struct dt_point *points = calloc((size_t)keep, sizeof *points);
    if (points == NULL)
        return dt_fail(DT_ENOMEM, "out of memory for a search");
    qsort(search->layouts + search->searched, (size_t)(search->count - search->searched),
          sizeof *search->layouts, by_best);
    for (; n < keep && search->searched < search->count; n++)
        points[n] = search->layouts[search->searched++].point;
    for (int a = 0; a < dt_space_axes(search->opts.space); a++)
        for (int i = 0; (search->environment >> a & 1) != 0 && i < n; i++)
            points[i].index[a] = dt_space_axis(search->opts.space, a)->fallback;
    DT_TRY(dt_space_restrict(search->opts.space, search->axes | search->environment, points, n,
                             &search->part.space));
    dt_status status = dt_seen_init(&search->part.seen, search->part.space);
    if (status == DT_OK)
        status = open_arm(search);
    if (status < 0)
        close_part(search);
    return status;
}

/* The arm proposes what is not known of its part, but may be known of the whole. */
static dt_status ask_part(struct stages *search, struct dt_point *point)
{
    for (int i = 0; i < REFUSALS; i++) {
        dt_status status = dt_arm_ask(&search->part.arm, point);
        if (status != DT_OK)
            return status;
        if (!dt_space_feasible(search->part.space, point) || dt_seen_has(&search->part.seen, point))
            continue;
        dt_seen_add(&search->part.seen, point);
        if (!dt_seen_has(search->opts.seen, point))
            return DT_OK;
    }
    if (!dt_seen_draw(&search->part.seen, &search->rng, point))
        return DT_DONE;
    dt_seen_add(&search->part.seen, point);
    return DT_OK;
}

/* ---- environments */

static const struct dt_trial *best_trial(const struct stages *search)
{
    const struct dt_trial *best = NULL;
    for (int i = 0; i < search->told_count; i++)
        if (search->told[i].outcome == DT_TRIAL_OK &&
            (best == NULL || search->told[i].value < best->value))
            best = &search->told[i];
    return best;
}

/* Environments to try: new processes for each, of which so many can stay loaded beside
 * those of the best plan. */
static int count_environments(const struct stages *search)
{
    const struct dt_groups *groups = search->opts.groups;
    int most = groups != NULL && groups->stay > 0 ? groups->stay - 1 : ENVIRONMENTS_MOST;
    double share = ENVIRONMENT_SHARE * (double)search->opts.evaluations;
    if (search->environment == 0)
        return 0;
    return search->opts.evaluations > 0 && share < most ? (int)fmax(1, share) : most;
}

/* The best plan with one variable changed, in random order. */
static dt_status open_environments(struct stages *search)
{
    const struct dt_trial *best = best_trial(search);
    DT_CLEANUP(dt_space_free_at) struct dt_space *part = NULL;
    int most = count_environments(search);
    search->last = calloc(NEAR_ROOM, sizeof *search->last);
    if (search->last == NULL)
        return dt_fail(DT_ENOMEM, "out of memory for a search");
    if (best == NULL || most < 1)
        return DT_OK;
    DT_TRY(dt_space_restrict(search->opts.space, ~search->environment, &best->point, 1, &part));
    int n = dt_space_neighbours(part, &best->point, search->last, NEAR_ROOM);
    n = n < NEAR_ROOM ? n : NEAR_ROOM;
    shuffle_points(&search->rng, search->last, n);
    search->last_count = n < most ? n : most;
    return DT_OK;
}

static dt_status ask_environment(struct stages *search, struct dt_point *point)
{
    if (search->environment == 0)
        return DT_DONE;
    if (search->last == NULL)
        DT_TRY(open_environments(search));
    while (search->last_next < search->last_count) {
        *point = search->last[search->last_next++];
        if (!dt_seen_has(search->opts.seen, point))
            return DT_OK;
    }
    return DT_DONE;
}

static bool environments_are_due(const struct stages *search)
{
    return search->last != NULL || (search->environment != 0 && search->opts.evaluations > 0 &&
                                    room_left(search) <= count_environments(search));
}

/* ---- the strategy */

static dt_status stages_ask(void *state, struct dt_point *point)
{
    struct stages *search = state;
    if (!search->asked)
        search->early = search->opts.seen->count;
    search->asked = true;
    if (search->searched == 0 && ask_layout(search, point))
        return DT_OK;
    if (search->searched == 0 && must_wait(search))
        return DT_WAIT;
    if (environments_are_due(search))
        return ask_environment(search, point);
    for (;;) {
        if (search->part.space == NULL)
            DT_TRY(open_part(search));
        dt_status status = ask_part(search, point);
        if (status != DT_DONE)
            return status;
        if (!more_layouts(search))
            return ask_environment(search, point);
        close_part(search);
    }
}

static void stages_tell(void *state, const struct dt_trial *trial)
{
    struct stages *search = state;
    search->waiting = false;
    if (DT_GROW(search->told, search->told_count, 1) == DT_OK)
        search->told[search->told_count++] = *trial;
    search->seconds += search->asked ? trial->cost : 0;
    for (int i = 0; i < search->count; i++) {
        struct layout *layout = &search->layouts[i];
        if (trial->outcome != DT_TRIAL_OK ||
            !dt_points_agree(search->opts.space, search->axes, &trial->point, &layout->point))
            continue;
        layout->best = fmin(layout->best, trial->value);
        if (dt_point_equal(search->opts.space, &trial->point, &layout->point))
            layout->first = trial->value;
    }
    tell_part(search, trial);
}

static int64_t stages_ahead(void *state)
{
    const struct stages *search = state;
    bool second = search->part.space != NULL && search->last == NULL;
    return second ? dt_arm_ahead(&search->part.arm) : 0;
}

static void stages_note(const void *state, struct dt_text *out)
{
    const struct stages *search = state;
    int looked = 0;
    for (int i = 0; i < search->count; i++)
        looked += isfinite(search->layouts[i].best);
    dt_text_add(out, "%d of %d layouts were looked at",
                looked > search->next ? looked : search->next, search->count);
    if (search->searched > 0)
        dt_text_add(out, ", the settings of the best %d searched; ", search->searched);
    if (search->part.space != NULL)
        dt_arm_note(&search->part.arm, out);
}

static struct dt_refits stages_refits(const void *state)
{
    return dt_arm_refits(&((const struct stages *)state)->part.arm);
}

const struct dt_strategy dt_strategy_stages = {
    .name = "stages",
    .doc = "each layout at its default settings, then the settings of the best layouts",
    .paper = "none: a race of layouts, then exhaustive, bayes or tpe on the best",
    .state_size = sizeof(struct stages),
    .knobs = knobs,
    .init = stages_init,
    .ask = stages_ask,
    .tell = stages_tell,
    .ahead = stages_ahead,
    .fini = stages_fini,
    .note = stages_note,
    .refits = stages_refits,
};
