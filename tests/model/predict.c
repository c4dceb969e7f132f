/* SPDX-License-Identifier: MIT */
/* Predictions against another implementation of the same equations (Python, written first; ten
 * plans of two models), and laws: the terms are the step, faster links and more memory never hurt,
 * degrees divide what they divide. Machines' cards: every number has a source, and what
 * contradicts itself is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/json.h"
#include "model/predict.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static struct dt_predict_job job_of(struct dt_card *card, struct dt_machine_card *machine,
                                    const char *model, const char *name, struct dt_frames size)
{
    assert_int_equal(dt_card_load(model, card), DT_OK);
    assert_int_equal(dt_machine_card_load(name, machine), DT_OK);
    return (struct dt_predict_job){.card = card,
                                   .machine = machine,
                                   .size = size,
                                   .text_tokens = card->text_tokens,
                                   .steps = 50,
                                   .guided = card->guidance == DT_GUIDANCE_CFG};
}

static void close_to(double value, double expected)
{
    if (!(fabs(value - expected) <= 1e-6 * fabs(expected) + 1e-15))
        fail_msg("%.9g, not %.9g", value, expected);
}

/* Seconds of a layer and pass, and of a step. */
static void another_implementation_agrees(void **state)
{
    (void)state;
    static const struct {
        int cfg, tensor, ulysses;
        double gemm, attention, passes, ulysses_s, tensor_s, step;
    } rows[] = {
        {1, 2, 1, 0.0426399594, 0.0530393254, 0.015552, 0, 0.0103142571, 9.97994648},
        {2, 1, 1, 0.0852799188, 0.106078651, 0.020736, 0, 0, 8.70616463},
        {1, 1, 2, 0.0426399594, 0.0530393254, 0.010368, 0.00440468571, 0, 9.06938614},
        {1, 4, 1, 0.0213199797, 0.0265196627, 0.01296, 0, 0.0154938857, 6.42444013},
        {2, 2, 1, 0.0426399594, 0.0530393254, 0.015552, 0, 0.0103142571, 5.1164856},
        {1, 1, 4, 0.0213199797, 0.0265196627, 0.005184, 0.00314811429, 0, 4.73099184},
        {2, 1, 2, 0.0426399594, 0.0530393254, 0.010368, 0.00440468571, 0, 4.64966811},
        {1, 8, 1, 0.0106599899, 0.0132598314, 0.011664, 0, 0.0181062, 4.63389263},
        {1, 1, 8, 0.0106599899, 0.0132598314, 0.002592, 0.001908, 0, 2.45459058},
        {2, 1, 4, 0.0213199797, 0.0265196627, 0.005184, 0.00314811429, 0, 2.42402104},
    };
    struct dt_card card;
    struct dt_machine_card machine;
    struct dt_predict_job job = job_of(&card, &machine, "wan2.1-t2v-14b", "atlas-800i-a2",
                                       (struct dt_frames){832, 480, 81});
    job.eager = true;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct dt_prediction p;
        const struct dt_degrees degrees = {
            .cfg = rows[i].cfg, .tensor = rows[i].tensor, .ulysses = rows[i].ulysses};
        dt_predict(&job, &degrees, &p);
        double layers = 40.0 * 2 / rows[i].cfg;
        close_to(p.term[DT_TERM_gemm] / layers, rows[i].gemm);
        close_to(p.term[DT_TERM_attention] / layers, rows[i].attention);
        close_to(p.term[DT_TERM_passes] / layers, rows[i].passes);
        close_to(p.term[DT_TERM_ulysses] / layers, rows[i].ulysses_s);
        close_to(p.term[DT_TERM_tensor] / layers, rows[i].tensor_s);
        close_to(p.step, rows[i].step);
    }
}

