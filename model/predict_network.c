/* SPDX-License-Identifier: MIT */
/* The built-in network: shares are those of the layout, so uneven ones count in full, as a step
 * ends with its largest rank. */
#include "model/family.h"
#include "model/predict.h"
#include "model/predict_int.h"

#include <math.h>

/* Rates of one thread of cores, or of a GPU, and the seconds of operations that have no size. */
struct rates {
    double gemm, attention; /* operations */
    double copy, link;      /* bytes read or written; bytes that a rank sends */
    double call, team;      /* seconds of an operation; more where threads share it */
    double message;         /* seconds of an exchange with another rank */
    double merge;           /* seconds to merge one output of a ring's blocks */
    double score;           /* seconds of the exponential of a query and a key */
    double tile_q, tile_kv; /* queries and keys that the start of a tile is worth */
    double uneven;          /* share of the step that ranks wait, for each doubling of them */
};
/* Fitted to the first recordings of three of the four spaces in tests/landscapes/cores.csv:
 * float32, one core of an AMD EPYC (Zen 4). */
static const struct rates core = {.gemm = 1.1e11,
                                  .attention = 5.5e10,
                                  .copy = 3.7e10,
                                  .link = 7.9e9,
                                  .call = 2.4e-6,
                                  .team = 3.2e-6,
                                  .message = 9.8e-6,
                                  .merge = 3.1e-9,
                                  .score = 6.7e-10,
                                  .tile_q = 4.7,
                                  .tile_kv = 5.1,
                                  .uneven = 0.019};

/* On a GPU dittune's own attention starts a tile of queries for each of its tiles of keys, cuDNN
 * chooses tiles itself; float32 runs at a sixteenth of bfloat16, tf32 at half (the datasheet's
 * ratios on an H100); a graph saves a launch's share on the host. */
#define GPU_TILE_Q      64
#define GPU_MERGE_BYTES 48
#define GPU_EAGER_S     1.4e-6
#define GPU_FLOAT32     16
#define GPU_TF32        2

static struct rates gpu_rates(const struct dt_machine_card *machine,
                              const struct dt_workload *workload, const struct dt_plan *plan)
{
    struct dt_reached reached = dt_reached_on(machine, dt_network_head(&workload->network));
    bool own = plan->attention == DT_ATTENTION_OWN;
    double narrow = workload->dtype == DT_BFLOAT16 ? 1
                    : workload->dtype == DT_TF32   ? GPU_TF32
                                                   : GPU_FLOAT32;
    return (struct rates){.gemm = reached.gemm / narrow,
                          .attention =
                              reached.attention / narrow * (own ? 1 + GPU_TILE_Q / 128.0 : 1),
                          .copy = reached.copy,
                          .link = reached.link,
                          .merge = GPU_MERGE_BYTES / reached.copy,
                          .call = reached.call + (plan->graph ? 0 : GPU_EAGER_S),
                          .message = reached.message,
                          .tile_q = own ? GPU_TILE_Q : 0,
                          .uneven = core.uneven};
}

/* A plan of a workload, and rank 0's shares. */
struct share {
    const struct dt_workload *workload;
    const struct dt_plan *plan;
    struct dt_layout layout;
    double threads, element, width; /* bytes of an activation; channels of the own heads */
};

/* Seconds of one layer. Threads take whole tiles of queries; the last tiles are not full. */
static double attention_seconds(const struct rates *rates, const struct share *own)
{
    double keys = dt_workload_tokens(own->workload), queries = own->layout.block;
    double tile_q = fmin(own->plan->tile_q, queries),
           tile_kv = fmin(own->plan->tile_kv, keys / own->plan->ring);
    double scores = (double)own->layout.sequences * own->layout.heads * queries * keys;
    double units = own->layout.sequences * (double)own->layout.chunk_heads * ceil(queries / tile_q);
    double turns = ceil(units / own->threads) / units;
    double score = 4 * own->width / own->layout.heads / rates->attention + rates->score;
    return scores * score * turns * (1 + rates->tile_q / tile_q + rates->tile_kv / tile_kv);
}

