/* SPDX-License-Identifier: MIT */
/* Binary segmentation (Scott, Knott 1974; Vostrikova 1981) by permutation tests, then each cut is
 * placed again between its neighbours. A straight line would be cut into steps: where the segments
 * found still slope, or a line alone explains as much as several steps in one direction, the part
 * is a line, which is cut only where a step is significant beside it. */
#include "base/rng.h"
#include "stats/changes/changes_int.h"
#include "stats/stats.h"

#include <math.h>
#include <stdlib.h>

/* Position of a step: its posterior for a normal series of unknown levels and variance with a
 * uniform prior (Smith 1975). Points are clipped at 2.5 deviations, so that one outlier does not
 * shift it. The estimate is not the peak (the maximum-likelihood position) but the middle of the
 * seven consecutive positions with the largest total probability: it lies within three points of
 * the truth most often. */

#define DRAWN_IN 2.5  /* deviations */
#define NEAR     3    /* points to either side */
#define LEVEL    0.95 /* level of the range of positions */

/* Clips x at 2.5 deviations from fit (by the median absolute deviation), so that an outlier weighs
 * no more than other points. */
static void draw_in(const double x[], const double fit[], int n, double drawn[])
{
    for (int i = 0; i < n; i++)
        drawn[i] = fabs(x[i] - fit[i]);
    double far = DRAWN_IN * 1.4826 * dt_stats_median(drawn, n);
    for (int i = 0; i < n; i++)
        drawn[i] = far > 0 ? fit[i] + fmin(fmax(x[i] - fit[i], -far), far) : x[i];
}

static void draw_in_to_median(const double x[], int n, double drawn[])
{
    double median = dt_stats_median(x, n);
    for (int i = 0; i < n; i++)
        drawn[i] = fabs(x[i] - median);
    double far = DRAWN_IN * 1.4826 * dt_stats_median(drawn, n);
    for (int i = 0; i < n; i++)
        drawn[i] = far > 0 ? fmin(fmax(x[i], median - far), median + far) : x[i];
}

/* chance[k] is the probability of a step before point k (they add up to 1);
 * returns the likeliest k. */
static int change_posterior(const double y[], int n, double chance[])
{
    double mean = dt_stats_mean(y, n), squares = 0, sum = 0, least = INFINITY, all = 0;
    int best = 0;
    for (int i = 0; i < n; i++)
        squares += (y[i] - mean) * (y[i] - mean);
    double floor = squares * 1e-12; /* for exact steps */
    for (int k = 1; k < n; k++) {
        sum += y[k - 1] - mean;
        chance[k] = fmax(squares - sum * sum * n / ((double)k * (n - k)), floor);
        if (k >= DT_CHANGES_STRETCH && k <= n - DT_CHANGES_STRETCH && chance[k] < least) {
            least = chance[k];
            best = k;
        }
    }
    for (int k = 0; k < n; k++) {
        bool allowed = k >= DT_CHANGES_STRETCH && k <= n - DT_CHANGES_STRETCH;
        chance[k] = allowed && least > 0
                        ? pow(least / chance[k], (n - 2) / 2.0) * sqrt(n / ((double)k * (n - k)))
                        : 0;
        all += chance[k];
    }
    for (int k = 0; k < n && all > 0; k++)
        chance[k] /= all;
    return best;
}

static double chance_near(const double chance[], int n, int k, int far)
{
    double sum = 0;
    for (int i = k - far < 0 ? 0 : k - far; i <= k + far && i < n; i++)
        sum += chance[i];
    return sum;
}

/* The smallest range around k with probability LEVEL. */
static void chance_range(const double chance[], int n, int k, int *earliest, int *latest)
{
    double sum = chance[k];
    *earliest = *latest = k;
    while (sum < LEVEL && (*earliest > 0 || *latest < n - 1)) {
        double left = *earliest > 0 ? chance[*earliest - 1] : -1;
        double right = *latest < n - 1 ? chance[*latest + 1] : -1;
        sum += fmax(left, right);
        *earliest -= left >= right;
        *latest += left < right;
    }
}

