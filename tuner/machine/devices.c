/* SPDX-License-Identifier: MIT */
#include "tuner/machine/devices.h"

#include "tuner/machine/machine_int.h"
#include "tuner/runner/runner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void find_program(const char *chosen, struct dt_devices_answer *answer)
{
    chosen = chosen != NULL ? chosen : getenv("DITTUNE_WORKER_CUDA");
    dt_machine_beside("dittune-worker-cuda", answer->program);
    if (chosen != NULL)
        snprintf(answer->program, sizeof answer->program, "%s", chosen);
    answer->missing = access(answer->program, X_OK) != 0;
}

static const char *last_line(struct dt_text *err)
{
    while (err->size > 0 && err->bytes[err->size - 1] == '\n')
        err->bytes[--err->size] = '\0';
    const char *text = dt_text_at(err), *end = strrchr(text, '\n');
    return end != NULL ? end + 1 : text;
}

static void read_answer(struct dt_devices_answer *answer, struct dt_output *output)
{
    json_t *object = NULL;
    const char *how = output->how;
    if (how[0] == '\0' &&
        (dt_json_parse(dt_text_at(&output->out), output->out.size, "its answer", &object) !=
             DT_OK ||
         !json_is_object(object) || !json_is_array(json_object_get(object, "devices"))))
        how = "answered what is no description of devices";
    if (how[0] == '\0') {
        answer->devices = object;
        return;
    }
    json_decref(object);
    const char *said = last_line(&output->messages);
    snprintf(answer->cause, sizeof answer->cause, "%s%s%.300s", how, said[0] != '\0' ? ": " : "",
             said);
    dt_group_clean(answer->cause);
}

dt_status dt_machine_devices(const char *program, int64_t deadline_ns,
                             struct dt_devices_answer *answer)
{
    memset(answer, 0, sizeof *answer);
    find_program(program, answer);
    if (answer->missing) {
        snprintf(answer->cause, sizeof answer->cause, "there is no %.400s", answer->program);
        return DT_OK;
    }
    char *argv[] = {answer->program, "--devices", NULL};
    struct dt_output output;
    DT_TRY(dt_output_read(answer->program, argv, deadline_ns, &output));
    read_answer(answer, &output);
    dt_output_fini(&output);
    return DT_OK;
}

void dt_devices_answer_fini(struct dt_devices_answer *answer)
{
    json_decref(answer->devices);
    answer->devices = NULL;
}
