/* The processor as a device: plain memory and the thread pool. Knows no operation. */
#include "device/cpu.h"

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "base/mem.h"
#include "base/size.h"

enum { LARGE_PAGE = 2 << 20 };

struct cpu_block {
    struct cpu_block *next;
    void *data;
};

/* Zeroes memory without touching whole pages: the kernel hands zero pages out when they are first
 * used, so a large cache pool costs neither time nor memory before sequences fill it. */
static void zero_lazily(char *p, size_t bytes) {
    const size_t page = 4096;
    size_t head = (page - (uintptr_t)p % page) % page;
    if (head > bytes) head = bytes;
    size_t whole = (bytes - head) / page * page;
    memset(p, 0, head);
    if (whole && madvise(p + head, whole, MADV_DONTNEED) != 0) memset(p + head, 0, whole);
    memset(p + head + whole, 0, bytes - head - whole);
}

static sumi_status cpu_alloc(struct device *d, size_t bytes, void **out, sumi_error *err) {
    (void)d;
    size_t padded;
    if (!size_align(bytes, 64, &padded)) return NO_MEMORY(err, bytes);
    void *p = mem_aligned(padded, 64);
    if (!p) return NO_MEMORY(err, padded);
    zero_lazily(p, padded);
    *out = p;
    return SUMI_OK;
}

static void cpu_free(struct device *d, void *p) {
    (void)d;
    mem_free(p);
}

static sumi_status cpu_copy_in(struct device *d, void *to, const void *from, size_t bytes,
                               sumi_error *err) {
    (void)d, (void)err;
    if (bytes) memcpy(to, from, bytes);
    return SUMI_OK;
}

sumi_status cpu_keep(struct device *d, size_t bytes, void **out, sumi_error *err) {
    struct cpu_device *c = cpu_device(d);
    struct cpu_block *b = mem_zero(1, sizeof *b);
    if (!b) return NO_MEMORY(err, sizeof *b);
    size_t align = bytes >= LARGE_PAGE ? LARGE_PAGE : 64;
    b->data = mem_aligned(bytes, align);
    if (!b->data) {
        mem_free(b);
        return NO_MEMORY(err, bytes);
    }
    /* Only advice: without large pages reads are slower. */
    if (align == LARGE_PAGE) madvise(b->data, bytes, MADV_HUGEPAGE);
    b->next = c->kept;
    c->kept = b;
    *out = b->data;
    return SUMI_OK;
}

sumi_status cpu_scratch(struct device *d, size_t bytes, void **out, sumi_error *err) {
    struct cpu_device *c = cpu_device(d);
    if (bytes > c->scratch_bytes) {
        size_t want = bytes > 2 * c->scratch_bytes ? bytes : 2 * c->scratch_bytes;
        void *p = mem_aligned(want, 64);
        if (!p) return NO_MEMORY(err, want);
        mem_free(c->scratch);
        c->scratch = p;
        c->scratch_bytes = want;
    }
    *out = c->scratch;
    return SUMI_OK;
}

static void cpu_close(struct device *d) {
    struct cpu_device *c = cpu_device(d);
    for (struct cpu_block *b = c->kept, *next; b; b = next) {
        next = b->next;
        mem_free(b->data);
        mem_free(b);
    }
    mem_free(c->scratch);
    pool_close(d->pool);
    mem_free(c);
}

sumi_status device_open_cpu(struct device **out, int n_thread, sumi_error *err) {
    *out = NULL;
    struct cpu_device *c = mem_zero(1, sizeof *c);
    if (!c) return NO_MEMORY(err, sizeof *c);
    struct device *d = &c->base;
    d->name = "cpu";
    d->alloc = cpu_alloc;
    d->free = cpu_free;
    d->copy_in = cpu_copy_in;
    d->close = cpu_close;
    sumi_status status = pool_open(&d->pool, n_thread, err);
    if (status != SUMI_OK) {
        mem_free(c);
        return status;
    }
    *out = d;
    return SUMI_OK;
}

void device_close(struct device *d) {
    if (d) d->close(d);
}
