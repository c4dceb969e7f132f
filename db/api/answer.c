/* SPDX-License-Identifier: MIT */
#include "db/api/api_int.h"

#include "base/clock.h"

#include <string.h>

void dittune_answer_free(struct dittune_answer *answer)
{
    dt_answer_free((struct dt_answer *)answer);
}

int32_t dittune_answer_tier(const struct dittune_answer *answer)
{
    return answer != NULL ? (int32_t)dt_api_answer(answer)->tier : DITTUNE_NONE;
}

int32_t dittune_answer_is_stale(const struct dittune_answer *answer)
{
    return answer != NULL && dt_api_answer(answer)->stale;
}

int32_t dittune_answer_is_provisional(const struct dittune_answer *answer)
{
    return answer != NULL && dt_api_answer(answer)->why_provisional != NULL;
}

double dittune_answer_distance(const struct dittune_answer *answer)
{
    return answer != NULL ? dt_api_answer(answer)->distance : 0;
}

const char *dittune_answer_reason(const struct dittune_answer *answer)
{
    return answer != NULL ? dt_api_answer(answer)->reason : NULL;
}

int64_t dittune_answer_age_seconds(const struct dittune_answer *answer)
{
    if (answer == NULL || dt_api_answer(answer)->age_ns < 0)
        return -1;
    return dt_api_answer(answer)->age_ns / DT_NS_PER_SECOND;
}

const char *dittune_answer_evidence(const struct dittune_answer *answer)
{
    if (answer == NULL)
        return NULL;
    const char *evidence = dt_api_answer(answer)->evidence;
    return evidence != NULL ? evidence : "";
}

int32_t dittune_answer_gain(const struct dittune_answer *answer, double *ratio, double *low,
                            double *high)
{
    const struct dt_answer *of = dt_api_answer(answer);
    if (of == NULL || ratio == NULL || low == NULL || high == NULL || !of->measured.gain.known)
        return 0;
    *ratio = of->measured.gain.ratio;
    *low = of->measured.gain.interval.low;
    *high = of->measured.gain.interval.high;
    return 1;
}

size_t dittune_answer_count(const struct dittune_answer *answer)
{
    return answer != NULL ? json_object_size(dt_api_answer(answer)->plan) : 0;
}

const char *dittune_answer_name(const struct dittune_answer *answer, size_t i)
{
    const char *name;
    json_t *value;
    if (answer == NULL)
        return NULL;
    json_object_foreach((json_t *)dt_api_answer(answer)->plan, name, value)
    {
        if (i-- == 0)
            return name;
    }
    return NULL;
}

static const json_t *value_of(const struct dittune_answer *answer, const char *name)
{
    if (answer == NULL || name == NULL)
        return NULL;
    return json_object_get(dt_api_answer(answer)->plan, name);
}

int32_t dittune_answer_integer(const struct dittune_answer *answer, const char *name,
                               int64_t *value)
{
    const json_t *found = value_of(answer, name);
    if (!json_is_integer(found) || value == NULL)
        return DITTUNE_USAGE;
    *value = json_integer_value(found);
    return DITTUNE_OK;
}

int32_t dittune_answer_value(const struct dittune_answer *answer, const char *name, char *value,
                             size_t room)
{
    const json_t *found = value_of(answer, name);
    struct dt_text text = {0};
    dt_status status = DT_OK;
    if (found == NULL || value == NULL)
        return DITTUNE_USAGE;
    if (json_is_string(found))
        dt_text_add(&text, "%s", json_string_value(found));
    else
        status = dt_json_text(found, &text);
    if (status == DT_OK)
        status = dt_text_status(&text);
    int32_t code = status == DT_OK ? DITTUNE_OK : DITTUNE_NOMEM;
    if (code == DITTUNE_OK && text.size >= room)
        code = DITTUNE_USAGE;
    if (code == DITTUNE_OK)
        memcpy(value, dt_text_at(&text), text.size + 1);
    dt_text_fini(&text);
    return code;
}

int32_t dittune_answer_json(const struct dittune_answer *answer, const char *field, char **text,
                            char *message, size_t room)
{
    const struct dt_api_message to = {message, room};
    if (answer == NULL || text == NULL)
        return dt_api_refuse(DITTUNE_USAGE, "answer or text is NULL", to);
    json_t *whole = dt_answer_json(dt_api_answer(answer));
    if (whole == NULL)
        return dt_api_refuse(DITTUNE_NOMEM, "out of memory while writing the answer", to);
    const json_t *part = field != NULL ? json_object_get(whole, field) : whole;
    int32_t code = part != NULL
                       ? dt_api_text(part, text, to)
                       : dt_api_refuse(DITTUNE_USAGE, "an answer has no field of that name", to);
    json_decref(whole);
    return code;
}
