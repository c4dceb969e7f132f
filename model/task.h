/* SPDX-License-Identifier: MIT */
/* task - what is asked of a model: its name, the image's size, steps, text, .. as typed values
 *
 * task.def has a row for each field. The command line, hello's "job", the key of an entry,
 * look-up's question, titles and printed command lines follow from the rows. Texts are borrowed.
 */
#ifndef DT_MODEL_TASK_H
#define DT_MODEL_TASK_H

#include "base/json.h"
#include "base/status.h"
#include "base/text.h"
#include "model/cards/card.h"

#include <stdbool.h>
#include <stdint.h>

enum dt_task_field {
#define DT_FIELD(name, option, kind, before, after, whose, values, help) DT_TASK_##name,
#include "model/task.def"
    DT_TASK_FIELDS
};

enum dt_task_kind {
    DT_TASK_TEXT,
    DT_TASK_DTYPE,   /* a text: "bfloat16" */
    DT_TASK_LENGTHS, /* "17,37" */
    DT_TASK_SCALE,   /* a real number */
    DT_TASK_COUNT,   /* numbers above 0, from here on */
    DT_TASK_SIDE,
    DT_TASK_BATCH
};

enum dt_task_whose { DT_TASK_EVERY, DT_TASK_IMAGE, DT_TASK_ENGINE, DT_TASK_LEARNED };

struct dt_task_row {
    const char *name, *option;
    enum dt_task_kind kind;
    const char *before, *after; /* NULL: not in titles */
    enum dt_task_whose whose;
};
extern const struct dt_task_row dt_task_rows[DT_TASK_FIELDS];

struct dt_task {
    struct dt_task_value {
        bool given;
        const char *text; /* or: */
        struct dt_lengths lengths;
        double scale;
        int64_t count;
    } at[DT_TASK_FIELDS];
};

/* The value is of the field's kind; NULL, no lengths and numbers below 1 unset it. */
void dt_task_set_text(struct dt_task *task, enum dt_task_field field, const char *text);
void dt_task_set_count(struct dt_task *task, enum dt_task_field field, int64_t count);

/* A value as the text that dt_task_set_ takes: "37", "17,37"; "" where there is none. */
void dt_task_spell(const struct dt_task *task, enum dt_task_field field, struct dt_text *out);

/* The name of a field given that the built-in network has not; guidance is none, which is yes or no
 * there. NULL: it has none. */
const char *dt_task_of_engine(const struct dt_task *task);

/* Both have the same value of the field, or none. */
bool dt_task_same(const struct dt_task *a, const struct dt_task *b, enum dt_task_field field);

/* The fields given, new reference. DT_ENOMEM. */
dt_status dt_task_json(const struct dt_task *task, json_t **job) DT_MUST_CHECK;
/* The fields that the object has with a value of their kind, and no others; it may be NULL. */
void dt_task_read(const json_t *job, struct dt_task *task);

/* Appends "flux, 1024 x 1024 px, 28 steps": the fields that the object has. */
void dt_task_title(const json_t *job, struct dt_text *out);
/* Appends " --model flux --size 1024x1024"; obeys: array of the names to print; NULL: none.
 * learned: also the fields that are options of look-ups alone. */
void dt_task_options(const json_t *job, const json_t *obeys, bool learned, struct dt_text *out);

#endif
