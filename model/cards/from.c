/* SPDX-License-Identifier: MIT */
/* A pipeline's folder has model_index.json, {"transformer": ["diffusers",
 * "FluxTransformer2DModel"], ..}, and a folder for each module with config.json and weights.
 * Classes name the same number differently: tables below list the names. */
#include "model/cards/from.h"
#include "base/json.h"
#include "base/read.h"
#include "base/safetensors.h"

#include <dirent.h>
#include <limits.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COUNT_MOST = 1 << 20, TRANSFORMERS_MOST = 2 };

/* The published cards of the same classes: of the transformer, and of the
 * pipeline where it is known. */
struct peers {
    struct dt_card *cards;
    int count;
};

struct source {
    char folder[PATH_MAX];                     /* the pipeline's, or its one transformer's */
    json_t *index;                             /* model_index.json; NULL: a transformer alone */
    json_t *networks[TRANSFORMERS_MOST], *vae; /* configurations; NULL: there is none */
    const char *pipeline, *network;            /* classes; "": not known */
    const struct dt_card_asked *asked;
    struct peers peers;
    struct dt_card card; /* fields read so far; 0: not known */
    bool quantised;      /* a transformer */
    json_t *draft;       /* the card */
    struct dt_text *remarks;
    int missing;
};

/* ---- remarks and fields */

static void remark_add(struct source *source, const char *format, ...) DT_FORMAT(2, 3);
static void remark_add(struct source *source, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    dt_text_add_list(source->remarks, format, args);
    va_end(args);
    dt_text_add(source->remarks, "\n");
}

/* A field that a card must have: its value, or null and a remark. hint: what gives it. */
static void field_put(struct source *source, const char *name, json_t *value, const char *hint)
{
    if (value == NULL) {
        remark_add(source, "'%s' is not in the configuration: %s", name, hint);
        source->missing++;
        value = json_null();
    }
    json_object_set_new(source->draft, name, value);
}

static json_t *count_or_none(int64_t count)
{
    return count > 0 ? json_integer(count) : NULL;
}

/* ---- configurations */

static void path_of(const struct source *source, const char *part, const char *file,
                    struct dt_text *out)
{
    dt_text_add(out, "%s%s%s%s%s", source->folder, part[0] != '\0' ? "/" : "", part,
                file[0] != '\0' ? "/" : "", file);
}

static dt_status config_read(const char *path, json_t **config)
{
    json_auto_t *root = NULL;
    DT_TRY(dt_json_read(path, "the configuration", &root));
    if (!json_is_object(root))
        return dt_fail(DT_EUSAGE, "the configuration %s is not a JSON object", path);
    *config = json_incref(root);
    return DT_OK;
}

static dt_status part_read(const struct source *source, const char *part, json_t **config)
{
    dt_auto_text path = {0};
    path_of(source, part, "config.json", &path);
    DT_TRY(dt_text_status(&path));
    return config_read(dt_text_at(&path), config);
}

/* A module's row in model_index.json is [library, class]; [null, null]: the
 * pipeline runs without it. */
static bool module_listed(const json_t *index, const char *part)
{
    const json_t *row = json_object_get(index, part);
    return json_array_size(row) == 2 && json_is_string(json_array_get(row, 1));
}

static bool is_there(const struct source *source, const char *part, const char *file)
{
    dt_auto_text path = {0};
    path_of(source, part, file, &path);
    return access(dt_text_at(&path), F_OK) == 0;
}

/* The first of the names that the configuration has, as a count; 0: it has none. */
static dt_status count_find(const json_t *config, const char *what, const char *const names[],
                            int *out)
{
    int64_t value = 0;
    for (; *names != NULL && value == 0; names++)
        if (dt_json_has(config, *names) && !json_is_null(json_object_get(config, *names)))
            DT_TRY(dt_json_int(config, what, *names, 1, COUNT_MOST, &value));
    *out = (int)value;
    return DT_OK;
}

static dt_status folder_set(struct source *source, const char *path, size_t size)
{
    if (size >= sizeof source->folder)
        return dt_fail(DT_EUSAGE, "the path %.200s.. is too long", path);
    snprintf(source->folder, sizeof source->folder, "%.*s", (int)size, path);
    return DT_OK;
}

