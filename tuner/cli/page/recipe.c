/* SPDX-License-Identifier: MIT */
/* A session as a page of a cookbook, in the order of the recipes of vLLM-Omni and SGLang: hardware
 * and versions, command, protocol, times by stage, memory, and what was not measured. All times are
 * in milliseconds, as in other recipes. */
#include "tuner/cli/page/page_int.h"

#include "base/quote.h"
#include "db/engines/engines.h"
#include "model/network.h"
#include "model/task.h"
#include "space/json/json.h"
#include "tuner/cli/export.h"
#include "tuner/cli/words.h"
#include "tuner/session/session.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MS 1e3

/* ---- the command */

/* A block of code whose text may be of foreign origin: no line of it ends the block. */
static void code_add(const char *language, const char *text, struct dt_text *out)
{
    const char *fence = strstr(text, "```") != NULL ? "~~~~~~" : "```";
    size_t size = strlen(text);
    dt_text_add(out, "%s%s\n%s%s%s\n\n", fence, language, text,
                size > 0 && text[size - 1] == '\n' ? "" : "\n", fence);
}

/* The plan in the engine's own words, where it has a file and the plan keeps its rules. */
static bool engine_add(const struct page_view *view, const struct dt_result *best,
                       const char *engine, struct dt_text *out)
{
    const struct dt_identity *identity = &view->session->target->identity;
    DT_CLEANUP(dt_export_fini) struct dt_export export = {.json = NULL};
    json_auto_t *plan = dt_point_json(view->session->target->space, &best->point);
    const struct dt_export_request request = {.engine = engine,
                                              .form = DT_FORM_ARGV,
                                              .plan = plan,
                                              .key = identity->key,
                                              .hard = identity->hard};
    if (!dt_engine_known(engine) || dt_export(&request, &export) != DT_OK)
        return false;
    dt_auto_text line = {0}, text = {0};
    const char *name;
    json_t *value;
    json_object_foreach(json_object_get(export.json, "environment"), name, value)
    {
        dt_text_clear(&text);
        dt_json_plain(value, &text);
        dt_text_add(&line, "export %s=", name);
        dt_quote(dt_text_at(&text), &line);
        dt_text_add(&line, "\n");
    }
    dt_text_add(&line, "%s", dt_text_at(&export.text));
    code_add("bash", dt_text_at(&line), out);
    const json_t *keywords = dt_export_keywords(&export);
    dt_text_clear(&text);
    if (keywords != NULL && dt_json_text(keywords, &text) == DT_OK) {
        dt_text_add(out, "with these keywords in the program:\n\n");
        code_add("json", dt_text_at(&text), out);
    }
    const char *lines = json_string_value(json_object_get(export.json, "python"));
    if (lines != NULL) {
        dt_text_add(out, "and these lines behind what makes the pipeline, `pipe`:\n\n");
        code_add("python", lines, out);
    }
    return true;
}

/* The text without the folder of the user's own file, which is nobody else's. */
static void published_add(const struct dt_target *target, const char *text, struct dt_text *out)
{
    const json_t *job = json_object_get(target->identity.key, "job");
    const char *file = dt_json_text_at(job, "pipeline"), *slash = strrchr(file, '/');
    size_t folder = slash != NULL ? (size_t)(slash - file) + 1 : 0;
    const char *at = folder > 0 ? strstr(text, file) : NULL;
    if (at != NULL)
        dt_text_add_bytes(out, text, (size_t)(at - text));
    dt_text_add(out, "%s", at != NULL ? at + folder : text);
}

