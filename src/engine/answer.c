/* Sampled tokens flow in, events flow out through the request's callback. Knows neither logits nor
 * pages. */
#include "engine/answer.h"

#include "base/mem.h"

void answer_reset(struct answer *a) {
    buf_reset(&a->text);
    mem_free(a->piece);
    a->piece = NULL;
    a->n_piece = a->cap_piece = 0;
}

static bool holds(const int32_t *ids, size_t n, int32_t id) {
    for (size_t i = 0; i < n; i++)
        if (ids[i] == id) return true;
    return false;
}

/* Copies pieces, which the stream's next call would overwrite. Their text is bound later, since the
 * buffer may move until all are in. */
static sumi_status keep(struct answer *a, const struct piece *piece, size_t n, sumi_error *err) {
    if (a->n_piece + n > a->cap_piece) {
        size_t cap = 2 * (a->n_piece + n);
        struct piece *grown = mem_resize(a->piece, cap, sizeof *grown);
        if (!grown) return NO_MEMORY(err, cap * sizeof *grown);
        a->piece = grown;
        a->cap_piece = cap;
    }
    for (size_t i = 0; i < n; i++) {
        buf_put(&a->text, piece[i].text, piece[i].n);
        a->piece[a->n_piece++] = piece[i];
    }
    return a->text.failed ? NO_MEMORY(err, a->text.len) : SUMI_OK;
}

/* The pieces of the last token and what the end releases, as one list. */
static sumi_status finish_text(struct answer *a, struct stream *s, const struct piece **piece,
                               size_t *n, sumi_error *err) {
    const struct piece *rest;
    size_t n_rest;
    buf_clear(&a->text);
    a->n_piece = 0;
    TRY(keep(a, *piece, *n, err));
    TRY(stream_finish(s, &rest, &n_rest, err));
    TRY(keep(a, rest, n_rest, err));
    const char *text = buf_text(&a->text);
    for (size_t i = 0; i < a->n_piece; text += a->piece[i++].n) a->piece[i].text = text;
    *piece = a->piece;
    *n = a->n_piece;
    return SUMI_OK;
}

static struct event new_event(const struct choice *c) {
    const struct task *t = c->task;
    bool scored = t->prompt_token && t->n_scored == task_prompt(t);
    return (struct event){
        .choice = c->index,
        .stop_string = -1,
        .stop_token = -1,
        .n_prompt = task_prompt(t),
        .n_output = c->n_output,
        .scheduled_ns = c->scheduled_ns,
        .n_preemption = c->n_preemption,
        .prompt_token = !c->announced && scored ? t->prompt_token : NULL,
    };
}

static void send_event(struct choice *c, const struct event *e) {
    c->announced = true;
    c->task->r.on_event(c->task->r.user, e);
}

sumi_status answer_token(struct answer *a, struct choice *c, int32_t id,
                         const struct token_logprob *top, size_t n_top, enum finish *finish,
                         sumi_error *err) {
    const struct sampling *s = &c->task->r.sampling;
    struct event e = new_event(c);
    int stop_string = -1;
    bool old = c->n_output > s->min_tokens;
    bool end = old && !s->ignore_eos && holds(a->eos, a->n_eos, id);
    bool stop = old && !end && holds(s->stop_ids.id, s->stop_ids.n, id);
    if (c->stream && ((!end && !stop) || s->include_stop))
        TRY(stream_push(c->stream, id, &e.piece, &e.n_piece, &stop_string, err));
    if (end || stop || stop_string >= 0) e.finish = FINISH_STOP;
    else if (c->n_output >= s->max_tokens) e.finish = FINISH_LENGTH;
    if (stop_string >= 0) e.stop_string = stop_string;
    else if (stop) e.stop_token = id;
    if (c->stream && e.finish != FINISH_NONE && stop_string < 0)
        TRY(finish_text(a, c->stream, &e.piece, &e.n_piece, err));
    const struct token_event token = {.id = id, .top = top, .n_top = n_top};
    e.token = &token;
    e.n_token = 1;
    *finish = e.finish;
    send_event(c, &e);
    return SUMI_OK;
}

void answer_end(struct answer *a, struct choice *c, enum finish finish, const sumi_error *error) {
    struct event e = new_event(c);
    e.finish = finish;
    e.error = error;
    if (c->stream && !error && finish_text(a, c->stream, &e.piece, &e.n_piece, NULL) != SUMI_OK)
        e.n_piece = 0; /* the end must reach the client even without its last letters */
    send_event(c, &e);
}
