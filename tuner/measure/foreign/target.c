/* SPDX-License-Identifier: MIT */
/* Builds space and identity of a target from a foreign worker's hello: what it promises, its space,
 * which a file of the user may narrow, and what a step of it is. */
#include "tuner/measure/record/result_json.h"
#include "tuner/measure/target_int.h"

#include "base/clock.h"
#include "base/figures.h"
#include "base/quote.h"
#include "base/rng.h"
#include "base/siphash.h"
#include "db/lookup/key.h"
#include "model/task.h"
#include "space/expr/expr.h"
#include "space/json/json.h"
#include "tuner/runner/runner.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define REPLICAS        "replicas"
#define JOB_FIELDS_MOST 24
#define JOB_TEXT_MOST   4000
#define SWITCHED_MOST   65536
#define SAMPLES_MOST    1000000
#define STEPS_MOST      1000000

/* Refuses wishes of the user that the worker does not obey, so that none is silently ignored.
 * The bound of the error is the controller's own. stored: the job of an entry, which has more
 * than the worker obeys. */
static dt_status check_obeyed(const json_t *wanted, bool stored, const json_t *obeys,
                              const char *worker)
{
    dt_auto_text known = {0};
    const struct dt_task_row *refused = NULL;
    for (int i = 0; i < DT_TASK_FIELDS; i++) {
        const struct dt_task_row *row = &dt_task_rows[i];
        bool obeyed = dt_json_lists(obeys, row->name);
        if (obeyed && (i != DT_TASK_height || !dt_json_lists(obeys, "width")))
            dt_text_add(&known, " --%s", row->option);
        if (refused == NULL && !obeyed && !stored && json_object_get(wanted, row->name) != NULL)
            refused = row;
    }
    DT_TRY(dt_text_status(&known));
    return refused == NULL
               ? DT_OK
               : dt_fail(
                     DT_EUSAGE, "--%s has no effect: the worker %s decides by itself on %s; %s%s",
                     refused->option, worker, refused->name,
                     known.size > 0 ? "it obeys" : "it obeys no such option", dt_text_at(&known));
}

/* Data type of the worker's computation, the error that is still right, and what plans are compared
 * with. float16 rounds less than bfloat16 and gets its tolerance, unless the worker names one. */
static dt_status read_precision(const struct dt_wanted *wanted, const json_t *hello,
                                struct dt_target *target)
{
    const char *dtype = "float32", *reference = "same";
    const json_t *tolerance = json_object_get(hello, "tolerance");
    if (dt_json_has(hello, "dtype"))
        dtype = json_string_value(json_object_get(hello, "dtype"));
    if (dt_json_has(hello, "reference"))
        reference = json_string_value(json_object_get(hello, "reference"));
    if (dtype == NULL || (strcmp(dtype, "float32") != 0 && strcmp(dtype, "bfloat16") != 0 &&
                          strcmp(dtype, "float16") != 0))
        return dt_fail(DT_EUSAGE,
                       "the worker's hello: 'dtype' is neither float32, bfloat16 nor float16");
    if (reference == NULL || (strcmp(reference, "float32") != 0 && strcmp(reference, "same") != 0))
        return dt_fail(DT_EUSAGE, "the worker's hello: 'reference' is neither float32 nor same");
    double most = json_number_value(tolerance);
    if (dt_json_has(hello, "tolerance") && !(most > 0 && most <= 1))
        return dt_fail(DT_EUSAGE,
                       "the worker's hello: 'tolerance' is not a number above 0 and up to 1");
    target->least_fault = json_number_value(json_object_get(hello, "least_fault"));
    if (dt_json_has(hello, "least_fault") && !(target->least_fault > 0))
        return dt_fail(DT_EUSAGE, "the worker's hello: 'least_fault' is not a number above 0");
    bool single = strcmp(dtype, "float32") == 0;
    if (!(most > 0))
        most = dt_dtype_tolerance(single ? DT_FLOAT32 : DT_BFLOAT16);
    target->tolerance = wanted->max_error > 0 ? wanted->max_error : most;
    snprintf(target->identity.dtype, sizeof target->identity.dtype, "%s", dtype);
    if (single || strcmp(reference, "same") == 0)
        return DT_OK;
    if (!dt_json_lists(json_object_get(hello, "obeys"), "dtype"))
        return dt_fail(DT_EUSAGE, "the worker's hello: 'reference' is float32, which needs dtype "
                                  "in 'obeys'");
    target->reference = dt_json_copy(target->worker.wanted);
    if (target->reference == NULL ||
        json_object_set_new(target->reference, "dtype", json_string("float32")) != 0)
        return dt_fail(DT_ENOMEM, "out of memory");
    return DT_OK;
}

