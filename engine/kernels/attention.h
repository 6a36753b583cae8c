/* Attention over a paged cache, included by cpu.c, whose promise it keeps: in every sum a row stands alone, and its keys
 * come in one order, so that neither the rows beside it nor the blocks below change its bits.
 *
 * A task is some rows of the query heads that share a key/value head, in tiles of ROWS rows (or of one). It goes through
 * the keys, and then through the values, in blocks that stay in the first-level cache while every tile uses them.
 */
#ifndef SPECD_ATTENTION_H
#define SPECD_ATTENTION_H

/* Keys, and 8-lane chunks of a value, in hand at once: for a row alone, and for a tile of ROWS rows. */
enum { KEYS = 8, KEYS_OF_TILE = 3, CHUNKS = 8, CHUNKS_OF_TILE = 2 };
enum { BUNDLE = 32, KEY_BLOCK = 48 }; /* query rows of a task, all its heads together; keys of a block */

/* One call. base: the first position of slots (spans) or the positions before the block (mask). stride: floats of a row
 * of scores, a multiple of 8. */
typedef struct {
    const float *q, *k_cache, *v_cache;
    const int64_t *slots, *spans;
    const uint8_t *mask;
    float scale, *out;
    int64_t base, total, stride, M, Hq, G, D, is_span;
} Attention;

/* ROWS query rows of a head, or one: rows of q and out are Hq D apart. Cache rows slots[0..shared) are every row's,
 * own[r][0..count[r]) are row r's besides; of the shared ones row r skips the first skip[r]. */
typedef struct {
    const float *q;
    float *out, *scores;
    const int64_t *own[ROWS];
    int64_t shared, count[ROWS], skip[ROWS];
    float total[ROWS];
    int rows;
} Tile;

/* scores[r, n] = q[r] . key n * scale for the rows r < R and the n < keys keys of cache rows slots[n]. R, keys: constants. */
INLINE void score(const float *q, int64_t q_stride, int R, const float *K, int64_t kv_stride, const int64_t *slots, int keys,
                  int64_t D, float scale, float *scores, int64_t stride) {
    f8 acc[KEYS][ROWS] = {0};
    int64_t d = 0;
    for (; d + LANES <= D; d += LANES) {
        f8 key[KEYS];
        for (int n = 0; n < keys; n++) key[n] = load_f32(K + slots[n] * kv_stride, d);
        for (int r = 0; r < R; r++) {
            f8 query = load_f32(q + r * q_stride, d);
            for (int n = 0; n < keys; n++) acc[n][r] = fma8(query, key[n], acc[n][r]);
        }
    }
    if (d < D)
        for (int n = 0; n < keys; n++) {
            f8 key = load_part(K + slots[n] * kv_stride, d, (int)(D - d));
            for (int r = 0; r < R; r++) acc[n][r] = fma8(load_part(q + r * q_stride, d, (int)(D - d)), key, acc[n][r]);
        }
    if (R == 1 && keys == KEYS) {
        for (int n = 0; n < KEYS; n += 4)
            *(f4 *)(scores + n) = lane_sum4(acc[n][0], acc[n + 1][0], acc[n + 2][0], acc[n + 3][0]) * scale;
        return;
    }
    for (int n = 0; n < keys; n++) {
        if (R == ROWS) {
            f4 sums = lane_sum4(acc[n][0], acc[n][1], acc[n][2], acc[n][3]);
            for (int r = 0; r < R; r++) scores[r * stride + n] = sums[r] * scale;
        } else
            for (int r = 0; r < R; r++) scores[r * stride + n] = lane_sum(acc[n][r]) * scale;
    }
}

/* Scores of the shared keys first..last-1. */
INLINE void score_block(const Attention *a, Tile *t, int R, const float *K, int64_t first, int64_t last) {
    int64_t j = first, kv_stride = a->G * a->D, q_stride = a->Hq * a->D;
    int many = R == ROWS ? KEYS_OF_TILE : KEYS;
    for (; j + many <= last; j += many) {
        score(t->q, q_stride, R, K, kv_stride, a->slots + j, many, a->D, a->scale, t->scores + j, a->stride);
    }
    for (; j < last; j++) score(t->q, q_stride, R, K, kv_stride, a->slots + j, 1, a->D, a->scale, t->scores + j, a->stride);
}

