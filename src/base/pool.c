/* Thread pool: workers sleep on a condition, wake for a new generation of work, take part numbers
 * from an atomic counter, and report when they ran out. */
#include "base/pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/mem.h"

enum { MAX_THREAD = 1024 };

struct pool {
    int n_thread;
    pthread_t *thread; /* [n_thread - 1] */
    pthread_mutex_t lock;
    pthread_cond_t work, idle;
    uint64_t generation; /* lock */
    int n_busy;          /* lock: workers that have not finished this generation */
    bool stop;           /* lock */
    void (*fn)(void *ctx, int64_t i);
    void *ctx;
    int64_t n;
    _Atomic int64_t next;
};

static void drain(struct pool *p) {
    for (;;) {
        int64_t i = atomic_fetch_add_explicit(&p->next, 1, memory_order_relaxed);
        if (i >= p->n) return;
        p->fn(p->ctx, i);
    }
}

static void *worker(void *arg) {
    struct pool *p = arg;
    uint64_t seen = 0;
    pthread_mutex_lock(&p->lock);
    for (;;) {
        while (p->generation == seen && !p->stop) pthread_cond_wait(&p->work, &p->lock);
        if (p->stop) break;
        seen = p->generation;
        pthread_mutex_unlock(&p->lock);
        drain(p);
        pthread_mutex_lock(&p->lock);
        if (--p->n_busy == 0) pthread_cond_signal(&p->idle);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

void pool_run(struct pool *p, int64_t n, void (*fn)(void *ctx, int64_t i), void *ctx) {
    if (!p || p->n_thread == 1 || n <= 1) {
        for (int64_t i = 0; i < n; i++) fn(ctx, i);
        return;
    }
    pthread_mutex_lock(&p->lock);
    p->fn = fn;
    p->ctx = ctx;
    p->n = n;
    atomic_store_explicit(&p->next, 0, memory_order_relaxed);
    p->n_busy = p->n_thread - 1;
    p->generation++;
    pthread_cond_broadcast(&p->work);
    pthread_mutex_unlock(&p->lock);
    drain(p);
    pthread_mutex_lock(&p->lock);
    while (p->n_busy > 0) pthread_cond_wait(&p->idle, &p->lock);
    pthread_mutex_unlock(&p->lock);
}

static int cores(void) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
    int n = CPU_COUNT(&set);
    return n < 1 ? 1 : n > MAX_THREAD ? MAX_THREAD : n;
}

sumi_status pool_open(struct pool **out, int n_thread, sumi_error *err) {
    *out = NULL;
    if (n_thread < 0 || n_thread > MAX_THREAD)
        return fail_param(err, SUMI_ERR_ARG, "threads", "threads must be 0 to %d, found %d",
                          MAX_THREAD, n_thread);
    struct pool *p = mem_zero(1, sizeof *p);
    if (!p) return NO_MEMORY(err, sizeof *p);
    p->n_thread = 1;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->work, NULL);
    pthread_cond_init(&p->idle, NULL);
    int want = n_thread ? n_thread : cores();
    p->thread = mem_zero((size_t)want, sizeof *p->thread);
    if (!p->thread) {
        pool_close(p);
        return NO_MEMORY(err, (size_t)want * sizeof *p->thread);
    }
    while (p->n_thread < want) {
        if (pthread_create(&p->thread[p->n_thread - 1], NULL, worker, p) != 0) {
            pool_close(p);
            return fail_with(err, SUMI_ERR_MEMORY, "thread %d of %d could not be started",
                             p->n_thread, want);
        }
        p->n_thread++;
    }
    *out = p;
    return SUMI_OK;
}

void pool_close(struct pool *p) {
    if (!p) return;
    pthread_mutex_lock(&p->lock);
    p->stop = true;
    pthread_cond_broadcast(&p->work);
    pthread_mutex_unlock(&p->lock);
    for (int i = 0; i < p->n_thread - 1; i++) pthread_join(p->thread[i], NULL);
    pthread_cond_destroy(&p->idle);
    pthread_cond_destroy(&p->work);
    pthread_mutex_destroy(&p->lock);
    mem_free(p->thread);
    mem_free(p);
}

int pool_threads(const struct pool *p) {
    return p ? p->n_thread : 1;
}