/* Each degree from 1 to 4, of every model on every machine. */
static void laws_hold(void **state)
{
    (void)state;
    int count = 0;
    for (const char *const *model = dt_cards(); *model != NULL; model++)
        for (const char *const *name = dt_machine_cards(); *name != NULL; name++) {
            struct dt_card card;
            struct dt_machine_card machine, faster;
            assert_int_equal(dt_card_load(*model, &card), DT_OK);
            struct dt_predict_job job = job_of(&card, &machine, *model, *name, card.usual);
            faster = machine;
            for (int i = 0; i < DT_LINKS; i++)
                faster.links[i].rate = (struct dt_rate){4 * machine.links[i].rate.sheet,
                                                        4 * machine.links[i].rate.measured};
            for (int i = 0; i < 81; i++) {
                const int each[] = {1, 2, 4};
                const struct dt_degrees degrees = {.cfg = each[i % 3 > 1 ? 0 : i % 3],
                                                   .tensor = each[i / 3 % 3],
                                                   .ulysses = each[i / 9 % 3],
                                                   .ring = each[i / 27 % 3]};
                struct dt_prediction p, q;
                double sum = 0;
                dt_predict(&job, &degrees, &p);
                for (int k = 0; k < DT_TERMS; k++) {
                    assert_true(p.term[k] >= 0);
                    sum += p.term[k];
                }
                close_to(sum, p.step);
                close_to(p.request, job.steps * p.step + p.vae + p.text);
                job.machine = &faster;
                dt_predict(&job, &degrees, &q);
                job.machine = &machine;
                assert_true(q.step <= p.step);
                struct dt_degrees more = degrees;
                more.tensor *= 2;
                dt_predict(&job, &more, &q);
                close_to(q.term[DT_TERM_gemm], p.term[DT_TERM_gemm] / 2);
                count++;
            }
        }
    print_message("%d plans\n", count);
}

/* Two hosts whose devices send 400 GB/s to their neighbours and 40 GB/s to other hosts,
 * reading and writing 1 TB/s. */
static struct dt_machine_card two_hosts(int devices)
{
    struct dt_machine_card machine = {.hosts = 2,
                                      .devices = devices,
                                      .reach = devices,
                                      .pair = DT_LINK_nvlink,
                                      .flop_rate = 1e15,
                                      .copy = {2e12, 1e12}};
    machine.links[DT_LINK_nvlink] =
        (struct dt_machine_link){.rate = {500e9, 400e9}, .latency = 10e-6};
    machine.links[DT_LINK_network] =
        (struct dt_machine_link){.rate = {50e9, 40e9}, .latency = 20e-6};
    return machine;
}

static struct dt_prediction predicted(const struct dt_predict_job *job,
                                      const struct dt_machine_card *machine,
                                      struct dt_degrees degrees)
{
    struct dt_predict_job here = *job;
    struct dt_prediction p;
    here.machine = machine;
    dt_predict(&here, &degrees, &p);
    return p;
}

/* FLUX.1-dev at 1024 px: 4096 tokens and 512 of text, width 3072, 57 layers. Each time is
 * written out by hand: latency, then the larger of all bytes over NVLink and those that
 * cross over the network. */
