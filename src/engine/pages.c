/* Positions flow in, leases on slabs flow out. Knows neither requests nor what a slab contains. */
#include "engine/pages.h"

#include <string.h>

#include "base/mem.h"
#include "base/size.h"

struct pages {
    int32_t n_layer;
    int32_t *window; /* [n_layer] 0: all positions */
    int32_t n_slab, n_free, n_used;
    int32_t *free; /* [n_free] a stack: the slab given back last is leased first */
    int32_t *ref;  /* [n_slab] holders */
    int32_t *seen; /* [n_slab] scratch of an audit: holders found in tables */
};

sumi_status pages_open(struct pages **out, const struct cache_shape *shape, int32_t n_slab,
                       sumi_error *err) {
    *out = NULL;
    if (shape->n_layer < 0 || n_slab < 0)
        return fail_with(err, SUMI_ERR_ARG, "a cache of %d layers and %d slabs",
                         (int)shape->n_layer, (int)n_slab);
    struct pages *p = mem_zero(1, sizeof *p);
    if (!p) return NO_MEMORY(err, sizeof *p);
    p->n_layer = shape->n_layer;
    p->n_slab = p->n_free = n_slab;
    p->window = mem_zero((size_t)p->n_layer, sizeof *p->window);
    p->free = mem_zero((size_t)n_slab, sizeof *p->free);
    p->ref = mem_zero((size_t)n_slab, sizeof *p->ref);
    p->seen = mem_zero((size_t)n_slab, sizeof *p->seen);
    if (!p->window || !p->free || !p->ref || !p->seen) {
        pages_close(p);
        return NO_MEMORY(err, (size_t)n_slab * 3 * sizeof *p->free);
    }
    for (int32_t l = 0; l < p->n_layer; l++) p->window[l] = shape->window[l];
    for (int32_t i = 0; i < n_slab; i++) p->free[i] = n_slab - 1 - i;
    *out = p;
    return SUMI_OK;
}

void pages_close(struct pages *p) {
    if (!p) return;
    mem_free(p->window);
    mem_free(p->free);
    mem_free(p->ref);
    mem_free(p->seen);
    mem_free(p);
}

int32_t pages_total(const struct pages *p) {
    return p->n_slab;
}

int32_t pages_free(const struct pages *p) {
    return p->n_free;
}

bool pages_balanced(const struct pages *p) {
    return p->n_free + p->n_used == p->n_slab;
}

static int32_t blocks_of(int32_t n_pos) {
    return (int32_t)(((int64_t)n_pos + PAGE_TOKENS - 1) / PAGE_TOKENS);
}

/* The first block that a query at `next` sees: it sees next - window + 1 and later. */
static int32_t first_block(int32_t window, int32_t next) {
    return window > 0 && next >= window ? (next - window + 1) / PAGE_TOKENS : 0;
}

static int32_t *row_of(const struct page_table *t, int32_t layer) {
    return t->slab + (size_t)layer * (size_t)t->stride;
}

int32_t pages_held(const struct pages *p, const struct page_table *t) {
    int32_t n = 0;
    for (int32_t l = 0; t->slab && l < p->n_layer; l++)
        if (t->first[l] < t->n_block) n += t->n_block - t->first[l];
    return n;
}

int64_t pages_peak(const struct pages *p, int32_t n_pos, int32_t chunk) {
    int64_t n = 0, all = blocks_of(n_pos);
    for (int32_t l = 0; l < p->n_layer; l++) {
        /* A step's first query sees window - 1 positions before the chunk; n successive positions
         * touch one block more than they fill when they start in the middle of one. */
        int64_t span = (int64_t)p->window[l] - 1 + chunk;
        int64_t most = (span + PAGE_TOKENS - 2) / PAGE_TOKENS + 1;
        n += p->window[l] > 0 ? min_i64(all, most) : all;
    }
    return n;
}

int32_t pages_fit(const struct pages *p, int32_t chunk, int32_t max_pos) {
    int32_t low = 0, high = max_pos;
    while (low < high) {
        int32_t middle = high - (high - low) / 2;
        if (pages_peak(p, middle, chunk) <= p->n_slab) low = middle;
        else high = middle - 1;
    }
    return low;
}

static int32_t lease(struct pages *p) {
    int32_t slab = p->free[--p->n_free];
    p->n_used++;
    p->ref[slab] = 1;
    return slab;
}

