/* SPDX-License-Identifier: MIT */
#include "tuner/session/report.h"

#include "tuner/session/verdict.h"

#include <math.h>
#include <string.h>

static void pad(struct dt_text *line, size_t width)
{
    do
        dt_text_add(line, " ");
    while (line->size < width && !line->failed);
}

/* "role  step  [interval]  objective  vs default  cold  memory  plan" */
static void add_row(const char *role, const struct dt_result *result,
                    const struct dt_entrant *entrant, const struct dt_target *target,
                    struct dt_text *out)
{
    struct dt_text line = {0};
    const struct dt_interval *interval = &result->summary.interval;
    dt_text_add(&line, "%s", role);
    pad(&line, 10);
    dt_report_time(result->summary.median, &line);
    pad(&line, 21);
    dt_text_add(&line, "[%.4g, %.4g]", interval->low * 1e3, interval->high * 1e3);
    pad(&line, 39);
    if (target->objective->one_batch == 0)
        dt_text_add(&line, "%.4g",
                    target->objective->shown(result->summary.median, result->batch, result->devices,
                                             target->sampler_steps));
    if (target->objective->one_batch == 0)
        pad(&line, 55);
    size_t base = target->objective->one_batch == 0 ? 55 : 39;
    if (entrant != NULL && entrant->ratio.pairs > 0)
        dt_text_add(&line, "%.3fx [%.3f, %.3f]", 1 / entrant->ratio.ratio,
                    1 / entrant->ratio.interval.high, 1 / entrant->ratio.interval.low);
    pad(&line, base + 24);
    dt_report_time(result->cold_seconds, &line);
    pad(&line, base + 34);
    dt_report_bytes(result->peak_bytes, &line);
    pad(&line, base + 44);
    dt_point_short(target->space, &result->point, &line);
    dt_text_add(out, "%s\n", dt_text_at(&line));
    dt_text_fini(&line);
}

static void add_header(const struct dt_target *target, struct dt_text *out)
{
    const struct dt_objective *objective = target->objective;
    dt_text_add(out, "%-10s%-11s%-18s", "", "step", "interval, ms");
    if (objective->one_batch == 0)
        dt_text_add(out, "%-16s", objective->unit);
    dt_text_add(out, "%-24s%-10s%-10s%s\n", "speed against default", "cold", "memory", "plan");
}

/* An entrant whose ratio is speed against the default; NULL otherwise. */
static const struct dt_entrant *judged(const struct dt_session *session,
                                       const struct dt_entrant *entrant)
{
    return dt_session_against_default(session) ? entrant : NULL;
}

static void add_known(const struct dt_session *session, const char *role, struct dt_text *out)
{
    const struct dt_result *result = dt_session_role(session, role);
    if (result == NULL)
        return;
    if (result->outcome != DT_TRIAL_OK && result->outcome != DT_TRIAL_SLOW)
        dt_text_add(out, "%-10s%s: %s\n", role, dt_outcome_text(result->outcome), result->cause);
    else
        add_row(role, result, judged(session, dt_session_entrant(session, role)), session->target,
                out);
}

/* The plan that was chosen to challenge the default, when it did not become the best. */
static const struct dt_entrant *candidate_of(const struct dt_session *session)
{
    for (int i = 0; i < session->entrant_count; i++)
        if (i != session->best && strcmp(session->entrants[i].role, "candidate") == 0 &&
            session->entrants[i].ratio.pairs > 0)
            return &session->entrants[i];
    return NULL;
}

static void add_candidate(const struct dt_session *session, struct dt_text *out)
{
    const struct dt_entrant *candidate = candidate_of(session);
    if (candidate != NULL)
        add_row("candidate", &candidate->result, judged(session, candidate), session->target, out);
}

static void add_tie(const struct dt_session *session, const struct dt_entrant *candidate,
                    struct dt_text *out)
{
    struct dt_noise noise = dt_session_noise(session);
    dt_text_add(out,
                "How sure: a tie. The best candidate ran %.3f to %.3f times as fast as the default "
                "in %d interleaved pairs, ",
                1 / candidate->ratio.interval.high, 1 / candidate->ratio.interval.low,
                candidate->ratio.pairs);
    if (dt_entrant_faster(candidate))
        dt_text_add(out,
                    "but the default run twice differed by up to %.2g %% in the same rounds: the "
                    "default stays.",
                    100 * noise.margin);
    else
        dt_text_add(out, "which includes 1: the default stays.");
}

/* What the rounds say of themselves. */
static void add_noise(const struct dt_session *session, struct dt_text *out)
{
    struct dt_noise noise = dt_session_noise(session);
    struct dt_text note = {0};
    if (noise.pairs > 0)
        dt_text_add(out,
                    "Noise: the default run twice differed by no more than %.2g %% in the same "
                    "rounds; smaller differences are ties.\n",
                    100 * noise.margin);
    dt_session_noise_note(session, &note);
    if (note.size > 0)
        dt_text_add(out, noise.pairs > 0 ? "warning: %s\n" : "Noise: not known, as %s.\n",
                    dt_text_at(&note));
    dt_text_fini(&note);
}

