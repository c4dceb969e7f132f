/* SPDX-License-Identifier: MIT */
/* page_int - what the writers of a page share */
#ifndef DT_TUNER_CLI_PAGE_PAGE_INT_H
#define DT_TUNER_CLI_PAGE_PAGE_INT_H

#include "tuner/cli/page/page.h"
#include "tuner/cli/page/pen.h"

#include "base/figures.h"

/* A trial in figures and tables. */
struct page_row {
    const struct dt_result *result;
    int number; /* from 1, in the order of the session */
    /* The objective's value, in seconds, smaller is better, with its
     * interval; NAN: not measured. */
    double value, low, high;
    double predicted; /* by the prior, from the measured default; NAN: not both are known */
    bool best;        /* it may be stored, and none before it was as fast */
};

/* A session, and what its figures and tables are made of. */
struct page_view {
    const struct dt_page *page;
    const struct dt_session *session;
    struct page_row *rows; /* owned: trials that count, failures too, in the session's order */
    const struct page_row *sorted; /* the same, the fastest first, not measured ones last */
    int count, measured, failed, slow;
    struct dt_unit time, memory; /* units of all figures and tables */
    char axis[80];               /* the values and their unit: "step, ms" */
    char prefix[8];              /* prefix of names in the page */
};
bool dt_page_view(const struct dt_page *page, const char *prefix,
                  struct page_view *view); /* false: no memory */
void dt_page_view_fini(struct page_view *view);

/* A value of the objective as figures and tables show it: in the view's unit, or the metric
 * itself, whose larger values are better. */
double dt_page_shown(const struct page_view *view, double seconds);
bool dt_page_failed(const struct dt_result *result);
/* The plan in words; the best plan's result; NULL: none. */
void dt_page_plan(const struct page_view *view, const struct dt_point *point, struct dt_text *out);
/* The default's value in its trial; NAN: it was not measured. */
double dt_page_default(const struct page_view *view);
/* A round's visit of an entrant of the final comparison: the objective's value, in seconds; NAN:
 * none. */
double dt_page_visit(const struct page_view *view, int entrant, int round);
/* The entrant's role, as figures and tables call it. */
const char *dt_page_role(const struct page_view *view, int entrant);
/* Level of the intervals of the final comparison. */
double dt_page_level(const struct dt_session *session);
/* The entrant with the best plan, when its ratio is against the default; NULL: none. */
const struct dt_entrant *dt_page_winner(const struct dt_session *session);

/* One parameter's share in the differences between the measured trials. */
struct page_effect {
    int axis;
    int used[64];      /* indices of values that measured trials have, ascending */
    int trials[64];    /* with that value */
    double median[64]; /* median of their values, seconds */
    int count;
    double seen;  /* share of the variance of log(value) of the trials, 0..1 */
    double share; /* that of all plans by the search's model; of few trials: seen */
};
/* Effects of all parameters with two used values or more, the largest share first; returns how
 * many. */
int dt_page_effects(const struct page_view *view, struct page_effect effects[DT_AXES_MAX]);
void dt_page_axis_value(const struct page_view *view, int axis, int index, struct dt_text *out);

/* The verdict in one sentence; the facts that follow from it. */
void dt_page_verdict(const struct page_view *view, struct dt_text *out);
void dt_page_facts(const struct page_view *view, struct page_pen *pen);
/* Appends the answer to one question, "Output" or "Load by others". */
void dt_page_fact(const struct page_view *view, const char *name, struct dt_text *out);

/* Tables. */
void dt_page_plans(const struct page_view *view, struct page_pen *pen);
void dt_page_trials(const struct page_view *view, struct page_pen *pen);
void dt_page_front(const struct page_view *view, struct page_pen *pen);
void dt_page_predicted(const struct page_view *view, struct page_pen *pen);
void dt_page_importance(const struct page_view *view, struct page_pen *pen);
void dt_page_pairs(const struct page_view *view, struct page_pen *pen);
void dt_page_ranks(const struct page_view *view, struct page_pen *pen);
void dt_page_phases(const struct page_view *view, struct page_pen *pen);
void dt_page_machine(const struct page_view *view, struct page_pen *pen);
void dt_page_words(const struct page_view *view, struct page_pen *pen);
/* The whole page of a cookbook (recipe.c). */
void dt_page_recipe(const struct page_view *view, struct page_pen *pen);
/* Writes the differences between two sessions. */
void dt_page_compare(const struct page_view views[2], struct page_pen *pen);

/* Figures: nothing where there is no data, or no gnuplot. */
void dt_page_draw_course(const struct page_view *view, struct dt_text *out);
void dt_page_draw_memory(const struct page_view *view, struct dt_text *out);
void dt_page_draw_predicted(const struct page_view *view, struct dt_text *out);
void dt_page_draw_effects(const struct page_view *view, struct dt_text *out);
void dt_page_draw_pairs(const struct page_view *view, struct dt_text *out);
void dt_page_draw_ranks(const struct page_view *view, struct dt_text *out);
void dt_page_draw_phases(const struct page_view *view, struct dt_text *out);

/* The trials on the front of time and memory, at most `room`, fastest first. */
int dt_page_front_rows(const struct page_view *view, int rows[], int room);

#endif
