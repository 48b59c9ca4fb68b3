/* A whole model through the runner: what a sequence computes must not depend on how it was cut,
 * what ran beside it, or where its pages lie; and a config that contradicts itself is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/mem.h"
#include "model/family.h"
#include "model/runner.h"
#include "ops/op.h"

static const char config_text[] =
    "{\"model_type\":\"flint\",\"vocab_size\":96,\"num_hidden_layers\":6,\"hidden_size\":64,"
    "\"intermediate_size\":96,\"num_attention_heads\":4,\"num_key_value_heads\":2,\"head_dim\":16,"
    "\"num_experts\":8,\"num_experts_per_tok\":2,\"moe_intermediate_size\":32,"
    "\"shared_expert_intermediate_size\":32,\"sliding_window\":70,\"max_position_embeddings\":512}";

enum { VOCAB = 96, N_LAYER = 6, MAX_POS = 200, STRIDE = (MAX_POS + PAGE_TOKENS - 1) / PAGE_TOKENS };

static sumi_status open_model(struct model **out, const char *text, sumi_error *err) {
    struct json_object *config;
    struct model *m = mem_zero(1, sizeof *m);
    struct binder b = {0};
    assert_int_equal(json_parse(&config, text, strlen(text), "config", NULL), SUMI_OK);
    sumi_status status = m ? SUMI_OK : SUMI_ERR_MEMORY;
    if (status == SUMI_OK) status = flint_family.from_json(m, config, err);
    if (status == SUMI_OK) status = binder_open(&b, NULL, m, 1, err);
    if (status == SUMI_OK) status = flint_family.bind(m, &b, false, err);
    binder_reset(&b);
    json_object_put(config);
    if (status != SUMI_OK) {
        model_close(m);
        m = NULL;
    }
    *out = m;
    return status;
}

struct world {
    struct model *model;
    struct device *device;
    struct runner *runner;
};

static void open_world(struct world *w, bool half, int n_thread) {
    struct runner_options o = {.bf16 = half, .max_rows = 256, .n_slab = 9 * N_LAYER * STRIDE};
    assert_int_equal(open_model(&w->model, config_text, NULL), SUMI_OK);
    assert_int_equal(device_open_cpu(&w->device, n_thread, NULL), SUMI_OK);
    ops_bind_cpu(w->device);
    assert_int_equal(runner_open(&w->runner, w->model, w->device, &o, NULL), SUMI_OK);
}

static void close_world(struct world *w) {
    runner_close(w->runner);
    device_close(w->device);
    model_close(w->model);
}

/* Sequence number `which` says these tokens; its pages are strewn over the pool. */
static int32_t token_at(int32_t which, int32_t pos) {
    return (int32_t)((uint32_t)(which * 7919 + pos * 104729 + pos * pos) % VOCAB);
}

static void lay_pages(int32_t which, int32_t *table) {
    for (int32_t i = 0; i < N_LAYER * STRIDE; i++) table[i] = (i * 9 + which * 5) % 9 + i / 1 * 9;
}

/* One step in which each of n sequences computes rows [from[i], to[i]); logits of each last row. */
static void step(struct world *w, int32_t n, const int32_t *which, const int32_t *from,
                 const int32_t *to, float *logits) {
    static int32_t token[256], pos[256], seq[256], rows[9], table[9][N_LAYER * STRIDE];
    struct seq_pages pages[9];
    int32_t k = 0;
    for (int32_t i = 0; i < n; i++) {
        lay_pages(which[i], table[i]);
        pages[i] = (struct seq_pages){table[i], STRIDE};
        for (int32_t p = from[i]; p < to[i]; p++, k++) {
            token[k] = token_at(which[i], p);
            pos[k] = p;
            seq[k] = i;
        }
        rows[i] = k - 1;
    }
    struct batch b = {.n_row = k,
                      .token = token,
                      .pos = pos,
                      .seq_of = seq,
                      .n_seq = n,
                      .seq = pages,
                      .n_logit = n,
                      .logit_row = rows};
    sumi_error err = {0};
    if (runner_step(w->runner, &b, logits, &err) != SUMI_OK) fail_msg("%s", err.msg);
}

