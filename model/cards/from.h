/* SPDX-License-Identifier: MIT */
/* from - a card written from the configurations of a model that diffusers saved
 *
 * Numbers are those of the files. What belongs to the pipeline's class, as the tokens of a text, is
 * that of the published cards of the same classes where these agree, and a remark names it. A field
 * that neither has is null in the card: a remark names the option or the field that gives it.
 *
 *     dt_auto_text card = {0}, remarks = {0};
 *     int missing;
 *     DT_TRY(dt_card_from("FLUX.1-dev", &(struct dt_card_asked){.text_tokens = 512}, &card, &remarks, &missing));
 *     if (missing == 0)
 *         status = dt_card_parse(dt_text_at(&card), "the card", &read);
 */
#ifndef DT_MODEL_CARDS_FROM_H
#define DT_MODEL_CARDS_FROM_H

#include "base/text.h"
#include "model/cards/card.h"

/* Fields that the user gives; 0: not given. */
struct dt_card_asked {
    struct dt_frames size;
    int text_tokens;
};

/* Appends the card, a line for each field in the order of the published cards, and to remarks a
 * line for each sentence.
 * *missing: fields that a card must have and that are null.
 *
 * path: a folder with model_index.json, or with one transformer's config.json, or such a file.
 * Weights are counted from the headers of *.safetensors beside the configurations. DT_EIO: a
 * configuration cannot be read; DT_EUSAGE: it is not JSON, has a field of a wrong type or range,
 * belongs to a pipeline without a transformer, or makes no card. */
dt_status dt_card_from(const char *path, const struct dt_card_asked *asked, struct dt_text *card,
                       struct dt_text *remarks, int *missing) DT_MUST_CHECK;

#endif
