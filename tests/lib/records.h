/* SPDX-License-Identifier: MIT */
/* records - holds schema/ and docs/json.md against the rows of a record (base/record.h)
 *
 * What differs is printed as it should be, to be pasted. A kind is the definition of its name; `_or_null` is added where
 * null is allowed.
 */
#ifndef DT_TESTS_LIB_RECORDS_H
#define DT_TESTS_LIB_RECORDS_H

#include "base/record.h"

#include <stdio.h>
#include <string.h>

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

static void add_properties(const struct dt_record *record, json_t *properties, json_t *required)
{
    for (int i = 0; i < record->field_count; i++) {
        const struct dt_field *field = &record->fields[i];
        if (field->name == NULL)
            add_properties(field->record, properties, required);
        else if (field->need == DT_NEED_ALWAYS || field->need == DT_NEED_OR_NULL)
            json_array_append_new(required, json_string(field->name));
        if (field->name != NULL)
            json_object_set_new(properties, field->name, property(field));
    }
}

static json_t *schema_of(const struct dt_record *record)
{
    json_t *required = json_array(), *properties = json_object();
    add_properties(record, properties, required);
    json_t *schema = json_pack("{s:s, s:s, s:o}", "type", "object", "description", record->doc,
                               "properties", properties);
    if (json_array_size(required) > 0)
        json_object_set(schema, "required", required);
    json_decref(required);
    return schema;
}

static bool schema_has(const char *file, const struct dt_record *record)
{
    char path[512];
    json_t *root = NULL, *wanted = schema_of(record);
    snprintf(path, sizeof path, DT_SOURCE_DIR "/schema/%s", file);
    bool same = dt_json_read(path, "the schema", &root) == DT_OK &&
                json_equal(json_object_get(json_object_get(root, "$defs"), record->name), wanted);
    char *text = json_dumps(wanted, JSON_COMPACT);
    if (!same)
        printf("%s: $defs should have\n\"%s\": %s\n", path, record->name, text);
    free(text);
    json_decref(wanted);
    json_decref(root);
    return same;
}

static void add_rows(const struct dt_record *record, struct dt_text *table)
{
    for (int i = 0; i < record->field_count; i++) {
        const struct dt_field *field = &record->fields[i];
        if (field->name == NULL)
            add_rows(field->record, table);
        else
            dt_text_add(table, "| `%s` | %s |\n", field->name, field->doc);
    }
}

static bool docs_have(const struct dt_record *record)
{
    struct dt_text table = {0}, docs = {0};
    char block[4096];
    FILE *file = fopen(DT_SOURCE_DIR "/docs/json.md", "re");
    dt_text_add(&table, "| field | meaning |\n|---|---|\n");
    add_rows(record, &table);
    for (size_t got; file != NULL && (got = fread(block, 1, sizeof block, file)) > 0;)
        dt_text_add_bytes(&docs, block, got);
    if (file != NULL)
        fclose(file);
    bool there = strstr(dt_text_at(&docs), dt_text_at(&table)) != NULL;
    if (!there)
        printf("docs/json.md should have the table of %s:\n%s", record->name, dt_text_at(&table));
    dt_text_fini(&table);
    dt_text_fini(&docs);
    return there;
}

#endif
