/* SPDX-License-Identifier: MIT */
/* simd_rows_body - operations on rows; the includer has included simd_vec_body.h and defines ACT,
 * the storage type of activations, and load_act(p), store_act(p, v) and their _part(..., n) forms,
 * which convert it to float32 and back.
 */

/* tanh-GELU is x sigmoid(2u) with u = sqrt(2/pi) (x + 0.044715 x^3): no
 * cancellation, one exponential. */
INLINE VEC gelu(VEC x)
{
    VEC cubic = VEC_FMA(x * x, splat(0.044715f), splat(1.0f));
    return x / (exp_vec(x * cubic * -1.5957691216057308f) + 1.0f);
}

INLINE VEC silu(VEC x)
{
    return x / (exp_vec(-x) + 1.0f);
}

INLINE VEC act_vec(VEC x, enum dt_activation act)
{
    if (act == DT_ACT_GELU)
        return gelu(x);
    return act == DT_ACT_SILU ? silu(x) : x;
}

INLINE void activate_as(float *y, const float *bias, int n, enum dt_activation act)
{
    int i = 0;
    for (; i + LANES <= n; i += LANES)
        store(y + i, act_vec(load(y + i) + load(bias + i), act));
    if (i < n)
        store_part(y + i, act_vec(load_part(y + i, n - i) + load_part(bias + i, n - i), act),
                   n - i);
}

static void activate_row(float *y, const float *bias, int n, enum dt_activation act)
{
    if (act == DT_ACT_NONE)
        activate_as(y, bias, n, DT_ACT_NONE);
    else if (act == DT_ACT_GELU)
        activate_as(y, bias, n, DT_ACT_GELU);
    else
        activate_as(y, bias, n, DT_ACT_SILU);
}

/* Sum of (x - mean)^2. Two partial sums break the dependency chain; the next row in memory is
 * prefetched (after the last row this is harmless: a prefetch does not fault). */
INLINE float squares_of(const struct dt_row *row, float mean)
{
    const float *x = row->x;
    VEC even = {0}, odd = {0};
    int n = row->channels, whole = n / LANES * LANES, i = 0;
    for (; i + 2 * LANES <= whole; i += 2 * LANES) {
        VEC a = load(x + i) - mean, b = load(x + i + LANES) - mean;
        __builtin_prefetch(x + n + i, 1);
        __builtin_prefetch(x + n + i + LANES, 1);
        even = VEC_FMA(a, a, even);
        odd = VEC_FMA(b, b, odd);
    }
    if (i < whole) {
        VEC a = load(x + i) - mean;
        even = VEC_FMA(a, a, even);
    }
    return sum(even + odd);
}

/* y = LayerNorm(x) (1 + scale) + shift with the mean given: two passes, since the one-pass formula
 * of the variance cancels. */
INLINE void normalise(const struct dt_row *row, float mean)
{
    const float *x = row->x;
    ACT *y = row->y;
    int n = row->channels, whole = n / LANES * LANES, rest = n - whole;
    float variance = squares_of(row, mean);
    for (int i = whole; i < n; i++)
        variance += (x[i] - mean) * (x[i] - mean);
    float inverse = 1.0f / sqrtf(variance / (float)n + 1e-6f);
    for (int i = 0; i < whole; i += LANES) {
        VEC unit = (load(x + i) - mean) * inverse;
        __builtin_prefetch(y + n + i, 1);
        store_act(y + i, VEC_FMA(unit, load(row->scale + i) + 1.0f, load(row->shift + i)));
    }
    if (rest > 0) {
        VEC unit = (load_part(x + whole, rest) - mean) * inverse;
        VEC scale = load_part(row->scale + whole, rest) + 1.0f;
        store_act_part(y + whole, VEC_FMA(unit, scale, load_part(row->shift + whole, rest)), rest);
    }
}

static void modulate_row(const struct dt_row *row)
{
    const float *x = row->x;
    VEC even = {0}, odd = {0};
    int n = row->channels, i = 0;
    for (; i + 2 * LANES <= n; i += 2 * LANES) {
        even += load(x + i);
        odd += load(x + i + LANES);
    }
    for (; i < n; i += LANES)
        even += load_part(x + i, n - i < LANES ? n - i : LANES);
    normalise(row, sum(even + odd) / (float)n);
}

INLINE VEC add_gated(const struct dt_row *row, int i)
{
    VEC v = VEC_FMA(load(row->gate + i), load_act((const ACT *)row->branch + i), load(row->x + i));
    store(row->x + i, v);
    return v;
}

/* x += gate branch, and the mean of x: the row is read from memory once. */
static void residual_row(const struct dt_row *row)
{
    float *x = row->x;
    VEC even = {0}, odd = {0};
    int n = row->channels, whole = n / LANES * LANES, rest = n - whole, i = 0;
    for (; i + 2 * LANES <= whole; i += 2 * LANES) {
        even += add_gated(row, i);
        odd += add_gated(row, i + LANES);
    }
    if (i < whole)
        even += add_gated(row, i);
    if (rest > 0) {
        VEC v = VEC_FMA(load_part(row->gate + whole, rest),
                        load_act_part((const ACT *)row->branch + whole, rest),
                        load_part(x + whole, rest));
        store_part(x + whole, v, rest);
        odd += v;
    }
    normalise(row, sum(even + odd) / (float)n);
}

static void blend_row(void *to, float a, const void *from, float b, int n)
{
    ACT *x = to;
    const ACT *y = from;
    int i = 0;
    for (; i + LANES <= n; i += LANES)
        store_act(x + i, VEC_FMA(splat(b), load_act(y + i), load_act(x + i) * a));
    if (i < n)
        store_act_part(
            x + i, VEC_FMA(splat(b), load_act_part(y + i, n - i), load_act_part(x + i, n - i) * a),
            n - i);
}
