/* A deterministic stand-in for a model. What it says is a pure function of the tokens it can reach
 * through the page tables: it keeps one number per position and layer in the slabs, as a model
 * keeps keys and values, and each layer's number depends on those of the layer below that its
 * window shows. So a wrong table, a slab freed too early or given to two sequences, or a wrong
 * position changes the answer, and most such faults are counted as well.
 *
 * fake_say computes the same from the plain list of tokens, without pages. */
#ifndef SUMI_TEST_FAKE_STEPPER_H
#define SUMI_TEST_FAKE_STEPPER_H

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "model/batch.h"

enum {
    FAKE_LAYERS = 3,
    FAKE_VOCAB = 50, /* the last id has no text: its logit is -inf */
    FAKE_EOS = 0,
    FAKE_MAX_LEN = 1024
};

/* Positions each layer sees; the last window ends inside a page. */
static const int32_t fake_window[FAKE_LAYERS] = {0, 100, 17};

struct fake_slab {
    int32_t layer, writer_step, writer_seq;
    int32_t pos[PAGE_TOKENS];
    uint64_t value[PAGE_TOKENS];
};

struct fake {
    struct fake_slab *slab; /* [n_slab] */
    struct stepper stepper;
    pthread_mutex_t lock;
    pthread_cond_t moved;
    /* Guarded by lock. */
    int permits;     /* steps that may still start; -1: any number */
    int32_t n_begun; /* steps begun */
    int64_t n_row;   /* rows computed */
    int32_t max_seq; /* most sequences in one step */
    int32_t n_fault; /* things that must not happen */
    int32_t fail_at; /* this step (1 = the first) fails with fail_status */
    sumi_status fail_status;
    int32_t nan_token; /* rows whose token this is get a NaN; -1: none */
};

static inline uint64_t fake_mix(uint64_t x) {
    x += 0x9E3779B97F4A7C15u;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
}

static inline int32_t fake_first_seen(int layer, int32_t pos) {
    int32_t window = fake_window[layer];
    return window > 0 && pos >= window ? pos - window + 1 : 0;
}

/* What a position contributes to a sum over the positions that are seen. */
static inline uint64_t fake_term(uint64_t value, int32_t pos) {
    return value * (2 * (uint64_t)pos + 1);
}

static inline void fake_logits(uint64_t h, float *logits) {
    for (int i = 0; i < FAKE_VOCAB - 1; i++)
        logits[i] = (float)(fake_mix(h + (uint64_t)i) >> 48) / 65536 * 8 - 4;
    logits[FAKE_VOCAB - 1] = -INFINITY;
}

/* ---- from a plain list of tokens ---- */

struct fake_history {
    uint64_t value[FAKE_LAYERS][FAKE_MAX_LEN];
    int32_t n;
};

/* Appends a token and gives the logits for the one that follows it. */
static inline void fake_say(struct fake_history *t, int32_t token, float *logits) {
    int32_t pos = t->n++;
    uint64_t h = fake_mix((uint64_t)token);
    for (int l = 0; l < FAKE_LAYERS; l++) {
        uint64_t sum = 0;
        t->value[l][pos] = h;
        for (int32_t q = fake_first_seen(l, pos); q <= pos; q++)
            sum += fake_term(t->value[l][q], q);
        h = fake_mix(h ^ sum);
    }
    fake_logits(h, logits);
}

/* ---- from pages ---- */

static inline struct fake_slab *fake_at(struct fake *f, const struct seq_pages *seq, int l,
                                        int32_t pos) {
    int32_t i =
        pos / PAGE_TOKENS < seq->stride ? seq->slab[l * seq->stride + pos / PAGE_TOKENS] : -1;
    if (i >= 0 && i < f->stepper.n_slab) return &f->slab[i];
    f->n_fault++;
    return NULL;
}

static inline void fake_write(struct fake *f, const struct batch *b, int32_t row, int l,
                              uint64_t h) {
    int32_t pos = b->pos[row], seq = b->seq_of[row];
    struct fake_slab *slab = fake_at(f, &b->seq[seq], l, pos);
    if (!slab) return;
    if (slab->writer_step == f->n_begun && slab->writer_seq != seq) f->n_fault++;
    slab->writer_step = f->n_begun;
    slab->writer_seq = seq;
    slab->layer = l;
    slab->pos[pos % PAGE_TOKENS] = pos;
    slab->value[pos % PAGE_TOKENS] = h;
}