static void step_at(const double x[], int n, int k, double fit[])
{
    double before = dt_stats_median(x, k), after = dt_stats_median(x + k, n - k);
    for (int i = 0; i < n; i++)
        fit[i] = i < k ? before : after;
}

int dt_place(const double x[], int n, int *earliest, int *latest)
{
    double *room = n >= 2 * DT_CHANGES_STRETCH ? malloc(3 * (size_t)n * sizeof *room) : NULL;
    int k = 0;
    if (room == NULL)
        return 0;
    double *drawn = room, *fit = room + n, *chance = room + 2 * (size_t)n, most = -1;
    draw_in_to_median(x, n, drawn);
    int place = change_posterior(drawn, n, chance);
    for (int i = 0; i < 2 && place > 0; i++) {
        step_at(x, n, place, fit);
        draw_in(x, fit, n, drawn);
        place = change_posterior(drawn, n, chance);
    }
    for (int i = 0; i < n && place > 0; i++) {
        /* a sharp step lies in several such windows: its own probability decides */
        double near = chance_near(chance, n, i, NEAR) + 0.02 * chance[i];
        if (chance[i] > 0 && near > most) {
            most = near;
            k = i;
        }
    }
    if (k > 0 && earliest != NULL)
        chance_range(chance, n, k, earliest, latest);
    free(room);
    return k;
}

/* Permutation tests: exact for exchangeable points at any length, ties and heavy tails included,
 * where asymptotic ones are off for ten points. The split is the usual CUSUM contrast; the arc,
 * which detects a step up and down again, is that of circular binary segmentation (Olshen,
 * Venkatraman, Lucito, Wigler 2004). A test ends early when its result can no longer be rare
 * (Besag, Clifford 1991). */

enum { ORDERS = 4999, GRID = 128 /* positions at which an arc may end */ };

double dt_split(const struct dt_order *order, int *at)
{
    double n = order->n, mean = dt_stats_mean(order->x, order->n), sum = 0, most = -1;
    for (int k = 1; k <= order->n - DT_CHANGES_STRETCH; k++) {
        sum += order->x[k - 1] - mean;
        double z = sum * sum * n / ((double)k * (n - k));
        if (k >= DT_CHANGES_STRETCH && z > most) {
            most = z;
            if (at != NULL)
                *at = k;
        }
    }
    return most;
}

/* Test statistics. Of one part: the largest difference between two sides (split), and between
 * a piece in the middle and the rest (arc); *from, *to (may be NULL) are its ends. Of any
 * number of parts: the sum of slopes (of one sign: upwards). Of one part: the largest step
 * beside a straight line. */
static double widest_arc(const struct dt_order *order, int *from, int *to)
{
    double sums[GRID + 1] = {0}, n = order->n, most = -1;
    double mean = dt_stats_mean(order->x, order->n);
    int block = (order->n + GRID - 1) / GRID, blocks = order->n / block;
    for (int b = 0; b < blocks; b++) {
        sums[b + 1] = sums[b];
        for (int i = b * block; i < (b + 1) * block; i++)
            sums[b + 1] += order->x[i] - mean;
    }
    for (int i = 0; i < blocks; i++)
        for (int j = i + 1; j <= blocks; j++) {
            int inside = (j - i) * block;
            if (inside < DT_CHANGES_STRETCH || order->n - inside < DT_CHANGES_STRETCH)
                continue;
            double sum = sums[j] - sums[i], z = sum * sum * n / (inside * (n - inside));
            if (z > most) {
                most = z;
                if (from != NULL)
                    *from = i * block, *to = j * block;
            }
        }
    return most;
}

static int part_begin(const struct dt_order *order, int part)
{
    return part == 0 ? 0 : part >= order->parts ? order->n : order->cuts[part - 1];
}

