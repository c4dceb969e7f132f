/* SPDX-License-Identifier: MIT */
/* The rows of dit_rules.def. Those of the layout are compiled a second time over all parameters: they also decide whether a
 * plan's memory can be computed. */
#include "space/dit/dit_int.h"

#include <stdio.h>
#include <string.h>

enum { VALUE_MAX = 65536 }; /* larger values overflow the sizes of a layout */

/* The degrees multiply to the ranks. The texts begin with a separator, BEFORE characters long, which their users skip. */
enum { BEFORE = sizeof " * " - 1 };
static const char product[] =
#define DT_DEGREE(name, inner, grows, exchange, doc) " * " #name
#include "model/degrees.def"
#undef DT_DEGREE
    " == ranks";
static const char product_sentence[] =
#define DT_DEGREE(name, inner, grows, exchange, doc) " x " #name
#include "model/degrees.def"
#undef DT_DEGREE
    " must be the number of ranks";

static const struct rule {
    enum kind { LAYOUT, PLAN, SESSION } kind;
    enum dt_on on;
    const char *expr, *sentence;
} rules[] = {
#define DT_LAYOUT(expr, sentence)      {LAYOUT, DT_ON_BOTH, expr, sentence},
#define DT_RULE(on, expr, sentence)    {PLAN, on, expr, sentence},
#define DT_SESSION(on, expr, sentence) {SESSION, on, expr, sentence},
#include "space/dit/dit_rules.def"
#undef DT_LAYOUT
#undef DT_RULE
#undef DT_SESSION
};
enum { RULES = sizeof rules / sizeof rules[0] };

#define DT_LAYOUT(expr, sentence) +1
#define DT_RULE(on, expr, sentence)
#define DT_SESSION(on, expr, sentence)
_Static_assert(0
#include "space/dit/dit_rules.def"
                   <= DT_DIT_LAYOUTS,
               "struct dt_dit has no room for so many rows DT_LAYOUT");
#undef DT_LAYOUT
#undef DT_RULE
#undef DT_SESSION

/* The ranks are a multiple of the product of the degrees up to any of them. */
static dt_status add_prunes(struct dt_space *space)
{
    const char *first = product + BEFORE;
    for (const char *end = strstr(first, " * "); end != NULL; end = strstr(end + 1, " * ")) {
        char multiple[256];
        snprintf(multiple, sizeof multiple, "ranks %% (%.*s) == 0", (int)(end - first), first);
        DT_TRY(dt_space_add_prune(space, multiple));
    }
    return DT_OK;
}

dt_status dt_dit_add_rules(struct dt_space *space, const struct dt_dit *dit)
{
    for (int i = 0; i < RULES; i++)
        if ((rules[i].on & dit->on) != 0 && (rules[i].kind != SESSION || dit->only == NULL))
            DT_TRY(dt_space_add_rule(space, rules[i].expr, rules[i].sentence));
    return add_prunes(space);
}

void dt_dit_facts(const struct dt_dit *dit, struct dt_dit_fact facts[DT_DIT_FACTS])
{
    facts[0] = (struct dt_dit_fact){"heads", dit->workload.network.heads};
    facts[1] = (struct dt_dit_fact){"tokens", dt_workload_tokens(&dit->workload)};
    facts[2] = (struct dt_dit_fact){"guidance", dit->workload.guidance};
}

dt_status dt_dit_compile_layout(struct dt_dit *dit)
{
    const char *names[DT_PARAMS + DT_DIT_FACTS];
    struct dt_dit_fact facts[DT_DIT_FACTS];
    dt_dit_facts(dit, facts);
    for (int i = 0; i < DT_PARAMS; i++)
        names[i] = dt_params[i].name;
    for (int i = 0; i < DT_DIT_FACTS; i++)
        names[DT_PARAMS + i] = facts[i].name;
    for (int i = 0; i < RULES; i++)
        if (rules[i].kind == LAYOUT)
            DT_TRY(dt_expr_new(rules[i].expr, names, DT_PARAMS + DT_DIT_FACTS,
                               &dit->layout[dit->layout_count++]));
    return DT_OK;
}

bool dt_dit_has_layout(const struct dt_dit *dit, const int64_t values[])
{
    int64_t all[DT_PARAMS + DT_DIT_FACTS], holds = 1;
    struct dt_dit_fact facts[DT_DIT_FACTS];
    for (int i = 0; i < DT_PARAMS; i++) {
        int least = dt_params[i].fallback == 0 ? 0 : 1;
        all[i] = dit->axis[i] >= 0 ? values[dit->axis[i]] : dt_params[i].fallback;
        if (all[i] < least || all[i] > VALUE_MAX)
            return false;
    }
    dt_dit_facts(dit, facts);
    for (int i = 0; i < DT_DIT_FACTS; i++)
        all[DT_PARAMS + i] = facts[i].value;
    for (int i = 0; i < dit->layout_count && holds != 0; i++)
        if (dt_expr_eval(dit->layout[i], all, &holds) != DT_OK)
            return false;
    return holds != 0;
}
