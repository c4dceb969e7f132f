/* SPDX-License-Identifier: MIT */
/* session_int - shared by the files of a session: its trials, its comparisons, its
 * verdict, and what is stored */
#ifndef DT_TUNER_SESSION_SESSION_INT_H
#define DT_TUNER_SESSION_SESSION_INT_H

#include "tuner/session/tuning.h"

/* ---- plans that every session tries (session.c) */

#define DT_FIRST_MOST 4 /* default, baseline, documented, --against */

/* These plans in the order in which they are tried; returns their number. */
int dt_trials_first(const struct dt_session *session, const struct dt_point *first[DT_FIRST_MOST]);

/* The role in which one of them is tried. */
enum dt_entrant_role dt_trials_role(const struct dt_session *session, const struct dt_point *point);

/* The default, the baseline, the documented plan or --against. */
bool dt_trials_is_known(const struct dt_session *session, const struct dt_point *point);

/* ---- trials: runs plans one at a time and records the results: first the known plans,
 * then those of the search */

/* On several hosts: measures the links, and says what they are. */
dt_status dt_trials_links(struct dt_tuning *tuning) DT_MUST_CHECK;

/* Default, baseline, documented, --against. Plans with temporary failures (dt_outcome_may_pass) are
 * tried again after them. */
dt_status dt_trials_known(struct dt_tuning *tuning) DT_MUST_CHECK;

/* When the search ended early: retries its plans with such failures once, if
 * there are at most three. */
dt_status dt_trials_strays(struct dt_tuning *tuning) DT_MUST_CHECK;

/* Plans that were tried while others kept the cores busy are tried again, the most promising first,
 * while there is time for trials and a little beyond: load hits plans unequally, and those that it
 * dropped may be the best. */
dt_status dt_trials_disturbed(struct dt_tuning *tuning) DT_MUST_CHECK;

/* The most promising plan of those whose trials a visit of the incumbent undid, if there is one. */
dt_status dt_trials_undone(struct dt_tuning *tuning) DT_MUST_CHECK;

/* It was tried fewer than three times. */
bool dt_trials_may_try(const struct dt_session *session, const struct dt_point *point);

/* The last attempt of the known plans, before the final comparison: they get half
 * of the remaining time. */
dt_status dt_trials_last(struct dt_tuning *tuning) DT_MUST_CHECK;

/* One trial of at most this share of the time. racing: it ends when the plan is slower
 * than the best so far. */
dt_status dt_trials_try(struct dt_tuning *tuning, const struct dt_point *point, bool racing,
                        double share) DT_MUST_CHECK;

/* Records a plan, or a measurement, of which a trial is taken. */
dt_status dt_tuning_plan(struct dt_tuning *tuning, enum dt_log_kind kind,
                         const struct dt_point *point) DT_MUST_CHECK;
dt_status dt_tuning_result(struct dt_tuning *tuning, enum dt_log_kind kind,
                           struct dt_result *result) DT_MUST_CHECK;

/* Records the batches whose reference failed since the last record. */
dt_status dt_tuning_references(struct dt_tuning *tuning) DT_MUST_CHECK;

/* ---- visits: the incumbent is measured again while a session searches, as the machine may
 * become slower or faster
 *
 * Plans are dropped when they are slower than the incumbent, whose samples may be minutes old. So
 * it is visited every few trials, and soon after each drop. When it takes longer than before,
 * beyond noise, the trials since the last good visit are undone: their plans are tried again,
 * beside the incumbent as it is now. From then on trials have the slowdown, by which their values
 * are divided. When the incumbent is as fast as before again, the promising ones of the slow time
 * are tried again, as load hits plans unequally.
 */

/* Makes a visit when one is due, and tries undone plans again. Visits take a tenth
 * of the time at most. */
dt_status dt_visits_make(struct dt_tuning *tuning) DT_MUST_CHECK;

/* The first visit of a session that goes on with another, whose trials may be of another time. */
dt_status dt_visits_resume(struct dt_tuning *tuning) DT_MUST_CHECK;

/* Times as long as its trial says that the incumbent takes now. */
double dt_visits_times(const struct dt_tuning *tuning, const struct dt_result *incumbent);

/* ---- explore: the search's part of a session: its inputs, its trials, and why it stopped */

/* Where starts take long: notes, once, how many groups of plans trials and the final comparison
 * start. Before the first trial this is known of a worker that took long to say hello. */
void dt_explore_starts(struct dt_tuning *tuning);

/* Runs trials until the search stops or the time for trials is over. The known
 * trials are done before. */
dt_status dt_explore(struct dt_tuning *tuning) DT_MUST_CHECK;

/* Goes on with it, by trials that are expected to end until then. Nothing when it stopped. */
dt_status dt_explore_more(struct dt_tuning *tuning, int64_t until_ns) DT_MUST_CHECK;

/* Records the search's end. */
dt_status dt_explore_end(struct dt_tuning *tuning) DT_MUST_CHECK;

/* ---- finals: from trials to a verdict: the shoot-out of the top candidates, then
 * the final comparison */

/* Runs and records both. found: a plan that looks faster than what an earlier comparison found,
 * which stays where the new one finds nothing better; NULL: there was none. */
dt_status dt_finals_run(struct dt_tuning *tuning, const struct dt_point *found) DT_MUST_CHECK;

/* The best plan tried since the last comparison began, where its trial's value is below so many
 * times that of the comparison's winner;
 * NULL: there is none. */
const struct dt_result *dt_finals_promising(const struct dt_tuning *tuning, double times);

/* Until then trials leave the time for another shoot-out and comparison. */
int64_t dt_finals_latest(const struct dt_tuning *tuning);

