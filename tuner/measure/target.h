/* SPDX-License-Identifier: MIT */
/* target - a job ready to run: the built-in DiT at one size, or a foreign worker,
 * behind one interface
 *
 * A target has a space, the default, documented and baseline plans, the program that runs plans,
 * and the identity under which results are stored.
 */
#ifndef DT_TUNER_MEASURE_TARGET_H
#define DT_TUNER_MEASURE_TARGET_H

#include "space/space.h"
#include "tuner/machine/machine.h"
#include "tuner/measure/job.h"
#include "tuner/runner/runner.h"

#include <stdbool.h>

/* Names of the target, for people and for the store. */
struct dt_identity {
    char title[256];    /* "DiT-S/2, 256 x 256 px, guided, float32" */
    char engine[64];    /* "dittune", or the foreign worker's name */
    char mode[32];      /* "eager" */
    char note[200];     /* a foreign worker's, for people: part of no key */
    char dtype[16];     /* "float32" */
    char reference[16]; /* data type of the reference, of a target that is read back */
    json_t *key, *hard; /* the store's (db/lookup/key.h) */
};

/* The program that runs plans. */
struct dt_target_worker {
    char program[4096];
    char rank_program[4096]; /* on several hosts: becomes a rank of a worker with launch torchrun */
    const char *const *arguments; /* NULL-ended, borrowed from the job; may be NULL */
    enum dt_launcher launcher;    /* who starts ranks */
    bool alone;                   /* one plan is resident at a time */
    bool is_private;              /* its command is stored as a hash */
    int samples;                  /* timed steps of a start, at most; 0: not limited */
    /* plans of up to so many ranks share one group; 0: only plans of equal ranks do */
    int switched;
    struct dt_assignment assigned; /* to a foreign worker */
    int64_t start_ns;              /* time that a group has to get ready */
    int64_t asked_ns;              /* that a foreign worker's first start took, for its hello */
    json_t *wanted;                /* the job that the user gave */
    json_t *hello, *ready; /* replies of a foreign worker when it was started; NULL for ours */
    /* in a session that is read back: {"engine", "program", "arguments"}; NULL: not recorded */
    json_t *started;
    json_t *announced; /* the hello's "parameters", "constants" and "rules" */
};

/* The devices that plans run on. */
struct dt_hardware {
    struct dt_backend backend;
    struct dt_backend watched; /* GPUs of a foreign worker's ranks, before it was started */
    const struct dt_described *described; /* while the target is made; NULL: this machine */
    const char *unit;                     /* device of a rank: "core" or "GPU" */
    int cores, devices;                   /* available cores, or GPUs; most ranks of a plan */
    struct dt_hosts hosts;                /* that they are on; count 0: this machine alone */
    bool mixed_hosts;                     /* these may differ */
};

/* Operations and bytes of an image (model/workload.h); 0: unknown. */
struct dt_image_work {
    int sampler_steps;      /* denoising steps */
    double flops;           /* operations of one step */
    double attention_flops; /* the attention's part of flops */
    double rest_bytes;      /* lower bound of the bytes of passes between the matrix products */
    /* the meaning of a foreign worker's step, in words; NULL: a denoising step */
    const char *step;
    /* its step is a run of a program: nothing is resident, no output is
     * verified, and no step warms up another */
    bool starts;
    bool known;    /* the image's denoising steps are: from a foreign worker, or given */
    int steps;     /* these */
    bool is_image; /* its step is a whole image: sampler_steps is 1 */
    bool request;  /* it is a request to a server, whose answer is not compared with a reference */
    int64_t text_and_vae_ns; /* time of an image besides its steps; 0: not known */
    bool given;              /* text_and_vae_ns, by the user; otherwise the worker measured it */
    /* the different denoising steps of a request, [{"count": 2, "say": "transformer, 2 calls"},
     * ..], owned; NULL: not told */
    json_t *step_kinds;
};

/* The plan that the engine's documentation tells a careful user to set, for this
 * job on these devices. */
struct dt_documented {
    bool known;
    struct dt_point point;
    /* where that is written, its date "2026-08-27", and what it says, a sentence */
    char source[480], date[16], says[240];
};

/* Memory that the server holds beside a plan, as its text encoder. */
struct dt_reserve {
    int64_t bytes; /* bytes of each device, or of the machine on cores; 0: none */
    int64_t total; /* bytes that a device, or the machine, has */
    bool shared;   /* it is the machine's, by all ranks */
};

struct dt_target {
    struct dt_space *space;
    json_t *workload;  /* for the worker's hello; NULL for foreign workers */
    json_t *reference; /* the workload, or a foreign worker's job, in float32, for the reference */
    int64_t plans;     /* number of plans; -1: too many to count */
    struct dt_point fallback, baseline; /* the default plan and the 1-rank plan */
    /* The rule of the space that the default plan breaks, as the sentence of that rule; "": none.
     * It is the engine's own choice all the same: it is measured as it is, whatever its output, and
     * is no plan of the search. */
    char broken[240];
    struct dt_documented documented;
    bool foreign;
    bool limited;      /* a foreign worker's plans with more ranks than devices are excluded */
    int64_t max_bytes; /* limit of a rank's memory; 0: none */
    struct dt_reserve reserve;
    const struct dt_objective *objective;
    double tolerance;   /* tolerance of verification */
    double least_fault; /* the smallest error of the faults that it was chosen by; 0: not known */
    double lossy_error; /* the same for plans with lossy settings; INFINITY: not limited */
    struct dt_identity identity;
    struct dt_target_worker worker;
    struct dt_hardware hardware;
    struct dt_image_work image;
};

