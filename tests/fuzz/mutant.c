/* SPDX-License-Identifier: MIT */
#include "tests/fuzz/mutant.h"

#include "db/journal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SPANS 4096
#define DEPTH 64
#define COPY  4096

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t room);

/* A value, or a member with its name. */
struct span {
    size_t start, end;
    bool listed; /* a member of an object or an element of an array: it has a comma beside it */
    bool member;
};

struct scan {
    const char *bytes;
    size_t to;
    struct span spans[SPANS];
    size_t count;
    struct {
        size_t start, name;
        bool object, named;
    } open[DEPTH];
    int depth;
};

static struct scan scan;

struct mutant mutant_of(uint8_t *data, size_t size, size_t room, unsigned seed,
                        const char *const words[])
{
    return (struct mutant){.bytes = (char *)data,
                           .size = size,
                           .room = room,
                           .rng = dt_rng_at(seed, "mutant"),
                           .words = words};
}

size_t mutant_pick(struct mutant *m, size_t n)
{
    return (size_t)dt_rng_below(&m->rng, n);
}

bool mutant_splice(struct mutant *m, size_t at, size_t remove, const char *text, size_t size)
{
    char copy[COPY];
    remove = remove < m->size - at ? remove : m->size - at;
    if (size > sizeof copy || m->size - remove + size > m->room)
        return false;
    memcpy(copy, text, size); /* it may lie in what is moved */
    memmove(m->bytes + at + size, m->bytes + at + remove, m->size - at - remove);
    memcpy(m->bytes + at, copy, size);
    m->size = m->size - remove + size;
    return true;
}

static void found(size_t start, size_t end)
{
    int top = scan.depth - 1;
    bool inside = top >= 0, object = inside && scan.open[top].object;
    if (scan.count < SPANS)
        scan.spans[scan.count++] = (struct span){start, end, inside && !object, false};
    if (object && scan.open[top].named && scan.count < SPANS)
        scan.spans[scan.count++] = (struct span){scan.open[top].name, end, true, true};
    if (object)
        scan.open[top].named = false;
}

static size_t string_end(size_t at)
{
    for (at++; at < scan.to && scan.bytes[at] != '"'; at++)
        at += scan.bytes[at] == '\\';
    return at < scan.to ? at + 1 : scan.to;
}

static size_t take_string(size_t at)
{
    size_t end = string_end(at), next = end;
    int top = scan.depth - 1;
    while (next < scan.to && scan.bytes[next] == ' ')
        next++;
    if (top >= 0 && scan.open[top].object && next < scan.to && scan.bytes[next] == ':') {
        scan.open[top].name = at;
        scan.open[top].named = true;
        return next + 1;
    }
    found(at, end);
    return end;
}

static size_t take(size_t at)
{
    char c = scan.bytes[at];
    if (c == '"')
        return take_string(at);
    if ((c == '{' || c == '[') && scan.depth < DEPTH) {
        scan.open[scan.depth].start = at;
        scan.open[scan.depth].object = c == '{';
        scan.open[scan.depth++].named = false;
    } else if ((c == '}' || c == ']') && scan.depth > 0) {
        scan.depth--;
        found(scan.open[scan.depth].start, at + 1);
    } else if (strchr(" \n\r\t,:", c) == NULL) {
        size_t end = at + 1;
        while (end < scan.to && strchr(" \n\r\t,:[]{}\"", scan.bytes[end]) == NULL)
            end++;
        found(at, end);
        return end;
    }
    return at + 1;
}

static bool find_spans(const struct mutant *m, size_t from, size_t to)
{
    scan.bytes = m->bytes;
    scan.to = to;
    scan.count = 0;
    scan.depth = 0;
    for (size_t at = from; at < to;)
        at = take(at);
    return scan.count > 0;
}

/* A span of the wished kind, when a few tries find one. */
static const struct span *some(struct mutant *m, bool listed, bool member)
{
    for (int i = 0; i < 16; i++) {
        const struct span *span = &scan.spans[mutant_pick(m, scan.count)];
        if (listed ? span->listed : span->member == member)
            return span;
    }
    return NULL;
}

