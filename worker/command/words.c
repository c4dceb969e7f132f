/* SPDX-License-Identifier: MIT */
#include "worker/command/words.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A byte of text, a placeholder {NAME}, or a switch {CONDITION?TEXT}. */
struct piece {
    size_t size; /* bytes of the command */
    char literal;
    char name[80];       /* the placeholder's; "": it is none */
    char condition[200]; /* the switch's; "": it is none */
    const char *text;    /* the switch's text, in the command */
    size_t text_size;
};

/* Whether a brace is one of two that stand for themselves; depth: braces that are open. */
static bool brace_is_doubled(const char *at, int depth)
{
    return depth == 0 && (*at == '{' || *at == '}') && at[1] == *at;
}

/* The brace that ends the one at text, which is not doubled; NULL: there is none. */
static const char *brace_end(const char *text, const char *end)
{
    int depth = 0;
    for (const char *at = text; at < end; at++) {
        depth += (*at == '{') - (*at == '}');
        if (depth == 0)
            return at;
    }
    return NULL;
}

static dt_status read_switch(const char *text, const char *mark, const char *end,
                             struct piece *piece)
{
    size_t length = (size_t)(mark - text - 1);
    if (length == 0 || length >= sizeof piece->condition)
        return dt_fail(DT_EUSAGE,
                       "the command's switch '%.40s' needs a condition of 1 to %zu characters "
                       "before its '?', as in {eager?--eager}",
                       text, sizeof piece->condition - 1);
    memcpy(piece->condition, text + 1, length);
    piece->text = mark + 1;
    piece->text_size = (size_t)(end - mark - 1);
    return DT_OK;
}

/* Reads the next piece of a word at `text`, before `stop`. nested: it is the text of a switch,
 * where a brace is not doubled.
 * DT_EUSAGE: a brace alone, or a placeholder or switch that cannot be. */
static dt_status piece_next(const char *text, const char *stop, bool nested, struct piece *piece)
{
    const char *end = text[0] == '{' ? brace_end(text, stop) : NULL;
    *piece = (struct piece){.size = 1, .literal = text[0]};
    if (!nested && brace_is_doubled(text, 0)) {
        piece->size = 2;
        return DT_OK;
    }
    if (text[0] == '}' || (text[0] == '{' && end == NULL))
        return dt_fail(DT_EUSAGE,
                       "the command has a single '%c' at '%.40s'; write '%c%c' for a brace",
                       text[0], text, text[0], text[0]);
    if (end == NULL)
        return DT_OK;
    size_t length = (size_t)(end - text - 1);
    const char *mark = memchr(text + 1, '?', length);
    piece->size = length + 2;
    if (mark != NULL)
        return read_switch(text, mark, end, piece);
    if (length == 0 || length >= sizeof piece->name)
        return dt_fail(DT_EUSAGE, "the command's placeholder '%.*s' has no name of a parameter",
                       (int)(length < 40 ? length + 2 : 42), text);
    memcpy(piece->name, text + 1, length);
    return DT_OK;
}

static dt_status add_word(char *words[], int *count, struct dt_text *word)
{
    if (*count == DT_COMMAND_WORDS)
        return dt_fail(DT_EUSAGE, "the command has more than %d words", DT_COMMAND_WORDS);
    dt_text_add(word, "%s", "");
    words[*count] = dt_text_take(word);
    return words[(*count)++] != NULL ? DT_OK : dt_fail(DT_ENOMEM, "out of memory");
}

/* Appends the word at *at, which begins with no blank, and moves *at behind it. What is between
 * braces stays as it is, blanks and quotes too: it may be the text of a switch. */
static dt_status take_word(const char **at, struct dt_text *word)
{
    char quote = 0;
    int depth = 0;
    for (; **at != 0 && (quote != 0 || depth > 0 || !isspace((unsigned char)**at)); ++*at) {
        if (quote == 0 && brace_is_doubled(*at, depth)) {
            dt_text_add_bytes(word, (*at)++, 1);
            dt_text_add_bytes(word, *at, 1);
        } else if (quote == 0 && (**at == '{' || (**at == '}' && depth > 0) || depth > 0)) {
            depth += (**at == '{') - (**at == '}');
            dt_text_add_bytes(word, *at, 1);
        } else if (**at == quote && quote != 0) {
            quote = 0;
        } else if (quote == 0 && (**at == '\'' || **at == '"')) {
            quote = **at;
        } else {
            if (**at == '\\' && quote != '\'' && (*at)[1] != 0)
                ++*at;
            dt_text_add_bytes(word, *at, 1);
        }
    }
    return quote == 0 ? DT_OK : dt_fail(DT_EUSAGE, "the command's %c has no end", quote);
}

