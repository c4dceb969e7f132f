/* SPDX-License-Identifier: MIT */
/* simd_attention_body - float32 attention of one tile of queries; the includer has included
 * simd_vec_body.h and defines ROWS (keys, or channels, of a register block; divides 8)
 *
 * Queries stay in the lanes: scores are computed transposed, [keys, queries], so that row maxima
 * and sums need no shuffles, K and V are read by broadcast in memory order, and any D works without
 * masks. A tile of keys and values is copied once into scratch, where rows are adjacent for any
 * stride of the tensor.
 */
#define COLS  2              /* vectors of a register block */
#define WIDTH (COLS * LANES) /* queries of a register block */

/* One thread's scratch; its size is in model/layout.c. */
struct work {
    float *queries; /* [tile_q/WIDTH][channels][WIDTH] scaled queries */
    float *out;     /* the same shape: outputs so far, not yet divided by sums */
    float *maxima;  /* [tile_q] of the scores so far */
    float *sums;    /* [tile_q] of exp(score - maximum) */
    float *scores;  /* [tile_kv][WIDTH] */
    float *keys;    /* [tile_kv][channels] */
    float *values;  /* [tile_kv][channels] */
    int channels;   /* D rounded up to 8 */
    int keys_here;
};

/* out[ROWS keys][WIDTH queries] = keys queries */
static void score_block(const float *keys, int64_t stride, int head, const float *queries,
                        float *out)
{
    VEC acc[ROWS][COLS] = {0};
    for (int d = 0; d < head; d++) {
        VEC q0 = load(queries + d * WIDTH), q1 = load(queries + d * WIDTH + LANES);
        for (int r = 0; r < ROWS; r++) {
            VEC k = splat(keys[r * stride + d]);
            acc[r][0] = VEC_FMA(k, q0, acc[r][0]);
            acc[r][1] = VEC_FMA(k, q1, acc[r][1]);
        }
    }
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < COLS; c++)
            store(out + r * WIDTH + c * LANES, acc[r][c]);
}

/* out[ROWS channels][WIDTH queries] = decay out + values^T scores */
static void value_block(const struct work *work, const float *values, const float *decay,
                        float *out)
{
    VEC acc[ROWS][COLS];
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < COLS; c++)
            acc[r][c] = load(out + r * WIDTH + c * LANES) * load(decay + c * LANES);
    for (int j = 0; j < work->keys_here; j++) {
        const float *row = values + (int64_t)j * work->channels;
        VEC p0 = load(work->scores + j * WIDTH), p1 = load(work->scores + j * WIDTH + LANES);
        for (int r = 0; r < ROWS; r++) {
            VEC v = splat(row[r]);
            acc[r][0] = VEC_FMA(v, p0, acc[r][0]);
            acc[r][1] = VEC_FMA(v, p1, acc[r][1]);
        }
    }
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < COLS; c++)
            store(out + r * WIDTH + c * LANES, acc[r][c]);
}

/* Scores become exp(score - new maximum); decay[WIDTH] is the factor for
 * earlier sums and outputs. */
static void soften_scores(float *scores, int keys, float *maxima, float *sums, float *decay)
{
    for (int c = 0; c < WIDTH; c += LANES) {
        VEC old = load(maxima + c), top = old, total = {0};
        for (int j = 0; j < keys; j++)
            top = VEC_MAX(load(scores + j * WIDTH + c), top);
        for (int j = 0; j < keys; j++) {
            VEC p = exp_vec(load(scores + j * WIDTH + c) - top);
            store(scores + j * WIDTH + c, p);
            total += p;
        }
        VEC scale = exp_vec(old - top);
        store(decay + c, scale);
        store(maxima + c, top);
        store(sums + c, VEC_FMA(load(sums + c), scale, total));
    }
}

static void split_scratch(struct work *work, const struct dt_attention *op, float *scratch)
{
    int queries = (op->tile.tile_q + 31) / 32 * 32, keys = (op->tile.tile_kv + 7) / 8 * 8;
    work->channels = (op->head + 7) / 8 * 8;
    work->queries = scratch;
    work->out = work->queries + (int64_t)queries * work->channels;
    work->maxima = work->out + (int64_t)queries * work->channels;
    work->sums = work->maxima + queries;
    work->scores = work->sums + queries;
    work->keys = work->scores + (int64_t)keys * 32;
    work->values = work->keys + (int64_t)keys * work->channels;
}