/* Since version 2 of the protocol. */
static dt_status read_promises(const struct dt_job *job, const json_t *hello, const char *name,
                               struct dt_target *target)
{
    bool second = json_integer_value(json_object_get(hello, "protocol")) >= 2;
    const json_t *obeys = second ? json_object_get(hello, "obeys") : NULL, *value;
    size_t i;
    if (obeys != NULL && !json_is_array(obeys))
        return dt_fail(DT_EUSAGE, "the worker's hello: 'obeys' is not a list of names");
    json_array_foreach(obeys, i, value)
    {
        if (!json_is_string(value))
            return dt_fail(DT_EUSAGE, "the worker's hello: 'obeys' is not a list of names");
    }
    DT_TRY(check_obeyed(target->worker.wanted, job->wanted.stored, obeys, name));
    if (!second) {
        if (job->wanted.max_error > 0)
            target->tolerance = job->wanted.max_error;
        return DT_OK;
    }
    return read_precision(&job->wanted, hello, target);
}

static void copy_field(const json_t *object, const char *key, const char *fallback, char out[],
                       size_t room)
{
    const char *text = json_string_value(json_object_get(object, key));
    snprintf(out, room, "%s", text != NULL ? text : fallback);
    dt_group_clean(out);
}

/* The workload is part of the key: where its text is cut or changed, as that of a long command, a
 * hash of the whole is put behind. */
static void copy_workload(const json_t *hello, char out[], size_t room)
{
    const char *text = json_string_value(json_object_get(hello, "workload"));
    char hash[24];
    copy_field(hello, "workload", "its own workload", out, room);
    if (text == NULL || strcmp(text, out) == 0)
        return;
    size_t size =
        (size_t)snprintf(hash, sizeof hash, " #%016llx", (unsigned long long)dt_rng_stream(text));
    out[room - 1 - size] = 0;
    dt_text_mend(out);
    strcat(out, hash);
}

/* The announced parts of a hello: parameters, constants and rules. */
static json_t *announced_devices(const json_t *hello)
{
    static const char *const names[] = {"parameters", "constants", "rules"};
    json_t *object = json_object();
    for (int i = 0; i < 3; i++)
        if (dt_json_has(hello, names[i]))
            json_object_set(object, names[i], json_object_get(hello, names[i]));
    return object;
}

static bool is_lossy(const json_t *parameter)
{
    const char *role = json_string_value(json_object_get(parameter, "role"));
    const json_t *values = json_object_get(parameter, "values");
    return role != NULL && strcmp(role, dt_role_text(DT_ROLE_LOSSY)) == 0 &&
           json_array_size(values) > 1;
}

static bool has_lossy(const json_t *announced)
{
    const json_t *parameter;
    size_t i;
    json_array_foreach(json_object_get(announced, "parameters"), i, parameter)
    {
        if (is_lossy(parameter))
            return true;
    }
    return false;
}

/* Leaves each lossy parameter its default alone, else its first value. */
static dt_status bar_lossy(json_t *announced)
{
    const json_t *all = json_object_get(announced, "parameters"), *parameter;
    json_t *kept = json_array();
    size_t i;
    bool failed = kept == NULL;
    json_array_foreach(all, i, parameter)
    {
        if (!is_lossy(parameter)) {
            failed |= json_array_append(kept, (json_t *)parameter) != 0;
            continue;
        }
        json_t *copy = dt_json_copy(parameter), *value = json_object_get(parameter, "default");
        if (value == NULL)
            value = json_array_get(json_object_get(parameter, "values"), 0);
        failed |= copy == NULL || json_object_set_new(copy, "values", json_pack("[O]", value)) != 0;
        failed |= json_array_append_new(kept, copy) != 0;
    }
    failed |= json_object_set_new(announced, "parameters", kept) != 0;
    return failed ? dt_fail(DT_ENOMEM, "out of memory") : DT_OK;
}

/* *job: the job as the worker understood it, borrowed; NULL when hello has none. */
static dt_status read_job(const json_t *hello, const json_t **job)
{
    const char *name;
    json_t *value, *told = json_object_get(hello, "job");
    *job = NULL;
    if (json_integer_value(json_object_get(hello, "protocol")) < 2 || !dt_json_has(hello, "job") ||
        json_object_size(told) == 0)
        return json_is_object(told) || !dt_json_has(hello, "job")
                   ? DT_OK
                   : dt_fail(DT_EUSAGE, "the worker's hello: 'job' is not an object");
    json_object_foreach(told, name, value)
    {
        if ((!json_is_number(value) && !json_is_string(value)) || strlen(name) > JOB_TEXT_MOST ||
            json_string_length(value) > JOB_TEXT_MOST || json_object_size(told) > JOB_FIELDS_MOST)
            return dt_fail(DT_EUSAGE,
                           "the worker's hello: 'job' is not an object of at most %d numbers and "
                           "texts of at most %d bytes",
                           JOB_FIELDS_MOST, JOB_TEXT_MOST);
    }
    *job = told;
    return DT_OK;
}

