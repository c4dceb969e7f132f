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

/* The command takes the option. */
bool dt_option_taken(const struct dt_command *command, const struct dt_option_row *row);

#endif
