/* SPDX-License-Identifier: MIT */
/* record_structs - turns the .def file that is included next into structs; that file
 * undefines these names again
 *
 *     DT_RECORD(name, doc)                                 begins struct dt_<name> and dt_record_<name>
 *     DT_FIELD(record, kind, member, "name", need, doc)    a member of that kind (base/record.h); need: ALWAYS,
 *                                                          OR_NULL, SINCE, OPTIONAL
 *     DT_PART(record, part, member, "name", need, doc)     a struct dt_<part> inside it
 *     DT_LIST(record, part, member, "name", most, doc)     at most so many of them, and <member>_count
 *     DT_GROUP(record, part, member)                       a struct dt_<part> whose fields are fields of the object itself
 *     DT_END(name)
 */
#include "base/record.h"

#define DT_RECORD(name, doc)                                                                       \
    struct dt_##name {                                                                             \
        bool known;
#define DT_FIELD(record, kind, member, name, need, doc) DT_KIND_##kind member;
#define DT_PART(record, part, member, name, need, doc)  struct dt_##part member;
#define DT_LIST(record, part, member, name, most, doc)                                             \
    struct dt_##part member[most];                                                                 \
    int member##_count;
#define DT_GROUP(record, part, member) struct dt_##part member;
#define DT_END(name)                                                                               \
    }                                                                                              \
    ;                                                                                              \
    extern const struct dt_record dt_record_##name;
