/* The model's operations on a CPU, in float32, for any number of rows.
 *
 * Promise: a row's result depends on that row's inputs alone, never on how many rows are computed with it. Every sum has
 * one order: 8 lanes over the reduced index, lane l taking elements l, l+8, l+16, ..., then a fixed tree over the lanes.
 * That is what makes a verify step of k+1 rows bit-equal to k+1 decode steps.
 *
 * Weights are float32 or bfloat16 (widened exactly, so bfloat16 storage halves the bytes read and changes nothing).
 * Compiled by cpu.py; the torch twin of each function, and its test oracle, is in ../ops.py.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "pool.h"

#define INLINE static inline __attribute__((always_inline))
#define MIN(a, b) ((a) < (b) ? (a) : (b))

/* A thread's own scratch memory: n floats, valid until its next call. */
static float *scratch_floats(int64_t n) {
    static _Thread_local float *memory;
    static _Thread_local int64_t size;
    if (n > size) {
        free(memory);
        size = n + n / 2;
        memory = malloc(sizeof(float) * size);
        if (!memory) abort();
    }
    return memory;
}

typedef float f8 __attribute__((vector_size(32), aligned(4)));
typedef float f4 __attribute__((vector_size(16), aligned(4)));
typedef int32_t i4 __attribute__((vector_size(16)));
typedef int32_t i8 __attribute__((vector_size(32)));
typedef uint32_t u8 __attribute__((vector_size(32)));
typedef uint16_t h8 __attribute__((vector_size(16), aligned(2)));

/* Without it gcc reads x from memory once for every product. */
#if defined(__x86_64__) && defined(__AVX__)
#define IN_REGISTER(v) __asm__("" : "+x"(v))
#else
#define IN_REGISTER(v) (void)(v)
#endif

enum { LANES = 8, N_BLOCK = 4, M_BLOCK = 3, M_TILE = 96, ROWS = 4 };

INLINE float lane_sum(f8 a) { return ((a[0] + a[4]) + (a[2] + a[6])) + ((a[1] + a[5]) + (a[3] + a[7])); }
/* lane_sum of four accumulators at once, in the same order of additions. */
#if defined(__clang__) || __GNUC__ >= 12
#define PICK(a, b, i, j, k, l) __builtin_shufflevector(a, b, i, j, k, l)
#else
#define PICK(a, b, i, j, k, l) __builtin_shuffle(a, b, (i4){i, j, k, l})
#endif
INLINE f4 fold(f8 a) {
    f4 half[2];
    memcpy(half, &a, sizeof a);
    return half[0] + half[1];
}
INLINE f4 lane_sum4(f8 a, f8 b, f8 c, f8 d) {
    f4 p = fold(a), q = fold(b), r = fold(c), s = fold(d);
    f4 pq = PICK(p, q, 0, 1, 4, 5) + PICK(p, q, 2, 3, 6, 7), rs = PICK(r, s, 0, 1, 4, 5) + PICK(r, s, 2, 3, 6, 7);
    return PICK(pq, rs, 0, 2, 4, 6) + PICK(pq, rs, 1, 3, 5, 7);
}
INLINE f8 splat(float a) { return (f8){a, a, a, a, a, a, a, a}; }

/* a * b + c. Written out, since a compiler left to fuse as it likes does so in one place and not in another. */
#if defined(__FMA__)
#include <immintrin.h>
INLINE f8 fma8(f8 a, f8 b, f8 c) { return (f8)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c); }
#elif defined(__ARM_NEON)
#include <arm_neon.h>
INLINE f8 fma8(f8 a, f8 b, f8 c) {
    float32x4_t x[2], y[2], z[2];
    memcpy(x, &a, sizeof a), memcpy(y, &b, sizeof b), memcpy(z, &c, sizeof c);
    for (int i = 0; i < 2; i++) z[i] = vfmaq_f32(z[i], x[i], y[i]);
    memcpy(&c, z, sizeof c);
    return c;
}
#else
INLINE f8 fma8(f8 a, f8 b, f8 c) { return a * b + c; }
#endif

