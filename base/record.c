/* SPDX-License-Identifier: MIT */
#include "base/record.h"

#include <limits.h>
#include <math.h>
#include <string.h>

int64_t dt_ns_of(double seconds)
{
    return isfinite(seconds) ? (int64_t)llround(seconds * 1e9) : DT_NO_NS;
}

double dt_seconds_of(int64_t ns)
{
    return ns > 0 ? (double)ns * 1e-9 : NAN;
}

static bool is_text(const json_t *value)
{
    return json_is_string(value);
}

static void read_text(const json_t *value, void *member)
{
    *(const char **)member = json_string_value(value);
}

static json_t *write_text(const void *member)
{
    const char *text = *(const char *const *)member;
    return text != NULL ? json_string(text) : json_null();
}

static bool is_flag(const json_t *value)
{
    return json_is_boolean(value);
}

static void read_flag(const json_t *value, void *member)
{
    *(bool *)member = json_is_true(value);
}

static json_t *write_flag(const void *member)
{
    return json_boolean(*(const bool *)member);
}

static bool is_count(const json_t *value)
{
    return json_is_integer(value) && json_integer_value(value) >= 0 &&
           json_integer_value(value) <= INT_MAX;
}

static bool is_positive(const json_t *value)
{
    return is_count(value) && json_integer_value(value) > 0;
}

static void read_count(const json_t *value, void *member)
{
    *(int *)member = (int)json_integer_value(value);
}

static json_t *write_count(const void *member)
{
    return json_integer(*(const int *)member);
}

static json_t *write_positive(const void *member)
{
    return *(const int *)member > 0 ? write_count(member) : json_null();
}

static bool is_integer(const json_t *value)
{
    return json_is_integer(value);
}

static void read_integer(const json_t *value, void *member)
{
    *(int64_t *)member = json_integer_value(value);
}

static json_t *write_integer(const void *member)
{
    return json_integer(*(const int64_t *)member);
}

static json_t *write_nonzero(const void *member)
{
    return *(const int64_t *)member != 0 ? write_integer(member) : json_null();
}

static int64_t time_of(const json_t *value)
{
    return json_is_integer(value) && json_integer_value(value) >= 0 ? json_integer_value(value)
                                                                    : DT_NO_NS;
}

static bool is_time(const json_t *value)
{
    return time_of(value) != DT_NO_NS;
}

static void read_time(const json_t *value, void *member)
{
    *(int64_t *)member = time_of(value);
}

static json_t *write_time(const void *member)
{
    int64_t ns = *(const int64_t *)member;
    return ns != DT_NO_NS ? json_integer(ns) : json_null();
}

static void read_seconds(const json_t *value, void *member)
{
    int64_t ns = time_of(value);
    *(double *)member = ns != DT_NO_NS ? (double)ns * 1e-9 : NAN;
}

static json_t *write_seconds(const void *member)
{
    int64_t ns = dt_ns_of(*(const double *)member);
    return write_time(&ns);
}

static bool is_real(const json_t *value)
{
    return json_is_number(value);
}

static bool is_ratio(const json_t *value)
{
    return json_number_value(value) > 0;
}

static bool is_magnitude(const json_t *value)
{
    return json_is_number(value) && json_number_value(value) >= 0;
}

static void read_real(const json_t *value, void *member)
{
    *(double *)member = json_is_number(value) ? json_number_value(value) : NAN;
}

static json_t *write_real(const void *member)
{
    return dt_json_number(*(const double *)member);
}

static json_t *write_ratio(const void *member)
{
    return *(const double *)member > 0 ? write_real(member) : json_null();
}

static bool is_pair(const json_t *value)
{
    return json_is_array(value) && json_array_size(value) == 2;
}

static json_t *pair_json(json_t *low, json_t *high)
{
    return json_pack("[o,o]", low, high);
}

static void read_interval(const json_t *value, void *member)
{
    struct dt_span *span = member;
    read_real(json_array_get(value, 0), &span->low);
    read_real(json_array_get(value, 1), &span->high);
}

static json_t *write_interval(const void *member)
{
    const struct dt_span *span = member;
    if (!isfinite(span->low) && !isfinite(span->high))
        return json_null();
    return pair_json(write_real(&span->low), write_real(&span->high));
}

static void read_interval_ns(const json_t *value, void *member)
{
    struct dt_span_ns *span = member;
    *span = (struct dt_span_ns){value != NULL, time_of(json_array_get(value, 0)),
                                time_of(json_array_get(value, 1))};
}

static json_t *write_interval_ns(const void *member)
{
    const struct dt_span_ns *span = member;
    return span->known ? pair_json(write_time(&span->low), write_time(&span->high)) : json_null();
}

bool dt_kind_is_object(const json_t *value)
{
    return json_is_object(value);
}

bool dt_kind_is_list(const json_t *value)
{
    return json_is_array(value);
}

void dt_kind_read_json(const json_t *value, void *member)
{
    *(json_t **)member = (json_t *)value;
}

json_t *dt_kind_write_json(const void *member)
{
    json_t *value = *(json_t *const *)member;
    return value != NULL ? value : json_null();
}

#define KIND(name, expected, right, reads, writes)                                                 \
    {                                                                                              \
        name, expected, is_##right, read_##reads, write_##writes                                   \
    }

const struct dt_kind dt_kind_text = KIND("text", "a string", text, text, text);
const struct dt_kind dt_kind_words = KIND("words", "a string", text, text, text);
const struct dt_kind dt_kind_flag = KIND("flag", "true or false", flag, flag, flag);
const struct dt_kind dt_kind_count = KIND("count", "an integer of 0 or more", count, count, count);
const struct dt_kind dt_kind_positive =
    KIND("positive", "an integer of 1 or more", positive, count, positive);
