/* Events in on one thread, out on another. Each is copied into one block: the message, then its
 * arrays. The engine never waits for more than the time it takes to link one message. */
#include "serve/queue.h"

#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/size.h"

struct queue {
    pthread_mutex_t lock;
    struct message *first, **last; /* lock */
    int fd;
};

sumi_status queue_open(struct queue **out, sumi_error *err) {
    struct queue *q = *out = mem_zero(1, sizeof *q);
    if (!q) return NO_MEMORY(err, sizeof *q);
    pthread_mutex_init(&q->lock, NULL);
    q->last = &q->first;
    q->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (q->fd >= 0) return SUMI_OK;
    queue_close(q);
    *out = NULL;
    return fail_with(err, SUMI_ERR_IO, "no descriptor for the event queue; raise the file limit");
}

void queue_close(struct queue *q) {
    if (!q) return;
    for (struct message *m = queue_take(q), *next; m; m = next) {
        next = m->next;
        message_free(m);
    }
    if (q->fd >= 0) close(q->fd);
    pthread_mutex_destroy(&q->lock);
    mem_free(q);
}

int queue_fd(const struct queue *q) {
    return q->fd;
}

void queue_wake(struct queue *q) {
    uint64_t one = 1;
    /* A full counter is readable already, so a failed write loses nothing. */
    ssize_t ignored = write(q->fd, &one, sizeof one);
    (void)ignored;
}

static void post(struct queue *q, struct message *m) {
    m->next = NULL;
    pthread_mutex_lock(&q->lock);
    bool was_empty = !q->first;
    *q->last = m;
    q->last = &m->next;
    pthread_mutex_unlock(&q->lock);
    if (was_empty) queue_wake(q);
}

struct message *queue_take(struct queue *q) {
    uint64_t count;
    ssize_t ignored = read(q->fd, &count, sizeof count);
    (void)ignored;
    pthread_mutex_lock(&q->lock);
    struct message *m = q->first;
    q->first = NULL;
    q->last = &q->first;
    pthread_mutex_unlock(&q->lock);
    return m;
}

void message_free(struct message *m) {
    if (m->kind == MESSAGE_EVENT) mem_free(m);
}

/* Bytes of tokens with their logprobs; false on overflow. */
static bool tokens_size(const struct token_event *token, size_t n, size_t *bytes) {
    size_t tops = 0, a, b;
    for (size_t i = 0; i < n; i++)
        if (!size_add(tops, token[i].n_top, &tops)) return false;
    return size_mul(n, sizeof *token, &a) && size_mul(tops, sizeof *token->top, &b) &&
           size_add(a, b, bytes) && size_add(*bytes, _Alignof(struct token_event), bytes);
}

static void *carve(char **at, const void *from, size_t n, size_t align) {
    char *to = (char *)(((uintptr_t)*at + align - 1) & ~(uintptr_t)(align - 1));
    if (n) memcpy(to, from, n);
    *at = to + n;
    return to;
}

/* Copies tokens and their logprobs; the structs come first, so that both stay aligned. */
static const struct token_event *copy_tokens(char **at, const struct token_event *token, size_t n) {
    struct token_event *to = carve(at, token, n * sizeof *token, _Alignof(struct token_event));
    for (size_t i = 0; i < n; i++)
        to[i].top = carve(at, token[i].top, token[i].n_top * sizeof *token->top,
                          _Alignof(struct token_logprob));
    return to;
}

static struct message *copy_event(const struct event *e) {
    size_t total = sizeof(struct message), part,
           n_prompt = e->prompt_token ? (size_t)e->n_prompt : 0;
    if (!tokens_size(e->token, e->n_token, &part) || !size_add(total, part, &total)) return NULL;
    if (!tokens_size(e->prompt_token, n_prompt, &part) || !size_add(total, part, &total))
        return NULL;
    if (!size_mul(e->n_piece, sizeof *e->piece, &part) || !size_add(total, part, &total))
        return NULL;
    for (size_t i = 0; i < e->n_piece; i++)
        if (!size_add(total, e->piece[i].n, &total)) return NULL;
    struct message *m = mem_alloc(total + _Alignof(struct piece));
    if (!m) return NULL;
    char *at = (char *)(m + 1);
    m->kind = MESSAGE_EVENT;
    m->event = *e;
    m->event.token = copy_tokens(&at, e->token, e->n_token);
    if (n_prompt) m->event.prompt_token = copy_tokens(&at, e->prompt_token, n_prompt);
    struct piece *piece = carve(&at, e->piece, e->n_piece * sizeof *piece, _Alignof(struct piece));
    for (size_t i = 0; i < e->n_piece; i++)
        piece[i].text = carve(&at, e->piece[i].text, e->piece[i].n, 1);
    m->event.piece = piece;
    if (e->error) {
        m->error = *e->error;
        m->event.error = &m->error;
    }
    return m;
}

void queue_on_event(void *user, const struct event *e) {
    struct queue_tap *tap = user;
    struct message *m = copy_event(e);
    if (!m) {
        atomic_store(&tap->lost, true);
        return;
    }
    m->run = tap->run;
    m->at_ns = clock_ns();
    post(tap->queue, m);
}

void queue_on_end(void *user) {
    struct queue_tap *tap = user;
    tap->end.kind = MESSAGE_END;
    tap->end.run = tap->run;
    tap->end.at_ns = clock_ns();
    post(tap->queue, &tap->end);
}