/* Transposes and scales the queries; lanes beyond count are zero. */
static void take_queries(const struct work *work, const struct dt_attention *op, const float *q,
                         int count)
{
    float scale = 1.0f / sqrtf((float)op->head);
    for (int i = 0; i < (count + WIDTH - 1) / WIDTH * WIDTH; i++) {
        const float *row = q + i * op->q_at.row;
        float *to = work->queries + (int64_t)(i / WIDTH) * work->channels * WIDTH + i % WIDTH;
        for (int d = 0; d < op->head; d++)
            to[d * WIDTH] = i < count ? row[d] * scale : 0.0f;
        work->maxima[i] = -FLT_MAX / 4;
        work->sums[i] = 0.0f;
    }
    int64_t blocks = (count + WIDTH - 1) / WIDTH;
    memset(work->out, 0, (size_t)(blocks * work->channels * WIDTH) * sizeof(float));
}

/* Copies a tile; rows up to a multiple of ROWS and channels beyond D are zero. */
static void take_tile(const struct work *work, const struct dt_attention *op, const float *from,
                      float *to)
{
    int rows = (work->keys_here + ROWS - 1) / ROWS * ROWS;
    size_t pad = (size_t)(work->channels - op->head) * sizeof(float);
    for (int j = 0; j < rows; j++, to += work->channels) {
        if (j >= work->keys_here) {
            memset(to, 0, (size_t)work->channels * sizeof(float));
            continue;
        }
        memcpy(to, from + j * op->kv_at.row, (size_t)op->head * sizeof(float));
        memset(to + op->head, 0, pad);
    }
}

static void attend_tile(const struct work *work, const struct dt_attention *op, int count)
{
    float decay[WIDTH];
    for (int block = 0; block * WIDTH < count; block++) {
        int64_t at = (int64_t)block * work->channels * WIDTH;
        for (int j = 0; j < work->keys_here; j += ROWS)
            score_block(work->keys + (int64_t)j * work->channels, work->channels, op->head,
                        work->queries + at, work->scores + j * WIDTH);
        soften_scores(work->scores, work->keys_here, work->maxima + block * WIDTH,
                      work->sums + block * WIDTH, decay);
        for (int d = 0; d < work->channels; d += ROWS)
            value_block(work, work->values + d, decay, work->out + at + d * WIDTH);
    }
}

static void attention_rows(const struct dt_attention *op, int sequence, int head, int first,
                           float *scratch)
{
    struct work work;
    int count = op->queries - first < op->tile.tile_q ? op->queries - first : op->tile.tile_q;
    int64_t column = (int64_t)head * op->head;
    const float *k = (const float *)op->k + sequence * op->kv_at.sequence + column;
    const float *v = (const float *)op->v + sequence * op->kv_at.sequence + column;
    const float *q = (const float *)op->q + sequence * op->q_at.sequence + column;
    split_scratch(&work, op, scratch);
    take_queries(&work, op, q + first * op->q_at.row, count);
    for (int j = 0; j < op->keys; j += op->tile.tile_kv) {
        work.keys_here = op->keys - j < op->tile.tile_kv ? op->keys - j : op->tile.tile_kv;
        take_tile(&work, op, k + j * op->kv_at.row, work.keys);
        take_tile(&work, op, v + j * op->kv_at.row, work.values);
        attend_tile(&work, op, count);
    }
    for (int i = 0; i < count; i++) {
        const float *from = work.out + (int64_t)(i / WIDTH) * work.channels * WIDTH + i % WIDTH;
        float *to = (float *)op->out + sequence * op->out_at.sequence +
                    (first + i) * op->out_at.row + column;
        float inverse = work.sums[i] > 0.0f ? 1.0f / work.sums[i] : 0.0f;
        for (int d = 0; d < op->head; d++)
            to[d] = from[d * WIDTH] * inverse;
        if (op->lse != NULL)
            op->lse[((int64_t)sequence * op->heads + head) * op->queries + first + i] =
                work.maxima[i] + logf(work.sums[i]);
    }
}