static bool path_ends(const char *path, const char *end)
{
    size_t size = strlen(path), length = strlen(end);
    return size >= length && strcmp(path + size - length, end) == 0;
}

/* Sets folder and index; the file that the user named, when it is a transformer's. */
static dt_status source_find(struct source *source, const char *path, const char **file)
{
    const char *slash = strrchr(path, '/');
    *file = path_ends(path, ".json") ? path : NULL;
    if (*file == NULL)
        DT_TRY(folder_set(source, path, strlen(path)));
    else if (slash != NULL)
        DT_TRY(folder_set(source, path, (size_t)(slash - path)));
    else
        DT_TRY(folder_set(source, ".", 1));
    bool named = *file != NULL && path_ends(path, "model_index.json");
    if (named || (*file == NULL && is_there(source, "", "model_index.json"))) {
        dt_auto_text index = {0};
        path_of(source, "", "model_index.json", &index);
        *file = NULL;
        return config_read(dt_text_at(&index), &source->index);
    }
    return DT_OK;
}

/* The configurations of a pipeline's folder. */
static dt_status index_open(struct source *source)
{
    static const char *const parts[] = {"transformer", "transformer_2"};
    DT_TRY(dt_json_string(source->index, "model_index.json", "_class_name", &source->pipeline));
    if (!module_listed(source->index, parts[0]))
        return dt_fail(DT_EUSAGE,
                       "the pipeline %s of %s has no transformer, so there is no card "
                       "of it",
                       source->pipeline, source->folder);
    for (int i = 0; i < TRANSFORMERS_MOST; i++)
        if (module_listed(source->index, parts[i]))
            DT_TRY(part_read(source, parts[i], &source->networks[i]));
    if (module_listed(source->index, "vae"))
        DT_TRY(part_read(source, "vae", &source->vae));
    return DT_OK;
}

static dt_status source_open(struct source *source, const char *path)
{
    const char *file = NULL;
    source->pipeline = "";
    DT_TRY(source_find(source, path, &file));
    if (source->index != NULL)
        DT_TRY(index_open(source));
    else if (file != NULL)
        DT_TRY(config_read(file, &source->networks[0]));
    else
        DT_TRY(part_read(source,
                         is_there(source, "transformer", "config.json") ? "transformer" : "",
                         &source->networks[0]));
    return dt_json_string(source->networks[0], "the transformer's configuration", "_class_name",
                          &source->network);
}

/* ---- published cards of the same classes */

static dt_status peers_find(struct source *source)
{
    int count = 0;
    for (const char *const *name = dt_cards(); *name != NULL; name++)
        count++;
    source->peers.cards = calloc((size_t)count, sizeof source->peers.cards[0]);
    if (source->peers.cards == NULL)
        return dt_no_memory("for the cards");
    for (const char *const *name = dt_cards(); *name != NULL; name++) {
        struct dt_card *card = &source->peers.cards[source->peers.count];
        DT_TRY(dt_card_load(*name, card));
        if (strcmp(card->transformer, source->network) == 0 &&
            (source->pipeline[0] == '\0' || strcmp(card->pipeline, source->pipeline) == 0))
            source->peers.count++;
    }
    return DT_OK;
}

/* Drops the peers whose guidance is embedded, or all others. */
static void peers_narrow(struct peers *peers, bool embedded)
{
    int count = 0;
    for (int i = 0; i < peers->count; i++)
        if ((peers->cards[i].guidance == DT_GUIDANCE_EMBEDDED) == embedded)
            peers->cards[count++] = peers->cards[i];
    peers->count = count;
}

/* Keeps the peers of the same heads and blocks, if there are any. */
static void peers_prefer(struct source *source)
{
    const struct dt_card *card = &source->card;
    struct peers *peers = &source->peers;
    int count = 0;
    for (int i = 0; i < peers->count; i++)
        if (peers->cards[i].heads == card->heads && peers->cards[i].depth == card->depth &&
            peers->cards[i].head_size == card->head_size)
            peers->cards[count++] = peers->cards[i];
    peers->count = count > 0 ? count : peers->count;
}

