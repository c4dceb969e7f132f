/* SPDX-License-Identifier: MIT */
/* ranking - every plan that an engine takes of a published model, predicted for
 * a machine, best first
 *
 *     DT_CLEANUP(dt_ranking_fini) struct dt_ranking ranking = {.key = NULL};
 *     DT_TRY(dt_ranking_read(options, &ranking));
 *     if (ranking.count > 0 && ranking.rows[0].fit != DT_FITS_NOT)
 *         ..                                            the best is ranking.rows[0].plan
 */
#ifndef DT_TUNER_CLI_PLANNED_RANKING_H
#define DT_TUNER_CLI_PLANNED_RANKING_H

#include "db/engines/engines.h"
#include "model/predict.h"
#include "tuner/cli/options.h"

#define DT_RANKING_CLOSE 1.05 /* a documented plan within it is enough */

struct dt_ranked {
    const json_t *plan; /* borrowed */
    struct dt_degrees degrees;
    struct dt_prediction prediction;
    double factor; /* factor of the 80 % interval */
    double value;  /* the objective's: less is better */
    enum dt_fit fit;
    int replicas;
    size_t index; /* the plan's among the engine's, without settings */
    /* for a plan that lacks memory: the same with the cheapest setting that
     * makes it fit; NULL: none */
    const struct dt_ranked *mended;
};

/* The one measured time that scales the others. */
struct dt_anchor {
    bool given;
    double scale;                    /* measured over predicted; 1: none was given */
    struct dt_prediction prediction; /* the measured plan's */
    struct dt_degrees degrees;       /* its degrees */
    bool compiles;                   /* the plan is compiled */
    bool elsewhere;                  /* it was measured at another size */
    bool is_request;                 /* it is a request as it is asked for */
    char entry[17]; /* the id of the store's entry that has it; "": the user's words */
};

struct dt_ranking {
    struct dt_card card;
    struct dt_machine_card machine;
    struct dt_predict_job job;
    const char *engine, *objective;
    double device_bytes;
    struct dt_engine_ways ways;
    json_t *key, *plans, *variants; /* with settings, of those that do not fit; NULL: all do */
    struct dt_ranked *rows;         /* best first, those that do not fit last */
    struct dt_ranked *mended;       /* by index */
    size_t count;
    bool set;               /* nothing fits without a setting: rows have theirs */
    bool lacks;             /* some plan does not fit as it is: */
    struct dt_ranked least; /* the one of these, settings included, that needs the least memory */
    /* plans of the engine that the device cannot run, and the sentences that say why */
    size_t left_out;
    struct dt_text left_why;
    struct dt_anchor anchor;
    json_t *known; /* plans known from the engine's documentation; NULL: none */
    /* words of its plan, which all plans have where the engine takes them */
    json_t *words;
    struct dt_ranked documented; /* its plan; of plan NULL: there is none */
};

/* Reads the options of `dittune plan`. The ranking must not move; owned by the caller
 * also after an error. */
dt_status dt_ranking_read(const struct dt_options *options,
                          struct dt_ranking *ranking) DT_MUST_CHECK;
/* The same of a card and a machine that the ranking has already. */
dt_status dt_ranking_open(const struct dt_options *options,
                          struct dt_ranking *ranking) DT_MUST_CHECK;
void dt_ranking_fini(struct dt_ranking *ranking);

/* Ranks the same plans again, for a copy whose job, machine or objective was changed. The copy's
 * rows are its own, which dt_ranking_drop frees; all else is the original's. */
dt_status dt_ranking_again(struct dt_ranking *copy) DT_MUST_CHECK;
void dt_ranking_drop(struct dt_ranking *copy);

/* The row is the documented plan. */
bool dt_ranking_is_documented(const struct dt_ranking *ranking, const struct dt_ranked *row);
/* The documented plan is within DT_RANKING_CLOSE of the best. */
bool dt_ranking_is_enough(const struct dt_ranking *ranking);

/* Predicts one plan, which is borrowed. */
void dt_ranking_fill(const struct dt_ranking *ranking, const json_t *plan, struct dt_ranked *row);

/* Devices of all hosts. */
int dt_ranking_devices(const struct dt_machine_card *machine);
struct dt_plans_wanted dt_ranking_wanted(const struct dt_ranking *ranking);

/* It has what few measured rows tell of: PipeFusion, several hosts, weights that are gathered or
 * come from a host's memory. */
bool dt_ranked_unsure(const struct dt_ranked *row);

/* The plan is compiled. */
bool dt_ranked_compiles(const json_t *plan);

#endif
