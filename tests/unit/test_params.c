/* serve/: fields of a request body, budgets, token lists. Rules from the interface's tables. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "serve/budget.h"
#include "serve/params.h"

/* Ids 0 to 255 are bytes in the order of the byte-level alphabet's printable part, then "ab". */
static struct tokenizer *vocabulary;
static struct server_config config;

static int open_vocabulary(void **state) {
    static char spelling[128][8];
    static struct token_text vocab[100];
    static const struct token_text merges[] = {{"a b", 3}};
    static const struct added_token added[] = {{99, "<end>", 5, true, false, false, false, false}};
    (void)state;
    size_t n = 0;
    for (char c = '!'; c <= '~'; c++) { /* 94 printable characters stand for themselves */
        snprintf(spelling[n], sizeof *spelling, "%c", c);
        vocab[n] = (struct token_text){spelling[n], 1};
        n++;
    }
    vocab[n++] = (struct token_text){"\xC4\xA0", 2}; /* the blank, id 94 */
    vocab[n++] = (struct token_text){"ab", 2};       /* id 95 */
    struct tokenizer_lists lists = {.vocab = vocab,
                                    .n_vocab = 100, /* 96 to 98 are gaps */
                                    .merges = merges,
                                    .n_merge = 1,
                                    .added = added,
                                    .n_added = 1};
    sumi_error err = {0};
    if (tokenizer_open_lists(&vocabulary, &lists, &err) != SUMI_OK) return -1;
    config = (struct server_config){.tokenizer = vocabulary,
                                    .max_model_len = 100,
                                    .max_logprobs = 20,
                                    .max_n = 16384,
                                    .max_stop = 4,
                                    .max_bad_words = 128,
                                    .stream_interval = 1};
    return 0;
}

static int close_vocabulary(void **state) {
    (void)state;
    tokenizer_close(vocabulary);
    return 0;
}

static sumi_status read_body(struct params *p, enum api_kind api, const char *text,
                             sumi_error *err) {
    struct json_object *body;
    struct schema_report report = {0};
    *p = (struct params){0};
    TRY(json_parse(&body, text, strlen(text), "test", err));
    params_schema(&report, api, body);
    sumi_status status = schema_result(&report, err);
    if (status == SUMI_OK) status = params_read(p, api, body, &config, err);
    json_object_put(body);
    return status;
}

static void what_is_absent_or_null_has_its_default(void **state) {
    (void)state;
    struct params p;
    sumi_error err = {0};
    assert_int_equal(
        read_body(&p, API_CHAT, "{\"temperature\":null,\"stop\":null,\"n\":null}", &err), SUMI_OK);
    assert_true(p.sampling.temperature == 1 && p.sampling.top_p == 1 && p.sampling.top_k == 0);
    assert_true(p.n == 1 && !p.stream && !p.has_budget && !p.sampling.has_seed);
    assert_true(p.sampling.n_logprobs == -1 && p.sampling.n_stop == 0 && p.sampling.skip_special);
    params_reset(&p);
    assert_int_equal(read_body(&p, API_COMPLETION, "{\"max_tokens\":null}", &err), SUMI_OK);
    assert_true(p.has_budget && p.budget == 16 && p.add_special_tokens);
    params_reset(&p);
}

static void the_request_goes_over_the_servers_defaults(void **state) {
    (void)state;
    struct params p;
    sumi_error err = {0};
    struct json_object *defaults;
    static const char text[] = "{\"temperature\":0.5,\"top_k\":20,\"skip_special_tokens\":false}";
    assert_int_equal(json_parse(&defaults, text, sizeof text - 1, "test", &err), SUMI_OK);
    config.sampling_defaults = defaults;
    assert_int_equal(read_body(&p, API_CHAT, "{\"top_k\":7}", &err), SUMI_OK);
    assert_true(p.sampling.temperature == 0.5f && p.sampling.top_k == 7 &&
                !p.sampling.skip_special);
    params_reset(&p);
    config.sampling_defaults = NULL;
    json_object_put(defaults);
}

static void every_schema_fault_is_listed_with_its_path(void **state) {
    (void)state;
    struct params p;
    sumi_error err = {0};
    assert_int_equal(read_body(&p, API_CHAT,
                               "{\"seed\":\"x\",\"stream\":1,\"stop_token_ids\":[1,\"2\"],"
                               "\"logit_bias\":{\"5\":\"1\"},\"truncation_side\":\"up\"}",
                               &err),
                     SUMI_ERR_FORMAT);
    assert_string_equal(err.param, "body.logit_bias.5");
    assert_non_null(strstr(err.msg, "5 validation errors:"));
    assert_non_null(strstr(err.msg, "body.seed: expected an integer"));
    assert_non_null(strstr(err.msg, "body.stream: expected true or false, found an integer (1)"));
    assert_non_null(strstr(err.msg, "body.stop_token_ids.1: "));
    assert_non_null(strstr(err.msg, "body.truncation_side: expected one of left, right"));
}

