/* SPDX-License-Identifier: MIT */
#include "tuner/cli/print.h"

dt_status dt_command_help(const struct dt_options *options)
{
    const struct dt_command *command = NULL;
    struct dt_text text = {0};
    if (options->words.rest_count > 0 && dt_options_topic(options->words.rest[0], &text))
        return dt_print_text(&text);
    if (options->words.rest_count > 0)
        DT_TRY(dt_command_find(options->words.rest[0], true, &command));
    if (command == NULL && options->print.man)
        dt_options_man(&text);
    else
        dt_options_help(command, options->print.markdown, &text);
    return dt_print_text(&text);
}
