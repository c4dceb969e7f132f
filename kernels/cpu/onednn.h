/* SPDX-License-Identifier: MIT */
/* onednn - the calls of oneDNN's C interface that differ between its majors 2 and 3
 *
 * In 2 a memory descriptor is a struct, in 3 a pointer to an object that is freed; in 3 a product
 * has one call where it had two, and an activation lost its scale. Everything else is called by its
 * own name. Layouts begin as {0}.
 * Sources: dnnl.h of 2.7 and 3.7; "Transition from v2.x to v3.x" of the library's developer guide.
 */
#ifndef DT_KERNELS_CPU_ONEDNN_H
#define DT_KERNELS_CPU_ONEDNN_H

#include <dnnl.h>
#include <stddef.h>
#include <string.h>

#if DNNL_VERSION_MAJOR >= 3
#define DT_ONEDNN_LAYOUT(layout) (layout)
#else
#define DT_ONEDNN_LAYOUT(layout) (&(layout))
#endif

/* A matrix of dims[0] x dims[1]. */
static inline dnnl_status_t dt_onednn_layout(dnnl_memory_desc_t *layout, const dnnl_dims_t dims,
                                             dnnl_data_type_t type, dnnl_format_tag_t tag)
{
#if DNNL_VERSION_MAJOR >= 3
    return dnnl_memory_desc_create_with_tag(layout, 2, dims, type, tag);
#else
    return dnnl_memory_desc_init_by_tag(layout, 2, dims, type, tag);
#endif
}

static inline void dt_onednn_layouts_free(dnnl_memory_desc_t layouts[], int n)
{
    for (int i = 0; i < n; i++) {
#if DNNL_VERSION_MAJOR >= 3
        dnnl_memory_desc_destroy(layouts[i]);
#endif
        memset(&layouts[i], 0, sizeof layouts[i]);
    }
}

/* y = x weight + bias. bias may be NULL, attr too. */
static inline dnnl_status_t
dt_onednn_product(dnnl_primitive_desc_t *made, dnnl_engine_t engine, const dnnl_memory_desc_t *x,
                  const dnnl_memory_desc_t *weight, const dnnl_memory_desc_t *bias,
                  const dnnl_memory_desc_t *y, const_dnnl_primitive_attr_t attr)
{
#if DNNL_VERSION_MAJOR >= 3
    return dnnl_matmul_primitive_desc_create(made, engine, *x, *weight, bias != NULL ? *bias : NULL,
                                             *y, attr);
#else
    dnnl_matmul_desc_t product;
    dnnl_status_t code = dnnl_matmul_desc_init(&product, x, weight, bias, y);
    return code == dnnl_success ? dnnl_primitive_desc_create(made, &product, attr, engine, NULL)
                                : code;
#endif
}

static inline dnnl_status_t dt_onednn_activation(dnnl_post_ops_t ops, dnnl_alg_kind_t type,
                                                 float alpha)
{
#if DNNL_VERSION_MAJOR >= 3
    return dnnl_post_ops_append_eltwise(ops, type, alpha, 0.0f);
#else
    return dnnl_post_ops_append_eltwise(ops, 1.0f, type, alpha, 0.0f);
#endif
}

#endif
