/* SPDX-License-Identifier: MIT */
/* Scripts for shells: the templates of tuner/cli/completion, filled from the rows of the parser. A
 * line "@mark ..." is there once for each command or option that the mark is about, and {{..}} is
 * one of its texts. Values are the lower-case words of a hint; a hint that names a file, a folder
 * or a program is completed by files. To add a shell: a template, its row in cmake/dittune.cmake,
 * and one of `shells`. */
#include "search/search.h"
#include "tuner/cli/database/verbs.h"
#include "tuner/cli/options_int.h"
#include "tuner/cli/print.h"

#include <string.h>

static const char bash[] = {
#include "completion.bash.inc"
};
static const char zsh[] = {
#include "completion.zsh.inc"
};
static const char fish[] = {
#include "completion.fish.inc"
};
/* Characters after a backslash in the meaning of a command, and of an option;
 * both stand in '...'. */
static const struct shell {
    const char *name, *template, *of_command, *of_option;
} shells[] = {{"bash", bash, "", ""}, {"zsh", zsh, "", "[]:\\"}, {"fish", fish, "\\'", "\\'"}};
enum { SHELLS = sizeof shells / sizeof shells[0] };

/* The subject of a line: a command, an option, or neither. */
struct subject {
    const struct shell *shell;
    const struct dt_command *command;
    const struct dt_option_row *option;
};

static void add_commands(struct dt_text *out)
{
    for (int i = 0; i < dt_command_count; i++)
        dt_text_add(out, "%s%s", i > 0 ? " " : "", dt_commands[i].name);
}

static void add_shells(struct dt_text *out)
{
    for (int i = 0; i < SHELLS; i++)
        dt_text_add(out, "%s%s", i > 0 ? " " : "", shells[i].name);
}

/* The words that may follow the command. */
static void add_words(const struct dt_command *command, struct dt_text *out)
{
    if (strcmp(command->name, "help") == 0) {
        add_commands(out);
        for (int i = 0; dt_help_topics[i] != NULL; i++)
            dt_text_add(out, " %s", dt_help_topics[i]);
    } else if (strcmp(command->name, "db") == 0) {
        for (int i = 0; i < dt_verb_count; i++)
            dt_text_add(out, "%s ", dt_verbs[i].name);
    } else if (strcmp(command->name, "completion") == 0)
        add_shells(out);
}

/* Adds the words that complete the option. */
static void add_values(const struct dt_option_row *row, struct dt_text *out)
{
    for (const char *at = row->hint; at != NULL && *at != '\0'; at += *at == '|') {
        size_t size = strcspn(at, "|");
        if (*at >= 'a' && *at <= 'z')
            dt_text_add(out, "%.*s ", (int)size, at);
        at += size;
    }
    if (strcmp(row->name, "search") == 0)
        for (int i = 0; dt_strategies[i] != NULL; i++)
            dt_text_add(out, "%s%s", i > 0 ? " " : "", dt_strategies[i]->name);
}

static void add_about(const struct subject *subject, struct dt_text *out)
{
    const struct dt_option_row *option = subject->option;
    const char *special = option != NULL ? subject->shell->of_option : subject->shell->of_command;
    for (const char *at = option != NULL ? option->doc : subject->command->doc; *at != '\0'; at++)
        dt_text_add(out,
                    strchr(special, *at) != NULL ? "\\%c"
                    : *at == '\''                ? "'\\%c'"
                                                 : "%c",
                    *at);
}

static void slot_fill(const struct subject *subject, const char *slot, struct dt_text *out)
{
    const struct dt_option_row *option = subject->option;
    if (strncmp(slot, "name", 4) == 0)
        dt_text_add(out, "%s", option != NULL ? option->name : subject->command->name);
    else if (strncmp(slot, "about", 5) == 0)
        add_about(subject, out);
    else if (strncmp(slot, "words", 5) == 0)
        add_words(subject->command, out);
    else if (strncmp(slot, "values", 6) == 0)
        add_values(option, out);
    else if (option != NULL && option->commands != NULL)
        dt_text_add(out, "%s", option->commands);
    else
        add_commands(out);
}

/* Up to the end of the line, with it. */
static void line_fill(const struct subject *subject, const char *line, struct dt_text *out)
{
    while (*line != '\n') {
        size_t plain = strcspn(line, "{\n");
        bool slot = strncmp(line + plain, "{{", 2) == 0;
        dt_text_add_bytes(out, line, plain + (line[plain] == '{' && !slot));
        line += plain + (line[plain] == '{' && !slot);
        if (slot) {
            slot_fill(subject, line + 2, out);
            line = strstr(line, "}}") + 2;
        }
    }
    dt_text_add(out, "\n");
}

/* The mark is about the subject. */
static bool is_marked(const struct subject *subject, const char *mark, size_t size)
{
    dt_auto_text text = {0};
    const struct dt_option_row *option = subject->option;
    const char *marks = "command";
    if (option != NULL)
        add_values(option, &text);
    else
        add_words(subject->command, &text);
    if (option == NULL && subject->command->words_max > 0)
        marks = text.size > 0 ? "command words arguments" : "command arguments";
    else if (option != NULL)
        marks = option->hint == NULL ? "option switch"
                : text.size > 0      ? "option values"
                : strstr(option->hint, "FILE") != NULL || strstr(option->hint, "DIR") != NULL ||
                        strstr(option->hint, "PROGRAM") != NULL
                    ? "option files"
                    : "option text";
    const char *at = memmem(marks, strlen(marks), mark, size);
    return at != NULL && (at[size] == ' ' || at[size] == '\0');
}

static void script_add(const struct shell *shell, struct dt_text *out)
{
    for (const char *line = shell->template; *line != '\0'; line = strchr(line, '\n') + 1) {
        size_t mark = strcspn(line, " \n");
        if (*line != '@')
            line_fill(&(struct subject){shell, NULL, NULL}, line, out);
        for (int i = 0; *line == '@' && i < dt_command_count + dt_option_row_count; i++) {
            int option = i - dt_command_count;
            const struct subject subject = {shell, option < 0 ? &dt_commands[i] : NULL,
                                            option < 0 ? NULL : &dt_option_rows[option]};
            if (is_marked(&subject, line + 1, mark - 1))
                line_fill(&subject, line + mark + 1, out);
        }
    }
}

dt_status dt_command_completion(const struct dt_options *options)
{
    dt_auto_text text = {0};
    for (int i = 0; i < SHELLS; i++)
        if (strcmp(options->words.rest[0], shells[i].name) == 0) {
            script_add(&shells[i], &text);
            return dt_print_text(&text);
        }
    add_shells(&text);
    return dt_fail(DT_EUSAGE, "unknown shell '%s': one of %s", options->words.rest[0],
                   dt_text_at(&text));
}
