/* SPDX-License-Identifier: MIT */
#include "model/cards/card.h"
#include "base/array.h"

#include "base/json.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define CARD(name, text) {name, text},
static const struct {
    const char *name, *text;
} files[] = {
#include "cards.inc"
};
#undef CARD
enum { FILES = sizeof files / sizeof files[0] };

#define CARD(name, text) name,
static const char *const file_names[] = {
#include "cards.inc"
    NULL};
#undef CARD

static const char *const guidance_texts[] = {"none", "embedded", "cfg", NULL};

const char *const *dt_cards(void)
{
    return file_names;
}

const char *dt_guidance_text(enum dt_guidance guidance)
{
    return guidance_texts[guidance];
}

static dt_status copy_word(const char *what, const char *key, const char *word, size_t room,
                           char *out)
{
    if (word == NULL || word[0] == '\0' || strlen(word) >= room)
        return dt_fail(DT_EUSAGE, "%s: '%s' is not a text of 1 to %zu bytes", what, key, room - 1);
    snprintf(out, room, "%s", word);
    return DT_OK;
}

static dt_status read_word(const json_t *root, const char *what, const char *key, size_t room,
                           char *out)
{
    const char *word;
    DT_TRY(dt_json_string(root, what, key, &word));
    return copy_word(what, key, word, room, out);
}

static dt_status read_count(const json_t *root, const char *what, const char *key, int64_t low,
                            int *out)
{
    enum { MOST = 1 << 20 };
    int64_t value;
    DT_TRY(dt_json_int(root, what, key, low, MOST, &value));
    *out = (int)value;
    return DT_OK;
}

/* One of two or three words; its index. */
static dt_status read_choice(const json_t *root, const char *what, const char *key,
                             const char *const words[], int *out)
{
    const char *word;
    DT_TRY(dt_json_string(root, what, key, &word));
    *out = dt_text_index(word, words);
    return *out >= 0 ? DT_OK
                     : dt_fail(DT_EUSAGE, "%s: '%s' is '%s', expected %s, %s%s%s", what, key, word,
                               words[0], words[1], words[2] != NULL ? " or " : "",
                               words[2] != NULL ? words[2] : "");
}

/* A list of texts of at most `room` bytes, at most `most` of them. */
static dt_status read_words(const json_t *root, const char *what, const char *key, int most,
                            size_t room, char *out, int *count)
{
    json_t *list = NULL;
    DT_TRY(dt_json_array(root, what, key, &list));
    *count = (int)json_array_size(list);
    if (*count > most)
        return dt_fail(DT_EUSAGE, "%s: '%s' has %d texts, expected at most %d", what, key, *count,
                       most);
    for (int i = 0; i < *count; i++)
        DT_TRY(copy_word(what, key, json_string_value(json_array_get(list, (size_t)i)), room,
                         out + (size_t)i * room));
    return DT_OK;
}

static dt_status read_usual(const json_t *root, const char *what, struct dt_frames *size)
{
    enum { MOST = 1 << 16 };
    json_t *usual = NULL;
    DT_TRY(dt_json_object(root, what, "usual", &usual));
    DT_TRY(dt_json_int(usual, what, "width", 1, MOST, &size->width));
    DT_TRY(dt_json_int(usual, what, "height", 1, MOST, &size->height));
    return dt_json_int(usual, what, "frames", 1, MOST, &size->frames);
}

/* A number, or null for what is not known. */
static dt_status read_parameters(const json_t *root, const char *what, const char *key,
                                 int64_t *out)
{
    json_t *counts = NULL;
    *out = -1;
    DT_TRY(dt_json_object(root, what, "parameters", &counts));
    if (json_is_null(json_object_get(counts, key)))
        return DT_OK;
    return dt_json_int(counts, what, key, 1, INT64_C(1) << 50, out);
}