/* Queries, keys, values and back; both sides pack and unpack, where the layers do
 * not write what is sent. */
static double all_to_all_seconds(const struct rates *rates, const struct share *own)
{
    double u = own->plan->ulysses;
    double bytes = 4.0 * own->layout.sequences * own->layout.slots * own->workload->network.hidden *
                   own->element;
    double passes = own->plan->exchange == DT_PLAN_DIRECT ? 1 : 4;
    if (u <= 1)
        return 0;
    return bytes * (u - 1) / u / rates->link + passes * bytes / own->threads / rates->copy +
           2 * own->plan->chunks * rates->message;
}

/* Keys and values of every block but the own one; outputs are merged. */
static double ring_seconds(const struct rates *rates, const struct share *own)
{
    double bytes =
        2.0 * own->layout.sequences * own->layout.block_slots * own->width * own->element;
    double send = bytes / rates->link + own->plan->chunks * rates->message;
    double merged = (double)own->layout.sequences * own->layout.block * own->width;
    return (own->plan->ring - 1) * (send + merged * rates->merge / own->threads);
}

static double guidance_seconds(const struct rates *rates, const struct share *own)
{
    const struct dt_network *network = &own->workload->network;
    double bytes = (double)own->layout.images * own->layout.tokens * network->in_channels *
                   network->patch * network->patch * (double)sizeof(float);
    return own->plan->cfg > 1 ? rates->message + bytes / rates->link : 0;
}

/* An operation of each chunk is one more. */
static double exchange_calls(const struct share *own)
{
    double layers = dt_family_attentions(own->workload);
    double travels = own->plan->ulysses > 1 ? 4 : own->plan->ring > 1 ? 1 : 0;
    return dt_family_calls(own->workload) +
           layers * (own->plan->chunks * (1 + travels) - 1 + 2 * (own->plan->ring - 1));
}

void dt_predict_network(const struct dt_workload *workload, const struct dt_plan *plan,
                        const struct dt_machine_card *machine, int cores,
                        struct dt_prediction *prediction)
{
    struct share own = {.workload = workload,
                        .plan = plan,
                        .threads = plan->threads > 1 ? plan->threads : 1,
                        .element = dt_dtype_bytes(workload->dtype)};
    const struct rates found = machine != NULL ? gpu_rates(machine, workload, plan) : core;
    const struct rates *rates = &found;
    double *term = prediction->term, sum = 0, layers = dt_family_attentions(workload);
    *prediction =
        (struct dt_prediction){.devices = plan->ranks,
                               .hosts = 1,
                               .link = DT_LINKS,
                               .memory_bytes = (double)dt_workload_rank_bytes(workload, plan)};
    dt_layout_init(&own.layout, workload, plan, 0);
    own.width = (double)own.layout.heads * dt_network_head(&workload->network);
    double rows = (double)own.layout.sequences * own.layout.tokens;
    term[DT_TERM_gemm] = 2 * own.layout.sequences * dt_family_linear(workload, own.layout.tokens) /
                         own.threads / rates->gemm;
    term[DT_TERM_attention] = layers * attention_seconds(rates, &own);
    term[DT_TERM_passes] = rows * dt_family_rest_bytes(workload) / own.threads / rates->copy;
    term[DT_TERM_launch] =
        exchange_calls(&own) * (rates->call + rates->team * (own.threads > 1 ? 1 : 0));
    term[DT_TERM_ulysses] = layers * all_to_all_seconds(rates, &own);
    term[DT_TERM_ring] = layers * ring_seconds(rates, &own);
    term[DT_TERM_guidance] = guidance_seconds(rates, &own);
    for (int i = 0; i < DT_TERMS; i++)
        sum += term[i];
    double crowd = machine != NULL ? 1 : fmax(1, ceil(own.threads * plan->ranks / cores));
    term[DT_TERM_skew] = sum * (crowd * (1 + rates->uneven * log2(plan->ranks)) - 1);
    prediction->request = prediction->step = sum + term[DT_TERM_skew];
}
