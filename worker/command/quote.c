/* SPDX-License-Identifier: MIT */
#include "worker/command/quote.h"

#include <string.h>

void dt_quote_split(const char *sentence, struct dt_text *whole, struct dt_text *brief)
{
    const char *first = strstr(sentence, DT_QUOTES), *rest = sentence;
    for (const char *mark = first; mark != NULL; mark = strstr(rest, DT_QUOTES)) {
        dt_text_add_bytes(whole, rest, (size_t)(mark - rest));
        rest = mark + strlen(DT_QUOTES);
    }
    dt_text_add(whole, "%s", rest);
    while (first > sentence && first[-1] == ' ')
        first--;
    if (first != NULL)
        dt_text_add(brief, "%.*s ...", (int)(first - sentence), sentence);
}
