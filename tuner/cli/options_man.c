/* SPDX-License-Identifier: MIT */
/* Makes the manual page from the rows of help and the parser: each option once, with the commands that take it. */
#include "tuner/cli/options_int.h"

#include <string.h>

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

static void add_entry(struct dt_text *out, const char *mark, const char *name, const char *hint,
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
        add_entry(out, "--", row->name, row->hint, row->doc);
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
    struct dt_text text = {0};
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
    dt_text_fini(&text);
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
        add_entry(out, "", dt_commands[i].name, dt_commands[i].arguments, dt_commands[i].doc);
        dt_text_add(out, "\n");
    }
    add_options(out);
    add_topic(out, "EXIT STATUS", "exit-codes");
    dt_text_add(out, ".SH EXAMPLES\n.TP\n\\fBdittune \\-\\-budget 2m\\fR\n"
                     "Tune the built\\-in network for two minutes.\n"
                     ".TP\n\\fBdittune lookup\\fR\nPrint the plan that was stored.\n"
                     ".SH ENVIRONMENT\n.TP\n\\fBDITTUNE_DB\\fR\nFolder of the store; without it "
                     "\\fB$XDG_DATA_HOME/dittune\\fR, or \\fB\\(ti/.local/share/dittune\\fR.\n");
}