static void a_sequence_is_the_same_alone_and_among_eight(void **state) {
    (void)state;
    for (int half = 0; half < 2; half++) {
        struct world w;
        float alone[VOCAB], among[8 * VOCAB];
        open_world(&w, half, 2);
        const int32_t zero = 0, me = 3, whole = 150;
        step(&w, 1, &me, &zero, &whole, alone);
        close_world(&w);
        open_world(&w, half, 1);
        /* Eight sequences at different stages: some prefill, some decode, in uneven pieces. */
        int32_t which[8], from[8] = {0}, to[8];
        for (int32_t i = 0; i < 8; i++) which[i] = i;
        for (int32_t turn = 0; from[3] < whole; turn++) {
            for (int32_t i = 0; i < 8; i++) {
                int32_t n = (turn + i) % 3 == 0 ? 17 : 1 + i % 2;
                to[i] = from[i] + n > whole ? whole : from[i] + n;
                if (from[i] == whole) from[i] = whole - 1; /* repeats its last row */
            }
            step(&w, 8, which, from, to, among);
            memcpy(from, to, sizeof from);
        }
        assert_memory_equal(alone, among + 3 * VOCAB, sizeof alone);
        close_world(&w);
    }
}

static void ids_without_text_are_never_offered(void **state) {
    (void)state;
    struct world w;
    uint8_t ok[VOCAB];
    float logits[VOCAB];
    memset(ok, 1, sizeof ok);
    ok[5] = 0;
    open_world(&w, true, 1);
    runner_close(w.runner);
    struct runner_options o = {
        .bf16 = true, .max_rows = 8, .n_slab = 9 * N_LAYER * STRIDE, .token_ok = ok};
    assert_int_equal(runner_open(&w.runner, w.model, w.device, &o, NULL), SUMI_OK);
    const int32_t zero = 0, one = 1, me = 0;
    step(&w, 1, &me, &zero, &one, logits);
    assert_true(logits[5] < -1e30f && logits[6] > -1e30f);
    close_world(&w);
}

static void bad_rows_are_errors(void **state) {
    (void)state;
    struct world w;
    float logits[VOCAB];
    open_world(&w, false, 1);
    int32_t token = VOCAB, zero = 0, table[N_LAYER * STRIDE];
    lay_pages(0, table);
    struct seq_pages pages = {table, STRIDE};
    struct batch b = {.n_row = 1,
                      .token = &token,
                      .pos = &zero,
                      .seq_of = &zero,
                      .n_seq = 1,
                      .seq = &pages,
                      .n_logit = 1,
                      .logit_row = &zero};
    sumi_error err = {0};
    assert_int_equal(runner_step(w.runner, &b, logits, &err), SUMI_ERR_ARG);
    assert_non_null(strstr(err.msg, "96"));
    b.n_row = 257;
    assert_int_equal(runner_step(w.runner, &b, logits, &err), SUMI_ERR_ARG);
    close_world(&w);
}

