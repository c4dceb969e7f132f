/* SPDX-License-Identifier: MIT */
/* A command in one spelling, which is part of a key (words.h). */
#include "worker/command/piece.h"
#include "worker/command/words.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static bool is_constant(const char *name, const struct dt_space *space, int64_t *value)
{
    return name[0] != 0 && space != NULL && dt_space_find(space, name) < 0 &&
           dt_space_constant(space, name, value);
}

/* Bytes of the longest name that the text begins with: of a constant (*value), a parameter, or else a word. */
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
    struct dt_piece piece;
    int64_t value;
    for (; at < stop; at += piece.size) {
        if (dt_piece_next(at, stop, nested, &piece) < 0) /* checked before */
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
        struct dt_text word = {0};
        add_spelled(command->words[i], command->words[i] + strlen(command->words[i]), false, space,
                    &word);
        dt_text_add(out, "%s", i > 0 && !command->shell ? " " : "");
        if (command->shell)
            dt_text_add(out, "%s", dt_text_at(&word));
        else
            add_quoted(dt_text_at(&word), out);
        out->failed = out->failed || word.failed;
        dt_text_fini(&word);
    }
}