static void a_fault_echoes_little_of_the_input(void **state) {
    (void)state;
    struct params p;
    sumi_error err = {0};
    struct buf text = {0};
    buf_puts(&text, "{\"seed\":\"");
    for (int i = 0; i < 5000; i++) buf_putc(&text, 'x');
    buf_puts(&text, "\",\"stop_token_ids\":[");
    for (int i = 0; i < 500; i++) buf_puts(&text, i ? ",\"y\"" : "\"y\"");
    buf_puts(&text, "]}");
    assert_int_equal(read_body(&p, API_CHAT, buf_text(&text), &err), SUMI_ERR_FORMAT);
    assert_true(strlen(err.msg) < sizeof err.msg);
    assert_null(strstr(err.msg, "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"));
    buf_reset(&text);
}

static void broken_rules_name_their_field(void **state) {
    (void)state;
    static const struct {
        const char *body, *param;
        sumi_status status;
    } rows[] = {
        {"{\"n\":0}", "n", SUMI_ERR_ARG},
        {"{\"n\":16385}", "n", SUMI_ERR_ARG},
        {"{\"n\":2,\"temperature\":0}", "n", SUMI_ERR_ARG},
        {"{\"top_logprobs\":2}", "top_logprobs", SUMI_ERR_ARG},
        {"{\"logprobs\":true,\"top_logprobs\":-2}", "top_logprobs", SUMI_ERR_ARG},
        {"{\"logprobs\":true,\"top_logprobs\":21}", "logprobs", SUMI_ERR_ARG},
        {"{\"logprobs\":true,\"top_logprobs\":-1}", "logprobs", SUMI_ERR_ARG},
        {"{\"prompt_logprobs\":-2}", "prompt_logprobs", SUMI_ERR_ARG},
        {"{\"prompt_logprobs\":1,\"stream\":true}", "prompt_logprobs", SUMI_ERR_ARG},
        {"{\"stop\":\"\"}", "stop", SUMI_ERR_ARG},
        {"{\"stop\":[\"a\",\"\"]}", "stop", SUMI_ERR_ARG},
        {"{\"stop\":[\"a\",\"b\",\"c\",\"d\",\"e\"]}", "stop", SUMI_ERR_ARG},
        {"{\"stream_options\":{\"include_usage\":true}}", "stream_options", SUMI_ERR_ARG},
        {"{\"stop_token_ids\":[100]}", "stop_token_ids", SUMI_ERR_ARG},
        {"{\"stop_token_ids\":[-1]}", "stop_token_ids", SUMI_ERR_ARG},
        {"{\"allowed_token_ids\":[]}", "allowed_token_ids", SUMI_ERR_ARG},
        {"{\"allowed_token_ids\":[97]}", "allowed_token_ids", SUMI_ERR_ARG},
        {"{\"logprob_token_ids\":[1]}", "logprob_token_ids", SUMI_ERR_ARG},
        {"{\"logit_bias\":{\"97\":1}}", "logit_bias", SUMI_ERR_ARG},
        {"{\"logit_bias\":{\"-1\":1}}", "logit_bias", SUMI_ERR_ARG},
        {"{\"logit_bias\":{\"1e3\":1}}", "logit_bias", SUMI_ERR_ARG},
        {"{\"logit_bias\":{\"05\":1}}", "logit_bias", SUMI_ERR_ARG},
        {"{\"logit_bias\":{\"\":1}}", "logit_bias", SUMI_ERR_ARG},
        {"{\"logit_bias\":{\"18446744073709551617\":1}}", "logit_bias", SUMI_ERR_ARG},
        {"{\"bad_words\":[\"\"]}", "bad_words", SUMI_ERR_ARG},
        {"{\"truncate_prompt_tokens\":-2}", "truncate_prompt_tokens", SUMI_ERR_ARG},
        {"{\"stream_interval\":0}", "stream_interval", SUMI_ERR_ARG},
        {"{\"cache_salt\":\"\"}", "cache_salt", SUMI_ERR_ARG},
        {"{\"cache_salt\":\"a/b\"}", "cache_salt", SUMI_ERR_ARG},
        {"{\"cache_salt\":\"a\\u0000b\"}", "cache_salt", SUMI_ERR_ARG},
        {"{\"thinking_token_budget\":5}", "thinking_token_budget", SUMI_ERR_ARG},
        {"{\"thinking_token_budget\":true}", "thinking_token_budget", SUMI_ERR_ARG},
        {"{\"response_format\":{\"type\":\"json_object\"}}", "response_format",
         SUMI_ERR_UNSUPPORTED},
        {"{\"structured_outputs\":{\"regex\":\"a\"}}", "structured_outputs", SUMI_ERR_UNSUPPORTED},
        {"{\"use_beam_search\":true}", "use_beam_search", SUMI_ERR_UNSUPPORTED},
        {"{\"mm_processor_kwargs\":{\"a\":1}}", "mm_processor_kwargs", SUMI_ERR_ARG},
        {"{\"top_k\":4294967296}", "top_k", SUMI_ERR_ARG},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct params p;
        sumi_error err = {0};
        if (read_body(&p, API_CHAT, rows[i].body, &err) != rows[i].status ||
            strcmp(err.param, rows[i].param) != 0)
            fail_msg("%s gave %d, %s, %s", rows[i].body, (int)err.status, err.param, err.msg);
        params_reset(&p);
    }
}

