/* SPDX-License-Identifier: MIT */
/* Texts from the driver or a file are escaped for the terminal. */
#include "tuner/machine/doctor/doctor.h"

static void add_versions(const json_t *devices, struct dt_text *out)
{
    static const char *const libraries[][2] = {
        {"driver", "driver"}, {"nccl", "NCCL"}, {"cudnn", "cuDNN"}, {"cublaslt", "cuBLASLt"}};
    int64_t cuda = dt_doctor_int(devices, "cuda", 0);
    if (cuda == 0)
        return;
    dt_text_add(out, "CUDA %lld.%lld", (long long)cuda / 1000, (long long)cuda % 1000 / 10);
    for (size_t i = 0; i < sizeof libraries / sizeof libraries[0]; i++) {
        const char *version = dt_json_text_at(devices, libraries[i][0]);
        dt_text_add(out, ", %s ", libraries[i][1]);
        dt_text_show(version[0] != '\0' ? version : "none", out);
    }
    dt_text_add(out, "\n");
}

static void add_machine(const json_t *devices, struct dt_text *out)
{
    const json_t *cards = json_object_get(devices, "devices");
    for (size_t i = 0; i < json_array_size(cards); i++) {
        const json_t *card = json_array_get(cards, i);
        dt_text_add(out, "GPU %zu: ", i);
        dt_text_show(dt_json_text_at(card, "name"), out);
        dt_text_add(out, ", %.0f GiB, compute capability ",
                    (double)dt_doctor_int(card, "memory_bytes", 0) / (1LL << 30));
        dt_text_show(dt_json_text_at(card, "compute"), out);
        dt_text_add(out, "\n");
    }
    add_versions(devices, out);
}

static void add_finding(const json_t *finding, struct dt_text *out)
{
    int64_t device = dt_doctor_int(finding, "device", -1);
    dt_text_add(out, "%-8s %s: ", dt_json_text_at(finding, "severity"),
                dt_json_text_at(finding, "rule"));
    if (device >= 0)
        dt_text_add(out, "GPU %lld: ", (long long)device);
    dt_text_show(dt_json_text_at(finding, "what"), out);
    dt_text_add(out, "\n         %s\n", dt_json_text_at(finding, "mend"));
}

void dt_doctor_report(const json_t *facts, const json_t *findings, struct dt_text *out)
{
    const json_t *devices = json_object_get(facts, "devices");
    add_machine(devices, out);
    for (size_t i = 0; i < json_array_size(findings); i++)
        add_finding(json_array_get(findings, i), out);
    if (json_array_size(findings) == 0)
        dt_text_add(out, "nothing is wrong\n");
}
