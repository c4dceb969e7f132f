/* SPDX-License-Identifier: MIT */
/* record_rows - turns the .def file that is included next into the rows of its records
 * (base/record_structs.h) */
#include "base/record.h"

#define DT_RECORD(name, doc)                                                                       \
    static const char name##_doc[] = doc;                                                          \
    static const struct dt_field name##_fields[] = {
#define DT_FIELD(record, kind, member, name, need, doc)                                            \
    {name, doc, &dt_kind_##kind, NULL, 0, offsetof(struct dt_##record, member), 0, DT_NEED_##need},
#define DT_PART(record, part, member, name, need, doc)                                             \
    {name, doc,           NULL, &dt_record_##part, 0, offsetof(struct dt_##record, member),        \
     0,    DT_NEED_##need},
#define DT_LIST(record, part, member, name, most, doc)                                             \
    {name,                                                                                         \
     doc,                                                                                          \
     NULL,                                                                                         \
     &dt_record_##part,                                                                            \
     most,                                                                                         \
     offsetof(struct dt_##record, member),                                                         \
     offsetof(struct dt_##record, member##_count),                                                 \
     DT_NEED_SINCE},
#define DT_GROUP(record, part, member)                                                             \
    {NULL, NULL,          NULL, &dt_record_##part, 0, offsetof(struct dt_##record, member),        \
     0,    DT_NEED_ALWAYS},
#define DT_END(name)                                                                               \
    }                                                                                              \
    ;                                                                                              \
    const struct dt_record dt_record_##name = {#name, name##_doc, sizeof(struct dt_##name),        \
                                               name##_fields,                                      \
                                               sizeof name##_fields / sizeof name##_fields[0]};
