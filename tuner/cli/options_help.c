/* SPDX-License-Identifier: MIT */
/* Help and the manual page, from the parser's rows. */
#include "tuner/cli/options_int.h"

#include "base/columns.h"
#include "search/search.h"

#include <string.h>

/* ---- help and docs/cli.md */

#define DOC_AT     27 /* column of an option's meaning */
#define COMMAND_AT 15 /* column of a command's text */
#define SEARCH_AT  15
#define WIDE       10000 /* a row of a Markdown table is one line */

/* Two columns of help: a name, and what it means from column `at` on. */
static void add_entry(const char *name, int at, const char *doc, struct dt_text *out)
{
    dt_auto_text line = {0};
    int width = at - 3;
    if ((int)strlen(name) > width)
        dt_text_add(&line, "  %s\n%*s%s\n", name, at, "", doc);
    else
        dt_text_add(&line, "  %-*s %s\n", width, name, doc);
    dt_columns_wrap(dt_text_at(&line), DT_COLUMNS_USUAL, at, out);
}

static void describe_row(const struct dt_option_row *row, bool markdown, struct dt_text *out)
{
    dt_auto_text name = {0};
    dt_text_add(&name, "--%s%s%s", row->name, row->hint != NULL ? " " : "",
                row->hint != NULL ? row->hint : "");
    if (markdown) {
        dt_text_add(out, "| `");
        for (const char *at = dt_text_at(&name); *at != '\0'; at++) /* '|' would end the cell */
            dt_text_add(out, *at == '|' ? "\\%c" : "%c", *at);
        dt_text_add(out, "` | %s | %s |\n", row->fallback != NULL ? row->fallback : "", row->doc);
    } else {
        dt_auto_text doc = {0};
        dt_text_add(&doc, "%s", row->doc);
        if (row->fallback != NULL)
            dt_text_add(&doc, " [%s]", row->fallback);
        add_entry(dt_text_at(&name), DOC_AT, dt_text_at(&doc), out);
    }
}

static bool taken_before(const struct dt_command *command, const struct dt_option_row *row)
{
    for (const struct dt_command *at = dt_commands; at < command; at++)
        if (dt_option_taken(at, row))
            return true;
    return false;
}

/* once: options that a command before this one has, too, are named only: docs/cli.md. */
static void describe_command(const struct dt_command *command, bool markdown, bool once,
                             struct dt_text *out)
{
    const char *space = command->arguments[0] != '\0' ? " " : "";
    const char *head = markdown ? "| option | default | meaning |\n|---|---|---|\n" : "";
    dt_auto_text line = {0}, shared = {0};
    dt_text_add(&line, markdown ? "## dittune %s%s%s\n\n%s\n\n" : "dittune %s%s%s: %s\n\n",
                command->name, space, command->arguments, command->doc);
    dt_columns_wrap(dt_text_at(&line), markdown ? WIDE : DT_COLUMNS_USUAL, 4, out);
    for (int k = 0; k < dt_option_row_count; k++) {
        const struct dt_option_row *row = &dt_option_rows[k];
        if (!dt_option_taken(command, row))
            continue;
        if (once && taken_before(command, row)) {
            dt_text_add(&shared, " `--%s`", row->name);
            continue;
        }
        dt_text_add(out, "%s", head);
        head = "";
        describe_row(row, markdown, out);
    }
    if (dt_text_at(&shared)[0] != '\0')
        dt_text_add(out, "%sAs above:%s\n", head[0] == '\0' ? "\n" : "", dt_text_at(&shared));
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
    if (markdown)
        dt_text_add(out, "| `%s` | %s | ", search->name, search->doc);
    else
        add_entry(search->name, SEARCH_AT, search->doc, out);
    for (; knob != NULL && knob->name != NULL; knob++) {
        dt_auto_text line = {0};
        dt_text_add(&line, markdown ? "`%s` %s: %g (%g to %g)<br>" : "    %s: %s: %g (%g to %g)\n",
                    knob->name, knob->doc, knob->fallback, knob->low, knob->high);
        dt_columns_wrap(dt_text_at(&line), markdown ? WIDE : DT_COLUMNS_USUAL, 8, out);
    }
    if (markdown)
        dt_text_add(out, " | %s |\n", search->paper);
}

static void describe_searches(bool markdown, struct dt_text *out)
{
    dt_text_add(out, markdown ? "## Searches\n\nAs in `--search name` or `--search "
                                "name:setting=value,setting=value`.\n\n"
                                "| name | what it does | settings | after |\n|---|---|---|---|\n"
                              : "Searches (--search name:setting=value,..), and the default, "
                                "least and\nmost of each setting:\n");
    for (int i = 0; dt_strategies[i] != NULL; i++)
        describe_search(dt_strategies[i], markdown, out);
}

const char *const dt_help_topics[] = {"search", "exit-codes", NULL};

bool dt_options_topic(const char *topic, struct dt_text *out)
{
    if (strcmp(topic, dt_help_topics[0]) == 0)
        describe_searches(false, out);
    else if (strcmp(topic, dt_help_topics[1]) == 0)
        describe_exits(false, out);
    else
        return false;
    return true;
}