static void groups_that_cross_pay_the_slower_link(void **state)
{
    (void)state;
    struct dt_card card;
    struct dt_machine_card any, machine = two_hosts(8);
    struct dt_predict_job job =
        job_of(&card, &any, "flux.1-dev", "h100", (struct dt_frames){1024, 1024, 1});
    const double layers = 57, width = 3072, n = 4608 / 16.0, all = 4608;
    assert_int_equal(card.depth, 57);

    struct dt_prediction p = predicted(&job, &machine, (struct dt_degrees){.ulysses = 16});
    double bytes = 2 * n * width; /* half of them cross: 8 of 16 parts */
    close_to(p.term[DT_TERM_ulysses],
             layers * 4 * (4 * 20e-6 + bytes / 2 / 40e9 + 2 * bytes / 1e12));
    assert_int_equal(p.hosts, 2);
    assert_int_equal(p.link, DT_LINK_network);

    /* a ring through all crosses over eight devices' networks: 320 GB/s */
    p = predicted(&job, &machine, (struct dt_degrees){.tensor = 16});
    close_to(p.term[DT_TERM_tensor],
             layers * 2 * (4 * 20e-6 + 2 * 15 / 16.0 * 2 * all * width / 320e9));

    /* ulysses within a host, rings between two devices of two hosts: their keys and
     * values are not hidden */
    p = predicted(&job, &machine, (struct dt_degrees){.ulysses = 8, .ring = 2});
    bytes = 2 * n * width;
    close_to(p.term[DT_TERM_ulysses],
             layers * 4 * (3 * 10e-6 + 7 / 8.0 * bytes / 400e9 + 2 * bytes / 1e12));
    double attention = p.term[DT_TERM_attention] / layers / 2;
    double send = 20e-6 + 4 * all / 2 * width / 8 / (0.75 * 40e9);
    close_to(p.term[DT_TERM_ring], layers * (fmax(0, send - attention) + 0.2 * attention +
                                             6 * 8 * n * width / 1e12 + 5e-6));

    /* guidance is the outermost: a half on each host */
    p = predicted(&job, &machine, (struct dt_degrees){.cfg = 2, .ulysses = 8});
    close_to(p.term[DT_TERM_guidance], 20e-6 + 128 * all / 40e9);

    /* one adapter a host, which eight devices share; in a ring one stream of it crosses */
    machine.links[DT_LINK_network].lanes = 1;
    bytes = 2 * n * width;
    p = predicted(&job, &machine, (struct dt_degrees){.ulysses = 16});
    close_to(p.term[DT_TERM_ulysses],
             layers * 4 * (4 * 20e-6 + bytes / 2 / 5e9 + 2 * bytes / 1e12));
    p = predicted(&job, &machine, (struct dt_degrees){.tensor = 16});
    close_to(p.term[DT_TERM_tensor],
             layers * 2 * (4 * 20e-6 + 2 * 15 / 16.0 * 2 * all * width / 40e9));

    /* 6 devices are 3 on each of two hosts of 4: sums of 3 stay there */
    machine = two_hosts(4);
    p = predicted(&job, &machine, (struct dt_degrees){.tensor = 3, .ulysses = 2});
    close_to(p.term[DT_TERM_tensor],
             layers * 2 * (10e-6 * log2(3) + 4 / 3.0 * 2 * all / 2 * width / 400e9));

    /* sockets of 4: three consecutive devices lie on two of them somewhere; the devices of a
     * socket share its link */
    machine.hosts = 1;
    machine.devices = machine.reach = 8;
    machine.per_socket = 4;
    machine.links[DT_LINK_across_sockets] =
        (struct dt_machine_link){.rate = {0, 20e9}, .latency = 12e-6, .lanes = 1};
    p = predicted(&job, &machine, (struct dt_degrees){.tensor = 3, .ulysses = 2});
    close_to(p.term[DT_TERM_tensor],
             layers * 2 * (12e-6 * log2(3) + 4 / 3.0 * 2 * all / 2 * width / 5e9));
    p = predicted(&job, &machine, (struct dt_degrees){.ulysses = 4, .ring = 2});
    assert_int_equal(p.link, DT_LINK_across_sockets);
    close_to(p.term[DT_TERM_ulysses] / layers / 4,
             2 * 10e-6 + 3 / 4.0 * 2 * all / 8 * width / 400e9 + 4 * all / 8 * width / 1e12);
}

/* Sockets of 4 with one link of 20 GB/s between them, on hosts whose devices are not all taken. */
static void hosts_that_are_not_filled_have_fewer_borders(void **state)
{
    (void)state;
    struct dt_card card;
    struct dt_machine_card any, machine = two_hosts(4);
    struct dt_predict_job job =
        job_of(&card, &any, "flux.1-dev", "h100", (struct dt_frames){1024, 1024, 1});
    const double layers = 57, width = 3072, all = 4608;
    const struct dt_machine_link sockets = {.rate = {0, 20e9}, .latency = 12e-6, .lanes = 1};

    /* 3 on each of two hosts: all three are on one socket */
    machine.per_socket = 4;
    machine.links[DT_LINK_across_sockets] = sockets;
    struct dt_prediction p =
        predicted(&job, &machine, (struct dt_degrees){.tensor = 3, .ulysses = 2});
    close_to(p.term[DT_TERM_tensor],
             layers * 2 * (10e-6 * log2(3) + 4 / 3.0 * 2 * all / 2 * width / 400e9));

    /* 6 on each of two hosts: ranks 4 to 7 lie on both hosts, 8 to 11 on two sockets of the second,
     * where two streams cross */
    machine = two_hosts(8);
    machine.per_socket = 4;
    machine.links[DT_LINK_across_sockets] = sockets;
    p = predicted(&job, &machine, (struct dt_degrees){.tensor = 4, .ulysses = 3});
    assert_int_equal(p.hosts, 2);
    close_to(p.term[DT_TERM_tensor],
             layers * 2 * (2 * 20e-6 + 2 * 3 / 4.0 * 2 * all / 3 * width / (2 * 20e9 / 4)));
}

