/* A device: memory and one function per block operation. The table is all that forward.c knows of
 * a device, so a second one does not touch it. */
#ifndef SUMI_DEVICE_DEVICE_H
#define SUMI_DEVICE_DEVICE_H

#include <stddef.h>

#include "base/pool.h"
#include "base/status.h"

/* The block operations, in the order in which a step meets them; contracts: ops/<name>/<name>.h. */
enum op_kind {
    OP_EMBED,
    OP_NORM_QKV,
    OP_ATTENTION,
    OP_ATTN_OUT,
    OP_DENSE_FFN,
    OP_MOE,
    OP_HEAD,
    OP_COUNT
};

struct device;
struct op;   /* ops/op.h: what to do, with which weights and buffers */
struct step; /* ops/op.h: the rows of this step */

typedef sumi_status op_fn(struct device *d, const struct op *op, const struct step *step,
                          sumi_error *err);

struct device {
    const char *name; /* "cpu": for messages and --device */
    struct pool *pool;
    op_fn *op[OP_COUNT];
    /* Zeroed device memory, 64-byte aligned; SUMI_ERR_MEMORY says how much was asked for. */
    sumi_status (*alloc)(struct device *d, size_t bytes, void **out, sumi_error *err);
    void (*free)(struct device *d, void *p);
    /* Copies host memory to device memory; complete on return. */
    sumi_status (*copy_in)(struct device *d, void *to, const void *from, size_t bytes,
                           sumi_error *err);
    /* Called once with a list of n operations whose weights and vectors are still host memory (a
     * mapped file): the device may replace them by its own copies in its own layout, which live
     * until the device is closed. NULL: operations read the weights where they are. */
    sumi_status (*prepare)(struct device *d, struct op *list, int n, sumi_error *err);
    /* Executes the n operations of a prepared list in one go, which lets a device replay them.
     * NULL: the caller goes through `op`. Steps with taps, routes or layer inputs always do. */
    sumi_status (*run_list)(struct device *d, const struct op *list, int n, const struct step *step,
                            sumi_error *err);
    /* Told how far `prepare` is, by whoever wants to know (base/log.h); NULL: nobody. */
    void (*progress)(const char *what, double done, double total);
    void (*close)(struct device *d);
};

/* The processor, with n_thread threads (0: one per core). Its operations are filled in by
 * ops_bind_cpu (ops/op.h). */
sumi_status device_open_cpu(struct device **out, int n_thread, sumi_error *err);
void device_close(struct device *d); /* NULL is fine */

#endif
