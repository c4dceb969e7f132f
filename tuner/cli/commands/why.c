/* SPDX-License-Identifier: MIT */
/* The evidence for a stored plan, in sentences, from its journal or from the entry alone; nothing is measured. */
#include "tuner/cli/page/source.h"
#include "tuner/cli/print.h"

dt_status dt_command_why(const struct dt_options *options)
{
    struct dt_page_source source;
    struct dt_text text = {0};
    json_t *object = NULL;
    dt_status status = dt_page_source_open(
        options->db, options->words.rest_count > 0 ? options->words.rest[0] : NULL, &source);
    if (status == DT_OK) {
        object = dt_page_why(&source, &text);
        status = dt_text_status(&text);
    }
    dt_page_source_close(&source);
    return dt_print_either(options, status, object, &text);
}