/* The first peer, if the bytes of a field are the same in all; NULL: they
 * differ, or there is none. */
static const struct dt_card *peers_agree(const struct peers *peers, size_t at, size_t size)
{
    const char *first = (const char *)&peers->cards[0];
    for (int i = 1; i < peers->count; i++)
        if (memcmp((const char *)&peers->cards[i] + at, first + at, size) != 0)
            return NULL;
    return peers->count > 0 ? &peers->cards[0] : NULL;
}

#define AGREED(source, field)                                                                      \
    peers_agree(&(source)->peers, offsetof(struct dt_card, field),                                 \
                sizeof((source)->peers.cards->field))

/* ---- what the transformer's configuration has */

static dt_status heads_read(struct source *source)
{
    static const char *const heads[] = {"num_attention_heads", "n_heads", "num_heads",
                                        "heads_num",           "heads",   NULL};
    static const char *const sizes[] = {"attention_head_dim", "head_dim", "head_size", NULL};
    static const char *const widths[] = {"dim", "hidden_size", "inner_dim", "model_dim", NULL};
    static const char *const kv_heads[] = {"num_key_value_heads", "n_kv_heads", "num_kv_heads",
                                           "kv_heads", NULL};
    const char *what = "the transformer's configuration";
    const json_t *config = source->networks[0];
    struct dt_card *card = &source->card;
    int width;
    DT_TRY(count_find(config, what, heads, &card->heads));
    DT_TRY(count_find(config, what, sizes, &card->head_size));
    DT_TRY(count_find(config, what, widths, &width));
    DT_TRY(count_find(config, what, kv_heads, &card->kv_heads));
    int *open = card->head_size == 0 ? &card->head_size : &card->heads;
    int by = card->head_size == 0 ? card->heads : card->head_size;
    if (*open > 0 || by == 0 || width == 0)
        return DT_OK;
    if (width % by != 0)
        return dt_fail(DT_EUSAGE, "%s: a width of %d is no multiple of %d", what, width, by);
    *open = width / by;
    return DT_OK;
}

/* Blocks on image tokens; those that refine the text alone are not counted. */
static dt_status depth_read(struct source *source)
{
    static const char *const blocks[] = {"num_layers", "n_layers", "num_hidden_layers", "depth",
                                         NULL};
    static const char *const single[] = {"num_single_layers", NULL};
    const char *what = "the transformer's configuration";
    int more = 0;
    DT_TRY(count_find(source->networks[0], what, blocks, &source->card.depth));
    if (dt_json_integer_at(source->networks[0], single[0]) != 0)
        DT_TRY(count_find(source->networks[0], what, single, &more));
    source->card.depth += more;
    return DT_OK;
}

static void attention_put(struct source *source)
{
    const struct dt_card *peer = AGREED(source, joint);
    const json_t *config = source->networks[0];
    bool joint = peer != NULL ? peer->joint : dt_json_has(config, "joint_attention_dim");
    bool cross = peer != NULL ? !peer->joint
                              : dt_json_has(config, "cross_attention_dim") ||
                                    dt_json_has(config, "text_dim");
    field_put(source, "attention", joint != cross ? json_string(joint ? "joint" : "cross") : NULL,
              "fill in \"joint\" where text and image are one sequence, or \"cross\"");
}

/* A model whose scale is an input says so; the guidance of others is the pipeline's. */
static void guidance_put(struct source *source)
{
    const json_t *embeds = json_object_get(source->networks[0], "guidance_embeds");
    const char *guidance = NULL;
    if (json_is_boolean(embeds))
        peers_narrow(&source->peers, json_is_true(embeds));
    const struct dt_card *peer = AGREED(source, guidance);
    if (json_is_true(embeds))
        guidance = dt_guidance_text(DT_GUIDANCE_EMBEDDED);
    else if (json_is_true(json_object_get(source->index, "is_distilled")))
        guidance = dt_guidance_text(DT_GUIDANCE_NONE);
    else if (peer != NULL)
        guidance = dt_guidance_text(peer->guidance);
    field_put(source, "guidance", guidance != NULL ? json_string(guidance) : NULL,
              "fill in \"cfg\" where a step has two halves, or \"embedded\" or \"none\"");
    if (peer != NULL && AGREED(source, passes) != NULL && peer->passes > 2)
        json_object_set_new(source->draft, "passes", json_integer(peer->passes));
}

