/* SPDX-License-Identifier: MIT */
/* Scripts for shells, made from the rows of the parser. To add a shell: a function and a row of `shells`. Values are
 * the lower-case words of a hint; a hint that names a file, a folder or a program is completed by files. */
#include "search/search.h"
#include "tuner/cli/database/verbs.h"
#include "tuner/cli/options_int.h"
#include "tuner/cli/print.h"

#include <string.h>

static bool takes_files(const struct dt_option_row *row)
{
    return row->hint != NULL &&
           (strstr(row->hint, "FILE") != NULL || strstr(row->hint, "DIR") != NULL ||
            strstr(row->hint, "PROGRAM") != NULL);
}

/* What the option is completed to; empty: files, or nothing. */
static void add_values(const struct dt_option_row *row, struct dt_text *out)
{
    for (const char *at = row->hint; at != NULL && *at != '\0'; at += *at == '|') {
        size_t size = strcspn(at, "|");
        if (*at >= 'a' && *at <= 'z') {
            dt_text_add_bytes(out, at, size);
            dt_text_add_bytes(out, " ", 1);
        }
        at += size;
    }
    if (strcmp(row->name, "search") == 0)
        for (int i = 0; dt_strategies[i] != NULL; i++)
            dt_text_add(out, "%s%s", i > 0 ? " " : "", dt_strategies[i]->name);
}

static const char *const shell_names = "bash zsh fish";

/* The words that may follow the command. */
static void add_words(const struct dt_command *command, struct dt_text *out)
{
    if (strcmp(command->name, "help") == 0) {
        for (int i = 0; i < dt_command_count; i++)
            dt_text_add(out, "%s ", dt_commands[i].name);
        for (int i = 0; dt_help_topics[i] != NULL; i++)
            dt_text_add(out, "%s ", dt_help_topics[i]);
    } else if (strcmp(command->name, "db") == 0) {
        for (int i = 0; i < dt_verb_count; i++)
            dt_text_add(out, "%s ", dt_verbs[i].name);
    } else if (strcmp(command->name, "completion") == 0)
        dt_text_add(out, "%s ", shell_names);
}

/* Appends text with a backslash before each of the characters. */
static void add_escaped(struct dt_text *out, const char *text, const char *characters)
{
    for (; *text != '\0'; text++)
        dt_text_add(out, strchr(characters, *text) != NULL ? "\\%c" : "%c", *text);
}

/* Appends text inside '...'. */
static void add_quoted(struct dt_text *out, const char *text)
{
    for (; *text != '\0'; text++)
        dt_text_add(out, *text == '\'' ? "'\\''" : "%c", *text);
}

/* What follows an option. Files are readline's own (compopt -o default), which knows quotes, blanks and ~. */
static void add_bash_value(const struct dt_command *command, const struct dt_option_row *row,
                           struct dt_text *out)
{
    struct dt_text values = {0};
    if (row->hint == NULL || !dt_option_taken(command, row))
        return;
    add_values(row, &values);
    dt_text_add(out, "    %s:--%s) ", command->name, row->name);
    if (values.size > 0)
        dt_text_add(out, "COMPREPLY=($(compgen -W '%s' -- \"$word\")); ", dt_text_at(&values));
    else if (takes_files(row))
        dt_text_add(out, "compopt -o default; ");
    dt_text_add(out, "return ;;\n");
    dt_text_fini(&values);
}

/* The options of a command where the word begins with '-'; else the words that may follow it, or files. */
static void add_bash_words(const struct dt_command *command, struct dt_text *out)
{
    struct dt_text words = {0};
    dt_text_add(out, "    %s:-*) words='", command->name);
    for (int i = 0; i < dt_option_row_count; i++)
        if (dt_option_taken(command, &dt_option_rows[i]))
            dt_text_add(out, "--%s ", dt_option_rows[i].name);
    dt_text_add(out, "' ;;\n");
    add_words(command, &words);
    if (words.size > 0)
        dt_text_add(out, "    %s:*) ((COMP_CWORD > 2)) || words='%s' ;;\n", command->name,
                    dt_text_at(&words));
    dt_text_fini(&words);
}

static void add_bash(struct dt_text *out)
{
    dt_text_add(out, "# bash completion of dittune, made by: dittune completion bash\n"
                     "_dittune() {\n    local word=${COMP_WORDS[COMP_CWORD]} "
                     "before=${COMP_WORDS[COMP_CWORD-1]} command=tune words=\n    COMPREPLY=()\n"
                     "    [[ $before == = ]] && before=${COMP_WORDS[COMP_CWORD-2]}\n"
                     "    [[ $word == = ]] && word=\n"
                     "    ((COMP_CWORD > 1)) && [[ ${COMP_WORDS[1]} != -* ]] && "
                     "command=${COMP_WORDS[1]}\n    case $command:$before in\n");
    for (int c = 0; c < dt_command_count; c++)
        for (int i = 0; i < dt_option_row_count; i++)
            add_bash_value(&dt_commands[c], &dt_option_rows[i], out);
    dt_text_add(out, "    esac\n    case $command:$word in\n");
    for (int c = 0; c < dt_command_count; c++)
        add_bash_words(&dt_commands[c], out);
    dt_text_add(out, "    esac\n    ((COMP_CWORD > 1)) || words+='");
    for (int c = 0; c < dt_command_count; c++)
        dt_text_add(out, " %s", dt_commands[c].name);
    dt_text_add(out,
                "'\n    COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
                "    [[ -n $words ]] || compopt -o default\n}\ncomplete -F _dittune dittune\n");
}

