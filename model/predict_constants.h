/* SPDX-License-Identifier: MIT */
/* predict_constants - the numbers of predict.c, for a fit of them (bench/predict_fit) and the tests
 *
 * Sources: docs/cost.md. To add one, add a row: name, value, unit, and whether
 * bench-predict-fit may move it.
 */
#ifndef DT_MODEL_PREDICT_CONSTANTS_H
#define DT_MODEL_PREDICT_CONSTANTS_H

#include <stdbool.h>
#include <stddef.h>

#define DT_PREDICT_CONSTANTS                                                                       \
    /* kernels: shares of the datasheet's rates, and their number */                               \
    DT_CONSTANT(gemm, 0.82, "of peak", false)                                                      \
    DT_CONSTANT(attention_wide, 0.74, "of peak, heads of 97 channels and more", false)             \
    DT_CONSTANT(attention_middle, 0.33, "of peak, heads of 69 to 96", false)                       \
    DT_CONSTANT(attention_narrow, 0.51, "of peak, heads of 68 and fewer", false)                   \
    DT_CONSTANT(copy, 0.91, "of the memory's rate", false)                                         \
    DT_CONSTANT(kernels, 17, "a layer", false)                                                     \
    DT_CONSTANT(kernel_s, 2.5e-6, "s", false)                                                      \
    DT_CONSTANT(passes_fused, 16, "reads and writes of a layer's activations", false)              \
    DT_CONSTANT(passes_eager, 45, "the same, operations launched one by one", true)                \
    DT_CONSTANT(passes_split, 0.5, "of them, divided by tensors", false)                           \
    /* the host of an eager engine, of a layer and pass */                                         \
    DT_CONSTANT(host_layer_s, 0.8e-3, "s", true)                                                   \
    DT_CONSTANT(host_wrapper_s, 0.63e-3, "s, of a wrapper for sequences", true)                    \
    DT_CONSTANT(host_ring_s, 0.36e-3, "s, of its ring", true)                                      \
    /* exchange */                                                                                 \
    DT_CONSTANT(alpha_s, 15e-6, "s", false)                                                        \
    DT_CONSTANT(alpha_network_s, 25.6e-6, "s, between hosts", false)                               \
    DT_CONSTANT(link_nvlink, 0.82, "of the link's rate", false)                                    \
    DT_CONSTANT(link_pcie, 0.75, "of the link's rate", true)                                       \
    DT_CONSTANT(link_hccs, 0.5, "of the link's rate", false)                                       \
    DT_CONSTANT(link_network, 0.94, "of the link's rate", false)                                   \
    DT_CONSTANT(one_to_one, 0.75, "of a collective's rate", false)                                 \
    DT_CONSTANT(pack_passes, 1, "that lay out what an all-to-all sends", false)                    \
    DT_CONSTANT(ring_merge, 6, "passes in float32 over the output, a block", false)                \
    DT_CONSTANT(ring_slow, 0.2, "of attention beside a transfer", false)                           \
    DT_CONSTANT(imbalance, 0.026, "of a step, a doubling of the devices", true)                    \
    /* VAE and text */                                                                             \
    DT_CONSTANT(vae_flops, 12e6, "a pixel", false)                                                 \
    DT_CONSTANT(vae, 0.35, "of peak", true)                                                        \
    DT_CONSTANT(vae_hccs, 0.025, "of peak", true)                                                  \
    DT_CONSTANT(vae_serial, 0.035, "of one device's time, not divided", true)                      \
    DT_CONSTANT(text_host_s, 18e-3, "s, layers of the text encoder launched one by one", false)    \
    DT_CONSTANT(text_s, 0.1, "s, of an encoder whose parameters are not known", false)             \
    /* weights that come from the host's memory */                                                 \
    DT_CONSTANT(host_link, 0.75, "of the link's rate, from pinned memory", false)                  \
    DT_CONSTANT(paged_rate, 2.5e9, "bytes a second, of pageable memory", false)                    \
    DT_CONSTANT(blocks_held, 3, "of a transformer that is streamed: in use, coming, no block",     \
                false)                                                                             \
    DT_CONSTANT(encoder_held, 0.1, "of a text encoder that is streamed", false)                    \
    /* memory */                                                                                   \
    DT_CONSTANT(widths, 16, "buffers of the tokens' width", true)                                  \
    DT_CONSTANT(base_gib, 2, "GiB", true)                                                          \
    DT_CONSTANT(pixel_bytes, 130, "bytes a pixel, divided by tensors", true)                       \
    DT_CONSTANT(unsplit, 0.25, "of the weights, whole where the card does not know", false)        \
    DT_CONSTANT(peer_nvlink_gib, 1.6, "GiB, each other device", true)                              \
    DT_CONSTANT(peer_pcie_gib, 0.25, "GiB, each other device", true)                               \
    DT_CONSTANT(peer_hccs_gib, 0.5, "GiB, each other device", false)                               \
    DT_CONSTANT(peer_network_gib, 0.25, "GiB, each device of other hosts", false)                  \
    /* interval: standard deviations of the logarithm */                                           \
    DT_CONSTANT(spread_base, 0.025, "", false)                                                     \
    DT_CONSTANT(spread_devices, 0.04, "a doubling of the devices", true)                           \
    DT_CONSTANT(spread_exchange, 0.08, "of a share of exchange that differs", true)                \
    DT_CONSTANT(spread_host, 0.5, "of the share of the host", true)                                \
    DT_CONSTANT(spread_unsure, 0.10, "", true)                                                     \
    DT_CONSTANT(spread_free, 0.25, "without a measured time", false)                               \
    /* the same of the ratio of two plans */                                                       \
    DT_CONSTANT(ratio_base, 0.12, "", true)                                                        \
    DT_CONSTANT(ratio_exchange, 0.15, "of a share of exchange that differs", true)

struct dt_predict_constants {
#define DT_CONSTANT(name, value, unit, fitted) double name;
    DT_PREDICT_CONSTANTS
#undef DT_CONSTANT
};

struct dt_predict_constant {
    const char *name, *unit;
    bool fitted;
    size_t at; /* offset in struct dt_predict_constants */
};

extern const struct dt_predict_constant dt_predict_constant_rows[]; /* ended by a name of NULL */
extern const struct dt_predict_constants dt_predict_defaults;

/* Predictions use these from now on, which must stay; NULL: the defaults. For a fit: no
 * other thread may predict. */
void dt_predict_use(const struct dt_predict_constants *constants);

#endif
