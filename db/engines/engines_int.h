/* SPDX-License-Identifier: MIT */
/* Shared by the files of db/engines: a parsed engine file, and the values of
 * its expressions' names. */
#ifndef DT_DB_ENGINES_ENGINES_INT_H
#define DT_DB_ENGINES_ENGINES_INT_H

#include "db/engines/engines.h"
#include "model/cards/card.h"
#include "space/expr/expr.h"

enum { DT_ENGINE_NAMES = 64, DT_ENGINE_RULES = 32, DT_ENGINE_DEGREES = 12 };
enum { DT_ENGINE_CHOICES = 10, DT_ENGINE_LABELS = 24 };

struct dt_engine_rule {
    struct dt_expr *expr;
    const char *sentence; /* the root's text */
    /* the root's list: transformers that it was seen with, and counts for; NULL: all */
    const json_t *classes;
};

/* A parameter whose values are words; the first is what the engine does by itself. */
struct dt_engine_choice {
    int name, count; /* index of the name; labels */
    const char *labels[DT_ENGINE_LABELS];
    /* the root's object, may be NULL: words that change the output, each with the reason */
    json_t *lossy;
    json_t *does; /* likewise: words whose plan is marked with what it does */
    unsigned settings[DT_ENGINE_LABELS]; /* bits of model/predict.h: what a word does to memory */
    unsigned alone;                      /* the same for the first word on one device */
};

/* Names in this order: the workload's, the engine's parameters, its choices, processes, starts. */
struct dt_engine {
    json_t *root; /* owned */
    const char *name, *version;
    const char *names[DT_ENGINE_NAMES];
    int count, parameters, first; /* names in all; parameters, from index first on */
    int degrees[DT_ENGINE_DEGREES], degree_count; /* names whose product is the ranks */
    struct dt_engine_rule rules[DT_ENGINE_RULES];
    int rule_count;
    struct dt_engine_choice choices[DT_ENGINE_CHOICES];
    int choice_count;
    const char *const *labels[DT_ENGINE_NAMES]; /* the labels of names that are choices */
    int label_counts[DT_ENGINE_NAMES];
};

/* Values of the names; known: those that the request gives. */
struct dt_values {
    int64_t at[DT_ENGINE_NAMES];
    bool known[DT_ENGINE_NAMES];
    bool open[DT_ENGINE_CHOICES]; /* the plan does not name it */
    struct dt_card card;          /* the model's card; without a name: none */
    /* that joint_text_tokens stands for; a rule must hold with each; none: its value */
    struct dt_lengths texts;
    const char *program, *checkpoint;
    int hosts, slots; /* the request's */
    bool placeholder; /* a placeholder for the user's value was used */
};

/* engine.c: the files, sorted. */
struct dt_engine_file {
    const char *file; /* "xdit-0.4.5" */
    const unsigned char *text;
};
extern const struct dt_engine_file dt_engine_files[];
extern const int dt_engine_file_count;
dt_status dt_engine_find(const char *name, const struct dt_engine_file **file) DT_MUST_CHECK;
dt_status dt_engine_read(const char *text, const char *what,
                         struct dt_engine **engine) DT_MUST_CHECK;
/* Finds and reads. */
dt_status dt_engine_open(const char *name, struct dt_engine **engine) DT_MUST_CHECK;
/* Its file has words for a start on several hosts. */
bool dt_engine_spans(const struct dt_engine *engine);
void dt_engine_free(struct dt_engine *engine);
DT_FREE_AT(dt_engine_free, struct dt_engine)
/* Compiles an expression, in which words in quotes are those of choices. */
dt_status dt_engine_compile(const struct dt_engine *engine, const char *text,
                            struct dt_expr **expr) DT_MUST_CHECK;
const struct dt_engine_choice *dt_choice_named(const struct dt_engine *engine,
                                               const char *name);            /* NULL: none */
