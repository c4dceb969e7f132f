/* SPDX-License-Identifier: MIT */
/* card - what is known of a published model: shape, tokens, guidance, parameters, the
 * degrees that engines take
 *
 * A card is one file, model/cards/<short name>.json, compiled in; a user's own file of the same
 * fields does as well, which model/cards/from.h writes. Unlike a network (model/network.h) a card
 * is never computed here: engines' rules, look-up and exports read it. The configurations in its
 * field "diffusers" are for the worker of that engine alone.
 *
 *     struct dt_card card;
 *     DT_TRY(dt_card_load("flux.1-dev", &card));
 *     int64_t tokens = dt_card_tokens(&card, card.usual);
 */
#ifndef DT_MODEL_CARDS_CARD_H
#define DT_MODEL_CARDS_CARD_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    DT_CARD_NAME = 96,
    DT_CARD_ALIASES = 4,
    DT_CARD_ENGINES = 12,
    DT_CARD_DEGREES = 8,
    DT_CARD_WORD = 32
};

/* Passes of a guided step: one pass, one pass that takes the scale as input, or the passes of
 * classifier-free guidance: two halves, or more where a second condition, as a reference image,
 * has a scale of its own. */
enum dt_guidance { DT_GUIDANCE_NONE, DT_GUIDANCE_EMBEDDED, DT_GUIDANCE_CFG };

/* Pixels of an image or a video; frames: 1 for an image. */
struct dt_frames {
    int64_t width, height, frames;
};

/* Tokens of the texts that a plan must run, ascending, each once. */
enum { DT_LENGTHS_MOST = 16, DT_LENGTHS_TEXT = 128 };
struct dt_lengths {
    int count; /* 0: not given */
    int at[DT_LENGTHS_MOST];
};

/* Parameters of the parts, of all transformers together; -1: not known. */
struct dt_card_parameters {
    int64_t transformer, vae, text_encoder;
};

/* The degrees that an engine, or one version of it ("xdit:0.7.0"), takes for the model. */
struct dt_card_engine {
    char engine[DT_CARD_WORD];
    char degrees[DT_CARD_DEGREES][DT_CARD_WORD];
    int count;
};

struct dt_card {
    char name[DT_CARD_NAME];
    char aliases[DT_CARD_ALIASES][DT_CARD_NAME];
    char doc[DT_CARD_NAME];
    char transformer[DT_CARD_NAME]; /* its class in diffusers; "": not known */
    char pipeline[DT_CARD_NAME];    /* class of diffusers; "": not known */
    int transformers;               /* how many have this shape, each for some of the steps */
    int references; /* images that are part of the sequence, of as many tokens as the usual size */
    int heads, head_size, depth; /* depth: blocks of every kind */
    int kv_heads;                /* heads of keys and values */
    int hidden;                  /* width of the residual stream; usually heads * head_size */
    int feed_forward;            /* its width; usually 4 hidden */
    bool gated;                  /* it has three matrices, not two */
    int steps;                   /* usual denoising steps; 0: not told */
    int text_tokens;             /* tokens of a prompt, or the most that one may have */
    /* each text has the prompt's own length; else the pipeline pads it to text_tokens */
    bool prompt;
    bool joint; /* image and text tokens are one sequence, not text by cross attention */
    /* no token meets all others: attention of keys' and values' product, text by cross attention */
    bool linear;
    enum dt_guidance guidance;
    int passes;              /* a guided step's, with DT_GUIDANCE_CFG: 2, 3 or 4 */
    int vae_time, vae_space; /* frames and pixels of one latent frame and pixel */
    int patch;               /* latent pixels along a side of a token */
    struct dt_frames usual;
    struct dt_card_parameters parameters;
    int64_t unsplit; /* parameters that tensor parallelism leaves whole; -1: not known */
    struct dt_card_engine engines[DT_CARD_ENGINES];
    int engine_count;
};

/* name: a card's name, its part after the last '/', or an alias, case ignored; or a path that ends
 * in .json. DT_EUSAGE names the nearest card and the command that writes one, or names the wrong
 * field; DT_EIO when a file is unreadable. */
dt_status dt_card_load(const char *name, struct dt_card *card) DT_MUST_CHECK;

/* The JSON of a card; sentences begin with what. DT_EUSAGE. */
dt_status dt_card_parse(const char *text, const char *what, struct dt_card *card) DT_MUST_CHECK;

/* The full name of a compiled card that is called so; else the name itself. */
const char *dt_card_full_name(const char *name);

/* The name is that of a compiled card, or of a .json file that does not describe a network of
 * dittune's own. Sets no sentence. */
bool dt_card_named(const char *name);

/* A card of that name is compiled in; *card is set then. Sets no sentence. */
bool dt_card_known(const char *name, struct dt_card *card);

/* The cards' names, NULL-ended, in the order of their files. */
const char *const *dt_cards(void);

const char *dt_guidance_text(enum dt_guidance guidance);

/* DT_EUSAGE when the model cannot take the size, with the nearest that it can. */
dt_status dt_card_check_size(const struct dt_card *card, struct dt_frames size) DT_MUST_CHECK;

/* Tokens of the image or video, without text, of a size that dt_card_check_size takes:
 * ((frames - 1) / vae_time + 1) * (height / side) * (width / side), with side = vae_space * patch,
 * and those of the card's reference images. */
int64_t dt_card_tokens(const struct dt_card *card, struct dt_frames size);

/* "37,17" -> {17, 37}; the sentence of DT_EUSAGE begins with what. And the text of it, "17,37". */
dt_status dt_lengths_parse(const char *what, const char *text,
                           struct dt_lengths *lengths) DT_MUST_CHECK;
void dt_lengths_text(const struct dt_lengths *lengths, char out[DT_LENGTHS_TEXT]);

/* Tokens of the model's texts: those asked for, else as the card has it. Where a prompt may have
 * any length these are the card's number and one less, since no number above 1 divides both.
 * DT_EUSAGE: several lengths of a model whose texts are padded. */
dt_status dt_card_lengths(const struct dt_card *card, const struct dt_lengths *asked,
                          struct dt_lengths *lengths) DT_MUST_CHECK;

/* Bytes of the weights in bfloat16 on one of `parts` devices that split the transformer's blocks or
 * layers between them; VAE and text encoder are whole on each. Memory of a step comes on top. -1: a
 * part's parameters are not known. */
int64_t dt_card_weight_bytes(const struct dt_card *card, int64_t parts);

/* The row of an engine: that of the version where there is one, else that of the engine;
 * NULL: the card has none. */
const struct dt_card_engine *dt_card_engine(const struct dt_card *card, const char *engine,
                                            const char *version);
bool dt_card_takes(const struct dt_card_engine *row, const char *degree);

#endif