static dt_status make_key(const struct dt_job *job, const char *name, const char *workload,
                          struct dt_target *target)
{
    char space[DT_KEY_ID_SIZE];
    const json_t *told = NULL;
    json_auto_t *lossy = NULL;
    DT_TRY(read_job(target->worker.hello, &told));
    DT_TRY(dt_key_space(target->worker.announced, space));
    if (job->wanted.lossy && has_lossy(target->worker.announced)) {
        lossy = told != NULL ? dt_json_copy(told) : json_object();
        if (json_object_set_new(lossy, "lossy", json_integer(1)) != 0)
            return dt_fail(DT_ENOMEM, "out of memory");
    }
    const struct dt_key key = {.worker = name,
                               .program = workload,
                               .space = space,
                               .job = lossy != NULL ? lossy : told,
                               .devices = target->hardware.devices,
                               .max_bytes = job->max_bytes,
                               .reserve_bytes = job->reserve_bytes,
                               .max_latency_ns = job->max_latency_ns};
    return dt_key_json(&key, &target->identity.key);
}

/* The rule that a count, which is an expression, is at most this many, except where
 * `unless` holds: "A || ", "". */
static json_t *rule_most(const char *unless, const char *count, int most, const char *of)
{
    return json_pack("{s:o, s:o}", "if", json_sprintf("%s%s <= %d", unless, count, most), "say",
                     json_sprintf("%s must be at most the number of %s, %d%s", count, of, most,
                                  strcmp(of, "devices") == 0 ? " (--devices)" : ""));
}

/* Adds our rule to the hello. Removes the worker's own count of plans. */
static json_t *limited_rules(const json_t *hello, json_t *our_rule)
{
    json_auto_t *copy = dt_json_copy(hello), *rules = json_array(), *rule = our_rule;
    bool made = copy != NULL && rules != NULL && rule != NULL &&
                (json_object_get(hello, "rules") == NULL ||
                 json_array_extend(rules, json_object_get(hello, "rules")) == 0) &&
                json_array_append(rules, rule) == 0 && json_object_set(copy, "rules", rules) == 0;
    json_object_del(copy, "valid");
    return made ? json_incref(copy) : NULL;
}

/* Name of the axis of this role; NULL: there is none. */
static const char *name_of_role(const struct dt_space *axes, enum dt_role role)
{
    int axis = dt_space_role(axes, role);
    return axis >= 0 ? dt_space_axis(axes, axis)->name : NULL;
}

/* Several replicas, with their ranks and on cores with their threads, fit the devices. *out: new
 * reference, hello itself without replicas. */
static dt_status limit_replicas(const struct dt_space *axes, json_t *hello,
                                const struct dt_target *target, json_t **out)
{
    const char *ranks = name_of_role(axes, DT_ROLE_RANKS),
               *threads = name_of_role(axes, DT_ROLE_THREADS);
    static const char unless[] = REPLICAS " == 1 || ";
    int devices = target->hardware.devices, cores = target->hardware.cores;
    *out = json_incref(hello);
    if (name_of_role(axes, DT_ROLE_REPLICAS) == NULL)
        return DT_OK;
    dt_auto_text count = {0};
    dt_text_add(&count, "%s", REPLICAS);
    if (ranks != NULL)
        dt_text_add(&count, " * %s", ranks);
    json_t *limit = limited_rules(hello, rule_most(unless, dt_text_at(&count), devices, "devices"));
    json_decref(*out);
    *out = limit;
    if (limit != NULL && threads != NULL && target->hardware.watched.gpus.count == 0) {
        dt_text_add(&count, " * %s", threads);
        *out = limited_rules(limit, rule_most(unless, dt_text_at(&count),
                                              cores > devices ? cores : devices, "cores"));
        json_decref(limit);
    }
    return *out != NULL ? DT_OK : dt_fail(DT_ENOMEM, "out of memory");
}

/* Adds the parameter of replicas to a hello; a worker's own one of that name, or role, has
 * no meaning beside it. */
