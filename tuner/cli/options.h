/* SPDX-License-Identifier: MIT */
/* options - the command line: one table of options, one table of commands
 *
 * `--help`, docs/cli.md and the parser read the same rows. To add an option: a field here and a row in options.c;
 * to add a command: tuner/cli/commands/<name>.c and a row in commands.def.
 */
#ifndef DT_TUNER_CLI_OPTIONS_H
#define DT_TUNER_CLI_OPTIONS_H

#include "base/status.h"
#include "base/text.h"
#include "tuner/measure/job.h"

#include <stdbool.h>
#include <stdint.h>

#define DT_GIVEN_MOST 96

struct dt_options {
    const char *model, *dtype, *objective, *search, *against, *plan, *worker, *db;
    const char *weights, *input, *output,
        *raw; /* NULL: not given; so for every text but those with a default */
    struct dt_ints sizes, batches;
    struct dt_sweep sweep;
    int64_t devices;                                    /* most ranks; 0: the cores */
    int64_t budget_ns, max_bytes, max_latency_ns, seed; /* limits: 0 is none */
    int64_t processes;                                  /* fresh ones a plan is measured in */
    const char *landscape, *prior;                      /* tables, of simulate */
    const char *space;                                  /* a file, of space */
    const char *engine, *format, *program, *checkpoint; /* of lookup: a plan in an engine's flags */
    bool engines;
    const char *filter, *require, *junit; /* of check */
    const char *since;                    /* of history */
    double threshold, max_gain_loss;      /* shares: 0.03 */
    int64_t evals, repeats, jobs, spend_ns;
    const char *mode, *machine, *tier; /* of lookup */
    const char *backend;               /* auto, cpu or cuda */
    bool shared_devices;
    bool replay_noise, racing;
    int64_t keep_days; /* of db gc */
    bool salvage, yes; /* of db rebuild, of db gc */
    const char *facts; /* of doctor */
    bool no_wait;
    bool oversubscribe, json, list, quiet, renew, help, markdown, update, github;
    const char *given[DT_GIVEN_MOST]; /* names of the options on the command line, once each */
    int given_count;
    const char *const *rest; /* the words that are not options, rest_count of them */
    int rest_count;
};

struct dt_command {
    const char *name, *arguments, *doc;
    int words_min, words_max; /* how many words may follow */
    dt_status (*run)(const struct dt_options *options);
};
#define DT_COMMAND(name, word, arguments, least, most, doc)                                        \
    dt_status dt_command_##name(const struct dt_options *options);
#include "tuner/cli/commands.def"
#undef DT_COMMAND

/* Whether a text is the table's default, because the command line did not say another. */
bool dt_option_is_default(const char *option, const char *text);

/* It was on the command line. */
bool dt_option_given(const struct dt_options *options, const char *option);

extern const struct dt_command dt_commands[];
extern const int dt_command_count;

/* Fills *options with defaults and the arguments, and finds the command (the first word, or tune). argv is reordered in
 * place. DT_EUSAGE with a sentence: unknown option or command (and the nearest), missing or bad value, an option that
 * the command does not take. */
dt_status dt_options_parse(int argc, char **argv, struct dt_options *options,
                           const struct dt_command **command) DT_MUST_CHECK;

/* Help for one command. NULL: plain text is the short help, Markdown all of it. */
void dt_options_help(const struct dt_command *command, bool markdown, struct dt_text *out);

/* What `help` explains beside commands, NULL-ended; false: there is no such topic. */
extern const char *const dt_help_topics[];
bool dt_options_topic(const char *topic, struct dt_text *out);

/* The command of that name, DT_EUSAGE with the nearest name. topics: the nearest may be a topic of help. */
dt_status dt_command_find(const char *word, bool topics,
                          const struct dt_command **command) DT_MUST_CHECK;

#endif
