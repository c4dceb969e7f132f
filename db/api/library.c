/* SPDX-License-Identifier: MIT */
#include "db/api/api_int.h"

#include <stdlib.h>
#include <string.h>

uint32_t dittune_version(void)
{
    return DITTUNE_VERSION_NUM;
}

static const struct code {
    int32_t code;
    dt_status status;
} codes[] = {
    {DITTUNE_OK, DT_OK},
    {DITTUNE_FAILED, DT_FAILED},
    {DITTUNE_USAGE, DT_EUSAGE},
    {DITTUNE_INFEASIBLE, DT_EINFEASIBLE},
    {DITTUNE_CORRUPT, DT_ECORRUPT},
    {DITTUNE_NOMEM, DT_ENOMEM},
    {DITTUNE_UNSUPPORTED, DT_EUNSUP},
    {DITTUNE_IO, DT_EIO},
};

const char *dittune_status_text(int32_t status)
{
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        if (codes[i].code == status)
            return dt_status_text(codes[i].status);
    return "unknown";
}

const char *dittune_tier_text(int32_t tier)
{
    _Static_assert((int)DITTUNE_NONE == (int)DT_TIER_NONE &&
                       (int)DITTUNE_HEURISTIC == (int)DT_TIER_HEURISTIC &&
                       (int)DITTUNE_PROXY == (int)DT_TIER_PROXY &&
                       (int)DITTUNE_SCALED == (int)DT_TIER_SCALED &&
                       (int)DITTUNE_NEAR == (int)DT_TIER_NEAR &&
                       (int)DITTUNE_EXACT == (int)DT_TIER_EXACT,
                   "the tiers of the ABI are those of db/lookup");
    return tier >= DITTUNE_NONE && tier <= DITTUNE_EXACT ? dt_tier_text((enum dt_tier)tier)
                                                         : "unknown";
}

void dittune_text_free(char *text)
{
    free(text);
}

int32_t dt_api_refuse(int32_t code, const char *sentence, struct dt_api_message to)
{
    if (to.text == NULL || to.room == 0)
        return code;
    size_t size = strlen(sentence);
    if (size >= to.room) {
        size = to.room - 1;
        while (size > 0 && ((unsigned char)sentence[size] & 0xc0) == 0x80)
            size--;
    }
    memcpy(to.text, sentence, size);
    to.text[size] = '\0';
    return code;
}

int32_t dt_api_done(dt_status status, struct dt_api_message to)
{
    if (status >= 0)
        return DITTUNE_OK;
    int32_t code = DITTUNE_FAILED;
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        if (codes[i].status == status)
            code = codes[i].code;
    return dt_api_refuse(code, dt_message(), to);
}

void dt_api_begin(void)
{
    json_object_seed(0);
}

int32_t dt_api_text(const json_t *value, char **text, struct dt_api_message to)
{
    struct dt_text written = {0};
    dt_status status = dt_json_text(value, &written);
    if (status != DT_OK) {
        dt_text_fini(&written);
        return dt_api_done(status, to);
    }
    char *taken = dt_text_take(&written);
    if (taken == NULL)
        return dt_api_refuse(DITTUNE_NOMEM, "out of memory while writing JSON", to);
    *text = taken;
    return DITTUNE_OK;
}

dt_status dt_api_path(const char *variable, const char *otherwise, const char *rest,
                      struct dt_text *path)
{
    const char *given = getenv(variable), *home = getenv("HOME");
    if (given != NULL && given[0] == '/')
        dt_text_add(path, "%s/%s", given, rest);
    else if (home != NULL && home[0] != '\0')
        dt_text_add(path, "%s/%s/%s", home, otherwise, rest);
    else
        return dt_fail(DT_EUSAGE, "neither $%s nor $HOME is set: give the path", variable);
    return dt_text_status(path);
}