static dt_status add_replicas(const struct dt_job *job, struct dt_target *target)
{
    json_t *parameters = json_object_get(target->worker.hello, "parameters"), *row;
    int named = dt_target_named(job->plan, REPLICAS), ranks = 1;
    bool wanted = target->objective != NULL && target->objective->whole_image;
    size_t i;
    json_array_foreach(parameters, i, row)
    {
        const char *name = dt_json_text_at(row, "name"), *role = dt_json_text_at(row, "role");
        if (strcmp(role, REPLICAS) == 0 || (wanted && strcmp(name, REPLICAS) == 0))
            return dt_fail(DT_EUSAGE,
                           "the worker's hello: parameter '%.80s': replicas are the controller's, "
                           "which starts them by itself; give it another name and role",
                           name);
        if (strcmp(role, dt_role_text(DT_ROLE_RANKS)) == 0 && dt_target_named(job->plan, name) > 0)
            ranks = dt_target_named(job->plan, name);
    }
    if (job->devices == 0 && wanted && named * ranks > target->hardware.devices &&
        named <= DT_REPLICAS_MOST)
        target->hardware.devices = named * ranks;
    if (!json_is_array(parameters) || !dt_target_has_replicas(target))
        return DT_OK;
    json_auto_t *extended = json_array(), *values = json_array(), *hello = NULL;
    bool failed = json_array_extend(extended, parameters) != 0;
    for (int k = 1; k <= target->hardware.devices && k <= DT_REPLICAS_MOST; k++)
        failed |= json_array_append_new(values, json_integer(k)) != 0;
    failed |= json_array_append_new(extended,
                                    json_pack("{s:s, s:s, s:i, s:O, s:s}", "name", REPLICAS, "role",
                                              REPLICAS, "default", 1, "values", values, "doc",
                                              "groups of the plan that run at the same time")) != 0;
    hello = dt_json_copy(target->worker.hello);
    failed |= hello == NULL || json_object_set(hello, "parameters", extended) != 0;
    json_object_del(hello, "valid");
    if (failed)
        return dt_fail(DT_ENOMEM, "out of memory");
    json_decref(target->worker.hello);
    target->worker.hello = json_incref(hello);
    return DT_OK;
}

/* Allows the ranks named in a plan's text when the number of devices was not given. */
static void allow_named(const struct dt_job *job, const char *ranks, struct dt_target *target)
{
    int named = dt_target_named(job->plan, ranks);
    if (job->devices == 0 && named > target->hardware.devices)
        target->hardware.devices = named;
}

static dt_status read_space(const struct dt_job *job, json_t *hello, struct dt_target *target)
{
    static const char what[] = "the worker's hello";
    struct dt_space *axes DT_CLEANUP(dt_space_free_at) = NULL;
    json_auto_t *own = NULL, *replicated = NULL;
    DT_TRY(dt_space_axes_from_json(hello, what, &axes));
    int role = dt_space_role(axes, DT_ROLE_RANKS);
    const json_t *rules = json_object_get(hello, "rules");
    if (role >= 0 && (rules == NULL || json_is_array(rules))) {
        const struct dt_axis *ranks = dt_space_axis(axes, role);
        allow_named(job, ranks->name, target);
        target->limited = ranks->values[ranks->count - 1] > target->hardware.devices;
        own = target->limited ? limited_rules(hello, rule_most("", ranks->name,
                                                               target->hardware.devices, "devices"))
                              : NULL;
        if (target->limited && own == NULL)
            return dt_fail(DT_ENOMEM, "out of memory");
    }
    DT_TRY(limit_replicas(axes, own != NULL ? own : hello, target, &replicated));
    return dt_space_from_json(replicated, what, &target->space);
}

static const char space_file[] = "the space file";

/* DT_EUSAGE with `why` and the value behind it. */
static dt_status value_refuse(const char *name, const json_t *value, const char *why,
                              const json_t *has)
{
    dt_auto_text given = {0}, known = {0};
    DT_TRY(dt_json_text(value, &given));
    DT_TRY(dt_json_text(has, &known));
    return dt_fail(DT_EUSAGE, "%s: '%s' %s %s; the worker has %s", space_file, name, why,
                   dt_text_at(&given), dt_text_at(&known));
}

/* Keeps the worker's order of the values, and its default: plans are compared with that. Its rules
 * may name the other texts. */
static dt_status axis_narrow(json_t *parameter, const char *name, const json_t *wanted)
{
    json_auto_t *kept = json_array();
    json_t *all = NULL, *fallback = json_object_get(parameter, "default");
    const json_t *value;
    size_t i;
    DT_TRY(dt_json_array(parameter, "the worker's hello", "values", &all));
    json_array_foreach(wanted, i, value)
    {
        if (!dt_json_contains(all, value))
            return value_refuse(name, value, "has no value", all);
    }
    json_array_foreach(all, i, value)
    {
        if (dt_json_contains(wanted, value) && json_array_append(kept, (json_t *)value) != 0)
            return dt_fail(DT_ENOMEM, "out of memory");
    }
    if (fallback == NULL)
        fallback = json_array_get(all, 0);
    if (!dt_json_contains(kept, fallback))
        return value_refuse(name, fallback,
                            "must keep the worker's default, which plans are compared with:", all);
    bool words = json_is_string(json_array_get(all, 0)) && !dt_json_has(parameter, "words");
    if ((words && json_object_set(parameter, "words", all) != 0) ||
        json_object_set(parameter, "values", kept) != 0)
        return dt_fail(DT_ENOMEM, "out of memory");
    return DT_OK;
}