const struct dt_kind dt_kind_integer = KIND("integer", "an integer", integer, integer, integer);
const struct dt_kind dt_kind_nonzero = KIND("nonzero", "an integer", integer, integer, nonzero);
const struct dt_kind dt_kind_bytes = KIND("bytes", "a number of bytes", time, integer, integer);
const struct dt_kind dt_kind_time = KIND("time", "a number of nanoseconds", time, time, time);
const struct dt_kind dt_kind_seconds =
    KIND("time", "a number of nanoseconds", time, seconds, seconds);
const struct dt_kind dt_kind_real = KIND("real", "a number", real, real, real);
const struct dt_kind dt_kind_ratio = KIND("ratio", "a number above 0", ratio, real, ratio);
const struct dt_kind dt_kind_magnitude =
    KIND("magnitude", "a number of 0 or more", magnitude, real, real);
const struct dt_kind dt_kind_interval = KIND("interval", "[low, high]", pair, interval, interval);
const struct dt_kind dt_kind_interval_ns =
    KIND("interval_ns", "[low, high]", pair, interval_ns, interval_ns);
DT_OBJECT_KIND(object);
DT_LIST_KIND(list);

static void read_list(const struct dt_field *field, const json_t *array, char *out)
{
    size_t size = json_array_size(array);
    int count = size < (size_t)field->most ? (int)size : field->most;
    for (int i = 0; i < count; i++)
        dt_record_read(field->record, json_array_get(array, (size_t)i),
                       out + field->offset + (size_t)i * field->record->size);
    *(int *)(void *)(out + field->count) = count;
}

void dt_record_read(const struct dt_record *record, const json_t *object, void *out)
{
    memset(out, 0, record->size);
    *(bool *)out = json_is_object(object);
    for (int i = 0; i < record->field_count; i++) {
        const struct dt_field *field = &record->fields[i];
        const json_t *value = field->name != NULL ? json_object_get(object, field->name) : object;
        char *member = (char *)out + field->offset;
        if (field->record == NULL)
            field->kind->read(field->kind->right(value) ? value : NULL, member);
        else if (field->most > 0)
            read_list(field, value, out);
        else
            dt_record_read(field->record, value, member);
    }
}

/* A list without items is an empty one. */
static bool may_be_null(const struct dt_field *field)
{
    return field->need != DT_NEED_ALWAYS && field->most == 0;
}

static bool is_right(const struct dt_field *field, const json_t *value)
{
    if (json_is_null(value))
        return may_be_null(field);
    if (field->kind != NULL)
        return field->kind->right(value);
    return field->most > 0 ? json_is_array(value) : json_is_object(value);
}

static const char *expected_type(const struct dt_field *field)
{
    return field->kind != NULL ? field->kind->expected : field->most > 0 ? "an array" : "an object";
}

dt_status dt_record_check(const struct dt_record *record, const json_t *object, const char *what)
{
    for (int i = 0; i < record->field_count; i++) {
        const struct dt_field *field = &record->fields[i];
        if (field->name == NULL)
            DT_TRY(dt_record_check(field->record, object, what));
        const json_t *value = field->name != NULL ? json_object_get(object, field->name) : NULL;
        if (value != NULL && !is_right(field, value))
            return dt_fail(DT_EUSAGE, "%s: '%s' is not %s%s", what, field->name,
                           expected_type(field), may_be_null(field) ? " or null" : "");
    }
    return DT_OK;
}

dt_status dt_record_require(const struct dt_record *record, const json_t *object, const char *what)
{
    for (int i = 0; i < record->field_count; i++) {
        const struct dt_field *field = &record->fields[i];
        bool needed = field->need == DT_NEED_ALWAYS || field->need == DT_NEED_OR_NULL;
        if (field->name == NULL)
            DT_TRY(dt_record_require(field->record, object, what));
        else if (needed && json_object_get(object, field->name) == NULL)
            return dt_fail(DT_EUSAGE, "%s: '%s' is missing", what, field->name);
    }
    return dt_record_check(record, object, what);
}

static json_t *list_json(const struct dt_field *field, const char *from)
{
    json_t *array = json_array();
    int count = *(const int *)(const void *)(from + field->count);
    bool whole = array != NULL;
    for (int i = 0; i < count; i++)
        whole =
            json_array_append_new(
                array, dt_record_json(field->record, from + field->offset +
                                                         (size_t)i * field->record->size)) == 0 &&
            whole;
    if (whole)
        return array;
    json_decref(array);
    return NULL;
}

static json_t *field_json(const struct dt_field *field, const char *from)
{
    if (field->record == NULL)
        return field->kind->write(from + field->offset);
    return field->most > 0 ? list_json(field, from)
                           : dt_record_json(field->record, from + field->offset);
}

/* Takes all that the struct holds, also when memory is short. */
static bool add_fields(const struct dt_record *record, const char *from, json_t *object)
{
    bool whole = object != NULL;
    for (int i = 0; i < record->field_count; i++) {
        const struct dt_field *field = &record->fields[i];
        if (field->name == NULL) {
            whole = add_fields(field->record, from + field->offset, object) && whole;
            continue;
        }
        json_t *value = field_json(field, from);
        if (field->need != DT_NEED_OPTIONAL || !json_is_null(value))
            whole = json_object_set_new(object, field->name, value) == 0 && whole;
    }
    return whole;
}

json_t *dt_record_json(const struct dt_record *record, const void *from)
{
    const bool known = *(const bool *)from;
    json_t *object = json_object();
    if (add_fields(record, from, object) && known)
        return object;
    json_decref(object);
    return known ? NULL : json_null();
}
