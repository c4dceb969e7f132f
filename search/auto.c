/* SPDX-License-Identifier: MIT */
/* Chooses another strategy by the space, its size, and the number of trials that fit the budget. */
#include "search/arm_int.h"

#include <string.h>

static const char *choose_strategy(const struct dt_search_opts *opts, double room,
                                   struct dt_text *why)
{
    const struct dt_space *space = opts->space;
    const char *name = dt_arm_fitting(space, room);
    if (strcmp(name, "exhaustive") != 0 && dt_space_layout_axes(space) != 0)
        name = "stages";
    dt_text_add(why, "%s: ", name);
    if (!dt_space_listed(space))
        dt_text_add(why, "the plans are too many to list");
    else
        dt_text_add(why, "%lld plan%s", (long long)dt_space_count(space),
                    dt_space_count(space) == 1 ? "" : "s");
    if (room > 0)
        dt_text_add(why, ", room for about %.0f trial%s", room, room < 1.5 ? "" : "s");
    else
        dt_text_add(why, ", a budget of unknown length");
    return name;
}

const struct dt_strategy dt_strategy_auto = {
    .name = "auto",
    .doc = "chooses by the size of the space and the trials that the budget has room for",
    .paper = "none: exhaustive where every plan fits into the budget, else stages where there are "
             "layouts, bayes or tpe",
    .choose = choose_strategy,
};
