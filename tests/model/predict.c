/* SPDX-License-Identifier: MIT */
/* Predictions against another implementation of the same equations (Python, written first; ten plans of two models), and laws: the terms
 * are the step, faster links and more memory never hurt, degrees divide what they divide. Machines' cards: every number has a source,
 * and what contradicts itself is refused. */
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
            faster.pair_rate *= 4;
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
    assert_int_equal(dt_machine_card_load("4xH100", &machine), DT_OK);
    assert_int_equal(machine.devices, 4);
    assert_int_equal(dt_machine_card_load("9xh100", &machine), DT_EUSAGE);
    assert_non_null(strstr(dt_message(), "1 to 8 devices"));
    assert_int_equal(dt_machine_card_load("h10", &machine), DT_EUSAGE);
    assert_non_null(strstr(dt_message(), "did you mean"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_implementation_agrees),
        cmocka_unit_test(laws_hold),
        cmocka_unit_test(one_measured_time_scales_all),
        cmocka_unit_test(machines_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