static void text_put(struct source *source)
{
    const struct dt_card *peer = AGREED(source, text_tokens), *mode = AGREED(source, prompt);
    int64_t tokens = source->asked->text_tokens;
    if (tokens == 0)
        tokens = dt_json_integer_at(source->networks[0], "text_len");
    if (tokens <= 0 && peer != NULL)
        tokens = peer->text_tokens;
    field_put(source, "text_tokens", count_or_none(tokens <= COUNT_MOST ? tokens : 0),
              "give --text-tokens N, the length to which the pipeline pads texts, or the most that "
              "a prompt may have");
    if (mode == NULL)
        remark_add(source, "whether the pipeline pads texts is not in the configuration: where a "
                           "text has the prompt's own length, add \"text\": \"prompt\"");
    else if (mode->prompt)
        json_object_set_new(source->draft, "text", json_string("prompt"));
}

/* ---- tokens */

static int product_of(const json_t *list)
{
    int64_t product = 1;
    size_t i;
    json_t *value;
    json_array_foreach(list, i, value)
    {
        product *= json_integer_value(value);
        if (product < 1 || product > COUNT_MOST)
            return 0;
    }
    return (int)product;
}

static int count_halvings(size_t count)
{
    return count < 20 ? 1 << count : 0;
}

static dt_status vae_space(const json_t *vae, int *space)
{
    static const char *const names[] = {"spatial_compression_ratio", "scale_factor_spatial", NULL};
    static const char *const blocks[] = {"block_out_channels", "encoder_block_out_channels"};
    DT_TRY(count_find(vae, "the VAE's configuration", names, space));
    if (*space == 0 && dt_json_has(vae, "spatial_expansions"))
        *space = product_of(json_object_get(vae, "spatial_expansions"));
    if (*space == 0 && dt_json_has(vae, "temperal_downsample"))
        *space = count_halvings(json_array_size(json_object_get(vae, "temperal_downsample")));
    for (int i = 0; i < 2 && *space == 0; i++)
        if (json_array_size(json_object_get(vae, blocks[i])) > 0)
            *space = count_halvings(json_array_size(json_object_get(vae, blocks[i])) - 1);
    return DT_OK;
}

/* A VAE of videos that runs for images alone is counted as one of images. */
static dt_status vae_time(struct source *source, int *period)
{
    static const char *const names[] = {"temporal_compression_ratio", "scale_factor_temporal",
                                        NULL};
    const struct dt_card *peer = AGREED(source, vae_time);
    const json_t *halves = json_object_get(source->vae, "temperal_downsample"), *half;
    size_t i, count = 0;
    DT_TRY(count_find(source->vae, "the VAE's configuration", names, period));
    if (peer != NULL && peer->vae_time == 1)
        *period = 1;
    if (*period > 0)
        return DT_OK;
    json_array_foreach(halves, i, half) count += json_is_true(half);
    *period = dt_json_has(source->vae, "temporal_expansions")
                  ? product_of(json_object_get(source->vae, "temporal_expansions"))
                  : count_halvings(count);
    return DT_OK;
}

static dt_status vae_put(struct source *source)
{
    struct dt_card *card = &source->card;
    const struct dt_card *peer = AGREED(source, vae_space), *same = AGREED(source, vae_time);
    if (source->vae != NULL) {
        DT_TRY(vae_space(source->vae, &card->vae_space));
        DT_TRY(vae_time(source, &card->vae_time));
    } else if (peer != NULL && same != NULL) {
        card->vae_space = peer->vae_space;
        card->vae_time = same->vae_time;
        remark_add(source, "there is no configuration of a VAE: 'vae' is that of the card %s",
                   peer->name);
    }
    bool known = card->vae_space > 0 && card->vae_time > 0;
    field_put(source, "vae",
              known ? json_pack("{s:i, s:i}", "time", card->vae_time, "space", card->vae_space)
                    : NULL,
              "fill in {\"time\": frames, \"space\": pixels} of one latent frame and pixel");
    return DT_OK;
}