/* 8 elements of row `w` from index `k`, as float32. `n` < 8 leaves zeros in the missing lanes. */
INLINE f8 load_f32(const float *w, int64_t k) { return *(const f8 *)(w + k); }
#if defined(__AVX2__) /* written out: gcc makes five instructions of the conversion below */
INLINE f8 load_bf16(const uint16_t *w, int64_t k) {
    return (f8)_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(w + k))), 16);
}
#else
INLINE f8 load_bf16(const uint16_t *w, int64_t k) {
    u8 wide = __builtin_convertvector(*(const h8 *)(w + k), u8) << 16;
    f8 out;
    memcpy(&out, &wide, sizeof out);
    return out;
}
#endif
INLINE f8 load_part(const float *w, int64_t k, int n) {
    f8 out = {0};
    for (int i = 0; i < n; i++) out[i] = w[k + i];
    return out;
}

/* y[m, n] for m < mb, n < nb: each an independent dot product in the one order. mb and nb are constants at each call. */
INLINE void dot_block(const float *x, int64_t ldx, int mb, const float *w, int64_t ldw, int nb, int64_t K,
                      const float *bias, float *y, int64_t ldy) {
    f8 acc[M_BLOCK][N_BLOCK] = {0};
    int64_t k = 0;
    for (; k + LANES <= K; k += LANES) {
        f8 xv[M_BLOCK];
        for (int m = 0; m < mb; m++) {
            xv[m] = load_f32(x + m * ldx, k);
            IN_REGISTER(xv[m]);
        }
        for (int n = 0; n < nb; n++) {
            f8 wv = load_f32(w + n * ldw, k);
            for (int m = 0; m < mb; m++) acc[m][n] = fma8(xv[m], wv, acc[m][n]);
        }
    }
    if (k < K)
        for (int n = 0; n < nb; n++) {
            f8 wv = load_part(w + n * ldw, k, (int)(K - k));
            for (int m = 0; m < mb; m++) acc[m][n] = fma8(load_part(x + m * ldx, k, (int)(K - k)), wv, acc[m][n]);
        }
    for (int m = 0; m < mb; m++) {
        float *to = y + m * ldy;
        if (nb == N_BLOCK)
            *(f4 *)to = lane_sum4(acc[m][0], acc[m][1], acc[m][2], acc[m][3]);
        else
            for (int n = 0; n < nb; n++) to[n] = lane_sum(acc[m][n]);
        if (bias)
            for (int n = 0; n < nb; n++) to[n] += bias[n];
    }
}

/* One row of x against nb bf16 rows of W (a multiple of 4, constant at each call) without the scratch copy: the decode
 * step. Eight sums at once hide the latency of the additions. */
INLINE void dot_row_bf16(const float *x, const uint16_t *w, int nb, int64_t K, const float *bias, float *y) {
    f8 acc[2 * N_BLOCK] = {0};
    for (int64_t k = 0; k < K; k += LANES) {
        f8 xv = load_f32(x, k);
        for (int n = 0; n < nb; n++) acc[n] = fma8(xv, load_bf16(w + n * K, k), acc[n]);
    }
    for (int n = 0; n < nb; n += 4) *(f4 *)(y + n) = lane_sum4(acc[n], acc[n + 1], acc[n + 2], acc[n + 3]);
    if (bias)
        for (int n = 0; n < nb; n++) y[n] += bias[n];
}

#define DOT(mb, nb) dot_block(xr, K, mb, rows, K, nb, K, b, yr, N)
#define DOT_N(mb)                                                                                                      \
    do {                                                                                                               \
        if (nb == 4) DOT(mb, 4);                                                                                       \
        else if (nb == 3) DOT(mb, 3);                                                                                  \
        else if (nb == 2) DOT(mb, 2);                                                                                  \
        else DOT(mb, 1);                                                                                               \
    } while (0)

typedef struct {
    const float *x, *bias;
    const void *W;
    float *y;
    int64_t M, N, K;
    int is_bf16;
} Product;