static dt_status split_words(const char *text, struct dt_command_line *out)
{
    int count = 0;
    for (;;) {
        dt_auto_text word = {0};
        while (isspace((unsigned char)*text))
            text++;
        if (*text == 0)
            break;
        DT_TRY(take_word(&text, &word));
        DT_TRY(add_word(out->words, &count, &word));
    }
    return count > 0 ? DT_OK : dt_fail(DT_EUSAGE, "the command is empty");
}

dt_status dt_line_read(const char *text, bool shell, struct dt_command_line *out)
{
    const char *const shell_words[] = {"sh", "-c", text};
    *out = (struct dt_command_line){.shell = shell};
    dt_status status = shell ? DT_OK : split_words(text, out);
    for (int i = 0; i < 3 && shell && status == DT_OK; i++)
        if ((out->words[i] = strdup(shell_words[i])) == NULL)
            status = dt_fail(DT_ENOMEM, "out of memory");
    if (status < 0)
        dt_line_fini(out);
    return status;
}

void dt_line_fini(struct dt_command_line *command)
{
    for (int i = 0; command->words[i] != NULL; i++)
        free(command->words[i]);
    *command = (struct dt_command_line){0};
}

static dt_status refuse_name(const char *name, const struct dt_space *space)
{
    dt_auto_text known = {0};
    for (int i = 0; i < dt_space_axes(space); i++)
        dt_text_add(&known, "%s%s", i > 0 ? ", " : "", dt_space_axis(space, i)->name);
    return dt_fail(DT_EUSAGE,
                   "the command's placeholder '{%s}' is no parameter of the space; it has %s", name,
                   dt_text_at(&known));
}

/* The labels of a parameter whose values are texts; NULL: numbers. */
static const char *const *labels_of(const char *name, const struct dt_space *space)
{
    int axis = dt_space_find(space, name);
    return axis >= 0 ? dt_space_axis(space, axis)->labels : NULL;
}

/* The quote that is open behind a character of a shell's text, quote being the one
 * open before; 0: none. */
static char next_quote(char quote, const char *at, bool escaped)
{
    if (escaped || (*at != '\'' && *at != '"' && *at != '`') || (quote != 0 && quote != *at))
        return quote;
    return quote == 0 ? *at : 0;
}

static bool is_port(const struct dt_command_line *command, const char *name)
{
    return command->served && strcmp(name, "port") == 0;
}

static void add_port(const struct dt_command_line *command, struct dt_text *out)
{
    if (command->port > 0)
        dt_text_add(out, "%d", command->port);
    else
        dt_text_add(out, "{port}");
}

/* {port} is the name of no other value. */
static dt_status check_port(const struct dt_command_line *command, const struct dt_space *space)
{
    int64_t constant;
    if (command->served &&
        (dt_space_find(space, "port") >= 0 || dt_space_constant(space, "port", &constant)))
        return dt_fail(DT_EUSAGE,
                       "the space has the name 'port', but {port} of --server is the port "
                       "that dittune chooses");
    return DT_OK;
}

/* The value of {replica} and {replicas}, unless these are names of the space; NULL:
 * another placeholder. */
static const char *replica_value(const char *name, const struct dt_space *space)
{
    static const char *const rows[][3] = {{"replica", "DITTUNE_REPLICA", "0"},
                                          {"replicas", "DITTUNE_REPLICAS", "1"}};
    int64_t constant;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (strcmp(name, rows[i][0]) != 0 || dt_space_find(space, name) >= 0 ||
            dt_space_constant(space, name, &constant))
            continue;
        const char *value = getenv(rows[i][1]);
        return value != NULL ? value : rows[i][2];
    }
    return NULL;
}

/* The state of the check of a command's names. */
struct check {
    const struct dt_command_line *command;
    const struct dt_space *space;
    bool *used; /* by parameter */
    char quote; /* the shell's quote that is open here; 0: none */
    bool escaped;
};

static dt_status check_name(const struct check *check, const char *name)
{
    int64_t constant;
    int axis = dt_space_find(check->space, name);
    if (axis >= 0)
        check->used[axis] = true;
    else if (!is_port(check->command, name) && replica_value(name, check->space) == NULL &&
             !dt_space_constant(check->space, name, &constant))
        return refuse_name(name, check->space);
    if (check->command->shell && (check->quote != 0 || check->escaped) &&
        labels_of(name, check->space) != NULL)
        return dt_fail(DT_EUSAGE,
                       "the placeholder {%s} stands within quotes, where the shell would read "
                       "its value: leave them out, a value stays one word without them",
                       name);
    return DT_OK;
}

