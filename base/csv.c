/* SPDX-License-Identifier: MIT */
#include "base/csv.h"

#include <string.h>

void dt_csv_text(const char *text, struct dt_text *out)
{
    struct dt_text words = {0};
    dt_text_show(text, &words);
    dt_text_add(out, "\"%s", text[0] != '\0' && strchr("=+-@\t\r", text[0]) != NULL ? "'" : "");
    for (const char *at = dt_text_at(&words); *at != '\0'; at++)
        dt_text_add(out, *at == '"' ? "\"\"" : "%c", *at);
    dt_text_add(out, "\"");
    dt_text_fini(&words);
}
