/* The tile layout of ops/cuda, checked on the CPU: matrices are packed as the GPU packs them, read
 * back lane by lane as its kernels read them, multiplied by a model of mma.m16n8k16 written from
 * the PTX manual, and compared with the plain product. */
#include "../ops/check.h"
#include "file/block.h"
#include "ops/cuda/layout.cuh"

/* PTX ISA, fragments of m16n8k16 for 16-bit types: register i of lane holds these (row, column). */
static int a_row(int lane, int i) {
    return lane / 4 + (i % 2) * 8;
}

static int a_col(int lane, int i, int half) {
    return lane % 4 * 2 + i / 2 * 8 + half;
}

static int b_row(int lane, int i, int half) {
    return lane % 4 * 2 + i * 8 + half;
}

struct fragment {
    double a[32][4][2], b[32][2][2];
};

static void mma(const struct fragment *f, double c[16][8]) {
    double a[16][16], b[16][8];
    for (int lane = 0; lane < 32; lane++)
        for (int half = 0; half < 2; half++) {
            for (int i = 0; i < 4; i++)
                a[a_row(lane, i)][a_col(lane, i, half)] = f->a[lane][i][half];
            for (int i = 0; i < 2; i++) b[b_row(lane, i, half)][lane / 4] = f->b[lane][i][half];
        }
    for (int m = 0; m < 16; m++)
        for (int n = 0; n < 8; n++)
            for (int k = 0; k < 16; k++) c[m][n] += a[m][k] * b[k][n];
}

static double bf(uint32_t pair, int half) {
    return (double)bf16_to_f32((bf16)(half ? pair >> 16 : pair & 0xFFFF));
}

/* The pairs of a lane's share of a chunk, as the kernels' expand() leaves them. */
static void expand_nvfp4(const uint8_t *tile, int n_chunk, int chunk, int lane, double lo[8][2],
                         double hi[8][2]) {
    uint32_t words[4];
    memcpy(words, tile + code_offset(chunk, lane), 16);
    const uint8_t *s = tile + scale_offset(n_chunk, chunk, lane);
    for (int p = 0; p < 8; p++)
        for (int half = 0; half < 2; half++) {
            lo[p][half] = bf(code_pair(words[p / 4], p % 4), half) * bf(scale_pair(s[0]), half);
            hi[p][half] = bf(code_pair(words[2 + p / 4], p % 4), half) * bf(scale_pair(s[1]), half);
        }
}

static void expand_bf16(const uint8_t *tile, int chunk, int lane, double lo[8][2],
                        double hi[8][2]) {
    for (int plane = 0; plane < 4; plane++)
        for (int i = 0; i < 8; i++) {
            bf16 v;
            memcpy(&v, tile + bf16_offset(chunk, plane, lane) + 2 * i, 2);
            double(*to)[2] = plane < 2 ? lo : hi;
            to[plane % 2 * 4 + i / 2][i % 2] = (double)bf16_to_f32(v);
        }
}

static void pack_nvfp4(const uint8_t *rows, int n_chunk, uint8_t *tile) {
    for (int chunk = 0; chunk < n_chunk; chunk++)
        for (int lane = 0; lane < 32; lane++)
            for (int half = 0; half < 2; half++) {
                uint32_t words[2], scale;
                const uint8_t *row = rows + (size_t)(lane / 4 + half * 8) * (size_t)n_chunk * 36;
                nvfp4_recode(row + (size_t)chunk * 36, lane % 4, words, &scale);
                memcpy(tile + code_offset(chunk, lane) + 8 * half, words, 8);
                tile[scale_offset(n_chunk, chunk, lane) + (uint32_t)half] = (uint8_t)scale;
            }
}

static void pack_bf16(const bf16 *rows, int n_in, int n_chunk, uint8_t *tile) {
    for (int chunk = 0; chunk < n_chunk; chunk++)
        for (int lane = 0; lane < 32; lane++)
            for (int plane = 0; plane < 4; plane++)
                for (int i = 0; i < 8; i++) {
                    int r = lane / 4 + plane / 2 * 8;
                    int k = chunk * CHUNK + lane % 4 * 16 + plane % 2 * 8 + i;
                    bf16 v = k < n_in ? rows[r * n_in + k] : 0;
                    memcpy(tile + bf16_offset(chunk, plane, lane) + 2 * i, &v, 2);
                }
}