static void add_sureness(const struct dt_session *session, int tried, struct dt_text *out)
{
    const struct dt_entrant *best = session->best >= 0 ? &session->entrants[session->best] : NULL;
    const struct dt_entrant *candidate = candidate_of(session);
    const struct dt_result *known = dt_session_role(session, "default");
    bool default_runs = known == NULL || known->n > 0;
    enum dt_verdict verdict = session->verdict;
    if ((verdict == DT_VERDICT_FASTER && best == NULL) ||
        (verdict == DT_VERDICT_TIE && candidate == NULL))
        verdict = DT_VERDICT_NONE; /* cannot be */
    switch (verdict) {
    case DT_VERDICT_FASTER:
        dt_text_add(out,
                    "How sure: %d interleaved pairs in fresh processes say the best plan is %.3f "
                    "to %.3f times as fast as "
                    "the default.",
                    best->ratio.pairs, 1 / best->ratio.interval.high, 1 / best->ratio.interval.low);
        break;
    case DT_VERDICT_TIE:
        add_tie(session, candidate, out);
        break;
    case DT_VERDICT_DEFAULT:
        if (candidate != NULL)
            dt_text_add(
                out,
                "How sure: the best of the other plans tried ran %.3f to %.3f times as fast "
                "as the default in %d interleaved pairs: the default stays.",
                1 / candidate->ratio.interval.high, 1 / candidate->ratio.interval.low,
                candidate->ratio.pairs);
        else
            dt_text_add(out, "How sure: of the %d plans tried only the default was fit to be used.",
                        tried);
        break;
    case DT_VERDICT_UNOPPOSED:
        dt_text_add(out, "How sure: the default plan failed or breaks the limit; the fastest of "
                         "the others is kept, chosen and shown by the same samples.");
        break;
    default:
        dt_text_add(out,
                    "How sure: not yet. There was no final comparison, so the %s plan is kept as "
                    "provisional.",
                    default_runs ? "default" : "best measured");
        break;
    }
    dt_text_add(out, "\n");
}

static void add_throttled(const struct dt_session *session, struct dt_text *out)
{
    int n = 0, all = 0;
    for (int i = 0; i < session->count; i++) {
        n += session->trials[i].throttled_steps > 0;
        all += session->trials[i].all_throttled;
    }
    for (int i = 0; i < session->entrant_count; i++)
        n += session->entrants[i].result.throttled_steps > 0;
    if (n > 0)
        dt_text_add(out,
                    "warning: throttled: in %d trials or plans of the final comparison samples "
                    "were taken below 95 %% of the session's clock (in %d trials all of them)\n",
                    n, all);
}

static void add_ties(const struct dt_session *session, struct dt_text *out)
{
    for (int i = 0; i < session->tie_count && session->verdict == DT_VERDICT_FASTER; i++) {
        dt_text_add(out, "Not told apart from the best in the shoot-out: ");
        dt_point_short(session->target->space, &session->ties[i], out);
        dt_text_add(out, "\n");
    }
}

/* Which search it was, why, and why it stopped. */
static void add_search(const struct dt_session *session, struct dt_text *out)
{
    if (session->search[0] != '\0')
        dt_text_add(out, "Search: %s (%s)", session->search, session->why);
    if (session->search[0] != '\0' && session->belief.name[0] != '\0')
        dt_text_add(out, "; prior: %s", session->belief.name);
    if (session->stopped)
        dt_text_add(out, "\nThe search stopped before its time was over: %s", session->note);
    else if (session->note[0] != '\0')
        dt_text_add(out, "; at its end: %s", session->note);
    dt_text_add(out, "\n\n");
}

void dt_report_session(const struct dt_session *session, const char *lookup, struct dt_text *out)
{
    const struct dt_result *best = dt_session_best(session);
    int failed = 0, cut = 0;
    for (int i = 0; i < session->count; i++) {
        enum dt_outcome outcome = session->trials[i].outcome;
        cut += outcome == DT_TRIAL_INTERRUPTED;
        failed +=
            outcome != DT_TRIAL_OK && outcome != DT_TRIAL_SLOW && outcome != DT_TRIAL_INTERRUPTED;
    }
    const char *hardware = dt_target_hardware(session->target);
    dt_text_add(out, "\n%s; objective: %s%s%s\n%d of ", session->target->title,
                session->target->objective->doc, hardware != NULL ? "; on " : "",
                hardware != NULL ? hardware : "", session->count - cut);
    dt_target_plans(session->target, out);
    dt_text_add(out, " tried, %d failed, %.1f s\n", failed, session->elapsed_seconds);
    add_search(session, out);
    add_header(session->target, out);
    if (best != NULL)
        add_row("best", best,
                judged(session, session->best >= 0 ? &session->entrants[session->best] : NULL),
                session->target, out);
    add_known(session, "default", out);
    add_known(session, "baseline", out);
    if (session->has_against)
        add_known(session, "against", out);
    add_candidate(session, out);
    dt_text_add(out, "\n");
    add_sureness(session, session->count - cut, out);
    add_ties(session, out);
    add_noise(session, out);
    add_throttled(session, out);
    for (int i = 0; i < session->rig.reference_count; i++)
        if (session->rig.references[i].failed)
            dt_text_add(
                out, "warning: outputs at batch %d were not verified: the reference failed: %s\n",
                session->rig.references[i].batch, session->rig.references[i].cause);
    if (best != NULL)
        dt_report_cold(best, dt_session_role(session, "baseline"), session->target, out);
    if (best == NULL || lookup == NULL || session->limit_broken)
        return;
    if (session->kept_stored)
        dt_text_add(
            out,
            "Not stored: an earlier session decided this with a final comparison. Look that "
            "up: %s\n",
            lookup);
    else if (session->stored)
        dt_text_add(out, "Stored. Look it up: %s\n", lookup);
}
