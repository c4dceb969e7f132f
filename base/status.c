/* SPDX-License-Identifier: MIT */
/* One message buffer per thread: a status code stays a plain int and nothing has to be freed. */
#include "base/status.h"

#include "base/text.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Thread_local char message[sizeof((struct dt_error *)NULL)->sentence];

static const struct row {
    dt_status code;
    int exit_code;
    const char *text;
} rows[] = {
#define DT_STATUS(name, value, exit_code, text) {value, exit_code, text},
#include "base/status.def"
};

static const struct row *find_row(dt_status code)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].code == code)
            return &rows[i];
    return NULL;
}

dt_status dt_fail(dt_status code, const char *format, ...)
{
    char sentence[sizeof message];
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    dt_text_mend(sentence); /* it may be cut within a character */
    dt_text_clean(sentence);
    memcpy(message, sentence, sizeof message);
    return code;
}

dt_status dt_no_memory(const char *what)
{
    return dt_fail(DT_ENOMEM, "out of memory %s", what);
}

const char *dt_message(void)
{
    return message;
}

dt_status dt_error_keep(struct dt_error *error, dt_status status)
{
    if (status < 0 && error->status == DT_OK) {
        error->status = status;
        memcpy(error->sentence, message, sizeof message);
    }
    return status;
}

dt_status dt_error_raise(const struct dt_error *error)
{
    return error->status == DT_OK ? DT_OK : dt_fail(error->status, "%s", error->sentence);
}

const char *dt_status_text(dt_status code)
{
    const struct row *row = find_row(code);
    return row != NULL ? row->text : "unknown status";
}

int dt_status_exit(dt_status code)
{
    const struct row *row = find_row(code);
    return row != NULL ? row->exit_code : 1;
}

/* The caller's pointer is copied as bytes, as its type is not known here. */
void dt_free_at(void *at)
{
    void *memory;
    memcpy(&memory, at, sizeof memory);
    free(memory);
}
