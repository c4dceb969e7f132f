/* SPDX-License-Identifier: MIT */
#include "worker/command/serve.h"

#include "space/json/json.h"
#include "worker/command/child.h"
#include "worker/command/run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define STARTS_MOST 3 /* of a server whose port others take */

json_t *dt_each_rank(int64_t value, int ranks)
{
    json_t *row = json_array();
    for (int i = 0; i < ranks; i++)
        json_array_append_new(row, json_integer(value));
    return row;
}

static bool has_port(const struct dt_command_line *command)
{
    for (int i = 0; command->words[i] != NULL; i++)
        if (strstr(command->words[i], "{port}") != NULL)
            return true;
    return false;
}

static dt_status read_samples(const char *text, int64_t *samples)
{
    char *end;
    errno = 0;
    *samples = text != NULL ? strtoll(text, &end, 10) : 0;
    if (text != NULL && (*end != 0 || errno != 0 || *samples < 1))
        return dt_fail(DT_EUSAGE, "--requests '%s' is not a number above zero", text);
    return DT_OK;
}

dt_status dt_serve_init(struct dt_serve *serve, const struct dt_serve_options *options,
                        int64_t timeout_ns)
{
    struct dt_server_job *job = &serve->job;
    serve->server.log = -1;
    if (serve->timing->kind == 't' || serve->timing->file != NULL)
        return dt_fail(DT_EUSAGE,
                       "a server's time is read from its answer: --time wall, regex:EXPRESSION or "
                       "json:PATH");
    DT_TRY(read_samples(options->requests, &serve->samples));
    DT_TRY(dt_server_job_read(options->ready != NULL ? options->ready : DT_SERVE_READY,
                              options->request, job));
    DT_TRY(dt_run_time("--start-timeout",
                       options->start_timeout != NULL ? options->start_timeout : "600",
                       &job->start_ns));
    job->timeout_ns = timeout_ns;
    if (!has_port(serve->command) && (job->ready.url.port == 0 || job->request.url.port == 0))
        return dt_fail(DT_EUSAGE,
                       "the server has no {port}, so it cannot know where to listen: give "
                       "it one, or name the port in --ready");
    return DT_OK;
}

dt_status dt_serve_describe(const struct dt_serve *serve, json_t *hello, json_t *job)
{
    char hash[17];
    dt_request_hash(&serve->job.request, hash);
    bool failed = json_object_set_new(job, "request", json_string(hash)) != 0 ||
                  json_object_set_new(hello, "unit", json_string("request")) != 0 ||
                  json_object_set_new(hello, "alone", json_true()) != 0;
    if (serve->samples > 0)
        failed |= json_object_set_new(hello, "samples", json_integer(serve->samples)) != 0;
    return failed ? dt_fail(DT_ENOMEM, "out of memory") : DT_OK;
}

bool dt_serve_up(const struct dt_serve *serve)
{
    return serve->server.run.pid > 0;
}

const char *dt_serve_kind(const struct dt_serve *serve, dt_status status)
{
    if (status == DT_ETIMEOUT)
        return "hung";
    return status == DT_FAILED && serve->server.gone ? "crashed" : NULL;
}

/* Starts the server of a plan, on another port where others took the one that was free. */
static dt_status start(struct dt_serve *serve, const struct dt_point *point)
{
    dt_status status = DT_OK;
    int starts = 0;
    do {
        char **argv = NULL;
        DT_TRY(dt_server_port(&serve->job, &serve->server.port));
        serve->command->port = serve->server.port;
        DT_TRY(dt_line_fill(serve->command, serve->space, point, &argv));
        status = dt_server_start(&serve->server, argv, &serve->job, serve->wire);
        dt_line_free(argv);
    } while (status == DT_FAILED && ++starts < STARTS_MOST && dt_server_port_taken(&serve->server));
    return status;
}

