/* In: tokenizer.json of the Hugging Face library. Out: lists for tokenizer_open_lists. What this
 * engine would tokenize otherwise than the library is refused by name. Ignored: `truncation` and
 * `padding` (settings of one use, not of the vocabulary). The vocabulary and the merges are read
 * from the text, because a tree of them takes longer than all the rest; what is left is small. */
#include <string.h>

#include "base/json.h"
#include "base/jsonr.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "text/bytelevel.h"
#include "text/tokenizer.h"

#define MAX_FILE ((size_t)256 << 20)
#define MAX_ID   (1 << 24)

struct numbered {
    struct token_text text;
    int32_t id;
};

struct reader {
    struct json_reader json; /* over the whole text */
    struct buf rest;         /* the text with null for the vocabulary and the merges */
    size_t copied;           /* of the text to rest */
    struct tokenizer_lists lists;
    struct numbered *listed; /* the vocabulary in the order of the file */
    size_t n_listed, listed_cap, merges_cap, step_cap;
    struct token_text *vocab, *merges;
    struct buf joined; /* merges given as pairs, spelled "left right" */
    struct added_token *added;
    struct pretok_step *steps;
    sumi_error *err;
};

/* Room for one more in an array of the reader. */
static sumi_status grow(struct reader *r, void **data, size_t n, size_t *cap, size_t size) {
    if (n < *cap) return SUMI_OK;
    size_t more = *cap ? 2 * *cap : 64;
    void *p = mem_resize(*data, more, size);
    if (!p) return NO_MEMORY(r->err, more * size);
    *data = p;
    *cap = more;
    return SUMI_OK;
}

static sumi_status unsupported(struct reader *r, const char *what, const char *found,
                               const char *expected) {
    return fail_with(r->err, SUMI_ERR_UNSUPPORTED, "%s \"%.60s\" is not supported, expected %s",
                     what, found, expected);
}

static sumi_status wrong_type(struct reader *r, const char *what, const char *expected,
                              struct json_object *o) {
    return fail_with(r->err, SUMI_ERR_FORMAT, "%s: expected %s, found %s", what, expected,
                     json_type_to_name(json_object_get_type(o)));
}

static bool type_is(struct json_object *o, const char *type) {
    struct json_object *v = json_get(o, "type");
    return json_is(v, json_type_string) && strcmp(json_object_get_string(v), type) == 0;
}

static const char *type_of(struct json_object *o) {
    struct json_object *v = json_get(o, "type");
    return json_is(v, json_type_string) ? json_object_get_string(v) : "(without a type)";
}

/* ---- vocabulary and merges ---- */

static sumi_status read_vocab(struct reader *r) {
    bool more;
    TRY(jsonr_enter(&r->json, '{'));
    for (;; r->n_listed++) {
        TRY(jsonr_more(&r->json, '}', &more));
        if (!more) return SUMI_OK;
        void *listed = r->listed;
        TRY(grow(r, &listed, r->n_listed, &r->listed_cap, sizeof *r->listed));
        r->listed = listed;
        struct numbered *t = &r->listed[r->n_listed];
        int64_t id;
        TRY(jsonr_key(&r->json, &t->text.text, &t->text.len));
        TRY(jsonr_int(&r->json, &id));
        if (id < 0 || id > MAX_ID)
            return fail_with(r->err, SUMI_ERR_LIMIT, "token \"%.*s\": its id is not in 0..%d",
                             (int)(t->text.len < 60 ? t->text.len : 60), t->text.text, MAX_ID);
        t->id = (int32_t)id;
        if (r->lists.n_vocab <= (size_t)id) r->lists.n_vocab = (size_t)id + 1;
    }
}

/* One merge: "left right", or ["left", "right"], which goes to r->joined. */
static sumi_status read_merge(struct reader *r, struct token_text *t) {
    const char *s;
    size_t n, from = r->joined.len;
    bool more;
    if (jsonr_peek(&r->json) != '[') return jsonr_string(&r->json, &t->text, &t->len);
    TRY(jsonr_enter(&r->json, '['));
    for (int i = 0;; i++) {
        TRY(jsonr_more(&r->json, ']', &more));
        if (more == (i == 2))
            return fail_with(r->err, SUMI_ERR_FORMAT, "merge %zu is not a pair of strings",
                             r->lists.n_merge);
        if (!more) break;
        TRY(jsonr_string(&r->json, &s, &n));
        if (i) buf_putc(&r->joined, ' ');
        buf_put(&r->joined, s, n);
    }
    *t = (struct token_text){NULL, r->joined.len - from}; /* the text when it no longer moves */
    return r->joined.failed ? NO_MEMORY(r->err, r->joined.len) : SUMI_OK;
}

