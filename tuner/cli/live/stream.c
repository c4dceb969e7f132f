/* SPDX-License-Identifier: MIT */
/* Written without stdio, so that a killed program leaves whole lines. */
#include "tuner/cli/live/stream.h"

#include "base/clock.h"
#include "db/journal.h"

#include <errno.h>
#include <unistd.h>

static bool is_open, has_reader, failed;
static json_t *kept;

static void stream_put(const char *line, size_t size)
{
    dt_auto_text text = {0};
    dt_text_add_bytes(&text, line, size);
    dt_text_add(&text, "\n");
    failed = failed || dt_text_status(&text) < 0;
    for (size_t done = 0; has_reader && !failed && done < text.size;) {
        ssize_t count = write(STDOUT_FILENO, text.bytes + done, text.size - done);
        if (count > 0)
            done += (size_t)count;
        else if (count < 0 && errno == EPIPE)
            has_reader = false;
        else if (count == 0 || errno != EINTR)
            failed = true;
    }
}

void dt_stream_open(void)
{
    is_open = has_reader = true;
    dt_journal_added = stream_put;
}

bool dt_stream_is_open(void)
{
    return is_open;
}

void dt_stream_event(const char *kind, json_t *fields)
{
    dt_auto_text text = {0};
    json_t *event = json_pack("{s:i, s:I, s:s}", "v", 1, "t_wall_ns",
                              (json_int_t)dt_clock_wall_ns(), "kind", kind);
    if (is_open) {
        bool whole = event != NULL && fields != NULL && json_object_update(event, fields) == 0;
        if (whole && dt_json_shown(event, &text) == DT_OK)
            stream_put(text.bytes, text.size);
        else
            failed = true;
    }
    json_decref(event);
    json_decref(fields);
}

void dt_stream_keep(json_t *answer)
{
    json_decref(kept);
    kept = answer;
}

bool dt_stream_end(int code, const char *error)
{
    json_t *reason = error[0] != '\0' ? json_string(error) : json_null();
    dt_stream_event("result", json_pack("{s:i, s:o, s:o}", "exit", code, "error", reason, "result",
                                        kept != NULL ? kept : json_null()));
    kept = NULL;
    return !failed;
}