/* Pairs of a bridge and of a switch: of four devices, half of what each has
 * goes to the other pair. */
static void pairs_share_what_leads_out_of_them(void **state)
{
    (void)state;
    struct dt_card card;
    struct dt_machine_card any, machine = two_hosts(8);
    struct dt_predict_job job =
        job_of(&card, &any, "flux.1-dev", "h100", (struct dt_frames){1024, 1024, 1});
    const double bytes = 2 * 4608 / 4.0 * 3072, all = 2 * 4608 * 3072;
    const struct dt_degrees ulysses = {.ulysses = 4}, tensor = {.tensor = 4};
    machine.hosts = 1;
    machine.reach = 2; /* bridges of two, each device with a PCIe link of 30 GB/s of its own */
    machine.links[DT_LINK_pcie] = (struct dt_machine_link){.rate = {0, 30e9}, .latency = 10e-6};
    struct dt_prediction p = predicted(&job, &machine, ulysses);
    close_to(p.term[DT_TERM_ulysses] / 57 / 4, 2 * 10e-6 + bytes / 2 / 30e9 + 2 * bytes / 1e12);
    p = predicted(&job, &machine, tensor); /* two streams of a ring leave a bridge */
    close_to(p.term[DT_TERM_tensor] / 57 / 2, 2 * 10e-6 + 2 * 3 / 4.0 * all / 60e9);
    p = predicted(&job, &machine, (struct dt_degrees){.ulysses = 2});
    close_to(p.term[DT_TERM_ulysses] / 57 / 4, 10e-6 + bytes / 400e9 + 4 * bytes / 1e12);
    assert_int_equal(p.link, DT_LINK_nvlink);

    machine.pair = DT_LINK_pcie;
    machine.reach = 8;
    machine.per_switch = 2; /* two devices share the switch's link of 30 GB/s */
    p = predicted(&job, &machine, ulysses);
    close_to(p.term[DT_TERM_ulysses] / 57 / 4, 2 * 10e-6 + bytes / 2 / 15e9 + 2 * bytes / 1e12);
    p = predicted(&job, &machine, tensor);
    close_to(p.term[DT_TERM_tensor] / 57 / 2, 2 * 10e-6 + 2 * 3 / 4.0 * all / 30e9);
}

/* Of each machine with a network: plans of one host are the same beside a second one; hosts whose
 * network is as good as a host's links are one host; a real one is never faster. */
static void a_second_host_is_no_magic(void **state)
{
    (void)state;
    int crossed = 0;
    for (const char *const *name = dt_machine_cards(); *name != NULL; name++) {
        struct dt_card card;
        struct dt_machine_card machine;
        struct dt_predict_job job = job_of(&card, &machine, "wan2.1-t2v-14b", *name, card.usual);
        job.size = card.usual;
        if (machine.links[DT_LINK_network].rate.sheet <= 0)
            continue;
        struct dt_machine_card two = machine, big = machine, ideal;
        two.hosts = 2;
        big.devices = big.reach = 2 * machine.devices;
        ideal = two;
        ideal.links[DT_LINK_network] = (struct dt_machine_link){
            .rate = {1e30, 1e30}, .latency = machine.links[machine.pair].latency};
        if (ideal.links[DT_LINK_network].latency <= 0)
            ideal.links[DT_LINK_network].latency = 15e-6;
        two.reach = ideal.reach = machine.devices;
        for (int i = 0; i < 1024; i++) {
            const struct dt_degrees degrees = {.cfg = 1 << (i & 3),
                                               .tensor = 1 << (i >> 2 & 3),
                                               .ulysses = 1 << (i >> 4 & 3),
                                               .ring = 1 << (i >> 6 & 3),
                                               .kv_gather = 1 << (i >> 8 & 3),
                                               .settings = i % 3 == 0 ? DT_SETTING_shards : 0};
            struct dt_prediction on_two = predicted(&job, &two, degrees);
            struct dt_prediction on_big = predicted(&job, &big, degrees);
            struct dt_prediction on_ideal = predicted(&job, &ideal, degrees);
            if (on_two.devices > 2 * machine.devices)
                continue;
            for (int k = 0; k < DT_TERMS; k++) {
                close_to(on_ideal.term[k], on_big.term[k]);
                assert_true(on_two.term[k] >= on_big.term[k] * (1 - 1e-9));
            }
            struct dt_prediction on_one = predicted(&job, &machine, degrees);
            if (on_two.devices <= machine.devices) {
                assert_memory_equal(on_one.term, on_two.term, sizeof on_one.term);
                close_to(on_two.memory_bytes, on_one.memory_bytes);
            }
            crossed += on_two.link == DT_LINK_network;
        }
    }
    assert_true(crossed > 100);
}