static sumi_status read_merges(struct reader *r) {
    bool more;
    TRY(jsonr_enter(&r->json, '['));
    for (;;) {
        TRY(jsonr_more(&r->json, ']', &more));
        if (!more) break;
        void *merges = r->merges;
        TRY(grow(r, &merges, r->lists.n_merge, &r->merges_cap, sizeof *r->merges));
        r->merges = merges;
        struct token_text *t = &r->merges[r->lists.n_merge];
        TRY(read_merge(r, t));
        if (!t->text || t->len < 8 || memcmp(t->text, "#version", 8) != 0) r->lists.n_merge++;
    }
    const char *at = r->joined.data;
    for (size_t i = 0; i < r->lists.n_merge; i++) {
        if (r->merges[i].text) continue;
        r->merges[i].text = at;
        at += r->merges[i].len;
    }
    return SUMI_OK;
}

/* Copies what was passed over since the last cut; `cut` says that the value at `from` was read. */
static void copy_rest(struct reader *r, size_t from, bool cut) {
    buf_put(&r->rest, r->json.text + r->copied, from - r->copied);
    if (cut) buf_puts(&r->rest, "null");
    r->copied = r->json.at;
}

static bool key_is(const char *s, size_t n, const char *key) {
    return strlen(key) == n && memcmp(s, key, n) == 0;
}

/* Walks over the file, reads what is large and leaves the rest for the tree. */
static sumi_status read_large(struct reader *r, bool in_model) {
    const char *key;
    size_t n;
    bool more;
    TRY(jsonr_enter(&r->json, '{'));
    for (;;) {
        TRY(jsonr_more(&r->json, '}', &more));
        if (!more) return SUMI_OK;
        TRY(jsonr_key(&r->json, &key, &n));
        char first = jsonr_peek(&r->json);
        size_t from = r->json.at;
        bool vocab = in_model && first == '{' && key_is(key, n, "vocab");
        bool merges = in_model && first == '[' && key_is(key, n, "merges");
        if (vocab || merges) {
            if (vocab ? r->listed != NULL : r->merges != NULL)
                return fail_with(r->err, SUMI_ERR_FORMAT, "model.%.*s is there twice", (int)n, key);
            TRY(vocab ? read_vocab(r) : read_merges(r));
            copy_rest(r, from, true);
        } else if (!in_model && first == '{' && key_is(key, n, "model")) TRY(read_large(r, true));
        else TRY(jsonr_skip(&r->json));
    }
}

/* The vocabulary by id. */
static sumi_status index_vocab(struct reader *r) {
    r->lists.merges = r->merges;
    r->lists.vocab = r->vocab = mem_zero(r->lists.n_vocab, sizeof *r->vocab);
    if (!r->vocab) return NO_MEMORY(r->err, r->lists.n_vocab * sizeof *r->vocab);
    for (size_t i = 0; i < r->n_listed; i++) {
        const struct numbered *t = &r->listed[i];
        if (r->vocab[t->id].text)
            return fail_with(r->err, SUMI_ERR_FORMAT, "two tokens have the id %d", t->id);
        r->vocab[t->id] = t->text;
    }
    return SUMI_OK;
}

/* True if every byte that UTF-8 uses has a token, so that nothing is ever unknown. */
static bool knows_all_bytes(const struct reader *r) {
    int known = 0;
    for (size_t i = 0; i < r->n_listed; i++) {
        const struct token_text *t = &r->listed[i].text;
        uint32_t c = 0;
        int byte =
            t->len && utf8_decode(t->text, t->len, &c) == (int)t->len ? byte_from_char(c) : -1;
        if (byte >= 0 && byte < 0xF5 && byte != 0xC0 && byte != 0xC1) known++;
    }
    return known == 0xF5 - 2; /* each once: no text occurs twice in a vocabulary */
}

static sumi_status read_model(struct reader *r, struct json_object *model) {
    static const char *const affixes[] = {"continuing_subword_prefix", "end_of_word_suffix"};
    if (!json_is(model, json_type_object)) return wrong_type(r, "model", "an object", model);
    if (json_get(model, "type") ? !type_is(model, "BPE") : !r->merges)
        return unsupported(r, "model type", type_of(model), "\"BPE\"");
    double dropout = 0;
    TRY(json_get_f64(model, "dropout", &dropout, r->err));
    if (dropout != 0)
        return fail_with(r->err, SUMI_ERR_UNSUPPORTED, "model.dropout %g is not supported",
                         dropout);
    for (size_t i = 0; i < 2; i++) {
        const char *affix = "";
        TRY(json_get_str(model, affixes[i], &affix, r->err));
        if (affix[0]) return unsupported(r, affixes[i], affix, "none");
    }
    const char *unk = NULL;
    bool fallback = false;
    TRY(json_get_str(model, "unk_token", &unk, r->err));
    TRY(json_get_bool(model, "byte_fallback", &fallback, r->err));
    TRY(json_get_bool(model, "ignore_merges", &r->lists.ignore_merges, r->err));
    if (!r->listed || !r->merges)
        return fail_with(r->err, SUMI_ERR_FORMAT,
                         "model.%s is not there or empty; expected vocab, an object of texts and "
                         "ids, and merges, a list",
                         r->listed ? "merges" : "vocab");
    if ((unk || fallback) && !knows_all_bytes(r))
        return unsupported(r, unk ? "unk_token" : "byte_fallback", unk ? unk : "true",
                           "none, or a vocabulary with a token for every byte");
    return index_vocab(r);
}

