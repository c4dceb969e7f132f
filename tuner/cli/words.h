/* SPDX-License-Identifier: MIT */
/* words - sentences about a result that several commands print, from the fields of an entry
 * (db/entry.def), which a session has, too: look-up, `why`, page and report say the same of the
 * same result. */
#ifndef DT_TUNER_CLI_WORDS_H
#define DT_TUNER_CLI_WORDS_H

#include "base/text.h"
#include "db/stored.h"
#include "tuner/session/session.h"

/* A reader's next action: "Use PLAN: 1.25 times as fast as the documented plan (interval 1.2 to
 * 1.3)." */
struct dt_words_verdict {
    enum dt_verdict verdict;
    const char *plan;      /* in words */
    bool is_default;       /* it is the default plan */
    bool is_documented;    /* it is the documented plan */
    bool lacks_documented; /* there is one, and it failed or was not measured */
    struct dt_gain gain;   /* over gain.over; may be unknown */
    double level;          /* level of its interval; NAN: not known */
    const char *unusable;  /* the reason why the default is unusable; NULL: not known */
    const struct dt_measured *fallback; /* the default's figures; NULL: not measured */
};
void dt_words_verdict(const struct dt_words_verdict *what, struct dt_text *out);

/* The name of the stored plan in tables: "best" where it was shown to be, "kept"
 * where nothing was decided. */
const char *dt_words_role(enum dt_verdict verdict);

/* How certain the session's verdict is, as a sentence or more that begins in small letters; the
 * same of an entry alone. */
void dt_words_sure(const struct dt_session *session, struct dt_text *out);
void dt_words_sure_stored(const struct dt_stored_entry *entry, struct dt_text *out);
/* The text from byte `at` on begins with a capital letter. */
void dt_words_capital(struct dt_text *text, size_t at);

/* The figures of the session's default plan, without the plan and warnings. */
struct dt_measured dt_words_fallback(const struct dt_session *session);
/* A sentence on a default plan that breaks a rule of its space, and was measured all the same;
 * nothing on another. */
void dt_words_default(const struct dt_measured *fallback, struct dt_text *out);

/* Sentences on the documented plan: what it is, where that is written, and what came of it. Nothing
 * where there is none. */
void dt_words_documented(const struct dt_session *session, struct dt_text *out);
void dt_words_documented_stored(const struct dt_stored_entry *entry, struct dt_text *out);

/* Without a stop at the end: what a noise floor means; what a plan of so many ranks needs, by
 * its largest. */
void dt_words_noise(double margin, struct dt_text *out);
void dt_words_memory(int64_t bytes, int ranks, struct dt_text *out);

/* "2026-09-01 00:00 UTC, 3 days ago"; 0: "Not known". */
void dt_words_when(int64_t t_wall_ns, struct dt_text *out);

/* "12 of 272 plans; left out: ..". tried 0: nothing is known. plans 0: too many
 * to count. */
void dt_words_tried(int tried, int64_t plans, const char *skipped, struct dt_text *out);

/* Adds the load of other programs on the cores meanwhile, without a stop at its end. */
void dt_words_load(const struct dt_stored_load *load, struct dt_text *out);

#endif