/* cold: of the first request, which is no inverse of a metric. */
static dt_status ask(struct dt_serve *serve, bool cold, int64_t *ns)
{
    struct dt_child_output output;
    struct dt_times times = {.count = 0};
    dt_status status = dt_server_ask(&serve->server, &serve->job, &output);
    if (status == DT_OK)
        status = dt_timing_take(serve->timing, &output, dt_child_beat, serve->wire, &times);
    *ns = times.count > 0 ? times.ns[times.count - 1] : 0;
    if (cold && serve->timing->metric != NULL)
        *ns = output.wall_ns;
    dt_times_fini(&times);
    dt_text_fini(&output.out);
    dt_text_fini(&output.err);
    return status;
}

/* The first request is the cold step. */
static dt_status prepare(struct dt_serve *serve, const json_t *request, json_t **answer)
{
    json_t *values;
    struct dt_point point;
    int64_t cold_ns = 0;
    struct dt_error error = {DT_OK, ""};
    int role = dt_space_role(serve->space, DT_ROLE_RANKS);
    DT_TRY(dt_json_object(request, "the request", "plan", &values));
    DT_TRY(dt_point_from_json(serve->space, values, &point));
    if (dt_serve_up(serve))
        return dt_fail(DT_ENOMEM,
                       "the server of another plan is up; one at a time has the machine");
    DT_TRY(start(serve, &point));
    if (dt_error_keep(&error, ask(serve, true, &cold_ns)) < 0) {
        dt_error_keep(&error, dt_server_end(&serve->server));
        return dt_error_raise(&error);
    }
    serve->handle++;
    serve->ranks = role >= 0 ? (int)dt_point_value(serve->space, &point, role) : 1;
    *answer =
        json_pack("{s:s,s:i,s:o,s:i,s:o}", "op", "prepared", "handle", serve->handle, "peak_bytes",
                  dt_each_rank(dt_server_peak_bytes(&serve->server), serve->ranks),
                  "resident_bytes", 0, "cold_ns", dt_each_rank(cold_ns, serve->ranks));
    return DT_OK;
}

static dt_status check_handle(const struct dt_serve *serve, const json_t *request)
{
    int64_t handle;
    DT_TRY(dt_json_int(request, "the request", "handle", 1, INT32_MAX, &handle));
    if (handle != serve->handle || !dt_serve_up(serve))
        return dt_fail(DT_EPROTO, "no plan of handle %lld is resident", (long long)handle);
    return DT_OK;
}

static dt_status run(struct dt_serve *serve, const json_t *request, json_t **answer)
{
    int64_t n, ns;
    DT_TRY(check_handle(serve, request));
    DT_TRY(dt_json_int(request, "the request", "n", 1, 1 << 20, &n));
    json_t *rows = json_array();
    *answer = json_pack("{s:s,s:i,s:o}", "op", "samples", "handle", serve->handle, "ns", rows);
    for (int64_t i = 0; i < n; i++) {
        DT_TRY(ask(serve, false, &ns));
        json_array_append_new(rows, dt_each_rank(ns, serve->ranks));
    }
    return DT_OK;
}

static dt_status release(struct dt_serve *serve, const json_t *request, json_t **answer)
{
    DT_TRY(check_handle(serve, request));
    DT_TRY(dt_server_end(&serve->server));
    *answer = json_pack("{s:s,s:i}", "op", "released", "handle", serve->handle);
    return DT_OK;
}

dt_status dt_serve_answer(struct dt_serve *serve, const json_t *request, json_t **answer)
{
    const char *op = dt_wire_op(request);
    return strcmp(op, "prepare") == 0 ? prepare(serve, request, answer)
           : strcmp(op, "run") == 0   ? run(serve, request, answer)
           : strcmp(op, "release") == 0
               ? release(serve, request, answer)
               : dt_fail(DT_EPROTO,
                         "unknown request '%.40s'; this worker knows prepare, run and release", op);
}

void dt_serve_tend(struct dt_serve *serve)
{
    dt_server_tend(&serve->server);
}

void dt_serve_fini(struct dt_serve *serve)
{
    dt_status status = dt_serve_up(serve) ? dt_server_end(&serve->server) : DT_OK;
    (void)status; /* what does not end is the controller's */
    dt_server_job_fini(&serve->job);
}
