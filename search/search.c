/* SPDX-License-Identifier: MIT */
/* Enforces the guarantees of all strategies: first the default and the known-good points, then the
 * strategy's proposals, no point twice and no infeasible one, until no point is left. Where plans
 * share what takes long to load, proposals that no answer changes are made ahead, in rounds. */
#include "base/array.h"
#include "base/json.h"
#include "search/arm_int.h"
#include "search/seen.h"

#include <stdlib.h>
#include <string.h>

#define DT_STRATEGY(name) extern const struct dt_strategy dt_strategy_##name;
#include "search/strategies.def"

const struct dt_strategy *const dt_strategies[] = {
#define DT_STRATEGY(name) &dt_strategy_##name,
#include "search/strategies.def"
    NULL};

#define STRATEGIES_MOST 64

enum { MODEL_MOST = 2000 }; /* answers that a model is fitted to */

static const struct dt_knob no_knobs[] = {{0}};

static const struct dt_knob *knobs_of(const struct dt_strategy *strategy)
{
    return strategy->knobs != NULL ? strategy->knobs : no_knobs;
}

static dt_status unknown_strategy(const char *name)
{
    dt_auto_text names = {0};
    const char *known[STRATEGIES_MOST + 1] = {NULL};
    for (int i = 0; dt_strategies[i] != NULL && i < STRATEGIES_MOST; i++)
        known[i] = dt_strategies[i]->name;
    const char *near = dt_json_nearest(name, known);
    for (int i = 0; dt_strategies[i] != NULL; i++)
        dt_text_add(&names, "%s%s", i > 0 ? ", " : "", dt_strategies[i]->name);
    return dt_fail(DT_EUSAGE, "unknown search '%.80s'%s%s%s choose one of %s", name,
                   near != NULL ? ", did you mean '" : ":", near != NULL ? near : "",
                   near != NULL ? "'?" : "", dt_text_at(&names));
}

static dt_status unknown_knob(const struct dt_strategy *strategy, const char *name)
{
    const struct dt_knob *knobs = knobs_of(strategy);
    dt_auto_text names = {0};
    for (int i = 0; knobs[i].name != NULL; i++)
        dt_text_add(&names, "%s%s", i > 0 ? ", " : "", knobs[i].name);
    return knobs[0].name == NULL
               ? dt_fail(DT_EUSAGE, "search '%s' has no settings, but '%.80s' was given",
                         strategy->name, name)
               : dt_fail(DT_EUSAGE, "search '%s' has no setting '%.80s': choose from %s",
                         strategy->name, name, dt_text_at(&names));
}

/* Sets one knob from "starts=20"; modifies the text. */
static dt_status set_knob(struct dt_arm *arm, char *text)
{
    const struct dt_knob *knobs = knobs_of(arm->strategy);
    char *value = strchr(text, '='), *end = NULL;
    if (value != NULL)
        *value++ = '\0';
    for (int i = 0; knobs[i].name != NULL; i++) {
        if (strcmp(knobs[i].name, text) != 0)
            continue;
        double x = value != NULL ? strtod(value, &end) : 0;
        bool number = value != NULL && end != value && *end == '\0';
        if (!number || !(x >= knobs[i].low && x <= knobs[i].high))
            return dt_fail(DT_EUSAGE, "search '%s': %s=%.80s must be a number from %g to %g",
                           arm->strategy->name, text, value != NULL ? value : "", knobs[i].low,
                           knobs[i].high);
        arm->knobs[i] = x;
        return DT_OK;
    }
    return unknown_knob(arm->strategy, text);
}

static dt_status set_knobs(struct dt_arm *arm, const char *text)
{
    dt_auto_free char *copy = strdup(text);
    if (copy == NULL)
        return dt_fail(DT_ENOMEM, "out of memory for the search '%.80s'", text);
    for (char *rest = copy; rest != NULL;)
        DT_TRY(set_knob(arm, strsep(&rest, ",")));
    return DT_OK;
}

/* "tpe:starts=20": the row, and the values of its knobs. DT_EUSAGE. */
static dt_status arm_parse(const char *text, struct dt_arm *arm)
{
    size_t size = strcspn(text, ":");
    *arm = (struct dt_arm){0};
    for (int i = 0; dt_strategies[i] != NULL; i++)
        if (strlen(dt_strategies[i]->name) == size &&
            strncmp(dt_strategies[i]->name, text, size) == 0)
            arm->strategy = dt_strategies[i];
    if (arm->strategy == NULL)
        return unknown_strategy(text);
    const struct dt_knob *knobs = knobs_of(arm->strategy);
    for (int i = 0; knobs[i].name != NULL; i++)
        arm->knobs[i] = knobs[i].fallback;
    return text[size] == ':' ? set_knobs(arm, text + size + 1) : DT_OK;
}