/* The last number of a list, or the number; 0: there is none. *first: frames of a token,
 * where the list has them. */
static int64_t patch_last(const json_t *config, const char *name, int64_t *first)
{
    const json_t *value = json_object_get(config, name);
    size_t count = json_array_size(value);
    if (count == 0)
        return json_integer_value(value);
    if (count == 3)
        *first = json_integer_value(json_array_get(value, 0));
    return json_integer_value(json_array_get(value, count - 1));
}

/* Pixels of a latent along a token's side: the class's patches, or, where the transformer's
 * channels are four times the VAE's, the pipeline's, which packs two by two. */
static int64_t patch_find(const struct source *source)
{
    static const char *const names[] = {"patch_size", "all_patch_size"};
    static const char *const periods[] = {"patch_size_t", "all_f_patch_size"};
    const json_t *config = source->networks[0];
    int64_t channels = dt_json_integer_at(config, "in_channels"), frames = 1, patch = 0, period = 0;
    int64_t latent = dt_json_integer_at(source->vae, "latent_channels");
    const struct dt_card *peer = AGREED(source, patch);
    if (latent == 0)
        latent = dt_json_integer_at(source->vae, "z_dim");
    for (int i = 0; i < 2; i++) {
        patch = patch == 0 ? patch_last(config, names[i], &frames) : patch;
        period = period == 0 ? patch_last(config, periods[i], &frames) : period;
    }
    if (frames != 1 || period > 1)
        return 0;
    if (latent > 0 && channels == 4 * latent)
        return 2;
    if (latent > 0 && channels == latent && patch > 0 && patch <= COUNT_MOST)
        return patch;
    return peer != NULL ? peer->patch : 0;
}

static void patch_put(struct source *source)
{
    source->card.patch = (int)patch_find(source);
    field_put(source, "patch", count_or_none(source->card.patch),
              "fill in the latent pixels along the side of a token; tokens of several frames are "
              "not counted by a card");
}

static void usual_put(struct source *source)
{
    const struct dt_card *peer = AGREED(source, usual);
    struct dt_frames size = source->asked->size;
    if (peer != NULL && size.width == 0) {
        size.width = peer->usual.width;
        size.height = peer->usual.height;
    }
    if (size.frames == 0)
        size.frames = peer != NULL ? peer->usual.frames : source->card.vae_time == 1 ? 1 : 0;
    field_put(source, "usual",
              size.width > 0 && size.frames > 0
                  ? json_pack("{s:I, s:I, s:I}", "width", (json_int_t)size.width, "height",
                              (json_int_t)size.height, "frames", (json_int_t)size.frames)
                  : NULL,
              source->card.vae_time == 1 ? "give --size WxH" : "give --size WxH and --frames N");
}

/* Reference images are the pipeline's: of another one, or of none, nothing is known. */
static void references_put(struct source *source)
{
    const struct dt_card *peer = AGREED(source, references);
    if (peer == NULL || source->pipeline[0] == '\0')
        remark_add(source, "whether reference images are part of the sequence is not in the "
                           "configuration: where they are, add \"references\": their number");
    else if (peer->references > 0)
        json_object_set_new(source->draft, "references", json_integer(peer->references));
}

/* ---- parameters */

/* Adds the elements of each tensor of a file to those of the folder. */
static dt_status tensors_add(const char *path, json_t *tensors)
{
    DT_CLEANUP(dt_safetensors_close_at) struct dt_safetensors *file = NULL;
    DT_TRY(dt_safetensors_open(path, &file));
    for (int i = 0; i < dt_safetensors_count(file); i++) {
        const struct dt_safetensor *tensor = dt_safetensors_at(file, i);
        json_int_t elements = 1;
        for (int k = 0; k < tensor->rank; k++)
            elements *= tensor->shape[k];
        json_object_set_new(tensors, tensor->name, json_integer(elements));
    }
    return DT_OK;
}