static dt_status space_narrow(const json_t *file, json_t *announced)
{
    static const char *const members[] = {"parameters", NULL};
    static const char *const fields[] = {"name", "values", NULL};
    json_t *wanted, *parameter, *values;
    size_t i;
    DT_TRY(dt_json_only(file, space_file, members));
    DT_TRY(dt_json_array(file, space_file, "parameters", &wanted));
    json_array_foreach(wanted, i, parameter)
    {
        const char *name;
        DT_TRY(dt_json_only(parameter, space_file, fields));
        DT_TRY(dt_json_string(parameter, space_file, "name", &name));
        DT_TRY(dt_json_array(parameter, space_file, "values", &values));
        json_t *own = dt_json_named(json_object_get(announced, "parameters"), name);
        if (own == NULL)
            return dt_fail(DT_EUSAGE, "%s: the worker has no parameter '%s'", space_file, name);
        DT_TRY(axis_narrow(own, name, values));
    }
    return DT_OK;
}

/* A copy with parameters of its own; NULL when memory runs out. */
static json_t *announced_copy(const json_t *announced)
{
    json_auto_t *copy = dt_json_copy(announced);
    json_t *own = json_array(), *parameter;
    size_t i;
    bool failed = copy == NULL || own == NULL;
    json_array_foreach(json_object_get(announced, "parameters"), i, parameter) failed |=
        json_array_append_new(own, dt_json_copy(parameter)) != 0;
    failed |= json_object_set_new(copy, "parameters", own) != 0;
    return failed ? NULL : json_incref(copy);
}

/* {"parameters": [{"name", "values"}, ..]} of a whole space, new; NULL: it cannot be read. */
static json_t *stored_values(const json_t *stored)
{
    struct dt_space *space DT_CLEANUP(dt_space_free_at) = NULL;
    if (dt_space_axes_from_json(stored, "the entry's space", &space) != DT_OK)
        return NULL;
    json_auto_t *axes = dt_space_axes_json(space);
    json_t *names = json_array(), *axis;
    size_t i;
    json_array_foreach(axes, i, axis)
    {
        json_array_append_new(names, json_pack("{s:O, s:O}", "name", json_object_get(axis, "name"),
                                               "values", json_object_get(axis, "values")));
    }
    return json_pack("{s:o}", "parameters", names);
}

/* The announced space with only the values that the file at `path` names. *narrowed: new. DT_EUSAGE
 * for an unknown name or value, or when the default is left out. */
static dt_status narrow_by(const char *path, const json_t *announced, json_t **narrowed)
{
    json_auto_t *file = NULL, *copy = announced_copy(announced);
    if (copy == NULL)
        return dt_fail(DT_ENOMEM, "out of memory");
    DT_TRY(dt_json_read(path, space_file, &file));
    dt_status status = space_narrow(file, copy);
    *narrowed = status == DT_OK ? json_incref(copy) : NULL;
    return status == DT_EUSAGE ? dt_fail(DT_EUSAGE, "%s: %s", path, dt_message()) : status;
}

/* The same with the values of a space that an earlier session of this worker stored.
 * *narrowed is NULL where they are no part of the announced ones, or all of them: then that
 * session narrowed nothing. */
static dt_status narrow_as(const json_t *stored, const json_t *announced, json_t **narrowed)
{
    json_auto_t *file = stored_values(stored);
    json_auto_t *copy = file != NULL ? announced_copy(announced) : NULL;
    dt_status status = copy != NULL ? space_narrow(file, copy) : DT_EUSAGE;
    *narrowed = status == DT_OK ? json_incref(copy) : NULL;
    return status == DT_ENOMEM ? status : DT_OK;
}

/* A file, or the entry that is checked, may narrow the space: then the narrowed one is tuned,
 * and part of the key. */
static dt_status read_searched(const struct dt_job *job, json_t *hello, struct dt_target *target)
{
    json_t *narrowed = NULL;
    if (job->wanted.space != NULL)
        DT_TRY(narrow_by(job->wanted.space, target->worker.announced, &narrowed));
    else if (job->wanted.stored_space != NULL)
        DT_TRY(narrow_as(job->wanted.stored_space, target->worker.announced, &narrowed));
    if (narrowed == NULL)
        return read_space(job, hello, target);
    json_decref(target->worker.announced);
    target->worker.announced = narrowed;
    return read_space(job, narrowed, target);
}

/* Time for a worker to get ready: --start-timeout, or the budget if shorter. */
static int64_t start_ns(const struct dt_job *job, const struct dt_target *target)
{
    int64_t most = target->worker.start_ns;
    return job->budget_ns > 0 && job->budget_ns < most ? job->budget_ns : most;
}