static double dt_slopes(const struct dt_order *order)
{
    double sum = 0;
    for (int part = 0; part < order->parts; part++) {
        int from = part_begin(order, part), to = part_begin(order, part + 1);
        for (int i = from; i < to; i++)
            sum += (i - (from + to - 1) / 2.0) * order->x[i];
    }
    return sum;
}

/* Residuals of the points and of each step after a line is subtracted from both. */
static double step_beside_line(const struct dt_order *order, int *at)
{
    double n = order->n, spread = n * (n * n - 1) / 12, slope = 0, sum = 0, most = -1;
    double mean = dt_stats_mean(order->x, order->n);
    for (int i = 0; i < order->n; i++)
        slope += (i - (n - 1) / 2) * order->x[i] / spread;
    for (int k = 1; k <= order->n - DT_CHANGES_STRETCH; k++) {
        sum += order->x[k - 1] - mean - slope * (k - 1 - (n - 1) / 2);
        double both = (double)k * (n - k), rest = both / n - both * both / 4 / spread;
        if (k >= DT_CHANGES_STRETCH && rest > 0 && sum * sum / rest > most) {
            most = sum * sum / rest;
            if (at != NULL)
                *at = k;
        }
    }
    return most;
}

static double test_statistic(const struct dt_order *order, enum dt_change_test test)
{
    switch (test) {
    case DT_CHANGE_SPLIT:
        return dt_split(order, NULL);
    case DT_CHANGE_ARC:
        return widest_arc(order, NULL, NULL);
    case DT_CHANGE_SLOPES:
        return dt_slopes(order);
    default:
        return step_beside_line(order, NULL);
    }
}

/* Durstenfeld (1964). */
static void shuffle_order(const struct dt_order *order, struct dt_rng *rng)
{
    double *x = order->shuffled;
    for (int part = 0; part < order->parts; part++) {
        int from = part_begin(order, part);
        for (int i = part_begin(order, part + 1) - 1; i > from; i--) {
            int k = from + (int)dt_rng_below(rng, (uint64_t)(i - from) + 1);
            double drawn = x[k];
            x[k] = x[i];
            x[i] = drawn;
        }
    }
}

bool dt_order_rare(const struct dt_order *order, enum dt_change_test test, double alpha)
{
    struct dt_rng rng = dt_rng_at(1, "changes");
    double seen =
        test_statistic(order, test) * (1 - 1e-9); /* equal values may differ by rounding */
    int count = 1, most = (int)(alpha * (ORDERS + 1) + 0.5);
    struct dt_order drawn = *order;
    if (!(seen > 0))
        return false;
    for (int i = 0; i < order->n; i++)
        order->shuffled[i] = order->x[i];
    drawn.x = order->shuffled;
    for (int i = 0; i < ORDERS && count <= most; i++) {
        shuffle_order(order, &rng);
        count += test_statistic(&drawn, test) >= seen;
    }
    return count <= most;
}

#define ALPHA_SPLIT  0.008 /* these three add up to the false-alarm rate of one in a hundred */
#define ALPHA_ARC    0.001
#define ALPHA_LINE   0.001
#define ALPHA_PRUNE  0.01
#define ALPHA_WITHIN 0.01  /* for sloping stretches */
#define ALPHA_BESIDE 0.005 /* for a step beside a line */
#define CLEARLY      6     /* difference of costs that is strong evidence (Kass, Raftery 1995) */
#define ROUNDS       2     /* how often the cuts are placed again */

struct cutter {
    const double *x;
    double *tested, *shuffled, *fit, *drawn; /* each has room for all points */
    int cuts[DT_CHANGES_MAX], count;
    int lines[DT_CHANGES_MAX + 1], line_count; /* starts of the stretches that are lines */
    bool more;
};

struct part {
    int from, to, first; /* points; the first cut inside, if there is one */
};