static void describe_all(struct dt_text *out)
{
    dt_text_add(out,
                "# The command line\n\nMade by `dittune help --markdown`. `dittune` alone "
                "prints a short help on standard error\nand ends with code 2; an option "
                "without a command is one of `tune`: `dittune --budget 2h`. Options are\ndescribed "
                "under the first command that takes them.\n\n");
    for (int i = 0; i < dt_command_count; i++)
        describe_command(&dt_commands[i], true, true, out);
    describe_searches(true, out);
    dt_text_add(out, "\n");
    describe_exits(true, out);
}

/* The short help. */
static void describe_commands(struct dt_text *out)
{
    dt_text_add(out, "dittune finds the fastest parallel plan of a Diffusion Transformer on this"
                     "\nmachine, by measuring, and remembers it.\n\n"
                     "  dittune --budget 2m      tune the built-in network for two minutes\n"
                     "  dittune lookup           print the plan that was stored\n\nCommands:\n");
    for (int i = 0; i < dt_command_count; i++)
        add_entry(dt_commands[i].name, COMMAND_AT, dt_commands[i].doc, out);
    dt_text_add(out, "\n'dittune help COMMAND' lists its options, 'dittune help search' the "
                     "settings of\n--search, 'dittune help exit-codes' the exit codes. An option "
                     "without a command\nis one of tune.\n");
}

void dt_options_help(const struct dt_command *command, bool markdown, struct dt_text *out)
{
    if (command != NULL)
        describe_command(command, markdown, false, out);
    else if (markdown)
        describe_all(out);
    else
        describe_commands(out);
}

/* ---- the manual page: each option once, with the commands that take it */

/* Text for troff: backslashes and dashes are themselves, a line cannot begin as a request. */
static void add_plain(struct dt_text *out, const char *text)
{
    for (; *text != '\0'; text++)
        if (*text == '\\')
            dt_text_add(out, "\\e");
        else if (*text == '-')
            dt_text_add(out, "\\-");
        else if (*text == '\'')
            dt_text_add(out, "\\(aq");
        else
            dt_text_add(out, "%c", *text);
}

static void man_add_entry(struct dt_text *out, const char *mark, const char *name, const char *hint,
                          const char *doc)
{
    dt_text_add(out, ".TP\n\\fB");
    add_plain(out, mark);
    add_plain(out, name);
    dt_text_add(out, "\\fR");
    if (hint != NULL && hint[0] != '\0') {
        dt_text_add(out, " \\fI");
        add_plain(out, hint);
        dt_text_add(out, "\\fR");
    }
    dt_text_add(out, "\n\\&");
    add_plain(out, doc);
}

static void add_options(struct dt_text *out)
{
    dt_text_add(out, ".SH OPTIONS\n");
    for (int i = 0; i < dt_option_row_count; i++) {
        const struct dt_option_row *row = &dt_option_rows[i];
        man_add_entry(out, "--", row->name, row->hint, row->doc);
        if (row->fallback != NULL) {
            dt_text_add(out, " [");
            add_plain(out, row->fallback);
            dt_text_add(out, "]");
        }
        dt_text_add(out, "\n.br\nTaken by: \\fB");
        add_plain(out, row->commands != NULL ? row->commands : "every command");
        dt_text_add(out, "\\fR\n");
    }
}

/* A topic of help, line by line as it is there. */
static void add_topic(struct dt_text *out, const char *title, const char *topic)
{
    dt_auto_text text = {0};
    dt_text_add(out, ".SH %s\n.nf\n", title);
    (void)dt_options_topic(topic, &text);
    for (const char *line = strchr(dt_text_at(&text), '\n'); line != NULL && line[1] != '\0';) {
        const char *end = strchr(++line, '\n');
        dt_text_add(out, "\\&");
        for (; *line != '\0' && line != end; line++)
            add_plain(out, (const char[]){*line, '\0'});
        dt_text_add(out, "\n");
        line = end;
    }
    dt_text_add(out, ".fi\n");
}

void dt_options_man(struct dt_text *out)
{
    dt_text_add(out,
                ".TH DITTUNE 1 \"\" \"dittune %s\" \"User Commands\"\n.SH NAME\n"
                "dittune \\- find the fastest parallel plan of a Diffusion Transformer\n"
                ".SH SYNOPSIS\n\\fBdittune\\fR [\\fICOMMAND\\fR] [\\fIOPTION\\fR...]\n"
                ".SH DESCRIPTION\n\\fBdittune\\fR measures plans within a budget of time, "
                "compares the best with the plan that a careful user would choose, and "
                "stores it. An option without a command is one of \\fBtune\\fR.\n"
                ".SH COMMANDS\n",
                DT_VERSION);
    for (int i = 0; i < dt_command_count; i++) {
        man_add_entry(out, "", dt_commands[i].name, dt_commands[i].arguments, dt_commands[i].doc);
        dt_text_add(out, "\n");
    }
    add_options(out);
    add_topic(out, "EXIT STATUS", "exit-codes");
    dt_text_add(out, ".SH EXAMPLES\n.TP\n\\fBdittune \\-\\-budget 2m\\fR\n"
                     "Tune the built\\-in network for two minutes.\n"
                     ".TP\n\\fBdittune lookup\\fR\nPrint the plan that was stored.\n"
                     ".SH ENVIRONMENT\n.TP\n\\fBDITTUNE_STORE\\fR\nFolder of the store; look-ups "
                     "also ask those behind it, as in \\fIDIR\\fR:\\fIDIR\\fR. Without it "
                     "\\fB$XDG_DATA_HOME/dittune\\fR, or \\fB\\(ti/.local/share/dittune\\fR.\n");
}
