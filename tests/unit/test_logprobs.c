/* serve/logprobs: the two ways in which log probabilities are written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

#include "serve/logprobs.h"

static struct tokenizer *tokenizer;

/* 0 "a", 1 "b", 2 and 3: the first bytes of two characters, 4 "\xC3\xA9" (e acute). */
static int open_tokenizer(void **state) {
    static const struct token_text vocab[] = {{"a", 1},        {"b", 1}, {"\xC3\x83", 2},
                                              {"\xC3\x84", 2}, {"x", 1}, {"\xC2\xA9", 2}};
    static const struct added_token added[] = {
        {6, "\xC3\xA9", 2, false, false, false, false, false}};
    const struct tokenizer_lists lists = {
        .vocab = vocab, .n_vocab = 6, .added = added, .n_added = 1};
    sumi_error err = {0};
    (void)state;
    return tokenizer_open_lists(&tokenizer, &lists, &err) == SUMI_OK ? 0 : -1;
}

static int close_tokenizer(void **state) {
    (void)state;
    tokenizer_close(tokenizer);
    return 0;
}

static const struct token_logprob best[] = {{1, -2.5f, 3}, {0, -0.25f, 1}, {4, -INFINITY, 2}};

static void a_chat_entry_has_the_sampled_token_and_the_first_k(void **state) {
    const struct token_event e = {1, best, 3};
    struct logprobs_style style = {tokenizer, 2, false, NULL};
    struct buf out = {0};
    (void)state;
    logprobs_put_chat(&style, &e, &out);
    assert_string_equal(buf_text(&out),
                        "{\"token\":\"b\",\"logprob\":-2.5,\"bytes\":[98],\"top_logprobs\":["
                        "{\"token\":\"b\",\"logprob\":-2.5,\"bytes\":[98]},"
                        "{\"token\":\"a\",\"logprob\":-0.25,\"bytes\":[97]}]}");
    style.k = 0;
    logprobs_put_chat(&style, &e, &out);
    assert_non_null(strstr(buf_text(&out), "]},{\"token\":\"b\",\"logprob\":-2.5,\"bytes\":[98],"
                                           "\"top_logprobs\":[]}"));
    buf_reset(&out);
}

static void minus_infinity_is_a_number_and_ids_can_stand_for_text(void **state) {
    static const struct token_logprob never[] = {{4, -INFINITY, 9}};
    const struct token_event e = {4, never, 1};
    const struct logprobs_style style = {tokenizer, 0, true, NULL};
    struct buf out = {0};
    (void)state;
    logprobs_put_chat(&style, &e, &out);
    assert_non_null(strstr(buf_text(&out), "{\"token\":\"token_id:4\",\"logprob\":-9999.0,"));
    buf_reset(&out);
}

static void listed_ids_replace_the_best(void **state) {
    static const int32_t ids[] = {0, 4};
    static const struct token_list list = {ids, 2};
    const struct token_event e = {1, best, 3};
    const struct logprobs_style style = {tokenizer, 1, false, &list};
    struct logprobs_lists l = {0};
    struct buf out = {0};
    (void)state;
    logprobs_put_lists(&style, &e, &l);
    logprobs_write_lists(&l, &out);
    assert_string_equal(buf_text(&out),
                        "{\"text_offset\":[0],\"token_logprobs\":[-2.5],\"tokens\":[\"b\"],"
                        "\"top_logprobs\":[{\"a\":-0.25,\"x\":-9999.0}]}");
    logprobs_reset_lists(&l);
    buf_reset(&out);
}

static void offsets_count_characters_and_go_on_over_chunks(void **state) {
    static const struct token_logprob top[] = {{6, 0, 1}};
    const struct token_event first = {6, NULL, 0}, second = {6, top, 1};
    const struct logprobs_style style = {tokenizer, 0, false, NULL};
    struct logprobs_lists l = {0};
    struct buf out = {0};
    (void)state;
    logprobs_put_lists(&style, &first, &l);
    logprobs_put_lists(&style, &second, &l);
    logprobs_write_lists(&l, &out);
    assert_string_equal(buf_text(&out), "{\"text_offset\":[0,1],\"token_logprobs\":[null,0.0],"
                                        "\"tokens\":[\"\xC3\xA9\",\"\xC3\xA9\"],"
                                        "\"top_logprobs\":[null,{\"\xC3\xA9\":0.0}]}");
    buf_clear(&out);
    logprobs_put_lists(&style, &second, &l);
    logprobs_write_lists(&l, &out);
    assert_non_null(strstr(buf_text(&out), "\"text_offset\":[2]"));
    logprobs_reset_lists(&l);
    buf_reset(&out);
}

/* Two parts of characters both show as U+FFFD: the better one keeps the place. */
static void tokens_with_the_same_text_become_one_entry(void **state) {
    static const struct token_logprob top[] = {{2, -1, 1}, {3, -2, 2}, {0, -3, 3}};
    const struct token_event e = {2, top, 3};
    const struct logprobs_style style = {tokenizer, 2, false, NULL};
    struct logprobs_lists l = {0};
    struct buf out = {0};
    (void)state;
    logprobs_put_lists(&style, &e, &l);
    logprobs_write_lists(&l, &out);
    assert_non_null(
        strstr(buf_text(&out), "\"top_logprobs\":[{\"\xEF\xBF\xBD\":-1.0,\"a\":-3.0}]"));
    logprobs_reset_lists(&l);
    buf_reset(&out);
}

static void prompt_logprobs_are_objects_by_id(void **state) {
    const struct token_event e[] = {{0, NULL, 0}, {1, best, 2}};
    const struct logprobs_style style = {tokenizer, 1, false, NULL};
    struct buf out = {0};
    (void)state;
    logprobs_write_prompt(&style, e, 2, &out);
    assert_string_equal(buf_text(&out),
                        "[null,{\"1\":{\"logprob\":-2.5,\"rank\":3,\"decoded_token\":\"b\"},"
                        "\"0\":{\"logprob\":-0.25,\"rank\":1,\"decoded_token\":\"a\"}}]");
    buf_reset(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_chat_entry_has_the_sampled_token_and_the_first_k),
        cmocka_unit_test(minus_infinity_is_a_number_and_ids_can_stand_for_text),
        cmocka_unit_test(listed_ids_replace_the_best),
        cmocka_unit_test(offsets_count_characters_and_go_on_over_chunks),
        cmocka_unit_test(tokens_with_the_same_text_become_one_entry),
        cmocka_unit_test(prompt_logprobs_are_objects_by_id),
    };
    return cmocka_run_group_tests(tests, open_tokenizer, close_tokenizer);
}
