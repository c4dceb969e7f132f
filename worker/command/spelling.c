/* SPDX-License-Identifier: MIT */
/* A command in one spelling, which is part of a key (words.h). */
#include "worker/command/piece.h"
#include "worker/command/words.h"

#include <ctype.h>
#include <string.h>

static bool is_constant(const char *name, const struct dt_space *space, int64_t *value)
{
    return name[0] != 0 && space != NULL && dt_space_find(space, name) < 0 &&
           dt_space_constant(space, name, value);
}

/* A condition with constants as their values. */
static void add_condition(const char *condition, const struct dt_space *space, struct dt_text *out)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    for (size_t size; *condition != 0; condition += size) {
        bool name = isalpha((unsigned char)*condition) || *condition == '_';
        size = name ? strspn(condition, letters) : 1;
        char copy[80] = "";
        int64_t value;
        if (name && size < sizeof copy)
            memcpy(copy, condition, size);
        if (is_constant(copy, space, &value))
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
