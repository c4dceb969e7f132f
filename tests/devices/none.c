/* SPDX-License-Identifier: MIT */
/* The real CUDA runtime on a machine without a driver: a sentence, the versions, no crash.
 * Skipped where there is one. */
#include "base/json.h"
#include "worker/gpus/devices.h"

#include <stdio.h>
#include <string.h>

int main(void)
{
    struct dt_text text = {0};
    json_t *devices = NULL;
    if (dt_devices_write(&text) != DT_OK ||
        dt_json_parse(dt_text_at(&text), text.size, "the devices", &devices) != DT_OK)
        return 1;
    puts(dt_text_at(&text));
    dt_text_fini(&text);
    int64_t count = json_integer_value(json_object_get(devices, "count"));
    int64_t driver = json_integer_value(json_object_get(devices, "cuda_driver"));
    const char *why = json_string_value(json_object_get(devices, "why"));
    const char *blas = json_string_value(json_object_get(devices, "cublaslt"));
    bool right = why != NULL && strcmp(why, "CUDA: there is no driver (libcuda.so.1)") == 0 &&
                 blas != NULL && strchr(blas, '.') != NULL &&
                 json_integer_value(json_object_get(devices, "cuda")) >= 12000 &&
                 json_array_size(json_object_get(devices, "devices")) == 0;
    json_decref(devices);
    return driver != 0 || count != 0 ? 77 : right ? 0 : 1;
}
