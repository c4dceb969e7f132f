/* SPDX-License-Identifier: MIT */
#include "base/json.h"
#include "tuner/cli/database/verbs.h"
#include "tuner/cli/print.h"
#include "tuner/cli/signals.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static dt_status find_verb(const char *word, const struct dt_verb **verb)
{
    const char *names[16] = {NULL};
    dt_auto_text all = {0};
    for (int i = 0; i < dt_verb_count; i++) {
        names[i] = dt_verbs[i].name;
        dt_text_add(&all, "%s%s", i > 0 ? ", " : "", dt_verbs[i].name);
        if (strcmp(word, dt_verbs[i].name) == 0)
            *verb = &dt_verbs[i];
    }
    const char *near = dt_json_nearest(word, names);
    dt_status status = DT_OK;
    if (*verb == NULL && near != NULL)
        status = dt_fail(DT_EUSAGE, "'dittune db %s' is unknown, did you mean '%s'?", word, near);
    else if (*verb == NULL)
        status =
            dt_fail(DT_EUSAGE, "'dittune db %s' is unknown: there are %s", word, dt_text_at(&all));
    return status;
}

/* A signal ends the command at once: there is no session to end, and an interrupted commit leaves
 * the old file or the new one (tests/db/faults). */
static void leave_on_signal(int number)
{
    _exit(128 + number);
}

dt_status dt_command_db(const struct dt_options *options)
{
    const struct dt_verb *verb = NULL;
    int count = options->words.rest_count - 1;
    DT_TRY(find_verb(options->words.rest[0], &verb));
    if (count < verb->least)
        return dt_fail(DT_EUSAGE, "'dittune db %s' needs %s", verb->name, verb->arguments);
    if (count > verb->most)
        return dt_fail(DT_EUSAGE, "'dittune db %s' does not take the word '%s'", verb->name,
                       options->words.rest[1 + verb->most]);
    static const char *const choices[] = {"filter", "engine", "model", "pipeline"};
    for (size_t i = 0; i < sizeof choices / sizeof choices[0]; i++)
        if (dt_option_given(options, choices[i]) && !verb->chooses)
            return dt_fail(DT_EUSAGE,
                           "--%s is an option of 'dittune db show' and 'dittune db rm', not "
                           "of 'dittune db %s'",
                           choices[i], verb->name);
    dt_print_store(options->store);
    dt_signals_catch(leave_on_signal);
    setvbuf(stdout, NULL, _IOLBF, 0); /* so that earlier lines are not lost */
    const struct dt_choice choice = {
        options->words.rest + 1, count,
        options->filter,         options->upkeep.engine,
        options->upkeep.model,   options->task.at[DT_TASK_pipeline].text};
    return dt_verb_run(verb, (struct dt_verb_call){options, options->store, choice, NULL});
}