dt_status dt_arm_open(struct dt_arm *arm, const char *text, const struct dt_search_opts *opts)
{
    DT_TRY(arm_parse(text, arm));
    struct dt_search_opts mine = *opts;
    mine.knobs = arm->knobs;
    arm->state = calloc(1, arm->strategy->state_size);
    dt_status status = arm->state != NULL
                           ? arm->strategy->init(arm->state, &mine)
                           : dt_fail(DT_ENOMEM, "out of memory for the search '%.80s'", text);
    if (status < 0) {
        free(arm->state);
        *arm = (struct dt_arm){0};
    }
    return status;
}

void dt_arm_close(struct dt_arm *arm)
{
    if (arm->strategy != NULL && arm->strategy->fini != NULL && arm->state != NULL)
        arm->strategy->fini(arm->state);
    free(arm->state);
    *arm = (struct dt_arm){0};
}

dt_status dt_arm_ask(struct dt_arm *arm, struct dt_point *point)
{
    return arm->strategy->ask(arm->state, point);
}

int64_t dt_arm_ahead(const struct dt_arm *arm)
{
    if (arm->strategy->ahead != NULL)
        return arm->strategy->ahead(arm->state);
    return arm->strategy->tell == NULL ? INT64_MAX : 0;
}

void dt_arm_tell(struct dt_arm *arm, const struct dt_trial *trial)
{
    if (arm->strategy->tell != NULL)
        arm->strategy->tell(arm->state, trial);
}

void dt_arm_note(const struct dt_arm *arm, struct dt_text *out)
{
    if (arm->strategy->note != NULL)
        arm->strategy->note(arm->state, out);
}

struct dt_refits dt_arm_refits(const struct dt_arm *arm)
{
    if (arm->strategy == NULL || arm->strategy->refits == NULL)
        return (struct dt_refits){0};
    return arm->strategy->refits(arm->state);
}

struct dt_chance dt_arm_chance(const struct dt_arm *arm)
{
    if (arm->strategy == NULL || arm->strategy->chance == NULL)
        return (struct dt_chance){.known = false};
    return arm->strategy->chance(arm->state);
}

const char *dt_arm_fitting(const struct dt_space *space, double room)
{
    if (dt_space_listed(space) && (double)dt_space_count(space) <= room)
        return "exhaustive";
    return room <= MODEL_MOST ? "bayes" : "tpe";
}

enum { REFUSALS = 64 }; /* consecutive old proposals before a point is drawn */

enum { ROUND_MOST = 4096 };

static const char *const outcomes[] = {
#define DT_OUTCOME(name, text, doc) text,
#include "search/outcome.def"
    NULL};

const char *dt_outcome_text(enum dt_outcome outcome)
{
    return outcome >= 0 && outcome < DT_TRIAL_OUTCOMES ? outcomes[outcome] : "unknown outcome";
}

bool dt_outcome_may_pass(enum dt_outcome outcome)
{
    return outcome == DT_TRIAL_CRASHED || outcome == DT_TRIAL_HUNG ||
           outcome == DT_TRIAL_PROTOCOL || outcome == DT_TRIAL_FAILED;
}

dt_status dt_outcome_parse(const char *text, enum dt_outcome *outcome)
{
    int i = dt_text_index(text, outcomes);
    if (i < 0)
        return dt_fail(DT_EUSAGE, "unknown outcome '%s'", text);
    *outcome = (enum dt_outcome)i;
    return DT_OK;
}

/* A point of a round; sorting brings groups into their order. */
struct place {
    struct dt_point point;
    uint64_t group, turn; /* turn: of the group in this round */
    int at;               /* order of the proposals */
};

struct round {
    struct place *places;
    int count, next;
};

struct dt_search {
    const struct dt_space *space;
    struct dt_seen seen;
    struct dt_rng rng;
    struct dt_point *first; /* the default, then the known-good ones */
    int first_count, first_next;
    struct dt_search_opts opts;
    struct dt_arm arm;
    struct dt_trial *answers; /* before another strategy was chosen */
    int answer_count;
    struct dt_text why;  /* it was chosen */
    struct dt_rng turns; /* for the order of the groups */
    struct round round;
    uint64_t loaded; /* group of the latest point; 0: none */
    int pending;     /* points asked for without an answer so far */
};

dt_status dt_search_check(const char *name)
{
    struct dt_arm arm;
    return arm_parse(name, &arm);
}

