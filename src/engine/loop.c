/* Submitted and cancelled requests flow in under the lock, turns are run without it, ended requests
 * flow out. Knows nothing of what happens inside a turn. */
#include "engine/state.h"

static bool has_work(const struct engine *e) {
    return e->sched.n_running > 0 || e->sched.n_queued > 0;
}

/* Moves the inbox, oldest first, to the live tasks; those that are new come back as a list that is
 * linked by cancel_next. */
static struct task *take_inbox(struct engine *e) {
    struct task *first = NULL, **last = &first;
    for (struct task *t = e->inbox, *next; t; t = next) {
        next = t->next;
        t->prev = NULL;
        t->next = e->live;
        if (e->live) e->live->prev = t;
        e->live = t;
        t->cancel_next = NULL;
        *last = t;
        last = &t->cancel_next;
    }
    e->inbox = e->inbox_last = NULL;
    return first;
}

static struct task *take_cancelled(struct engine *e) {
    struct task *first = NULL;
    for (struct task *t = e->any_cancelled ? e->live : NULL; t; t = t->next) {
        if (!t->cancelled) continue;
        t->cancel_next = first;
        first = t;
    }
    e->any_cancelled = false;
    return first;
}

/* Waits for something to do and takes it in. False: close. */
static bool take_in(struct engine *e) {
    pthread_mutex_lock(&e->lock);
    while (!e->inbox && !e->any_cancelled && !e->closing && !has_work(e))
        pthread_cond_wait(&e->wake, &e->lock);
    bool closing = e->closing;
    for (struct task *t = take_inbox(e); t; t = t->cancel_next) sched_queue(&e->sched, t->choice);
    struct task *cancelled = take_cancelled(e);
    pthread_mutex_unlock(&e->lock);
    for (struct task *next; cancelled; cancelled = next) {
        next = cancelled->cancel_next;
        end_task(e, cancelled, FINISH_ABORT, NULL);
    }
    return !closing;
}

static void forget_id(struct engine *e, const struct task *t) {
    struct task **at = &e->bucket[t->id % ID_BUCKETS];
    while (*at != t) at = &(*at)->id_next;
    *at = t->id_next;
}

/* Smallest i with rows <= 2^i. */
static int log2_up(int32_t rows) {
    int i = 0;
    while (i < 31 && (int64_t)1 << i < rows) i++;
    return i;
}

/* Publishes the turn's counts, then says goodbye to the requests that ended in it: whoever learns
 * of an end finds the counts as they are after it. */
static void settle(struct engine *e) {
    pthread_mutex_lock(&e->lock);
    for (struct task *t = e->ended; t; t = t->next) forget_id(e, t);
    e->n_open -= e->turn.closed;
    e->unread_tokens -= e->turn.read;
    e->stats.n_running = e->sched.n_running;
    e->stats.slab_used = pages_total(e->pages) - pages_free(e->pages);
    e->stats.n_preemption = e->sched.n_preemption;
    e->stats.prompt_tokens += e->turn.prompt_tokens;
    e->stats.generation_tokens += e->turn.generation_tokens;
    e->stats.n_step += e->turn.steps;
    e->stats.step_rows += e->turn.rows;
    if (e->turn.steps) e->stats.steps_by_log2[log2_up(e->turn.rows)]++;
    e->stats.dead = e->dead;
    pthread_mutex_unlock(&e->lock);
    e->turn = (struct turn_counts){0};
    for (struct task *t = e->ended, *next; t; t = next) {
        next = t->next;
        t->r.on_end(t->r.user);
        task_close(t);
    }
    e->ended = NULL;
}

void *engine_main(void *engine) {
    struct engine *e = engine;
    while (take_in(e)) {
        if (e->dead)
            end_all(e, FINISH_ERROR, &e->fault); /* what arrived before the fault was known */
        else if (has_work(e)) engine_turn(e);
        settle(e);
    }
    end_all(e, FINISH_ABORT, NULL);
    settle(e);
    return NULL;
}