/* Weights in several files have an index of all their tensors. */
static dt_status index_check(const char *path, const json_t *tensors)
{
    json_auto_t *index = NULL;
    json_t *map = NULL, *file;
    const char *name;
    DT_TRY(dt_json_read(path, "the index of weights", &index));
    DT_TRY(dt_json_object(index, path, "weight_map", &map));
    json_object_foreach(map, name, file) if (json_object_get(tensors, name) == NULL) return dt_fail(
        DT_EUSAGE, "%s lists the tensor '%.100s', which no file there has", path, name);
    return DT_OK;
}

/* Several files of the same tensors are one model in several data types. *count 0:
 * there are no weights. */
static dt_status weights_count(const struct source *source, const char *part, int64_t *count)
{
    static const char *const ends[] = {".safetensors", ".safetensors.index.json"};
    dt_auto_text folder = {0};
    json_auto_t *tensors = json_object();
    const char *name;
    json_t *elements;
    path_of(source, part, "", &folder);
    for (int pass = 0; pass < 2; pass++) {
        DT_CLEANUP(dt_closedir_at) DIR *entries = opendir(dt_text_at(&folder));
        for (struct dirent *entry; entries != NULL && (entry = readdir(entries)) != NULL;) {
            dt_auto_text path = {0};
            if (!path_ends(entry->d_name, ends[pass]))
                continue;
            dt_text_add(&path, "%s/%s", dt_text_at(&folder), entry->d_name);
            DT_TRY(pass == 0 ? tensors_add(dt_text_at(&path), tensors)
                             : index_check(dt_text_at(&path), tensors));
        }
    }
    *count = 0;
    json_object_foreach(tensors, name, elements) *count += json_integer_value(elements);
    return DT_OK;
}

/* "bitsandbytes, 4 bits" */
static void quantisation_text(const json_t *how, struct dt_text *out)
{
    static const char *const types[] = {"quant_type", "weights_dtype", "fmt"};
    const char *method = dt_json_text_at(how, "quant_method");
    int64_t bits = dt_json_integer_at(how, "bits");
    if (json_is_true(json_object_get(how, "load_in_4bit")))
        bits = 4;
    else if (json_is_true(json_object_get(how, "load_in_8bit")))
        bits = 8;
    dt_text_add(out, "%.60s", method[0] != '\0' ? method : "a method that is not named");
    if (bits > 0)
        dt_text_add(out, ", %lld bits", (long long)bits);
    for (size_t i = 0; bits <= 0 && i < sizeof types / sizeof types[0]; i++)
        if (dt_json_text_at(how, types[i])[0] != '\0')
            dt_text_add(out, ", %.60s", dt_json_text_at(how, types[i]));
}

/* Parameters of one module; -1, and a remark: not known. */
static int64_t part_count(struct source *source, const char *part, const json_t *config)
{
    const json_t *how = json_object_get(config, "quantization_config");
    const char *name = part[0] != '\0' ? part : "transformer";
    int64_t count = 0;
    if (json_is_object(how)) {
        dt_auto_text text = {0};
        quantisation_text(how, &text);
        if (text.bytes != NULL)
            dt_text_clean(text.bytes);
        remark_add(source,
                   "%s is quantised (%s): packed weights are not counted; fill in its "
                   "'parameters'",
                   name, dt_text_at(&text));
        return -1;
    }
    if (weights_count(source, part, &count) != DT_OK)
        remark_add(source, "the parameters of %s are not counted: %s", name, dt_message());
    else if (count == 0)
        remark_add(source,
                   "the parameters of %s are not counted: it has no weights in "
                   ".safetensors files there",
                   name);
    else
        return count;
    return -1;
}

static void sum_add(int64_t *sum, int64_t count)
{
    *sum = *sum < 0 || count < 0 ? -1 : *sum + count;
}

