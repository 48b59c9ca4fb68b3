/* The lists of a request: stop strings, stop ids, allowed ids, logprob ids, biases, bad words. They
 * are copied, so the body can go. Every id is checked against the vocabulary here, by name. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "serve/params.h"
#include "text/tokenizer.h"

enum { MAX_LOGPROB_IDS = 128 };

static sumi_status read_stop(struct params *p, struct json_object *body, int32_t max,
                             sumi_error *err) {
    struct json_object *v = json_get(body, "stop");
    bool one = json_is(v, json_type_string);
    size_t n = one ? 1 : v ? json_object_array_length(v) : 0, bytes = 0;
    if (!n) return SUMI_OK;
    if (n > (size_t)max)
        return fail_param(err, SUMI_ERR_ARG, "stop", "stop has %zu strings; at most %d are taken",
                          n, max);
    for (size_t i = 0; i < n; i++) {
        struct json_object *s = one ? v : json_object_array_get_idx(v, i);
        if (json_object_get_string_len(s) == 0)
            return fail_param(err, SUMI_ERR_ARG, "stop", "stop must not have an empty string");
        bytes += (size_t)json_object_get_string_len(s) + 1;
    }
    const char **text = arena_alloc(&p->memory, n, sizeof *text);
    size_t *len = arena_alloc(&p->memory, n, sizeof *len);
    char *copy = arena_alloc(&p->memory, bytes, 1);
    if (!text || !len || !copy) return NO_MEMORY(err, bytes);
    for (size_t i = 0; i < n; i++) {
        struct json_object *s = one ? v : json_object_array_get_idx(v, i);
        len[i] = (size_t)json_object_get_string_len(s);
        text[i] = memcpy(copy, json_object_get_string(s), len[i] + 1);
        copy += len[i] + 1;
    }
    p->sampling.stop = text;
    p->sampling.stop_len = len;
    p->sampling.n_stop = n;
    return SUMI_OK;
}

static int by_value(const void *a, const void *b) {
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return (x > y) - (x < y);
}

/* An array of ids of the vocabulary; sorted, duplicates removed. */
static sumi_status read_ids(struct params *p, struct json_object *body, const char *field,
                            const struct tokenizer *t, struct token_list *out, sumi_error *err) {
    struct json_object *v = json_get(body, field);
    size_t n = v ? json_object_array_length(v) : 0, used = 0;
    if (!n) return SUMI_OK;
    int32_t *id = arena_alloc(&p->memory, n, sizeof *id);
    if (!id) return NO_MEMORY(err, n * sizeof *id);
    for (size_t i = 0; i < n; i++) {
        int64_t x = -1;
        if (schema_int(json_object_array_get_idx(v, i), &x) != SUMI_OK || x < 0 ||
            x >= tokenizer_size(t) || !tokenizer_has(t, (int32_t)x))
            return fail_param(err, SUMI_ERR_ARG, field,
                              "%s: token id %lld is not in the vocabulary of %d ids", field,
                              (long long)x, tokenizer_size(t));
        id[i] = (int32_t)x;
    }
    qsort(id, n, sizeof *id, by_value);
    for (size_t i = 0; i < n; i++)
        if (!used || id[used - 1] != id[i]) id[used++] = id[i];
    *out = (struct token_list){id, used};
    return SUMI_OK;
}

/* A key of logit_bias: a plain decimal number, so that no two keys mean one id. */
static bool parse_key(const char *key, int64_t *out) {
    const char *digits = key + (*key == '-');
    size_t n = strlen(digits);
    if (!n || strspn(digits, "0123456789") != n || (n > 1 && *digits == '0')) return false;
    *out = n > 18 ? INT64_MAX : strtoll(key, NULL, 10);
    return true;
}

static sumi_status read_bias(struct params *p, struct json_object *body, const struct tokenizer *t,
                             sumi_error *err) {
    struct json_object *v = json_get(body, "logit_bias");
    size_t n = v ? (size_t)json_object_object_length(v) : 0;
    if (!n) return SUMI_OK;
    if (n > (size_t)tokenizer_size(t))
        return fail_param(err, SUMI_ERR_ARG, "logit_bias",
                          "logit_bias has %zu entries, more than the %d ids of the vocabulary", n,
                          tokenizer_size(t));
    struct token_bias *bias = arena_alloc(&p->memory, n, sizeof *bias);
    if (!bias) return NO_MEMORY(err, n * sizeof *bias);
    json_object_object_foreach(v, key, value) {
        int64_t id;
        double x = json_object_get_double(value);
        if (!parse_key(key, &id))
            return fail_param(err, SUMI_ERR_ARG, "logit_bias",
                              "logit_bias: key \"%.40s\" is not a token id", key);
        if (id < 0 || id >= tokenizer_size(t) || !tokenizer_has(t, (int32_t)id))
            return fail_param(err, SUMI_ERR_ARG, "logit_bias",
                              "logit_bias: token id %.40s is not in the vocabulary of %d ids", key,
                              tokenizer_size(t));
        bias[p->sampling.n_bias++] = (struct token_bias){(int32_t)id, (float)(x > 100    ? 100
                                                                              : x < -100 ? -100
                                                                                         : x)};
    }
    p->sampling.bias = bias;
    return SUMI_OK;
}