enum { CHUNK = 16 }; /* blocks of N_BLOCK rows of W that a thread takes at once */

/* The columns of y that belong to the index-th chunk of W's rows. */
static void linear_chunk(void *argument, int64_t index) {
    const Product *p = argument;
    int64_t M = p->M, N = p->N, K = p->K, last = MIN((index + 1) * CHUNK * N_BLOCK, N);
    float *scratch = p->is_bf16 ? scratch_floats(N_BLOCK * K) : NULL;
    for (int64_t m0 = 0; m0 < M; m0 += M_TILE) {
        int64_t m1 = MIN(m0 + M_TILE, M);
        for (int64_t n0 = index * CHUNK * N_BLOCK; n0 < last; n0 += N_BLOCK) {
            int nb = (int)MIN(N_BLOCK, N - n0);
            const float *b = p->bias ? p->bias + n0 : NULL, *rows = (const float *)p->W + n0 * K;
            if (p->is_bf16) {
                const uint16_t *w = (const uint16_t *)p->W + n0 * K;
                if (M == 1 && K % LANES == 0 && last - n0 >= 2 * N_BLOCK) {
                    dot_row_bf16(p->x, w, 2 * N_BLOCK, K, b, p->y + n0);
                    n0 += N_BLOCK;
                    continue;
                }
                int64_t i = 0, count = nb * K;
                for (; i + LANES <= count; i += LANES) *(f8 *)(scratch + i) = load_bf16(w, i);
                for (; i < count; i++) {
                    uint32_t bits = (uint32_t)w[i] << 16;
                    memcpy(scratch + i, &bits, 4);
                }
                rows = scratch;
            }
            for (int64_t m = m0; m < m1; m += M_BLOCK) {
                const float *xr = p->x + m * K;
                float *yr = p->y + m * N + n0;
                int64_t mb = MIN(M_BLOCK, m1 - m);
                if (mb == 3) DOT_N(3);
                else if (mb == 2) DOT_N(2);
                else DOT_N(1);
            }
        }
    }
}

/* y[M, N] = x[M, K] W[N, K]^T + bias[N]; W is bfloat16 where is_bf16, else float32. */
void specd_linear(int threads, const float *x, const void *W, int is_bf16, const float *bias, float *y, int64_t M, int64_t N,
                  int64_t K) {
    Product product = {x, bias, W, y, M, N, K, is_bf16};
    parallel_for(threads, linear_chunk, &product, (N + CHUNK * N_BLOCK - 1) / (CHUNK * N_BLOCK));
}

INLINE float rms_scale(const float *x, int64_t n, float eps) {
    f8 acc = {0};
    int64_t k = 0;
    for (; k + LANES <= n; k += LANES) acc = fma8(load_f32(x, k), load_f32(x, k), acc);
    if (k < n) acc = fma8(load_part(x, k, (int)(n - k)), load_part(x, k, (int)(n - k)), acc);
    return 1.0f / sqrtf(lane_sum(acc) / (float)n + eps);
}

/* x[M, H] += delta[M, H] (where given), then out = x / rms(x) * weight. */
void specd_add_rms_norm(float *x, const float *delta, const float *weight, float eps, float *out, int64_t M, int64_t H) {
    for (int64_t m = 0; m < M; m++) {
        float *row = x + m * H;
        if (delta)
            for (int64_t i = 0; i < H; i++) row[i] += delta[m * H + i];
        float scale = rms_scale(row, H, eps);
        for (int64_t i = 0; i < H; i++) out[m * H + i] = row[i] * scale * weight[i];
    }
}

INLINE void norm_rope(const float *in, const float *weight, float eps, const float *cosine, const float *sine, float *out,
                      int64_t D) {
    float scale = weight ? rms_scale(in, D, eps) : 1.0f;
    int64_t half = D / 2;
    for (int64_t i = 0; i < half; i++) {
        float a = in[i] * scale * (weight ? weight[i] : 1.0f);
        float b = in[i + half] * scale * (weight ? weight[i + half] : 1.0f);
        out[i] = a * cosine[i] - b * sine[i];
        out[i + half] = b * cosine[i] + a * sine[i];
    }
}

