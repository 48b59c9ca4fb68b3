/* A request to the engine from the same process. Events come in on the engine's thread and are put
 * into an inbox there; the asking thread takes them out, parses and hands on what became certain.
 */
#include "cli/ask.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"

/* One token, or one piece of text at an offset of the inbox's buffer. */
struct mail {
    bool is_token;
    int32_t id;
    size_t at, n;
};

struct inbox {
    pthread_mutex_t lock; /* guards everything below */
    pthread_cond_t news;
    struct mail *mail;
    size_t n_mail, cap;
    struct buf text;
    bool failed, ended;
    enum finish finish;
    int32_t n_prompt, n_output;
    sumi_error error;
};

static void put_mail(struct inbox *b, struct mail m) {
    if (b->n_mail == b->cap) {
        size_t cap = b->cap ? 2 * b->cap : 64;
        struct mail *p = mem_resize(b->mail, cap, sizeof *p);
        if (!p) {
            b->failed = true;
            return;
        }
        b->mail = p;
        b->cap = cap;
    }
    b->mail[b->n_mail++] = m;
}

static void on_event(void *user, const struct event *e) {
    struct inbox *b = user;
    pthread_mutex_lock(&b->lock);
    for (size_t i = 0; i < e->n_token; i++)
        put_mail(b, (struct mail){.is_token = true, .id = e->token[i].id});
    for (size_t i = 0; i < e->n_piece; i++) {
        put_mail(b, (struct mail){.id = e->piece[i].id, .at = b->text.len, .n = e->piece[i].n});
        buf_put(&b->text, e->piece[i].text, e->piece[i].n);
    }
    b->n_prompt = e->n_prompt;
    b->n_output = e->n_output;
    if (e->finish != FINISH_NONE) b->finish = e->finish;
    if (e->error) b->error = *e->error;
    pthread_cond_signal(&b->news);
    pthread_mutex_unlock(&b->lock);
}

static void on_end(void *user) {
    struct inbox *b = user;
    pthread_mutex_lock(&b->lock);
    b->ended = true;
    pthread_cond_signal(&b->news);
    pthread_mutex_unlock(&b->lock);
}

/* Waits for mail or the end, at most 50 ms, so that an interrupt is seen. */
static void wait_for_news(struct inbox *b) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 50000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    if (!b->n_mail && !b->ended && !b->failed) pthread_cond_timedwait(&b->news, &b->lock, &until);
}

static void hand_on(const struct ask *q, const struct delta *d, size_t n) {
    for (size_t i = 0; i < n; i++) q->on_delta(q->user, &d[i]);
}

static sumi_status push_pieces(const struct ask *q, struct asked *out, const struct piece *p,
                               size_t n, sumi_error *err) {
    const struct delta *d;
    size_t n_delta;
    if (!q->raw) {
        TRY(answer_push(out->answer, p, n, &d, &n_delta, err));
        hand_on(q, d, n_delta);
        return SUMI_OK;
    }
    for (size_t i = 0; i < n; i++) {
        struct delta one = {.kind = DELTA_CONTENT, .call = -1, .text = p[i].text, .n = p[i].n};
        buf_put(&out->text, one.text, one.n);
        hand_on(q, &one, 1);
    }
    return out->text.failed ? NO_MEMORY(err, out->text.len) : SUMI_OK;
}

/* Works through taken mail in order: tokens are counted before the text that came with them. */
static sumi_status read_mail(const struct ask *q, struct asked *out, const struct mail *m, size_t n,
                             const char *text, sumi_error *err) {
    struct piece run[64];
    for (size_t i = 0; i < n;) {
        if (m[i].is_token) {
            if (!q->raw) answer_count_token(out->answer, m[i].id);
            i++;
            continue;
        }
        size_t k = 0;
        for (; i < n && k < 64 && !m[i].is_token; i++, k++)
            run[k] = (struct piece){.id = m[i].id, .text = text + m[i].at, .n = m[i].n};
        TRY(push_pieces(q, out, run, k, err));
    }
    return SUMI_OK;
}

/* Takes all mail out under the lock; *mail and text are then the caller's. */
static size_t take(struct inbox *b, struct mail **mail, struct buf *text) {
    size_t n = b->n_mail;
    *mail = b->mail;
    *text = b->text;
    b->mail = NULL;
    b->n_mail = b->cap = 0;
    b->text = (struct buf){0};
    return n;
}

