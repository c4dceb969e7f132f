/* SPDX-License-Identifier: MIT */
/* Rebuilds a tree from postfix code, with a stack of operations that have no parent yet. */
#include "space/expr/expr_int.h"

static void take_items(struct dt_expr_kids kids[], int op, int64_t items, const int stack[],
                       int top)
{
    int next = -1;
    for (int64_t i = 0; i < items; i++) {
        int item = stack[top - i];
        kids[item].next = next;
        next = item;
    }
    kids[op].right = next;
    kids[op].left = stack[top - items];
}

int dt_expr_tree(const struct dt_expr *expr, struct dt_expr_kids kids[])
{
    int stack[DT_EXPR_OPS + 1] = {0}, lazy[DT_EXPR_OPS + 1] = {0};
    int top = 0, open = 0;
    for (int op = 0; op < expr->count; op++) {
        kids[op] = (struct dt_expr_kids){.left = -1, .right = -1, .next = -1};
        switch (expr->ops[op].code) {
        case DT_OP_NUMBER:
        case DT_OP_REAL:
        case DT_OP_NAME:
            break;
        case DT_OP_NEGATE:
        case DT_OP_NOT:
            kids[op].left = stack[top--];
            break;
        case DT_OP_IN:
            take_items(kids, op, expr->ops[op].argument, stack, top);
            top -= (int)expr->ops[op].argument + 1;
            break;
        case DT_OP_AND:
        case DT_OP_OR: /* complete at the DT_OP_BOOL after its right side */
            kids[op].left = stack[top--];
            lazy[open++] = op;
            continue;
        case DT_OP_BOOL:
            kids[lazy[--open]].right = stack[top];
            stack[top] = lazy[open];
            continue;
        default:
            kids[op].right = stack[top--];
            kids[op].left = stack[top--];
        }
        stack[++top] = op;
    }
    return stack[top];
}