/* Splits qkv[M, (Hq + 2 G) D]; q and k get their norm (where weights are given) and RoPE at the row's position;
 * q goes to q_out[M, Hq, D], k and v to the cache rows slots[m] of k_cache, v_cache [slots, G, D].
 * cosine, sine: [M, D/2]. */
void specd_qk_norm_rope_store(const float *qkv, const float *q_weight, const float *k_weight, float eps,
                              const float *cosine, const float *sine, const int64_t *slots, float *q_out, float *k_cache,
                              float *v_cache, int64_t M, int64_t Hq, int64_t G, int64_t D) {
    for (int64_t m = 0; m < M; m++) {
        const float *row = qkv + m * (Hq + 2 * G) * D, *c = cosine + m * D / 2, *s = sine + m * D / 2;
        for (int64_t h = 0; h < Hq; h++) norm_rope(row + h * D, q_weight, eps, c, s, q_out + (m * Hq + h) * D, D);
        for (int64_t g = 0; g < G; g++)
            norm_rope(row + (Hq + g) * D, k_weight, eps, c, s, k_cache + (slots[m] * G + g) * D, D);
        memcpy(v_cache + slots[m] * G * D, row + (Hq + G) * D, sizeof(float) * G * D);
    }
}

/* mask ? a : b, lane by lane; mask lanes are 0 or -1 as comparisons give them. */
INLINE f8 select8(i8 mask, f8 a, f8 b) {
    i8 ai, bi;
    memcpy(&ai, &a, sizeof ai);
    memcpy(&bi, &b, sizeof bi);
    ai = (ai & mask) | (bi & ~mask);
    memcpy(&a, &ai, sizeof a);
    return a;
}

/* e^x for x <= 0: range reduction by log 2 and a degree-6 polynomial; relative error about 2e-7. */
INLINE f8 exp8(f8 x) {
    x = select8(x < splat(-87.0f), splat(-87.0f), x);
    f8 t = x * splat(1.44269504f) - splat(0.5f);
    i8 n = __builtin_convertvector(t, i8); /* truncation of x log2(e) - 1/2 rounds to nearest for x <= 0 */
    f8 r = x - __builtin_convertvector(n, f8) * splat(0.693359375f);
    r -= __builtin_convertvector(n, f8) * splat(-2.12194440e-4f);
    f8 p = splat(1.9875691500e-4f);
    p = fma8(p, r, splat(1.3981999507e-3f));
    p = fma8(p, r, splat(8.3334519073e-3f));
    p = fma8(p, r, splat(4.1665795894e-2f));
    p = fma8(p, r, splat(1.6666665459e-1f));
    p = fma8(p, r, splat(5.0000001201e-1f));
    p = fma8(p * r, r, r) + splat(1.0f);
    i8 bits = (n + 127) << 23;
    f8 scale;
    memcpy(&scale, &bits, sizeof scale);
    return p * scale;
}

/* out[M, I] = silu(gate) * up, gate_up[M, 2 I]. silu(g) = g / (1 + e^-g), by e^-|g| so that nothing overflows. */
INLINE f8 silu8(f8 g) {
    f8 e = exp8(select8(g < splat(0.0f), g, -g)), one = splat(1.0f);
    return g * select8(g < splat(0.0f), e, one) / (one + e);
}
void specd_silu_mul(const float *gate_up, float *out, int64_t M, int64_t I) {
    for (int64_t m = 0; m < M; m++) {
        const float *gate = gate_up + m * 2 * I, *up = gate + I;
        int64_t i = 0;
        for (; i + LANES <= I; i += LANES) *(f8 *)(out + m * I + i) = silu8(load_f32(gate, i)) * load_f32(up, i);
        if (i < I) {
            f8 last = silu8(load_part(gate, i, (int)(I - i))) * load_part(up, i, (int)(I - i));
            for (int n = 0; i + n < I; n++) out[m * I + i + n] = last[n];
        }
    }
}

#include "attention.h"
