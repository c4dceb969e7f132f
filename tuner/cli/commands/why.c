/* SPDX-License-Identifier: MIT */
/* The evidence for a stored plan, in sentences, from its journal or from the entry alone;
 * nothing is measured. */
#include "tuner/cli/page/page.h"
#include "tuner/cli/print.h"

dt_status dt_command_why(const struct dt_options *options)
{
    DT_CLEANUP(dt_page_close) struct dt_page page;
    struct dt_text text = {0};
    DT_TRY(dt_page_open(options->store, options->db == NULL, options->words.rest[0], &page));
    json_t *object = dt_page_why(&page, &text);
    return dt_print_either(options, dt_text_status(&text), object, &text);
}