/* A setting never raises the memory and never makes a request shorter. */
static void settings_trade_time_for_memory(void **state)
{
    (void)state;
    int lower[DT_SETTINGS] = {0};
    for (const char *const *model = dt_cards(); *model != NULL; model++)
        for (const char *const *name = dt_machine_cards(); *name != NULL; name++) {
            struct dt_card card;
            struct dt_machine_card machine;
            assert_int_equal(dt_card_load(*model, &card), DT_OK);
            struct dt_predict_job job = job_of(&card, &machine, *model, *name, card.usual);
            assert_true(machine.host.sheet > 0);
            for (int i = 0; i < 8 * DT_SETTINGS; i++) {
                struct dt_degrees degrees = {
                    .cfg = 1 + (i & 1), .tensor = 1 + (i & 2), .ulysses = 1 + (i & 4)};
                struct dt_prediction p, q;
                dt_predict(&job, &degrees, &p);
                degrees.settings = 1U << i / 8;
                dt_predict(&job, &degrees, &q);
                /* shards and the gathered blocks may be more than what tensors leave */
                bool split = i / 8 == DT_SETTING_INDEX_shards;
                if ((!split || degrees.tensor == 1) && q.memory_bytes > p.memory_bytes + 1)
                    fail_msg("%s on %s, %d devices, %s: %g of %g bytes", *model, *name, p.devices,
                             dt_setting_texts[i / 8], q.memory_bytes, p.memory_bytes);
                assert_true(q.request >= p.request * (1 - 1e-12));
                lower[i / 8] += q.memory_bytes < p.memory_bytes;
            }
        }
    for (int i = 0; i < DT_SETTINGS; i++)
        assert_true(lower[i] > 0);
}

/* Where the link is slower than the work, a step of streamed weights is the
 * time of their copies. */
static void streams_are_copies(void **state)
{
    (void)state;
    struct dt_card card;
    struct dt_machine_card machine;
    struct dt_predict_job job =
        job_of(&card, &machine, "flux.1-dev", "h100", (struct dt_frames){1024, 1024, 1});
    struct dt_degrees degrees = {.settings = DT_SETTING_streams};
    struct dt_prediction p;
    dt_predict(&job, &degrees, &p);
    close_to(p.term[DT_TERM_gemm] + p.term[DT_TERM_attention] + p.term[DT_TERM_passes] +
                 p.term[DT_TERM_stream],
             2.0 * (double)card.parameters.transformer / 52.8e9);
    machine.host.measured *= 1000;
    dt_predict(&job, &degrees, &p);
    close_to(p.term[DT_TERM_stream], 0);
    degrees.settings = DT_SETTING_pages;
    dt_predict(&job, &degrees, &p);
    close_to(p.term[DT_TERM_stream], 2.0 * (double)card.parameters.transformer / 2.5e9);
}

enum measured_kind { REQUEST, MORE, TEXT };

/* Seconds that others measured (docs/cost.md): of a request, more than without the setting, or of
 * its text encoders; share: how far the prediction may be from it, missed: and is not, as the
 * engine does not hide its copies. */