static void add_zsh(struct dt_text *out)
{
    dt_text_add(out,
                "#compdef dittune\n# zsh completion of dittune, made by: dittune completion zsh\n"
                "_dittune() {\n    local command=tune\n    local -a commands\n    commands=(\n");
    for (int c = 0; c < dt_command_count; c++) {
        dt_text_add(out, "        '%s:", dt_commands[c].name);
        add_quoted(out, dt_commands[c].doc);
        dt_text_add(out, "'\n");
    }
    dt_text_add(
        out, "    )\n    if ((CURRENT == 2)) && [[ $words[2] != -* ]]; then\n"
             "        _describe command commands\n        return\n    fi\n"
             "    if [[ $words[2] != -* ]]; then\n        command=$words[2]\n        shift words\n"
             "        ((CURRENT--))\n    fi\n    case $command in\n");
    for (int c = 0; c < dt_command_count; c++) {
        struct dt_text words = {0};
        dt_text_add(out, "    %s) _arguments", dt_commands[c].name);
        for (int i = 0; i < dt_option_row_count; i++) {
            const struct dt_option_row *row = &dt_option_rows[i];
            struct dt_text doc = {0};
            if (!dt_option_taken(&dt_commands[c], row))
                continue;
            dt_text_add(out, " \\\n        '--%s[", row->name);
            add_escaped(&doc, row->doc, "[]:\\");
            add_quoted(out, dt_text_at(&doc));
            dt_text_add(out, "]");
            dt_text_clear(&doc);
            add_values(row, &doc);
            if (doc.size > 0)
                dt_text_add(out, ":value:(%s)", dt_text_at(&doc));
            else if (row->hint != NULL)
                dt_text_add(out, ":value:%s", takes_files(row) ? "_files" : " ");
            dt_text_add(out, "'");
            dt_text_fini(&doc);
        }
        add_words(&dt_commands[c], &words);
        if (words.size > 0)
            dt_text_add(out, " \\\n        '1:word:(%s)'", dt_text_at(&words));
        dt_text_add(out, "%s ;;\n",
                    dt_commands[c].words_max > 0 ? " \\\n        '*:file:_files'" : "");
        dt_text_fini(&words);
    }
    dt_text_add(out, "    esac\n}\n[[ $zsh_eval_context[-1] == loadautofunc ]] && _dittune \"$@\" "
                     "|| compdef _dittune dittune\n");
}

static void add_fish_option(struct dt_text *out, const struct dt_option_row *row)
{
    struct dt_text text = {0};
    dt_text_add(out, "complete -c dittune -n '__dittune_in %s' -l %s",
                row->commands != NULL ? row->commands : "", row->name);
    add_values(row, &text);
    if (text.size > 0)
        dt_text_add(out, " -x -a '%s'", dt_text_at(&text));
    else if (row->hint != NULL)
        dt_text_add(out, " %s", takes_files(row) ? "-rF" : "-x");
    dt_text_add(out, " -d '");
    add_escaped(out, row->doc, "\\'");
    dt_text_add(out, "'\n");
    dt_text_fini(&text);
}

static void add_fish(struct dt_text *out)
{
    dt_text_add(
        out, "# fish completion of dittune, made by: dittune completion fish\n"
             "function __dittune_command\n    set -l words (commandline -opc) (commandline -ct)\n"
             "    if test (count $words) -gt 1; and not string match -q -- '-*' $words[2]\n"
             "        echo $words[2]\n    else\n        echo tune\n    end\nend\n"
             "function __dittune_in\n    test (count $argv) -eq 0; or contains -- "
             "(__dittune_command) $argv\nend\n"
             "function __dittune_first\n    test (count (commandline -opc)) -eq 1\nend\n"
             "complete -c dittune -f\n");
    for (int c = 0; c < dt_command_count; c++) {
        struct dt_text words = {0};
        dt_text_add(out, "complete -c dittune -n __dittune_first -a %s -d '", dt_commands[c].name);
        add_escaped(out, dt_commands[c].doc, "\\'");
        dt_text_add(out, "'\n");
        add_words(&dt_commands[c], &words);
        if (words.size > 0)
            dt_text_add(
                out, "complete -c dittune -n 'not __dittune_first; and __dittune_in %s' -a '%s'\n",
                dt_commands[c].name, dt_text_at(&words));
        dt_text_fini(&words);
    }
    for (int i = 0; i < dt_option_row_count; i++)
        add_fish_option(out, &dt_option_rows[i]);
}

dt_status dt_command_completion(const struct dt_options *options)
{
    static const struct {
        const char *name;
        void (*add)(struct dt_text *out);
    } shells[] = {{"bash", add_bash}, {"zsh", add_zsh}, {"fish", add_fish}};
    struct dt_text text = {0};
    for (size_t i = 0; i < sizeof shells / sizeof shells[0]; i++)
        if (strcmp(options->words.rest[0], shells[i].name) == 0) {
            shells[i].add(&text);
            return dt_print_text(&text);
        }
    return dt_fail(DT_EUSAGE, "unknown shell '%s': one of %s", options->words.rest[0], shell_names);
}
