/* SPDX-License-Identifier: MIT */
/* record - a struct that is kept as a JSON object, described once, field by field
 *
 * The rows are in a .def file; struct, reader, writer, schema and documentation are
 * generated from them:
 *
 *     DT_RECORD(gain, "speed of the plan over the default's")
 *     DT_FIELD(gain, real, ratio, "ratio", ALWAYS, "above 1 is faster")
 *     DT_END(gain)
 *
 * A header includes base/record_structs.h and the .def, a source base/record_rows.h and
 * the .def. A kind says how a member is kept; a module may add its own (db/stored.h). To
 * add a field, add a row.
 */
#ifndef DT_BASE_RECORD_H
#define DT_BASE_RECORD_H

#include "base/json.h"

#define DT_NO_NS INT64_MIN /* a time that is not known: null in JSON */

struct dt_span {
    double low, high; /* NAN: none, null in JSON */
};
struct dt_span_ns {
    bool known;        /* false: null in JSON */
    int64_t low, high; /* DT_NO_NS: none, each null in JSON */
};

/* DT_NO_NS for what is not finite. */
int64_t dt_ns_of(double seconds);
/* NAN for what is not above zero. */
double dt_seconds_of(int64_t ns);

/* How a member is kept in JSON. */
struct dt_kind {
    const char *name;     /* its definition in a schema */
    const char *expected; /* "a string", for sentences */
    bool (*right)(const json_t *value);
    void (*read)(const json_t *value, void *member); /* value: valid; NULL: no value */
    json_t *(*write)(const void *member);            /* steals what the member points to */
};

enum dt_need {
    DT_NEED_ALWAYS,  /* never null */
    DT_NEED_OR_NULL, /* null: no value */
    DT_NEED_SINCE,   /* the same, but files of older versions lack it */
    DT_NEED_OPTIONAL /* left out where it would be null */
};

struct dt_record;
struct dt_field {
    const char *name, *doc;     /* NULL: a group, whose fields are fields of the object itself */
    const struct dt_kind *kind; /* NULL: a part, a list or a group */
    const struct dt_record *record; /* fields of a part or of a list's items */
    int most; /* items of a list, whose count (an int) is at count; 0: no list */
    size_t offset, count;
    enum dt_need need;
};

/* The struct begins with `bool known`: there was such an object. A part that
 * is not known is null. */
struct dt_record {
    const char *name, *doc;
    size_t size;
    const struct dt_field *fields;
    int field_count;
};

/* Reads the valid fields; a missing or invalid one gets its empty value. Strings and JSON values
 * are borrowed from the object, which may be NULL. */
void dt_record_read(const struct dt_record *record, const json_t *object, void *out);

/* DT_EUSAGE for an invalid field; the sentence begins with what. Fields of
 * parts are not checked. */
dt_status dt_record_check(const struct dt_record *record, const json_t *object,
                          const char *what) DT_MUST_CHECK;

/* The same, and DT_EUSAGE when a field is missing that every object has. */
dt_status dt_record_require(const struct dt_record *record, const json_t *object,
                            const char *what) DT_MUST_CHECK;

/* The object, fields in the order of the rows; it steals the JSON values that the struct
 * holds, also one that is not known. New reference; NULL when memory is short; null when the
 * struct is not known. */
json_t *dt_record_json(const struct dt_record *record, const void *from);

/* C types of the kinds: text is NULL when there is none, an object is a json_t that is borrowed
 * or stolen, see above. */
#define DT_KIND_text        const char *
#define DT_KIND_words       const char * /* may be empty */
#define DT_KIND_flag        bool
#define DT_KIND_count       int /* 0 and more */
#define DT_KIND_positive    int /* 0: nothing */
#define DT_KIND_integer     int64_t
#define DT_KIND_nonzero     int64_t /* 0: nothing */
#define DT_KIND_bytes       int64_t /* 0 and more */
#define DT_KIND_time        int64_t /* nanoseconds, 0 and more; DT_NO_NS */
#define DT_KIND_seconds     double  /* the same; NAN */
#define DT_KIND_real        double  /* NAN */
#define DT_KIND_ratio       double  /* above 0; NAN, or 0: nothing */
#define DT_KIND_magnitude   double  /* 0 and more; NAN */
#define DT_KIND_interval    struct dt_span
#define DT_KIND_interval_ns struct dt_span_ns
#define DT_KIND_object      json_t *
#define DT_KIND_list        json_t *
extern const struct dt_kind dt_kind_text, dt_kind_words, dt_kind_flag, dt_kind_count,
    dt_kind_positive, dt_kind_integer, dt_kind_nonzero, dt_kind_bytes, dt_kind_time,
    dt_kind_seconds, dt_kind_real, dt_kind_ratio, dt_kind_magnitude, dt_kind_interval,
    dt_kind_interval_ns, dt_kind_object, dt_kind_list;
/* For kinds of other modules that hold JSON values: DT_OBJECT_KIND(plan); defines dt_kind_plan. */
#define DT_OBJECT_KIND(name)                                                                       \
    const struct dt_kind dt_kind_##name = {#name, "an object", dt_kind_is_object,                  \
                                           dt_kind_read_json, dt_kind_write_json}
#define DT_LIST_KIND(name)                                                                         \
    const struct dt_kind dt_kind_##name = {#name, "an array", dt_kind_is_list, dt_kind_read_json,  \
                                           dt_kind_write_json}
bool dt_kind_is_object(const json_t *value);
bool dt_kind_is_list(const json_t *value);
void dt_kind_read_json(const json_t *value, void *member);
json_t *dt_kind_write_json(const void *member);

#endif
