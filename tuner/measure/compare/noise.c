/* SPDX-License-Identifier: MIT */
/* The spread of the visits is taken from the median absolute deviation: a single spike among tens of visits does not
 * affect a median of ratios, so it must not make a machine count as too noisy, either. */
#include "tuner/measure/compare/noise.h"

#include <math.h>

static double spread(const struct dt_entrant *entrant)
{
    const struct dt_summary *summary = &entrant->result.summary;
    return entrant->result.samples.n > 0 ? summary->mad / summary->median : NAN;
}

struct dt_noise dt_noise_none(void)
{
    return (struct dt_noise){.ratio = NAN, .interval = {NAN, NAN}, .margin = NAN, .cv = NAN};
}

struct dt_noise dt_noise_of(const struct dt_entrant *first, const struct dt_entrant *twin)
{
    const struct dt_ratio *ratio = &twin->ratio;
    if (isnan(dt_judge_margin(ratio)))
        return dt_noise_none();
    struct dt_noise noise = {.pairs = ratio->pairs,
                             .sets = ratio->sets,
                             .ratio = ratio->ratio,
                             .interval = ratio->interval,
                             .margin = dt_judge_margin(ratio),
                             .cv = fmax(spread(first), spread(twin)),
                             .differs = ratio->interval.low > 1 || ratio->interval.high < 1};
    noise.noisy = noise.margin > DT_NOISE_MOST || noise.cv > DT_NOISE_MOST;
    return noise;
}

void dt_noise_note(const struct dt_noise *noise, struct dt_text *out)
{
    if (noise->margin > DT_NOISE_MOST)
        dt_text_add(out,
                    "the machine is not quiet: differences below %.1f %% are lost in the noise",
                    100 * noise->margin);
    else if (noise->noisy)
        dt_text_add(
            out, "the machine is not quiet: the visits of one and the same plan spread by %.1f %%",
            100 * noise->cv);
    if (noise->differs)
        dt_text_add(out,
                    "%sthe same plan differed from itself, its second copy ran %.3f to %.3f times "
                    "as long: place or order have an effect",
                    noise->noisy ? "; " : "", noise->interval.low, noise->interval.high);
}