/* tile * 8 rows of x, by the kernels' rule for which inputs a lane holds in step s. */
static void product(const uint8_t *tile, enum mat_format f, int n_in, const float *x,
                    double c[16][8]) {
    int n_chunk = chunks_of(n_in);
    memset(c, 0, sizeof(double) * 128);
    for (int chunk = 0; chunk < n_chunk; chunk++)
        for (int s = 0; s < 4; s++) {
            struct fragment g;
            for (int lane = 0; lane < 32; lane++) {
                double lo[8][2], hi[8][2];
                if (f == MAT_NVFP4) expand_nvfp4(tile, n_chunk, chunk, lane, lo, hi);
                else expand_bf16(tile, chunk, lane, lo, hi);
                for (int half = 0; half < 2; half++) {
                    int k = chunk * CHUNK + lane % 4 * 16 + 4 * s + half;
                    g.a[lane][0][half] = lo[2 * s][half];
                    g.a[lane][1][half] = hi[2 * s][half];
                    g.a[lane][2][half] = lo[2 * s + 1][half];
                    g.a[lane][3][half] = hi[2 * s + 1][half];
                    for (int i = 0; i < 2; i++) {
                        int at = k + 2 * i;
                        g.b[lane][i][half] = at < n_in ? (double)x[lane / 4 * n_in + at] : 0;
                    }
                }
            }
            mma(&g, c);
        }
}

static void compare(const char *name, const uint8_t *tile, enum mat_format f, int n_in,
                    const float *w, const float *x) {
    double c[16][8], want[128];
    float got[128];
    product(tile, f, n_in, x, c);
    for (int m = 0; m < 16; m++)
        for (int n = 0; n < 8; n++) {
            double sum = 0;
            for (int k = 0; k < n_in; k++) sum += (double)w[m * n_in + k] * (double)x[n * n_in + k];
            want[m * 8 + n] = sum;
            got[m * 8 + n] = (float)(c[m][n] * (f == MAT_NVFP4 ? (double)NVFP4_TILE_FACTOR : 1));
        }
    check_close(name, got, want, 128, 1e-4, 1e-6);
}

static void one_size(int n_in) {
    int n_chunk = chunks_of(n_in);
    char name[96];
    float *w = malloc((size_t)(16 * n_in) * sizeof *w);
    float *x = random_floats((size_t)(8 * n_in), 3);
    bf16 *b = malloc((size_t)(16 * n_in) * sizeof *b);
    uint8_t *tile = calloc(1, tile_bytes_of(MAT_BF16, n_chunk));
    uint64_t seed = 5;
    for (int i = 0; i < 16 * n_in; i++) w[i] = bf16_to_f32(b[i] = bf16_from_f32(uniform(&seed)));
    pack_bf16(b, n_in, n_chunk, tile);
    snprintf(name, sizeof name, "a bf16 tile of %d inputs multiplies as its rows do", n_in);
    compare(name, tile, MAT_BF16, n_in, w, x);
    if (n_in % 64 == 0) {
        size_t bytes = (size_t)(16 * n_chunk) * 36;
        uint8_t *blocks = malloc(bytes);
        for (size_t i = 0; i < bytes; i++) blocks[i] = (uint8_t)((uniform(&seed) + 1) * 128);
        for (size_t i = 0; i < bytes; i++)
            if (i % 36 < 4) blocks[i] &= 0x7F;
        block_decode(DT_NVFP4, blocks, (size_t)(16 * n_in), w);
        pack_nvfp4(blocks, n_chunk, tile);
        snprintf(name, sizeof name, "an NVFP4 tile of %d inputs multiplies as its rows do", n_in);
        compare(name, tile, MAT_NVFP4, n_in, w, x);
        free(blocks);
    }
    free(w);
    free(x);
    free(b);
    free(tile);
}

static void every_code_and_scale(void) {
    bool ok = true;
    for (int byte = 0; byte < 128; byte++)
        for (int code = 0; code < 16; code++) {
            uint8_t block[36] = {(uint8_t)byte};
            float want[64];
            uint32_t words[2], scale;
            block[4] = (uint8_t)code;
            block_decode(DT_NVFP4, block, 64, want);
            nvfp4_recode(block, 0, words, &scale);
            double got = bf(code_pair(words[0], 0), 0) * bf(scale_pair(scale), 0) *
                         (double)NVFP4_TILE_FACTOR;
            double exact = (double)bf16_round((float)(got / (double)NVFP4_TILE_FACTOR)) *
                           (double)NVFP4_TILE_FACTOR;
            if (got != (double)want[0] || exact != got) {
                printf("scale byte %d, code %d: got %g, want %g\n", byte, code, got, want[0]);
                ok = false;
            }
        }
    check_true("every code under every scale is exact in bf16", ok);
}

int main(void) {
    every_code_and_scale();
    static const int sizes[] = {16, 32, 64, 80, 96, 128, 192, 320, 512, 2048};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) one_size(sizes[i]);
    return n_failed != 0;
}
