/* SPDX-License-Identifier: MIT */
#include "tuner/cli/words.h"

#include "base/figures.h"

#include <math.h>
#include <string.h>

#define WIDE                                                                                       \
    2 /* times the lower end: from there on an interval does not tell how much faster a plan is */

const char *dt_words_role(enum dt_verdict verdict)
{
    return verdict == DT_VERDICT_FASTER || verdict == DT_VERDICT_UNOPPOSED ? "best" : "kept";
}

void dt_words_wide(double low, double high, struct dt_text *out)
{
    if (low > 0 && !(high <= WIDE * low))
        dt_text_add(out, " The interval is too wide to tell how much faster a plan is: a quieter "
                         "machine, and more sets (a larger --budget; 16 sets at most), narrow it.");
}

static void add_gain(const struct dt_words_verdict *what, struct dt_text *out)
{
    const struct dt_gain *gain = &what->gain;
    if (!gain->known)
        return;
    dt_text_add(out, ": %.3f times as fast as the default plan (", gain->ratio);
    if (!isnan(what->level))
        dt_text_add(out, "%.0f %% ", 100 * what->level);
    dt_text_add(out, "interval %.3f to %.3f)", gain->interval.low, gain->interval.high);
}

void dt_words_default(const struct dt_measured *fallback, struct dt_text *out)
{
    if (fallback == NULL || fallback->rule == NULL)
        return;
    dt_text_add(out,
                "The default plan breaks a rule of its space (%s): it was measured as it is, and "
                "its output ",
                fallback->rule);
    if (isnan(fallback->error))
        dt_text_add(out, "was not compared with the reference.");
    else
        dt_text_add(out, "differs from the reference by %.2g.", fallback->error);
}

void dt_words_verdict(const struct dt_words_verdict *what, struct dt_text *out)
{
    switch (what->verdict) {
    case DT_VERDICT_FASTER:
        dt_text_add(out, "Use %s", what->plan);
        add_gain(what, out);
        dt_text_add(out, ".");
        if (what->gain.known)
            dt_words_wide(what->gain.interval.low, what->gain.interval.high, out);
        break;
    case DT_VERDICT_TIE:
    case DT_VERDICT_DEFAULT:
        if (what->is_default)
            dt_text_add(out, "Keep the default plan, %s: no other plan was shown to be faster.",
                        what->plan);
        else
            dt_text_add(out, "Keep %s: it was not shown to differ from the default plan.",
                        what->plan);
        break;
    case DT_VERDICT_UNOPPOSED:
        dt_text_add(out, "Use %s: the default plan cannot be used%s%s.", what->plan,
                    what->unusable != NULL ? ", as " : "",
                    what->unusable != NULL ? what->unusable : "");
        break;
    default:
        dt_text_add(out, "Not decided yet: %s is kept for now, and another session may replace it.",
                    what->plan);
    }
    if (what->fallback != NULL && what->fallback->rule != NULL) {
        dt_text_add(out, " ");
        dt_words_default(what->fallback, out);
    }
}

void dt_words_tried(int tried, int64_t plans, const char *skipped, struct dt_text *out)
{
    if (tried == 0)
        dt_text_add(out, "not known");
    else if (plans > 0)
        dt_text_add(out, "%d of %lld plan%s", tried, (long long)plans, plans == 1 ? "" : "s");
    else
        dt_text_add(out, "%d of more plans than can be counted", tried);
    if (skipped != NULL)
        dt_text_add(out, "; left out for want of time: %s", skipped);
}

static void add_left_out(const struct dt_stored_load *load, const char *what, struct dt_text *out)
{
    bool one = load->left_out == 1;
    dt_text_add(out, "%s%d %.*s left out, in which %s%s%s ", out->size > 0 ? "; " : "",
                load->left_out, (int)(strlen(what) - one), what,
                load->program != NULL ? "other programs (" : "others",
                load->program != NULL ? load->program : "", load->program != NULL ? ")" : "");
    if (load->gpus_most > 0)
        dt_text_add(out, "used up to %.0f of the GPUs", load->gpus_most);
    else
        dt_text_add(out, "kept up to %.2g cores busy", load->left_out_most);
}

void dt_words_load(const struct dt_stored_load *load, struct dt_text *out)
{
    struct dt_text text = {0};
    const char *what = load->of != NULL && strcmp(load->of, "trials") == 0 ? "trials" : "sets";
    if (!load->known) {
        dt_text_add(out, "not known: it was not watched");
        return;
    }
    if (!isnan(load->cores))
        dt_text_add(&text,
                    "others kept %.2g cores busy in the %s that count (median; at most %.2g)",
                    load->cores, what, load->cores_most);
    if (load->stolen_most > 0)
        dt_text_add(&text, ", of which a hypervisor gave up to %.2g to other machines",
                    load->stolen_most);
    if (load->stalled_most > 0)
        dt_text_add(&text, "; threads waited for a core in up to %s of the time",
                    dt_figure_percent(load->stalled_most).text);
    if (load->left_out > 0)
        add_left_out(load, what, &text);
    dt_text_add(out, "%s", dt_text_at(&text));
    dt_text_fini(&text);
}