static dt_status read_engines(const json_t *root, const char *what, struct dt_card *card)
{
    json_t *rows = NULL, *row = NULL;
    size_t i;
    DT_TRY(dt_json_array(root, what, "engines", &rows));
    if (json_array_size(rows) > DT_CARD_ENGINES)
        return dt_fail(DT_EUSAGE, "%s: more than %d engines", what, DT_CARD_ENGINES);
    json_array_foreach(rows, i, row)
    {
        static const char *const known[] = {"engine", "degrees", "source", NULL};
        struct dt_card_engine *engine = &card->engines[card->engine_count++];
        const char *source;
        DT_TRY(dt_json_only(row, what, known));
        DT_TRY(dt_json_string(row, what, "source", &source));
        DT_TRY(read_word(row, what, "engine", sizeof engine->engine, engine->engine));
        DT_TRY(read_words(row, what, "degrees", DT_CARD_DEGREES, DT_CARD_WORD, engine->degrees[0],
                          &engine->count));
    }
    return DT_OK;
}

/* Optional: widths that do not follow from the heads. */
static dt_status read_widths(const json_t *root, const char *what, struct dt_card *card)
{
    static const char *const known[] = {"width", "gated", NULL};
    json_t *forward = NULL;
    card->hidden = card->heads * card->head_size;
    if (dt_json_has(root, "hidden"))
        DT_TRY(read_count(root, what, "hidden", 1, &card->hidden));
    card->feed_forward = 4 * card->hidden;
    if (!dt_json_has(root, "feed_forward"))
        return DT_OK;
    DT_TRY(dt_json_object(root, what, "feed_forward", &forward));
    DT_TRY(dt_json_only(forward, what, known));
    DT_TRY(read_count(forward, what, "width", 1, &card->feed_forward));
    return dt_json_bool(forward, what, "gated", &card->gated);
}

static dt_status read_shape(const json_t *root, const char *what, struct dt_card *card)
{
    static const char *const attentions[] = {"cross", "joint", "linear", NULL};
    static const char *const texts[] = {"padded", "prompt", NULL};
    json_t *vae = NULL;
    int joint, guidance, prompt = 0;
    int64_t passes = 2;
    DT_TRY(read_count(root, what, "heads", 1, &card->heads));
    DT_TRY(read_count(root, what, "head_size", 1, &card->head_size));
    DT_TRY(read_count(root, what, "depth", 1, &card->depth));
    DT_TRY(read_count(root, what, "text_tokens", 0, &card->text_tokens));
    if (dt_json_has(root, "steps"))
        DT_TRY(read_count(root, what, "steps", 1, &card->steps));
    if (dt_json_has(root, "text"))
        DT_TRY(read_choice(root, what, "text", texts, &prompt));
    DT_TRY(read_choice(root, what, "attention", attentions, &joint));
    DT_TRY(read_choice(root, what, "guidance", guidance_texts, &guidance));
    DT_TRY(dt_json_object(root, what, "vae", &vae));
    DT_TRY(read_count(vae, what, "time", 1, &card->vae_time));
    DT_TRY(read_count(vae, what, "space", 1, &card->vae_space));
    DT_TRY(read_count(root, what, "patch", 1, &card->patch));
    card->joint = joint == 1;
    card->linear = joint == 2;
    card->prompt = prompt == 1;
    card->guidance = (enum dt_guidance)guidance;
    card->kv_heads = card->heads;
    if (dt_json_has(root, "kv_heads"))
        DT_TRY(read_count(root, what, "kv_heads", 1, &card->kv_heads));
    if (dt_json_has(root, "passes"))
        DT_TRY(dt_json_int(root, what, "passes", 2, 4, &passes));
    if (dt_json_has(root, "references"))
        DT_TRY(read_count(root, what, "references", 1, &card->references));
    card->passes = (int)passes;
    return read_widths(root, what, card);
}

