/* SPDX-License-Identifier: MIT */
/* machine_card - what is known of a machine with GPUs that is not at hand: rates, memory and links, for predictions
 *
 * A card is one file, model/machines/<name>.json, compiled in, with a source for each number; a user's own file of the same fields does
 * as well, and so does what `dittune machine --json` prints on a machine whose GPUs have a card. Rates are those of the datasheet: what a program reaches of them is model/predict.h's matter.
 *
 *     struct dt_machine_card machine;
 *     DT_TRY(dt_machine_card_load("8xh100", &machine));
 */
#ifndef DT_MODEL_MACHINES_MACHINE_CARD_H
#define DT_MODEL_MACHINES_MACHINE_CARD_H

#include "base/status.h"

#include <stdbool.h>

enum { DT_MACHINE_WORD = 96, DT_MACHINE_DEVICES_MOST = 72 };

/* What two devices of a host talk over. */
enum dt_pair { DT_PAIR_NVLINK, DT_PAIR_PCIE, DT_PAIR_HCCS, DT_PAIRS };

struct dt_machine_card {
    char name[DT_MACHINE_WORD], device[DT_MACHINE_WORD];
    int devices;         /* of one host */
    double memory_bytes; /* of a device, as its driver reports it where that is known */
    double flop_rate;    /* bfloat16, dense, a second */
    double copy_rate;    /* bytes a second that are read or written */
    enum dt_pair pair;
    double pair_rate; /* bytes a second that a device sends to the others of its host */
    int capability;   /* 90 for 9.0; 0: none */
};

/* text: a card's name, or a path that ends in .json; "8x" before it: so many devices, at most those of the card. DT_EUSAGE names the
 * nearest card, or the field that is wrong or contradicts another; DT_EIO when a file is unreadable. */
dt_status dt_machine_card_load(const char *text, struct dt_machine_card *card) DT_MUST_CHECK;

/* The cards' names, NULL-ended, in the order of their files. */
const char *const *dt_machine_cards(void);

/* The card of the device that a text names, as "NVIDIA H100" or "Ascend Atlas 800I A2": the one whose name, or device's name, has most
 * words of it; false: none. Sets no sentence. */
bool dt_machine_card_of(const char *text, struct dt_machine_card *card);

extern const char *const dt_pair_texts[];

#endif
