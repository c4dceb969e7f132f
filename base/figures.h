/* SPDX-License-Identifier: MIT */
/* figures - numbers formatted for people: four digits, never an exponent, "-"
 * for an unknown value */
#ifndef DT_BASE_FIGURES_H
#define DT_BASE_FIGURES_H

#include "base/text.h"

#include <stdbool.h>
#include <stdint.h>

struct dt_unit {
    const char *name;
    double size; /* in seconds, or in bytes */
};

#define DT_GIB 1073741824.0 /* bytes */

/* The largest unit that does not exceed the amount: of time s, ms, us; of memory
 * GiB, MiB, KiB, bytes. */
struct dt_unit dt_figure_time_unit(double seconds);
struct dt_unit dt_figure_bytes_unit(double bytes);

void dt_figure_add(double value, struct dt_text *out);    /* "141", "0.0323", "23730" */
void dt_figure_time(double seconds, struct dt_text *out); /* "83.1 ms" */
/* The same within a sentence: dt_fail(code, "it took %s", dt_figure_of(seconds).text). */
struct dt_figure {
    char text[32];
};
struct dt_figure dt_figure_of(double seconds);
struct dt_figure dt_figure_number(double value); /* the number in the form of dt_figure_add */
struct dt_figure dt_figure_bytes_of(int64_t bytes);
/* Not rounded, as options take it: "28ms", "1.250us". ns: 0 or more. */
struct dt_figure dt_figure_exact(int64_t ns);
/* An interval is told where its ends are known and not farther apart than a factor of
 * DT_FIGURE_WIDEST: a wider one, as of two starts of the processes, is true and says nothing. */
#define DT_FIGURE_WIDEST 4
bool dt_figure_tells(double low, double high);
/* A ratio's interval, for a sentence: "1.061 to 1.348"; of one that is too wide to be told the end
 * that bounds the ratio on one side, "at least 1.061", "at most 0.912", or where neither does "not
 * decided"; "not known". */
void dt_figure_range(double low, double high, struct dt_text *out);
/* The same behind the ratio: "1.196 [1.061, 1.348]", "1.196 [not decided]";
 * "1.196 [-, -]": not known. */
void dt_figure_ratio(double ratio, double low, double high, struct dt_text *out);
/* "83.1 ms [82.9, 83.6]" with one unit for all three numbers; no interval when it is not told. */
void dt_figure_estimate(double seconds, double low, double high, struct dt_text *out);
/* The name of a metric that is maximised, of an objective "max:NAME"; NULL: the objective is
 * another one, or NULL. */
const char *dt_figure_metric(const char *objective);
/* The same estimate where the time is the inverse of a metric: "250 tokens/s [245, 255]".
 * metric NULL: a time. */
void dt_figure_value(const char *metric, double seconds, double low, double high,
                     struct dt_text *out);
/* A share, for a sentence: "0.23 %", "12 %", "230 %". */
struct dt_figure dt_figure_percent(double share);
void dt_figure_bytes(int64_t bytes, struct dt_text *out); /* "130 MiB", "1.3 GiB" */

/* Whole seconds, for budgets: "45 s", "4 min", "2 h 05 min". */
void dt_figure_span(double seconds, struct dt_text *out);
struct dt_figure dt_figure_span_of(double seconds);

/* A wall time in UTC: "2026-11-02", "2026-11-02 14:03"; in names of files, "20261102T140358Z". "":
 * it is in no calendar. */
struct dt_figure dt_figure_day(int64_t wall_ns);
struct dt_figure dt_figure_minute(int64_t wall_ns);
struct dt_figure dt_figure_stamp(int64_t wall_ns);

#endif