static sumi_status encode_word(const struct tokenizer *t, const char *word, size_t n, bool space,
                               struct ids *out, sumi_error *err) {
    struct buf text = {0};
    while (n && (*word == ' ' || *word == '\t' || *word == '\n' || *word == '\r')) word++, n--;
    if (space) buf_putc(&text, ' ');
    buf_put(&text, word, n);
    if (text.failed) return NO_MEMORY(err, n);
    sumi_status status = tokenizer_encode(t, text.data, text.len, NULL, true, out, err);
    buf_reset(&text);
    return status;
}

/* A banned word is banned bare and with a blank before it; the second form only counts when it has
 * as many tokens and begins with another one, that is when the blank is part of the word's token.
 */
static sumi_status add_word(struct params *p, struct token_list *list, int32_t **room,
                            struct json_object *word, const struct tokenizer *t, sumi_error *err) {
    const char *text = json_object_get_string(word);
    size_t n = (size_t)json_object_get_string_len(word);
    struct ids bare = {0}, spaced = {0};
    sumi_status status;
    TRY_OUT(encode_word(t, text, n, false, &bare, err));
    TRY_OUT(encode_word(t, text, n, true, &spaced, err));
    bool both = spaced.n == bare.n && bare.n && spaced.data[0] != bare.data[0];
    for (int i = 0; i < 1 + both; i++) {
        const struct ids *ids = i ? &spaced : &bare;
        if (!ids->n) continue;
        memcpy(*room, ids->data, ids->n * sizeof *ids->data);
        list[p->sampling.n_bad++] = (struct token_list){*room, ids->n};
        *room += ids->n;
    }
out:
    mem_free(bare.data);
    mem_free(spaced.data);
    return status;
}

static sumi_status read_bad_words(struct params *p, struct json_object *body, int32_t max,
                                  const struct tokenizer *t, sumi_error *err) {
    struct json_object *v = json_get(body, "bad_words");
    size_t n = v ? json_object_array_length(v) : 0, room = 0;
    if (!n) return SUMI_OK;
    if (n > (size_t)max)
        return fail_param(err, SUMI_ERR_ARG, "bad_words",
                          "bad_words has %zu words; at most %d are taken", n, max);
    for (size_t i = 0; i < n; i++) {
        size_t len = (size_t)json_object_get_string_len(json_object_array_get_idx(v, i));
        if (!len)
            return fail_param(err, SUMI_ERR_ARG, "bad_words",
                              "bad_words must not have an empty string");
        room += 2 * (len + 1); /* a token has at least one byte */
    }
    struct token_list *list = arena_alloc(&p->memory, 2 * n, sizeof *list);
    int32_t *id = arena_alloc(&p->memory, room, sizeof *id);
    if (!list || !id) return NO_MEMORY(err, room * sizeof *id);
    for (size_t i = 0; i < n; i++)
        TRY(add_word(p, list, &id, json_object_array_get_idx(v, i), t, err));
    p->sampling.bad_words = list;
    return SUMI_OK;
}

sumi_status params_read_lists(struct params *p, struct json_object *body,
                              const struct server_config *config, sumi_error *err) {
    const struct tokenizer *t = config->tokenizer;
    struct sampling *s = &p->sampling;
    TRY(read_stop(p, body, config->max_stop, err));
    TRY(read_ids(p, body, "stop_token_ids", t, &s->stop_ids, err));
    struct json_object *allowed = json_get(body, "allowed_token_ids");
    if (allowed && json_object_array_length(allowed) == 0)
        return fail_param(err, SUMI_ERR_ARG, "allowed_token_ids",
                          "allowed_token_ids must not be empty");
    TRY(read_ids(p, body, "allowed_token_ids", t, &s->allowed, err));
    TRY(read_ids(p, body, "logprob_token_ids", t, &s->logprob_ids, err));
    if (s->logprob_ids.n && s->n_logprobs < 0)
        return fail_param(err, SUMI_ERR_ARG, "logprob_token_ids",
                          "logprob_token_ids needs logprobs");
    if (s->logprob_ids.n > MAX_LOGPROB_IDS)
        return fail_param(err, SUMI_ERR_ARG, "logprob_token_ids",
                          "logprob_token_ids has %zu ids; at most %d are taken", s->logprob_ids.n,
                          MAX_LOGPROB_IDS);
    TRY(read_bias(p, body, t, err));
    return read_bad_words(p, body, config->max_bad_words, t, err);
}
