/* Pieces of sampled text flow in; what they mean to a client flows out. This file finds markers (by
 * id or by spelling, holding back what may become one) and counts reasoning tokens; which states an
 * answer goes through is the dialect's affair, and it knows nothing of HTTP. */
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "chat/parse.h"

struct answer {
    const struct dialect *dialect;
    const struct tokenizer *tokenizer;
    void *state;             /* the dialect's, dialect->state_size bytes */
    int32_t id[MAX_MARKERS]; /* added token of each marker, or -1 */
    uint32_t by_id, by_text; /* which markers are recognised how; the others are ordinary text */
    struct buf in;           /* text that is not certain yet */
    struct collect out;
    bool finished;
    /* The count of reasoning tokens: ids decide where they can, else the state after the pieces. */
    bool count_by_id, counting;
    int32_t n_reasoning;
    int32_t n_since;    /* counted since reasoning text last became certain */
    bool doubtful;      /* a marker that may end reasoning came, and the state is still open */
    int32_t n_doubtful; /* tokens since then, the marker included */
};

/* Neither parser: every piece is content. */
static uint32_t plain_expects(const void *state) {
    (void)state;
    return 0;
}

static bool plain_in_reasoning(const void *state) {
    (void)state;
    return false;
}

static size_t plain_text(void *state, struct collect *out, const char *s, size_t n) {
    (void)state;
    collect_content(out, s, n);
    return n;
}

static void plain_end(void *state, struct collect *out, bool complete) {
    (void)state;
    (void)complete;
    collect_end(out);
}

static const struct dialect plain = {.name = "",
                                     .alias = "",
                                     .expects = plain_expects,
                                     .in_reasoning = plain_in_reasoning,
                                     .on_text = plain_text,
                                     .on_end = plain_end};

static const struct dialect *const all_dialects[] = {&dialect_glm47};

const struct dialect *dialect_find(const char *name) {
    for (size_t i = 0; i < sizeof all_dialects / sizeof *all_dialects; i++)
        if (!strcmp(name, all_dialects[i]->name) || !strcmp(name, all_dialects[i]->alias))
            return all_dialects[i];
    return NULL;
}

const char *dialect_names(void) {
    return "glm47, glm45";
}

/* Which markers are found by id, and which by their spelling. */
static void bind_markers(struct answer *a, uint32_t enabled) {
    for (int m = 0; m < a->dialect->n_marker; m++) {
        const struct marker *k = &a->dialect->marker[m];
        int32_t id = tokenizer_find(a->tokenizer, k->text, strlen(k->text));
        if (id >= 0 && !tokenizer_is_added(a->tokenizer, id)) id = -1;
        a->id[m] = id;
        if (!(enabled >> m & 1)) continue;
        if (id >= 0 && !k->as_text) a->by_id |= 1u << m;
        else a->by_text |= 1u << m;
    }
    a->count_by_id = true;
    for (int m = 0; m < a->dialect->n_marker; m++)
        if (a->dialect->marker[m].count != COUNT_NOTHING && a->by_text >> m & 1)
            a->count_by_id = false;
}

static sumi_status choose_dialect(struct answer *a, const struct answer_options *o,
                                  sumi_error *err) {
    if (o->reasoning && o->tools && o->reasoning != o->tools)
        return fail_with(err, SUMI_ERR_ARG,
                         "the reasoning parser \"%s\" and the tool parser \"%s\" read different "
                         "formats: name the same one twice",
                         o->reasoning->name, o->tools->name);
    a->dialect = o->reasoning ? o->reasoning : o->tools ? o->tools : &plain;
    return SUMI_OK;
}

sumi_status answer_open(struct answer **out, const struct tokenizer *t,
                        const struct answer_options *options, sumi_error *err) {
    *out = NULL;
    struct answer *a = mem_zero(1, sizeof *a);
    if (!a) return NO_MEMORY(err, sizeof *a);
    sumi_status status;
    TRY_OUT(choose_dialect(a, options, err));
    a->tokenizer = t;
    a->out.drop_calls = options->drop_calls;
    a->out.single_call = options->single_call;
    uint32_t enabled = 0;
    if (a->dialect->state_size) {
        a->state = mem_zero(1, a->dialect->state_size);
        if (!a->state) TRY_OUT(NO_MEMORY(err, a->dialect->state_size));
        TRY_OUT(a->dialect->open(a->state, t, options, &enabled, err));
    }
    bind_markers(a, enabled);
    a->counting = a->dialect->in_reasoning(a->state);
    *out = a;
    return SUMI_OK;
out:
    answer_close(a);
    return status;
}

void answer_close(struct answer *a) {
    if (!a) return;
    if (a->state) a->dialect->close(a->state);
    mem_free(a->state);
    buf_reset(&a->in);
    collect_reset(&a->out);
    mem_free(a);
}

/* The tokens counted since reasoning text last became certain were part of this marker. */
static void uncount_marker(struct answer *a, int m) {
    enum marker_count kind = a->dialect->marker[m].count;
    if (kind == COUNT_NOTHING || kind == COUNT_BEGINS) return;
    a->n_reasoning -= a->n_since;
    a->doubtful = kind == COUNT_MAY_END;
    a->n_doubtful = a->n_since;
    a->n_since = 0;
}

/* After an input: if a doubtful marker turned out to be text, its tokens count after all. */
static void settle_count(struct answer *a) {
    bool in = a->dialect->in_reasoning(a->state);
    if (a->doubtful && in) {
        a->n_reasoning += a->n_doubtful;
        a->counting = true;
        a->doubtful = false;
    }
    if (!a->count_by_id) a->counting = in;
}