/* The session's question, as far as its key has it, and its worker's arguments. */
static void question_add(const struct dt_target *target, const char *engine, struct dt_text *out)
{
    const json_t *job = json_object_get(target->identity.key, "job"), *word;
    size_t k;
    json_auto_t *names = json_array();
    dt_text_add(out, "dittune%s%s", target->foreign ? " --engine " : " --model ",
                target->foreign ? engine : dt_json_text_at(target->identity.key, "model"));
    for (enum dt_task_field i = 0; i < DT_TASK_FIELDS; i++)
        if (dt_task_rows[i].whose != DT_TASK_LEARNED)
            json_array_append_new(names, json_string(dt_task_rows[i].name));
    const json_t *key = target->identity.key;
    if (target->foreign)
        dt_task_options(job, names, false, out);
    else
        dt_text_add(out, " --size %lldx%lld --dtype %s",
                    DT_LATENT_PIXELS * (long long)dt_json_integer_at(key, "width"),
                    DT_LATENT_PIXELS * (long long)dt_json_integer_at(key, "height"),
                    dt_json_text_at(key, "dtype"));
    dt_text_add(out, " --devices %lld --objective %s",
                (long long)dt_json_integer_at(target->identity.key, "devices"),
                target->objective->name);
    json_array_foreach(json_object_get(target->worker.started, "arguments"), k, word)
    {
        dt_text_add(out, k == 0 ? " -- " : " ");
        dt_quote(json_string_value(word), out);
    }
}

static void command_add(const struct page_view *view, const struct dt_result *best,
                        struct page_pen *pen)
{
    const struct dt_target *target = view->session->target;
    const char *engine = dt_json_text_at(target->identity.hard, "engine");
    dt_auto_text text = {0}, line = {0};
    dt_text_add(pen->out, "## Command\n\n");
    dt_text_add(&text, "The plan: ");
    dt_page_plan(view, &best->point, &text);
    dt_pen_say(pen, dt_text_at(&text));
    if (target->foreign && !engine_add(view, best, engine, pen->out))
        dt_pen_say(pen, "dittune has no file of this engine's own flags.");
    dt_text_clear(&text);
    question_add(target, engine, &text);
    published_add(target, dt_text_at(&text), &line);
    dt_text_add(pen->out, "It was tuned by this line, with a `--budget`:\n\n");
    code_add("bash", dt_text_at(&line), pen->out);
}

/* ---- the machine */

/* Adds the parts of the fingerprint that people compare: no hashes, and
 * nothing of dittune's own. */
static void machine_add(const struct page_view *view, struct page_pen *pen)
{
    static const char *const hidden[] = {"topology", "calls", "method", NULL};
    const struct dt_fingerprint *machine = &view->session->fingerprint;
    const json_t *parts[] = {machine->hard, machine->soft};
    const char *name;
    json_t *value;
    dt_pen_table(pen, "", "", "property|value");
    for (int i = 0; i < 2; i++)
        json_object_foreach((json_t *)parts[i], name, value)
        {
            dt_auto_text text = {0};
            if (dt_text_index(name, hidden) >= 0 || json_is_object(value) || json_is_array(value))
                continue;
            dt_json_plain(value, &text);
            dt_pen_cell(pen, "%s", name);
            dt_pen_cell(pen, "%s", dt_text_at(&text));
        }
    dt_pen_end(pen);
}

/* ---- the protocol */

static void item_add(struct page_pen *pen, const char *text)
{
    if (text[0] == '\0')
        return;
    dt_text_add(pen->out, "- ");
    dt_pen_text(pen, text);
    dt_text_add(pen->out, "\n");
}

static void fact_item(const struct page_view *view, struct page_pen *pen, const char *name)
{
    dt_auto_text text = {0}, item = {0};
    dt_page_fact(view, name, &text);
    if (text.size > 0)
        dt_text_add(&item, "%s: %s", name, dt_text_at(&text));
    item_add(pen, dt_text_at(&item));
}