/* Inserts a cut; keeps the cuts sorted. */
static void add_cut(struct cutter *cutter, int at)
{
    int i = cutter->count;
    if (i == DT_CHANGES_MAX) {
        cutter->more = true;
        return;
    }
    for (; i > 0 && cutter->cuts[i - 1] > at; i--)
        cutter->cuts[i] = cutter->cuts[i - 1];
    cutter->cuts[i] = at;
    cutter->count++;
}

/* Cuts a part into level stretches; ignores lines. */
static void find_steps(struct cutter *cutter, int from, int n)
{
    struct dt_order order = {.x = cutter->tested, .shuffled = cutter->shuffled, .n = n, .parts = 1};
    int ends[] = {0, 0, 0, n};
    if (n < DT_CHANGES_LEAST || cutter->more)
        return;
    draw_in_to_median(cutter->x + from, n, cutter->tested);
    widest_arc(&order, &ends[1], &ends[2]);
    if (dt_order_rare(&order, DT_CHANGE_SPLIT, ALPHA_SPLIT)) {
        ends[1] = 0;
        ends[2] = dt_place(cutter->x + from, n, NULL, NULL);
    } else if (!dt_order_rare(&order, DT_CHANGE_ARC, ALPHA_ARC))
        return;
    for (int i = 0; i < 3; i++) {
        if (ends[i + 1] <= ends[i] || ends[i + 1] - ends[i] == n)
            continue;
        if (ends[i] > 0)
            add_cut(cutter, from + ends[i]);
        find_steps(cutter, from + ends[i], ends[i + 1] - ends[i]);
    }
}

/* The end of the stretch before cut i of a part. */
static int end_of(const struct cutter *cutter, const struct part *part, int i)
{
    return i < cutter->count && cutter->cuts[i] < part->to ? cutter->cuts[i] : part->to;
}

/* Places each cut of a part again between its neighbours. */
static void place_anew(struct cutter *cutter, const struct part *part)
{
    for (int round = 0; round < ROUNDS; round++)
        for (int i = part->first, before = part->from; end_of(cutter, part, i) < part->to; i++) {
            int n = end_of(cutter, part, i + 1) - before;
            int k = dt_place(cutter->x + before, n, NULL, NULL);
            if (k > 0)
                cutter->cuts[i] = before + k;
            before = cutter->cuts[i];
        }
}

static void remove_cut(struct cutter *cutter, int at)
{
    cutter->count--;
    for (int i = at; i < cutter->count; i++)
        cutter->cuts[i] = cutter->cuts[i + 1];
}

/* A cut made before its neighbours may no longer be significant: each is tested again. */
static void prune_cuts(struct cutter *cutter, const struct part *part)
{
    for (int i = part->first, from = part->from; end_of(cutter, part, i) < part->to;) {
        struct dt_order order = {.x = cutter->tested,
                                 .shuffled = cutter->shuffled,
                                 .n = end_of(cutter, part, i + 1) - from,
                                 .parts = 1};
        draw_in_to_median(cutter->x + from, order.n, cutter->tested);
        if (dt_order_rare(&order, DT_CHANGE_SPLIT, ALPHA_PRUNE)) {
            from = cutter->cuts[i++];
            continue;
        }
        remove_cut(cutter, i);
        place_anew(cutter, part);
        i = part->first;
        from = part->from;
    }
}

/* Writes the medians of a part's stretches to fit. */
static void fit_levels(struct cutter *cutter, const struct part *part)
{
    for (int i = part->first, from = part->from; from < part->to; i++) {
        int end = end_of(cutter, part, i);
        double level = dt_stats_median(cutter->x + from, end - from);
        for (; from < end; from++)
            cutter->fit[from] = level;
    }
}

struct line {
    double middle, slope;
};

