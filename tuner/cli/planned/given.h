/* SPDX-License-Identifier: MIT */
/* given - the one measured time that scales predictions: words of the user, or
 * an entry of the store */
#ifndef DT_TUNER_CLI_PLANNED_GIVEN_H
#define DT_TUNER_CLI_PLANNED_GIVEN_H

#include "base/json.h"
#include "db/stores.h"
#include "model/predict.h"

/* The question; a time must be for the same model, engine and device. */
struct dt_given_asked {
    const struct dt_stores *stores;
    const struct dt_predict_job *job;
    const char *engine;
};

struct dt_given {
    json_t *plan;              /* owned */
    double seconds;            /* time of a request, or of a step */
    bool of_step;              /* the time is a step's */
    struct dt_predict_job job; /* the measured job: the asked one, or the entry's */
    char entry[17];            /* its id; "": the user's own words */
};
void dt_given_fini(struct dt_given *given);

/* "6.71s", "ulysses=2 4.38s"; the id of an entry, or its beginning; or "store": of the entries that
 * it can be, the one whose number of tokens is nearest to what is asked. DT_EUSAGE: it is none of
 * these, or the entry is of another model, engine or device. */
dt_status dt_given_read(const char *text, const struct dt_given_asked *asked,
                        struct dt_given *given) DT_MUST_CHECK;

#endif
