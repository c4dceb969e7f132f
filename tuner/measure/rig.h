/* SPDX-License-Identifier: MIT */
/* rig - the worker groups of a session and the reference every output is compared with
 *
 * A group serves all plans of its class (rank count, replicas and environment-only parameters) and
 * is kept asleep between them. Before a new one is started, groups are ended, least recently used
 * first, until what they were seen to use and what the new one may need fit into the memory of a
 * GPU, or of the cores. A plan is made resident, verified against the 1-rank plan of the same
 * batch, and then owned by the caller:
 *
 *     dt_rig_prepare(rig, &point, deadline, &resident);     -- see resident.failure
 *     dt_rig_run(rig, &resident, 8, DT_MODE_MEASURE, deadline, &result);
 *     dt_rig_release(rig, &resident);
 *
 * A failure of the worker is data (resident->failure); an error return is the
 * controller's own or DT_EINTR.
 */
#ifndef DT_TUNER_MEASURE_RIG_H
#define DT_TUNER_MEASURE_RIG_H

#include "tuner/measure/result.h"

#define DT_RIG_GROUPS     8
#define DT_RIG_REFERENCES 16

struct dt_rig_slot {
    struct dt_group *group; /* NULL: free */
    int ranks, replicas;    /* ranks: of each replica */
    bool apart;
    int64_t peak_bytes;         /* largest of a rank in this group so far; 0: unknown */
    int used;                   /* the group's last use, counted in prepares of the session */
    struct dt_text environment; /* "NAME=value" lines; part of the class */
};

struct dt_reference {
    int batch;
    int attempts;
    struct dt_failure failure;   /* the last attempt's; outcome DT_TRIAL_OK: none */
    struct dt_prepared prepared; /* norms and projections */
};

/* The hosts that are left of the target's. */
struct dt_rig_hosts {
    struct dt_hosts left; /* count 0: this machine alone */
    int losses
        [DT_HOSTS_MOST]; /* for each of left: groups that ended since the host did not answer */
    bool met;            /* a group on several of them was ready */
};

/* Time spent in groups so far. */
struct dt_rig_costs {
    int64_t start_ns; /* in starting them */
    int started;
    int64_t setup_ns; /* start_ns plus the references */
    /* in the first prepares of groups, with their starts: weights may be loaded there */
    int64_t load_ns;
    int loads, reference_loads; /* such prepares; those of references */
    int64_t prepare_ns;         /* in later prepares */
    int prepared;               /* plans prepared so */
};

struct dt_rig {
    const struct dt_target *target;
    struct dt_rig_slot slots[DT_RIG_GROUPS];
    struct dt_reference references[DT_RIG_REFERENCES];
    int reference_count;
    struct dt_verify verify;
    struct dt_observer *observer; /* observes a foreign worker's GPUs; NULL: none so far */
    bool reports;                 /* a worker that reads its GPUs itself */
    struct dt_gpu_use gpu_use; /* by others, since dt_rig_gpus_begin; NAN: not known, or no GPUs */
    struct dt_clocks clocks;   /* the reference to detect throttled samples */
    int64_t longest_prepare_ns;
    int64_t until_ns;    /* heartbeats extend deadlines up to this time; 0: they do not */
    int64_t end_ns;      /* end of the session: releases do not wait beyond it; 0: none */
    int64_t compared_ns; /* spent in comparisons so far */
    struct dt_rig_costs costs;
    struct dt_rig_load load; /* the last one */
    /* [prepared_count] plans that were prepared so far, by their numbers; owned */
    uint64_t *prepared;
    int prepared_count;
    struct dt_rig_hosts hosts;
    /* largest of a rank in any group so far: what a new group is expected to need */
    int64_t peak_bytes;
    bool pinned; /* do not stop groups to free slots: several plans are resident */
    bool apart;  /* prepare plans in separate groups, not shared with plans prepared without it */
};

struct dt_resident {
    struct dt_group *group;      /* NULL when it is not resident */
    int batch, replicas;         /* batch: images of a step of one replica */
    struct dt_facts facts;       /* verified_error is the largest so far */
    struct dt_prepared prepared; /* without outputs; owned, memory and remarks until described */
    struct dt_rig_load load;
    double tolerance;
    struct dt_failure failure; /* outcome DT_TRIAL_OK: none */
};

