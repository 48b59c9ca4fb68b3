/* Thread pool: a region of work is opened in one atomic word, workers that see it in time join and
 * take part numbers from a counter, the caller closes it when no part is left and waits for those
 * that joined. A worker that the system does not run for a while delays nobody. Between regions
 * workers look at the word for some microseconds, then sleep. */
#include "base/pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/mem.h"

enum {
    MAX_THREAD = 1024,
    SPINS = 1000, /* looks before sleeping: some 20 to 50 us, longer than the gaps within a step */
};

/* The word: generation << 17 | open << 16 | workers inside. */
#define OPEN       ((uint64_t)1 << 16)
#define INSIDE     (OPEN - 1)
#define GENERATION ((uint64_t)1 << 17)

struct pool {
    int n_thread;
    pthread_t *thread; /* [n_thread - 1] */
    _Alignas(64) _Atomic uint64_t word;
    _Alignas(64) _Atomic int64_t next;
    _Alignas(64) void (*fn)(void *ctx, int64_t i); /* written only while nobody is inside */
    void *ctx;
    int64_t n;
    _Atomic bool stop;
    _Atomic int n_asleep;  /* workers in, or on their way into, a wait for work */
    _Atomic bool awaiting; /* the caller waits for the last worker to leave */
    pthread_mutex_t lock;  /* for the two conditions; the state itself is atomic */
    pthread_cond_t work, idle;
};

static void relax(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static void drain(struct pool *p) {
    for (;;) {
        int64_t i = atomic_fetch_add_explicit(&p->next, 1, memory_order_relaxed);
        if (i >= p->n) return;
        p->fn(p->ctx, i);
    }
}

/* A region newer than `seen` that is still open. */
static bool has_work(struct pool *p, uint64_t seen, uint64_t *word) {
    *word = atomic_load(&p->word);
    return (*word & OPEN) && *word / GENERATION != seen;
}

/* Waits for work; false when the pool closes. */
static bool await_work(struct pool *p, uint64_t seen, uint64_t *word) {
    for (int i = 0; i < SPINS; i++) {
        if (has_work(p, seen, word)) return true;
        if (atomic_load_explicit(&p->stop, memory_order_relaxed)) return false;
        relax();
    }
    pthread_mutex_lock(&p->lock);
    atomic_fetch_add(&p->n_asleep, 1);
    bool found;
    while (!(found = has_work(p, seen, word)) && !atomic_load(&p->stop))
        pthread_cond_wait(&p->work, &p->lock);
    atomic_fetch_sub(&p->n_asleep, 1);
    pthread_mutex_unlock(&p->lock);
    return found;
}

static void leave(struct pool *p) {
    uint64_t left = atomic_fetch_sub(&p->word, 1) - 1;
    if ((left & INSIDE) || !atomic_load(&p->awaiting)) return;
    pthread_mutex_lock(&p->lock);
    pthread_cond_signal(&p->idle);
    pthread_mutex_unlock(&p->lock);
}

static void *worker(void *arg) {
    struct pool *p = arg;
    uint64_t seen = 0, word;
    while (await_work(p, seen, &word)) {
        if (!atomic_compare_exchange_strong(&p->word, &word, word + 1)) continue;
        seen = word / GENERATION;
        drain(p);
        leave(p);
    }
    return NULL;
}

/* Until the last worker that joined has left. */
static void await_idle(struct pool *p) {
    for (int i = 0; i < SPINS; i++) {
        if (!(atomic_load(&p->word) & INSIDE)) return;
        relax();
    }
    pthread_mutex_lock(&p->lock);
    atomic_store(&p->awaiting, true);
    while (atomic_load(&p->word) & INSIDE) pthread_cond_wait(&p->idle, &p->lock);
    atomic_store(&p->awaiting, false);
    pthread_mutex_unlock(&p->lock);
}

void pool_run(struct pool *p, int64_t n, void (*fn)(void *ctx, int64_t i), void *ctx) {
    if (!p || p->n_thread == 1 || n <= 1) {
        for (int64_t i = 0; i < n; i++) fn(ctx, i);
        return;
    }
    p->fn = fn;
    p->ctx = ctx;
    p->n = n;
    atomic_store_explicit(&p->next, 0, memory_order_relaxed);
    atomic_fetch_add(&p->word, GENERATION | OPEN);
    if (atomic_load(&p->n_asleep) > 0) {
        pthread_mutex_lock(&p->lock);
        pthread_cond_broadcast(&p->work);
        pthread_mutex_unlock(&p->lock);
    }
    drain(p);
    atomic_fetch_sub(&p->word, OPEN);
    await_idle(p);
}

static int cores(void) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
    int n = CPU_COUNT(&set);
    return n < 1 ? 1 : n > MAX_THREAD ? MAX_THREAD : n;
}

/* Worker i on the processor after the i-th that this process may use; the caller stays free to
 * move. Only advice: where it fails the worker floats. */
static void pin(pthread_t thread, int i) {
    cpu_set_t all, one;
    if (sched_getaffinity(0, sizeof all, &all) != 0) return;
    CPU_ZERO(&one);
    int at = 0;
    for (size_t c = 0; c < CPU_SETSIZE; c++)
        if (CPU_ISSET(c, &all) && at++ == i + 1) CPU_SET(c, &one);
    if (CPU_COUNT(&one) == 1) pthread_setaffinity_np(thread, sizeof one, &one);
}

sumi_status pool_open(struct pool **out, int n_thread, sumi_error *err) {
    *out = NULL;
    if (n_thread < 0 || n_thread > MAX_THREAD)
        return fail_param(err, SUMI_ERR_ARG, "threads", "threads must be 0 to %d, found %d",
                          MAX_THREAD, n_thread);
    struct pool *p = mem_aligned(sizeof *p, 64);
    if (!p) return NO_MEMORY(err, sizeof *p);
    *p = (struct pool){.n_thread = 1};
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
        int i = p->n_thread - 1;
        if (pthread_create(&p->thread[i], NULL, worker, p) != 0) {
            pool_close(p);
            return fail_with(err, SUMI_ERR_MEMORY, "thread %d of %d could not be started",
                             p->n_thread, want);
        }
        if (want > 1 && want == cores()) pin(p->thread[i], i);
        p->n_thread++;
    }
    *out = p;
    return SUMI_OK;
}

void pool_close(struct pool *p) {
    if (!p) return;
    pthread_mutex_lock(&p->lock);
    atomic_store(&p->stop, true);
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