static inline uint64_t fake_read(struct fake *f, const struct batch *b, int32_t row, int l) {
    uint64_t sum = 0;
    for (int32_t q = fake_first_seen(l, b->pos[row]); q <= b->pos[row]; q++) {
        struct fake_slab *slab = fake_at(f, &b->seq[b->seq_of[row]], l, q);
        if (!slab) continue;
        if (slab->layer != l || slab->pos[q % PAGE_TOKENS] != q) f->n_fault++;
        sum += fake_term(slab->value[q % PAGE_TOKENS], q);
    }
    return sum;
}

static inline void fake_check_batch(struct fake *f, const struct batch *b) {
    bool ok = b->n_row > 0 && b->n_row <= f->stepper.max_rows && b->n_seq > 0 &&
              b->seq_of[0] == 0 && b->seq_of[b->n_row - 1] == b->n_seq - 1;
    for (int32_t r = 1; r < b->n_row; r++) {
        int32_t step = b->seq_of[r] - b->seq_of[r - 1];
        ok &= step == 0 ? b->pos[r] == b->pos[r - 1] + 1 : step == 1;
    }
    for (int32_t i = 0; i < b->n_logit; i++)
        ok &= b->logit_row[i] < b->n_row && b->logit_row[i] > (i ? b->logit_row[i - 1] : -1);
    if (!ok) f->n_fault++;
}

static inline void fake_compute(struct fake *f, const struct batch *b, float *logits) {
    int32_t n_logit = 0;
    fake_check_batch(f, b);
    for (int32_t r = 0; r < b->n_row; r++) {
        uint64_t h = fake_mix((uint64_t)b->token[r]);
        for (int l = 0; l < FAKE_LAYERS; l++) {
            fake_write(f, b, r, l, h);
            h = fake_mix(h ^ fake_read(f, b, r, l));
        }
        if (n_logit == b->n_logit || b->logit_row[n_logit] != r) continue;
        float *row = logits + (size_t)n_logit++ * FAKE_VOCAB;
        fake_logits(h, row);
        if (b->token[r] == f->nan_token) row[7] = NAN;
    }
}

static inline sumi_status fake_step(void *ctx, const struct batch *b, float *logits,
                                    sumi_error *err) {
    struct fake *f = ctx;
    sumi_status status = SUMI_OK;
    pthread_mutex_lock(&f->lock);
    f->n_begun++;
    pthread_cond_broadcast(&f->moved);
    while (f->permits == 0) pthread_cond_wait(&f->moved, &f->lock);
    if (f->permits > 0) f->permits--;
    f->n_row += b->n_row;
    if (b->n_seq > f->max_seq) f->max_seq = b->n_seq;
    if (f->n_begun == f->fail_at)
        status = fail_with(err, f->fail_status, "step %d was told to fail", (int)f->n_begun);
    else fake_compute(f, b, logits);
    pthread_mutex_unlock(&f->lock);
    return status;
}

static inline struct fake *fake_open(int32_t n_slab, int32_t max_rows) {
    struct fake *f = calloc(1, sizeof *f);
    f->slab = calloc((size_t)n_slab, sizeof *f->slab);
    for (int32_t i = 0; i < n_slab; i++) f->slab[i].layer = -1;
    f->permits = -1;
    f->nan_token = -1;
    f->stepper = (struct stepper){
        .ctx = f,
        .step = fake_step,
        .vocab = FAKE_VOCAB,
        .cache = {.n_layer = FAKE_LAYERS, .window = fake_window, .slab_bytes = 1},
        .n_slab = n_slab,
        .max_rows = max_rows,
    };
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->moved, NULL);
    return f;
}

static inline void fake_close(struct fake *f) {
    pthread_mutex_destroy(&f->lock);
    pthread_cond_destroy(&f->moved);
    free(f->slab);
    free(f);
}

/* Lets n more steps run, all with -1, none with 0. */
static inline void fake_permit(struct fake *f, int n) {
    pthread_mutex_lock(&f->lock);
    f->permits = n;
    pthread_cond_broadcast(&f->moved);
    pthread_mutex_unlock(&f->lock);
}

/* Waits until step n (1 = the first) has begun; it may be waiting for a permit. */
static inline void fake_await(struct fake *f, int32_t n) {
    pthread_mutex_lock(&f->lock);
    while (f->n_begun < n) pthread_cond_wait(&f->moved, &f->lock);
    pthread_mutex_unlock(&f->lock);
}

#endif
