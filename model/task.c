/* SPDX-License-Identifier: MIT */
#include "model/task.h"

#include "base/quote.h"

#include <math.h>
#include <string.h>

#define COUNT_MOST 1e15 /* so many a double holds exactly */

const struct dt_task_row dt_task_rows[DT_TASK_FIELDS] = {
#define DT_FIELD(name, option, kind, before, after, whose, values, help)                           \
    {#name, option, DT_TASK_##kind, before, after, DT_TASK_##whose},
#include "model/task.def"
};

void dt_task_set_text(struct dt_task *task, enum dt_task_field field, const char *text)
{
    task->at[field] = (struct dt_task_value){.given = text != NULL, .text = text};
}

void dt_task_set_count(struct dt_task *task, enum dt_task_field field, int64_t count)
{
    task->at[field] = (struct dt_task_value){.given = count > 0, .count = count > 0 ? count : 0};
}

const char *dt_task_of_engine(const struct dt_task *task)
{
    for (int i = 0; i < DT_TASK_FIELDS; i++)
        if (task->at[i].given && i != DT_TASK_guidance && dt_task_rows[i].whose != DT_TASK_EVERY)
            return dt_task_rows[i].name;
    return NULL;
}

void dt_task_spell(const struct dt_task *task, enum dt_task_field field, struct dt_text *out)
{
    const struct dt_task_value *value = &task->at[field];
    char lengths[DT_LENGTHS_TEXT];
    if (!value->given)
        return;
    switch (dt_task_rows[field].kind) {
    case DT_TASK_TEXT:
    case DT_TASK_DTYPE:
        dt_text_add(out, "%s", value->text);
        break;
    case DT_TASK_LENGTHS:
        dt_lengths_text(&value->lengths, lengths);
        dt_text_add(out, "%s", lengths);
        break;
    case DT_TASK_SCALE:
        dt_text_add(out, "%.15g", value->scale);
        break;
    case DT_TASK_COUNT:
    case DT_TASK_SIDE:
    case DT_TASK_BATCH:
        dt_text_add(out, "%lld", (long long)value->count);
        break;
    }
}

bool dt_task_same(const struct dt_task *a, const struct dt_task *b, enum dt_task_field field)
{
    const struct dt_task_value *mine = &a->at[field], *its = &b->at[field];
    if (!mine->given || !its->given)
        return mine->given == its->given;
    switch (dt_task_rows[field].kind) {
    case DT_TASK_TEXT:
    case DT_TASK_DTYPE:
        return strcmp(mine->text, its->text) == 0;
    case DT_TASK_LENGTHS:
        return mine->lengths.count == its->lengths.count &&
               memcmp(mine->lengths.at, its->lengths.at,
                      (size_t)its->lengths.count * sizeof its->lengths.at[0]) == 0;
    case DT_TASK_SCALE:
        return mine->scale == its->scale;
    default:
        return mine->count == its->count;
    }
}

static json_t *value_json(enum dt_task_kind kind, const struct dt_task_value *value)
{
    char lengths[DT_LENGTHS_TEXT];
    if (kind >= DT_TASK_COUNT)
        return json_integer(value->count);
    if (kind == DT_TASK_SCALE)
        return json_real(value->scale);
    if (kind != DT_TASK_LENGTHS)
        return json_string(value->text);
    dt_lengths_text(&value->lengths, lengths);
    return json_string(lengths);
}

dt_status dt_task_json(const struct dt_task *task, json_t **job)
{
    json_auto_t *made = json_object();
    for (int i = 0; i < DT_TASK_FIELDS; i++)
        if (task->at[i].given &&
            json_object_set_new(made, dt_task_rows[i].name,
                                value_json(dt_task_rows[i].kind, &task->at[i])) != 0)
            return dt_fail(DT_ENOMEM, "out of memory while making a job");
    *job = json_incref(made);
    return made != NULL ? DT_OK : dt_fail(DT_ENOMEM, "out of memory while making a job");
}

void dt_task_read(const json_t *job, struct dt_task *task)
{
    *task = (struct dt_task){0};
    for (enum dt_task_field i = 0; i < DT_TASK_FIELDS; i++) {
        const json_t *value = json_object_get(job, dt_task_rows[i].name);
        enum dt_task_kind kind = dt_task_rows[i].kind;
        const char *text = json_string_value(value);
        double number = json_number_value(value);
        struct dt_lengths lengths;
        if (kind >= DT_TASK_COUNT)
            dt_task_set_count(task, i,
                              number >= 1 && number <= COUNT_MOST && number == floor(number)
                                  ? (int64_t)number
                                  : 0);
        else if (kind == DT_TASK_SCALE && json_is_number(value))
            task->at[i] = (struct dt_task_value){.given = true, .scale = number};
        else if (kind == DT_TASK_LENGTHS && text != NULL &&
                 dt_lengths_parse(dt_task_rows[i].name, text, &lengths) == DT_OK)
            task->at[i] = (struct dt_task_value){.given = lengths.count > 0, .lengths = lengths};
        else if (kind == DT_TASK_TEXT || kind == DT_TASK_DTYPE)
            dt_task_set_text(task, i, text);
    }
}

/* Width and height are one, printed where the width stands. */
static bool is_shown(const struct dt_task *task, enum dt_task_field field)
{
    bool side = field == DT_TASK_width || field == DT_TASK_height;
    return side ? task->at[DT_TASK_width].given && task->at[DT_TASK_height].given
                : task->at[field].given;
}

void dt_task_title(const json_t *job, struct dt_text *out)
{
    struct dt_task task;
    bool first = true;
    dt_task_read(job, &task);
    for (enum dt_task_field i = 0; i < DT_TASK_FIELDS; i++) {
        const struct dt_task_row *row = &dt_task_rows[i];
        if (row->before == NULL || !is_shown(&task, i))
            continue;
        dt_text_add(out, "%s%s", first || i == DT_TASK_height ? "" : ", ", row->before);
        dt_task_spell(&task, i, out);
        dt_text_add(out, "%s", row->after);
        first = false;
    }
}

void dt_task_options(const json_t *job, const json_t *obeys, bool learned, struct dt_text *out)
{
    struct dt_task task;
    dt_task_read(job, &task);
    for (enum dt_task_field i = 0; i < DT_TASK_FIELDS; i++) {
        const struct dt_task_row *row = &dt_task_rows[i];
        bool wanted = dt_json_lists(obeys, row->name) || (learned && row->whose == DT_TASK_LEARNED);
        if (!is_shown(&task, i) || i == DT_TASK_height || !wanted)
            continue;
        dt_text_add(out, " --%s ", row->option);
        if (task.at[i].text != NULL)
            dt_quote(task.at[i].text, out);
        else
            dt_task_spell(&task, i, out);
        if (i == DT_TASK_width)
            dt_text_add(out, "x%lld", (long long)task.at[DT_TASK_height].count);
    }
}