/* ---- added tokens ---- */

static sumi_status read_added(struct reader *r, struct json_object *list) {
    if (!list) return SUMI_OK;
    if (!json_is(list, json_type_array)) return wrong_type(r, "added_tokens", "a list", list);
    size_t n = json_object_array_length(list);
    r->lists.added = r->added = mem_zero(n, sizeof *r->added);
    if (!r->added) return NO_MEMORY(r->err, n * sizeof *r->added);
    for (size_t i = 0; i < n; i++) {
        struct json_object *o = json_object_array_get_idx(list, i);
        struct json_object *content = json_get(o, "content");
        struct added_token *t = &r->added[i];
        int64_t id = -1;
        t->normalized = true;
        TRY(json_get_i64(o, "id", &id, r->err));
        TRY(json_get_bool(o, "special", &t->special, r->err));
        TRY(json_get_bool(o, "single_word", &t->single_word, r->err));
        TRY(json_get_bool(o, "lstrip", &t->lstrip, r->err));
        TRY(json_get_bool(o, "rstrip", &t->rstrip, r->err));
        TRY(json_get_bool(o, "normalized", &t->normalized, r->err));
        if (id < 0 || id > MAX_ID || !json_is(content, json_type_string))
            return fail_with(r->err, SUMI_ERR_FORMAT,
                             "added token %zu: expected an id in 0..%d and a text", i, MAX_ID);
        t->id = (int32_t)id;
        t->text = json_object_get_string(content);
        t->len = (size_t)json_object_get_string_len(content);
    }
    r->lists.n_added = n;
    return SUMI_OK;
}

/* ---- normaliser, pre-tokeniser, the rest ---- */

/* Calls fn with o, or with each member of o when it is a Sequence; a Sequence may hold others. */
static sumi_status each(struct reader *r, struct json_object *o, const char *members,
                        sumi_status (*fn)(struct reader *r, struct json_object *o)) {
    if (!type_is(o, "Sequence")) return fn(r, o);
    struct json_object *list = json_get(o, members);
    if (!json_is(list, json_type_array)) return wrong_type(r, members, "a list", list);
    for (size_t i = 0; i < json_object_array_length(list); i++)
        TRY(each(r, json_object_array_get_idx(list, i), members, fn));
    return SUMI_OK;
}

static sumi_status read_normalizer(struct reader *r, struct json_object *o) {
    if (!type_is(o, "NFC")) return unsupported(r, "normalizer", type_of(o), "none or NFC");
    r->lists.nfc = true;
    return SUMI_OK;
}

static sumi_status read_behavior(struct reader *r, struct json_object *o, struct pretok_step *s) {
    static const char *const names[] = {"Removed", "Isolated", "MergedWithPrevious",
                                        "MergedWithNext", "Contiguous"};
    static const enum split_behavior values[] = {SPLIT_REMOVED, SPLIT_ISOLATED,
                                                 SPLIT_MERGED_WITH_PREVIOUS, SPLIT_MERGED_WITH_NEXT,
                                                 SPLIT_CONTIGUOUS};
    const char *name = "";
    TRY(json_get_str(o, "behavior", &name, r->err));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(name, names[i]) != 0) continue;
        s->behavior = values[i];
        return SUMI_OK;
    }
    return unsupported(r, "pre_tokenizer Split: behavior", name,
                       "Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous");
}

static sumi_status read_split(struct reader *r, struct json_object *o, struct pretok_step *s) {
    struct json_object *pattern = json_get(o, "pattern");
    struct json_object *text = json_get(pattern, "Regex");
    s->kind = PRETOK_SPLIT;
    s->is_literal = !text;
    if (!text) text = json_get(pattern, "String");
    if (!json_is(text, json_type_string))
        return wrong_type(r, "pre_tokenizer Split: pattern", "a Regex or a String", pattern);
    s->pattern = json_object_get_string(text);
    if (strlen(s->pattern) != (size_t)json_object_get_string_len(text))
        return fail_with(r->err, SUMI_ERR_UNSUPPORTED,
                         "pre_tokenizer Split: a NUL character in the pattern is not supported");
    TRY(json_get_bool(o, "invert", &s->invert, r->err));
    return read_behavior(r, o, s);
}