void dt_rig_init(struct dt_rig *rig, const struct dt_target *target, uint64_t seed);

/* Stops every group (at most grace_ns in total) and keeps all other state: the next plans
 * run in fresh processes. */
void dt_rig_fresh(struct dt_rig *rig, int64_t grace_ns);
void dt_rig_fini(struct dt_rig *rig, int64_t grace_ns);

/* Both plans can use one group: they have the same rank count and environment, or the worker
 * switches between their rank counts. */
bool dt_rig_same_group(const struct dt_target *target, const struct dt_point *a,
                       const struct dt_point *b);

/* A group of the point's class is alive. */
bool dt_rig_is_loaded(const struct dt_rig *rig, const struct dt_point *point);

/* The session has prepared the plan before, so that what it compiles and reads is
 * likely to be in caches. */
bool dt_rig_has_prepared(const struct dt_rig *rig, const struct dt_point *point);

/* A number of the group of a point; target: a struct dt_target. */
uint64_t dt_rig_class(const void *target, const struct dt_point *point);

/* Groups that the plans of the space need, whether all are expected to stay
 * loaded, and how many can. */
struct dt_rig_classes {
    double count;
    bool stay;
    int room; /* at least 1 */
};
struct dt_rig_classes dt_rig_classes(const struct dt_rig *rig);

/* Mean seconds of a prepare in a loaded group, and those that loading a group takes beyond it:
 * its start, and by how much its first prepare is slower. Until a group prepared a second plan, a
 * load is the start alone. */
double dt_rig_prepare_seconds(const struct dt_rig *rig);
double dt_rig_load_seconds(const struct dt_rig *rig);

/* A link as two ranks measure it that send to each other at the same time. */
struct dt_host_link {
    bool known;
    double seconds; /* time of 64 bytes */
    double bytes_per_second;
};
/* The link between two hosts, and within one that has two slots. Neither is known on one machine; a
 * link that cannot be measured until deadline_ns is none. */
dt_status dt_rig_hosts_links(struct dt_rig *rig, int64_t deadline_ns, struct dt_host_link *inside,
                             struct dt_host_link *across) DT_MUST_CHECK;

/* After a group ended: asks each host for a rank, and leaves out those that did not answer
 * DT_HOST_LOSSES times. *lost: the name of one that was left out now; "": none. Does
 * nothing on one machine. */
#define DT_HOST_LOSSES 2
dt_status dt_rig_hosts_look(struct dt_rig *rig, char lost[], size_t room) DT_MUST_CHECK;

/* Seconds of all loads and references so far: of the trials' costs they are what does not recur. */
double dt_rig_setup_seconds(const struct dt_rig *rig);

dt_status dt_rig_prepare(struct dt_rig *rig, const struct dt_point *point, int64_t deadline_ns,
                         struct dt_resident *resident) DT_MUST_CHECK;

/* n steps; the samples are added to *result, whose outcome and cause are set
 * when the worker fails. */
dt_status dt_rig_run(struct dt_rig *rig, struct dt_resident *resident, int n, enum dt_mode mode,
                     int64_t deadline_ns, struct dt_result *result) DT_MUST_CHECK;

/* One more step, whose output is verified as that of the plan's second step was: a fault that shows
 * only after several steps, or after what an earlier step left behind, is found so. Does nothing
 * when the worker cannot. */
dt_status dt_rig_verify_again(struct dt_rig *rig, struct dt_resident *resident, int64_t deadline_ns,
                              struct dt_result *result) DT_MUST_CHECK;

/* Moves the facts, memory, remarks and outcome of the resident to the result, once. */
void dt_rig_describe(struct dt_resident *resident, struct dt_result *result);

void dt_rig_release(struct dt_rig *rig, struct dt_resident *resident);

/* There are GPUs, and neither DITTUNE_LOAD=none nor --shared-devices. */
bool dt_rig_watches_gpus(const struct dt_rig *rig);
/* gpu_use before the first look: of no GPU where others may use them, too (--shared-devices). */
void dt_rig_gpus_begin(struct dt_rig *rig);
/* Looks whether others use the plans' GPUs, and keeps the most in gpu_use. Does nothing where
 * they are not watched. */
dt_status dt_rig_watch_gpus(struct dt_rig *rig, enum dt_gpu_company company) DT_MUST_CHECK;

#endif
