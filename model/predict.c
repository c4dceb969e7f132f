/* SPDX-License-Identifier: MIT */
/* Units: seconds, bytes, operations. Sources of the constants: docs/cost.md, by their names. */
#include "model/predict.h"

#include "model/predict_int.h"

#include <math.h>
#include <stddef.h>

#define GIB 1073741824.0

/* Kernels: shares of the datasheet's rates, and their number. */
#define GEMM_EFF      0.82
#define COPY_EFF      0.91
#define KERNELS_LAYER 17
#define KERNEL_S      2.5e-6
#define PASSES_FUSED  16 /* each reads and writes the activations of a layer once */
#define PASSES_EAGER  45
#define PASSES_SPLIT  0.5 /* share of them that tensor parallelism divides */

/* The host of an eager engine, seconds a layer and pass. */
#define HOST_LAYER_S 1e-3
#define HOST_SP_S    0.75e-3 /* of a wrapper for sequence parallelism */
#define HOST_RING_S  0.4e-3

/* Exchange. */
#define ALPHA_S     15e-6
#define P2P_EFF     0.75  /* of a collective's rate */
#define PACK_PASSES 1.0   /* that lay out what an all-to-all sends */
#define RING_MERGE  6.0   /* passes in float32 over the output, a block */
#define RING_SLOW   0.2   /* of attention beside a transfer */
#define SKEW        0.026 /* of a step, for each doubling of the devices */

/* VAE and text. */
#define VAE_FLOPS_PX 12e6
#define VAE_EFF      0.35
#define VAE_EFF_NPU  0.025
#define VAE_SERIAL   0.035
#define TEXT_S       0.1

/* Memory. */
#define WIDTHS        16.0 /* buffers of the tokens' width at a step's peak */
#define BASE_BYTES    (2.0 * GIB)
#define WORK_BYTES_PX 130.0 /* of a pixel; shared by the tensor degree */
#define UNSPLIT_SHARE                                                                              \
    0.25 /* of the weights, which tensor parallelism leaves whole, where the card does not know */

/* Interval. */
#define SPREAD_BASE     0.03
#define SPREAD_DEVICES  0.05
#define SPREAD_EXCHANGE 0.10
#define SPREAD_UNSURE   0.15
#define SPREAD_FREE     0.25 /* without a measured time */
#define NORMAL_80       1.2816

static const double link_eff[DT_PAIRS] = {0.82, 0.75, 0.5};
static const double peer_bytes[DT_PAIRS] = {1.6 * GIB, 0.25 * GIB, 0.5 * GIB};

const char *const dt_term_texts[] = {
#define DT_TERM(name, text) text,
    DT_TERM_ROWS
#undef DT_TERM
        NULL};

static double at_least_1(int degree)
{
    return degree > 1 ? degree : 1;
}

/* The degrees as numbers, and what follows from them and the job for one layer of one pass. */
struct layer {
    double cfg, tensor, ulysses, ring, gather, pipe, devices;
    double tokens, keys; /* of this device; of all */
    double hidden, inner, kv_width;
    double weights;    /* that a token meets in a layer */
    double copy, link; /* bytes a second */
};

/* Weights of a layer that one token meets: of the two streams of a joint block it is one's. */
static double layer_weights(const struct dt_card *card)
{
    double hidden = card->hidden, inner = (double)card->heads * card->head_size;
    double kv = (double)card->kv_heads * card->head_size;
    double own = 2 * hidden * inner + 2 * hidden * kv;
    double cross = card->joint ? 0 : 2 * hidden * inner; /* queries and output */
    return own + cross + (card->gated ? 3 : 2) * hidden * card->feed_forward;
}

static struct layer layer_of(const struct dt_predict_job *job, const struct dt_degrees *degrees)
{
    const struct dt_card *card = job->card;
    struct layer l = {.cfg = at_least_1(degrees->cfg),
                      .tensor = at_least_1(degrees->tensor),
                      .ulysses = at_least_1(degrees->ulysses),
                      .ring = at_least_1(degrees->ring),
                      .gather = at_least_1(degrees->kv_gather),
                      .pipe = at_least_1(degrees->pipe),
                      .hidden = card->hidden,
                      .inner = (double)card->heads * card->head_size,
                      .kv_width = (double)card->kv_heads * card->head_size,
                      .weights = layer_weights(card),
                      .copy = COPY_EFF * job->machine->copy_rate,
                      .link = link_eff[job->machine->pair] * job->machine->pair_rate};
    double sequence = l.ulysses * l.ring * l.gather;
    l.devices = l.cfg * l.tensor * sequence * l.pipe;
    l.keys = (double)dt_card_tokens(card, job->size) + (card->joint ? job->text_tokens : 0);
    l.tokens = ceil(l.keys / sequence);
    return l;
}

/* Share of the datasheet's rate that cuDNN's attention reaches, by the head's channels. */
static double attention_eff(int head)
{
    return head > 96 ? 0.74 : head > 68 ? 0.33 : 0.51;
}

