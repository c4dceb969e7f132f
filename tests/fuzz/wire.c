/* SPDX-License-Identifier: MIT */
/* Input of the protocol in blocks of any size: messages are extracted, and the workload and
 * space of a hello read. */
#include "worker/wire.h"
#include "model/workload_json.h"
#include "space/json/json.h"
#include "tests/fuzz/mutant.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const words[] = {
    "\"op\"",    "\"hello\"",         "\"ready\"",  "\"heartbeat\"", "\"prepare\"", "\"prepared\"",
    "\"run\"",   "\"samples\"",       "\"failed\"", "\"workload\"",  "\"network\"", "\"heads\"",
    "\"dtype\"", "\"bfloat16\"",      "\"height\"", "\"guidance\"",  "\"plan\"",    "\"handle\"",
    "\"ranks\"", "{\"op\":\"quit\"}", NULL};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed);

static void read_message(const json_t *message)
{
    struct dt_workload workload;
    struct dt_space *space = NULL;
    struct dt_text text = {0};
    json_t *again = NULL;
    if (!json_is_string(json_object_get(message, "op")) || dt_wire_op(message) == NULL)
        abort();
    const json_t *asked = json_object_get(message, "workload");
    if (json_is_object(asked) && dt_workload_from_json(asked, "the workload", &workload) == DT_OK &&
        (dt_workload_tokens(&workload) < 1 || !(dt_workload_flops(&workload, 1) > 0)))
        abort();
    if (dt_json_has(message, "parameters") &&
        dt_space_rules_from_json(message, "the hello", &space) == DT_OK)
        dt_space_free(space);
    if (dt_json_text(message, &text) == DT_OK &&
        dt_json_parse(dt_text_at(&text), text.size, "the line", &again) == DT_OK &&
        !json_equal(message, again))
        abort();
    json_decref(again);
    dt_text_fini(&text);
}

/* libFuzzer's own alarm may arrive at any time. */
static dt_status read_one(struct dt_wire *wire, json_t **message)
{
    dt_status status;
    do {
        status = dt_wire_read(wire, 0, message);
    } while (status == DT_EINTR);
    return status;
}

struct counts {
    int good, bad;
};

/* Counts the messages read from the bytes when they come in blocks of `step`. */
static struct counts count(const uint8_t *data, size_t size, size_t step)
{
    int ends[2];
    struct dt_wire wire;
    struct counts counts = {0, 0};
    json_t *message = NULL;
    if (pipe(ends) != 0)
        abort();
    dt_wire_init(&wire, ends[0], -1);
    for (size_t at = 0; at < size; at += step) {
        size_t block = size - at < step ? size - at : step;
        if (write(ends[1], data + at, block) != (ssize_t)block)
            abort();
        dt_status status;
        while ((status = read_one(&wire, &message)) != DT_ETIMEOUT) {
            if (status != DT_OK && status != DT_EPROTO)
                abort();
            counts.good += status == DT_OK;
            counts.bad += status == DT_EPROTO;
            if (status == DT_OK)
                read_message(message);
            if (status == DT_OK)
                json_decref(message);
        }
    }
    close(ends[1]);
    if (read_one(&wire, &message) != DT_EDEAD)
        abort();
    close(ends[0]);
    dt_wire_fini(&wire);
    return counts;
}

/* The first byte says how many bytes a block has; it must not matter. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2 || size > 60000)
        return 0;
    struct counts whole = count(data + 1, size - 1, size - 1);
    struct counts parts = count(data + 1, size - 1, 1 + (size_t)data[0] * 8);
    if (whole.good != parts.good || whole.bad != parts.bad)
        abort();
    return 0;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t room, unsigned seed)
{
    struct mutant m = mutant_of(data, size, room, seed, words);
    size_t how = mutant_pick(&m, 16), line = mutant_line(&m);
    if (how == 0)
        mutant_bytes(&m);
    else if (how <= 2)
        mutant_lines(&m);
    else
        mutant_json(&m, line + (line == 0 && m.size > 0), mutant_line_end(&m, line));
    return m.size;
}