/* Least squares on points clipped towards the previous line; also writes the line to fit. */
static struct line fit_line(struct cutter *cutter, int from, int n)
{
    struct line line = {0};
    double spread = (double)n * ((double)n * n - 1) / 12;
    double *fit = cutter->fit + from, *drawn = cutter->drawn + from;
    for (int i = 0; i < n; i++)
        drawn[i] = cutter->x[from + i];
    for (int round = 0; round < 6; round++) {
        line = (struct line){.middle = dt_stats_mean(drawn, n)};
        for (int i = 0; i < n && n > 1; i++)
            line.slope += (i - (n - 1) / 2.0) * drawn[i] / spread;
        for (int i = 0; i < n; i++)
            fit[i] = line.middle + line.slope * (i - (n - 1) / 2.0);
        draw_in(cutter->x + from, fit, n, drawn);
    }
    return line;
}

/* Schwarz's criterion (1978) of the fit, with outliers clipped. */
static double part_cost(struct cutter *cutter, const struct part *part, int parameters)
{
    int n = part->to - part->from;
    double squares = 0;
    draw_in(cutter->x + part->from, cutter->fit + part->from, n, cutter->drawn);
    for (int i = 0; i < n; i++)
        squares += pow(cutter->drawn[i] - cutter->fit[part->from + i], 2);
    return n * log(squares) + parameters * log(n);
}

/* 1 or -1 when all steps of a part have that sign, else 0. */
static int part_direction(const struct cutter *cutter, const struct part *part, int count)
{
    int up = 0;
    for (int i = part->first; i < part->first + count; i++)
        up += cutter->fit[cutter->cuts[i]] > cutter->fit[cutter->cuts[i] - 1];
    return count == 0 || (up > 0 && up < count) ? 0 : up > 0 ? 1 : -1;
}

/* The stretches slope in the given direction; 0: in either. */
static bool has_slope(struct cutter *cutter, const struct dt_order *order, int way, double alpha)
{
    for (int sign = 1; sign >= -1; sign -= 2) {
        for (int i = 0; i < order->n; i++)
            cutter->tested[i] *= sign;
        if (way != -sign && dt_order_rare(order, DT_CHANGE_SLOPES, way == 0 ? alpha / 2 : alpha))
            return true;
    }
    return false;
}

/* A part that find_steps() has cut (or left whole) is a straight line. */
static bool is_line(struct cutter *cutter, const struct part *part)
{
    int n = part->to - part->from, count = 0, cuts[DT_CHANGES_MAX];
    while (end_of(cutter, part, part->first + count) < part->to) {
        cuts[count] = cutter->cuts[part->first + count] - part->from;
        count++;
    }
    struct dt_order order = {.x = cutter->tested,
                             .shuffled = cutter->shuffled,
                             .n = n,
                             .cuts = cuts,
                             .parts = count + 1};
    if (n < DT_CHANGES_LEAST)
        return false;
    fit_levels(cutter, part);
    for (int i = 0; i < n; i++)
        cutter->drawn[i] = cutter->x[part->from + i] - cutter->fit[part->from + i];
    draw_in_to_median(cutter->drawn, n, cutter->tested);
    int way = part_direction(cutter, part, count);
    if (has_slope(cutter, &order, way, count > 0 ? ALPHA_WITHIN : ALPHA_LINE))
        return true;
    if (count < 2 || way == 0)
        return false;
    double steps_cost = part_cost(cutter, part, 2 * count);
    fit_line(cutter, part->from, n);
    return part_cost(cutter, part, 1) < steps_cost;
}

/* Index of a significant step beside a line; 0: none. */
static int beside_line(struct cutter *cutter, const struct part *part)
{
    int n = part->to - part->from, at = 0;
    struct dt_order order = {.x = cutter->tested, .shuffled = cutter->shuffled, .n = n, .parts = 1};
    fit_line(cutter, part->from, n);
    for (int i = 0; i < n; i++)
        cutter->drawn[i] = cutter->x[part->from + i] - cutter->fit[part->from + i];
    draw_in_to_median(cutter->drawn, n, cutter->tested);
    step_beside_line(&order, &at);
    return at > 0 && dt_order_rare(&order, DT_CHANGE_BESIDE_LINE, ALPHA_BESIDE) ? part->from + at
                                                                                : 0;
}

