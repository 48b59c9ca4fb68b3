/* Queued and running choices flow in; rows per choice for one step flow out, with their slabs
 * leased. Knows neither logits nor text. */
#include "engine/scheduler.h"

#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/size.h"

sumi_status sched_open(struct scheduler *s, sumi_error *err) {
    size_t n = (size_t)s->max_seqs;
    s->running = mem_zero(n, sizeof *s->running);
    return s->running ? SUMI_OK : NO_MEMORY(err, n * sizeof *s->running);
}

void sched_close(struct scheduler *s) {
    mem_free(s->running);
    s->running = NULL;
}

static bool before(const struct choice *a, const struct choice *b) {
    const struct task *x = a->task, *y = b->task;
    if (x->priority != y->priority) return x->priority < y->priority;
    if (x->arrival != y->arrival) return x->arrival < y->arrival;
    return a->index < b->index;
}

/* ---- queue ---- */

void sched_queue(struct scheduler *s, struct choice *c) {
    /* New ones belong at the end, preempted ones at the head: both are found at once. */
    struct choice *after = s->tail;
    if (s->head && before(c, s->head)) after = NULL;
    while (after && before(c, after)) after = after->prev;
    c->prev = after;
    c->next = after ? after->next : s->head;
    *(c->prev ? &c->prev->next : &s->head) = c;
    *(c->next ? &c->next->prev : &s->tail) = c;
    c->state = CHOICE_WAITING;
    s->n_queued++;
}

static void unqueue(struct scheduler *s, struct choice *c) {
    *(c->prev ? &c->prev->next : &s->head) = c->next;
    *(c->next ? &c->next->prev : &s->tail) = c->prev;
    c->prev = c->next = NULL;
    s->n_queued--;
}

/* ---- leases of tasks ---- */

static void drop_lease(struct scheduler *s, struct task *t) {
    if (t->lease.n_block == 0) return;
    pages_release(s->pages, &t->lease);
    *(t->lease_prev ? &t->lease_prev->lease_next : &s->lease) = t->lease_next;
    if (t->lease_next) t->lease_next->lease_prev = t->lease_prev;
    t->lease_prev = t->lease_next = NULL;
}

/* Keeps the prompt's full pages for the choices to come. Without memory for the table they compute
 * the prompt again, which is slower and not wrong. */
static void take_lease(struct scheduler *s, struct choice *c) {
    struct task *t = c->task;
    if (pages_share(s->pages, &c->pages, &t->lease, task_shared(t), NULL) != SUMI_OK) return;
    t->lease_next = s->lease;
    if (s->lease) s->lease->lease_prev = t;
    s->lease = t;
}

/* ---- running ---- */

static void start(struct scheduler *s, struct choice *c) {
    int32_t i = s->n_running++;
    for (; i > 0 && before(c, s->running[i - 1]); i--) s->running[i] = s->running[i - 1];
    s->running[i] = c;
    c->state = CHOICE_RUNNING;
    if (c->scheduled_ns) return;
    c->scheduled_ns = clock_ns();
    if (--c->task->n_unstarted == 0) drop_lease(s, c->task);
}

static void stop(struct scheduler *s, struct choice *c) {
    int32_t i = 0;
    while (s->running[i] != c) i++;
    s->n_running--;
    memmove(s->running + i, s->running + i + 1,
            (size_t)(s->n_running - i) * sizeof(struct choice *));
    pages_release(s->pages, &c->pages);
    c->n_computed = c->n_row = c->n_logit = 0;
}

void sched_end(struct scheduler *s, struct choice *c) {
    if (c->state == CHOICE_RUNNING) stop(s, c);
    if (c->state == CHOICE_WAITING) unqueue(s, c);
    c->state = CHOICE_DONE;
    if (--c->task->n_open == 0) drop_lease(s, c->task);
}

/* ---- plan ---- */

struct plan {
    int32_t rows, scores; /* left of this step */
    bool preempted;
};

/* Frees something for an older sequence: a lease that only saves work, else the newest runner. */
static void reclaim(struct scheduler *s, struct plan *p) {
    if (s->lease) {
        drop_lease(s, s->lease);
        return;
    }
    struct choice *victim = s->running[s->n_running - 1];
    stop(s, victim);
    sched_queue(s, victim);
    s->n_preemption++;
    victim->n_preemption++;
    p->preempted = true;
}

