/* SPDX-License-Identifier: MIT */
#include "tuner/cli/alone.h"

#include "tuner/cli/print.h"
#include "tuner/machine/machine.h"

static void note(const char *sentence)
{
    dt_print_note("%s", sentence);
}

/* The load is an average over a minute: after a wait it still includes the session that was waited for. */
dt_status dt_alone(const struct dt_options *options)
{
    struct dt_text what = {0};
    bool waited = false;
    DT_TRY(dt_lock_measuring(!options->no_wait, note, &waited));
    if (!waited && !options->print.quiet && dt_doctor_loaded(&what))
        dt_print_note("warning: %s", dt_text_at(&what));
    dt_text_fini(&what);
    return DT_OK;
}
