/* SPDX-License-Identifier: MIT */
#include "tuner/cli/alone.h"

#include "tuner/cli/print.h"
#include "tuner/machine/machine.h"

static void note_sentence(const char *sentence)
{
    dt_print_note("%s", sentence);
}

static void warn_by_rule(const struct dt_options *options, const char *rule)
{
    dt_auto_text what = {0};
    if (!options->print.quiet && dt_doctor_warns(rule, &what))
        dt_print_note("warning: %s", dt_text_at(&what));
}

/* The load is an average over a minute: after a wait it still includes the session that was waited
 * for. A dry run measures nothing and neither waits nor is disturbed. */
dt_status dt_alone(const struct dt_options *options)
{
    const int64_t patience_ns = options->no_wait       ? 0
                                : options->wait_ns > 0 ? options->wait_ns
                                                       : INT64_MAX;
    bool waited = options->dry;
    if (!options->dry)
        DT_TRY(dt_lock_measuring(patience_ns, note_sentence, &waited));
    if (!waited)
        warn_by_rule(options, "loaded");
    warn_by_rule(options, "core-quota");
    return DT_OK;
}
