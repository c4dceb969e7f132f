/* SPDX-License-Identifier: MIT */
/* runner - starts programs, and leaves nothing of them running
 *
 * A group is one running worker (all its ranks), spoken to over the protocol, killed whole
 * when it must be; or several replicas of it, each with processes of its own: a request goes
 * to all of them at the same time, and their ranks follow each other in one answer. What fails
 * in one has failed in all.
 *
 *     dt_group_start(&launch, workload, deadline, &group, &failure);
 *     dt_group_prepare(group, plan, &verify, deadline, &prepared, &failure);
 *     dt_group_run(group, &(struct dt_steps){prepared.handle, 8, DT_MODE_MEASURE}, deadline, &run, &failure);
 *     dt_group_stop(group, grace);
 *
 * A supervisor between the controller and the program (tuner/runner/supervisor.h) ends with the
 * controller, and kills every descendant of the program by pid. Failures of a group are data:
 * the calls return DT_FAILED and set the trial's outcome and its cause in *failure;
 * dt_group_alive tells whether the group is still usable. Other errors are the controller's own
 * (no memory, no pipe).
 */
#ifndef DT_TUNER_RUNNER_RUNNER_H
#define DT_TUNER_RUNNER_RUNNER_H

#include "base/json.h"
#include "base/text.h"
#include "search/trial.h"
#include "tuner/runner/hosts.h"
#include "tuner/runner/samples.h"

#include <stdbool.h>
#include <stdint.h>

struct dt_group;

/* A program of the user's, and its arguments. */
struct dt_program {
    const char *path;             /* NULL: none */
    const char *const *arguments; /* NULL-ended, without the program; may be NULL */
};

/* A foreign worker's assignment: fields of hello. */
struct dt_assignment {
    const json_t *job; /* "job", borrowed; NULL: {} */
    int devices;       /* most that it may use; 0: left out */
    int hosts;         /* that they are on; below 2: left out, this one */
};

/* Who starts the ranks of a group: "launch" of hello. */
enum dt_launcher {
    DT_LAUNCH_SELF, /* the worker: one process is started */
    DT_LAUNCH_MPIRUN,
    DT_LAUNCH_TORCHRUN, /* the controller starts all, with the variables that torchrun sets */
};
bool dt_launcher_from_text(const char *text, enum dt_launcher *launcher);

struct dt_launch {
    const char *program;          /* path; a name without '/' is looked up in PATH */
    const char *const *arguments; /* NULL-ended, after the program; may be NULL */
    struct dt_assignment assigned;
    enum dt_launcher by;
    int ranks; /* processes; 1 is fork and exec, without MPI */
    const struct dt_hosts
        *hosts;   /* that they are started on, with `by` mpirun; NULL: this machine */
    int per_host; /* ranks on each of the first hosts, the last one may have fewer */
    /* with hosts and `by` torchrun: dittune-worker, which becomes a rank of the program */
    const char *rank_program;
    int own_ranks; /* number of ranks for a worker that starts them itself; 0: ranks */
    /* replicas above 1: so many groups are started at the same time, on this machine, which then
     * are one group to the caller; replica i has part i of the cores, or of the GPUs. replica:
     * set by dt_group_start */
    int replicas, replica;
    int gpus;            /* that the replicas share, as the first ones visible; 0: cores */
    bool oversubscribed; /* more ranks than cores: waits yield */
    int64_t until_ns;    /* see dt_group_extend; also while it starts */
    const char *const *environment; /* NULL-ended "NAME=value"; may be NULL */
    bool unrecorded;                /* $DITTUNE_TRANSCRIPT leaves its messages out */
    bool is_private; /* the program's own output in its failures is not for the record */
};

struct dt_failure {
    enum dt_outcome outcome;
    /* hung, or so it seems: it hardly had a core, or another limit came before its own */
    bool early;
    /* one sentence, with the phase: "killed by signal 11 (SIGSEGV) while preparing", of several
     * replicas behind its number, "replica 1: " */
    char cause[256];
};

