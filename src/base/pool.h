/* A fixed pool of threads for loops whose parts do not depend on one another. With one thread per
 * core each worker is bound to a core; between loops workers spin for some microseconds, then
 * sleep. How work is cut depends only on counts, never on timing, so reruns give the same bits. */
#ifndef SUMI_BASE_POOL_H
#define SUMI_BASE_POOL_H

#include <stdint.h>

#include "base/status.h"

struct pool;

/* n_thread counts the caller, which works too; 0 means one per core this process may use. */
sumi_status pool_open(struct pool **out, int n_thread, sumi_error *err);
void pool_close(struct pool *p); /* NULL is fine */
int pool_threads(const struct pool *p);

/* Calls fn(ctx, i) once for every i in [0, n), each on some thread, and returns when all are done.
 * Parts are handed out one by one, so n may be far larger than the number of threads; a part must
 * not call pool_run. Callers other than the owner of the pool must take turns. p may be NULL: then
 * everything runs on the caller. */
void pool_run(struct pool *p, int64_t n, void (*fn)(void *ctx, int64_t i), void *ctx);

#endif
