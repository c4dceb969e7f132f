/* SPDX-License-Identifier: MIT */
/* Log of each rank's posts, in order: in memory, and with a box also in BOX.posted.RANK. */
#include "tests/fake_cuda/nccl/nccl_int.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct {
    char *text;
    size_t length;
} logs[RANKS];

/* Locked by the caller. */
void log_post(const struct ncclComm *comm, const char *format, ...)
{
    char line[256], path[300];
    va_list list;
    va_start(list, format);
    int length = vsnprintf(line, sizeof line - 1, format, list);
    va_end(list);
    length = length < (int)sizeof line - 2 ? length : (int)sizeof line - 3;
    line[length++] = '\n';
    line[length] = 0;
    int rank = comm->root_rank;
    char *text = realloc(logs[rank].text, logs[rank].length + (size_t)length + 1);
    if (text == NULL)
        abort();
    memcpy(text + logs[rank].length, line, (size_t)length + 1);
    logs[rank].text = text;
    logs[rank].length += (size_t)length;
    if (fake_settings.box[0] == 0)
        return;
    snprintf(path, sizeof path, "%s.posted.%d", fake_settings.box, rank);
    int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (file >= 0) {
        dprintf(file, "%s", line);
        close(file);
    }
}

const char *dt_fake_cuda_posted(int rank)
{
    fake_lock();
    const char *text = rank >= 0 && rank < RANKS && logs[rank].text != NULL ? logs[rank].text : "";
    fake_unlock();
    return text;
}

void fake_posted_clear(void)
{
    for (int i = 0; i < RANKS; i++) {
        free(logs[i].text);
        logs[i].text = NULL;
        logs[i].length = 0;
    }
}