static dt_status check_condition(const struct check *check, const char *condition)
{
    uint32_t axes = 0;
    dt_status status = dt_space_test(check->space, condition, NULL, NULL, &axes);
    if (status < 0)
        return status == DT_ENOMEM ? status
                                   : dt_fail(DT_EUSAGE, "the command's switch {%.60s?..}: %.300s",
                                             condition, dt_message());
    for (int i = 0; i < dt_space_axes(check->space); i++)
        check->used[i] = check->used[i] || (axes >> i & 1) != 0;
    return DT_OK;
}

/* Marks the parameters that stand in a part of the command as used. */
static dt_status check_text(struct check *check, const char *at, const char *stop, bool nested)
{
    struct piece piece;
    for (; at < stop; at += piece.size) {
        DT_TRY(piece_next(at, stop, nested, &piece));
        if (piece.condition[0] != 0) {
            DT_TRY(check_condition(check, piece.condition));
            DT_TRY(check_text(check, piece.text, piece.text + piece.text_size, true));
        } else if (piece.name[0] != 0) {
            DT_TRY(check_name(check, piece.name));
            check->escaped = false;
        } else {
            check->quote = next_quote(check->quote, at, check->escaped);
            check->escaped = *at == '\\' && !check->escaped && check->quote != '\'';
        }
    }
    return DT_OK;
}

static dt_status check_line(const struct dt_command_line *command, const struct dt_space *space,
                            bool used[])
{
    for (int i = 0; command->words[i] != NULL; i++) {
        struct check check = {.command = command, .space = space, .used = used};
        const char *word = command->words[i];
        DT_TRY(check_text(&check, word, word + strlen(word), false));
    }
    return DT_OK;
}

dt_status dt_line_names(const struct dt_command_line *command, const struct dt_space *space)
{
    bool used[DT_AXES_MAX] = {false};
    return check_line(command, space, used);
}

dt_status dt_lines_check(const struct dt_command_line *const lines[], int count,
                         const struct dt_space *space)
{
    bool used[DT_AXES_MAX] = {false};
    for (int k = 0; k < count; k++) {
        DT_TRY(check_port(lines[k], space));
        DT_TRY(check_line(lines[k], space, used));
    }
    for (int i = 0; i < dt_space_axes(space); i++) {
        const struct dt_axis *axis = dt_space_axis(space, i);
        if (!used[i] && axis->role != DT_ROLE_ENVIRONMENT)
            return dt_fail(
                DT_EUSAGE,
                "the command has no {%s}: plans that differ in it would be the same command",
                axis->name);
    }
    return DT_OK;
}

/* The value in a plan. */
static void add_value(const char *name, const struct dt_space *space, const struct dt_point *plan,
                      struct dt_text *word)
{
    int axis = dt_space_find(space, name);
    int64_t number = 0;
    if (axis >= 0)
        number = dt_point_value(space, plan, axis);
    else
        (void)dt_space_constant(space, name, &number);
    if (axis >= 0)
        dt_axis_plain(dt_space_axis(space, axis), number, word);
    else
        dt_text_add(word, "%lld", (long long)number);
}

/* A command with a plan's values. */
struct filling {
    const struct dt_command_line *command;
    const struct dt_space *space;
    const struct dt_point *plan;
    char **words; /* so far, NULL-ended */
    int count;
    int values;  /* how many of the words are parameters of sh, from words[4] on */
    bool absent; /* the last text named a parameter that does not exist in the plan */
};

static bool is_absent(const struct filling *filling, const char *name)
{
    int axis = dt_space_find(filling->space, name);
    return axis >= 0 && !dt_point_has(filling->space, filling->plan, axis);
}

/* The value of a text as a parameter of sh, and its name in the script; an empty one is left out,
 * as without a shell. */
static dt_status add_parameter(struct filling *filling, const char *name, struct dt_text *out)
{
    dt_auto_text value = {0};
    add_value(name, filling->space, filling->plan, &value);
    if (value.size == 0)
        return dt_text_status(&value);
    if (filling->values + 5 > DT_COMMAND_WORDS)
        return dt_fail(DT_EUSAGE, "the command has more than %d placeholders", filling->values);
    char *taken = dt_text_take(&value);
    if (taken == NULL)
        return dt_fail(DT_ENOMEM, "out of memory");
    filling->words[4 + filling->values++] = taken;
    dt_text_add(out, "\"$dittune_%d\"", filling->values);
    return DT_OK;
}