/* Entries are looked up by the engine's name. */
static dt_status check_engine(const char *wanted, const struct dt_target *target)
{
    const char *engine = target->identity.engine;
    if (wanted == NULL || strcmp(wanted, engine) == 0)
        return DT_OK;
    return dt_fail(
        DT_EUSAGE,
        "the worker %s announces the engine '%s', not '%s': a worker of --engine %s must "
        "name it in its hello",
        target->worker.program, engine, wanted, wanted);
}

static dt_status check_hosts(const struct dt_target *target)
{
    if (target->hardware.hosts.count == 0 || target->worker.launcher != DT_LAUNCH_SELF)
        return DT_OK;
    return dt_fail(DT_EUSAGE,
                   "the worker %s starts its ranks by itself, on one host: --hosts needs one whose "
                   "hello has \"launch\":\"torchrun\" or \"mpirun\"",
                   target->worker.program);
}

/* A worker that sends the inverse of a metric as times says so. */
static dt_status check_objective(const struct dt_objective *wanted, const json_t *hello)
{
    const char *told = dt_json_text_at(hello, "objective");
    if (wanted == NULL || strcmp(told, wanted->metric != NULL ? wanted->name : "") == 0)
        return DT_OK;
    if (told[0] != '\0')
        return dt_fail(DT_EUSAGE, "the worker measures '%.60s', and not %s (--objective)", told,
                       wanted->name);
    return dt_fail(DT_EUSAGE, "--objective %s belongs to --command: the worker measures times",
                   wanted->name);
}

static dt_status read_launch(const json_t *hello, struct dt_target *target)
{
    const json_t *by = json_object_get(hello, "launch");
    target->worker.launcher = DT_LAUNCH_SELF;
    if (!dt_json_has(hello, "launch") ||
        (json_is_string(by) &&
         dt_launcher_from_text(json_string_value(by), &target->worker.launcher)))
        return check_hosts(target);
    return dt_fail(DT_EUSAGE,
                   "the worker's hello: 'launch' is neither \"self\", \"mpirun\" nor \"torchrun\"");
}

/* 0 where it is not there. */
static dt_status read_count(const json_t *hello, const char *name, const char *of, int most,
                            int *count)
{
    const json_t *value = json_object_get(hello, name);
    int64_t number = json_integer_value(value);
    if (dt_json_has(hello, name) && (!json_is_integer(value) || number < 1 || number > most))
        return dt_fail(DT_EUSAGE, "the worker's hello: '%s' is not a number%s from 1 to %d", name,
                       of, most);
    *count = (int)number;
    return DT_OK;
}

/* A worker that starts its own ranks may switch plans of several ranks in one group. */
static dt_status read_switch(const json_t *hello, struct dt_target *target)
{
    bool second = json_integer_value(json_object_get(hello, "protocol")) >= 2;
    if (!second || !dt_json_has(hello, "switch"))
        return DT_OK;
    DT_TRY(read_count(hello, "switch", " of ranks", SWITCHED_MOST, &target->worker.switched));
    if (target->worker.launcher != DT_LAUNCH_SELF)
        return dt_fail(DT_EUSAGE, "the worker's hello: 'switch' needs \"launch\":\"self\", as "
                                  "mpirun and torchrun start a group for each rank count");
    return DT_OK;
}

static json_t *hash_of(const unsigned char *secret, const char *text)
{
    return json_sprintf("%016llx", (unsigned long long)dt_siphash(secret, text, strlen(text)));
}

/* The other commands of a job, each by its hash. */
static bool hide_others(const unsigned char *secret, json_t *job)
{
    static const char *const names[] = {"prepare", "cleanup", "ready", "request"};
    bool failed = false;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (json_is_string(json_object_get(job, names[i])))
            failed |= json_object_set_new(job, names[i],
                                          hash_of(secret, dt_json_text_at(job, names[i]))) != 0;
    return !failed;
}

/* Replaces the text of a command by its hash with the user's secret, before
 * anything is made of it. */
static dt_status hide_command(const unsigned char *secret, struct dt_target *target)
{
    json_auto_t *hello = dt_json_copy(target->worker.hello);
    json_auto_t *job = dt_json_copy(json_object_get(hello, "job"));
    json_auto_t *hash = hash_of(secret, dt_json_text_at(job, "command"));
    bool hidden =
        json_object_del(job, "command") == 0 && json_object_set(job, "private", hash) == 0 &&
        hide_others(secret, job) &&
        json_object_set_new(hello, "workload",
                            json_sprintf("private command %s", json_string_value(hash))) == 0 &&
        json_object_set(hello, "job", job) == 0;
    if (!hidden)
        return dt_fail(DT_FAILED, "the worker %s does not tell the command that --private is about",
                       target->worker.program);
    json_decref(target->worker.hello);
    target->worker.hello = json_incref(hello);
    target->worker.is_private = true;
    return DT_OK;
}

