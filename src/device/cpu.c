/* The processor as a device: plain memory and the thread pool. Knows no operation. */
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include "base/mem.h"
#include "base/size.h"
#include "device/device.h"

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

static void cpu_close(struct device *d) {
    pool_close(d->pool);
    mem_free(d);
}

sumi_status device_open_cpu(struct device **out, int n_thread, sumi_error *err) {
    *out = NULL;
    struct device *d = mem_zero(1, sizeof *d);
    if (!d) return NO_MEMORY(err, sizeof *d);
    d->name = "cpu";
    d->alloc = cpu_alloc;
    d->free = cpu_free;
    d->copy_in = cpu_copy_in;
    d->close = cpu_close;
    sumi_status status = pool_open(&d->pool, n_thread, err);
    if (status != SUMI_OK) {
        mem_free(d);
        return status;
    }
    *out = d;
    return SUMI_OK;
}

void device_close(struct device *d) {
    if (d) d->close(d);
}