/* Starts the program, sends hello, waits for hello and ready. deadline_ns is dt_clock_ns time;
 * callers choose it (tuner/measure/rig.c: start and prepare; trial.c: run;
 * tuner/session/trials.c: the whole trial). DT_EUSAGE when the program does not exist or mpirun
 * is missing ("mpirun not found: install openmpi-bin, or ask for plans of one rank"), and for
 * more than DT_REPLICAS_MOST replicas.
 * workload: borrowed JSON or NULL. */
dt_status dt_group_start(const struct dt_launch *launch, const json_t *workload,
                         int64_t deadline_ns, struct dt_group **group,
                         struct dt_failure *failure) DT_MUST_CHECK;
const json_t *dt_group_hello(const struct dt_group *group); /* borrowed */
const json_t *dt_group_ready(const struct dt_group *group);
int dt_group_ranks(const struct dt_group *group); /* entries of ready */
/* A text of a rank in ready: "host", "version"; "": there is none. */
const char *dt_group_rank_text(const struct dt_group *group, int rank, const char *field);
bool dt_group_alive(const struct dt_group *group);
/* The rank that process `pid` is, or that has started it, by the pids in
 * ready; -1: none of them. */
int dt_group_rank_of(const struct dt_group *group, int64_t pid);

/* From the next request on each heartbeat extends the deadline of a request: it then has as long as
 * at first, and at least 15 s, from the heartbeat on, but never beyond this time. A deadline that
 * comes while the group hardly has a core is extended alike: on a busy machine the time that has
 * passed does not show that it hangs. 0: nothing is extended. */
void dt_group_extend(struct dt_group *group, int64_t until_ns);

/* Time for which all processes were stopped during the last request; 0: none. Times in the
 * answer may include it. */
int64_t dt_group_paused_ns(const struct dt_group *group);

/* Cleans a worker's text for files and terminals: other than printable ASCII becomes '?'. */
void dt_group_clean(char text[]);

struct dt_verify {
    int projections;
    uint64_t seed;
};

struct dt_prepared {
    int handle;
    int ranks;
    int64_t peak_bytes;            /* the largest rank's */
    int64_t resident_bytes;        /* the largest rank's, all handles */
    int64_t cold_ns;               /* first step, maximum over ranks */
    struct dt_device_bytes memory; /* owned */
    struct dt_outputs output;
    /* whole images of one request, as often as it was made: `ranks` counts them; of several
     * replicas the first of each */
    struct dt_outputs image;
    bool verifies_runs; /* requests of runs may ask for the output, too */
    /* relative error of the output, where the worker compared it itself; NAN: it did not */
    double error;
    struct dt_remarks *remarks; /* owned; NULL: none */
};
/* plan: {name: value}, borrowed. */
dt_status dt_group_prepare(struct dt_group *group, const json_t *plan,
                           const struct dt_verify *verify, int64_t deadline_ns,
                           struct dt_prepared *prepared, struct dt_failure *failure) DT_MUST_CHECK;
void dt_prepared_fini(struct dt_prepared *prepared);

enum dt_mode { DT_MODE_WARMUP, DT_MODE_MEASURE };
const char *dt_mode_text(enum dt_mode mode); /* the protocol's name */
struct dt_steps {
    int handle, count;
    enum dt_mode mode;
    const struct dt_verify *verify; /* asks for the output of the last step; NULL: does not */
    /* count is of starts, each of which may have several steps, and fewer may be made */
    bool starts;
};
/* This process only sleeps in poll while the steps run. */
dt_status dt_group_run(struct dt_group *group, const struct dt_steps *steps, int64_t deadline_ns,
                       struct dt_run *run, struct dt_failure *failure) DT_MUST_CHECK;

dt_status dt_group_release(struct dt_group *group, int handle, int64_t deadline_ns,
                           struct dt_failure *failure) DT_MUST_CHECK;