struct dt_reached dt_reached_on(const struct dt_machine_card *machine, int head)
{
    return (struct dt_reached){.gemm = GEMM_EFF * machine->flop_rate,
                               .attention = attention_eff(head) * machine->flop_rate,
                               .copy = COPY_EFF * machine->copy_rate,
                               .link = link_eff[machine->pair] * machine->pair_rate,
                               .message = ALPHA_S,
                               .call = KERNEL_S};
}

static double all_to_all(const struct layer *l)
{
    const double widths[] = {l->inner, l->kv_width, l->kv_width, l->inner};
    double seconds = 0;
    for (int i = 0; i < 4 && l->ulysses > 1; i++) {
        double bytes = 2 * l->tokens * widths[i] / l->tensor;
        seconds += ALPHA_S * log2(l->ulysses) + bytes * (l->ulysses - 1) / l->ulysses / l->link +
                   PACK_PASSES * 2 * bytes / l->copy;
    }
    return seconds;
}

/* Keys and values travel while a block is attended to. */
static double around_the_ring(const struct layer *l, double attention)
{
    double bytes = 4 * l->keys / l->ring * l->kv_width / (l->ulysses * l->tensor);
    double send = ALPHA_S + bytes / (P2P_EFF * l->link), block = attention / l->ring;
    double merge = RING_MERGE * 8 * l->tokens * l->inner / l->tensor / l->copy;
    return (l->ring - 1) * (fmax(0, send - block) + RING_SLOW * block + merge + 2 * KERNEL_S);
}

/* Of one layer of one pass. */
static void layer_terms(const struct dt_predict_job *job, const struct layer *l, bool shards,
                        double term[DT_TERMS])
{
    const double flop_rate = job->machine->flop_rate;
    double passes =
        (job->eager ? PASSES_EAGER : PASSES_FUSED) * (1 - PASSES_SPLIT + PASSES_SPLIT / l->tensor);
    term[DT_TERM_gemm] = 2 * l->tokens * l->weights / l->tensor / (GEMM_EFF * flop_rate);
    term[DT_TERM_attention] = 4 * l->tokens * l->keys * l->inner / l->tensor /
                              (attention_eff(job->card->head_size) * flop_rate);
    term[DT_TERM_passes] = passes * 4 * l->tokens * l->hidden / l->copy;
    term[DT_TERM_launch] = KERNELS_LAYER * KERNEL_S;
    term[DT_TERM_ulysses] = all_to_all(l);
    term[DT_TERM_ring] = around_the_ring(l, term[DT_TERM_attention]);
    if (l->gather > 1)
        term[DT_TERM_gather] = ALPHA_S * log2(l->gather) +
                               4 * l->tokens * l->kv_width / l->tensor * (l->gather - 1) / l->link;
    if (l->tensor > 1)
        term[DT_TERM_tensor] = (job->card->joint ? 2 : 3) *
                               (ALPHA_S * log2(l->tensor) + 2 * (l->tensor - 1) / l->tensor * 2 *
                                                                l->tokens * l->hidden / l->link);
    if (shards && l->devices > 1) {
        double compute = term[DT_TERM_gemm] + term[DT_TERM_attention] + term[DT_TERM_passes];
        double gather = ALPHA_S * log2(l->devices) +
                        2 * l->weights / l->tensor * (l->devices - 1) / l->devices / l->link;
        term[DT_TERM_shards] = fmax(0, gather - compute);
    }
}

/* A step: layers and passes, and what is once a step. */
static void step_terms(const struct dt_predict_job *job, const struct layer *l,
                       struct dt_prediction *out)
{
    double passes = job->guided ? job->card->passes : 1, sum = 0;
    double layers = job->card->depth * ceil(passes / l->cfg) / l->pipe;
    for (int i = 0; i < DT_TERMS; i++)
        sum += out->term[i] *= layers;
    if (l->cfg > 1)
        sum += out->term[DT_TERM_guidance] = ALPHA_S + 128 * l->keys / l->link;
    if (l->pipe > 1) /* patches go from stage to stage, beside the work */
        sum += out->term[DT_TERM_pipe] =
            l->pipe * (ALPHA_S + 2 * l->tokens * l->hidden / l->pipe / (P2P_EFF * l->link));
    double wrapped =
        job->wrapped && l->ulysses * l->ring > 1 ? HOST_SP_S + (l->ring > 1 ? HOST_RING_S : 0) : 0;
    double host = job->eager ? layers * (HOST_LAYER_S + wrapped) : 0;
    if (host > sum) {
        out->term[DT_TERM_host] = host - sum;
        sum = host;
    }
    out->term[DT_TERM_skew] = sum * SKEW * log2(l->devices);
    out->step = sum + out->term[DT_TERM_skew];
}