/* A line explains the points around a step about as well. */
static bool may_be_line(struct cutter *cutter, const struct dt_stretch *left,
                        const struct dt_stretch *right)
{
    struct part both = {.from = left->from, .to = right->from + right->count};
    if (left->slope != 0 || right->slope != 0)
        return false;
    for (int i = both.from; i < both.to; i++)
        cutter->fit[i] = i < right->from ? left->level : right->level;
    double step = part_cost(cutter, &both, 2);
    fit_line(cutter, both.from, both.to - both.from);
    return part_cost(cutter, &both, 1) - step < CLEARLY;
}

static void cut_range(struct cutter *cutter, int from, int to)
{
    struct part part = {.from = from, .to = to};
    while (part.first < cutter->count && cutter->cuts[part.first] <= from)
        part.first++;
    find_steps(cutter, from, to - from);
    place_anew(cutter, &part);
    prune_cuts(cutter, &part);
    if (!is_line(cutter, &part))
        return;
    while (end_of(cutter, &part, part.first) < to)
        remove_cut(cutter, part.first);
    int at = beside_line(cutter, &part);
    if (at > 0 && cutter->count < DT_CHANGES_MAX) {
        add_cut(cutter, at);
        cut_range(cutter, from, at);
        cut_range(cutter, at, to);
    } else if (cutter->line_count <= DT_CHANGES_MAX)
        cutter->lines[cutter->line_count++] = from;
}

static struct dt_stretch describe_stretch(struct cutter *cutter, int from, int to)
{
    struct dt_stretch stretch = {.from = from, .count = to - from};
    stretch.level = dt_stats_median(cutter->x + from, to - from);
    for (int i = 0; i < cutter->line_count; i++)
        if (cutter->lines[i] == from) {
            struct line line = fit_line(cutter, from, to - from);
            stretch.level = line.middle;
            stretch.slope = line.slope;
        }
    return stretch;
}

/* The step between two stretches after their slopes are subtracted. */
static struct dt_change change_between(struct cutter *cutter, const struct dt_stretch *left,
                                       const struct dt_stretch *right)
{
    struct dt_change change = {.at = right->from, .earliest = right->from, .latest = right->from};
    int earliest = 0, latest = 0, n = left->count + right->count;
    for (int i = 0; i < n; i++) {
        double slope = i < left->count ? left->slope : right->slope;
        cutter->drawn[i] = cutter->x[left->from + i] - slope * (i - left->count);
    }
    if (dt_place(cutter->drawn, n, &earliest, &latest) > 0) {
        earliest += left->from;
        latest += left->from;
        change.earliest = earliest < change.at ? earliest : change.at;
        change.latest = latest > change.at ? latest : change.at;
    }
    change.may_be_line = may_be_line(cutter, left, right);
    change.before = left->level + left->slope * (left->count - 1) / 2.0;
    change.after = right->level - right->slope * (right->count - 1) / 2.0;
    return change;
}

dt_status dt_stats_changes(const double x[], int n, struct dt_changes *changes)
{
    struct cutter cutter = {.x = x, .tested = calloc(4 * (size_t)n + 1, sizeof *x)};
    if (cutter.tested == NULL)
        return dt_fail(DT_ENOMEM, "out of memory for a series of %d points", n);
    cutter.shuffled = cutter.tested + n;
    cutter.fit = cutter.shuffled + n;
    cutter.drawn = cutter.fit + n;
    cut_range(&cutter, 0, n);
    *changes = (struct dt_changes){.count = cutter.count, .more = cutter.more};
    for (int i = 0, from = 0; i <= cutter.count; i++) {
        int to = i < cutter.count ? cutter.cuts[i] : n;
        changes->stretch[i] = describe_stretch(&cutter, from, to);
        from = to;
    }
    for (int i = 0; i < cutter.count; i++)
        changes->change[i] =
            change_between(&cutter, &changes->stretch[i], &changes->stretch[i + 1]);
    free(cutter.tested);
    return DT_OK;
}
