/* In: valid UTF-8 and a list of steps. Out: pieces, one call each; a piece goes through all later
 * steps before the next one is looked for, so nothing is stored. Knows nothing of tokens. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "text/pretok.h"

#include <pcre2.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "text/pretok_regex.h"

#define MAX_STEPS 32

/* A pattern is data from a file, so its work is bounded: the number of backtracks of a match, the
 * memory of the interpreter, and (as those do not see long scans forward, from each of many starts
 * or in a loop) the processor time. The clock is read after WINDOW start positions and after every
 * CHECK matches or callouts, between which a scan over the text is the most that can happen. */
#define MATCH_LIMIT    10000000u /* plus 16 per byte */
#define HEAP_LIMIT_KIB 65536u
#define WINDOW         1024
#define CHECK          256
#define MAX_NS         3000000000 /* plus 10 microseconds per byte */

static const char gpt2_pattern[] =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

struct pretok_part {
    pcre2_code *code; /* NULL: put a space before a piece that does not start with one */
    enum split_behavior behavior;
    bool invert;
};

struct pretok_match {
    pcre2_general_context *memory;
    pcre2_match_context *context;
    pcre2_match_data *data;
    int64_t deadline_ns; /* of processor time of this thread */
    unsigned n_step;     /* matches and callouts */
};

static void *pcre_alloc(size_t n, void *unused) {
    (void)unused;
    return mem_alloc(n);
}

static void pcre_free(void *p, void *unused) {
    (void)unused;
    mem_free(p);
}

/* ---- opening ---- */

static int unicode_version(void) {
    char text[64] = "";
    if (pcre2_config(PCRE2_CONFIG_UNICODE_VERSION, NULL) < (int)sizeof text)
        pcre2_config(PCRE2_CONFIG_UNICODE_VERSION, text);
    return atoi(text);
}

static sumi_status compile(pcre2_code **out, const char *pattern, size_t n, bool literal,
                           sumi_error *err) {
    int code = 0;
    PCRE2_SIZE at = 0;
    pcre2_general_context *memory = pcre2_general_context_create(pcre_alloc, pcre_free, NULL);
    pcre2_compile_context *context = memory ? pcre2_compile_context_create(memory) : NULL;
    if (context) {
        pcre2_set_newline(context, PCRE2_NEWLINE_LF);
        uint32_t options =
            PCRE2_UTF | PCRE2_NO_UTF_CHECK | PCRE2_USE_OFFSET_LIMIT |
            (literal ? PCRE2_LITERAL : PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NO_AUTO_POSSESS);
        *out = pcre2_compile((PCRE2_SPTR)pattern, n, options, &code, &at, context);
        /* Without JIT (not built in, or memory may not be made executable) matching is slower. */
        if (*out) pcre2_jit_compile(*out, PCRE2_JIT_COMPLETE);
    }
    pcre2_compile_context_free(context);
    pcre2_general_context_free(memory);
    if (*out) return SUMI_OK;
    if (!context || code == PCRE2_ERROR_NOMEMORY || code == PCRE2_ERROR_HEAP_FAILED)
        return NO_MEMORY(err, n);
    PCRE2_UCHAR why[128];
    pcre2_get_error_message(code, why, sizeof why);
    return fail_with(err, SUMI_ERR_UNSUPPORTED, "regular expression: PCRE2 refuses it: %s",
                     (const char *)why);
}

static sumi_status compile_regex(pcre2_code **out, const char *pattern, sumi_error *err) {
    struct buf b = {0};
    sumi_status status = regex_translate(pattern, strlen(pattern), unicode_version(), &b, err);
    if (status == SUMI_OK) status = compile(out, buf_text(&b), b.len, false, err);
    buf_reset(&b);
    return status;
}

static sumi_status open_step(struct pretok *p, const struct pretok_step *s, bool last,
                             sumi_error *err) {
    struct pretok_part *part = &p->part[p->n_part];
    part->behavior = SPLIT_ISOLATED;
    switch (s->kind) {
    case PRETOK_SPLIT:
        if (!s->pattern[0])
            return fail_with(err, SUMI_ERR_UNSUPPORTED, "an empty pattern is not supported");
        if (!utf8_valid(s->pattern, strlen(s->pattern)))
            return fail_with(err, SUMI_ERR_FORMAT, "the pattern is not valid UTF-8");
        part->behavior = s->behavior;
        part->invert = s->invert;
        p->n_part++;
        if (s->is_literal) return compile(&part->code, s->pattern, strlen(s->pattern), true, err);
        return compile_regex(&part->code, s->pattern, err);
    case PRETOK_DIGITS:
        if (!s->individual_digits) part->behavior = SPLIT_CONTIGUOUS;
        p->n_part++;
        return compile_regex(&part->code, "\\p{N}", err);
    case PRETOK_BYTE_LEVEL:
        if (!last)
            return fail_with(err, SUMI_ERR_UNSUPPORTED,
                             "ByteLevel is supported only as the last step: later steps would see "
                             "its alphabet instead of the text");
        if (s->add_prefix_space) p->n_part++; /* the part without a pattern */
        if (!s->use_regex) return SUMI_OK;
        part = &p->part[p->n_part++];
        part->behavior = SPLIT_ISOLATED;
        return compile_regex(&part->code, gpt2_pattern, err);
    }
    return fail_with(err, SUMI_ERR_UNSUPPORTED, "unknown kind %d", (int)s->kind);
}