static void protocol_add(const struct page_view *view, const struct dt_result *best,
                         struct page_pen *pen)
{
    const struct dt_session *session = view->session;
    const struct dt_image_work *image = &session->target->image;
    const struct dt_result *trial = dt_session_trial(session, &best->point);
    dt_auto_text text = {0};
    dt_text_add(pen->out, "## Protocol\n\n");
    dt_text_add(&text,
                "Times: of the slowest rank; medians of %d samples of one %s each, with %.0f %% "
                "intervals.",
                best->samples.n, image->step != NULL ? image->step : "update (denoising step)",
                100 * dt_page_level(session));
    item_add(pen, dt_text_at(&text));
    dt_text_clear(&text);
    dt_text_add(&text, "Warm-up: the exact shapes, until the time was steady");
    if (trial != NULL && trial->report.warm_up_steps > 0)
        dt_text_add(&text, ", %d steps before the first sample", trial->report.warm_up_steps);
    dt_text_add(&text, "; the first one has a column of its own.");
    if (!image->starts)
        item_add(pen, dt_text_at(&text));
    dt_text_clear(&text);
    const struct dt_stored_load load = dt_session_load(session);
    if (dt_session_compared(session)) {
        dt_text_add(&text, "Comparison: plans in turn, side by side, in %d sets of fresh processes",
                    session->finals.sets.count);
        if (load.known)
            dt_text_add(&text, ", of which %d were undisturbed",
                        dt_sets_quiet(&session->finals.sets));
        dt_text_add(&text, "; a speed is the ratio of pairs of one set.");
    } else {
        dt_text_add(&text, "Comparison: too few sets of fresh processes were completed.");
    }
    item_add(pen, dt_text_at(&text));
    fact_item(view, pen, "Output");
    fact_item(view, pen, "Load by others");
    fact_item(view, pen, "Noise floor");
    dt_text_add(pen->out, "\n");
}

/* ---- times and memory */

static void row_add(const struct page_view *view, struct page_pen *pen, const char *role,
                    const struct dt_result *result, const struct dt_ratio *speed)
{
    const struct dt_image_work *image = &view->session->target->image;
    const struct dt_result *trial = dt_session_trial(view->session, &result->point);
    double step = result->summary.median, rest = (double)image->text_and_vae_ns / 1e6;
    int steps = image->is_image ? 1 : image->steps;
    bool whole = image->known && step > 0;
    bool stages = whole && !image->is_image;
    double request =
        whole ? dt_target_image_seconds(view->session->target, step, result->batch) : NAN;
    dt_pen_cell(pen, "%s", role);
    dt_auto_text plan = {0};
    dt_page_plan(view, &result->point, &plan);
    dt_pen_cell(pen, "%s", dt_text_at(&plan));
    dt_pen_cell(pen, "%d", result->devices);
    dt_pen_figure(pen, MS * request);
    dt_pen_figure(pen, stages && image->text_and_vae_ns > 0 ? rest * result->batch : NAN);
    dt_pen_figure(pen, stages ? MS * steps * step : NAN);
    dt_pen_cell(pen, stages ? "%d" : "-", steps);
    dt_pen_figure(pen, MS * step);
    dt_pen_range(pen, MS * result->summary.interval.low, MS * result->summary.interval.high);
    if (speed != NULL && speed->pairs > 0 && speed->ratio == 1 && speed->interval.low == 1)
        dt_pen_cell(pen, "1");
    else if (speed != NULL && speed->pairs > 0) {
        dt_auto_text range = {0};
        dt_figure_range(1 / speed->interval.high, 1 / speed->interval.low, &range);
        dt_pen_cell(pen, "%.3f (%s)", 1 / speed->ratio, dt_text_at(&range));
    } else
        dt_pen_cell(pen, "-");
    dt_pen_figure(pen, trial != NULL ? MS * trial->facts.cold_seconds : NAN);
    const struct dt_rig_load *load =
        trial != NULL && trial->load_count > 0 ? &trial->loads[0] : NULL;
    dt_pen_figure(pen, load != NULL ? (double)load->ns / 1e6 : NAN);
    dt_pen_figure(pen, result->facts.peak_bytes > 0 ? (double)result->facts.peak_bytes / (1 << 20)
                                                    : NAN);
}

/* The rank whose device has the least memory left while the plan is resident; -1: the
 * driver was not asked. */
static int fullest_rank(const struct dt_device_bytes *memory)
{
    int fullest = -1;
    for (int r = 0; r < memory->free.count && r < memory->total.count; r++)
        if (fullest < 0 || memory->free.at[r] < memory->free.at[fullest])
            fullest = r;
    return fullest;
}