/* Scores of each row's own keys, then weights e^(score - top) in place of all its scores, and their sum. */
static void weigh(const Attention *a, Tile *t, const float *K) {
    for (int r = 0; r < t->rows; r++) {
        float *s = t->scores + r * a->stride, top = -INFINITY;
        for (int64_t n = 0; n < t->count[r]; n++)
            score(t->q + r * a->Hq * a->D, 0, 1, K, a->G * a->D, t->own[r] + n, 1, a->D, a->scale, s + t->shared + n, 0);
        int64_t first = t->skip[r], count = t->shared + t->count[r];
        for (int64_t n = 0; n < first; n++) s[n] = -INFINITY;
        for (int64_t n = first; n < count; n++) top = s[n] > top ? s[n] : top;
        for (int64_t n = count; n < a->stride; n++) s[n] = -INFINITY;
        f8 sum = {0};
        for (int64_t n = 0; n < count; n += LANES) {
            f8 left = load_f32(s, n), p = exp8(left - splat(top));
            p = select8(left == splat(-INFINITY), splat(0.0f), p);
            *(f8 *)(s + n) = p;
            sum += p;
        }
        t->total[r] = lane_sum(sum);
    }
}

/* out[r, d..d + 8 chunks) += sum over the shared keys first..last-1, in order, of weight times value. R, chunks: constants. */
INLINE void mix(const Attention *a, Tile *t, int R, const float *V, int64_t d, int chunks, int64_t first, int64_t last) {
    f8 acc[CHUNKS][ROWS];
    for (int r = 0; r < R; r++)
        for (int c = 0; c < chunks; c++) acc[c][r] = load_f32(t->out + r * a->Hq * a->D, d + LANES * c);
    for (int64_t j = first; j < last; j++) {
        const float *from = V + a->slots[j] * a->G * a->D + d;
        f8 value[CHUNKS];
        for (int c = 0; c < chunks; c++) value[c] = load_f32(from, LANES * c);
        for (int r = 0; r < R; r++) {
            f8 weight = splat(t->scores[r * a->stride + j]);
            for (int c = 0; c < chunks; c++) acc[c][r] = fma8(weight, value[c], acc[c][r]);
        }
    }
    for (int r = 0; r < R; r++)
        for (int c = 0; c < chunks; c++) *(f8 *)(t->out + r * a->Hq * a->D + d + LANES * c) = acc[c][r];
}

INLINE void mix_block(const Attention *a, Tile *t, int R, const float *V, int64_t first, int64_t last) {
    int64_t d = 0;
    int many = R == ROWS ? CHUNKS_OF_TILE : CHUNKS;
    for (; d + many * LANES <= a->D; d += many * LANES) mix(a, t, R, V, d, many, first, last);
    for (; d + LANES <= a->D; d += LANES) mix(a, t, R, V, d, 1, first, last);
    for (; d < a->D; d++)
        for (int r = 0; r < R; r++) {
            float acc = t->out[r * a->Hq * a->D + d];
            for (int64_t j = first; j < last; j++)
                acc += t->scores[r * a->stride + j] * V[a->slots[j] * a->G * a->D + d];
            t->out[r * a->Hq * a->D + d] = acc;
        }
}

/* Each row's own values, after all shared ones, and the division by the sum of the weights. */
static void finish(const Attention *a, Tile *t, const float *V) {
    for (int r = 0; r < t->rows; r++) {
        const float *weight = t->scores + r * a->stride + t->shared;
        float *out = t->out + r * a->Hq * a->D;
        int64_t d = 0;
        for (; d + LANES <= a->D; d += LANES) {
            f8 acc = load_f32(out, d);
            for (int64_t n = 0; n < t->count[r]; n++)
                acc = fma8(splat(weight[n]), load_f32(V + t->own[r][n] * a->G * a->D, d), acc);
            *(f8 *)(out + d) = acc / splat(t->total[r]);
        }
        for (; d < a->D; d++) {
            float acc = out[d];
            for (int64_t n = 0; n < t->count[r]; n++) acc += weight[n] * V[t->own[r][n] * a->G * a->D + d];
            out[d] = acc / t->total[r];
        }
    }
}

/* What the t->rows rows from row m on see; own: memory for ROWS M cache rows of a tree. */
static void see(const Attention *a, Tile *t, int64_t m, int64_t *own) {
    t->shared = a->mask ? a->base : a->is_span ? a->total : a->base + m + 1;
    for (int r = 0; a->spans && r < t->rows; r++) t->shared = MIN(t->shared, a->spans[2 * (m + r) + 1] - a->base);
    for (int r = 0; r < t->rows; r++) {
        t->skip[r] = a->spans ? a->spans[2 * (m + r)] - a->base : 0;
        t->own[r] = a->mask ? own + r * a->M : a->slots + t->shared;
        t->count[r] = a->mask || (a->is_span && !a->spans) ? 0
                      : a->spans                          ? a->spans[2 * (m + r) + 1] - a->base - t->shared
                                                          : r;
        for (int64_t j = 0; a->mask && j < a->M; j++)
            if (a->mask[(m + r) * a->M + j]) own[r * a->M + t->count[r]++] = a->slots[a->base + j];
    }
}

/* Rows of a task: BUNDLE over its heads, in whole tiles. */
static int64_t task_rows(const Attention *a) {
    int64_t rows = BUNDLE / (a->Hq / a->G) / ROWS * ROWS;
    return rows < ROWS ? ROWS : rows;
}

