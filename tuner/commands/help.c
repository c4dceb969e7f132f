/* SPDX-License-Identifier: MIT */
#include "tuner/options.h"

#include <stdio.h>
#include <string.h>

dt_status dt_command_help(const struct dt_options *options)
{
    const struct dt_command *command = NULL;
    struct dt_text text = {0};
    for (int i = 0; i < dt_command_count && options->rest_count > 0; i++)
        if (strcmp(dt_commands[i].name, options->rest[0]) == 0)
            command = &dt_commands[i];
    if (options->rest_count > 0 && command == NULL)
        return dt_fail(DT_EUSAGE, "unknown command '%s': see dittune --help", options->rest[0]);
    dt_options_help(command, options->markdown, &text);
    dt_status status = dt_text_status(&text);
    fputs(dt_text_at(&text), stdout);
    dt_text_fini(&text);
    return status;
}