/* A rank counts what it allocates; the driver also what libraries and other programs hold. */
static void memory_add(const struct dt_result *best, struct page_pen *pen)
{
    const struct dt_device_bytes *memory = &best->memory;
    dt_auto_text text = {0};
    int rank = fullest_rank(memory);
    if (best->facts.peak_bytes > 0) {
        dt_text_add(&text, "Peak by the allocator, of the largest rank: %s.",
                    dt_figure_bytes_of(best->facts.peak_bytes).text);
        item_add(pen, dt_text_at(&text));
        dt_text_clear(&text);
    }
    if (rank >= 0) {
        dt_text_add(&text, "By the driver, on the fullest device: %s in use",
                    dt_figure_bytes_of(memory->total.at[rank] - memory->free.at[rank]).text);
        dt_text_add(&text, " of %s while the plan was resident",
                    dt_figure_bytes_of(memory->total.at[rank]).text);
        if (rank < memory->taken.count)
            dt_text_add(&text, ", %s of it taken by the worker",
                        dt_figure_bytes_of(memory->taken.at[rank]).text);
        dt_text_add(&text, ".");
        item_add(pen, dt_text_at(&text));
    }
    dt_text_add(pen->out, "\n");
}

static bool is_plan(const struct page_view *view, const struct dt_result *a,
                    const struct dt_result *b)
{
    return dt_point_equal(view->session->target->space, &a->point, &b->point);
}

/* The plan to use, then what it was compared with, then the known plans that were tried alone. */
static void rows_add(const struct page_view *view, const struct dt_result *best,
                     struct page_pen *pen)
{
    const struct dt_session *session = view->session;
    const struct dt_session_finals *finals = &session->finals;
    const enum dt_entrant_role roles[] = {DT_ENTRANT_DEFAULT, DT_ENTRANT_DOCUMENTED,
                                          DT_ENTRANT_BASELINE};
    bool against = dt_session_against_default(session);
    const struct dt_ratio *own = NULL;
    char role[80];
    snprintf(role, sizeof role, "%s", dt_words_role(session->verdict));
    for (int i = 0; i < finals->entrant_count; i++)
        if (is_plan(view, &finals->entrants[i].result, best) &&
            !dt_entrant_twin(&finals->entrants[i])) {
            snprintf(role, sizeof role, "%s, %s", dt_words_role(session->verdict),
                     dt_entrant_role_text(finals->entrants[i].role));
            own = against ? &finals->entrants[i].ratio : NULL;
            break;
        }
    row_add(view, pen, role, best, own);
    for (int i = 0; i < finals->entrant_count; i++) {
        const struct dt_entrant *entrant = &finals->entrants[i];
        if (!dt_entrant_twin(entrant) && entrant->result.samples.n > 0 &&
            !is_plan(view, &entrant->result, best))
            row_add(view, pen, dt_entrant_role_text(entrant->role), &entrant->result,
                    against ? &entrant->ratio : NULL);
    }
    for (size_t i = 0; i < sizeof roles / sizeof roles[0]; i++) {
        const struct dt_result *known = dt_session_role(session, roles[i]);
        bool listed = known == NULL || known->samples.n == 0 || is_plan(view, known, best);
        for (int k = 0; k < finals->entrant_count && !listed; k++)
            listed = is_plan(view, known, &finals->entrants[k].result);
        for (size_t k = 0; k < i && !listed; k++) {
            const struct dt_result *before = dt_session_role(session, roles[k]);
            listed = before != NULL && is_plan(view, known, before);
        }
        if (!listed)
            row_add(view, pen, dt_entrant_role_text(roles[i]), known, NULL);
    }
}

static void times_add(const struct page_view *view, const struct dt_result *best,
                      struct page_pen *pen)
{
    const char *unit = view->session->target->image.step;
    dt_auto_text image = {0};
    dt_text_add(pen->out, "## Times and memory\n\n");
    dt_pen_table(pen, "", "All times in ms",
                 "role|plan|>%ss|>request|>text encoder and VAE|>denoise|>updates|>%s|>its "
                 "interval|>speed against the default|>first %s|>made resident|>peak memory of a "
                 "rank, MiB",
                 view->session->target->hardware.unit != NULL ? view->session->target->hardware.unit
                                                              : "device",
                 unit != NULL ? unit : "an update", unit != NULL ? unit : "update");
    rows_add(view, best, pen);
    dt_pen_end(pen);
    memory_add(best, pen);
    dt_page_fact(view, "A whole image", &image);
    dt_pen_say(pen, view->session->target->image.known ? dt_text_at(&image) : "");
    dt_text_clear(&image);
    dt_page_fact(view, "Documented", &image);
    dt_pen_say(pen, dt_text_at(&image));
}

