/* SPDX-License-Identifier: MIT */
/* parse_int - the parser of rules: its words (words.c) and its grammar (parse.c) */
#ifndef DT_SPACE_EXPR_PARSE_INT_H
#define DT_SPACE_EXPR_PARSE_INT_H

#include "space/expr/expr_int.h"

enum dt_kind {
    DT_KIND_INTEGER,
    DT_KIND_REAL,
    DT_KIND_BOOL,
    DT_KIND_LABEL,
    DT_KIND_EITHER /* of and, or: in Python one of the operands */
};

/* What was read last. */
struct dt_operand {
    enum dt_kind kind;
    int name;  /* the name it consists of, or -1 */
    int label; /* the operation that will hold the label's index, or -1 */
    size_t start, size;
};

struct dt_parser {
    struct dt_expr *expr;
    const char *const *names;
    int name_count;
    size_t at;
    int level;
    struct dt_operand last;
};

#define DT_PARSE_FAIL(parser, offset, ...)                                                         \
    dt_expr_fail((parser)->expr->text, (int)(offset) + 1, __VA_ARGS__)

/* The text after blanks. */
const char *dt_parse_here(struct dt_parser *parser);
/* Letters and digits that the text begins with. */
size_t dt_parse_word(const char *text);
bool dt_parse_is(struct dt_parser *parser, const char *word);
/* "found 'x' where <wanted> is expected" */
dt_status dt_parse_unexpected(struct dt_parser *parser, const char *wanted);
dt_status dt_parse_emit(struct dt_parser *parser, enum dt_expr_code code, size_t offset,
                        int64_t argument) DT_MUST_CHECK;

/* A leaf: a number, true or false, a name, a text in quotes. */
dt_status dt_parse_leaf(struct dt_parser *parser) DT_MUST_CHECK;

/* Replaces the label by its index among those of the name it is compared with. */
dt_status dt_parse_resolve(struct dt_parser *parser, const struct dt_operand *a,
                           const struct dt_operand *b) DT_MUST_CHECK;
/* Fails when the operand of an operation is a label, or the name of a parameter whose values are texts. */
dt_status dt_parse_no_text(struct dt_parser *parser,
                           const struct dt_operand *operand) DT_MUST_CHECK;
/* Fails when it is a label. */
dt_status dt_parse_no_label(struct dt_parser *parser,
                            const struct dt_operand *operand) DT_MUST_CHECK;

#endif