sumi_status pretok_open(struct pretok *p, const struct pretok_step *steps, size_t n,
                        sumi_error *err) {
    *p = (struct pretok){0};
    if (n > MAX_STEPS)
        return fail_with(err, SUMI_ERR_LIMIT, "pre_tokenizer has %zu steps, the limit is %d", n,
                         MAX_STEPS);
    p->part = mem_zero(n + 1, sizeof *p->part); /* a byte-level step becomes up to two */
    if (!p->part) return NO_MEMORY(err, (n + 1) * sizeof *p->part);
    for (size_t i = 0; i < n; i++) {
        sumi_status status = open_step(p, &steps[i], i + 1 == n, err);
        if (status == SUMI_OK) continue;
        error_prefix(err, "pre_tokenizer step %zu", i);
        pretok_close(p);
        return status;
    }
    return SUMI_OK;
}

void pretok_close(struct pretok *p) {
    for (size_t i = 0; i < p->n_part; i++) pcre2_code_free(p->part[i].code);
    mem_free(p->part);
    *p = (struct pretok){0};
}

/* ---- matching ---- */

static int64_t thread_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static bool is_late(struct pretok_match *m) {
    return ++m->n_step % CHECK == 0 && thread_ns() > m->deadline_ns;
}

static int watch(pcre2_callout_block *block, void *match) {
    (void)block;
    return is_late(match) ? PCRE2_ERROR_CALLOUT : 0;
}

static sumi_status work_start(struct pretok_work *w, size_t n, sumi_error *err) {
    if (!w->match) {
        w->match = mem_zero(1, sizeof *w->match);
        if (!w->match) return NO_MEMORY(err, sizeof *w->match);
        w->match->memory = pcre2_general_context_create(pcre_alloc, pcre_free, NULL);
        if (w->match->memory) {
            w->match->context = pcre2_match_context_create(w->match->memory);
            w->match->data = pcre2_match_data_create(1, w->match->memory);
        }
    }
    struct pretok_match *m = w->match;
    if (!m->context || !m->data) return NO_MEMORY(err, sizeof *m);
    pcre2_set_heap_limit(m->context, HEAP_LIMIT_KIB);
    pcre2_set_match_limit(m->context, n > (UINT32_MAX - MATCH_LIMIT) / 16
                                          ? UINT32_MAX
                                          : MATCH_LIMIT + 16 * (uint32_t)n);
    m->deadline_ns = thread_ns() + MAX_NS + 10000 * (int64_t)n;
    m->n_step = 0;
    pcre2_set_callout(m->context, watch, m);
    return SUMI_OK;
}

void pretok_work_reset(struct pretok_work *w) {
    if (w->match) {
        pcre2_match_data_free(w->match->data);
        pcre2_match_context_free(w->match->context);
        pcre2_general_context_free(w->match->memory);
        mem_free(w->match);
    }
    buf_reset(&w->prefixed);
    *w = (struct pretok_work){0};
}

struct run {
    const struct pretok *pretok;
    struct pretok_work *work;
    pretok_sink sink;
    void *ctx;
    sumi_error *err;
};

static sumi_status too_much(const struct run *r, size_t part, const char *what) {
    return fail_with(r->err, SUMI_ERR_LIMIT,
                     "pre_tokenizer: the pattern of part %zu needs too much work on this text (%s)",
                     part, what);
}

