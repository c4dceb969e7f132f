/* SPDX-License-Identifier: MIT */
/* Compares fields that both sides have. A field on one side only is ignored: a machine that another
 * worker described has others. */
#include "db/lookup/lookup_int.h"

#include "base/figures.h"

#include <string.h>

#define DAY_NS     (86400LL * 1000000000)
#define STALE_DAYS 180

struct reasons {
    json_t *list;
    bool failed; /* out of memory */
};

/* NULL: a variable that is not set. */
static void reason_add(void *context, const char *inside, const char *name, const json_t *was,
                       const json_t *now)
{
    struct reasons *reasons = context;
    dt_auto_text text = {0};
    (void)inside;
    if (strncmp(name, "file ", 5) == 0) { /* a command's file: its hash says nothing to a reader */
        dt_text_add(&text, "%s has changed", name + 5);
    } else if (strcmp(name, "calls") == 0) { /* a pipeline's: hashes, too */
        dt_text_add(&text, "the recorded calls of the pipeline differ from those it was tuned for");
    } else {
        dt_text_add(&text, "%s was ", name);
        if (was != NULL)
            dt_json_plain(was, &text);
        dt_text_add(&text, was != NULL ? ", is " : "not set, is ");
        if (now != NULL)
            dt_json_plain(now, &text);
        dt_text_add(&text, now != NULL ? "" : "not set");
    }
    if (dt_text_status(&text) < 0 ||
        json_array_append_new(reasons->list, json_string(dt_text_at(&text))) != 0)
        reasons->failed = true;
}

/* Both sides name a worker, and not the same program: the machine was described by the built-in
 * worker, the entry was measured by an engine's. */
static bool is_other_worker(const json_t *was, const json_t *now)
{
    const char *old = dt_json_text_at(was, "worker"), *new = dt_json_text_at(now, "worker");
    size_t size = strcspn(old, " ");
    return old[0] != '\0' && new[0] != '\0' &&
           (strcspn(new, " ") != size || strncmp(old, new, size) != 0);
}

/* The field is the controller's: the others are what a worker said of itself and of the environment
 * that it reads. */
static bool is_of_controller(const char *name)
{
    static const char *const names[] = {"dittune", "hwloc", "method", "kernel", "driver"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

static bool soft_compare(const json_t *was, const json_t *now, json_t *list)
{
    struct reasons reasons = {list, false};
    bool others = is_other_worker(was, now);
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)was, name, value)
    {
        const json_t *other = json_object_get(now, name);
        if (other == NULL || json_equal(value, other) || (others && !is_of_controller(name)))
            continue;
        if (json_is_object(value) && json_is_object(other))
            dt_json_differences(value, other, name, reason_add, &reasons);
        else
            reason_add(&reasons, "", name, value, other);
    }
    return !reasons.failed;
}

int64_t dt_stored_ns(const json_t *fingerprint)
{
    struct dt_stored_info info;
    dt_record_read(&dt_record_stored_info, json_object_get(fingerprint, "info"), &info);
    int64_t latest = info.checked_ns > info.t_wall_ns ? info.checked_ns : info.t_wall_ns;
    return latest > 0 ? latest : 0;
}

bool dt_stale_by_age(int64_t now_ns, int64_t stored_ns)
{
    return stored_ns > 0 && now_ns - stored_ns > STALE_DAYS * DAY_NS;
}

/* "it lost in the check of 2026-11-25 13:41 UTC: the default plan is better: it ran 2.000 times as
 * fast" */
static bool loss_add(const struct dt_stored_info *info, json_t *reasons)
{
    json_t *lost =
        json_sprintf("it lost in the check of %s UTC%s%s", dt_figure_minute(info->lost_ns).text,
                     info->lost_to != NULL ? ": " : "", info->lost_to != NULL ? info->lost_to : "");
    return json_array_append_new(reasons, lost) == 0;
}

json_t *dt_stale_reasons(const struct dt_asked *asked, const json_t *fingerprint)
{
    json_auto_t *reasons = json_array();
    int64_t stored = dt_stored_ns(fingerprint), now = dt_asked_now(asked);
    struct dt_fingerprint was;
    dt_record_read(&dt_record_fingerprint, fingerprint, &was);
    bool done = reasons != NULL && soft_compare(was.soft, asked->soft, reasons);
    if (done && dt_stale_by_age(now, stored)) {
        json_t *old = json_sprintf("it was %s %lld days ago, more than %d",
                                   was.info.checked_ns > was.info.t_wall_ns ? "checked" : "stored",
                                   (long long)((now - stored) / DAY_NS), STALE_DAYS);
        done = json_array_append_new(reasons, old) == 0;
    }
    if (done && was.info.lost_ns > 0)
        done = loss_add(&was.info, reasons);
    return done ? json_incref(reasons) : NULL;
}