static dt_status condition_holds(const struct filling *filling, const struct piece *piece,
                                 bool *yes)
{
    uint32_t axes = 0;
    return dt_space_test(filling->space, piece->condition, filling->plan, yes, &axes);
}

/* Appends what a part of the command becomes. */
static dt_status add_text(struct filling *filling, const char *at, const char *stop, bool nested,
                          struct dt_text *out)
{
    struct piece piece;
    for (bool yes = false; at < stop; at += piece.size, yes = false) {
        DT_TRY(piece_next(at, stop, nested, &piece));
        if (piece.condition[0] != 0)
            DT_TRY(condition_holds(filling, &piece, &yes));
        if (yes)
            DT_TRY(add_text(filling, piece.text, piece.text + piece.text_size, true, out));
        if (piece.condition[0] != 0)
            continue;
        if (piece.name[0] == 0)
            dt_text_add_bytes(out, &piece.literal, 1);
        else if (is_port(filling->command, piece.name))
            add_port(filling->command, out);
        else if (replica_value(piece.name, filling->space) != NULL)
            dt_text_add(out, "%s", replica_value(piece.name, filling->space));
        else if (is_absent(filling, piece.name))
            filling->absent = true;
        else if (filling->command->shell && labels_of(piece.name, filling->space) != NULL)
            DT_TRY(add_parameter(filling, piece.name, out));
        else
            add_value(piece.name, filling->space, filling->plan, out);
    }
    return DT_OK;
}

static dt_status fill_word(struct filling *filling, const char *word);

/* A switch that is a whole word: its text has words of its own, or none. */
static dt_status fill_switch(struct filling *filling, const struct piece *piece)
{
    DT_CLEANUP(dt_line_fini) struct dt_command_line line = {.shell = false};
    bool yes = false;
    DT_TRY(condition_holds(filling, piece, &yes));
    dt_auto_free char *text = yes ? strndup(piece->text, piece->text_size) : NULL;
    if (yes && text == NULL)
        return dt_fail(DT_ENOMEM, "out of memory");
    if (yes && strspn(text, " \t\r\n\v\f") < strlen(text))
        DT_TRY(split_words(text, &line));
    for (int i = 0; line.words[i] != NULL; i++)
        DT_TRY(fill_word(filling, line.words[i]));
    return DT_OK;
}

/* A word that the plan makes empty is left out, and one with a parameter that
 * does not exist in it. */
static dt_status fill_word(struct filling *filling, const char *word)
{
    dt_auto_text text = {0};
    struct piece piece = {.size = 0};
    size_t size = strlen(word);
    if (size > 0)
        DT_TRY(piece_next(word, word + size, false, &piece));
    if (piece.condition[0] != 0 && piece.size == size)
        return fill_switch(filling, &piece);
    dt_text_add(&text, "%s", "");
    filling->absent = false;
    DT_TRY(add_text(filling, word, word + size, false, &text));
    bool left_out = filling->absent || (text.size == 0 && size > 0);
    return left_out ? DT_OK : add_word(filling->words, &filling->count, &text);
}

/* sh -c "dittune_1=$1; shift 1; TEXT" sh VALUE, where TEXT has "$dittune_1" for the first
 * placeholder of a text. */
static dt_status fill_script(struct filling *filling)
{
    const char *text = filling->command->words[2];
    dt_auto_text body = {0}, script = {0};
    DT_TRY(add_text(filling, text, text + strlen(text), false, &body));
    for (int i = 1; i <= filling->values; i++)
        dt_text_add(&script, i < 10 ? "dittune_%d=$%d; " : "dittune_%d=${%d}; ", i, i);
    if (filling->values > 0)
        dt_text_add(&script, "shift %d; ", filling->values);
    dt_text_add_bytes(&script, dt_text_at(&body), body.size);
    dt_text_add(&script, "%s", "");
    filling->words[2] = dt_text_take(&script);
    return dt_text_status(&body);
}

/* The words around the script; a word that is missing ends the list, so that memory was short. */
static dt_status fill_shell(struct filling *filling)
{
    char **words = filling->words;
    words[0] = strdup("sh");
    words[1] = strdup("-c");
    words[3] = strdup("sh");
    DT_TRY(fill_script(filling));
    bool all = words[0] != NULL && words[1] != NULL && words[2] != NULL && words[3] != NULL;
    return all ? DT_OK : dt_fail(DT_ENOMEM, "out of memory");
}

