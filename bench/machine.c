/* Bandwidth and peaks, measured the way the kernels could at best use them. Knows no model. */
#include "machine.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/size.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

static clockid_t clock_id = CLOCK_MONOTONIC;

void seconds_of_processor(void) {
    clock_id = CLOCK_PROCESS_CPUTIME_ID;
}

double seconds(void) {
    struct timespec t;
    clock_gettime(clock_id, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

enum { PART = 1 << 20, N_LOOP = 3 };

struct read_job {
    const char *buffer;
    int loop;
    uint64_t *sink; /* [n parts] so that no read is optimised away */
};

static uint64_t read_words(const char *p) {
    uint64_t s[4] = {0}, w[4];
    for (size_t i = 0; i < PART; i += sizeof w) {
        memcpy(w, p + i, sizeof w);
        for (int j = 0; j < 4; j++) s[j] += w[j];
    }
    return s[0] + s[1] + s[2] + s[3];
}

#if defined(__x86_64__)
#define WIDE __attribute__((target("avx2")))
WIDE static uint64_t read_wide(const char *p, size_t ahead) {
    __m256i s[4] = {_mm256_setzero_si256(), _mm256_setzero_si256(), _mm256_setzero_si256(),
                    _mm256_setzero_si256()};
    for (size_t i = 0; i < PART; i += 128) {
        if (ahead) {
            _mm_prefetch(p + i + ahead, _MM_HINT_T0);
            _mm_prefetch(p + i + ahead + 64, _MM_HINT_T0);
        }
        for (size_t j = 0; j < 4; j++)
            s[j] = _mm256_add_epi64(
                s[j], _mm256_loadu_si256((const __m256i *)(const void *)(p + i + 32 * j)));
    }
    __m256i t = _mm256_add_epi64(_mm256_add_epi64(s[0], s[1]), _mm256_add_epi64(s[2], s[3]));
    return (uint64_t)_mm256_extract_epi64(t, 0) + (uint64_t)_mm256_extract_epi64(t, 3);
}
#else
static uint64_t read_wide(const char *p, size_t ahead) {
    (void)ahead;
    return read_words(p);
}
#endif

static bool has_wide(void) {
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx2");
#else
    return false;
#endif
}

static void read_part(void *ctx, int64_t i) {
    const struct read_job *j = ctx;
    const char *p = j->buffer + i * PART;
    j->sink[i] =
        j->loop == 0 || !has_wide() ? read_words(p) : read_wide(p, j->loop == 2 ? 1024 : 0);
}

sumi_status machine_open(struct machine *m, struct pool *pool, size_t bytes, sumi_error *err) {
    *m = (struct machine){.pool = pool, .bytes = bytes / PART * PART};
    m->buffer = mem_aligned(m->bytes + 4096, 2 << 20);
    if (!m->buffer) return NO_MEMORY(err, m->bytes);
    memset(m->buffer, 1, m->bytes + 4096);
    return SUMI_OK;
}

void machine_reset(struct machine *m) {
    mem_free(m->buffer);
    *m = (struct machine){0};
}

void machine_read(struct machine *m) {
    static uint64_t sink[1 << 16];
    for (int loop = 0; loop < N_LOOP; loop++) {
        struct read_job j = {m->buffer, loop, sink};
        double t = seconds();
        pool_run(m->pool, (int64_t)(m->bytes / PART), read_part, &j);
        double rate = (double)m->bytes / (seconds() - t);
        if (rate > m->best_read) m->best_read = rate;
    }
}

#if defined(__x86_64__)
enum { ROUNDS = 4000000, CHAINS = 12 };

#define TWELVE(F)   F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8) F(9) F(10) F(11) F(12)
#define ZERO_512(i) "vpxorq %%zmm" #i ",%%zmm" #i ",%%zmm" #i "\n"
#define FMA_512(i)  "vfmadd231ps %%zmm0,%%zmm0,%%zmm" #i "\n"
#define FMA_256(i)  "vfmadd231ps %%ymm0,%%ymm0,%%ymm" #i "\n"
#define DOT_512(i)  "vdpbf16ps %%zmm0,%%zmm0,%%zmm" #i "\n"
#define CLOBBER                                                                              \
    "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", \
        "xmm11", "xmm12"

static void fma_512(void *ctx, int64_t i) {
    (void)ctx, (void)i;
    __asm__ volatile("vpxorq %%zmm0,%%zmm0,%%zmm0\n" TWELVE(ZERO_512)::: CLOBBER);
    for (int r = 0; r < ROUNDS; r++) __asm__ volatile(TWELVE(FMA_512)::: CLOBBER);
}

static void fma_256(void *ctx, int64_t i) {
    (void)ctx, (void)i;
    __asm__ volatile("vzeroall" ::: CLOBBER);
    for (int r = 0; r < ROUNDS; r++) __asm__ volatile(TWELVE(FMA_256)::: CLOBBER);
}

static void dot_512(void *ctx, int64_t i) {
    (void)ctx, (void)i;
    __asm__ volatile("vpxorq %%zmm0,%%zmm0,%%zmm0\n" TWELVE(ZERO_512)::: CLOBBER);
    for (int r = 0; r < ROUNDS; r++) __asm__ volatile(TWELVE(DOT_512)::: CLOBBER);
}

static double peak(const struct machine *m, void (*fn)(void *, int64_t), double flop) {
    int n = pool_threads(m->pool);
    double t = seconds();
    pool_run(m->pool, n, fn, NULL);
    return flop * CHAINS * ROUNDS * n / (seconds() - t);
}

double machine_peak_f32(const struct machine *m) {
    if (__builtin_cpu_supports("avx512f")) return peak(m, fma_512, 32);
    return __builtin_cpu_supports("fma") ? peak(m, fma_256, 16) : 0;
}

double machine_peak_bf16(const struct machine *m) {
    return __builtin_cpu_supports("avx512bf16") ? peak(m, dot_512, 64) : 0;
}
#else
double machine_peak_f32(const struct machine *m) {
    (void)m;
    return 0;
}

double machine_peak_bf16(const struct machine *m) {
    (void)m;
    return 0;
}
#endif

void machine_name(const struct machine *m, char *to, size_t size) {
    char line[256], model[200] = "unknown processor";
    FILE *f = fopen("/proc/cpuinfo", "r");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "model name : %199[^\n]", model) == 1) break;
    if (f) fclose(f);
    snprintf(to, size, "%s; %d threads", model, pool_threads(m->pool));
}