/* ---- what was not measured */

static void missing_add(const struct page_view *view, const struct dt_result *best,
                        struct page_pen *pen)
{
    const struct dt_session *session = view->session;
    const struct dt_target *target = session->target;
    const struct dt_image_work *image = &target->image;
    const json_t *job = json_object_get(target->identity.key, "job");
    dt_auto_text plans = {0};
    int failed, tried = dt_session_tried_count(session, &failed);
    dt_text_add(pen->out, "## Not measured\n\n");
    if (json_object_get(target->identity.hard, "gpus") == NULL && dt_target_gpus(target) == NULL)
        item_add(pen, "A GPU: ranks ran on processor cores.");
    item_add(pen, "Other hardware, sizes, lengths of text, batches and versions than those above.");
    if (!target->foreign || strcmp(dt_json_text_at(job, "weights"), "random") == 0)
        item_add(pen, "Loaded weights: they were random, which leaves times as they are and makes "
                      "no image.");
    if (!image->known)
        item_add(
            pen,
            "A whole request. The number of denoising steps of an image was not given (--steps).");
    else if (image->text_and_vae_ns == 0 && !image->is_image)
        item_add(pen, "Text encoder and VAE.");
    else if (image->given)
        item_add(pen, "Text encoder and VAE: their time was given by the user.");
    if (image->known && !image->is_image)
        item_add(pen, "Text encoder and VAE apart from each other, and the scheduler.");
    if (target->plans != tried) {
        dt_text_add(&plans, "Other plans: %d of ", tried);
        dt_target_plans(target, &plans);
        dt_text_add(&plans, " were tried.");
        item_add(pen, dt_text_at(&plans));
    }
    if (best->facts.peak_bytes <= 0)
        item_add(pen, "Peak memory by the allocator.");
    if (fullest_rank(&best->memory) < 0)
        item_add(pen, "Memory by the driver's count (nvidia-smi).");
    if (!dt_session_compared(session))
        item_add(pen, "A comparison in several sets of fresh processes.");
    item_add(pen, "Load: requests that wait for others, and the tail of their times.");
    item_add(pen, "Quality of images, beside the difference of the output above.");
    dt_text_add(pen->out, "\n");
}

void dt_page_recipe(const struct page_view *view, struct page_pen *pen)
{
    const struct dt_session *session = view->session;
    const struct dt_result *best = dt_session_best(session);
    dt_auto_text text = {0};
    bool draft =
        session->verdict == DT_VERDICT_PROVISIONAL || session->verdict == DT_VERDICT_INCONCLUSIVE;
    published_add(session->target, session->target->identity.title, &text);
    dt_text_add(pen->out, "# %s", draft ? "Draft, nothing is decided: " : "");
    dt_pen_text(pen, dt_text_at(&text));
    dt_text_add(pen->out, "\n\n");
    dt_text_clear(&text);
    dt_page_verdict(view, &text);
    dt_pen_say(pen, dt_text_at(&text));
    dt_text_clear(&text);
    dt_page_fact(view, "How sure", &text);
    dt_pen_say(pen, dt_text_at(&text));
    dt_text_add(pen->out, "## Hardware and versions\n\n");
    machine_add(view, pen);
    if (best == NULL)
        return;
    command_add(view, best, pen);
    protocol_add(view, best, pen);
    times_add(view, best, pen);
    missing_add(view, best, pen);
    dt_text_add(pen->out, "Measured by dittune on %s UTC, session %s.\n",
                dt_figure_minute(session->began_wall_ns).text, view->page->journal);
}
