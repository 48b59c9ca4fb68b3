/* One turn: plan the step, run it, sample, send. Knows neither threads nor locks. */
#include "base/log.h"
#include "base/mem.h"
#include "engine/state.h"

/* The full audit of the pool reads every table, so it runs where bugs are looked for. */
#if !defined(NDEBUG) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { AUDIT = 1 };
#else
enum { AUDIT = 0 };
#endif

/* ---- ends ---- */

static void end_choice(struct engine *e, struct choice *c) {
    struct task *t = c->task;
    sched_end(&e->sched, c);
    e->turn.closed++;
    if (t->n_open > 0) return;
    if (!t->prompt_done) e->turn.read += task_prompt(t);
    *(t->prev ? &t->prev->next : &e->live) = t->next;
    if (t->next) t->next->prev = t->prev;
    t->next = e->ended;
    e->ended = t;
}

void end_task(struct engine *e, struct task *t, enum finish finish, const sumi_error *error) {
    for (int32_t i = 0; i < t->r.n; i++) {
        struct choice *c = &t->choice[i];
        if (c->state == CHOICE_DONE) continue;
        answer_end(&e->answer, c, finish, error);
        end_choice(e, c);
    }
}

void end_all(struct engine *e, enum finish finish, const sumi_error *error) {
    while (e->live) end_task(e, e->live, finish, error);
}

/* Nothing can be computed any more: every request learns why. */
static void die(struct engine *e, const sumi_error *why) {
    e->dead = true;
    e->fault = *why;
    log_error("the engine stops: %s", why->msg);
    end_all(e, FINISH_ERROR, &e->fault);
}

/* ---- after the step ---- */

static sumi_status top_room(struct engine *e, const struct sampling *s, sumi_error *err) {
    size_t n = s->logprob_ids.n > 0 ? s->logprob_ids.n + 1 : (size_t)(s->n_logprobs + 1);
    if (n <= e->cap_top) return SUMI_OK;
    struct token_logprob *grown = mem_resize(e->top, n, sizeof *grown);
    if (!grown) return NO_MEMORY(err, n * sizeof *grown);
    e->top = grown;
    e->cap_top = n;
    return SUMI_OK;
}

/* A replayed token is certain. */
static void certain(int32_t id, bool wanted, struct token_logprob *top, size_t *n_top) {
    if (wanted) top[0] = (struct token_logprob){.id = id, .rank = 1};
    *n_top = wanted;
}

/* Scores the prompt tokens that follow rows of this step. `logits` belongs to position `pos`. */
static sumi_status score_prompt(struct engine *e, struct task *t, int32_t pos, float *logits,
                                sumi_error *err) {
    int32_t k = t->r.sampling.n_prompt_logprobs, id = t->r.prompt[pos + 1];
    struct token_event *entry = &t->prompt_token[pos + 1];
    struct token_logprob *top = t->prompt_top + (size_t)(pos + 1) * (size_t)(k + 1);
    entry->top = top;
    if (e->config.replay) certain(id, true, top, &entry->n_top);
    else TRY(row_logprobs(e->sampler, logits, id, k, top, &entry->n_top, err));
    t->n_scored = pos + 2;
    return SUMI_OK;
}

static sumi_status choose(struct engine *e, const struct choice *c, float *logits, int32_t *id,
                          size_t *n_top, sumi_error *err) {
    const struct request *r = &c->task->r;
    TRY(top_room(e, &r->sampling, err));
    if (e->config.replay) {
        *id = (size_t)c->n_output < r->n_replay ? r->replay[c->n_output] : e->eos[0];
        certain(*id, r->sampling.n_logprobs >= 0 || r->sampling.logprob_ids.n > 0, e->top, n_top);
        return SUMI_OK;
    }
    const struct sample_context context = {
        .prompt = r->prompt,
        .n_prompt = r->n_prompt,
        .output = c->output,
        .n_output = (size_t)c->n_output,
        .eos = e->eos,
        .n_eos = e->config.n_eos,
        .position = choice_total(c),
        .seed = c->seed,
        .mode = e->config.logprobs_mode,
    };
    return sample_token(e->sampler, &r->sampling, &context, logits, id, e->top, n_top, err);
}

