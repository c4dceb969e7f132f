/* SPDX-License-Identifier: MIT */
/* Rules about the links between GPUs and to other machines. */
#include "tuner/machine/doctor/doctor.h"

#include <string.h>

static const json_t *cell(const struct dt_doctor_view *view, const char *matrix, int64_t a,
                          int64_t b)
{
    const json_t *rows = json_object_get(view->devices, matrix);
    return json_array_get(json_array_get(rows, (size_t)a), (size_t)b);
}

/* Connected closely enough for direct peer access. */
static bool is_near(const char *link)
{
    return link != NULL &&
           (strcmp(link, "nvlink") == 0 || strcmp(link, "pix") == 0 || strcmp(link, "pxb") == 0);
}

static bool no_peers(const struct dt_doctor_view *view, const json_t *device, struct dt_text *what)
{
    int n = 0;
    (void)device;
    for (int64_t a = 0; a < view->count; a++)
        for (int64_t b = a + 1; b < view->count; b++) {
            const char *link = json_string_value(cell(view, "links", a, b));
            const json_t *peer = cell(view, "peers", a, b);
            if (!is_near(link) || !json_is_integer(peer) || json_integer_value(peer) != -1)
                continue;
            if (n++ == 0)
                dt_text_add(what,
                            "GPU %lld and GPU %lld are connected by %s, but neither may reach "
                            "into the other",
                            (long long)a, (long long)b, link);
        }
    if (n > 1)
        dt_text_add(what, "; so are %d more pairs", n - 1);
    return n > 0;
}

static bool nvlink_down(const struct dt_doctor_view *view, const json_t *device,
                        struct dt_text *what)
{
    const json_t *devices = json_object_get(view->devices, "devices");
    int64_t most = 0, links = dt_doctor_int(device, "nvlinks", -1);
    for (int64_t i = 0; i < view->count; i++) {
        const json_t *other = json_array_get(devices, (size_t)i);
        int64_t up = dt_doctor_int(other, "nvlinks", 0);
        bool same = strcmp(dt_json_text_at(other, "name"), dt_json_text_at(device, "name")) == 0;
        most = same && up > most ? up : most;
    }
    if (links < 0 || links >= most)
        return false;
    dt_text_add(what, "%lld of its NVLinks are up, %lld are on another GPU of its kind",
                (long long)links, (long long)most);
    return true;
}

static bool infiniband_down(const struct dt_doctor_view *view, const json_t *device,
                            struct dt_text *what)
{
    const json_t *infiniband = json_object_get(view->devices, "infiniband");
    size_t n = json_array_size(json_object_get(infiniband, "devices"));
    (void)device;
    if (n == 0 || !dt_doctor_is(infiniband, "active", false))
        return false;
    dt_text_add(what,
                "%zu InfiniBand device%s here, but no port is active: hosts would talk through "
                "sockets",
                n, n > 1 ? "s are" : " is");
    return true;
}

static const struct dt_doctor_rule rows[] = {
    {"no-peer-access", DT_WARNING, false, no_peers,
     "turn off the IOMMU and PCIe access control (ACS) on bare metal, or let the virtual machine "
     "pass peer access through: NCCL's guide, Troubleshooting, GPU Direct"},
    {"nvlink-down", DT_WARNING, true, nvlink_down,
     "see nvidia-smi nvlink -s, and the fabric manager where there are NVSwitches"},
    {"infiniband-down", DT_NOTE, false, infiniband_down,
     "for plans over several hosts see ibstat: cable, subnet manager, link state"},
};

const struct dt_doctor_rules dt_doctor_links = {rows, sizeof rows / sizeof rows[0]};
