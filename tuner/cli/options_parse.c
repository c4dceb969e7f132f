/* SPDX-License-Identifier: MIT */
#include "tuner/cli/options_int.h"

#include "base/json.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define OPTIONS_MOST 128 /* considered for the nearest name of a misspelt one */
#define NAMES_MOST   32  /* commands and topics of help */

bool dt_has_word(const char *words, const char *word)
{
    size_t size = strlen(word);
    for (const char *at = words; (at = strstr(at, word)) != NULL; at += size)
        if ((at == words || at[-1] == ' ') && (at[size] == ' ' || at[size] == '\0'))
            return true;
    return false;
}

bool dt_option_taken(const struct dt_command *command, const struct dt_option_row *row)
{
    return row->commands == NULL || dt_has_word(row->commands, command->name);
}

/* Suggests our option for a name known from other tools. */
static const char *instead(const char *name)
{
    static const struct {
        const char *name, *hint;
    } rows[] = {{"trials", "a session has a time, not a number of trials: --budget 2m"},
                {"timeout", "a session has a time: --budget 2m"},
                {"gpus", "--devices N: use at most N devices"},
                {"resolution", "--size PX"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(rows[i].name, name) == 0)
            return rows[i].hint;
    return NULL;
}

/* Suggests the nearest option of the command. */
static dt_status unknown_option(const struct dt_command *command, const char *name)
{
    const char *names[OPTIONS_MOST + 1] = {NULL}, *hint = instead(name);
    int n = 0;
    for (int i = 0; i < dt_option_row_count && n < OPTIONS_MOST; i++)
        if (dt_option_taken(command, &dt_option_rows[i]))
            names[n++] = dt_option_rows[i].name;
    const char *near = dt_json_nearest(name, names);
    if (hint != NULL)
        return dt_fail(DT_EUSAGE, "unknown option --%s: %s", name, hint);
    if (near != NULL)
        return dt_fail(DT_EUSAGE, "unknown option --%s, did you mean --%s?", name, near);
    return dt_fail(DT_EUSAGE, "unknown option --%s: see dittune %s --help", name, command->name);
}

static void remember(struct dt_options *options, const char *name)
{
    if (options->words.given_count < DT_GIVEN_MOST && !dt_option_given(options, name))
        options->words.given[options->words.given_count++] = name;
}

dt_status dt_command_find(const char *word, bool topics, const struct dt_command **command)
{
    const char *names[NAMES_MOST + 1] = {NULL};
    for (int i = 0; topics && dt_help_topics[i] != NULL; i++)
        names[dt_command_count + i] = dt_help_topics[i];
    for (int i = 0; i < dt_command_count; i++) {
        names[i] = dt_commands[i].name;
        if (strcmp(word, dt_commands[i].name) == 0) {
            *command = &dt_commands[i];
            return DT_OK;
        }
    }
    const char *near = dt_json_nearest(word, names);
    if (near != NULL)
        return dt_fail(DT_EUSAGE, "unknown command '%s', did you mean '%s'?", word, near);
    return dt_fail(DT_EUSAGE, "unknown command '%s': see dittune --help", word);
}

/* The row with that name for the command, else any: a name may have different meanings for two commands. */
static const struct dt_option_row *find_row(const struct dt_command *command, const char *name)
{
    const struct dt_option_row *row = NULL;
    for (int k = 0; k < dt_option_row_count; k++)
        if (strcmp(dt_option_rows[k].name, name) == 0 &&
            (row == NULL || dt_option_taken(command, &dt_option_rows[k])))
            row = &dt_option_rows[k];
    return row;
}

/* One "--name", "--name value" or "--name=value" at argv[*i]. */
static dt_status parse_option(int argc, char **argv, int *i, const struct dt_command *command,
                              struct dt_options *options)
{
    static const char *const letters[] = {"help", "quiet", "verbose", "output"};
    char name[64];
    const char *word = argv[*i] + 2, *equals = strchr(word, '=');
    bool letter = argv[*i][1] != '-' && argv[*i][2] == '\0';
    for (size_t k = 0; letter && k < sizeof letters / sizeof letters[0]; k++)
        if (letters[k][0] == argv[*i][1])
            word = letters[k];
    size_t size = equals != NULL ? (size_t)(equals - word) : strlen(word);
    if ((argv[*i][1] != '-' && word == argv[*i] + 2) || size == 0 || size >= sizeof name)
        return dt_fail(DT_EUSAGE,
                       "unknown option %s: options start with two dashes, see dittune --help",
                       argv[*i]);
    memcpy(name, word, size);
    name[size] = '\0';
    const struct dt_option_row *row = find_row(command, name);
    if (row == NULL)
        return unknown_option(command, name);
    if (!dt_option_taken(command, row))
        return dt_fail(DT_EUSAGE, "--%s is not an option of 'dittune %s' (it belongs to: %s)", name,
                       command->name, row->commands);
    if (row->hint == NULL && equals != NULL)
        return dt_fail(DT_EUSAGE, "--%s takes no value", name);
    if (row->hint != NULL && equals == NULL && *i + 1 >= argc)
        return dt_fail(DT_EUSAGE, "--%s needs a value: --%s %s", name, name, row->hint);
    const char *value = row->hint == NULL ? "" : equals != NULL ? equals + 1 : argv[++*i];
    remember(options, row->name);
    return row->parse(name, value, (char *)options + row->offset);
}

/* The first word that is neither an option nor its value is the command. */
static dt_status choose_command(int argc, char **argv, int *at, const struct dt_command **command)
{
    *at = 0;
    *command = &dt_commands[0];
    if (argc > 1 && argv[1][0] != '-') {
        *at = 1;
        return dt_command_find(argv[1], false, command);
    }
    return DT_OK;
}

/* For commands that only read a store a missing path is an error, not an empty store; for look-up and check, which may come before
 * the first session, it is one. */
static dt_status check_store(const struct dt_command *command, const struct dt_options *options)
{
    bool db = strcmp(command->name, "db") == 0 && options->words.rest_count > 0;
    bool reads = dt_has_word("history report why", command->name) ||
                 (db && dt_has_word("show verify gc export rm rebuild", options->words.rest[0]));
    if (!reads || options->db == NULL || access(options->db, F_OK) == 0)
        return DT_OK;
    return dt_fail(DT_EIO, "--db %s: %s", options->db, strerror(errno));
}

/* The words after -- are arguments of the worker. */
static bool starts_worker(const struct dt_command *command, const struct dt_options *options,
                          int words)
{
    return options->worker.program.path != NULL || options->worker.engine != NULL ||
           (strcmp(command->name, "worker-test") == 0 && words == 1);
}

dt_status dt_options_parse(int argc, char **argv, struct dt_options *options,
                           const struct dt_command **command)
{
    int at, words = 0;
    *options = (struct dt_options){0};
    for (int k = 0; k < dt_option_row_count; k++)
        if (dt_option_rows[k].fallback != NULL)
            DT_TRY(dt_option_rows[k].parse(dt_option_rows[k].name, dt_option_rows[k].fallback,
                                           (char *)options + dt_option_rows[k].offset));
    DT_TRY(choose_command(argc, argv, &at, command));
    bool only_words = false;
    for (int i = at + 1; i < argc; i++) {
        if (!only_words && strcmp(argv[i], "--") == 0) {
            if (starts_worker(*command, options, words)) {
                options->worker.program.arguments = (const char *const *)argv + i + 1;
                break;
            }
            only_words = true;
        } else if (!only_words && argv[i][0] == '-' && argv[i][1] != '\0') {
            DT_TRY(parse_option(argc, argv, &i, *command, options));
        } else {
            argv[1 + words++] = argv[i];
        }
    }
    options->words.rest = (const char *const *)argv + 1;
    options->words.rest_count = words;
    argv[1 + words < argc ? 1 + words : argc] = NULL;
    if (options->print.help)
        return DT_OK;
    if (words > (*command)->words_max && strchr(argv[1 + (*command)->words_max], '=') != NULL)
        return dt_fail(DT_EUSAGE,
                       "'dittune %s' does not take the word '%s': quote a plan, as in --plan "
                       "'ranks=2 ulysses=2'",
                       (*command)->name, argv[1 + (*command)->words_max]);
    if (words > (*command)->words_max)
        return dt_fail(DT_EUSAGE, "'dittune %s' does not take the word '%s': see dittune %s --help",
                       (*command)->name, argv[1 + (*command)->words_max], (*command)->name);
    if (words < (*command)->words_min)
        return dt_fail(DT_EUSAGE, "'dittune %s' needs %s", (*command)->name, (*command)->arguments);
    options->print.json = options->print.json || options->print.stream;
    DT_TRY(check_store(*command, options));
    DT_TRY(dt_options_effect(*command, options));
    DT_TRY(dt_options_engine(*command, options));
    return dt_options_command(options);
}