dt_status dt_line_fill(const struct dt_command_line *command, const struct dt_space *space,
                       const struct dt_point *plan, char ***argv)
{
    struct filling filling = {.command = command, .space = space, .plan = plan};
    *argv = NULL;
    filling.words = calloc(DT_COMMAND_WORDS + 1, sizeof *filling.words);
    if (filling.words == NULL)
        return dt_fail(DT_ENOMEM, "out of memory");
    dt_status status = command->shell ? fill_shell(&filling) : DT_OK;
    for (int i = 0; !command->shell && status == DT_OK && command->words[i] != NULL; i++)
        status = fill_word(&filling, command->words[i]);
    if (status == DT_OK) {
        *argv = filling.words;
        return DT_OK;
    }
    for (int i = 0; i <= DT_COMMAND_WORDS; i++) /* words before others may be missing */
        free(filling.words[i]);
    free((void *)filling.words);
    return status;
}

void dt_line_free(char **argv)
{
    for (int i = 0; argv != NULL && argv[i] != NULL; i++)
        free(argv[i]);
    free(argv);
}

int dt_plan_ranks(const struct dt_space *space, const struct dt_point *point)
{
    int role = dt_space_role(space, DT_ROLE_RANKS);
    return role >= 0 ? (int)dt_point_value(space, point, role) : 1;
}

/* ---- a command in one spelling, which is part of a key */

static bool is_constant(const char *name, const struct dt_space *space, int64_t *value)
{
    return name[0] != 0 && space != NULL && dt_space_find(space, name) < 0 &&
           dt_space_constant(space, name, value);
}

/* Bytes of the longest name that the text begins with: of a constant (*value), a
 * parameter, or else a word. */
static size_t find_name(const char *text, const struct dt_space *space, bool *constant,
                        int64_t *value)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    size_t word = strspn(text, letters), size = word;
    char copy[80] = "";
    while (strchr("-.", text[size]) != NULL && text[size] != 0)
        size += 1 + strspn(text + size + 1, letters);
    for (; size > 0; size--) {
        snprintf(copy, sizeof copy, "%.*s", size < sizeof copy ? (int)size : 0, text);
        *constant = is_constant(copy, space, value);
        if (*constant || (space != NULL && dt_space_find(space, copy) >= 0))
            return size;
    }
    return word;
}

/* A condition with constants as their values. */
static void add_condition(const char *condition, const struct dt_space *space, struct dt_text *out)
{
    for (size_t size; *condition != 0; condition += size) {
        bool constant = false;
        int64_t value = 0;
        size = 1;
        if (*condition == '"' || *condition == '\'')
            size += strcspn(condition + 1, (const char[]){*condition, 0}) + 1;
        else if (isalpha((unsigned char)*condition) || *condition == '_')
            size = find_name(condition, space, &constant, &value);
        size = strnlen(condition, size);
        if (constant)
            dt_text_add(out, "%lld", (long long)value);
        else
            dt_text_add_bytes(out, condition, size);
    }
}

/* A part of the command with its placeholders, and constants as their values. */
static void add_spelled(const char *at, const char *stop, bool nested, const struct dt_space *space,
                        struct dt_text *out)
{
    struct piece piece;
    int64_t value;
    for (; at < stop; at += piece.size) {
        if (piece_next(at, stop, nested, &piece) < 0) /* checked before */
            return;
        if (piece.condition[0] != 0) {
            dt_text_add(out, "{");
            add_condition(piece.condition, space, out);
            dt_text_add(out, "?");
            add_spelled(piece.text, piece.text + piece.text_size, true, space, out);
            dt_text_add(out, "}");
        } else if (is_constant(piece.name, space, &value)) {
            dt_text_add(out, "%lld", (long long)value);
        } else {
            dt_text_add_bytes(out, at, piece.size);
        }
    }
}

static void add_quoted(const char *word, struct dt_text *out)
{
    if (*word != 0 && strpbrk(word, " \t\r\n\v\f'\"\\") == NULL) {
        dt_text_add(out, "%s", word);
        return;
    }
    dt_text_add(out, "'");
    for (; *word != 0; word++)
        dt_text_add(out, "%.*s%c", *word == '\'' ? 3 : 0, "'\\'", *word);
    dt_text_add(out, "'");
}

void dt_line_text(const struct dt_command_line *command, const struct dt_space *space,
                  struct dt_text *out)
{
    for (int i = command->shell ? 2 : 0; command->words[i] != NULL; i++) {
        dt_auto_text word = {0};
        add_spelled(command->words[i], command->words[i] + strlen(command->words[i]), false, space,
                    &word);
        dt_text_add(out, "%s", i > 0 && !command->shell ? " " : "");
        if (command->shell)
            dt_text_add(out, "%s", dt_text_at(&word));
        else
            add_quoted(dt_text_at(&word), out);
        out->failed = out->failed || word.failed;
    }
}