static void offload_is_near_what_was_measured(void **state)
{
    (void)state;
    static const struct {
        const char *model, *machine;
        unsigned settings;
        struct dt_frames size;
        int steps;
        enum measured_kind kind;
        double seconds, share;
        bool missed;
    } rows[] = {
#define FLUX {1024, 1024, 1}
#define CLIP                                                                                       \
    {                                                                                              \
        832, 480, 17                                                                               \
    }
        {"flux.1-dev", "h100", 0, FLUX, 1, TEXT, 0.02411, 0.1, false},
        {"flux.1-dev", "rtx-4090", 0, FLUX, 1, TEXT, 0.05715, 0.1, false},
        {"flux.1-dev", "h100", DT_SETTING_encoder_streams, FLUX, 1, TEXT, 0.1962, 0.15, false},
        {"flux.1-dev", "rtx-4090", DT_SETTING_encoder_streams, FLUX, 1, TEXT, 0.48535, 0.15, false},
        {"flux.1-dev", "h100", DT_SETTING_streams, FLUX, 50, REQUEST, 20.7, 0.15, false},
        {"flux.1-dev", "l20", DT_SETTING_streams, FLUX, 28, MORE, 17, 0.5, true},
        {"flux.1-dev", "l20", DT_SETTING_swaps, FLUX, 28, MORE, 56 - 24, 0.2, false},
        {"flux.1-dev", "l20", DT_SETTING_pages, FLUX, 28, MORE, 335 - 24, 0.2, false},
        {"wan2.2-t2v-a14b", "h200", DT_SETTING_streams, CLIP, 4, MORE, 6.77 - 4.22, 0.2, false},
        {"wan2.2-t2v-a14b", "h100", DT_SETTING_swaps, CLIP, 4, MORE, 47, 0.2, false},
#undef FLUX
#undef CLIP
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct dt_card card;
        struct dt_machine_card machine;
        struct dt_prediction p, q;
        struct dt_predict_job job =
            job_of(&card, &machine, rows[i].model, rows[i].machine, rows[i].size);
        job.steps = rows[i].steps;
        dt_predict(&job, &(struct dt_degrees){.cfg = 1}, &p);
        dt_predict(&job, &(struct dt_degrees){.settings = rows[i].settings}, &q);
        double predicted = rows[i].kind == TEXT   ? q.text
                           : rows[i].kind == MORE ? q.request - p.request
                                                  : q.request;
        double measured = rows[i].seconds;
        print_message("%s on %s: %.4g s, measured %.4g s (%+.0f %%)\n", rows[i].model,
                      rows[i].machine, predicted, measured, 100 * (predicted / measured - 1));
        assert_int_equal(fabs(predicted / measured - 1) > rows[i].share, rows[i].missed);
    }
}

/* The longest part of a request, of the forms' own seconds. */
static void the_longest_stage_limits(void **state)
{
    (void)state;
    struct dt_prediction p = {.step = 1, .vae = 5, .text = 1, .request = 10};
    p.term[DT_TERM_gemm] = 0.6;
    p.term[DT_TERM_attention] = 0.4;
    assert_string_equal(dt_predict_limit(&p), "VAE");
    p.request = 20;
    assert_string_equal(dt_predict_limit(&p), "GEMM");
    p.text = 12;
    assert_string_equal(dt_predict_limit(&p), "text encoder");
}

/* Twice the side is four times the tokens: sixteen times the attention, where each token meets
 * all, else four times. */
static void linear_attention_grows_with_the_tokens(void **state)
{
    (void)state;
    static const struct {
        const char *model;
        double times;
    } rows[] = {{"sana-1600m", 4}, {"pixart-alpha", 16}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct dt_card card;
        struct dt_machine_card machine;
        struct dt_predict_job job =
            job_of(&card, &machine, rows[i].model, "h100", (struct dt_frames){1024, 1024, 1});
        const struct dt_degrees one = {.cfg = 1};
        struct dt_prediction p, q;
        dt_predict(&job, &one, &p);
        job.size = (struct dt_frames){2048, 2048, 1};
        dt_predict(&job, &one, &q);
        close_to(q.term[DT_TERM_attention], rows[i].times * p.term[DT_TERM_attention]);
    }
}