/* Adds what several hosts add to a machine's "hard": how many they are, and the cores or
 * GPUs of all of them. */
void dt_hosts_describe(const struct dt_hosts *hosts, json_t *hard);

/* Builds the space; probes a foreign worker's hello by starting it once. An empty space is no error
 * here: fallback and baseline are then unset (dt_space_count is 0). Of the job, the target borrows
 * the objective and the arguments.
 * DT_EUSAGE: also when the worker cannot do the job, or does not obey a field of it. */
dt_status dt_target_new(const struct dt_job *job, struct dt_target **target) DT_MUST_CHECK;
void dt_target_free(struct dt_target *target);
DT_FREE_AT(dt_target_free, struct dt_target)

/* The fields of a foreign worker's job, as its key has them; none for ours. The
 * texts are the target's. */
void dt_target_task(const struct dt_target *target, struct dt_task *task);

/* Memory of one device, or of all cores; 0: unknown. */
int64_t dt_target_memory(const struct dt_target *target);
/* Holds so much memory of each device back. DT_EUSAGE where their memory is not known. */
dt_status dt_target_hold_back(struct dt_target *target, int64_t bytes) DT_MUST_CHECK;
/* A plan of so many ranks, replicas included, of which the largest takes so much, exceeds
 * --max-bytes or leaves less than
 * --reserve; why: a sentence is appended, or NULL. */
bool dt_target_exceeds(const struct dt_target *target, int ranks, int64_t peak_bytes,
                       struct dt_text *why);

/* Values of a point's ranks, batch or replicas; 1 without such a parameter. Ranks and
 * batch are of one replica. */
int dt_target_ranks(const struct dt_target *target, const struct dt_point *point);
int dt_target_replicas(const struct dt_target *target, const struct dt_point *point);
int dt_target_batch(const struct dt_target *target, const struct dt_point *point);
/* The point is a default plan that breaks a rule; and its output, compared with the
 * reference, is wrong. */
bool dt_target_breaks(const struct dt_target *target, const struct dt_point *point);
bool dt_target_wrong(const struct dt_target *target, const struct dt_point *point, double error);

/* The point is the documented plan. */
bool dt_target_documented(const struct dt_target *target, const struct dt_point *point);

/* Devices a plan holds while it runs: ranks of all replicas, times threads of a CPU rank. */
int dt_target_devices(const struct dt_target *target, const struct dt_point *point);
bool dt_target_oversubscribed(const struct dt_target *target, const struct dt_point *point);

/* The GPUs that plans run on, as they were before the first worker was started, also those of a
 * foreign worker; NULL: cores, or devices that the controller does not find. Borrowed. */
const struct dt_backend *dt_target_gpus(const struct dt_target *target);

/* Before anything is measured: DT_EDIRTY with a sentence when others use the GPUs,
 * unless that was allowed. */
dt_status dt_target_devices_free(const struct dt_target *target) DT_MUST_CHECK;

/* Product name of the GPUs ("Simulated GPU" for fake ones); NULL on cores. Borrowed. */
const char *dt_target_hardware(const struct dt_target *target);

/* The text that image.step has for this word of a record; NULL: none of them. */
const char *dt_target_step(const char *doc);

/* Seconds of a batch of whole images whose step takes `step` seconds; without text encoder and VAE
 * where they are not known. */
double dt_target_image_seconds(const struct dt_target *target, double step, int batch);

/* Data type of the reference that outputs are compared with; "": not known. */
const char *dt_target_reference(const struct dt_target *target);

/* Adds why verification cannot tell all faults from rounding in this data type: the tolerance is
 * more than a third of the smallest fault that was planted to choose it. Nothing: it can, or no
 * faults were planted. */
void dt_target_blind(const struct dt_target *target, struct dt_text *out);

/* The options of a foreign worker's job as it understood it, as far as it obeys them: " --model
 * flux --size 64x32"; "" for the built-in network. learned: also what it found by itself, as a
 * look-up without the worker has to name it. */
void dt_target_options(const struct dt_target *target, bool learned, struct dt_text *out);

/* "8 GPUs" */
void dt_target_units(const struct dt_target *target, int n, struct dt_text *out);

/* "84 plans", or that they are too many to count. */
void dt_target_plans(const struct dt_target *target, struct dt_text *out);

/* A plan's text: the point; DT_EUSAGE or DT_EINFEASIBLE with the sentence of the space. */
dt_status dt_target_plan(const struct dt_target *target, const char *text,
                         struct dt_point *point) DT_MUST_CHECK;

/* A stored plan: a plan of the space, or the default plan though it breaks a rule. Errors
 * of dt_point_from_json. */
dt_status dt_target_stored(const struct dt_target *target, const json_t *plan,
                           struct dt_point *point) DT_MUST_CHECK;

/* DT_EINFEASIBLE with a sentence when no plan is feasible: which rule removes most. */
dt_status dt_target_check(const struct dt_target *target) DT_MUST_CHECK;

/* The description of the machine, for the fingerprint; new reference. A worker that has not
 * answered yet is started where its versions are not cached; if it does not start, they are
 * missing: the session reports it, and a check does not check its plans. cached: what a foreign
 * worker answered is kept for the next time. */
json_t *dt_target_machine(const struct dt_target *target, int64_t deadline_ns, bool cached);

#endif
