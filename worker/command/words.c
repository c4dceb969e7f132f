/* SPDX-License-Identifier: MIT */
#include "worker/command/words.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static dt_status add_word(struct dt_command_line *command, int *count, struct dt_text *word)
{
    if (*count == DT_COMMAND_WORDS)
        return dt_fail(DT_EUSAGE, "the command has more than %d words", DT_COMMAND_WORDS);
    dt_text_add(word, "%s", "");
    command->words[*count] = dt_text_take(word);
    return command->words[(*count)++] != NULL ? DT_OK : dt_fail(DT_ENOMEM, "out of memory");
}

/* Appends the word at *at, which begins with no blank, and moves *at behind it. */
static dt_status take_word(const char **at, struct dt_text *word)
{
    char quote = 0;
    for (; **at != 0 && (quote != 0 || !isspace((unsigned char)**at)); ++*at) {
        if (**at == quote && quote != 0) {
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

static dt_status split(const char *text, struct dt_command_line *out)
{
    int count = 0;
    for (;;) {
        struct dt_text word = {0};
        while (isspace((unsigned char)*text))
            text++;
        if (*text == 0)
            break;
        dt_status status = take_word(&text, &word);
        if (status == DT_OK)
            status = add_word(out, &count, &word);
        dt_text_fini(&word);
        DT_TRY(status);
    }
    return count > 0 ? DT_OK : dt_fail(DT_EUSAGE, "the command is empty");
}

dt_status dt_line_read(const char *text, bool shell, struct dt_command_line *out)
{
    *out = (struct dt_command_line){.shell = shell};
    dt_status status = DT_OK;
    if (!shell) {
        status = split(text, out);
    } else {
        const char *const shell_words[] = {"sh", "-c", text};
        for (int i = 0; i < 3 && status == DT_OK; i++)
            if ((out->words[i] = strdup(shell_words[i])) == NULL)
                status = dt_fail(DT_ENOMEM, "out of memory");
    }
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

struct piece {
    char name[80]; /* of a placeholder; "": it is text */
    size_t size;   /* bytes of the command */
    char literal;  /* what text stands for */
};

/* The placeholder or the byte of text that the command goes on with. */
static dt_status next_piece(const char *text, struct piece *piece)
{
    const char *end = text[0] == '{' ? strchr(text, '}') : NULL;
    *piece = (struct piece){.size = 1, .literal = text[0]};
    if ((text[0] == '{' || text[0] == '}') && text[1] == text[0]) {
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
    if (length == 0 || length >= sizeof piece->name)
        return dt_fail(DT_EUSAGE, "the command's placeholder '%.*s' has no name of a parameter",
                       (int)(length < 40 ? length + 2 : 42), text);
    memcpy(piece->name, text + 1, length);
    piece->size = length + 2;
    return DT_OK;
}

static dt_status refuse_name(const char *name, const struct dt_space *space)
{
    struct dt_text known = {0};
    for (int i = 0; i < dt_space_axes(space); i++)
        dt_text_add(&known, "%s%s", i > 0 ? ", " : "", dt_space_axis(space, i)->name);
    dt_status status = dt_fail(
        DT_EUSAGE, "the command's placeholder '{%s}' is no parameter of the space; it has %s", name,
        dt_text_at(&known));
    dt_text_fini(&known);
    return status;
}

/* The labels of a parameter whose values are texts; NULL: numbers. */
static const char *const *labels_of(const char *name, const struct dt_space *space)
{
    int axis = dt_space_find(space, name);
    return axis >= 0 ? dt_space_axis(space, axis)->labels : NULL;
}

/* The quote that is open behind a character of a shell's text, quote being the one open before; 0: none. */
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

/* Marks the parameters that are placeholders of a word as used. */
static dt_status check_word(const char *word, const struct dt_command_line *command,
                            const struct dt_space *space, bool used[])
{
    bool shell = command->shell;
    struct piece piece;
    int64_t constant;
    char quote = 0;
    bool escaped = false;
    for (; *word != 0; word += piece.size) {
        DT_TRY(next_piece(word, &piece));
        int axis = dt_space_find(space, piece.name);
        if (axis >= 0)
            used[axis] = true;
        else if (piece.name[0] != 0 && !is_port(command, piece.name) &&
                 !dt_space_constant(space, piece.name, &constant))
            return refuse_name(piece.name, space);
        if (shell && (quote != 0 || escaped) && labels_of(piece.name, space) != NULL)
            return dt_fail(DT_EUSAGE,
                           "the placeholder {%s} stands within quotes, where the shell would read "
                           "its value: leave them out, a value stays one word without them",
                           piece.name);
        quote = piece.name[0] == 0 ? next_quote(quote, word, escaped) : quote;
        escaped = *word == '\\' && !escaped && quote != '\'';
    }
    return DT_OK;
}

dt_status dt_line_names(const struct dt_command_line *command, const struct dt_space *space)
{
    bool used[DT_AXES_MAX];
    for (int i = 0; command->words[i] != NULL; i++)
        DT_TRY(check_word(command->words[i], command, space, used));
    return DT_OK;
}

dt_status dt_lines_check(const struct dt_command_line *const lines[], int count,
                         const struct dt_space *space)
{
    bool used[DT_AXES_MAX] = {false};
    for (int k = 0; k < count; k++) {
        DT_TRY(check_port(lines[k], space));
        for (int i = 0; lines[k]->words[i] != NULL; i++)
            DT_TRY(check_word(lines[k]->words[i], lines[k], space, used));
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

static dt_status fill_word(const char *word, const struct dt_command_line *command,
                           const struct dt_space *space, const struct dt_point *plan, char **out)
{
    struct dt_text text = {0};
    struct piece piece;
    dt_text_add(&text, "%s", "");
    for (; *word != 0; word += piece.size) {
        dt_status status = next_piece(word, &piece);
        if (status < 0) {
            dt_text_fini(&text);
            return status;
        }
        if (piece.name[0] == 0)
            dt_text_add_bytes(&text, &piece.literal, 1);
        else if (is_port(command, piece.name))
            add_port(command, &text);
        else
            add_value(piece.name, space, plan, &text);
    }
    *out = dt_text_take(&text);
    return *out != NULL ? DT_OK : dt_fail(DT_ENOMEM, "out of memory");
}

/* sh -c "dittune_1=$1; shift 1; TEXT" sh VALUE, where TEXT has "$dittune_1" for the first placeholder of a text. */
static dt_status fill_shell(const struct dt_command_line *command, const struct dt_space *space,
                            const struct dt_point *plan, char **words)
{
    const char *text = command->words[2];
    struct dt_text body = {0}, script = {0}, value = {0};
    struct piece piece;
    dt_status status = DT_OK;
    int count = 0;
    for (; *text != 0 && status == DT_OK; text += status == DT_OK ? piece.size : 0) {
        status = next_piece(text, &piece);
        if (status < 0)
            continue;
        if (piece.name[0] == 0) {
            dt_text_add_bytes(&body, &piece.literal, 1);
        } else if (is_port(command, piece.name)) {
            add_port(command, &body);
        } else if (labels_of(piece.name, space) == NULL) {
            add_value(piece.name, space, plan, &body);
        } else if (count + 5 > DT_COMMAND_WORDS) {
            status = dt_fail(DT_EUSAGE, "the command has more than %d placeholders", count);
        } else {
            add_value(piece.name, space, plan, &value);
            dt_text_add(&value, "%s", "");
            words[4 + count++] = dt_text_take(&value);
            dt_text_add(&body, "\"$dittune_%d\"", count);
        }
    }
    for (int i = 1; i <= count; i++)
        dt_text_add(&script, i < 10 ? "dittune_%d=$%d; " : "dittune_%d=${%d}; ", i, i);
    if (count > 0)
        dt_text_add(&script, "shift %d; ", count);
    dt_text_add_bytes(&script, dt_text_at(&body), body.size);
    dt_text_add(&script, "%s", "");
    words[2] = status == DT_OK ? dt_text_take(&script) : NULL;
    if (status == DT_OK)
        status = dt_text_status(&body);
    dt_text_fini(&body);
    dt_text_fini(&script);
    dt_text_fini(&value);
    return status;
}

/* The words around the script; a word that is missing ends the list, so that memory was short. */
static dt_status fill_around(const struct dt_command_line *command, const struct dt_space *space,
                             const struct dt_point *plan, char **words)
{
    words[0] = strdup("sh");
    words[1] = strdup("-c");
    words[3] = strdup("sh");
    DT_TRY(fill_shell(command, space, plan, words));
    bool all = words[0] != NULL && words[1] != NULL && words[2] != NULL && words[3] != NULL;
    return all ? DT_OK : dt_fail(DT_ENOMEM, "out of memory");
}

dt_status dt_line_fill(const struct dt_command_line *command, const struct dt_space *space,
                       const struct dt_point *plan, char ***argv)
{
    char **words = calloc(DT_COMMAND_WORDS + 1, sizeof *words);
    dt_status status = words != NULL ? DT_OK : dt_fail(DT_ENOMEM, "out of memory");
    if (command->shell && status == DT_OK)
        status = fill_around(command, space, plan, words);
    for (int i = 0, n = 0; !command->shell && status == DT_OK && command->words[i] != NULL; i++) {
        status = fill_word(command->words[i], command, space, plan, &words[n]);
        bool left = status == DT_OK && words[n][0] == 0 && command->words[i][0] != 0;
        if (left) {
            free(words[n]); /* of a value that is no word */
            words[n] = NULL;
        }
        n += !left;
    }
    if (status < 0) {
        dt_line_free(words);
        words = NULL;
    }
    *argv = words;
    return status;
}

/* A word with its placeholders, and constants as their values. */
static void add_spelled(const char *word, const struct dt_space *space, struct dt_text *out)
{
    struct piece piece;
    int64_t value;
    for (; *word != 0; word += piece.size) {
        if (next_piece(word, &piece) < 0) /* checked before */
            return;
        if (piece.name[0] != 0 && space != NULL && dt_space_find(space, piece.name) < 0 &&
            dt_space_constant(space, piece.name, &value))
            dt_text_add(out, "%lld", (long long)value);
        else
            dt_text_add_bytes(out, word, piece.size);
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
        struct dt_text word = {0};
        add_spelled(command->words[i], space, &word);
        dt_text_add(out, "%s", i > 0 && !command->shell ? " " : "");
        if (command->shell)
            dt_text_add(out, "%s", dt_text_at(&word));
        else
            add_quoted(dt_text_at(&word), out);
        out->failed = out->failed || word.failed;
        dt_text_fini(&word);
    }
}

void dt_line_free(char **argv)
{
    for (int i = 0; argv != NULL && argv[i] != NULL; i++)
        free(argv[i]);
    free(argv);
}