static void swap_in_another(struct mutant *m)
{
    const struct span *a = some(m, false, false), *b = some(m, false, false);
    if (a != NULL && b != NULL)
        mutant_splice(m, a->start, a->end - a->start, m->bytes + b->start, b->end - b->start);
}

static void swap_in_word(struct mutant *m)
{
    const struct span *a = some(m, false, false);
    size_t count = 0;
    while (m->words[count] != NULL)
        count++;
    const char *word = m->words[mutant_pick(m, count)];
    if (a != NULL)
        mutant_splice(m, a->start, a->end - a->start, word, strlen(word));
}

static void drop(struct mutant *m)
{
    const struct span *a = some(m, true, false);
    if (a == NULL)
        return;
    size_t start = a->start, end = a->end;
    if (end < m->size && m->bytes[end] == ',')
        end++;
    else if (start > 0 && m->bytes[start - 1] == ',')
        start--;
    mutant_splice(m, start, end - start, "", 0);
}

/* A member beside another, or an element beside another: the same again, or one from elsewhere. */
static void add(struct mutant *m)
{
    const struct span *a = some(m, true, false), *b = a;
    for (int i = 0; i < 16 && mutant_pick(m, 3) > 0; i++) {
        const struct span *c = some(m, true, false);
        b = c != NULL && a != NULL && c->member == a->member ? c : b;
    }
    if (a == NULL || a->end >= m->room)
        return;
    size_t at = a->end, from = b->start, size = b->end - b->start;
    if (size + 1 < COPY && mutant_splice(m, at, 0, ",", 1))
        mutant_splice(m, at + 1, 0, m->bytes + from + (from >= at), size);
}

static void number(struct mutant *m)
{
    static const char *const numbers[] = {"0",
                                          "1",
                                          "-1",
                                          "2",
                                          "3",
                                          "64",
                                          "65536",
                                          "2147483647",
                                          "2147483648",
                                          "-2147483649",
                                          "4294967296",
                                          "9223372036854775807",
                                          "-9223372036854775808",
                                          "9223372036854775808",
                                          "1e308",
                                          "1e400",
                                          "0.5",
                                          "-0.0",
                                          "1e-320",
                                          "true",
                                          "null",
                                          "\"\"",
                                          "[]",
                                          "{}"};
    const char *text = numbers[mutant_pick(m, sizeof numbers / sizeof numbers[0])];
    const struct span *a = some(m, false, false);
    if (a != NULL)
        mutant_splice(m, a->start, a->end - a->start, text, strlen(text));
}

/* Quotes, backslashes and control bytes mostly stay out: what is no JSON is not the point. */
static void letters(struct mutant *m)
{
    const struct span *a = some(m, false, false);
    uint8_t copy[512];
    if (a == NULL || m->bytes[a->start] != '"' || a->end - a->start < 2 ||
        a->end - a->start > sizeof copy / 2)
        return;
    size_t size = a->end - a->start - 2;
    memcpy(copy, m->bytes + a->start + 1, size);
    size = LLVMFuzzerMutate(copy, size, sizeof copy);
    bool tame = mutant_pick(m, 8) > 0;
    for (size_t i = 0; i < size && tame; i++)
        if (copy[i] < ' ' || copy[i] == '"' || copy[i] == '\\' || copy[i] > '~')
            copy[i] = (uint8_t) " -+*%()<>=&|!?:,ab12"[copy[i] % 20];
    mutant_splice(m, a->start + 1, a->end - a->start - 2, (const char *)copy, size);
}

/* A word amid a text: names and operators of an expression. */
static void amid(struct mutant *m)
{
    const struct span *a = some(m, false, false);
    size_t count = 0;
    while (m->words[count] != NULL)
        count++;
    const char *word = m->words[mutant_pick(m, count)];
    size_t size = strlen(word);
    if (a == NULL || m->bytes[a->start] != '"' || a->end - a->start < 2 || word[0] != '"')
        return;
    size_t at = a->start + 1 + mutant_pick(m, a->end - a->start - 1);
    size_t cut = mutant_pick(m, 1 + (a->end - 1 - at));
    mutant_splice(m, at, mutant_pick(m, 2) == 0 ? 0 : cut % 8, word + 1, size - 2);
}

