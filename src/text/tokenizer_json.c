/* In: tokenizer.json of the Hugging Face library. Out: lists for tokenizer_open_lists. What this
 * engine would tokenize otherwise than the library is refused by name. Ignored: `truncation` and
 * `padding` (settings of one use, not of the vocabulary). */
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/size.h"
#include "base/utf8.h"
#include "text/bytelevel.h"
#include "text/tokenizer.h"

#define MAX_FILE ((size_t)256 << 20)
#define MAX_ID   (1 << 24)

struct reader {
    struct tokenizer_lists lists;
    struct token_text *vocab;
    struct token_text *merges;
    struct added_token *added;
    struct pretok_step *steps;
    size_t step_cap;
    struct buf joined; /* merges given as pairs, spelled "left right" */
    sumi_error *err;
};

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

static sumi_status read_vocab(struct reader *r, struct json_object *model) {
    struct json_object *vocab = json_get(model, "vocab");
    if (!json_is(vocab, json_type_object))
        return wrong_type(r, "model.vocab", "an object of texts and ids", vocab);
    int64_t last = -1;
    json_object_object_foreach(vocab, key, value) {
        if (!json_is(value, json_type_int)) return wrong_type(r, key, "an id", value);
        int64_t id = json_object_get_int64(value);
        if (id < 0 || id > MAX_ID)
            return fail_with(r->err, SUMI_ERR_LIMIT, "token \"%.60s\": its id is not in 0..%d", key,
                             MAX_ID);
        if (id > last) last = id;
    }
    r->lists.n_vocab = (size_t)(last + 1);
    r->lists.vocab = r->vocab = mem_zero(r->lists.n_vocab, sizeof *r->vocab);
    if (!r->vocab) return NO_MEMORY(r->err, r->lists.n_vocab * sizeof *r->vocab);
    json_object_object_foreach(vocab, text, number) {
        struct token_text *t = &r->vocab[json_object_get_int64(number)];
        if (t->text)
            return fail_with(r->err, SUMI_ERR_FORMAT,
                             "tokens \"%.60s\" and \"%.60s\" have the same id", t->text, text);
        *t = (struct token_text){text, strlen(text)};
    }
    return SUMI_OK;
}

/* ["left", "right"] is spelled "left right" in r->joined; *at is where. */
static sumi_status join_pair(struct reader *r, struct json_object *pair, size_t i) {
    for (size_t k = 0; k < 2; k++) {
        struct json_object *part = json_object_array_get_idx(pair, k);
        if (json_object_array_length(pair) != 2 || !json_is(part, json_type_string))
            return fail_with(r->err, SUMI_ERR_FORMAT, "merge %zu is not a pair of strings", i);
        if (k) buf_putc(&r->joined, ' ');
        buf_put(&r->joined, json_object_get_string(part), (size_t)json_object_get_string_len(part));
    }
    return r->joined.failed ? NO_MEMORY(r->err, r->joined.len) : SUMI_OK;
}

static sumi_status read_merges(struct reader *r, struct json_object *model) {
    struct json_object *list = json_get(model, "merges");
    if (!json_is(list, json_type_array)) return wrong_type(r, "model.merges", "a list", list);
    size_t n = json_object_array_length(list);
    r->lists.merges = r->merges = mem_zero(n, sizeof *r->merges);
    if (!r->merges) return NO_MEMORY(r->err, n * sizeof *r->merges);
    for (size_t i = 0; i < n; i++) {
        struct json_object *o = json_object_array_get_idx(list, i);
        struct token_text *t = &r->merges[r->lists.n_merge];
        if (json_is(o, json_type_array)) {
            size_t from = r->joined.len;
            TRY(join_pair(r, o, i));
            t->len = r->joined.len - from; /* text follows when the buffer no longer moves */
        } else if (json_is(o, json_type_string)) {
            *t = (struct token_text){json_object_get_string(o),
                                     (size_t)json_object_get_string_len(o)};
            if (strncmp(t->text, "#version", 8) == 0) continue;
        } else return wrong_type(r, "model.merges", "a list of strings or pairs", o);
        r->lists.n_merge++;
    }
    const char *at = r->joined.data;
    for (size_t i = 0; i < r->lists.n_merge; i++) {
        if (r->merges[i].text) continue;
        r->merges[i].text = at;
        at += r->merges[i].len;
    }
    return SUMI_OK;
}

/* True if every byte that UTF-8 uses has a token, so that nothing is ever unknown. */
static bool knows_all_bytes(struct json_object *vocab) {
    for (int b = 0; b < 0xF5; b++) {
        char utf8[5] = {0};
        if (b == 0xC0 || b == 0xC1) continue;
        utf8_encode(byte_to_char((unsigned char)b), utf8);
        if (!json_get(vocab, utf8)) return false;
    }
    return true;
}

static sumi_status read_model(struct reader *r, struct json_object *model) {
    static const char *const affixes[] = {"continuing_subword_prefix", "end_of_word_suffix"};
    if (!json_is(model, json_type_object)) return wrong_type(r, "model", "an object", model);
    if (json_get(model, "type") ? !type_is(model, "BPE") : !json_get(model, "merges"))
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
    TRY(read_vocab(r, model));
    if ((unk || fallback) && !knows_all_bytes(json_get(model, "vocab")))
        return unsupported(r, unk ? "unk_token" : "byte_fallback", unk ? unk : "true",
                           "none, or a vocabulary with a token for every byte");
    return read_merges(r, model);
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
    if (r->lists.n_step == r->step_cap) {
        size_t cap = r->step_cap ? 2 * r->step_cap : 8;
        struct pretok_step *steps = mem_resize(r->steps, cap, sizeof *steps);
        if (!steps) return NO_MEMORY(r->err, cap * sizeof *steps);
        r->lists.steps = r->steps = steps;
        r->step_cap = cap;
    }
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

sumi_status tokenizer_parse_json(struct tokenizer **out, const char *text, size_t n,
                                 const char *what, sumi_error *err) {
    struct json_object *root;
    *out = NULL;
    TRY(json_parse(&root, text, n, what, err));
    struct reader r = {.err = err};
    sumi_status status = read_root(&r, root);
    if (status == SUMI_OK) status = tokenizer_open_lists(out, &r.lists, err);
    if (status != SUMI_OK) error_prefix(err, "%s", what);
    mem_free(r.vocab);
    mem_free(r.merges);
    mem_free(r.added);
    mem_free(r.steps);
    buf_reset(&r.joined);
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