/* Estimated seconds of eight rounds of the plans known so far and `more` like the
 * default, from the trials. */
double dt_finals_seconds(const struct dt_tuning *tuning, int more);

/* The same for a shoot-out of plans like the default. */
double dt_finals_shootout_seconds(const struct dt_tuning *tuning);

/* ---- verdict: decides from a session's samples: plans to compare, the best plan, and the verdict
 *
 * Nothing here runs a plan or reads a clock: a session that is read back from its journal
 * gets the same verdict.
 */

#define DT_CANDIDATES 3 /* candidates of a shoot-out */

/* Lists the best eligible trials other than default and documented plan, best first;
 * returns their number. */
int dt_verdict_candidates(const struct dt_session *session,
                          const struct dt_result *top[DT_CANDIDATES]);

/* The winner of a shoot-out and the ties, into *finals, which has none. entrants: the default,
 * then the candidates. */
void dt_verdict_choose(const struct dt_session *session, const struct dt_entrant entrants[], int n,
                       struct dt_session_finals *finals);

/* Best, verdict and limit_broken of the session's final comparison, which is *finals. */
void dt_verdict_decide(const struct dt_session *session, struct dt_session_finals *finals);

/* The first entrant of the final comparison cannot run here, nothing is decided, and there are
 * others: they are compared without it. */
bool dt_verdict_first_fell(const struct dt_session *session);

/* Appends why the comparison with the challenger says nothing, though it has enough
 * sets; nothing: it does. */
void dt_verdict_unresolved(const struct dt_session *session, struct dt_text *out);

/* The entrant runs the default plan. */
bool dt_verdict_default(const struct dt_session *session, const struct dt_entrant *entrant);

/* A comparison's first entrant, which others are told over, is the default or the documented plan:
 * a twin of it says what is noise. */
bool dt_verdict_needs_twin(const struct dt_session *session, const struct dt_entrant *first);

/* The default plan is the first entrant of the final comparison, and may be used. */
bool dt_verdict_default_usable(const struct dt_session *session);

/* The failure shows that the plan cannot run here: a wrong answer; or no trial of it ran,
 * and the failure is permanent (out of memory: twice), or is what the rule said that a
 * default plan breaks. */
bool dt_verdict_cannot_run(const struct dt_session *session, const struct dt_result *result);

/* ---- doubts: why the figures of a session decide nothing (dt_session_doubt), and
 * whether time would help */

#define DT_NEED_SECONDS_MOST 60 /* longer budgets are whole minutes */

/* Appends `before` and the budget that a decided answer needs, "at least" where no plan
 * ran yet; nothing for 0. */
void dt_need_text(const struct dt_session *session, double seconds, const char *before,
                  struct dt_text *out);

/* More time would not decide, as plans failed in a way that it does not mend. */
bool dt_doubts_failed(const struct dt_session *session);

/* A session that ended after so many seconds would have decided with more time: not where plans
 * failed, or others were busy. */
bool dt_doubts_lack_time(const struct dt_session *session, double elapsed_seconds);

/* ---- the store's entry of a session (docs/database.md; record/entry.c) */

/* A plan's figures. from: of which measurement; NULL: not said. */
struct dt_shot dt_session_shot(const struct dt_session *session, const struct dt_result *result,
                               const char *from);

/* Makes the entry and stores it, unless the store has one with better evidence. journal: where it
 * is recorded first, as "best"; NULL: nowhere. Sets the result. */
dt_status dt_entry_store(const struct dt_session *session, enum dt_verdict verdict,
                         const char *directory, struct dt_journal *journal,
                         struct dt_tuning_store *store) DT_MUST_CHECK;

/* The machine's, now; dt_fingerprint_fini frees it. cached: a worker's answer of
 * before may be taken. */
void dt_entry_fingerprint(const struct dt_target *target, int64_t deadline_ns, bool cached,
                          struct dt_fingerprint *fingerprint);
void dt_fingerprint_fini(struct dt_fingerprint *fingerprint);
/* Its texts stay borrowed. */
struct dt_fingerprint dt_fingerprint_copy(const struct dt_fingerprint *fingerprint);

/* ---- tuning: when results are stored */

/* Stores the results so far as provisional, in case the session is killed: if a better plan would
 * otherwise be missing from the store for more than a minute, given that the next call is in
 * wait_ns. A failure to store does not end the session. */
void dt_store_now(struct dt_tuning *tuning, int64_t wait_ns);

/* Sets clock.need_seconds once, from what trials, starts and preparations took so far: where a
 * decided answer needs more than this session has, or, when it has ended, where it lacked time. */
void dt_tuning_estimate(struct dt_tuning *tuning);

/* ---- resume: goes on with a session of the same work that was killed, interrupted,
 * or had too little time
 *
 * Its records are read from its journal, judged again, and recorded by the new session: its
 * journal is then complete, and may be resumed itself. The time that it spent counts. A trial
 * that had begun and not ended is run again once; a plan that was running when a session
 * ended twice is left out.
 */

/* Finds the session to go on with, or says why there is none; or says that there is
 * one (dt_tuning_begin). */
dt_status dt_resume_find(struct dt_tuning *tuning) DT_MUST_CHECK;
void dt_resume_offer(const struct dt_tuning *tuning);

struct dt_outline;
bool dt_resume_same_work(const struct dt_outline *outline, const struct dt_target *target);
bool dt_resume_same_machine(const struct dt_outline *outline, const struct dt_session *session);

/* Frees a comparison of the session that is resumed. */
void dt_resume_drop(struct dt_compared *compared);

/* Takes over the trials of the session that dt_resume_find found; nothing without one. */
dt_status dt_resume_trials(struct dt_tuning *tuning) DT_MUST_CHECK;

#endif
