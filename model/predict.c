/* SPDX-License-Identifier: MIT */
/* Units: seconds, bytes, operations. Sources of the constants: docs/cost.md, by their names. */
#include "model/predict.h"

#include "base/figures.h"
#include "model/predict_constants.h"
#include "model/predict_int.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#define NORMAL_80 1.2816

const struct dt_predict_constants dt_predict_defaults = {
#define DT_CONSTANT(name, value, unit, fitted) .name = (value),
    DT_PREDICT_CONSTANTS
#undef DT_CONSTANT
};

const struct dt_predict_constant dt_predict_constant_rows[] = {
#define DT_CONSTANT(name, value, unit, fitted)                                                     \
    {#name, unit, fitted, offsetof(struct dt_predict_constants, name)},
    DT_PREDICT_CONSTANTS
#undef DT_CONSTANT
    {NULL, NULL, false, 0}};

static const struct dt_predict_constants *used = &dt_predict_defaults;

void dt_predict_use(const struct dt_predict_constants *constants)
{
    used = constants != NULL ? constants : &dt_predict_defaults;
}

const char *const dt_term_texts[] = {
#define DT_TERM(name, text) text,
    DT_TERM_ROWS
#undef DT_TERM
        NULL};

const char *const dt_setting_texts[] = {
#define DT_SETTING(name) #name,
    DT_SETTING_ROWS
#undef DT_SETTING
        NULL};

static double at_least_1(int degree)
{
    return degree > 1 ? degree : 1;
}

/* Share of the link's rate that exchanges get. */
static double link_share(enum dt_link link)
{
    const double shares[DT_LINKS] = {used->link_nvlink, used->link_hccs, used->link_pcie,
                                     used->link_pcie, used->link_network};
    return shares[link];
}

/* Buffers for each device behind it. */
static double peer_bytes(enum dt_link link)
{
    const double gib[DT_LINKS] = {used->peer_nvlink_gib, used->peer_hccs_gib, used->peer_pcie_gib,
                                  used->peer_pcie_gib, used->peer_network_gib};
    return gib[link] * DT_GIB;
}

/* Where consecutive ranks leave one link for a farther one: at multiples of `devices`. */
struct border {
    enum dt_link link;
    int devices;        /* 0: there is no such border */
    int sharing, lanes; /* devices on one side, and the lanes that they share */
};
enum { BORDERS = 4 };

/* Latency and rates of the exchanges of a group of devices. */
struct group {
    double ranks;
    double alpha;   /* seconds */
    double scatter; /* seconds a byte that a device has in an all-to-all, its own part included */
    double gather;  /* bytes a second of a device in a ring of all */
    double send;    /* bytes a second to the next device */
};

/* The degrees as numbers, and what follows from them and the job for one layer of one pass. */
struct layer {
    double cfg, tensor, ulysses, ring, gather, pipe, devices;
    double tokens, keys; /* tokens of this device, and of all */
    double hidden, inner, kv_width;
    double weights;    /* numbers of a layer by which a token is multiplied */
    double block;      /* bytes of a layer's weights on this device, of all streams */
    double copy, host; /* bytes a second; host: from its pinned memory */
    unsigned settings;
    struct border borders[BORDERS];
};

/* The measured rate, else a share of the datasheet's. */
static double rate_of(struct dt_rate rate, double share)
{
    return rate.measured > 0 ? rate.measured : share * rate.sheet;
}

static double link_rate(const struct dt_machine_card *machine, enum dt_link link)
{
    return rate_of(machine->links[link].rate, link_share(link));
}

static double link_alpha(const struct dt_machine_card *machine, enum dt_link link)
{
    double usual = link == DT_LINK_network ? used->alpha_network_s : used->alpha_s;
    return machine->links[link].latency > 0 ? machine->links[link].latency : usual;
}

/* The fewest hosts that take so many devices, as many on each. */
static int hosts_of(const struct dt_machine_card *machine, int devices)
{
    int least = (devices + machine->devices - 1) / machine->devices;
    for (int hosts = least; hosts <= machine->hosts; hosts++)
        if (devices % hosts == 0)
            return hosts;
    return least;
}

static long common_divisor(long a, long b)
{
    while (b != 0) {
        long rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Between parts of `each` devices of a host that has `own` ranks. Ranks on a host that are no
 * multiple of a part leave its last part unfilled: then every border of every host is a multiple
 * of the common divisor. */
static struct border border_within(enum dt_link link, int each, int own, int lanes)
{
    const struct border none = {.link = link};
    return each < 1 || own <= each ? none
                                   : (struct border){.link = link,
                                                     .devices = (int)common_divisor(own, each),
                                                     .sharing = each,
                                                     .lanes = lanes};
}

/* Sets the borders, from the nearest link to the farthest. */
static void find_borders(const struct dt_machine_card *machine, int devices,
                         struct border borders[BORDERS])
{
    int hosts = hosts_of(machine, devices), own = (devices + hosts - 1) / hosts;
    int reached = machine->reach / machine->devices; /* hosts */
    const struct dt_machine_link *links = machine->links;
    const int rack = own * (reached > 1 ? reached : 1);
    const struct border found[BORDERS] = {
        border_within(DT_LINK_pcie, machine->per_switch, own, 1),
        border_within(DT_LINK_pcie, machine->reach < machine->devices ? machine->reach : 0, own, 0),
        border_within(DT_LINK_across_sockets, machine->per_socket, own,
                      links[DT_LINK_across_sockets].lanes),
        {DT_LINK_network, rack, rack, links[DT_LINK_network].lanes}};
    memcpy(borders, found, sizeof found);
}

static void note_link(struct dt_prediction *out, enum dt_link link)
{
    out->link = out->link == DT_LINKS || link > out->link ? link : out->link;
}

/* A group of `ranks` devices, each `stride` ranks from the next. Over the farther link of a border
 * goes only what crosses it, at the same time as the rest; the slowest link takes its time. */
static struct group group_of(const struct dt_predict_job *job, const struct layer *l, double ranks,
                             double stride, struct dt_prediction *out)
{
    const struct dt_machine_card *machine = job->machine;
    const double near = link_rate(machine, machine->pair);
    const long span = (long)(ranks * stride);
    struct group group = {.ranks = ranks,
                          .alpha = link_alpha(machine, machine->pair),
                          .scatter = (ranks - 1) / ranks / near,
                          .gather = near,
                          .send = near};
    if (ranks > 1)
        note_link(out, machine->pair);
    for (int i = 0; i < BORDERS; i++) {
        const struct border *border = &l->borders[i];
        const double rate = link_rate(machine, border->link), sharing = border->sharing;
        if (ranks <= 1 || border->devices < 1 || l->devices <= border->devices ||
            border->devices % span == 0 || rate <= 0)
            continue;
        /* inside: the fewest devices of the group on one side; lanes: of each device there */
        double inside = fmax(1, (double)common_divisor(border->devices, span) / stride);
        double lanes = border->lanes > 0 && border->lanes < sharing ? border->lanes / sharing : 1;
        group.alpha = fmax(group.alpha, link_alpha(machine, border->link));
        group.scatter = fmax(group.scatter, (ranks - inside) / ranks / (rate * lanes));
        group.gather = fmin(group.gather, rate * lanes * inside);
        group.send = fmin(group.send, rate * fmin(1, lanes * inside));
        note_link(out, border->link);
    }
    return group;
}

/* Weights of a layer that one token meets: of the two streams of a joint block it is one's. */
static double layer_weights(const struct dt_card *card)
{
    double hidden = card->hidden, inner = (double)card->heads * card->head_size;
    double kv = (double)card->kv_heads * card->head_size;
    double own = 2 * hidden * inner + 2 * hidden * kv;
    double cross = card->joint ? 0 : 2 * hidden * inner; /* queries and output */
    return own + cross + (card->gated ? 3 : 2) * hidden * card->feed_forward;
}

/* Bytes of a part in bfloat16; 0: not known. */
static double part_bytes(int64_t parameters)
{
    return parameters > 0 ? 2.0 * (double)parameters : 0;
}

static double block_bytes(const struct dt_card *card)
{
    double all = part_bytes(card->parameters.transformer);
    return all > 0 ? all / (card->depth * at_least_1(card->transformers)) : 2 * layer_weights(card);
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
                      .copy = rate_of(job->machine->copy, used->copy),
                      .host = rate_of(job->machine->host, used->host_link),
                      .settings = degrees->settings};
    double sequence = l.ulysses * l.ring * l.gather;
    l.devices = l.cfg * l.tensor * sequence * l.pipe;
    l.keys = (double)dt_card_tokens(card, job->size) + (card->joint ? job->text_tokens : 0);
    l.tokens = ceil(l.keys / sequence);
    l.block = block_bytes(card) / l.tensor;
    find_borders(job->machine, (int)l.devices, l.borders);
    return l;
}

/* Share of the datasheet's rate that cuDNN's attention reaches, by the head's channels. */
static double attention_eff(int head)
{
    return head > 96   ? used->attention_wide
           : head > 68 ? used->attention_middle
                       : used->attention_narrow;
}

struct dt_reached dt_reached_on(const struct dt_machine_card *machine, int head)
{
    return (struct dt_reached){.gemm = used->gemm * machine->flop_rate,
                               .attention = attention_eff(head) * machine->flop_rate,
                               .copy = rate_of(machine->copy, used->copy),
                               .link = link_rate(machine, machine->pair),
                               .message = link_alpha(machine, machine->pair),
                               .call = used->kernel_s};
}

static double all_to_all(const struct layer *l, const struct group *group)
{
    const double widths[] = {l->inner, l->kv_width, l->kv_width, l->inner};
    double seconds = 0;
    for (int i = 0; i < 4 && l->ulysses > 1; i++) {
        double bytes = 2 * l->tokens * widths[i] / l->tensor;
        seconds += group->alpha * log2(group->ranks) + bytes * group->scatter +
                   used->pack_passes * 2 * bytes / l->copy;
    }
    return seconds;
}

/* Keys and values travel while a block is attended to. */
static double around_the_ring(const struct layer *l, const struct group *group, double attention)
{
    double bytes = 4 * l->keys / l->ring * l->kv_width / (l->ulysses * l->tensor);
    double send = group->alpha + bytes / (used->one_to_one * group->send),
           block = attention / l->ring;
    double merge = used->ring_merge * 8 * l->tokens * l->inner / l->tensor / l->copy;
    return (l->ring - 1) *
           (fmax(0, send - block) + used->ring_slow * block + merge + 2 * used->kernel_s);
}

/* Each of the group sends its bytes to all others; twice, where a sum is
 * reduced and then gathered. */
static double gathered_seconds(const struct group *group, double times, double bytes)
{
    return group->alpha * log2(group->ranks) + times * (group->ranks - 1) * bytes / group->gather;
}

/* A layer's weights that are not on the device: fetched beside the work of the layer before, but
 * from pageable memory. */
static void weight_terms(const struct dt_predict_job *job, const struct layer *l,
                         struct dt_prediction *out)
{
    double *term = out->term;
    double work = term[DT_TERM_gemm] + term[DT_TERM_attention] + term[DT_TERM_passes];
    if ((l->settings & DT_SETTING_shards) != 0) {
        const struct group group = group_of(job, l, l->devices, 1, out);
        term[DT_TERM_shards] = fmax(0, gathered_seconds(&group, 1, l->block / l->devices) - work);
    }
    if ((l->settings & DT_SETTING_streams) != 0)
        term[DT_TERM_stream] = fmax(0, l->block / l->host - work);
    if ((l->settings & DT_SETTING_pages) != 0)
        term[DT_TERM_stream] = l->block / used->paged_rate;
}

/* Sets the terms of one layer of one pass. */
static void layer_terms(const struct dt_predict_job *job, const struct layer *l,
                        struct dt_prediction *out)
{
    const struct dt_reached reached = dt_reached_on(job->machine, job->card->head_size);
    double *term = out->term;
    double passes = (job->eager ? used->passes_eager : used->passes_fused) *
                    (1 - used->passes_split + used->passes_split / l->tensor);
    term[DT_TERM_gemm] = 2 * l->tokens * l->weights / l->tensor / reached.gemm;
    double met = job->card->linear ? job->card->head_size : l->keys; /* by a token */
    term[DT_TERM_attention] = 4 * l->tokens * met * l->inner / l->tensor / reached.attention;
    term[DT_TERM_passes] = passes * 4 * l->tokens * l->hidden / l->copy;
    term[DT_TERM_launch] = used->kernels * used->kernel_s;
    struct group group = group_of(job, l, l->tensor, 1, out);
    term[DT_TERM_tensor] = (job->card->joint ? 2 : 3) *
                           gathered_seconds(&group, 2, 2 * l->tokens * l->hidden / l->tensor);
    group = group_of(job, l, l->ulysses, l->tensor, out);
    term[DT_TERM_ulysses] = all_to_all(l, &group);
    group = group_of(job, l, l->ring, l->tensor * l->ulysses, out);
    term[DT_TERM_ring] = around_the_ring(l, &group, term[DT_TERM_attention]);
    group = group_of(job, l, l->gather, l->tensor * l->ulysses * l->ring, out);
    term[DT_TERM_gather] = gathered_seconds(&group, 1, 4 * l->tokens * l->kv_width / l->tensor);
    weight_terms(job, l, out);
}

/* A step: layers and passes, and what is once a step. */
static void step_terms(const struct dt_predict_job *job, const struct layer *l,
                       struct dt_prediction *out)
{
    double passes = job->guided ? job->card->passes : 1, sum = 0;
    double layers = job->card->depth * ceil(passes / l->cfg) / l->pipe;
    for (int i = 0; i < DT_TERMS; i++)
        sum += out->term[i] *= layers;
    const double stage = l->tensor * l->ulysses * l->ring * l->gather;
    struct group group = group_of(job, l, l->cfg, stage * l->pipe, out);
    if (l->cfg > 1)
        sum += out->term[DT_TERM_guidance] = group.alpha + 128 * l->keys / group.send;
    group = group_of(job, l, l->pipe, stage, out);
    if (l->pipe > 1) /* patches go from stage to stage, beside the work */
        sum += out->term[DT_TERM_pipe] =
            l->pipe *
            (group.alpha + 2 * l->tokens * l->hidden / l->pipe / (used->one_to_one * group.send));
    double wrapped = job->wrapped && l->ulysses * l->ring > 1
                         ? used->host_wrapper_s + (l->ring > 1 ? used->host_ring_s : 0)
                         : 0;
    double host = job->eager ? layers * (used->host_layer_s + wrapped) : 0;
    if (host > sum) {
        out->term[DT_TERM_host] = host - sum;
        sum = host;
    }
    out->term[DT_TERM_skew] = sum * used->imbalance * log2(l->devices);
    out->step = sum + out->term[DT_TERM_skew];
}

static double vae_seconds(const struct dt_predict_job *job, double devices)
{
    double pixels = (double)job->size.width * (double)job->size.height * (double)job->size.frames;
    double eff = job->machine->pair == DT_LINK_hccs ? used->vae_hccs : used->vae;
    double alone = used->vae_flops * pixels / (eff * job->machine->flop_rate);
    return alone * (1 / devices + used->vae_serial) / (1 + used->vae_serial);
}

/* The prompts' encoding, a negative one included, and what is copied from the
 * host once a request. */
static double text_seconds(const struct dt_predict_job *job, const struct layer *l)
{
    const struct dt_card_parameters *parameters = &job->card->parameters;
    double encoder = part_bytes(parameters->text_encoder), prompts = job->guided ? 2 : 1;
    double parts =
        part_bytes(parameters->transformer) / l->tensor + encoder + part_bytes(parameters->vae);
    double seconds = encoder > 0 ? encoder * job->text_tokens * prompts /
                                           (used->gemm * job->machine->flop_rate) +
                                       used->text_host_s
                                 : used->text_s;
    if ((l->settings & DT_SETTING_encoder_streams) != 0)
        seconds += encoder / l->host;
    if ((l->settings & DT_SETTING_pages) != 0)
        seconds += encoder / used->paged_rate;
    if ((l->settings & DT_SETTING_swaps) != 0)
        seconds += 2 * parts / used->paged_rate;
    if ((l->settings & DT_SETTING_stages) != 0)
        seconds += parts / l->host;
    return seconds;
}

/* The transformer's weights on a device. */
static double weight_bytes(const struct dt_card *card, const struct layer *l)
{
    double weights = part_bytes(card->parameters.transformer);
    double unsplit = card->unsplit >= 0 ? part_bytes(card->unsplit) : used->unsplit * weights;
    if (!(weights > 0))
        return 0; /* not known */
    if ((l->settings & (DT_SETTING_streams | DT_SETTING_pages)) != 0)
        return used->blocks_held * l->block;
    if ((l->settings & DT_SETTING_shards) != 0 && l->devices > 1)
        return weights / l->devices + used->blocks_held * l->block;
    return (unsplit + (weights - unsplit) / l->tensor) / l->pipe;
}

static double encoder_bytes(const struct dt_predict_job *job, const struct layer *l,
                            const struct dt_degrees *degrees)
{
    double encoder = part_bytes(job->card->parameters.text_encoder);
    bool shared = job->shares_encoder || (l->settings & DT_SETTING_encoder_shards) != 0;
    if ((l->settings & (DT_SETTING_encoder_streams | DT_SETTING_pages)) != 0)
        return used->encoder_held * encoder;
    return encoder / (shared ? l->devices : at_least_1(degrees->text_encoder));
}

static double memory_bytes(const struct dt_predict_job *job, const struct layer *l,
                           const struct dt_degrees *degrees)
{
    double pixels = (double)job->size.width * (double)job->size.height * (double)job->size.frames;
    double weights = weight_bytes(job->card, l), vae = part_bytes(job->card->parameters.vae);
    double encoder = encoder_bytes(job, l, degrees);
    bool turns = (l->settings & (DT_SETTING_swaps | DT_SETTING_stages)) != 0;
    double parts = turns ? fmax(weights, fmax(encoder, vae)) : weights + encoder + vae;
    double step = used->widths * 2 * l->tokens * l->hidden / l->tensor;
    double near = fmin(l->devices, l->borders[BORDERS - 1].devices); /* not over the network */
    return parts + step + used->base_gib * DT_GIB + used->pixel_bytes * pixels / l->tensor +
           peer_bytes(job->machine->pair) * (near - 1) +
           peer_bytes(DT_LINK_network) * (l->devices - near);
}

void dt_predict(const struct dt_predict_job *job, const struct dt_degrees *degrees,
                struct dt_prediction *prediction)
{
    struct layer l = layer_of(job, degrees);
    *prediction = (struct dt_prediction){.devices = (int)l.devices,
                                         .hosts = hosts_of(job->machine, (int)l.devices),
                                         .link = DT_LINKS,
                                         .text = text_seconds(job, &l)};
    layer_terms(job, &l, prediction);
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

const char *dt_predict_limit(const struct dt_prediction *prediction)
{
    int most = 0;
    for (int i = 1; i < DT_TERMS; i++)
        most = prediction->term[i] > prediction->term[most] ? i : most;
    double steps = (prediction->request - prediction->vae - prediction->text) / prediction->step;
    double longest = steps * prediction->term[most];
    if (prediction->vae > longest && prediction->vae > prediction->text)
        return "VAE";
    return prediction->text > longest ? "text encoder" : dt_term_texts[most];
}

/* Share of the step that the host would take if the engine launched operations one by one. */
static double host_share(const struct dt_prediction *prediction)
{
    double launches = prediction->term[DT_TERM_launch] / prediction->step;
    return fmin(1, launches * used->host_layer_s / (used->kernels * used->kernel_s));
}

static double distance_of(const struct dt_prediction *a, const struct dt_prediction *b)
{
    double distance = 0;
    for (int i = DT_TERM_ulysses; i <= DT_TERM_host; i++)
        distance += fabs(a->term[i] / a->step - b->term[i] / b->step);
    return distance;
}

static double spread_of(double doublings, double distance, double host, double unsure_by)
{
    return sqrt(used->spread_base * used->spread_base + pow(used->spread_devices * doublings, 2) +
                pow(used->spread_exchange * distance, 2) + pow(used->spread_host * host, 2) +
                unsure_by * unsure_by);
}

double dt_predict_spread(const struct dt_prediction *prediction, const struct dt_prediction *anchor,
                         bool unsure)
{
    double unsure_by = unsure ? used->spread_unsure : 0, host = host_share(prediction);
    if (anchor == NULL)
        return spread_of(0, 0, host, hypot(used->spread_free, unsure_by));
    double doublings = log2((double)prediction->devices / anchor->devices);
    double distance = distance_of(prediction, anchor);
    double spread =
        spread_of(doublings, distance, distance > 0 || doublings != 0 ? host : 0, unsure_by);
    return doublings == 0 && distance > 0
               ? fmax(spread, dt_predict_ratio_spread(prediction, anchor, unsure))
               : spread;
}

double dt_predict_ratio_spread(const struct dt_prediction *a, const struct dt_prediction *b,
                               bool unsure)
{
    double doublings = log2((double)a->devices / b->devices);
    double host = host_share(a) - host_share(b), unsure_by = unsure ? used->spread_unsure : 0;
    return sqrt(pow(used->ratio_base, 2) + pow(used->ratio_exchange * distance_of(a, b), 2) +
                pow(used->spread_devices * doublings, 2) + pow(used->spread_host * host, 2) +
                unsure_by * unsure_by);
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
#define DT_PREDICT_DEGREE(name) at_least_1(a->name) == at_least_1(b->name) &&
    return DT_PREDICT_DEGREE_ROWS a->settings == b->settings;
#undef DT_PREDICT_DEGREE
}