/* Further requests of a plan, and of the group. A worker that fails one is not at fault:
 * the group may be alive. */

/* A group of so many ranks, each `stride` from the next, exchanges buffers of so many
 * bytes, each size so often. */
struct dt_exchange_request {
    const char *kind; /* "alltoall", "shift" */
    int ranks, stride, sizes, times;
    const int64_t *bytes; /* [sizes] */
};
/* ns: [sizes * times]. */
dt_status dt_group_exchange(struct dt_group *group, const struct dt_exchange_request *exchange,
                            int64_t deadline_ns, long long ns[],
                            struct dt_failure *failure) DT_MUST_CHECK;
/* Rates of a large GEMM and a large copy (operations and bytes a second) beside the
 * plan; NAN: not known. */
dt_status dt_group_peak(struct dt_group *group, int64_t deadline_ns, double *flop_rate,
                        double *copy_rate, struct dt_failure *failure) DT_MUST_CHECK;
/* *answer: the answer `traced` as JSON text, owned by the caller. */
dt_status dt_group_trace(struct dt_group *group, int handle, int steps, int64_t deadline_ns,
                         char **answer, struct dt_failure *failure) DT_MUST_CHECK;
/* Writes the output of the plan's last step to a file; of several replicas that of the first. */
dt_status dt_group_write(struct dt_group *group, int handle, const char *path, int64_t deadline_ns,
                         struct dt_failure *failure) DT_MUST_CHECK;

/* Any other request to a group of one replica; answer_op is the "op" expected ("failed" becomes a
 * failure). *answer is a new reference. */
dt_status dt_group_call(struct dt_group *group, const json_t *request, const char *answer_op,
                        int64_t deadline_ns, json_t **answer,
                        struct dt_failure *failure) DT_MUST_CHECK;

/* Sends quit, or closes the worker's standard input, and waits for its end; describes it ("exited
 * with 0", "killed by signal 9 (SIGKILL)"). False when it still runs after patience_ns. Only
 * dt_group_stop may follow. */
bool dt_group_end(struct dt_group *group, bool say_quit, int64_t patience_ns, char how[],
                  size_t room);

/* quit, then TERM, then KILL: at most grace_ns in all; every rank is gone and the session
 * directories removed when it returns. NULL is fine. */
void dt_group_stop(struct dt_group *group, int64_t grace_ns);

/* Set by the signal handler of the program (0, SIGINT, SIGTERM): the calls above then
 * return DT_EINTR soon. */
extern volatile int dt_group_interrupted;

/* For the display of a running program, where set. The functions must be fast, since steps may
 * be measured meanwhile. */
struct dt_group_watch {
    /* Before the calls above wait, after a signal, and about once a second while they wait. phase:
     * "loading", "verifying", "warming up", "measuring"; said: text of the worker's last
     * heartbeat, "": none. */
    void (*tick)(void *context, const char *phase, const char *said);
    /* A worker's standard error, as it arrives. */
    void (*output)(void *context, const char *bytes, size_t size);
    /* A sentence of a private program, whose record has a shorter one: for a
     * terminal, and no file. */
    void (*confide)(void *context, const char *sentence);
    void *context;
};
extern struct dt_group_watch dt_group_watch;

/* Output of a program that is not a worker. */
struct dt_output {
    struct dt_text out, messages; /* standard output and error, owned */
    char how[80];                 /* how it failed: "exited with 1"; "": it exited with 0 */
};
/* Runs it to its end, or until deadline_ns (dt_clock_machine_ns), and kills its remaining
 * processes. argv is NULL-ended. The only errors are DT_EINTR and those of this process. */
dt_status dt_output_read(const char *path, char *const argv[], int64_t deadline_ns,
                         struct dt_output *output) DT_MUST_CHECK;
void dt_output_fini(struct dt_output *output);

#endif