static void release(struct pages *p, int32_t *slab) {
    if (--p->ref[*slab] == 0) {
        p->free[p->n_free++] = *slab;
        p->n_used--;
    }
    *slab = -1;
}

/* Room for n blocks: a new layout with the old rows in it. At least doubles, so that a long answer
 * grows its table a few times only. */
static sumi_status grow(const struct pages *p, struct page_table *t, int32_t n, sumi_error *err) {
    if (n <= t->stride) return SUMI_OK;
    int32_t stride = t->stride > n / 2 && t->stride < INT32_MAX / 2 ? 2 * t->stride : n;
    size_t n_layer = (size_t)p->n_layer, n_entry;
    if (!size_mul(n_layer, (size_t)stride + 1, &n_entry)) return NO_MEMORY(err, SIZE_MAX);
    int32_t *slab = mem_zero(n_entry, sizeof *slab);
    if (!slab) return NO_MEMORY(err, n_entry * sizeof *slab);
    int32_t *first = slab + n_layer * (size_t)stride;
    struct page_table grown = {slab, first, stride, t->n_block};
    memset(slab, 0xFF, n_layer * (size_t)stride * sizeof *slab); /* -1 */
    for (int32_t l = 0; t->slab && l < p->n_layer; l++) {
        memcpy(row_of(&grown, l), row_of(t, l), (size_t)t->n_block * sizeof *slab);
        first[l] = t->first[l];
    }
    mem_free(t->slab);
    *t = grown;
    return SUMI_OK;
}

sumi_status pages_reserve(struct pages *p, struct page_table *t, int32_t n_pos, sumi_error *err) {
    int32_t n = blocks_of(n_pos), more = n - t->n_block;
    if (more <= 0) return SUMI_OK;
    if ((int64_t)more * p->n_layer > p->n_free)
        return fail_with(err, SUMI_ERR_BUSY, "%lld slabs are needed, %d are free",
                         (long long)more * p->n_layer, (int)p->n_free);
    TRY(grow(p, t, n, err));
    for (int32_t l = 0; l < p->n_layer; l++)
        for (int32_t b = t->n_block; b < n; b++) row_of(t, l)[b] = lease(p);
    t->n_block = n;
    return SUMI_OK;
}

void pages_trim(struct pages *p, struct page_table *t, int32_t next) {
    for (int32_t l = 0; t->slab && l < p->n_layer; l++) {
        int32_t keep = first_block(p->window[l], next);
        if (keep > t->n_block) keep = t->n_block;
        for (; t->first[l] < keep; t->first[l]++) release(p, &row_of(t, l)[t->first[l]]);
    }
}

sumi_status pages_share(struct pages *p, const struct page_table *from, struct page_table *to,
                        int32_t n_pos, sumi_error *err) {
    int32_t n = n_pos / PAGE_TOKENS;
    TRY(grow(p, to, n, err));
    for (int32_t l = 0; l < p->n_layer; l++) {
        int32_t first = (int32_t)min_i64(first_block(p->window[l], n_pos), n);
        to->first[l] = first;
        for (int32_t b = first; b < n; b++) {
            int32_t slab = row_of(from, l)[b];
            row_of(to, l)[b] = slab;
            p->ref[slab]++;
        }
    }
    to->n_block = n;
    return SUMI_OK;
}

void pages_release(struct pages *p, struct page_table *t) {
    for (int32_t l = 0; t->slab && l < p->n_layer; l++)
        for (int32_t b = t->first[l]; b < t->n_block; b++) release(p, &row_of(t, l)[b]);
    mem_free(t->slab);
    *t = (struct page_table){0};
}

void pages_audit_begin(struct pages *p) {
    memset(p->seen, 0, (size_t)p->n_slab * sizeof *p->seen);
}

void pages_audit_table(struct pages *p, const struct page_table *t) {
    for (int32_t l = 0; t->slab && l < p->n_layer; l++)
        for (int32_t b = t->first[l]; b < t->n_block; b++) p->seen[row_of(t, l)[b]]++;
}

bool pages_audit_end(const struct pages *p) {
    int32_t n_used = 0;
    for (int32_t i = 0; i < p->n_slab; i++) {
        if (p->seen[i] != p->ref[i]) return false;
        n_used += p->seen[i] > 0;
    }
    for (int32_t i = 0; i < p->n_free; i++)
        if (p->ref[p->free[i]] != 0) return false;
    return n_used == p->n_used && pages_balanced(p);
}