static void attention_task(void *argument, int64_t index) {
    const Attention *a = argument;
    int64_t group = a->Hq / a->G, g = index % a->G, most = task_rows(a), m0 = index / a->G * most, m1 = MIN(m0 + most, a->M);
    int64_t rows = m1 - m0, floats = group * rows * a->stride, tiles = rows / ROWS + rows % ROWS, longest = 0;
    float *scores = scratch_floats(floats + (a->mask ? 2 * rows * a->M : 0) + group * tiles * (int64_t)(sizeof(Tile) / 4 + 1));
    Tile *tile = (Tile *)(scores + floats); /* floats is a multiple of 8: aligned */
    int64_t *own = (int64_t *)(tile + group * tiles);
    const float *K = a->k_cache + g * a->D, *V = a->v_cache + g * a->D;
    int64_t n = 0;
    for (int64_t m = m0; m < m1; m += tile[n - 1].rows) {
        Tile seen = {.rows = m1 - m >= ROWS ? ROWS : 1};
        see(a, &seen, m, own + (m - m0) * a->M);
        longest = seen.shared > longest ? seen.shared : longest;
        for (int64_t h = 0; h < group; h++, n++) {
            int64_t at = (m * a->Hq + g * group + h) * a->D;
            tile[n] = seen;
            tile[n].q = a->q + at;
            tile[n].out = a->out + at;
            tile[n].scores = scores + ((m - m0) * group + h * seen.rows) * a->stride;
            for (int r = 0; r < seen.rows; r++) memset(tile[n].out + r * a->Hq * a->D, 0, sizeof(float) * a->D);
        }
    }
    for (int64_t first = 0; first < longest; first += KEY_BLOCK)
        for (int64_t i = 0; i < n; i++) {
            int64_t last = MIN(first + KEY_BLOCK, tile[i].shared);
            if (tile[i].rows == ROWS) score_block(a, tile + i, ROWS, K, first, last);
            else score_block(a, tile + i, 1, K, first, last);
        }
    for (int64_t i = 0; i < n; i++) weigh(a, tile + i, K);
    for (int64_t first = 0; first < longest; first += KEY_BLOCK)
        for (int64_t i = 0; i < n; i++) {
            int64_t last = MIN(first + KEY_BLOCK, tile[i].shared);
            if (tile[i].rows == ROWS) mix_block(a, tile + i, ROWS, V, first, last);
            else mix_block(a, tile + i, 1, V, first, last);
        }
    for (int64_t i = 0; i < n; i++) finish(a, tile + i, V);
}

/* Runs `a` over positions first..first+total-1 of the page table. */
static void attend(int threads, Attention *a, const int32_t *table, int64_t page, int64_t first) {
    int64_t *slots = malloc(sizeof(int64_t) * a->total), most = task_rows(a);
    if (!slots) abort();
    for (int64_t p = 0; p < a->total; p++) slots[p] = (int64_t)table[(first + p) / page] * page + (first + p) % page;
    a->slots = slots;
    a->stride = (a->total + LANES - 1) / LANES * LANES;
    parallel_for(threads, attention_task, a, (a->M + most - 1) / most * a->G);
    free(slots);
}

/* out[M, Hq, D]: row m sees the `base` cached positions before the block and, within the block, itself and the rows
 * before it (mask NULL: a chain) or the rows that mask[m, :] names (a tree, in depth order). Keys and values of
 * position p lie in cache row table[p / page] * page + p % page of k_cache, v_cache [slots, G, D]. */
void specd_attention(int threads, const float *q, const float *k_cache, const float *v_cache, const int32_t *table,
                     int64_t page, int64_t base, const uint8_t *mask, float scale, float *out, int64_t M, int64_t Hq,
                     int64_t G, int64_t D) {
    Attention a = {.q = q, .k_cache = k_cache, .v_cache = v_cache, .mask = mask, .scale = scale, .out = out, .base = base,
                   .total = base + M, .M = M, .Hq = Hq, .G = G, .D = D};
    attend(threads, &a, table, page, 0);
}

/* out[M, Hq, D]: row m sees cache places start..stop-1, or of those spans[m, 0]..spans[m, 1]-1 where spans [M, 2] is
 * given. Places are numbered as the positions of specd_attention. */
void specd_span_attention(int threads, const float *q, const float *k_cache, const float *v_cache, const int32_t *table,
                          int64_t page, int64_t start, int64_t stop, const int64_t *spans, float scale, float *out,
                          int64_t M, int64_t Hq, int64_t G, int64_t D) {
    Attention a = {.q = q, .k_cache = k_cache, .v_cache = v_cache, .spans = spans, .scale = scale, .out = out, .base = start,
                   .total = stop - start, .M = M, .Hq = Hq, .G = G, .D = D, .is_span = 1};
    attend(threads, &a, table, page, start);
}

#endif
