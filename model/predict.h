/* SPDX-License-Identifier: MIT */
/* predict - time and memory of a plan of a published model on a machine that is not at hand
 *
 * Closed forms of a model's shape, a machine's datasheet and a plan's degrees; equations,
 * constants with their sources and how far they were from what others measured: docs/cost.md. One
 * measured time of any plan (dt_predict_scaled) removes most of what the forms do not know:
 * kernels, modes, clocks.
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

/* Terms of the time of a step, with their words. */
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
    DT_TERM(stream, "weights from the host")                                                       \
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

/* Ways in which an engine lowers the memory of weights on a device, named as in its file. Pinned
 * memory of the host is copied at the link's rate and ahead of use, pageable memory at a few GB/s
 * and not beside the work. */
#define DT_SETTING_ROWS                                                                            \
    DT_SETTING(shards) /* the transformer's: split between all devices, gathered block by block */ \
    DT_SETTING(streams) /* the transformer's: block by block from pinned memory of the host */     \
    DT_SETTING(pages)   /* all: layer by layer from pageable memory of the host */                 \
    DT_SETTING(swaps) /* transformer, text encoder and VAE take turns; pageable, there and back */ \
    DT_SETTING(stages)          /* they take turns; pinned, and only there */                      \
    DT_SETTING(encoder_shards)  /* the text encoder's: split between all devices */                \
    DT_SETTING(encoder_streams) /* the text encoder's: layer by layer from pinned memory */
enum dt_setting_index {
#define DT_SETTING(name) DT_SETTING_INDEX_##name,
    DT_SETTING_ROWS
#undef DT_SETTING
        DT_SETTINGS
};
enum dt_setting {
#define DT_SETTING(name) DT_SETTING_##name = 1 << DT_SETTING_INDEX_##name,
    DT_SETTING_ROWS
#undef DT_SETTING
};
extern const char *const dt_setting_texts[]; /* NULL-ended */

/* The settings that copy weights from the host's memory; their times are less sure. */
enum {
    DT_SETTING_OF_HOST = DT_SETTING_streams | DT_SETTING_pages | DT_SETTING_swaps |
                         DT_SETTING_stages | DT_SETTING_encoder_streams
};

/* Names of the degrees, in plans and in the order of words. */
#define DT_PREDICT_DEGREE_ROWS                                                                     \
    DT_PREDICT_DEGREE(cfg)                                                                         \
    DT_PREDICT_DEGREE(tensor)                                                                      \
    DT_PREDICT_DEGREE(ulysses)                                                                     \
    DT_PREDICT_DEGREE(ring)                                                                        \
    DT_PREDICT_DEGREE(kv_gather)                                                                   \
    DT_PREDICT_DEGREE(pipe)

/* Degrees of a plan; 0 counts as 1. Neighbours in `tensor` are consecutive ranks, then those in
 * ulysses, ring, kv_gather, pipe and cfg; ranks fill as many hosts as they
 * need, as many on each. */
struct dt_degrees {
#define DT_PREDICT_DEGREE(name) int name;
    DT_PREDICT_DEGREE_ROWS
#undef DT_PREDICT_DEGREE
    int vae, text_encoder; /* devices that share these */
    unsigned settings;     /* bits of enum dt_setting */
};

/* The job and the kind of engine that computes it. */
struct dt_predict_job {
    const struct dt_card *card;
    const struct dt_machine_card *machine;
    struct dt_frames size;
    int text_tokens, steps;
    bool guided; /* a step has the card's passes */
    /* set by the engine, as dt_engine_runs of db/engines/engines.h sets them: */
    bool eager;   /* operations are launched one by one from Python, element-wise ones unfused */
    bool wrapped; /* and sequence parallelism is a wrapper around them, as in xDiT */
    bool shares_encoder; /* the text encoder is split between all devices */
};

struct dt_prediction {
    int devices, hosts;    /* one replica's */
    enum dt_link link;     /* the farthest that its exchanges cross; DT_LINKS: none */
    double term[DT_TERMS]; /* seconds of a step */
    double step;           /* seconds: their sum */
    double vae, text;      /* seconds of a request beside its steps */
    double request;        /* seconds: steps, VAE, text */
    double memory_bytes;   /* one device's */
};

/* Overwrites *prediction. */
void dt_predict(const struct dt_predict_job *job, const struct dt_degrees *degrees,
                struct dt_prediction *prediction);

/* The same for a plan of the built-in network (model/predict_network.c): its own shares and tiles.
 * machine NULL: on cores, so many of the host that the plan's ranks and their threads share; there
 * is no VAE and no text, and a request is one step. */
void dt_predict_network(const struct dt_workload *workload, const struct dt_plan *plan,
                        const struct dt_machine_card *machine, int cores,
                        struct dt_prediction *prediction);

/* All times by a factor: measured over predicted time of one plan. */
void dt_predict_scaled(struct dt_prediction *prediction, double factor);

/* The longest part of a request: the text of a step's term, "VAE" or "text encoder". */
const char *dt_predict_limit(const struct dt_prediction *prediction);

/* Standard deviation of the logarithm of true over predicted time. anchor: the plan whose
 * measured time scaled it, NULL: none; of another plan of as many devices it is at least
 * that of their ratio;
 * unsure: modes, link, device or size are not those of the forms. */
double dt_predict_spread(const struct dt_prediction *prediction, const struct dt_prediction *anchor,
                         bool unsure);

/* The same of the ratio of two predictions' times, where a host that takes part in both cancels.
 * unsure: exactly one of the two is; what makes both unsure is taken to cancel. */
double dt_predict_ratio_spread(const struct dt_prediction *a, const struct dt_prediction *b,
                               bool unsure);

/* An 80 % interval reaches from the time divided by this factor to the time multiplied by it. */
double dt_predict_factor(double spread);

/* All degrees and settings are the same; degrees of VAE and text encoder are not compared. */
bool dt_degrees_equal(const struct dt_degrees *a, const struct dt_degrees *b);

enum dt_fit { DT_FITS, DT_FITS_NARROWLY, DT_FITS_NOT };

/* Narrowly: less than 5 % are left. */
enum dt_fit dt_predict_fit(const struct dt_prediction *prediction, double device_bytes);

/* Plans that are predicted within this factor of the best tie: the fewest devices come first, then
 * what the rule of thumb prefers. */
#define DT_PREDICT_TIE 1.02

/* The plan that the field's rule of thumb prefers: more devices on guidance, else fewer on tensors,
 * else more on ulysses. Below 0: a. */
int dt_predict_rule(const struct dt_degrees *a, const struct dt_degrees *b);

#endif