static dt_status copy_first(struct dt_search *search, const struct dt_search_opts *opts)
{
    search->first = calloc((size_t)opts->known_count + 1, sizeof *search->first);
    if (search->first == NULL)
        return dt_fail(DT_ENOMEM, "out of memory for a search");
    if (opts->start != NULL)
        search->first[search->first_count++] = *opts->start;
    for (int i = 0; i < opts->known_count; i++)
        search->first[search->first_count++] = opts->known[i];
    return DT_OK;
}

static dt_status open_search(struct dt_search *search, const char *name,
                             const struct dt_search_opts *opts)
{
    search->space = opts->space;
    search->opts = *opts;
    search->opts.seen = &search->seen;
    search->rng = dt_rng_at(opts->seed, "search");
    search->turns = dt_rng_at(opts->seed, "groups");
    DT_TRY(arm_parse(name, &search->arm));
    DT_TRY(dt_seen_init(&search->seen, opts->space));
    DT_TRY(copy_first(search, opts));
    return search->arm.strategy->choose != NULL ? DT_OK
                                                : dt_arm_open(&search->arm, name, &search->opts);
}

dt_status dt_search_new(const char *name, const struct dt_search_opts *opts, struct dt_search **out)
{
    DT_CLEANUP(dt_search_free_at) struct dt_search *search = calloc(1, sizeof *search);
    if (search == NULL)
        return dt_fail(DT_ENOMEM, "out of memory for the search '%.80s'", name);
    DT_TRY(open_search(search, name, opts));
    *out = search;
    search = NULL;
    return DT_OK;
}

static bool is_new(const struct dt_search *search, const struct dt_point *point)
{
    return dt_space_feasible(search->space, point) && !dt_seen_has(&search->seen, point);
}

/* Skips first points that were told; false: none is left. */
static bool first_is_next(struct dt_search *search)
{
    while (search->first_next < search->first_count &&
           !is_new(search, &search->first[search->first_next]))
        search->first_next++;
    return search->first_next < search->first_count;
}

/* Opens the strategy that is to be chosen, if there is one, and tells it the answers so far. */
static dt_status arm_settle(struct dt_search *search)
{
    const struct dt_strategy *chooser = search->arm.strategy;
    double cost = 0, room = (double)search->opts.evaluations;
    if (chooser->choose == NULL)
        return DT_OK;
    for (int i = 0; i < search->answer_count; i++)
        cost += search->answers[i].cost;
    if (room <= 0 && search->opts.seconds > 0 && cost > 0)
        room = search->opts.seconds / (cost / search->answer_count);
    dt_text_clear(&search->why);
    dt_status status = dt_arm_open(&search->arm, chooser->choose(&search->opts, room, &search->why),
                                   &search->opts);
    if (status < 0) {
        search->arm.strategy = chooser;
        return status;
    }
    for (int i = 0; i < search->answer_count; i++)
        dt_arm_tell(&search->arm, &search->answers[i]);
    return DT_OK;
}

static dt_status propose_point(struct dt_search *search, struct dt_point *point)
{
    if (first_is_next(search)) {
        *point = search->first[search->first_next++];
        return DT_OK;
    }
    DT_TRY(arm_settle(search));
    for (int i = 0; i < REFUSALS; i++) {
        dt_status status = dt_arm_ask(&search->arm, point);
        if (status != DT_OK || is_new(search, point))
            return status;
    }
    return dt_seen_draw(&search->seen, &search->rng, point) ? DT_OK : DT_DONE;
}

/* Proposes a point and marks it as seen. */
static dt_status take_point(struct dt_search *search, struct dt_point *point)
{
    if (dt_seen_all(&search->seen))
        return DT_DONE;
    dt_status status = propose_point(search, point);
    if (status == DT_OK && !dt_seen_add(&search->seen, point))
        return dt_fail(DT_ENOMEM, "out of memory for a search");
    return status;
}

static uint64_t group_of(const struct dt_search *search, const struct dt_point *point)
{
    return search->opts.groups->of(search->opts.groups->context, point);
}

static int in_turn(const void *a, const void *b)
{
    const struct place *one = a, *other = b;
    if (one->turn != other->turn)
        return one->turn < other->turn ? -1 : 1;
    return one->at < other->at ? -1 : 1;
}

/* Sorts the round by groups: the one that is loaded comes first, then the
 * others in a random order. */
static void sort_round(struct dt_search *search)
{
    const struct round *round = &search->round;
    uint64_t draw = dt_rng_next(&search->turns);
    for (int i = 0; i < round->count; i++) {
        struct place *place = &round->places[i];
        place->turn = place->group == search->loaded ? 0 : dt_rng_hash(draw, place->group, 0);
    }
    qsort(round->places, (size_t)round->count, sizeof *round->places, in_turn);
}