static dt_status parameters_put(struct source *source)
{
    static const char *const encoders[] = {"text_encoder", "text_encoder_2", "text_encoder_3",
                                           "text_encoder_4"};
    struct dt_card_parameters counts = {0, -1, source->index != NULL ? 0 : -1};
    bool inside = source->index != NULL || is_there(source, "transformer", "config.json");
    sum_add(&counts.transformer,
            part_count(source, inside ? "transformer" : "", source->networks[0]));
    if (source->networks[1] != NULL)
        sum_add(&counts.transformer, part_count(source, "transformer_2", source->networks[1]));
    if (source->vae != NULL)
        counts.vae = part_count(source, "vae", source->vae);
    for (int i = 0; i < 4; i++)
        if (module_listed(source->index, encoders[i])) {
            json_auto_t *config = NULL;
            DT_TRY(part_read(source, encoders[i], &config));
            sum_add(&counts.text_encoder, part_count(source, encoders[i], config));
        }
    json_object_set_new(
        source->draft, "parameters",
        json_pack("{s:o, s:o, s:o}", "transformer",
                  counts.transformer > 0 ? json_integer(counts.transformer) : json_null(), "vae",
                  counts.vae > 0 ? json_integer(counts.vae) : json_null(), "text_encoder",
                  counts.text_encoder > 0 ? json_integer(counts.text_encoder) : json_null()));
    return DT_OK;
}

/* ---- classes */

/* The arguments of the class's constructor: no private fields, and not how weights were packed. */
static json_t *config_bare(const json_t *config)
{
    json_t *bare = json_object(), *value;
    const char *name;
    json_object_foreach((json_t *)config, name,
                        value) if (name[0] != '_' && strcmp(name, "quantization_config") != 0)
        json_object_set(bare, name, value);
    return bare;
}

/* The arguments of the pipeline's constructor beside modules. */
static json_t *pipeline_config(const json_t *index)
{
    json_t *config = json_object(), *value;
    const char *name;
    json_object_foreach((json_t *)index, name,
                        value) if (name[0] != '_' && !json_is_array(value) && !json_is_null(value))
        json_object_set(config, name, value);
    return config;
}

static void classes_put(struct source *source)
{
    json_t *classes = json_pack("{s:s}", "class", source->network);
    json_auto_t *first = config_bare(source->networks[0]);
    json_auto_t *second = config_bare(source->networks[1]), *more = pipeline_config(source->index);
    if (source->pipeline[0] != '\0')
        json_object_set_new(classes, "pipeline", json_string(source->pipeline));
    else
        remark_add(source, "a transformer alone names no pipeline: add its class to 'diffusers' as "
                           "\"pipeline\", or give the pipeline's folder");
    json_object_set(classes, "config", first);
    if (source->networks[1] != NULL) {
        json_object_set_new(classes, "transformers", json_integer(TRANSFORMERS_MOST));
        if (!json_equal(first, second))
            remark_add(source, "the configurations of transformer and transformer_2 differ: the "
                               "card has that of transformer for both");
    }
    if (json_object_size(more) > 0)
        json_object_set(classes, "pipeline_config", more);
    json_object_set_new(source->draft, "diffusers", classes);
}

/* ---- engines */

static bool rows_equal(const struct dt_card_engine *a, const struct dt_card_engine *b)
{
    bool equal = b != NULL && a->count == b->count;
    for (int i = 0; equal && i < a->count; i++)
        equal = dt_card_takes(b, a->degrees[i]);
    return equal;
}

/* The rows that all published models of these classes have: engines run classes. */
static void engines_put(struct source *source)
{
    const struct peers *peers = &source->peers;
    json_t *rows = json_array();
    for (int i = 0; peers->count > 0 && i < peers->cards[0].engine_count; i++) {
        const struct dt_card_engine *row = &peers->cards[0].engines[i];
        bool shared = strchr(row->engine, ':') == NULL;
        dt_auto_text from = {0};
        json_t *degrees = json_array();
        for (int k = 1; k < peers->count; k++)
            shared = shared && rows_equal(row, dt_card_engine(&peers->cards[k], row->engine, ""));
        for (int k = 0; k < row->count; k++)
            json_array_append_new(degrees, json_string(row->degrees[k]));
        dt_text_add(&from, "the card of %s, which has the same classes", peers->cards[0].name);
        json_auto_t *value = json_pack("{s:s, s:o, s:s}", "engine", row->engine, "degrees", degrees,
                                       "source", dt_text_at(&from));
        if (shared)
            json_array_append(rows, value);
    }
    if (json_array_size(rows) == 0)
        remark_add(source, "no published card has these classes, so no engine's degrees are known: "
                           "add rows to 'engines'");
    json_object_set_new(source->draft, "engines", rows);
}