/* Optional. */
static dt_status read_classes(const json_t *root, const char *what, struct dt_card *card)
{
    static const char *const known[] = {"class",        "config",          "pipeline",
                                        "transformers", "pipeline_config", NULL};
    json_t *diffusers = NULL, *config = NULL;
    int64_t transformers = 1;
    if (dt_json_has(root, "diffusers")) {
        DT_TRY(dt_json_object(root, what, "diffusers", &diffusers));
        DT_TRY(dt_json_only(diffusers, what, known));
        DT_TRY(read_word(diffusers, what, "class", sizeof card->transformer, card->transformer));
    }
    if (dt_json_has(diffusers, "pipeline"))
        DT_TRY(read_word(diffusers, what, "pipeline", sizeof card->pipeline, card->pipeline));
    if (dt_json_has(diffusers, "pipeline_config"))
        DT_TRY(dt_json_object(diffusers, what, "pipeline_config", &config));
    if (dt_json_has(diffusers, "transformers"))
        DT_TRY(dt_json_int(diffusers, what, "transformers", 1, 2, &transformers));
    card->transformers = (int)transformers;
    return DT_OK;
}

static dt_status read_card(const json_t *root, const char *what, struct dt_card *card)
{
    static const char *const known[] = {
        "name",        "aliases",    "doc",        "heads",    "head_size",    "depth",
        "text_tokens", "steps",      "attention",  "guidance", "vae",          "patch",
        "usual",       "parameters", "engines",    "sources",  "diffusers",    "text",
        "passes",      "kv_heads",   "references", "hidden",   "feed_forward", NULL};
    struct dt_card read = {.engine_count = 0};
    json_t *sources = NULL;
    int aliases;
    DT_TRY(dt_json_only(root, what, known));
    DT_TRY(read_word(root, what, "name", sizeof read.name, read.name));
    DT_TRY(read_word(root, what, "doc", sizeof read.doc, read.doc));
    DT_TRY(read_words(root, what, "aliases", DT_CARD_ALIASES, DT_CARD_NAME, read.aliases[0],
                      &aliases));
    DT_TRY(read_classes(root, what, &read));
    DT_TRY(read_shape(root, what, &read));
    DT_TRY(read_usual(root, what, &read.usual));
    DT_TRY(read_parameters(root, what, "transformer", &read.parameters.transformer));
    DT_TRY(read_parameters(root, what, "vae", &read.parameters.vae));
    DT_TRY(read_parameters(root, what, "text_encoder", &read.parameters.text_encoder));
    read.unsplit = -1;
    if (dt_json_has(json_object_get(root, "parameters"), "unsplit"))
        DT_TRY(read_parameters(root, what, "unsplit", &read.unsplit));
    DT_TRY(read_engines(root, what, &read));
    DT_TRY(dt_json_object(root, what, "sources", &sources));
    DT_TRY(dt_card_check_size(&read, read.usual));
    *card = read;
    return DT_OK;
}

dt_status dt_card_parse(const char *text, const char *what, struct dt_card *card)
{
    json_auto_t *root = NULL;
    DT_TRY(dt_json_parse(text, strlen(text), what, &root));
    return read_card(root, what, card);
}

static void lower_case(const char *text, char out[DT_CARD_NAME])
{
    size_t i = 0;
    for (; i + 1 < DT_CARD_NAME && text[i] != '\0'; i++)
        out[i] = (char)tolower((unsigned char)text[i]);
    out[i] = '\0';
}

static const char *after_slash(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash != NULL ? slash + 1 : name;
}

/* The card's name, its part after the last '/', or an alias. */
static bool is_called(const struct dt_card *card, const char *name)
{
    bool called =
        strcasecmp(card->name, name) == 0 || strcasecmp(after_slash(card->name), name) == 0;
    for (int i = 0; i < DT_CARD_ALIASES && card->aliases[i][0] != '\0'; i++)
        called |= strcasecmp(card->aliases[i], name) == 0;
    return called;
}