/* How many plans may be resident, and how many steps of one are timed: a server takes all memory,
 * and a request is a long step. */
static dt_status read_limits(const json_t *hello, struct dt_target *target)
{
    const json_t *alone = json_object_get(hello, "alone");
    if (dt_json_has(hello, "alone") && !json_is_boolean(alone))
        return dt_fail(DT_EUSAGE, "the worker's hello: 'alone' is neither true nor false");
    target->worker.alone = json_is_true(alone);
    return read_count(hello, "samples", "", SAMPLES_MOST, &target->worker.samples);
}

/* The meaning of a step, by `unit` of hello. */
static const struct {
    const char *name, *doc;
} units[] = {{NULL, "step"},
             {"step", "denoising step"},
             {"image", "whole image"},
             {"run", "run"},
             {"request", "request"}};

const char *dt_target_step(const char *doc)
{
    for (size_t i = 0; doc != NULL && i < sizeof units / sizeof units[0]; i++)
        if (strcmp(doc, units[i].doc) == 0)
            return units[i].doc;
    return NULL;
}

/* Steps, text encoder and VAE of an image, by hello, ready and the command line; text encoder and
 * VAE are given or measured. */
static dt_status image_read(const struct dt_wanted *wanted, struct dt_target *target)
{
    const json_t *told = json_object_get(target->worker.hello, "job"),
                 *measured = json_object_get(target->worker.ready, "text_and_vae_ns");
    const json_t *unit = json_object_get(target->worker.hello, "unit");
    const char *word = json_string_value(unit);
    target->image.step = unit == NULL ? units[0].doc : NULL; /* a step of what, it does not say */
    for (size_t i = 1; word != NULL && i < sizeof units / sizeof units[0]; i++)
        if (strcmp(word, units[i].name) == 0)
            target->image.step = units[i].doc;
    if (target->image.step == NULL)
        return dt_fail(DT_EUSAGE,
                       "the worker's hello: 'unit' is none of step, image, run and request");
    target->image.starts = word != NULL && strcmp(word, "run") == 0;
    target->image.is_image = word != NULL && strcmp(word, "image") == 0;
    target->image.request = word != NULL && strcmp(word, "request") == 0;
    json_int_t steps = json_integer_value(json_object_get(told, "steps"));
    json_t *step_kinds = json_object_get(target->worker.hello, "steps");
    if (measured != NULL && !json_is_null(measured) &&
        (!json_is_integer(measured) || json_integer_value(measured) <= 0))
        return dt_fail(DT_EUSAGE, "the worker's ready: 'text_and_vae_ns' is not a time above 0, an "
                                  "integer of nanoseconds");
    if (steps < 1 || steps > STEPS_MOST) {
        if (wanted->text_and_vae_ns > 0)
            return dt_fail(DT_EUSAGE,
                           "--text-and-vae has no effect: the worker %s does not tell the steps "
                           "of an image in its hello",
                           target->worker.program);
        if (step_kinds != NULL)
            return dt_fail(DT_EUSAGE,
                           "the worker's hello: 'steps' needs their number, 'steps' in its 'job'");
        return DT_OK;
    }
    if (target->image.is_image && (wanted->text_and_vae_ns > 0 || json_integer_value(measured) > 0))
        return dt_fail(DT_EUSAGE, "%s has no effect: the worker %s measures whole images",
                       wanted->text_and_vae_ns > 0 ? "--text-and-vae"
                                                   : "'text_and_vae_ns' in ready",
                       target->worker.program);
    target->image.sampler_steps = target->image.is_image ? 1 : (int)steps;
    target->image.steps = (int)steps;
    target->image.known = true;
    target->image.given = wanted->text_and_vae_ns > 0;
    target->image.text_and_vae_ns =
        target->image.given ? wanted->text_and_vae_ns : json_integer_value(measured);
    return dt_raw_step_kinds(step_kinds, "the worker's hello", &target->image.step_kinds);
}

double dt_target_image_seconds(const struct dt_target *target, double step, int batch)
{
    return target->image.sampler_steps * step +
           (double)(batch * target->image.text_and_vae_ns) * 1e-9;
}

