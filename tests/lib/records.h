/* SPDX-License-Identifier: MIT */
/* records - compares schema/ and docs/ with the rows of a record (base/record.h)
 *
 * A record has a definition in a schema, and a table of fields behind `<!-- fields of NAME
 * -->` on a page of docs/. Both are written anew in the tree that DITTUNE_REWRITE names
 * (tools/rewrite-pages.sh). A kind is the definition of its name; `_or_null` is added
 * where null is allowed.
 */
#ifndef DT_TESTS_LIB_RECORDS_H
#define DT_TESTS_LIB_RECORDS_H

#include "base/record.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void read_whole(const char *path, struct dt_text *text)
{
    char block[4096];
    FILE *file = fopen(path, "re");
    for (size_t got; file != NULL && (got = fread(block, 1, sizeof block, file)) > 0;)
        dt_text_add_bytes(text, block, got);
    if (file != NULL)
        fclose(file);
}

/* The file with `wanted` in place of the bytes from begin to end. */
static void rewrite(const char *path, const struct dt_text *text, const char *begin,
                    const char *end, const char *wanted)
{
    FILE *file = fopen(path, "we");
    if (file == NULL)
        return;
    fprintf(file, "%.*s%s%s", (int)(begin - dt_text_at(text)), dt_text_at(text), wanted, end);
    fclose(file);
}

/* The part of the file that begins with `head` and ends before `tail` is `wanted`. */
static bool part_is(const char *file, const char *head, const char *tail, const char *wanted)
{
    char path[512];
    struct dt_text text = {0};
    const char *tree = getenv("DITTUNE_REWRITE");
    snprintf(path, sizeof path, "%s/%s", tree != NULL ? tree : DT_SOURCE_DIR, file);
    read_whole(path, &text);
    const char *begin = strstr(dt_text_at(&text), head);
    const char *end = begin != NULL ? strstr(begin + strlen(head), tail) : NULL;
    bool same = end != NULL && strlen(wanted) == (size_t)(end - begin) &&
                strncmp(begin, wanted, strlen(wanted)) == 0;
    if (!same && end != NULL && tree != NULL) {
        rewrite(path, &text, begin, end, wanted);
        same = true;
    }
    if (!same)
        printf("%s should have (the target pages writes it):\n%s\n", file, wanted);
    dt_text_fini(&text);
    return same;
}

static void add_json(struct dt_text *text, json_t *value)
{
    char *dump = json_dumps(value, JSON_ENCODE_ANY);
    dt_text_add(text, "%s", dump);
    free(dump);
    json_decref(value);
}

static json_t *reference(const struct dt_field *field)
{
    const char *name = field->kind != NULL ? field->kind->name : field->record->name;
    bool null = field->need != DT_NEED_ALWAYS && field->most == 0;
    return json_sprintf("#/$defs/%s%s", name, null ? "_or_null" : "");
}

static json_t *property(const struct dt_field *field)
{
    json_t *object = field->most > 0 ? json_pack("{s:s, s:i, s:{s:o}}", "type", "array", "maxItems",
                                                 field->most, "items", "$ref", reference(field))
                                     : json_pack("{s:o}", "$ref", reference(field));
    json_object_set_new(object, "description", json_string(field->doc));
    return object;
}

static void add_properties(const struct dt_record *record, struct dt_text *properties,
                           json_t *required)
{
    for (int i = 0; i < record->field_count; i++) {
        const struct dt_field *field = &record->fields[i];
        if (field->name == NULL) {
            add_properties(field->record, properties, required);
            continue;
        }
        if (field->need == DT_NEED_ALWAYS || field->need == DT_NEED_OR_NULL)
            json_array_append_new(required, json_string(field->name));
        dt_text_add(properties, "%s\n        \"%s\": ", properties->size > 0 ? "," : "",
                    field->name);
        add_json(properties, property(field));
    }
}

static bool schema_has(const char *file, const struct dt_record *record)
{
    char path[256], head[128];
    struct dt_text wanted = {0}, properties = {0};
    json_t *required = json_array();
    snprintf(path, sizeof path, "schema/%s", file);
    snprintf(head, sizeof head, "    \"%s\": {\n", record->name);
    add_properties(record, &properties, required);
    dt_text_add(&wanted, "%s      \"type\": \"object\",\n      \"description\": ", head);
    add_json(&wanted, json_string(record->doc));
    if (json_array_size(required) > 0) {
        dt_text_add(&wanted, ",\n      \"required\": ");
        add_json(&wanted, json_incref(required));
    }
    dt_text_add(&wanted, ",\n      \"properties\": {%s\n      }", dt_text_at(&properties));
    bool same = part_is(path, head, "\n    }", dt_text_at(&wanted));
    json_decref(required);
    dt_text_fini(&properties);
    dt_text_fini(&wanted);
    return same;
}

static void add_rows(const struct dt_record *record, struct dt_text *table)
{
    for (int i = 0; i < record->field_count; i++) {
        const struct dt_field *field = &record->fields[i];
        if (field->name == NULL)
            add_rows(field->record, table);
        else
            dt_text_add(table, "\n| `%s` | %s |", field->name, field->doc);
    }
}

static bool docs_have(const char *page, const struct dt_record *record)
{
    struct dt_text table = {0};
    char head[128];
    snprintf(head, sizeof head, "<!-- fields of %s -->\n", record->name);
    dt_text_add(&table, "%s| field | meaning |\n|---|---|", head);
    add_rows(record, &table);
    bool same = part_is(page, head, "\n\n", dt_text_at(&table));
    dt_text_fini(&table);
    return same;
}

#endif
