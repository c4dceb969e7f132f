/* SPDX-License-Identifier: MIT */
/* machine_card - what is known of a machine with GPUs that is not at hand: rates, memory, links and
 * hosts, for predictions
 *
 * A card is one file, model/machines/<name>.json, compiled in, with a source for each number; a
 * user's own file of the same fields does as well, and so does what `dittune machine --json` prints
 * on a machine whose GPUs have a card. What a program reaches of the datasheet's rates is
 * model/predict.h's matter; a rate that was measured is what a program reached.
 *
 *     struct dt_machine_card machine;
 *     DT_TRY(dt_machine_card_load("2x8xh100", &machine));
 */
#ifndef DT_MODEL_MACHINES_MACHINE_CARD_H
#define DT_MODEL_MACHINES_MACHINE_CARD_H

#include "base/status.h"

#include <stdbool.h>

enum { DT_MACHINE_WORD = 96, DT_MACHINE_DEVICES_MOST = 256 /* all hosts together */ };
enum { DT_NO_CUDA = -1 }; /* capability of a device that is none of CUDA's */

/* Links between two devices, from near to far; neighbours have one of the first three. */
#define DT_LINK_ROWS                                                                               \
    DT_LINK(nvlink)                                                                                \
    DT_LINK(hccs)                                                                                  \
    DT_LINK(pcie)                                                                                  \
    DT_LINK(across_sockets)                                                                        \
    DT_LINK(network)
enum dt_link {
#define DT_LINK(name) DT_LINK_##name,
    DT_LINK_ROWS
#undef DT_LINK
        DT_LINKS,
    DT_PAIRS = DT_LINK_across_sockets
};
extern const char *const dt_link_texts[];

/* The rate on the datasheet and the measured one; 0: not known. */
struct dt_rate {
    double sheet, measured;
};

struct dt_machine_link {
    struct dt_rate rate; /* bytes a second that a device sends over one of them */
    double latency;      /* seconds; 0: not known */
    int lanes;           /* lanes of a socket or host, shared by its devices; 0: each has one */
};

struct dt_machine_card {
    char name[DT_MACHINE_WORD], device[DT_MACHINE_WORD];
    int hosts, devices;    /* devices of one host */
    struct dt_rate memory; /* bytes of a device; measured: as its driver reports it */
    double flop_rate;      /* bfloat16, dense, a second, of the datasheet */
    struct dt_rate copy;   /* bytes a second that are read or written */
    enum dt_link pair;     /* between neighbours */
    int reach;      /* devices that `pair` connects, of several hosts where more than `devices` */
    int per_switch; /* devices of a PCIe switch, which share its one link upwards; 0: not known */
    int per_socket; /* 0: not known */
    struct dt_machine_link links[DT_LINKS];
    struct dt_rate host;      /* bytes a second that a device reads of its host's memory */
    double host_memory_bytes; /* one host's; 0: not known */
    int capability;           /* 90 for 9.0; DT_NO_CUDA; 0: not known */
};

/* text: a card's name, or a path that ends in .json; "8x" before it: so many devices, at most those
 * of the card; "2x8x": of each of so many hosts. DT_EUSAGE names the nearest card, or the field
 * that is wrong or contradicts another; DT_EIO when a file is unreadable. */
dt_status dt_machine_card_load(const char *text, struct dt_machine_card *card) DT_MUST_CHECK;

/* Replaces the card's numbers of hosts and of devices of a host; links that reach over several
 * hosts reach over as many. */
void dt_machine_card_place(struct dt_machine_card *card, int hosts, int devices);

/* The cards' names, NULL-ended, in the order of their files. */
const char *const *dt_machine_cards(void);

/* The card of the device that a text names, as "NVIDIA H100" or "Ascend Atlas 800I A2": the one
 * whose name, or device's name, has most words of it; false: none, as for an instance of a GPU
 * that is cut by MIG ("NVIDIA H100 80GB HBM3 MIG 1g.10gb"), which has a part of its rates and no
 * links. Sets no sentence. */
bool dt_machine_card_of(const char *text, struct dt_machine_card *card);

/* The measured rate, else that of the datasheet. */
double dt_rate_value(struct dt_rate rate);

#endif
