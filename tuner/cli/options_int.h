/* SPDX-License-Identifier: MIT */
/* options_int - the rows of the options, read by the parser and by the help */
#ifndef DT_TUNER_CLI_OPTIONS_INT_H
#define DT_TUNER_CLI_OPTIONS_INT_H

#include "tuner/cli/options.h"

#include <stddef.h>

struct dt_option_row {
    const char *name,
        *hint; /* hint: form of the value, its lower-case words what shells complete; NULL for a switch */
    const char *commands; /* words of the commands that take it; NULL: all */
    const char *fallback; /* parsed first; NULL: zero */
    dt_status (*parse)(const char *option, const char *text, void *field);
    size_t offset;
    const char *doc;
};

#define TARGETS   "tune run noise space explain lookup"         /* prepare a job */
#define COMMANDED "tune run noise explain lookup machine check" /* take --command */

extern const struct dt_option_row dt_option_rows[];
extern const int dt_option_row_count;

/* DT_EUSAGE with a sentence when an option that was given has no effect beside another one. */
dt_status dt_options_effect(const struct dt_command *command,
                            const struct dt_options *options) DT_MUST_CHECK;

/* The word is one of the words, which blanks separate. */
bool dt_has_word(const char *words, const char *word);

/* The command takes the option. */
bool dt_option_taken(const struct dt_command *command, const struct dt_option_row *row);

/* Finds the worker of --engine. DT_EUSAGE when there is none; explain answers by the engine's file then, and has no program. */
dt_status dt_options_engine(const struct dt_command *command,
                            struct dt_options *options) DT_MUST_CHECK;

/* Makes a worker of --command. DT_EUSAGE when a part of it is missing, or stands alone. */
dt_status dt_options_command(struct dt_options *options) DT_MUST_CHECK;

#endif