/* ---- the card */

static void name_put(struct source *source)
{
    char path[PATH_MAX];
    const char *name = realpath(source->folder, path) != NULL ? path : source->folder;
    dt_auto_text doc = {0};
    name = strrchr(name, '/') != NULL ? strrchr(name, '/') + 1 : name;
    if (!dt_text_whole(name) || name[0] == '\0' || strlen(name) >= DT_CARD_NAME)
        name = "my/model";
    dt_text_add(&doc, "%.60s", source->pipeline[0] != '\0' ? source->pipeline : source->network);
    json_object_set_new(source->draft, "name", json_string(name));
    json_object_set_new(source->draft, "aliases", json_array());
    json_object_set_new(source->draft, "doc", json_string(dt_text_at(&doc)));
}

static dt_status shape_put(struct source *source)
{
    struct dt_card *card = &source->card;
    DT_TRY(heads_read(source));
    DT_TRY(depth_read(source));
    field_put(source, "heads", count_or_none(card->heads), "fill in the heads of attention");
    field_put(source, "head_size", count_or_none(card->head_size), "fill in channels of a head");
    if (card->kv_heads > 0 && card->kv_heads != card->heads)
        json_object_set_new(source->draft, "kv_heads", json_integer(card->kv_heads));
    field_put(source, "depth", count_or_none(card->depth), "fill in the number of blocks");
    peers_prefer(source);
    guidance_put(source);
    text_put(source);
    attention_put(source);
    DT_TRY(vae_put(source));
    patch_put(source);
    usual_put(source);
    references_put(source);
    return DT_OK;
}

static dt_status draft_make(struct source *source, const char *path)
{
    const char *from = "configurations and headers of weights, read by dittune models --from";
    DT_TRY(source_open(source, path));
    DT_TRY(peers_find(source));
    name_put(source);
    DT_TRY(shape_put(source));
    DT_TRY(parameters_put(source));
    classes_put(source);
    engines_put(source);
    json_object_set_new(source->draft, "sources",
                        json_pack("{s:s, s:s}", "shape", from, "parameters", from));
    if (source->peers.count > 0)
        remark_add(source,
                   "what the pipeline's class decides, as attention and engines, is that of "
                   "%s%s",
                   source->peers.cards[0].name, source->peers.count > 1 ? " and others" : "");
    return DT_OK;
}

static dt_status draft_write(const struct source *source, const char *path, struct dt_text *out)
{
    const char *name, *before = "{\n";
    dt_auto_text text = {0};
    struct dt_card card;
    json_t *value;
    json_object_foreach(source->draft, name, value)
    {
        dt_text_add(&text, "%s  \"%s\": ", before, name);
        DT_TRY(dt_json_shown(value, &text));
        before = ",\n";
    }
    dt_text_add(&text, "\n}\n");
    DT_TRY(dt_text_status(&text));
    if (source->missing == 0)
        DT_TRY(dt_card_parse(dt_text_at(&text), path, &card));
    dt_text_add_bytes(out, dt_text_at(&text), text.size);
    return dt_text_status(out);
}

dt_status dt_card_from(const char *path, const struct dt_card_asked *asked, struct dt_text *card,
                       struct dt_text *remarks, int *missing)
{
    struct source source = {.asked = asked, .draft = json_object(), .remarks = remarks};
    dt_status status = draft_make(&source, path);
    if (status == DT_OK)
        status = draft_write(&source, path, card);
    if (status == DT_OK)
        *missing = source.missing;
    json_decref(source.index);
    json_decref(source.networks[0]);
    json_decref(source.networks[1]);
    json_decref(source.vae);
    json_decref(source.draft);
    free(source.peers.cards);
    return status;
}
