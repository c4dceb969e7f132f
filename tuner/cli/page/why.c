/* SPDX-License-Identifier: MIT */
/* The verdict and the facts without the page. */
#include "tuner/cli/page/page_int.h"

#include "base/clock.h"
#include "base/columns.h"
#include "tuner/check/history/timeline.h"
#include "tuner/cli/named/named.h"
#include "tuner/session/record.h"

static void add_moment(const struct dt_page *page, struct dt_text *out)
{
    char minute[24];
    double days = (double)(dt_clock_wall_ns() - page->began_wall_ns) / (86400.0 * DT_NS_PER_SECOND);
    dt_minute(page->began_wall_ns, minute);
    dt_text_add(out, "%s UTC, ", minute);
    if (days < 1)
        dt_text_add(out, "less than a day ago");
    else
        dt_text_add(out, "%.0f day%s ago", days, days < 1.5 ? "" : "s");
    dt_text_add(out, ", by session %s.", page->journal);
}

static void add_answer(json_t *answers, const char *name, const struct dt_text *answer,
                       struct dt_text *out)
{
    struct dt_text line = {0};
    dt_text_add(&line, "%s: %s\n", name, dt_text_at(answer));
    dt_columns_wrap(dt_text_at(&line), DT_COLUMNS_USUAL, 2, out);
    json_object_set_new(answers, name, json_string(dt_text_at(answer)));
    dt_text_fini(&line);
}

json_t *dt_page_why(const struct dt_page *page, struct dt_text *out)
{
    struct page_view view;
    struct dt_text text = {0};
    const char *name, *later = page->later != NULL ? page->later : "";
    json_t *answers = json_object(), *whole = dt_record_session(page->session);
    if (!dt_page_view(page, "", &view) || answers == NULL || whole == NULL) {
        json_decref(answers);
        json_decref(whole);
        out->failed = true;
        return NULL;
    }
    dt_text_add(out, "%s\n", page->session->target->identity.title);
    dt_page_verdict(&view, &text);
    json_t *object =
        json_pack("{s:s, s:s?, s:s, s:s, s:s, s:s?, s:o}", "session", page->journal, "entry",
                  page->entry, "from", dt_named_origin_text(DT_NAMED_SESSION), "title",
                  page->session->target->identity.title, "sentence", dt_text_at(&text), "later",
                  later[0] != '\0' ? later : NULL, "answers", answers);
    dt_text_add(&text, "%s%s\n\n", later[0] != '\0' ? " " : "", later);
    dt_columns_wrap(dt_text_at(&text), DT_COLUMNS_USUAL, 0, out);
    dt_text_clear(&text);
    for (int i = 0; dt_page_fact(&view, i, &name, &text); i++, dt_text_clear(&text))
        add_answer(answers, name, &text, out);
    add_moment(page, &text);
    add_answer(answers, "When", &text, out);
    static const char *const kept[] = {"verdict", "best",  "default",
                                       "gain",    "noise", "fingerprint"};
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++)
        if (json_object_get(whole, kept[i]) != NULL)
            json_object_set(object, kept[i], json_object_get(whole, kept[i]));
    json_decref(whole);
    dt_text_fini(&text);
    dt_page_view_fini(&view);
    return object;
}
