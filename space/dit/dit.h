/* SPDX-License-Identifier: MIT */
/* dit - the space of the built-in DiT: rows of model/plan.def, rules of space/dit/dit_rules.def
 *
 * Unnamed parameters get a careful user's default: each degree as large as possible, in the order
 * of the column `grows` of model/degrees.def (ulysses up to the head limit); all cores of a rank's
 * share as threads. An unnamed `ranks` is the product of the named degrees, else the number of
 * devices that are cores.
 *
 * Each rank has a GPU of its own there. Attention has FlashAttention-2's tile, or is cuDNN's where
 * that is known to be faster; steps are CUDA graphs, of several ranks where exchanges can be part
 * of one. So no gain is one that every engine has already.
 */
#ifndef DT_SPACE_DIT_DIT_H
#define DT_SPACE_DIT_DIT_H

#include "model/workload.h"
#include "space/space.h"

/* The GPUs of a machine, as the rules of plans need them. A plan uses the first
 * GPUs, one for each rank. */
struct dt_gpus {
    int count;
    int64_t memory_bytes;          /* the smallest GPU's */
    int64_t shared_bytes;          /* a block of threads may have */
    int nccl;                      /* NCCL_VERSION_CODE, as 22809; 0: none */
    int capability;                /* the lowest, 90 is 9.0; 0: not known */
    bool attention[DT_ATTENTIONS]; /* libraries built into the worker, by kind */
    bool capture;                  /* exchanges can be part of a CUDA graph */
    bool bfloat16; /* capability 8.0 or more: tensor cores multiply bfloat16 and tf32 */
};

/* Default network and size of commands. gpus NULL: cores. On a GPU the largest published DiT at its
 * largest size (Peebles & Xie 2023, DiT-XL/2 at 512 px: 0.7 billion parameters) where its float32
 * reference, 4 GiB, fits beside CUDA and NCCL; size is in pixels, 0 the model's own. */
struct dt_dit_usual {
    const char *model;
    int size;
};
struct dt_dit_usual dt_dit_usual(const struct dt_gpus *gpus);

/* The data type that people usually run a network in: bfloat16 on GPUs that have attention for the
 * network's heads in it. */
enum dt_dtype dt_dit_usual_dtype(const struct dt_network *network, const struct dt_gpus *gpus);

/* GPU memory in addition to a plan's own: the back end's workspace (kernels/cuda), and allowances
 * for the CUDA context with the libraries' code and for NCCL's buffers (about 1.6 GB for a
 * communicator and its first collective: github.com/NVIDIA/nccl/issues/864). The free memory is
 * measured before each trial. */
#define DT_GPU_CONTEXT_BYTES (INT64_C(1) << 30)
#define DT_GPU_NCCL_BYTES    (INT64_C(2) << 30)

struct dt_limits {
    /* NULL: plans of the CPU; otherwise cores and memory_bytes are ignored */
    const struct dt_gpus *gpus;
    int cores;            /* physical cores of the machine */
    int devices;          /* most ranks; may exceed cores (oversubscribed) */
    int hosts;            /* that the cores or GPUs are on; 0 or 1: this machine */
    int slots;            /* ranks on each host; used with several hosts */
    bool replicas;        /* several groups may run at the same time, on one host */
    bool oversubscribe;   /* false: ranks <= cores, or GPUs, is a rule */
    bool tune_nccl;       /* GPUs: values of NCCL's variables are worth trying */
    bool lossy;           /* GPUs: so are settings that change the output beyond rounding */
    bool no_dtype;        /* the machine does not run the workload's data type */
    int64_t memory_bytes; /* the machine's, for all ranks together */
    int64_t max_bytes;    /* most bytes of one rank; 0: no limit */
    const int *batches;   /* feasible values of batch */
    int batch_count;
};

/* Sealed. *space keeps copies. */
dt_status dt_dit_space(const struct dt_workload *workload, const struct dt_limits *limits,
                       struct dt_space **space) DT_MUST_CHECK;

/* The same, compiled only (dt_space_compile): to test plans one by one. */
dt_status dt_dit_rules(const struct dt_workload *workload, const struct dt_limits *limits,
                       struct dt_space **space) DT_MUST_CHECK;

/* Checks that a plan is feasible on some machine: all rules but the rows DT_SESSION. A worker calls
 * it before it runs a plan. DT_EINFEASIBLE with the sentence of the rule and its numbers; DT_EUSAGE
 * for a value that no space can have; DT_ENOMEM. */
dt_status dt_dit_check(const struct dt_workload *workload,
                       const struct dt_plan *plan) DT_MUST_CHECK;

/* DT_EUSAGE where no plan changes the output beyond rounding, so that limits.lossy would have no
 * effect. gpus NULL: cores. */
dt_status dt_dit_lossy(const struct dt_workload *workload,
                       const struct dt_gpus *gpus) DT_MUST_CHECK;

/* The plan of a point of such a space. */
struct dt_plan dt_dit_plan(const struct dt_space *space, const struct dt_point *point);

/* The default plan of at most `devices` ranks, and the 1-rank baseline; both with the smallest
 * batch. DT_EINFEASIBLE when there is none: the space is empty, or one rank cannot hold the network
 * (where it is compiled only: or the plan by rule fits no count of ranks). */
dt_status dt_dit_default(const struct dt_space *space, struct dt_point *point) DT_MUST_CHECK;
dt_status dt_dit_baseline(const struct dt_space *space, struct dt_point *point) DT_MUST_CHECK;

#endif
