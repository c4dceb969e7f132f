/* SPDX-License-Identifier: MIT */
/* The trials of a session, and what each parameter explains of their differences. */
#include "tuner/cli/page/page_int.h"

#include "base/array.h"
#include "tuner/cli/words.h"

#include "stats/front.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool dt_page_failed(const struct dt_result *result)
{
    return result->outcome != DT_TRIAL_OK && result->outcome != DT_TRIAL_SLOW &&
           result->outcome != DT_TRIAL_INTERRUPTED;
}

/* Rows that are shown have one unit: that in which the smallest has a digit before the point. */
static void choose_units(struct page_view *view)
{
    double seconds = INFINITY, bytes = INFINITY;
    for (int i = 0; i < view->count; i++)
        if (isfinite(view->rows[i].value)) {
            seconds = fmin(seconds, view->rows[i].value);
            bytes = fmin(bytes, (double)view->rows[i].result->facts.peak_bytes);
        }
    const struct dt_objective *objective = view->session->target->objective;
    view->time = dt_figure_time_unit(isfinite(seconds) ? seconds : 1);
    view->memory = dt_figure_bytes_unit(isfinite(bytes) ? fmax(bytes, 1024) : 1024);
    if (objective->metric != NULL) {
        view->time = (struct dt_unit){objective->metric, 1};
        snprintf(view->axis, sizeof view->axis, "%s", objective->metric);
        return;
    }
    const char *what = objective->one_batch ? "time of a step" : objective->spent;
    snprintf(view->axis, sizeof view->axis, "%s%s, %s", what,
             objective->one_batch ? "" : " per image and step", view->time.name);
}

double dt_page_shown(const struct page_view *view, double seconds)
{
    return view->session->target->objective->metric != NULL ? 1 / seconds
                                                            : seconds / view->time.size;
}

static int rows_by_value(const void *a, const void *b)
{
    const struct page_row *one = a, *two = b;
    if (isfinite(one->value) != isfinite(two->value))
        return isfinite(one->value) ? -1 : 1;
    if (isfinite(one->value) && one->value != two->value)
        return one->value < two->value ? -1 : 1;
    return one->number - two->number;
}

bool dt_page_view(const struct dt_page *page, const char *prefix, struct page_view *view)
{
    const struct dt_session *session = page->session;
    *view = (struct page_view){.page = page,
                               .session = session,
                               .rows = calloc(2 * (size_t)session->count + 1, sizeof *view->rows)};
    snprintf(view->prefix, sizeof view->prefix, "%s", prefix);
    double best = INFINITY;
    for (int i = 0; view->rows != NULL && i < session->count; i++) {
        const struct dt_result *result = &session->trials[i];
        if (!dt_session_counts(session, i))
            continue;
        struct dt_trial trial = dt_result_trial(result, session->target);
        struct page_row row = {result, i + 1, NAN, NAN, NAN, NAN, false};
        if (result->samples.n > 0)
            row.value = dt_session_value(session, result);
        if (isfinite(row.value)) {
            row.low = trial.low;
            row.high = trial.high;
            row.best = row.value < best && dt_session_eligible(session, result);
        }
        best = row.best ? row.value : best;
        view->measured += isfinite(row.value);
        view->failed += dt_page_failed(result);
        view->slow += result->outcome == DT_TRIAL_SLOW;
        view->rows[view->count++] = row;
    }
    double known = view->rows != NULL ? dt_page_default(view) : NAN;
    for (int i = 0; view->rows != NULL && i < view->count; i++)
        if (isfinite(view->rows[i].value) && view->rows[i].result->facts.predicted > 0)
            view->rows[i].predicted = view->rows[i].result->facts.predicted * known;
    if (view->rows == NULL)
        return false;
    struct page_row *sorted = view->rows + view->count;
    memcpy(sorted, view->rows, (size_t)view->count * sizeof *sorted);
    qsort(sorted, (size_t)view->count, sizeof *sorted, rows_by_value);
    view->sorted = sorted;
    choose_units(view);
    return true;
}

void dt_page_view_fini(struct page_view *view)
{
    free(view->rows);
}

void dt_page_plan(const struct page_view *view, const struct dt_point *point, struct dt_text *out)
{
    dt_point_short(view->session->target->space, point, out);
}

double dt_page_visit(const struct page_view *view, int entrant, int round)
{
    const struct dt_entrant *of = &view->session->finals.entrants[entrant];
    return view->session->target->objective->value(of->visits[round], dt_result_images(&of->result),
                                                   of->result.devices);
}