static sumi_status follow(struct setup *s, const struct ask *q, uint64_t id, struct inbox *b,
                          struct asked *out, double start, sumi_error *err) {
    sumi_status status = SUMI_OK;
    bool cancelled = false, ended = false, first = true;
    while (!ended) {
        struct mail *mail;
        struct buf text;
        pthread_mutex_lock(&b->lock);
        wait_for_news(b);
        size_t n = take(b, &mail, &text);
        if (b->failed && status == SUMI_OK) status = NO_MEMORY(err, sizeof *mail);
        ended = b->ended && !b->n_mail;
        pthread_mutex_unlock(&b->lock);
        if (n && first) {
            out->first_s = clock_seconds() - start;
            first = false;
        }
        if (status == SUMI_OK && text.failed) status = NO_MEMORY(err, text.len);
        if (status == SUMI_OK) status = read_mail(q, out, mail, n, buf_text(&text), err);
        mem_free(mail);
        buf_reset(&text);
        bool stop = status != SUMI_OK || (q->interrupted && *q->interrupted);
        if (stop && !cancelled) {
            engine_cancel(s->engine, id);
            cancelled = true;
        }
    }
    return status;
}

static sumi_status finish_answer(const struct ask *q, const struct inbox *b, struct asked *out,
                                 sumi_error *err) {
    const struct delta *d;
    size_t n;
    out->finish = b->finish;
    out->n_prompt = b->n_prompt;
    out->n_output = b->n_output;
    if (b->finish == FINISH_ERROR) {
        if (err) *err = b->error;
        return b->error.status != SUMI_OK ? b->error.status
                                          : fail_with(err, SUMI_ERR_STATE, "the engine failed");
    }
    if (q->raw) return SUMI_OK;
    TRY(answer_finish(out->answer, b->finish == FINISH_STOP, &d, &n, err));
    hand_on(q, d, n);
    out->n_reasoning = answer_reasoning_tokens(out->answer);
    return SUMI_OK;
}

static sumi_status open_answer(const struct setup *s, const struct ask *q, struct asked *out,
                               sumi_error *err) {
    if (q->raw) return SUMI_OK;
    struct answer_options a = {.reasoning = s->reasoning,
                               .tools = s->tools,
                               .thinking = q->thinking,
                               .prompt = q->prompt->data,
                               .n_prompt = q->prompt->n};
    return answer_open(&out->answer, s->loaded.tokenizer, &a, err);
}

sumi_status ask(struct setup *s, const struct ask *q, struct asked *out, sumi_error *err) {
    struct inbox b = {.lock = PTHREAD_MUTEX_INITIALIZER, .news = PTHREAD_COND_INITIALIZER};
    struct request r = {.prompt = q->prompt->data,
                        .n_prompt = q->prompt->n,
                        .sampling = *q->sampling,
                        .n = 1,
                        .on_event = on_event,
                        .on_end = on_end,
                        .user = &b};
    uint64_t id;
    *out = (struct asked){0};
    TRY(open_answer(s, q, out, err));
    s->watch.done = 0;
    s->watch.n_prompt = q->prompt->n > 512 ? (int64_t)q->prompt->n : 0;
    if (s->replay) {
        r.replay = q->prompt->data;
        r.n_replay = q->prompt->n;
    }
    double start = clock_seconds();
    TRY(engine_submit(s->engine, &r, &id, err));
    sumi_status status = follow(s, q, id, &b, out, start, err);
    out->total_s = clock_seconds() - start;
    if (status == SUMI_OK) status = finish_answer(q, &b, out, err);
    mem_free(b.mail);
    buf_reset(&b.text);
    pthread_cond_destroy(&b.news);
    pthread_mutex_destroy(&b.lock);
    return status;
}

void asked_reset(struct asked *a) {
    if (a->answer) answer_close(a->answer);
    buf_reset(&a->text);
    *a = (struct asked){0};
}

const char *finish_name(enum finish f) {
    return f == FINISH_STOP ? "stop" : f == FINISH_LENGTH ? "length" : "abort";
}