static void nest(struct mutant *m)
{
    const struct span *a = some(m, false, false);
    size_t deep = 1 + mutant_pick(m, mutant_pick(m, 2) == 0 ? 3 : 40);
    char open[48], close[48];
    if (a == NULL)
        return;
    memset(open, '[', deep);
    memset(close, ']', deep);
    size_t start = a->start, end = a->end;
    if (mutant_splice(m, end, 0, close, deep))
        mutant_splice(m, start, 0, open, deep);
}

size_t mutant_json(struct mutant *m, size_t from, size_t to)
{
    static void (*const changes[])(struct mutant *) = {
        swap_in_another, swap_in_word, swap_in_word, drop, add, number,
        number,          letters,      amid,         amid, nest};
    size_t rest = m->size - to;
    for (size_t i = 1 + mutant_pick(m, 1 + mutant_pick(m, 8)); i > 0; i--)
        if (find_spans(m, from, m->size - rest))
            changes[mutant_pick(m, sizeof changes / sizeof changes[0])](m);
    return m->size - rest;
}

void mutant_bytes(struct mutant *m)
{
    m->size = LLVMFuzzerMutate((uint8_t *)m->bytes, m->size, m->room);
}

size_t mutant_line_end(const struct mutant *m, size_t at)
{
    const char *end = at < m->size ? memchr(m->bytes + at, '\n', m->size - at) : NULL;
    return end != NULL ? (size_t)(end - m->bytes) : m->size;
}

size_t mutant_line(struct mutant *m)
{
    size_t lines = 0, at = 0;
    for (size_t i = 0; i < m->size; i++)
        lines += m->bytes[i] == '\n';
    for (size_t skip = mutant_pick(m, lines + 1); skip > 0; skip--)
        at = mutant_line_end(m, at) + 1;
    return at < m->size ? at : 0;
}

void mutant_lines(struct mutant *m)
{
    size_t a = mutant_line(m), b = mutant_line(m);
    size_t end = mutant_line_end(m, a), whole = end + (end < m->size);
    switch (mutant_pick(m, 4)) {
    case 0: /* again, elsewhere */
        mutant_splice(m, b, 0, m->bytes + a, whole - a);
        break;
    case 1:
        mutant_splice(m, a, whole - a, "", 0);
        break;
    case 2: /* torn */
        mutant_splice(m, a + mutant_pick(m, end - a + 1), mutant_pick(m, 2) == 0 ? 0 : 1, "\n", 1);
        break;
    default: /* the file ends here */
        m->size = a + mutant_pick(m, end - a + 1);
    }
}

void mutant_crc(struct mutant *m, size_t at, size_t from, size_t to)
{
    char text[9];
    snprintf(text, sizeof text, "%08x", (unsigned)dt_crc32c(m->bytes + from, to - from));
    if (at + 8 <= m->size)
        memcpy(m->bytes + at, text, 8);
}

size_t mutant_last(const struct mutant *m, size_t from, size_t to, const char *text)
{
    size_t size = strlen(text);
    for (size_t at = to; at >= from + size; at--)
        if (memcmp(m->bytes + at - size, text, size) == 0)
            return at - size;
    return SIZE_MAX;
}

static void seal_journal(struct mutant *m)
{
    for (size_t at = 0, end; at < m->size; at = end + 1) {
        end = mutant_line_end(m, at);
        size_t crc = mutant_last(m, at, end, ",\"crc\":\"");
        if (crc != SIZE_MAX)
            mutant_crc(m, crc + 8, at, crc);
    }
}

size_t mutant_journal(struct mutant *m)
{
    size_t how = mutant_pick(m, 16), line = mutant_line(m);
    if (how == 0)
        mutant_bytes(m);
    else if (how <= 3)
        mutant_lines(m);
    else
        mutant_json(m, line, mutant_line_end(m, line));
    if (mutant_pick(m, 16) > 0)
        seal_journal(m);
    return m->size;
}