bool dt_card_known(const char *name, struct dt_card *card)
{
    struct dt_card read;
    int only = dt_text_index(name, file_names); /* the one with this full name; -1: several fit */
    for (int i = only >= 0 ? only : 0; i < FILES; i++)
        if (dt_card_parse(files[i].text, files[i].name, &read) == DT_OK && is_called(&read, name)) {
            *card = read;
            return true;
        }
    return false;
}

/* The card whose name, without the part before the '/', is nearest; NULL: none is near. */
static const char *nearest_card(const char *name)
{
    char asked[DT_CARD_NAME], texts[FILES][DT_CARD_NAME];
    const char *names[FILES + 1] = {NULL};
    lower_case(after_slash(name), asked);
    for (int i = 0; i < FILES; i++) {
        lower_case(after_slash(files[i].name), texts[i]);
        names[i] = texts[i];
    }
    const char *near = dt_json_nearest(asked, names);
    for (int i = 0; i < FILES; i++)
        if (near == names[i])
            return files[i].name;
    return NULL;
}

static dt_status unknown_card(const char *name)
{
    const char *near = nearest_card(name);
    if (near != NULL)
        return dt_fail(DT_EUSAGE,
                       "no card of the model '%.200s', did you mean '%s'? dittune models --from "
                       "FOLDER writes the card of a model of your own",
                       name, near);
    return dt_fail(DT_EUSAGE,
                   "no card of the model '%.200s': dittune models lists them, and dittune models "
                   "--from FOLDER writes that of a model of your own",
                   name);
}

static bool is_file(const char *name)
{
    size_t size = strlen(name);
    return size >= 5 && strcmp(name + size - 5, ".json") == 0;
}

dt_status dt_card_load(const char *name, struct dt_card *card)
{
    json_auto_t *root = NULL;
    if (dt_card_known(name, card))
        return DT_OK;
    if (!is_file(name))
        return unknown_card(name);
    DT_TRY(dt_json_read(name, "the model's card", &root));
    return read_card(root, name, card);
}

const char *dt_card_full_name(const char *name)
{
    struct dt_card card;
    if (!dt_card_known(name, &card))
        return name;
    for (const char *const *full = dt_cards(); *full != NULL; full++)
        if (strcmp(*full, card.name) == 0)
            return *full;
    return name;
}

bool dt_card_named(const char *name)
{
    struct dt_card card;
    json_auto_t *root = NULL;
    return dt_card_known(name, &card) ||
           (is_file(name) && dt_json_read(name, "the model's card", &root) == DT_OK &&
            json_is_object(root) && json_object_get(root, "family") == NULL);
}

static int64_t nearest_multiple(int64_t value, int64_t step)
{
    int64_t below = value / step * step;
    int64_t nearest = value - below <= step / 2 ? below : below + step;
    return nearest > 0 ? nearest : step;
}

dt_status dt_card_check_size(const struct dt_card *card, struct dt_frames size)
{
    int64_t side = (int64_t)card->vae_space * card->patch;
    struct dt_frames near = {.width = nearest_multiple(size.width, side),
                             .height = nearest_multiple(size.height, side),
                             .frames = 1 + (size.frames - 1 + (card->vae_time - 1) / 2) /
                                               card->vae_time * card->vae_time};
    if (card->vae_time == 1 && card->usual.frames == 1 && size.frames > 1)
        return dt_fail(DT_EUSAGE, "%s makes images: 1 frame, not %lld", card->name,
                       (long long)size.frames);
    if (size.frames < 1 || size.frames != near.frames)
        return dt_fail(DT_EUSAGE, "%s takes 1 frame and %d more at a time, not %lld: %lld would do",
                       card->name, card->vae_time, (long long)size.frames,
                       (long long)(near.frames > 0 ? near.frames : 1));
    if (size.width != near.width || size.height != near.height)
        return dt_fail(DT_EUSAGE,
                       "%s takes sides that are multiples of %lld pixels, not %lldx%lld: %lldx%lld "
                       "would do",
                       card->name, (long long)side, (long long)size.width, (long long)size.height,
                       (long long)near.width, (long long)near.height);
    return DT_OK;
}