static void one_measured_time_scales_all(void **state)
{
    (void)state;
    struct dt_card card;
    struct dt_machine_card machine;
    struct dt_predict_job job =
        job_of(&card, &machine, "flux.1-dev", "h100", (struct dt_frames){1024, 1024, 1});
    struct dt_prediction p, q;
    const struct dt_degrees one = {.cfg = 1}, two = {.ulysses = 2};
    dt_predict(&job, &one, &p);
    dt_predict(&job, &two, &q);
    double free = dt_predict_spread(&q, NULL, false), near = dt_predict_spread(&p, &p, false);
    assert_true(near < dt_predict_spread(&q, &p, false) && dt_predict_spread(&q, &p, false) < free);
    close_to(dt_predict_factor(near), exp(1.2816 * near));
    struct dt_prediction other = p;
    other.step += other.term[DT_TERM_ring] =
        0.01 * p.step; /* as many devices, exchanging otherwise */
    assert_true(dt_predict_spread(&other, &p, false) >= dt_predict_ratio_spread(&other, &p, false));
    assert_true(dt_predict_spread(&other, &p, true) >= dt_predict_ratio_spread(&other, &p, true));
    double ratio = dt_predict_ratio_spread(&p, &q, false);
    close_to(ratio, dt_predict_ratio_spread(&q, &p, false));
    assert_true(dt_predict_ratio_spread(&p, &p, false) < ratio);
    assert_true(ratio < dt_predict_ratio_spread(&p, &q, true));
    double request = p.request;
    dt_predict_scaled(&p, 2);
    close_to(p.request, 2 * request);
    assert_int_equal(dt_predict_fit(&p, p.memory_bytes * 1.2), DT_FITS);
    assert_int_equal(dt_predict_fit(&p, p.memory_bytes * 1.01), DT_FITS_NARROWLY);
    assert_int_equal(dt_predict_fit(&p, p.memory_bytes * 0.99), DT_FITS_NOT);
}

static void machines_are_found(void **state)
{
    (void)state;
    static const struct {
        const char *text, *name;
    } known[] = {{"H100", "h100"},
                 {"NVIDIA H20-3e", "h20-3e"},
                 {"RTX PRO 6000 96G", "rtx-pro-6000"},
                 {"Ascend Atlas 800I A2", "atlas-800i-a2"},
                 {"GB200", "gb200"}};
    struct dt_machine_card machine;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        assert_true(dt_machine_card_of(known[i].text, &machine));
        assert_string_equal(machine.name, known[i].name);
    }
    assert_false(dt_machine_card_of("a machine", &machine));
    assert_false(dt_machine_card_of("NVIDIA H100 80GB HBM3 MIG 1g.10gb", &machine));
    assert_int_equal(dt_machine_card_load("4xH100", &machine), DT_OK);
    assert_int_equal(machine.devices, 4);
    assert_int_equal(dt_machine_card_load("9xh100", &machine), DT_EUSAGE);
    assert_non_null(strstr(dt_message(), "1 to 8 devices"));
    assert_int_equal(dt_machine_card_load("2x4xH100", &machine), DT_OK);
    assert_int_equal(machine.hosts, 2);
    assert_int_equal(machine.devices, 4);
    assert_int_equal(machine.reach, 4);
    assert_int_equal(dt_machine_card_load("2x2xgb200", &machine), DT_OK);
    assert_int_equal(machine.reach, 36); /* a rack of 18 hosts */
    dt_machine_card_place(&machine, 1, 4);
    assert_int_equal(machine.reach, 72);
    assert_int_equal(dt_machine_card_load("h10", &machine), DT_EUSAGE);
    assert_non_null(strstr(dt_message(), "did you mean"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_implementation_agrees),
        cmocka_unit_test(laws_hold),
        cmocka_unit_test(linear_attention_grows_with_the_tokens),
        cmocka_unit_test(groups_that_cross_pay_the_slower_link),
        cmocka_unit_test(hosts_that_are_not_filled_have_fewer_borders),
        cmocka_unit_test(pairs_share_what_leads_out_of_them),
        cmocka_unit_test(a_second_host_is_no_magic),
        cmocka_unit_test(settings_trade_time_for_memory),
        cmocka_unit_test(streams_are_copies),
        cmocka_unit_test(offload_is_near_what_was_measured),
        cmocka_unit_test(the_longest_stage_limits),
        cmocka_unit_test(one_measured_time_scales_all),
        cmocka_unit_test(machines_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