/* The first row of the step whose logits score a prompt token, or the end of the step. */
static int32_t first_score(const struct choice *c, int32_t end) {
    const struct task *t = c->task;
    if (c->index > 0 || !t->prompt_token || t->n_scored >= task_prompt(t)) return end;
    return (int32_t)max_i64(c->n_computed, t->n_scored - 1);
}

static int32_t pending(const struct choice *c) {
    return choice_total(c) - c->n_computed;
}

/* As many rows as the step, the chunk and the score rows leave, with slabs for them. */
static sumi_status give_rows(struct scheduler *s, struct plan *p, struct choice *c,
                             sumi_error *err) {
    int32_t n = (int32_t)min_i64(min_i64(pending(c), p->rows), s->max_chunk);
    int32_t end = c->n_computed + n, score = first_score(c, end);
    if (score < end) {
        end = (int32_t)min_i64(end, (int64_t)score + p->scores);
        n = end - c->n_computed;
    }
    if (n == 0) return SUMI_OK;
    for (;;) {
        sumi_status status = pages_reserve(s->pages, &c->pages, end, err);
        if (status == SUMI_OK) break;
        if (status != SUMI_ERR_BUSY) return status;
        reclaim(s, p);
        if (c->state != CHOICE_RUNNING) return SUMI_OK;
    }
    c->n_row = n;
    c->n_logit = score < end ? end - score : end == choice_total(c);
    p->rows -= n;
    if (c->n_logit > 1) p->scores -= c->n_logit;
    return SUMI_OK;
}

/* What running prompts will still need beyond what they hold. */
static int64_t promised(const struct scheduler *s) {
    int64_t n = 0;
    for (int32_t i = 0; i < s->n_running; i++) {
        const struct choice *c = s->running[i];
        if (pending(c) <= 1) continue;
        n += max_i64(0, pages_peak(s->pages, choice_total(c), s->max_chunk) -
                            pages_held(s->pages, &c->pages));
    }
    return n;
}

/* Whether the head of the queue can be computed up to its present end beside those that run. Alone
 * it always can, once leases have yielded: longer requests are refused when they arrive. */
static bool has_room(const struct scheduler *s, const struct choice *c) {
    int64_t need =
        pages_peak(s->pages, choice_total(c), s->max_chunk) - pages_held(s->pages, &c->task->lease);
    return s->n_running == 0 || pages_free(s->pages) >= need + promised(s);
}

static sumi_status admit(struct scheduler *s, struct plan *p, struct choice *c, sumi_error *err) {
    const struct page_table *lease = &c->task->lease;
    if (lease->n_block > 0) {
        TRY(pages_share(s->pages, lease, &c->pages, lease->n_block * PAGE_TOKENS, err));
        c->n_computed = lease->n_block * PAGE_TOKENS;
    }
    unqueue(s, c);
    start(s, c);
    return give_rows(s, p, c, err);
}

static sumi_status plan(struct scheduler *s, struct plan *p, struct choice **culprit,
                        sumi_error *err) {
    for (int decode = 1; decode >= 0; decode--) {
        for (int32_t i = 0; i < s->n_running; i++) {
            *culprit = s->running[i];
            if ((pending(*culprit) == 1) == decode) TRY(give_rows(s, p, *culprit, err));
        }
    }
    while (s->head && s->n_running < s->max_seqs && p->rows > 0 && !p->preempted) {
        *culprit = s->head;
        if (!has_room(s, *culprit)) break;
        TRY(admit(s, p, *culprit, err));
    }
    return SUMI_OK;
}

sumi_status sched_plan(struct scheduler *s, struct choice **culprit, sumi_error *err) {
    struct plan p = {.rows = s->max_rows, .scores = s->max_scores};
    for (int32_t i = 0; i < s->n_running; i++) s->running[i]->n_row = s->running[i]->n_logit = 0;
    sumi_status status = plan(s, &p, culprit, err);
    if (status == SUMI_OK) *culprit = NULL;
    return status;
}

void sched_computed(struct scheduler *s, struct choice *c) {
    struct task *t = c->task;
    int32_t old = c->n_computed, shared = task_shared(t);
    c->n_computed += c->n_row;
    c->n_row = c->n_logit = 0;
    /* In the step that passes the boundary, no window has been trimmed beyond it yet. */
    if (t->n_unstarted > 0 && t->lease.n_block == 0 && old < shared && c->n_computed >= shared)
        take_lease(s, c);
    pages_trim(s->pages, &c->pages, c->n_computed);
}