static void lists_are_copied_sorted_and_clamped(void **state) {
    (void)state;
    struct params p;
    sumi_error err = {0};
    assert_int_equal(
        read_body(&p, API_CHAT,
                  "{\"stop\":[\"x\\u0000y\",\"z\"],\"stop_token_ids\":[7,3,7],\"logit_bias\":"
                  "{\"4\":1e308,\"0\":-101,\"9\":2.5},\"bad_words\":[\"ab\",\"a\"]}",
                  &err),
        SUMI_OK);
    const struct sampling *s = &p.sampling;
    assert_int_equal(s->n_stop, 2);
    assert_int_equal(s->stop_len[0], 3);
    assert_memory_equal(s->stop[0], "x\0y", 4);
    assert_string_equal(s->stop[1], "z");
    assert_int_equal(s->stop_ids.n, 2);
    assert_true(s->stop_ids.id[0] == 3 && s->stop_ids.id[1] == 7);
    assert_int_equal(s->n_bias, 3);
    assert_true(s->bias[0].id == 4 && s->bias[0].bias == 100 && s->bias[1].bias == -100);
    assert_true(s->bias[2].id == 9 && s->bias[2].bias == 2.5f);
    /* " ab" is two tokens where "ab" is one: only the bare form counts. */
    assert_int_equal(s->n_bad, 2);
    assert_int_equal(s->bad_words[0].n, 1);
    assert_int_equal(s->bad_words[0].id[0], 95);
    assert_int_equal(s->bad_words[1].id[0], 'a' - '!');
    params_reset(&p);
}

static void chat_and_completion_logprobs_differ(void **state) {
    (void)state;
    struct params p;
    sumi_error err = {0};
    assert_int_equal(read_body(&p, API_CHAT, "{\"logprobs\":true}", &err), SUMI_OK);
    assert_int_equal(p.sampling.n_logprobs, 0);
    params_reset(&p);
    assert_int_equal(read_body(&p, API_COMPLETION, "{\"logprobs\":0}", &err), SUMI_OK);
    assert_int_equal(p.sampling.n_logprobs, 0);
    params_reset(&p);
    config.max_logprobs = -1;
    assert_int_equal(read_body(&p, API_COMPLETION, "{\"logprobs\":-1}", &err), SUMI_OK);
    assert_int_equal(p.sampling.n_logprobs, 100);
    params_reset(&p);
    config.max_logprobs = 20;
    assert_int_equal(read_body(&p, API_COMPLETION, "{\"logprobs\":true}", &err), SUMI_ERR_FORMAT);
}

