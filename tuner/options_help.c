/* SPDX-License-Identifier: MIT */
/* Help and docs/cli.md from the rows that the parser reads. */
#include "search/search.h"
#include "tuner/options_int.h"

#include <string.h>

/* A table cell: '|' would end it. */
static void add_cell(struct dt_text *out, const char *text)
{
    for (; *text != '\0'; text++)
        dt_text_add(out, *text == '|' ? "\\%c" : "%c", *text);
}

static void describe_row(const struct dt_option_row *row, bool markdown, struct dt_text *out)
{
    struct dt_text name = {0};
    dt_text_add(&name, "--%s%s%s", row->name, row->hint != NULL ? " " : "",
                row->hint != NULL ? row->hint : "");
    if (markdown) {
        dt_text_add(out, "| `");
        add_cell(out, dt_text_at(&name));
        dt_text_add(out, "` | %s | %s |\n", row->fallback != NULL ? row->fallback : "", row->doc);
    } else {
        dt_text_add(out, "  %-24s %s", dt_text_at(&name), row->doc);
        if (row->fallback != NULL)
            dt_text_add(out, " [%s]", row->fallback);
        dt_text_add(out, "\n");
    }
    dt_text_fini(&name);
}

static void describe(const struct dt_command *command, bool markdown, struct dt_text *out)
{
    const char *space = command->arguments[0] != '\0' ? " " : "";
    if (markdown)
        dt_text_add(out,
                    "## dittune %s%s%s\n\n%s\n\n| option | default | meaning |\n|---|---|---|\n",
                    command->name, space, command->arguments, command->doc);
    else
        dt_text_add(out, "dittune %s%s%s: %s\n\n", command->name, space, command->arguments,
                    command->doc);
    for (int k = 0; k < dt_option_row_count; k++)
        if (dt_option_taken(command, &dt_option_rows[k]))
            describe_row(&dt_option_rows[k], markdown, out);
    dt_text_add(out, "\n");
}

static void describe_exits(bool markdown, struct dt_text *out)
{
    int seen[64], n = 0;
    dt_text_add(out,
                markdown ? "## Exit codes\n\n| code | meaning |\n|---|---|\n" : "Exit codes:\n");
    for (dt_status code = 0; code > -256; code--) {
        int exit_code = dt_status_exit(code);
        bool again = strcmp(dt_status_text(code), "unknown status") == 0 || n == 64;
        for (int i = 0; i < n && !again; i++)
            again = seen[i] == exit_code;
        if (again)
            continue;
        seen[n++] = exit_code;
        dt_text_add(out, markdown ? "| %d | %s |\n" : "  %-4d %s\n", exit_code,
                    dt_status_text(code));
    }
}

static void describe_search(const struct dt_strategy *search, bool markdown, struct dt_text *out)
{
    const struct dt_knob *knob = search->knobs;
    dt_text_add(out, markdown ? "| `%s` | %s | " : "  %-12s %s\n", search->name, search->doc);
    for (; knob != NULL && knob->name != NULL; knob++)
        dt_text_add(out, markdown ? "`%s` %s: %g (%g to %g)<br>" : "    %s: %s: %g (%g to %g)\n",
                    knob->name, knob->doc, knob->fallback, knob->low, knob->high);
    if (markdown)
        dt_text_add(out, " | %s |\n", search->paper);
}

static void describe_searches(bool markdown, struct dt_text *out)
{
    dt_text_add(out, markdown ? "## Searches\n\nAs in `--search name` or `--search "
                                "name:setting=value,setting=value`.\n\n"
                                "| name | what it does | settings | after |\n|---|---|---|---|\n"
                              : "Searches (--search name:setting=value,..):\n");
    for (int i = 0; dt_strategies[i] != NULL; i++)
        describe_search(dt_strategies[i], markdown, out);
    dt_text_add(out, "\n");
}

void dt_options_help(const struct dt_command *command, bool markdown, struct dt_text *out)
{
    if (command != NULL) {
        describe(command, markdown, out);
        return;
    }
    dt_text_add(
        out,
        markdown
            ? "# The command line\n\nMade by `dittune help --markdown`.\n\n"
            : "dittune finds the fastest parallel plan of a Diffusion Transformer on this machine, "
              "by measuring.\n\n  dittune --budget 2m\n\nCommands:\n");
    for (int i = 0; i < dt_command_count; i++)
        if (markdown)
            describe(&dt_commands[i], true, out);
        else
            dt_text_add(out, "  %-12s %-22s %s\n", dt_commands[i].name, dt_commands[i].arguments,
                        dt_commands[i].doc);
    if (!markdown) {
        dt_text_add(out, "\n");
        describe(&dt_commands[0], false, out);
    }
    describe_searches(markdown, out);
    describe_exits(markdown, out);
}