static dt_status read_hello(const struct dt_job *job, json_t *hello, struct dt_target *target)
{
    char name[64], workload[128];
    copy_field(hello, "engine", "foreign", target->identity.engine, sizeof target->identity.engine);
    copy_field(hello, "mode", "eager", target->identity.mode, sizeof target->identity.mode);
    copy_field(hello, "note", "", target->identity.note, sizeof target->identity.note);
    copy_field(hello, "name", "worker", name, sizeof name);
    copy_workload(hello, workload, sizeof workload);
    DT_TRY(check_objective(job->objective, hello));
    DT_TRY(read_launch(hello, target));
    DT_TRY(read_switch(hello, target));
    DT_TRY(read_limits(hello, target));
    snprintf(target->identity.title, sizeof target->identity.title, "%s: %s", name, workload);
    target->worker.announced = announced_devices(hello);
    bool barred = !job->wanted.lossy && has_lossy(target->worker.announced);
    if (barred)
        DT_TRY(bar_lossy(target->worker.announced));
    if (json_object_get(hello, "parameters") == NULL)
        return dt_fail(
            DT_EUSAGE,
            "the worker %s announces no parameters in its hello: there is nothing to tune",
            target->worker.program);
    DT_TRY(check_engine(job->wanted.engine, target));
    DT_TRY(read_promises(job, hello, name, target));
    DT_TRY(image_read(&job->wanted, target));
    DT_TRY(read_searched(job, barred ? target->worker.announced : hello, target));
    target->lossy_error = job->wanted.max_error > 0 ? job->wanted.max_error : INFINITY;
    target->worker.assigned.devices = target->hardware.devices;
    DT_TRY(dt_target_own_plans(target));
    return make_key(job, name, workload, target);
}

/* An option of dittune after the worker's arguments is one of them: the words are named, as that
 * is easily overlooked. */
static dt_status not_started(const struct dt_job *job, const struct dt_target *target,
                             const char *cause)
{
    dt_auto_text given = {0};
    if (job->wanted.secret == NULL)
        dt_quote_arguments(target->worker.arguments, &given);
    return given.size == 0
               ? dt_fail(DT_FAILED, "the worker %s did not start: %s", target->worker.program,
                         cause)
               : dt_fail(DT_FAILED,
                         "the worker %s did not start: %s; its arguments were%s, and options of "
                         "dittune stand before the --",
                         target->worker.program, cause, dt_text_at(&given));
}

dt_status dt_target_foreign(const struct dt_job *job, struct dt_target *target)
{
    target->foreign = true;
    target->worker.start_ns = job->start_ns > 0 ? job->start_ns : DT_START_NS;
    target->image.sampler_steps = 1;
    DT_TRY(dt_task_json(&job->wanted.task, &target->worker.wanted));
    if (job->wanted.max_error > 0 && json_object_set_new(target->worker.wanted, "max_error",
                                                         json_real(job->wanted.max_error)) != 0)
        return dt_fail(DT_ENOMEM, "out of memory while making a job");
    target->worker.assigned = (struct dt_assignment){.job = target->worker.wanted,
                                                     .devices = target->hardware.devices,
                                                     .hosts = target->hardware.hosts.count};
    struct dt_launch launch = {.program = target->worker.program,
                               .arguments = target->worker.arguments,
                               .assigned = target->worker.assigned,
                               .ranks = 1};
    struct dt_failure failure;
    struct dt_group *group = NULL;
    int64_t began_ns = dt_clock_ns();
    dt_status status =
        dt_group_start(&launch, NULL, dt_clock_ns() + start_ns(job, target), &group, &failure);
    if (status == DT_FAILED && failure.outcome == DT_TRIAL_INFEASIBLE)
        return dt_fail(DT_EUSAGE, "%s", failure.cause);
    if (status == DT_FAILED && failure.outcome == DT_TRIAL_HUNG &&
        start_ns(job, target) < target->worker.start_ns)
        return dt_fail(DT_EPROVISIONAL,
                       "the worker %s was not ready within the budget, %s: give it more, as in "
                       "--budget 30m",
                       target->worker.program,
                       dt_figure_span_of((double)start_ns(job, target) * 1e-9).text);
    if (status == DT_FAILED)
        return not_started(job, target, failure.cause);
    DT_TRY(status);
    target->worker.asked_ns = dt_clock_ns() - began_ns;
    target->worker.hello = json_incref((json_t *)dt_group_hello(group));
    target->worker.ready = json_incref((json_t *)dt_group_ready(group));
    if (job->wanted.secret != NULL)
        status = hide_command(job->wanted.secret, target);
    if (status == DT_OK)
        status = dt_target_settle_defaults(target->worker.hello);
    if (status == DT_OK)
        status = add_replicas(job, target);
    if (status == DT_OK)
        status = read_hello(job, target->worker.hello, target);
    dt_group_stop(group, DT_NS_PER_SECOND);
    return status;
}

void dt_target_options(const struct dt_target *target, bool learned, struct dt_text *out)
{
    const json_t *obeys = json_object_get(target->worker.hello, "obeys");
    const json_t *told = json_object_get(target->identity.key, "job");
    const json_t *job = told != NULL ? told : target->worker.wanted;
    if (json_object_get(told, "lossy") != NULL)
        dt_text_add(out, " --lossy");
    dt_task_options(job, obeys, learned, out);
}

void dt_target_task(const struct dt_target *target, struct dt_task *task)
{
    dt_task_read(target->foreign ? json_object_get(target->identity.key, "job") : NULL, task);
}