const char *dt_page_role(const struct page_view *view, int entrant)
{
    const struct dt_session_finals *finals = &view->session->finals;
    const struct dt_entrant *of = &finals->entrants[entrant];
    return dt_entrant_twin(of)       ? "twin (the default again)"
           : entrant == finals->best ? dt_words_role(view->session->verdict)
                                     : dt_entrant_role_text(of->role);
}

double dt_page_level(const struct dt_session *session)
{
    return dt_stats_set_level(session->finals.sets.count);
}

const struct dt_entrant *dt_page_winner(const struct dt_session *session)
{
    int best = session->finals.best;
    return best >= 0 && dt_session_against_default(session) ? &session->finals.entrants[best]
                                                            : NULL;
}

void dt_page_axis_value(const struct page_view *view, int axis, int index, struct dt_text *out)
{
    const struct dt_axis *of = dt_space_axis(view->session->target->space, axis);
    dt_axis_plain(of, of->values[index], out);
}

int dt_page_front_rows(const struct page_view *view, int rows[], int room)
{
    struct dt_front_point *points = calloc((size_t)view->count + 1, sizeof *points);
    int n = 0;
    for (int i = 0; points != NULL && i < view->count; i++)
        if (isfinite(view->rows[i].value) &&
            dt_session_eligible(view->session, view->rows[i].result))
            points[n++] = (struct dt_front_point){view->rows[i].value,
                                                  view->rows[i].result->facts.peak_bytes, i};
    n = points != NULL ? dt_front(points, n) : 0;
    n = n < room ? n : room;
    for (int i = 0; i < n; i++)
        rows[i] = points[i].index;
    free(points);
    return n;
}

static void effect_of(const struct page_view *view, double values[], struct page_effect *effect)
{
    double sum[64] = {0}, squares = 0, all = 0;
    int n = 0;
    for (int i = 0; i < view->count; i++) {
        int k = 0, value = view->rows[i].result->point.index[effect->axis];
        while (k < effect->count && effect->used[k] != value)
            k++;
        if (isfinite(view->rows[i].value) && k == effect->count && k < 64)
            effect->used[effect->count++] = value;
    }
    qsort(effect->used, (size_t)effect->count, sizeof effect->used[0], dt_ascending_int);
    for (int k = 0; k < effect->count; k++) {
        int many = 0;
        for (int i = 0; i < view->count; i++) {
            const struct page_row *row = &view->rows[i];
            if (!isfinite(row->value) || row->result->point.index[effect->axis] != effect->used[k])
                continue;
            values[many++] = row->value;
            sum[k] += log(row->value);
            squares += log(row->value) * log(row->value);
        }
        effect->trials[k] = many;
        effect->median[k] = dt_stats_median(values, many);
        all += sum[k];
        n += many;
    }
    /* between-group over total variance (the correlation ratio, eta squared; Fisher 1925) */
    double within = n * (all / n) * (all / n), between = -within, total = squares - within;
    for (int k = 0; k < effect->count; k++)
        between += sum[k] * sum[k] / effect->trials[k];
    effect->seen = n > effect->count && total > 0 ? fmin(fmax(between / total, 0), 1) : 0;
    effect->share = view->session->search.weighed ? view->session->search.importance[effect->axis]
                                                  : effect->seen;
}

static int larger_share(const void *a, const void *b)
{
    const struct page_effect *one = a, *two = b;
    if (one->share != two->share)
        return one->share > two->share ? -1 : 1;
    return one->axis - two->axis;
}

int dt_page_effects(const struct page_view *view, struct page_effect effects[DT_AXES_MAX])
{
    int n = 0, axes = dt_space_axes(view->session->target->space);
    double *values = calloc((size_t)view->count + 1, sizeof *values);
    for (int axis = 0; values != NULL && axis < axes; axis++) {
        effects[n] = (struct page_effect){.axis = axis};
        effect_of(view, values, &effects[n]);
        n += effects[n].count > 1;
    }
    free(values);
    qsort(effects, (size_t)n, sizeof effects[0], larger_share);
    return n;
}

double dt_page_default(const struct page_view *view)
{
    const struct dt_session *session = view->session;
    const struct dt_result *trial = dt_session_trial(session, &session->target->fallback);
    return trial != NULL && trial->samples.n > 0 ? dt_session_value(session, trial) : NAN;
}
