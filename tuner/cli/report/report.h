/* SPDX-License-Identifier: MIT */
/* report - results for people: tables, and one sentence on how certain they are */
#ifndef DT_TUNER_CLI_REPORT_REPORT_H
#define DT_TUNER_CLI_REPORT_REPORT_H

#include "base/json.h"
#include "base/text.h"
#include "search/landscape/simulate.h"
#include "stats/stats.h"
#include "tuner/check/check.h"
#include "tuner/check/history/timeline.h"
#include "tuner/measure/measure.h"
#include "tuner/session/session.h"

void dt_report_session(const struct dt_session *session, const char *lookup, struct dt_text *out);
void dt_report_result(const struct dt_result *result, const struct dt_target *target,
                      struct dt_text *out);

/* "; after all steps the image differs by 0.03, a second one of the 1-rank plan by 0.02"; nothing where it was not compared. */
void dt_report_image_error(const struct dt_result *result, struct dt_text *out);

/* "50 ms, 25 steps of 2 ms and ..": the time of a whole batch of images, where target->image.known. gain: inserted after it. */
void dt_report_image(const struct dt_target *target, const struct dt_result *result,
                     const char *gain, struct dt_text *out);

/* The same of the session's best plan, with its gain over the default; false: the image's steps are not known. */
bool dt_report_whole_image(const struct dt_session *session, struct dt_text *out);

/* Appends the warnings about the samples, one line each. */
void dt_report_warnings(const struct dt_result *result, struct dt_text *out);

/* When the blocks of `plan` are faster than those of `one` but its first step is slower, appends a sentence with the reason.
 * Both may be NULL. */
bool dt_report_cold(const struct dt_result *plan, const struct dt_result *one,
                    const struct dt_target *target, struct dt_text *out);

/* ---- fits: lines fitted to measurements, as JSON and as a line of text each (docs/measuring.md, docs/json.md)
 *
 * Every fit comes with standard errors, the residual of each point, and its degrees of freedom; where the points do not
 * determine a line its numbers are null and "reason" says why. New references.
 */

/* Latency and bandwidth of each of a result's exchanges (NULL: none). */
json_t *dt_fits_exchanges(const json_t *exchanges);

/* Amdahl's law through the times of one workload at several rank counts. */
json_t *dt_fits_ranks(const double ranks[], const double seconds[], int n);

/* A step's time against its batch. */
json_t *dt_fits_batch(const double batches[], const double seconds[], int n);

/* Prints an object {"exchanges":[..], "ranks":{..}, "batch":{..}}; each field may be missing. Each fit is a formula with
 * its errors, then a sentence that says the same in words with the largest and the typical residual. */
void dt_fits_text(const json_t *fits, struct dt_text *out);

/* ---- run: the report of `run` on a plan, or on a sweep of plans: an object for each plan, and text (docs/json.md) */

/* The object of `run --json`; one: the 1-rank plan measured beside it, n is 0 without one. New reference. */
json_t *dt_record_run(const struct dt_result *result, const struct dt_result *one,
                      const struct dt_target *target);
/* A step of the sweep that was not measured, for the list of those objects. New reference. */
json_t *dt_record_left_out(const struct dt_sweep *sweep, int value, const char *reason);

/* The same as text, compared with `one` (n is 0: there is none). */
void dt_report_run(const struct dt_result *result, const struct dt_result *one,
                   const struct dt_target *target, struct dt_text *out);

/* Prints the result of `run`: the list of dt_record_run's objects (the only one by itself; those of a sweep with its curve
 * and fits), or the text about them. Frees the text. */
dt_status dt_print_run(const struct dt_sweep *sweep, json_t *list, struct dt_text *text,
                       bool json) DT_MUST_CHECK;

/* ---- mix: several tuned works as one: what each gained, and what their mix gains by their shares (stats.h, dt_stats_mix) */

struct dt_mix_work {
    char title[256];
    enum dt_verdict verdict;
    const char
        *spent; /* what an image costs by the work's objective: "time"; NULL: it was not tuned */
    struct dt_mix_part
        part; /* seconds: of an image, by the default plan; NAN where that has none */
};

struct dt_mix_work dt_mix_none(double share); /* not tuned */
/* What a session found, of a work with that share. */
struct dt_mix_work dt_mix_work(const struct dt_session *session, double share);

void dt_mix_text(const struct dt_mix_work works[], int n, struct dt_text *out);
json_t *dt_mix_json(const struct dt_mix_work works[], int n); /* docs/json.md; new reference */

/* ---- check: what `dittune check` prints, from the records of a run alone */

void dt_check_text(const struct dt_check_run *run, struct dt_text *out);
void dt_check_junit(const struct dt_check_run *run, struct dt_text *out);
void dt_check_github(const struct dt_check_run *run, struct dt_text *out); /* annotations */

/* The record makes the run fail (exit code 4); it leaves a question open (5). */
bool dt_check_fails(const struct dt_check_run *run, const struct dt_check_record *record);
bool dt_check_open_question(const struct dt_check_record *record);

/* ---- history: the formats of `dittune history` (docs/history.md) */

json_t *dt_timelines_json(const struct dt_timelines *lines); /* docs/json.md; new reference */
void dt_timelines_text(const struct dt_timelines *lines, struct dt_text *out);
void dt_timelines_csv(const struct dt_timelines *lines, struct dt_text *out);
void dt_timelines_openmetrics(const struct dt_timelines *lines, struct dt_text *out);

/* ---- report: what `dittune simulate` prints of its repeats (docs/json.md) */

/* The object of --json, without the name of the landscape; new reference to *object. */
dt_status dt_report_simulation(const struct dt_simulation *simulation, const struct dt_runs *runs,
                               json_t **object) DT_MUST_CHECK;

/* The same for people. */
void dt_report_simulation_text(const json_t *object, struct dt_text *out);

#endif