static double vae_seconds(const struct dt_predict_job *job, double devices)
{
    double pixels = (double)job->size.width * (double)job->size.height * (double)job->size.frames;
    double eff = job->machine->pair == DT_PAIR_HCCS ? VAE_EFF_NPU : VAE_EFF;
    double alone = VAE_FLOPS_PX * pixels / (eff * job->machine->flop_rate);
    return alone * (1 / devices + VAE_SERIAL) / (1 + VAE_SERIAL);
}

static double part(int64_t parameters)
{
    return parameters > 0 ? 2.0 * (double)parameters : 0;
}

static double memory_bytes(const struct dt_predict_job *job, const struct layer *l,
                           const struct dt_degrees *degrees)
{
    const struct dt_card *card = job->card;
    double pixels = (double)job->size.width * (double)job->size.height * (double)job->size.frames;
    double weights = part(card->parameters.transformer);
    double unsplit = card->unsplit >= 0 ? part(card->unsplit) : UNSPLIT_SHARE * weights;
    double own = (unsplit + (weights - unsplit) / l->tensor) / l->pipe;
    if (degrees->shards)
        own = weights / l->devices;
    double step = WIDTHS * 2 * l->tokens * l->hidden / l->tensor;
    double sharers = job->shares_encoder ? l->devices : at_least_1(degrees->text_encoder);
    return own + part(card->parameters.text_encoder) / sharers + part(card->parameters.vae) + step +
           BASE_BYTES + WORK_BYTES_PX * pixels / l->tensor +
           peer_bytes[job->machine->pair] * (l->devices - 1);
}

void dt_predict(const struct dt_predict_job *job, const struct dt_degrees *degrees,
                struct dt_prediction *prediction)
{
    struct layer l = layer_of(job, degrees);
    *prediction = (struct dt_prediction){.devices = (int)l.devices, .text = TEXT_S};
    layer_terms(job, &l, degrees->shards, prediction->term);
    step_terms(job, &l, prediction);
    prediction->vae = vae_seconds(job, at_least_1(degrees->vae));
    prediction->request = job->steps * prediction->step + prediction->vae + prediction->text;
    prediction->memory_bytes = memory_bytes(job, &l, degrees);
}

void dt_predict_scaled(struct dt_prediction *prediction, double factor)
{
    for (int i = 0; i < DT_TERMS; i++)
        prediction->term[i] *= factor;
    prediction->step *= factor;
    prediction->vae *= factor;
    prediction->text *= factor;
    prediction->request *= factor;
}

enum dt_term dt_predict_limit(const struct dt_prediction *prediction)
{
    int most = 0;
    for (int i = 1; i < DT_TERMS; i++)
        most = prediction->term[i] > prediction->term[most] ? i : most;
    return (enum dt_term)most;
}

double dt_predict_spread(const struct dt_prediction *prediction, const struct dt_prediction *anchor,
                         bool unsure)
{
    double distance = 0, doublings = 0, unsure_by = unsure ? SPREAD_UNSURE : 0;
    for (int i = DT_TERM_ulysses; i <= DT_TERM_host && anchor != NULL; i++)
        distance += fabs(prediction->term[i] / prediction->step - anchor->term[i] / anchor->step);
    if (anchor != NULL)
        doublings = log2((double)prediction->devices / anchor->devices);
    else
        unsure_by = SPREAD_FREE;
    return sqrt(SPREAD_BASE * SPREAD_BASE + pow(SPREAD_DEVICES * doublings, 2) +
                pow(SPREAD_EXCHANGE * distance, 2) + unsure_by * unsure_by);
}

double dt_predict_factor(double spread)
{
    return exp(NORMAL_80 * spread);
}

enum dt_fit dt_predict_fit(const struct dt_prediction *prediction, double device_bytes)
{
    return prediction->memory_bytes > device_bytes          ? DT_FITS_NOT
           : prediction->memory_bytes * 1.05 > device_bytes ? DT_FITS_NARROWLY
                                                            : DT_FITS;
}

int dt_predict_rule(const struct dt_degrees *a, const struct dt_degrees *b)
{
    double more_cfg = at_least_1(b->cfg) - at_least_1(a->cfg);
    double tensor = at_least_1(a->tensor) - at_least_1(b->tensor);
    double more_ulysses = at_least_1(b->ulysses) - at_least_1(a->ulysses);
    double first = more_cfg != 0 ? more_cfg : tensor != 0 ? tensor : more_ulysses;
    return first < 0 ? -1 : first > 0;
}

bool dt_degrees_equal(const struct dt_degrees *a, const struct dt_degrees *b)
{
    return at_least_1(a->cfg) == at_least_1(b->cfg) &&
           at_least_1(a->tensor) == at_least_1(b->tensor) &&
           at_least_1(a->ulysses) == at_least_1(b->ulysses) &&
           at_least_1(a->ring) == at_least_1(b->ring) &&
           at_least_1(a->kv_gather) == at_least_1(b->kv_gather) &&
           at_least_1(a->pipe) == at_least_1(b->pipe);
}