/* L = 100. The rows follow spec 1.5.4. */
static void the_budget_is_the_least_of_room_wish_and_caps(void **state) {
    (void)state;
    static const struct {
        int64_t wish; /* -1: none */
        size_t prompt;
        int32_t fallback, cap, result; /* result 0: an error */
        const char *param;
    } rows[] = {
        {-1, 40, 0, 0, 60, ""},
        {-1, 40, 8, 0, 8, ""},
        {-1, 40, 80, 0, 60, ""},
        {50, 40, 8, 0, 50, ""},
        {61, 40, 0, 0, 60, ""},
        {50, 40, 0, 5, 5, ""},
        {1, 99, 0, 0, 1, ""},
        {16, 98, 0, 0, 2, ""},
        {101, 40, 0, 0, 0, "max_tokens"},
        {16, 100, 0, 0, 0, "max_tokens"},
        {16, 101, 0, 0, 0, "input_tokens"},
        {0, 40, 0, 0, 0, "max_tokens"},
        {-5, 40, 0, 0, 0, "max_tokens"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct params p = {
            .has_budget = rows[i].wish != -1, .budget = rows[i].wish, .budget_field = "max_tokens"};
        int32_t result = 0;
        sumi_error err = {0};
        config.default_max_tokens = rows[i].fallback;
        config.max_tokens_cap = rows[i].cap;
        sumi_status status = budget_resolve(&config, &p, rows[i].prompt, false, &result, &err);
        assert_int_equal(status == SUMI_OK, rows[i].result > 0);
        if (status == SUMI_OK) assert_int_equal(result, rows[i].result);
        assert_string_equal(err.param, rows[i].param);
        if (rows[i].prompt >= 100) {
            assert_non_null(strstr(err.msg, "maximum context length is 100 tokens"));
            assert_non_null(strstr(err.msg, "reduce the length of the input prompt"));
        }
    }
    config.default_max_tokens = config.max_tokens_cap = 0;
}

static void prompts_are_cut_from_the_side_that_is_asked_for(void **state) {
    (void)state;
    int32_t data[] = {1, 2, 3, 4, 5};
    sumi_error err = {0};
    struct params p = {.has_truncate = true, .truncate = 2};
    struct ids ids = {data, 5, 5};
    assert_int_equal(budget_truncate(&config, &p, &ids, &err), SUMI_OK);
    assert_true(ids.n == 2 && ids.data[0] == 4 && ids.data[1] == 5);
    int32_t again[] = {1, 2, 3, 4, 5};
    ids = (struct ids){again, 5, 5};
    p.side = CUT_RIGHT;
    assert_int_equal(budget_truncate(&config, &p, &ids, &err), SUMI_OK);
    assert_true(ids.n == 2 && ids.data[0] == 1 && ids.data[1] == 2);
    p.truncate = 101;
    assert_int_equal(budget_truncate(&config, &p, &ids, &err), SUMI_ERR_ARG);
    assert_string_equal(err.param, "truncate_prompt_tokens");
}

static void a_text_that_cannot_fit_is_refused_or_cut_before_tokenising(void **state) {
    (void)state;
    struct buf text = {0};
    struct params p = {0};
    sumi_error err = {0};
    size_t limit = 100 * tokenizer_longest(vocabulary);
    while (text.len < limit + 1) buf_puts(&text, "\xC3\xA9");
    const char *at = text.data;
    size_t n = limit;
    assert_int_equal(budget_check_text(&config, &p, &at, &n, &err), SUMI_OK);
    n = text.len;
    assert_int_equal(budget_check_text(&config, &p, &at, &n, &err), SUMI_ERR_LIMIT);
    assert_string_equal(err.param, "input_text");
    p.side = CUT_LEFT;
    assert_int_equal(budget_check_text(&config, &p, &at, &n, &err), SUMI_OK);
    assert_true(n <= limit && n >= limit - 1 && (unsigned char)*at == 0xC3);
    at = text.data;
    n = text.len;
    p.side = CUT_RIGHT;
    assert_int_equal(budget_check_text(&config, &p, &at, &n, &err), SUMI_OK);
    assert_true(at == text.data && n <= limit && n % 2 == 0);
    buf_reset(&text);
}

static void a_failed_allocation_is_an_error_and_leaks_nothing(void **state) {
    (void)state;
    static const char text[] = "{\"stop\":[\"a\"],\"stop_token_ids\":[1],\"logit_bias\":{\"1\":1},"
                               "\"bad_words\":[\"ab\"],\"logprobs\":true}";
    struct json_object *body;
    sumi_error err = {0};
    sumi_status status = SUMI_ERR_MEMORY;
    assert_int_equal(json_parse(&body, text, sizeof text - 1, "test", &err), SUMI_OK);
    for (long n = 1; status != SUMI_OK; n++) {
        struct params p;
        mem_fail_at(n);
        status = params_read(&p, API_CHAT, body, &config, &err);
        mem_fail_at(0);
        if (status != SUMI_OK) assert_int_equal(status, SUMI_ERR_MEMORY);
        params_reset(&p);
        assert_true(n < 200);
    }
    json_object_put(body);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_absent_or_null_has_its_default),
        cmocka_unit_test(the_request_goes_over_the_servers_defaults),
        cmocka_unit_test(every_schema_fault_is_listed_with_its_path),
        cmocka_unit_test(a_fault_echoes_little_of_the_input),
        cmocka_unit_test(broken_rules_name_their_field),
        cmocka_unit_test(lists_are_copied_sorted_and_clamped),
        cmocka_unit_test(chat_and_completion_logprobs_differ),
        cmocka_unit_test(the_budget_is_the_least_of_room_wish_and_caps),
        cmocka_unit_test(prompts_are_cut_from_the_side_that_is_asked_for),
        cmocka_unit_test(a_text_that_cannot_fit_is_refused_or_cut_before_tokenising),
        cmocka_unit_test(a_failed_allocation_is_an_error_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, open_vocabulary, close_vocabulary);
}