/* Adds a proposal to the round; *groups counts those in it. */
static dt_status add_to_round(struct dt_search *search, int *groups)
{
    struct round *round = &search->round;
    struct dt_point point = {{0}};
    DT_TRY(DT_GROW(round->places, round->count, 1));
    dt_status status = take_point(search, &point);
    if (status != DT_OK)
        return status;
    struct place *place = &round->places[round->count];
    *place = (struct place){.point = point, .group = group_of(search, &point), .at = round->count};
    int i = 0;
    while (round->places[i].group != place->group)
        i++;
    *groups += i == round->count++;
    return DT_OK;
}

/* Makes a round of what may be asked ahead, but not of more than half of all trials, so that a
 * search whose time ends early has tried plans of every group. */
static dt_status make_round(struct dt_search *search)
{
    const int64_t evaluations = search->opts.evaluations;
    int64_t most = dt_search_ahead(search);
    int groups = 0;
    if (evaluations > 0 && most > evaluations / 2)
        most = evaluations / 2;
    most = most < ROUND_MOST ? most : ROUND_MOST;
    search->round.count = search->round.next = 0;
    do {
        dt_status status = add_to_round(search, &groups);
        if (status < 0 || search->round.count == 0)
            return status;
        if (status != DT_OK)
            break;
    } while (search->round.count < most &&
             search->round.count < (int64_t)groups * search->opts.groups->in_a_row);
    sort_round(search);
    return DT_OK;
}

static dt_status ask_in_rounds(struct dt_search *search, struct dt_point *point)
{
    struct round *round = &search->round;
    dt_status status = round->next < round->count ? DT_OK : make_round(search);
    if (status != DT_OK)
        return status;
    *point = round->places[round->next].point;
    search->loaded = round->places[round->next++].group;
    return DT_OK;
}

dt_status dt_search_ask(struct dt_search *search, struct dt_point *point)
{
    struct dt_point proposed = {{0}};
    dt_status status = search->opts.groups != NULL && !first_is_next(search)
                           ? ask_in_rounds(search, &proposed)
                           : take_point(search, &proposed);
    if (status != DT_OK)
        return status;
    search->pending++;
    *point = proposed;
    return DT_OK;
}

/* Removes a point that was told before its turn; false: it is not in the round. */
static bool leave_round(struct dt_search *search, const struct dt_point *point)
{
    struct round *round = &search->round;
    for (int i = round->next; i < round->count; i++)
        if (dt_point_equal(search->space, &round->places[i].point, point)) {
            memmove(round->places + i, round->places + i + 1,
                    (size_t)(--round->count - i) * sizeof *round->places);
            return true;
        }
    return false;
}

void dt_search_tell(struct dt_search *search, const struct dt_trial *trial)
{
    if (!dt_space_feasible(search->space, &trial->point))
        return;
    bool early = leave_round(search, &trial->point);
    if (search->pending > 0 && !early && dt_seen_has(&search->seen, &trial->point))
        search->pending--;
    if (search->opts.groups != NULL)
        search->loaded = group_of(search, &trial->point);
    dt_seen_add(&search->seen, &trial->point);
    if (search->arm.strategy->choose == NULL)
        dt_arm_tell(&search->arm, trial);
    else if (DT_GROW(search->answers, search->answer_count, 1) == DT_OK)
        search->answers[search->answer_count++] = *trial;
}

int64_t dt_search_ahead(struct dt_search *search)
{
    /* 0 when the chosen strategy cannot be opened: the next ask returns the error. */
    return arm_settle(search) < 0 ? 0 : dt_arm_ahead(&search->arm);
}

void dt_search_note(const struct dt_search *search, struct dt_text *out)
{
    if (dt_seen_all(&search->seen) && search->pending == 0 &&
        search->round.next == search->round.count)
        dt_text_add(out, "every plan was tried");
    else
        dt_arm_note(&search->arm, out);
}

void dt_search_reason(const struct dt_search *search, struct dt_text *out)
{
    dt_text_add(out, "%s", dt_text_at(&search->why));
}

struct dt_refits dt_search_refits(const struct dt_search *search)
{
    return dt_arm_refits(&search->arm);
}

struct dt_chance dt_search_chance(const struct dt_search *search)
{
    return dt_arm_chance(&search->arm);
}

void dt_search_free(struct dt_search *search)
{
    if (search == NULL)
        return;
    dt_arm_close(&search->arm);
    dt_seen_fini(&search->seen);
    free(search->first);
    free(search->answers);
    dt_text_fini(&search->why);
    free(search->round.places);
    free(search);
}
