/* SPDX-License-Identifier: MIT */
/* predict - time and memory of a plan of a published model on a machine that is not at hand
 *
 * Closed forms of a model's shape, a machine's datasheet and a plan's degrees; equations, constants with their sources and how far they
 * were from what others measured: docs/cost.md. One measured time of any plan (dt_predict_scaled) removes most of what the forms do not
 * know: kernels, modes, clocks.
 *
 *     struct dt_predict_job job = {.card = &card, .machine = &machine, .size = card.usual, .text_tokens = 512, .steps = 28};
 *     struct dt_prediction p;
 *     dt_predict(&job, &(struct dt_degrees){.ulysses = 4}, &p);
 */
#ifndef DT_MODEL_PREDICT_H
#define DT_MODEL_PREDICT_H

#include "model/cards/card.h"
#include "model/machines/machine_card.h"
#include "model/workload.h"

/* What a step's time consists of, in the order of the words. */
#define DT_TERM_ROWS                                                                               \
    DT_TERM(gemm, "GEMM")                                                                          \
    DT_TERM(attention, "attention")                                                                \
    DT_TERM(passes, "element-wise passes")                                                         \
    DT_TERM(launch, "launches")                                                                    \
    DT_TERM(ulysses, "all-to-all")                                                                 \
    DT_TERM(ring, "ring")                                                                          \
    DT_TERM(gather, "all-gather of keys and values")                                               \
    DT_TERM(tensor, "all-reduce")                                                                  \
    DT_TERM(shards, "all-gather of weights")                                                       \
    DT_TERM(guidance, "exchange of guidance")                                                      \
    DT_TERM(pipe, "pipeline")                                                                      \
    DT_TERM(host, "host")                                                                          \
    DT_TERM(skew, "imbalance")
enum dt_term {
#define DT_TERM(name, text) DT_TERM_##name,
    DT_TERM_ROWS
#undef DT_TERM
        DT_TERMS
};
extern const char *const dt_term_texts[];

/* Degrees of a plan; 0 counts as 1. Neighbours in `tensor` are consecutive ranks, then those in ulysses, ring, kv_gather, pipe and cfg;
 * ranks fill as many hosts as they need, as many on each. */
struct dt_degrees {
    int cfg, tensor, ulysses, ring, kv_gather, pipe;
    int vae, text_encoder; /* devices that share these */
    bool shards;           /* weights are split between all devices and gathered (FSDP, HSDP) */
};

/* What is computed, and by what kind of engine. */
struct dt_predict_job {
    const struct dt_card *card;
    const struct dt_machine_card *machine;
    struct dt_frames size;
    int text_tokens, steps;
    bool guided; /* a step has the card's passes */
    /* of the engine, as dt_engine_runs of db/engines/engines.h sets them: */
    bool eager;   /* operations are launched one by one from Python, element-wise ones unfused */
    bool wrapped; /* and sequence parallelism is a wrapper around them, as in xDiT */
    bool shares_encoder; /* the text encoder is split between all devices */
};

struct dt_prediction {
    int devices, hosts;    /* of one replica */
    enum dt_link link;     /* the farthest that its exchanges cross; DT_LINKS: none */
    double term[DT_TERMS]; /* seconds of a step */
    double step;           /* seconds: their sum */
    double vae, text;      /* seconds of a request beside its steps */
    double request;        /* seconds: steps, VAE, text */
    double memory_bytes;   /* of a device */
};

/* Overwrites *prediction. */
void dt_predict(const struct dt_predict_job *job, const struct dt_degrees *degrees,
                struct dt_prediction *prediction);

/* The same for a plan of the built-in network (model/predict_network.c): its own shares and tiles. machine NULL: on cores, so many
 * of the host that the plan's ranks and their threads share; there is no VAE and no text, and a request is one step. */
void dt_predict_network(const struct dt_workload *workload, const struct dt_plan *plan,
                        const struct dt_machine_card *machine, int cores,
                        struct dt_prediction *prediction);

/* All times by a factor: measured over predicted time of one plan. */
void dt_predict_scaled(struct dt_prediction *prediction, double factor);

/* The largest term. */
enum dt_term dt_predict_limit(const struct dt_prediction *prediction);

/* Standard deviation of the logarithm of true over predicted time. anchor: the plan whose measured time scaled it, NULL: none;
 * unsure: modes, link, device or size are not those of the forms. */
double dt_predict_spread(const struct dt_prediction *prediction, const struct dt_prediction *anchor,
                         bool unsure);

/* An 80 % interval reaches from the time over this factor to the time by it. */
double dt_predict_factor(double spread);

/* All degrees are the same; those of VAE and text encoder are not compared. */
bool dt_degrees_equal(const struct dt_degrees *a, const struct dt_degrees *b);

enum dt_fit { DT_FITS, DT_FITS_NARROWLY, DT_FITS_NOT };

/* Narrowly: less than 5 % are left. */
enum dt_fit dt_predict_fit(const struct dt_prediction *prediction, double device_bytes);

/* The plan that the field's rule of thumb prefers: more devices on guidance, else fewer on tensors, else more on ulysses. Below 0: a. */
int dt_predict_rule(const struct dt_degrees *a, const struct dt_degrees *b);

#endif
