/* SPDX-License-Identifier: MIT */
/* options - the command line: one table of options, one table of commands
 *
 * `--help`, docs/cli.md and the parser read the same rows. To add an option: a field here and a row
 * in options.c; to add a command: a file <name>.c in tuner/cli/commands and a row in commands.def.
 */
#ifndef DT_TUNER_CLI_OPTIONS_H
#define DT_TUNER_CLI_OPTIONS_H

#include "base/status.h"
#include "base/text.h"
#include "model/cards/card.h"
#include "tuner/session/tuning.h"

#include <stdbool.h>
#include <stdint.h>

#define DT_GIVEN_MOST 96
#define DT_REST_MOST  65 /* one more than any command takes */

/* Texts that were not given are NULL and numbers 0, unless options.c has a default. */

struct dt_sizes {
    int count;                                     /* 0: not given */
    int widths[DT_LIST_MAX], heights[DT_LIST_MAX]; /* pixels */
};

/* Several machines. */
struct dt_host_options {
    const char *list, *file, *launcher;
    bool mixed;
};

/* The work and its limits: options_job.h makes a struct dt_job of them. */
struct dt_job_options {
    const char *model, *dtype, *objective, *weights, *input;
    const char *plan;
    const char *backend;   /* auto, cpu or cuda */
    const char *workloads; /* tune: a file; NULL: none */
    struct dt_host_options hosts;
    struct dt_sizes sizes;
    struct dt_ints batches;
    int64_t devices; /* most ranks; 0: the cores */
    int64_t budget_ns, max_bytes, max_latency_ns, reserve_bytes, seed;
    bool shared_devices, oversubscribe, tune_nccl;
};

/* A foreign worker, and what is asked of it alone. */
struct dt_worker_options {
    struct dt_program program; /* its arguments: what follows -- */
    const char *engine;        /* whose worker is the program; NULL: the program was named */
    double max_error;
    int64_t start_ns, text_and_vae_ns;
};

/* run */
struct dt_run_options {
    struct dt_sweep sweep;
    int64_t processes; /* number of fresh processes for a plan */
    bool quick;        /* 8 samples: for checks of correctness and of scripts */
    const char *output, *raw, *trace;
};

/* An option that may be given several times. */
#define DT_TEXTS_MOST 8
struct dt_texts {
    int count;
    const char *at[DT_TEXTS_MOST];
};

/* A command line to tune: it becomes a worker and its arguments (`command_fill` in options.c). */
struct dt_command_options {
    const char *text, *space, *time, *unit;
    const char *prepare, *cleanup, *timeout, *retries, *accept, *leftovers;
    const char *output, *compare, *tolerance; /* for verification */
    struct dt_texts metrics, limits;
    bool shell, is_private;
    bool served;                            /* the text is that of --server */
    const char *ready, *request, *requests; /* options of --server */
};

struct dt_simulate_options {
    const char *landscape; /* the recorded table */
    int64_t evals, repeats, jobs, spend_ns;
    bool replay_noise, racing;
};

struct dt_lookup_options {
    const char *mode, *machine, *tier;
    double resolution;                         /* share; 0: not given */
    const char *engine, *program, *checkpoint; /* a plan in an engine's flags */
    const char *from;                          /* models: configurations */
    bool engines;
};

struct dt_plan_options {
    const char *model, *machine, *given, *against;
};

struct dt_check_options {
    const char *require, *junit;
    double threshold, max_gain_loss, resolution; /* shares: 0.03 */
    int64_t until_ns;                            /* 0: not given */
    bool update, github;
};

/* db */
struct dt_upkeep_options {
    int64_t keep_days;          /* gc */
    bool salvage;               /* rebuild */
    bool yes;                   /* gc, rm */
    const char *engine, *model; /* show, rm; the engine also of history */
};

/* How results and progress are printed. */
struct dt_print_options {
    const char *format;
    bool json, stream, list, quiet, verbose, markdown, man, help;
};

/* The words of the command line. */
struct dt_words {
    const char *given[DT_GIVEN_MOST]; /* names of its options, without duplicates */
    int given_count;
    const char *rest[DT_REST_MOST]; /* words other than options, rest_count of them */
    int rest_count;
    const char *const *line; /* all, NULL-ended; with the program */
};

#define DT_PIPELINE_ROOM 8192

struct dt_options {
    struct dt_job_options job;
    char pipeline[DT_PIPELINE_ROOM]; /* --pipeline with the file's folder, as the task has it */
    struct dt_task task;             /* but model, size, dtype and batch: dt_options_task has all */
    struct dt_worker_options worker;
    /* tune: but what only the run knows; simulate: its search and prior */
    struct dt_session_opts session;
    struct dt_run_options run;
    struct dt_command_options command;
    struct dt_simulate_options simulate;
    struct dt_lookup_options lookup;
    struct dt_plan_options plan;
    struct dt_check_options check;
    struct dt_upkeep_options upkeep;
    struct dt_print_options print;
    struct dt_words words;
    const char *db;                 /* --db, a list of stores; NULL: not given */
    const struct dt_stores *stores; /* the same, or the usual ones: what look-ups ask */
    const char *store;              /* the first of them, for all else */
    const char *filter;             /* check, history, db */
    const char *since;              /* history */
    const char *space;              /* space: a file */
    const char *facts;              /* doctor: a file */
    bool renew;                     /* machine */
    bool dry;                       /* tune, check */
    bool no_wait;
    int64_t wait_ns; /* 0: until the others are done */
    bool lossy;      /* settings that change the output beyond rounding, too */
};

struct dt_command {
    const char *name, *arguments, *doc;
    int words_min, words_max; /* number of words that may follow */
    dt_status (*run)(const struct dt_options *options);
};
#define DT_COMMAND(name, word, arguments, least, most, doc)                                        \
    dt_status dt_command_##name(const struct dt_options *options);
#include "tuner/cli/commands.def"
#undef DT_COMMAND

/* It was on the command line. */
bool dt_option_given(const struct dt_options *options, const char *option);

extern const struct dt_command dt_commands[];
extern const int dt_command_count;

/* Fills *options with defaults and the arguments, and finds the command (the first word, or tune).
 * Borrows argv. DT_EUSAGE with a sentence: unknown option or command (and the nearest), missing or
 * bad value, an option that the command does not take. */
dt_status dt_options_parse(int argc, const char *const *argv, struct dt_options *options,
                           const struct dt_command **command) DT_MUST_CHECK;

/* Help for one command. NULL: plain text is the short help, Markdown all of it. */
void dt_options_help(const struct dt_command *command, bool markdown, struct dt_text *out);

/* The manual page, in the macros of man(7). */
void dt_options_man(struct dt_text *out);

/* Topics of `help` other than commands, NULL-ended; false: there is no such topic. */
extern const char *const dt_help_topics[];
bool dt_options_topic(const char *topic, struct dt_text *out);

/* The command of that name, DT_EUSAGE with the nearest name. topics: the nearest
 * may be a topic of help. */
dt_status dt_command_find(const char *word, bool topics,
                          const struct dt_command **command) DT_MUST_CHECK;

#endif