int dt_choice_find(const struct dt_engine_choice *choice, const char *word); /* -1: none */
/* Appends a value, which it owns. */
dt_status dt_engine_note(json_t *notes, json_t *value) DT_MUST_CHECK;
/* A new string of the text; DT_EUSAGE: what it is, and that it is not UTF-8. */
dt_status dt_engine_string(const char *text, const char *what, json_t **string) DT_MUST_CHECK;

/* values.c: from the request; then the rules. */
dt_status dt_values_read(const struct dt_engine *engine, const struct dt_export_request *request,
                         struct dt_values *values) DT_MUST_CHECK;
/* Ranks of all replicas. */
int64_t dt_values_ranks(const struct dt_engine *engine, const struct dt_values *values);
/* The line that is made next, from 0 on. */
void dt_values_replica(const struct dt_engine *engine, struct dt_values *values, int replica);
/* No rule forbids the plan. A choice that it leaves open gets the first word that changes no output
 * and breaks no rule. Sets no sentence. */
bool dt_values_legal(const struct dt_engine *engine, struct dt_values *values);
/* The same, with the sentence of what forbids it, and notes of rules that do
 * not decide; NULL: none. */
dt_status dt_values_check(const struct dt_engine *engine, struct dt_values *values,
                          json_t *notes) DT_MUST_CHECK;
/* Adds the sentences that are not there yet of rules on the device that the plan breaks. */
void dt_values_barred(const struct dt_engine *engine, const struct dt_values *values,
                      struct dt_text *why);
/* The row is for the model's class: it has no "classes", or they have it. */
bool dt_row_counts(const json_t *classes, const struct dt_values *values);
/* The value of an expression; DT_EUSAGE when it needs an unknown name. */
dt_status dt_values_eval(const struct dt_engine *engine, const char *text,
                         const struct dt_values *values, int64_t *result) DT_MUST_CHECK;
/* The row applies: it has no "when", or the condition holds; false when it uses an unknown name. */
dt_status dt_values_when(const struct dt_engine *engine, const json_t *row,
                         const struct dt_values *values, bool *holds) DT_MUST_CHECK;
/* The word of a choice of that name; NULL: it is none. */
const char *dt_choice_word(const struct dt_engine *engine, const char *name, size_t size,
                           const struct dt_values *values);
/* The name is a choice, and the value one of its words. */
bool dt_choices_take(const struct dt_engine *engine, const char *name, const json_t *value);
/* Adds the words that are not the engine's own. */
dt_status dt_choices_add(const struct dt_engine *engine, const struct dt_values *values,
                         json_t *plan) DT_MUST_CHECK;

/* export.c: text with {expressions} replaced, appended. */
dt_status dt_words_fill(const struct dt_engine *engine, const char *text, struct dt_values *values,
                        struct dt_text *out) DT_MUST_CHECK;
dt_status dt_words_argv(const struct dt_engine *engine, struct dt_values *values,
                        json_t *argv) DT_MUST_CHECK;
dt_status dt_words_environment(const struct dt_engine *engine, struct dt_values *values,
                               json_t *environment) DT_MUST_CHECK;
dt_status dt_words_kwargs(const struct dt_engine *engine, struct dt_values *values,
                          json_t *kwargs) DT_MUST_CHECK;
/* Appends the words that are the plan's, in one line for sh to split; DT_EUSAGE: that cannot
 * be, and what to use. */
dt_status dt_flags_write(const struct dt_engine *engine, struct dt_values *values,
                         struct dt_text *out) DT_MUST_CHECK;
/* Appends the engine's deploy file; DT_EUSAGE: it has none, and who has. */
dt_status dt_yaml_write(const struct dt_engine *engine, struct dt_values *values,
                        struct dt_text *out) DT_MUST_CHECK;
/* Notes the words that were added, and what changes the output. */
dt_status dt_choices_note(const struct dt_engine *engine, const struct dt_values *values,
                          json_t *notes) DT_MUST_CHECK;

#endif
