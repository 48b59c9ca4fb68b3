/* What CPU operations keep in their device. */
#ifndef SUMI_DEVICE_CPU_H
#define SUMI_DEVICE_CPU_H

#include "device/device.h"

struct cpu_kernels; /* ops/kernels.h */

struct cpu_device {
    struct device base;                /* first: a CPU's struct device is one of these */
    const struct cpu_kernels *kernels; /* NULL: reference operations */
    struct cpu_block *kept;            /* memory that lives until the device is closed */
    void *scratch;
    size_t scratch_bytes;
};

static inline struct cpu_device *cpu_device(struct device *d) {
    return (struct cpu_device *)(void *)d;
}

/* Memory until the device is closed: uninitialised, on large pages where it is large, 64-byte
 * aligned. Not for a step. */
sumi_status cpu_keep(struct device *d, size_t bytes, void **out, sumi_error *err);

/* Memory for the operation that is running; the next one that asks gets the same. It grows to the
 * largest request, so that repeated steps allocate nothing. */
sumi_status cpu_scratch(struct device *d, size_t bytes, void **out, sumi_error *err);

#endif