/* The first choice has read the prompt: the others may start. */
static void prompt_read(struct engine *e, struct task *t) {
    t->prompt_done = true;
    e->turn.read += task_prompt(t);
    e->turn.prompt_tokens += task_prompt(t);
    for (int32_t i = 1; i < t->r.n; i++) sched_queue(&e->sched, &t->choice[i]);
}

/* Takes in the rows of one choice; `logits` has its n_logit rows. */
static sumi_status take_rows(struct engine *e, struct choice *c, float *logits, sumi_error *err) {
    struct task *t = c->task;
    int32_t end = c->n_computed + c->n_row, first = end - c->n_logit, id;
    size_t n_top;
    sched_computed(&e->sched, c);
    for (int32_t pos = first; pos < end && pos + 1 < task_prompt(t); pos++) {
        TRY(score_prompt(e, t, pos, logits, err));
        logits += e->logit_stride;
    }
    if (end < choice_total(c)) return SUMI_OK;
    if (!t->prompt_done) prompt_read(e, t);
    enum finish finish;
    TRY(choose(e, c, logits, &id, &n_top, err));
    TRY(choice_append(c, id, err));
    sumi_status status = answer_token(&e->answer, c, id, e->top, n_top, &finish, err);
    if (status != SUMI_OK) {
        c->n_output--; /* nobody has heard of it */
        return status;
    }
    e->turn.generation_tokens++;
    if (finish != FINISH_NONE) end_choice(e, c);
    return SUMI_OK;
}

static void take_all(struct engine *e) {
    for (int32_t i = 0; i < e->step.batch.n_seq; i++) {
        struct choice *c = e->step.choice[i];
        float *logits = e->step.logits + (size_t)e->step.first_logit[i] * e->logit_stride;
        sumi_error err = {0};
        if (c->state == CHOICE_DONE) continue; /* a sibling's failure ended it */
        if (take_rows(e, c, logits, &err) != SUMI_OK) end_task(e, c->task, FINISH_ERROR, &err);
    }
}

/* ---- the step ---- */

static sumi_status audit(struct engine *e, sumi_error *err) {
    bool ok = pages_balanced(e->pages);
    if (AUDIT && ok) {
        pages_audit_begin(e->pages);
        for (int32_t i = 0; i < e->sched.n_running; i++)
            pages_audit_table(e->pages, &e->sched.running[i]->pages);
        for (const struct task *t = e->sched.lease; t; t = t->lease_next)
            pages_audit_table(e->pages, &t->lease);
        ok = pages_audit_end(e->pages);
    }
    if (ok) return SUMI_OK;
    return fail_with(err, SUMI_ERR_STATE,
                     "the cache's free and used slabs do not add up to %d: a fault in sumi",
                     (int)pages_total(e->pages));
}

/* Plans until no sequence is in the way: one whose tables cannot grow ends. */
static void plan_step(struct engine *e) {
    struct choice *culprit;
    sumi_error err;
    while (sched_plan(&e->sched, &culprit, &err) != SUMI_OK)
        end_task(e, culprit->task, FINISH_ERROR, &err);
    step_build(&e->step, e->sched.running, e->sched.n_running);
}

static sumi_status run_step(struct engine *e, sumi_error *err) {
    if (e->config.replay) return SUMI_OK;
    return e->stepper.step(e->stepper.ctx, &e->step.batch, e->step.logits, err);
}

void engine_turn(struct engine *e) {
    sumi_error err = {0};
    plan_step(e);
    if (e->step.batch.n_seq == 0) return;
    sumi_status status = run_step(e, &err);
    e->turn.steps++;
    e->turn.rows = e->step.batch.n_row;
    if (status == SUMI_OK) {
        take_all(e);
        status = audit(e, &err);
        if (status != SUMI_OK) die(e, &err);
    } else if (status == SUMI_ERR_DEVICE) {
        die(e, &err);
    } else {
        for (int32_t i = 0; i < e->step.batch.n_seq; i++)
            end_task(e, e->step.choice[i]->task, FINISH_ERROR, &err);
    }
}