static int64_t tokens_of(const struct dt_card *card, struct dt_frames size)
{
    int64_t side = (int64_t)card->vae_space * card->patch;
    return ((size.frames - 1) / card->vae_time + 1) * (size.height / side) * (size.width / side);
}

int64_t dt_card_tokens(const struct dt_card *card, struct dt_frames size)
{
    return tokens_of(card, size) + card->references * tokens_of(card, card->usual);
}

dt_status dt_lengths_parse(const char *what, const char *text, struct dt_lengths *lengths)
{
    enum { MOST = 1 << 16 };
    struct dt_lengths read = {.count = 0};
    const char *at = text;
    for (bool more = true; more; at++) {
        char *end;
        long value = isdigit((unsigned char)*at) ? strtol(at, &end, 10) : 0;
        if (value < 1 || value > MOST || (*end != ',' && *end != '\0') ||
            read.count == DT_LENGTHS_MOST)
            return dt_fail(DT_EUSAGE,
                           "%s '%.100s' is not a list of 1 to %d numbers of tokens, each of 1 to "
                           "%d, such as 17,37",
                           what, text, DT_LENGTHS_MOST, MOST);
        read.at[read.count++] = (int)value;
        more = *end == ',';
        at = end;
    }
    qsort(read.at, (size_t)read.count, sizeof read.at[0], dt_ascending_int);
    *lengths = (struct dt_lengths){.count = 0};
    for (int i = 0; i < read.count; i++)
        if (i == 0 || read.at[i] != read.at[i - 1])
            lengths->at[lengths->count++] = read.at[i];
    return DT_OK;
}

void dt_lengths_text(const struct dt_lengths *lengths, char out[DT_LENGTHS_TEXT])
{
    int size = 0;
    out[0] = '\0';
    for (int i = 0; i < lengths->count; i++)
        size += snprintf(out + size, (size_t)(DT_LENGTHS_TEXT - size), "%s%d", i > 0 ? "," : "",
                         lengths->at[i]);
}

dt_status dt_card_lengths(const struct dt_card *card, const struct dt_lengths *asked,
                          struct dt_lengths *lengths)
{
    if (asked->count > 1 && !card->prompt)
        return dt_fail(
            DT_EUSAGE,
            "the pipeline of %s pads every text to one length: %d lengths of text tokens "
            "are too many",
            card->name, asked->count);
    *lengths = *asked;
    if (asked->count > 0)
        return DT_OK;
    if (card->prompt && card->text_tokens > 1)
        lengths->at[lengths->count++] = card->text_tokens - 1;
    lengths->at[lengths->count++] = card->text_tokens;
    return DT_OK;
}

int64_t dt_card_weight_bytes(const struct dt_card *card, int64_t parts)
{
    enum { PARAMETER_BYTES = 2 };
    const struct dt_card_parameters *count = &card->parameters;
    if (count->transformer < 0 || count->vae < 0 || count->text_encoder < 0)
        return -1;
    return PARAMETER_BYTES *
           ((count->transformer + parts - 1) / parts + count->vae + count->text_encoder);
}

const struct dt_card_engine *dt_card_engine(const struct dt_card *card, const char *engine,
                                            const char *version)
{
    const struct dt_card_engine *found = NULL;
    size_t size = strlen(engine);
    for (int i = 0; i < card->engine_count; i++) {
        const char *name = card->engines[i].engine;
        if (strncmp(name, engine, size) != 0)
            continue;
        if (name[size] == ':' && strcmp(name + size + 1, version) == 0)
            return &card->engines[i];
        if (name[size] == '\0')
            found = &card->engines[i];
    }
    return found;
}

bool dt_card_takes(const struct dt_card_engine *row, const char *degree)
{
    for (int i = 0; i < row->count; i++)
        if (strcmp(row->degrees[i], degree) == 0)
            return true;
    return false;
}
