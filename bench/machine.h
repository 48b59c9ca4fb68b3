/* What a bench measures of the machine beside what it judges: memory bandwidth by three read loops
 * and arithmetic peaks by loops that stay in registers. All run on every thread of a pool. */
#ifndef SUMI_BENCH_MACHINE_H
#define SUMI_BENCH_MACHINE_H

#include <stddef.h>

#include "base/pool.h"

struct machine {
    struct pool *pool;
    char *buffer; /* larger than the caches of this processor's share */
    size_t bytes;
    double best_read; /* bytes per second, the best seen by machine_read */
};

sumi_status machine_open(struct machine *m, struct pool *pool, size_t bytes, sumi_error *err);
void machine_reset(struct machine *m);

/* Reads the buffer once with each of three loops and keeps the best rate. Call it between the
 * passes of what is being judged. */
void machine_read(struct machine *m);

/* Flop per second of all threads: f32 fused multiply-adds, and bf16 pair products (0 where the
 * processor has none). */
double machine_peak_f32(const struct machine *m);
double machine_peak_bf16(const struct machine *m);

/* "model name, n threads" for a result's machine column. */
void machine_name(const struct machine *m, char *to, size_t size);

double seconds(void); /* monotonic */

/* From now on seconds() counts processor time of this process: for one thread on a machine that
 * does other work too. Memory bandwidth is still shared with that work. */
void seconds_of_processor(void);

#endif