/* The first match that starts at or after `from`; *found false: none. */
static sumi_status find(const struct run *r, size_t k, const char *text, size_t n, size_t from,
                        bool *found, size_t *start, size_t *end) {
    struct pretok_match *m = r->work->match;
    *found = false;
    for (;;) {
        size_t stop = n - from > WINDOW ? from + WINDOW : n;
        while (stop < n && ((unsigned char)text[stop] & 0xC0) == 0x80) stop++;
        pcre2_set_offset_limit(m->context, stop);
        const pcre2_code *code = r->pretok->part[k].code;
        int e =
            pcre2_match(code, (PCRE2_SPTR)text, n, from, PCRE2_NO_UTF_CHECK, m->data, m->context);
        if (e == PCRE2_ERROR_JIT_STACKLIMIT)
            e = pcre2_match(code, (PCRE2_SPTR)text, n, from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT,
                            m->data, m->context);
        if (e == PCRE2_ERROR_NOMATCH && stop < n && thread_ns() > m->deadline_ns)
            e = PCRE2_ERROR_CALLOUT;
        if (is_late(m) || e == PCRE2_ERROR_CALLOUT) return too_much(r, k, "time");
        if (e >= 0) {
            const PCRE2_SIZE *v = pcre2_get_ovector_pointer(m->data);
            *found = true;
            *start = v[0];
            *end = v[1];
            return SUMI_OK;
        }
        if (e == PCRE2_ERROR_NOMEMORY) return NO_MEMORY(r->err, n);
        if (e != PCRE2_ERROR_NOMATCH) {
            PCRE2_UCHAR why[128];
            pcre2_get_error_message(e, why, sizeof why);
            return too_much(r, k, (const char *)why);
        }
        if (stop == n) return SUMI_OK;
        from = stop;
    }
}

/* ---- cutting ---- */

static sumi_status run_part(const struct run *r, size_t k, const char *text, size_t n);

/* Joins matches and the gaps between them to pieces as the behaviour says. */
struct joiner {
    const struct run *run;
    size_t part; /* that takes the pieces */
    const char *text;
    enum split_behavior behavior;
    bool open, previous; /* a piece is being built; the span before was a match */
    size_t start, end;   /* of that piece */
};

static sumi_status flush(struct joiner *j) {
    if (!j->open || j->start == j->end) return SUMI_OK;
    return run_part(j->run, j->part, j->text + j->start, j->end - j->start);
}

static sumi_status add_span(struct joiner *j, size_t start, size_t end, bool match) {
    bool extend = false;
    switch (j->behavior) {
    case SPLIT_REMOVED:
        if (match) return SUMI_OK;
        break;
    case SPLIT_ISOLATED: break;
    case SPLIT_CONTIGUOUS: extend = match == j->previous; break;
    case SPLIT_MERGED_WITH_PREVIOUS: extend = match && !j->previous; break;
    case SPLIT_MERGED_WITH_NEXT: extend = !match && j->previous; break;
    }
    j->previous = match;
    if (extend && j->open) {
        j->end = end;
        return SUMI_OK;
    }
    TRY(flush(j));
    j->open = true;
    j->start = start;
    j->end = end;
    return SUMI_OK;
}

static sumi_status split(const struct run *r, size_t k, const char *text, size_t n) {
    const struct pretok_part *part = &r->pretok->part[k];
    struct joiner j = {.run = r, .part = k + 1, .text = text, .behavior = part->behavior};
    size_t from = 0, done = 0;
    bool any = false;
    while (from <= n) {
        bool found;
        size_t start, end;
        TRY(find(r, k, text, n, from, &found, &start, &end));
        if (!found) break;
        if (start == end && any && end == done) { /* an empty match right behind a match */
            do from++;
            while (from < n && ((unsigned char)text[from] & 0xC0) == 0x80);
            continue;
        }
        if (done != start) TRY(add_span(&j, done, start, part->invert));
        TRY(add_span(&j, start, end, !part->invert));
        from = done = end;
        any = true;
    }
    if (done != n) TRY(add_span(&j, done, n, part->invert));
    return flush(&j);
}

static sumi_status run_part(const struct run *r, size_t k, const char *text, size_t n) {
    if (k == r->pretok->n_part) return r->sink(r->ctx, text, n, r->err);
    if (r->pretok->part[k].code) return split(r, k, text, n);
    if (text[0] == ' ') return run_part(r, k + 1, text, n);
    struct buf *b = &r->work->prefixed; /* free for use: at most one part prefixes */
    buf_clear(b);
    buf_putc(b, ' ');
    buf_put(b, text, n);
    if (b->failed) return NO_MEMORY(r->err, n + 1);
    return run_part(r, k + 1, b->data, b->len);
}

sumi_status pretok_run(const struct pretok *p, struct pretok_work *w, const char *text, size_t n,
                       pretok_sink sink, void *ctx, sumi_error *err) {
    struct run r = {.pretok = p, .work = w, .sink = sink, .ctx = ctx, .err = err};
    if (n == 0) return SUMI_OK;
    TRY(work_start(w, n, err));
    return run_part(&r, 0, text, n);
}
