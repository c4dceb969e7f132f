/* SPDX-License-Identifier: MIT */
#include "tuner/cli/page/page_int.h"

#include "base/quote.h"

#include <math.h>
#include <string.h>

static void add_number(double value, struct dt_text *out)
{
    dt_text_add(out, isfinite(value) ? ",%.9g" : ",", value);
}

static void add_trial(const struct dt_page *page, const struct dt_result *result, int number,
                      struct dt_text *out)
{
    const struct dt_session *session = page->session;
    const struct dt_space *space = session->target->space;
    struct dt_trial trial = dt_result_trial(result, session->target);
    bool measured = result->samples.n > 0;
    dt_quote_csv(page->journal, out);
    dt_text_add(out, ",%d,", number);
    dt_quote_csv(dt_outcome_text(result->outcome), out);
    add_number(measured ? trial.value : NAN, out);
    add_number(measured ? trial.low : NAN, out);
    add_number(measured ? trial.high : NAN, out);
    add_number(measured ? result->summary.median : NAN, out);
    add_number(result->peak_bytes > 0 ? (double)result->peak_bytes : NAN, out);
    add_number(result->cost_seconds, out);
    add_number(result->verified_error, out);
    dt_text_add(out, ",");
    dt_quote_csv(result->cause, out);
    for (int axis = 0; axis < dt_space_axes(space); axis++) {
        const struct dt_axis *of = dt_space_axis(space, axis);
        dt_text_add(out, ",");
        if (!dt_point_has(space, &result->point, axis))
            continue;
        if (of->labels != NULL)
            dt_quote_csv(of->labels[result->point.index[axis]], out);
        else
            dt_axis_plain(of, dt_point_value(space, &result->point, axis), out);
    }
    dt_text_add(out, "\n");
}

/* Two sessions have parameters of their own, so each has a header of its own. */
void dt_page_csv(const struct dt_page pages[], int n, struct dt_text *out)
{
    for (int i = 0; i < n; i++) {
        const struct dt_session *session = pages[i].session;
        dt_text_add(out,
                    "session,trial,outcome,value_seconds,low_seconds,high_seconds,step_seconds,"
                    "peak_bytes,cost_seconds,error,cause");
        for (int axis = 0; axis < dt_space_axes(session->target->space); axis++) {
            dt_text_add(out, ",");
            dt_quote_csv(dt_space_axis(session->target->space, axis)->name, out);
        }
        dt_text_add(out, "\n");
        for (int k = 0; k < session->count; k++)
            if (dt_session_counts(session, k))
                add_trial(&pages[i], &session->trials[k], k + 1, out);
    }
}

const struct dt_page_format *dt_page_format(const char *name)
{
    static const struct dt_page_format formats[] = {
        {"html", dt_page_html}, {"md", dt_page_markdown}, {"csv", dt_page_csv}, {"json", NULL}};
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
        if (strcmp(formats[i].name, name) == 0)
            return &formats[i];
    return NULL;
}
