/* GGUF metadata to tokenizer lists. */
#include "model/gguf_tokenizer.h"

#include <string.h>

#include "base/mem.h"

enum { TYPE_NORMAL = 1, TYPE_UNKNOWN, TYPE_CONTROL, TYPE_USER_DEFINED, TYPE_UNUSED, TYPE_BYTE };

struct lists {
    struct token_text *vocab, *merges;
    struct added_token *added;
    size_t n_added;
};

static sumi_status expect(const struct gguf *g, const char *key, const char *want,
                          sumi_error *err) {
    const char *s;
    size_t n;
    TRY(gguf_get_string(g, key, true, &s, &n, err));
    if (n == strlen(want) && memcmp(s, want, n) == 0) return SUMI_OK;
    return fail_with(err, SUMI_ERR_UNSUPPORTED,
                     "GGUF: %s is \"%.*s\", but only \"%s\" is supported; a tokenizer.json can be "
                     "given with --tokenizer",
                     key, (int)(n > 60 ? 60 : n), s, want);
}

static sumi_status string_list(const struct gguf *g, const char *key, struct token_text **out,
                               size_t *n_out, sumi_error *err) {
    const struct gguf_value *v = gguf_find(g, key);
    if (!v || !v->is_array)
        return fail_with(err, SUMI_ERR_MISSING, "GGUF: %s must be a list of strings", key);
    struct token_text *p = mem_zero(v->n, sizeof *p);
    if (!p) return NO_MEMORY(err, v->n * sizeof *p);
    *out = p;
    size_t at = 0;
    for (size_t i = 0; i < v->n; i++)
        if (!gguf_next_string(v, &at, &p[i].text, &p[i].len))
            return fail_with(err, SUMI_ERR_FORMAT, "GGUF: %s must be a list of strings", key);
    *n_out = v->n;
    return SUMI_OK;
}

/* Types sort the vocabulary into ordinary tokens, added tokens and gaps. */
static sumi_status sort_types(const struct gguf *g, size_t n, struct lists *l, sumi_error *err) {
    const char *key = "tokenizer.ggml.token_type";
    const struct gguf_value *types = gguf_find(g, key);
    if (types && types->n != n)
        return fail_with(err, SUMI_ERR_SHAPE, "GGUF: %s has %zu entries, expected %zu", key,
                         types->n, n);
    l->added = mem_zero(n, sizeof *l->added);
    if (!l->added) return NO_MEMORY(err, n * sizeof *l->added);
    for (size_t i = 0; types && i < n; i++) {
        int64_t type;
        if (!gguf_value_i64(types, i, &type) || type < TYPE_NORMAL || type > TYPE_BYTE)
            return fail_with(err, SUMI_ERR_FORMAT, "GGUF: %s[%zu] is no token type", key, i);
        if (type == TYPE_CONTROL || type == TYPE_USER_DEFINED)
            l->added[l->n_added++] = (struct added_token){.id = (int32_t)i,
                                                          .text = l->vocab[i].text,
                                                          .len = l->vocab[i].len,
                                                          .special = type == TYPE_CONTROL};
        if (type != TYPE_NORMAL) l->vocab[i] = (struct token_text){0};
    }
    return SUMI_OK;
}

sumi_status gguf_tokenizer(struct tokenizer **out, const struct gguf *g, const struct family *f,
                           sumi_error *err) {
    struct lists l = {0};
    struct tokenizer_lists t = {.steps = f->pretok, .n_step = f->n_pretok};
    sumi_status status;
    TRY_OUT(expect(g, "tokenizer.ggml.model", "gpt2", err));
    TRY_OUT(expect(g, "tokenizer.ggml.pre", f->gguf_pre, err));
    TRY_OUT(string_list(g, "tokenizer.ggml.tokens", &l.vocab, &t.n_vocab, err));
    TRY_OUT(string_list(g, "tokenizer.ggml.merges", &l.merges, &t.n_merge, err));
    TRY_OUT(sort_types(g, t.n_vocab, &l, err));
    t.vocab = l.vocab;
    t.merges = l.merges;
    t.added = l.added;
    t.n_added = l.n_added;
    status = tokenizer_open_lists(out, &t, err);
out:
    mem_free(l.vocab);
    mem_free(l.merges);
    mem_free(l.added);
    return status;
}