static void marker_found(struct answer *a, int m) {
    if (!a->count_by_id && a->dialect->in_reasoning(a->state)) uncount_marker(a, m);
    if (a->dialect->marker[m].count == COUNT_BEGINS) a->doubtful = false;
    a->dialect->on_marker(a->state, &a->out, m);
    settle_count(a);
}

enum match { MATCH_NONE, MATCH_PART, MATCH_FULL };

/* Compares s[0..n) with every marker of the mask. */
static enum match match_marker(const struct answer *a, uint32_t mask, const char *s, size_t n,
                               int *marker) {
    enum match best = MATCH_NONE;
    for (int m = 0; m < a->dialect->n_marker; m++) {
        if (!(mask >> m & 1)) continue;
        const char *text = a->dialect->marker[m].text;
        size_t len = strlen(text);
        if (memcmp(s, text, n < len ? n : len) != 0) continue;
        if (n >= len) {
            *marker = m;
            return MATCH_FULL;
        }
        best = MATCH_PART;
    }
    return best;
}

static size_t incomplete_tail(const char *s, size_t n) {
    for (size_t k = n < 3 ? n : 3; k; k--)
        if (utf8_incomplete(s + n - k, k)) return k;
    return 0;
}

/* Length of the text at the start of s[0..n) that certainly holds no marker; *marker is what stands
 * right behind it, or -1 (nothing, or what must be held until more is known). */
static size_t scan(const struct answer *a, const char *s, size_t n, bool last, int *marker) {
    uint32_t mask = a->dialect->expects(a->state) & a->by_text;
    *marker = -1;
    for (const char *p = s; (p = memchr(p, '<', n - (size_t)(p - s))); p++) {
        size_t at = (size_t)(p - s);
        enum match hit = match_marker(a, mask, p, n - at, marker);
        if (hit == MATCH_FULL || (hit == MATCH_PART && !last)) return at;
    }
    return last ? n : n - incomplete_tail(s, n);
}

static size_t text_found(struct answer *a, const char *s, size_t n) {
    if (a->dialect->in_reasoning(a->state)) a->n_since = 0;
    size_t used = a->dialect->on_text(a->state, &a->out, s, n);
    settle_count(a);
    return used;
}

/* Gives what is certain to the dialect. `last`: no text that could complete a marker follows. */
static void lex(struct answer *a, bool last) {
    size_t at = 0;
    while (at < a->in.len) {
        const char *s = a->in.data + at;
        int marker;
        size_t n = scan(a, s, a->in.len - at, last, &marker);
        if (n) {
            at += text_found(a, s, n);
        } else if (marker >= 0) {
            at += strlen(a->dialect->marker[marker].text);
            marker_found(a, marker);
        } else {
            break;
        }
    }
    buf_drop(&a->in, at);
}

/* The marker that has this token, or -1. */
static int marker_of(const struct answer *a, int32_t id) {
    for (int m = 0; m < a->dialect->n_marker; m++)
        if (a->id[m] == id) return m;
    return -1;
}

static void feed(struct answer *a, const struct piece *p) {
    if (p->id >= 0 && a->dialect != &plain) {
        int m = marker_of(a, p->id);
        if (m >= 0 && a->by_id >> m & 1) {
            lex(a, true);
            marker_found(a, m);
            return;
        }
        if (m < 0 && tokenizer_is_special(a->tokenizer, p->id)) return;
    }
    buf_put(&a->in, p->text, p->n);
    if (a->in.failed) a->out.failed = true;
    else lex(a, false);
}

sumi_status answer_push(struct answer *a, const struct piece *pieces, size_t n_piece,
                        const struct delta **deltas, size_t *n, sumi_error *err) {
    if (a->finished) return fail_with(err, SUMI_ERR_STATE, "the answer has ended");
    collect_clear_deltas(&a->out);
    for (size_t i = 0; i < n_piece; i++) feed(a, &pieces[i]);
    return collect_deltas(&a->out, deltas, n, err);
}

sumi_status answer_finish(struct answer *a, bool complete, const struct delta **deltas, size_t *n,
                          sumi_error *err) {
    if (a->finished) return fail_with(err, SUMI_ERR_STATE, "the answer has ended");
    collect_clear_deltas(&a->out);
    lex(a, true);
    a->dialect->on_end(a->state, &a->out, complete);
    a->finished = true;
    return collect_deltas(&a->out, deltas, n, err);
}

int32_t answer_calls(const struct answer *a) {
    return (int32_t)a->out.n_call;
}

bool answer_in_reasoning(const struct answer *a) {
    return a->dialect->in_reasoning(a->state);
}

void answer_count_token(struct answer *a, int32_t id) {
    int m = a->count_by_id ? marker_of(a, id) : -1;
    enum marker_count kind =
        m >= 0 && a->by_id >> m & 1 ? a->dialect->marker[m].count : COUNT_NOTHING;
    switch (kind) {
    case COUNT_BEGINS:
        a->counting = true;
        a->doubtful = false;
        return;
    case COUNT_ENDS:
    case COUNT_MAY_END:
        a->doubtful = a->counting && kind == COUNT_MAY_END;
        a->n_doubtful = 1;
        a->counting = false;
        return;
    case COUNT_NOTHING: break;
    }
    if (a->counting) {
        a->n_reasoning++;
        a->n_since++;
    } else if (a->doubtful) {
        a->n_doubtful++;
    }
}

int32_t answer_reasoning_tokens(const struct answer *a) {
    return a->n_reasoning;
}

sumi_status answer_message(struct answer *a, struct answer_message *out, sumi_error *err) {
    if (!a->finished)
        return fail_with(err, SUMI_ERR_STATE, "the whole message is known after the answer's end");
    return collect_message(&a->out, a->dialect->strip_content, out, err);
}