static sumi_status read_step(struct reader *r, struct json_object *o) {
    void *steps = r->steps;
    TRY(grow(r, &steps, r->lists.n_step, &r->step_cap, sizeof *r->steps));
    r->lists.steps = r->steps = steps;
    struct pretok_step *s = &r->steps[r->lists.n_step++];
    *s = (struct pretok_step){.add_prefix_space = true, .use_regex = true};
    if (type_is(o, "Split")) return read_split(r, o, s);
    if (type_is(o, "Digits")) {
        s->kind = PRETOK_DIGITS;
        return json_get_bool(o, "individual_digits", &s->individual_digits, r->err);
    }
    if (type_is(o, "ByteLevel")) {
        s->kind = PRETOK_BYTE_LEVEL;
        TRY(json_get_bool(o, "add_prefix_space", &s->add_prefix_space, r->err));
        return json_get_bool(o, "use_regex", &s->use_regex, r->err);
    }
    return unsupported(r, "pre_tokenizer", type_of(o), "Split, Digits, ByteLevel or a Sequence");
}

/* Post processors put special tokens around a text, which is the caller's affair here. */
static sumi_status check_post_processor(struct reader *r, struct json_object *o) {
    static const char *const known[] = {"ByteLevel", "TemplateProcessing", "BertProcessing",
                                        "RobertaProcessing"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (type_is(o, known[i])) return SUMI_OK;
    return unsupported(r, "post_processor", type_of(o), "ByteLevel, TemplateProcessing or none");
}

static sumi_status check_decoder(struct reader *r, struct json_object *o) {
    return type_is(o, "ByteLevel") ? SUMI_OK : unsupported(r, "decoder", type_of(o), "ByteLevel");
}

static sumi_status read_root(struct reader *r, struct json_object *root) {
    const char *version = "1.0";
    if (!json_is(root, json_type_object)) return wrong_type(r, "the file", "an object", root);
    TRY(json_get_str(root, "version", &version, r->err));
    if (strcmp(version, "1.0") != 0) return unsupported(r, "version", version, "\"1.0\"");
    struct json_object *normalizer = json_get(root, "normalizer");
    struct json_object *post = json_get(root, "post_processor");
    TRY(read_model(r, json_get(root, "model")));
    TRY(read_added(r, json_get(root, "added_tokens")));
    if (normalizer) TRY(each(r, normalizer, "normalizers", read_normalizer));
    TRY(each(r, json_get(root, "pre_tokenizer"), "pretokenizers", read_step));
    if (r->lists.n_step == 0 || r->steps[r->lists.n_step - 1].kind != PRETOK_BYTE_LEVEL)
        return fail_with(r->err, SUMI_ERR_UNSUPPORTED,
                         "pre_tokenizer without ByteLevel as its last step is not supported");
    if (post) TRY(each(r, post, "processors", check_post_processor));
    return each(r, json_get(root, "decoder"), "decoders", check_decoder);
}

static void reader_reset(struct reader *r) {
    jsonr_reset(&r->json);
    buf_reset(&r->rest);
    buf_reset(&r->joined);
    mem_free(r->listed);
    mem_free(r->vocab);
    mem_free(r->merges);
    mem_free(r->added);
    mem_free(r->steps);
}

sumi_status tokenizer_parse_json(struct tokenizer **out, const char *text, size_t n,
                                 const char *what, sumi_error *err) {
    struct json_object *root = NULL;
    struct reader r = {.json = {.text = text, .n = n, .what = "tokenizer", .err = err}, .err = err};
    sumi_status status;
    *out = NULL;
    size_t valid = utf8_valid_prefix(text, n);
    if (valid < n)
        return fail_with(err, SUMI_ERR_FORMAT, "%s: invalid UTF-8 at byte %zu", what, valid);
    TRY_OUT(read_large(&r, false));
    copy_rest(&r, n, false); /* with what may follow the object, which the parser refuses */
    TRY_OUT(r.rest.failed ? NO_MEMORY(err, n) : SUMI_OK);
    TRY_OUT(
        json_parse(&root, buf_text(&r.rest), r.rest.len, "the file without vocab and merges", err));
    TRY_OUT(read_root(&r, root));
    TRY_OUT(tokenizer_open_lists(out, &r.lists, err));
out:
    if (status != SUMI_OK) error_prefix(err, "%s", what);
    reader_reset(&r);
    json_object_put(root);
    return status;
}

sumi_status tokenizer_open_json(struct tokenizer **out, const char *path, sumi_error *err) {
    char *text;
    size_t n;
    *out = NULL;
    TRY(file_read(path, MAX_FILE, &text, &n, err));
    sumi_status status = tokenizer_parse_json(out, text, n, path, err);
    mem_free(text);
    return status;
}
