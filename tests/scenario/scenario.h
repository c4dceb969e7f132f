/* SPDX-License-Identifier: MIT */
/* scenario - the worker of all tests: it computes nothing and answers what one JSON file says
 *
 * It speaks docs/protocol.md and shares no code with dittune. README.md lists the fields of the
 * file. Process n of a scenario draws from stream n of its seed, so a session can be repeated.
 *
 *     scenario.c  reads the file          models.c    the true time of a plan      noise.c  what chance adds to it
 *     clock.c     moves virtual time      faults.c    misbehaviour                 log.c    the worker's own record
 *     devices.c   what devices report     protocol.c  requests and answers
 *
 * To add a time model or a fault, write a function and add a row to the table at the end of
 * models.c or faults.c. */
#ifndef DT_TESTS_SCENARIO_SCENARIO_H
#define DT_TESTS_SCENARIO_SCENARIO_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define FAULTS_MOST  64
#define RANKS_PLACED 16 /* ranks that `rank_sd` delays */

/* ---- the file */

struct scenario {
    json_t *root; /* the file itself: everything that is not a plain number */
    const struct model *model;
    double seed, ranks, cold, process_sd, drift_sd, drift_tau, cv, ar1, spike_share, spike_mean;
    double mode_share, mode_size, warm_size, warm_steps, warm_tau, warm_skip, step_at, step_size;
    double lateness, late_rank, late_size, slow_clock, slow_rank, slow_at, slow_steps;
    double residency_sd, residency_share, residency_size, rank_sd, room;
    double threads, blocks, copy, swing, start_ns, load_ns, cost_ns, sleep;
};

/* Reads the file; exits with 64 and a sentence when it has an unknown field or a
 * field of another type. */
void scenario_read(const char *path, struct scenario *scenario);
void scenario_fini(struct scenario *scenario);

/* Writes a sentence to standard error and exits with 64. */
void die(const char *what, const char *name) __attribute__((noreturn));

/* A number or a text of an object; `usual` when it is missing. Exits when it is of another type. */
double number_of(const json_t *object, const char *name, double usual);
const char *text_of(const json_t *object, const char *name, const char *usual);

/* True when the plan has all values of `when`; an empty or missing `when` fits every plan. */
bool plan_fits(const json_t *when, const json_t *plan);

/* The field of the last row of "plans" that fits the plan and has it; NULL when
 * there is none. Borrowed. */
const json_t *plan_field(const struct scenario *scenario, const json_t *plan, const char *name);

/* ---- the true time of a plan */

struct model {
    const char *field;  /* of the scenario, that selects this model */
    const char *launch; /* usual value of hello's field */
    /* The parameters of hello, a new reference; NULL when hello has none. */
    json_t *(*parameters)(const struct scenario *scenario);
    /* Nanoseconds of a step; negative when there is no such plan. */
    double (*ns)(const struct scenario *scenario, const json_t *plan);
};

/* The model that the file has the field of; exits when there are none or two. */
const struct model *model_of(const json_t *root);

/* The parameters of hello, a new reference; NULL when hello has none. */
json_t *scenario_parameters(const struct scenario *scenario);

/* The true time of a step; negative when the plan is not possible. */
double scenario_ns(const struct scenario *scenario, const json_t *plan);

/* ---- what chance adds to it */

struct stream {
    uint64_t state;
    double process, drift, noise;
    double ranks[RANKS_PLACED]; /* how late each rank is while the process lives */
    int steps;                  /* made by this process */
};

struct handle {
    json_t *plan; /* NULL: released */
    double ns;    /* of a true step, times its luck with this residency */
    double swing; /* of its visits */
    bool copy;    /* of a plan that was resident when this one was prepared */
    int ranks, steps, visits;
};

void stream_start(const struct scenario *scenario, int process, struct stream *stream);

/* Factor on the time of a plan while it is resident. */
double stream_residency(const struct scenario *scenario, struct stream *stream);

/* One step of the handle: the times of all ranks. Appends the ranks' clocks to clocks unless it is
 * NULL, and adds the time of the slowest rank to *longest_ns. */
json_t *stream_step(const struct scenario *scenario, struct stream *stream, struct handle *handle,
                    json_t *clocks, double *longest_ns);

/* Projections that depend on the seed alone: the output of every plan. */
json_t *stream_projections(uint64_t seed, json_int_t count);

/* ---- virtual time */

/* Seconds of virtual time since the session began; 0 without a virtual clock. */
double clock_seconds(void);

/* Maps the file $DITTUNE_CLOCK; without it time does not move. said: text of heartbeats,
 * without quotes; "": none. */
void clock_open(const char *said);

/* Moves the clock by ns and writes the answer; the controller cannot see one without the other. An
 * answer that takes more than a second is preceded by a heartbeat each second. */
void clock_answer(int out, double ns, const char *text, size_t size);

/* Moves the clock step by step, with heartbeats to out, until the controller ends this process. */
void clock_move_for_ever(int out, double step_ns) __attribute__((noreturn));

/* ---- the worker */

struct reply {
    const char *at;     /* the request's op; "hello" and "ready" are two */
    const char *mode;   /* of run: "warmup" or "measure"; else NULL */
    const json_t *plan; /* the plan it is about; NULL: none */
    bool copy;          /* another handle had this plan first */
    json_t *message;
    json_t *note; /* for the log; NULL: none */
    double ns;    /* what the answer takes */
};

struct worker {
    struct scenario scenario;
    struct stream stream;
    struct handle *handles;
    int count;               /* of handles */
    int measured;            /* run requests of mode "measure" */
    int ranks;               /* of the group */
    int process;             /* its number, of all that the scenario's log has */
    int passed[FAULTS_MOST]; /* how often a fault's row fitted in this process */
    const char *log_path;    /* NULL: no log */
    int log;
    int out; /* the protocol's stream */
};

/* Opens the log and returns the number of this process in it. */
int log_open(struct worker *worker, const char *scenario_path);
/* Appends a line, and takes the reference to it. */
void log_note(const struct worker *worker, json_t *line);
/* Number of strikes of the row of "faults", over all processes of the scenario. */
int log_strikes(const struct worker *worker, int row);

/* Exits when a row of "faults" names a fault or a request that there is not. */
void faults_check(const json_t *root);

/* Lets the scenario's faults strike. */
void faults_strike(struct worker *worker, struct reply *reply);

/* Adds what devices report, when the scenario has some. */
void devices_prepared(const struct scenario *scenario, json_t *message);
void devices_samples(const struct worker *worker, const json_t *request, json_t *message);
void devices_spoil(const struct scenario *scenario, json_t *message);

/* Replaces the reply by a failure. */
void reply_fail(struct reply *reply, const char *kind, const char *why);

/* Writes all of it, or exits. */
void write_all(int fd, const char *bytes, size_t size);

/* Serves requests until quit or the end of standard input. */
void serve(struct worker *worker);

#endif