static void a_config_that_contradicts_itself_is_refused(void **state) {
    (void)state;
    static const struct {
        const char *member, *word;
    } bad[] = {
        {"\"num_hidden_layers\":0", "num_hidden_layers"},
        {"\"num_hidden_layers\":1000000", "num_hidden_layers"},
        {"\"num_key_value_heads\":3", "divide"},
        {"\"num_experts_per_tok\":9", "num_experts_per_tok"},
        {"\"hidden_size\":-64", "hidden_size"},
        {"\"hidden_size\":\"big\"", "hidden_size"},
        {"\"head_dim\":1e9", "head_dim"},
        {"\"rms_norm_eps\":0", "rms_norm_eps"},
        {"\"rope_parameters\":{\"rope_type\":\"yarn\"}", "yarn"},
        {"\"rope_scaling\":{\"type\":\"linear\"}", "rope_scaling"},
        {"\"hidden_act\":\"gelu\"", "gelu"},
        {"\"norm_topk_prob\":false", "norm_topk_prob"},
        {"\"tie_word_embeddings\":true", "tie_word_embeddings"},
        {"\"attention_bias\":true", "attention_bias"},
        {"\"router_score_function\":\"softmax\"", "softmax"},
        {"\"layer_types\":[\"full_attention\"]", "layer_types"},
        {"\"layer_types\":[\"a\",\"b\",\"c\",\"d\",\"e\",\"f\"]", "layer_types"},
        {"\"no_rope_layer_indices\":[0,1,2]", "rotate"},
        {"\"no_rope_layer_indices\":[77]", "no_rope_layer_indices"},
        {"\"mlp_only_layers\":[-1]", "mlp_only_layers"},
        {"\"mlp_only_layers\":5", "mlp_only_layers"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[1024];
        struct model *m;
        sumi_error err = {0};
        snprintf(text, sizeof text, "%.*s,%s}", (int)sizeof config_text - 2, config_text,
                 bad[i].member);
        if (open_model(&m, text, &err) == SUMI_OK) fail_msg("accepted: %s", bad[i].member);
        if (!strstr(err.msg, bad[i].word)) fail_msg("%s: %s", bad[i].member, err.msg);
    }
}

static void the_layer_rule_is_the_documented_one(void **state) {
    (void)state;
    struct model *m = mem_zero(1, sizeof *m);
    struct json_object *empty = json_object_new_object();
    assert_int_equal(flint_family.from_json(m, empty, NULL), SUMI_OK);
    static const int full[] = {0, 1, 5, 9, 13, 17, 21, 25, 29, 33, 37, 41, 45, 48};
    int n = 0;
    for (int32_t i = 0; i < m->n_layer; i++) {
        if (m->layer[i].attn.window) {
            assert_int_equal(m->layer[i].attn.window, 513);
            assert_true(m->layer[i].attn.rope);
        } else {
            assert_int_equal(full[n++], i);
            assert_false(m->layer[i].attn.rope);
        }
        assert_int_equal(m->layer[i].is_moe, i >= 2);
    }
    assert_int_equal(n, 14);
    assert_int_equal(m->n_moe, 47);
    /* 14 full layers keep 4,096 pages of a 262,144-token sequence; 35 windows keep 513 positions
     * and what a chunk adds, on at most one page more than it fills. */
    assert_int_equal(runner_sequence_slabs(m, 262144, 1), 14 * 4096 + 35 * 10);
    assert_int_equal(runner_slab_bytes(m, true), 64 * 2048);
    json_object_put(empty);
    model_close(m);
}

static void memory_may_run_out_anywhere(void **state) {
    (void)state;
    for (long n = 1;; n++) {
        struct model *m = NULL;
        struct device *d = NULL;
        struct runner *r = NULL;
        struct runner_options o = {.max_rows = 4, .n_slab = 6};
        sumi_error err = {0};
        mem_fail_at(n);
        sumi_status status = open_model(&m, config_text, &err);
        if (status == SUMI_OK) status = device_open_cpu(&d, 1, &err);
        if (status == SUMI_OK) status = runner_open(&r, m, d, &o, &err);
        mem_fail_at(0);
        runner_close(r);
        device_close(d);
        model_close(m);
        if (status == SUMI_OK) break;
        assert_int_equal(status, SUMI_ERR_MEMORY);
        assert_true(n < 2000);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sequence_is_the_same_alone_and_among_eight),
        cmocka_unit_test(ids_without_text_are_never_offered),
        cmocka_unit_test(bad_rows_are_errors),
        cmocka_unit_test(a_config_that_contradicts_itself_is_refused),
        cmocka_unit_test(the_layer_rule_is_the_documented_one),
        cmocka_unit_test(memory_may_run_out_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
