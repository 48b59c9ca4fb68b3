/* base/: status, buffers, UTF-8, JSON in and out, number formats, the pool. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/dtype.h"
#include "base/json.h"
#include "base/jsonr.h"
#include "base/jsonw.h"
#include "base/mem.h"
#include "base/pool.h"
#include "base/size.h"
#include "base/utf8.h"

static void errors_say_where(void **state) {
    (void)state;
    sumi_error err = {0};
    assert_int_equal(fail_param(&err, SUMI_ERR_ARG, "seed", "seed %d is odd", 7), SUMI_ERR_ARG);
    error_prefix(&err, "request %d", 3);
    assert_string_equal(err.msg, "request 3: seed 7 is odd");
    assert_string_equal(err.param, "seed");
    assert_int_equal(fail_with(NULL, SUMI_ERR_IO, "no place for it"), SUMI_ERR_IO);
}

static void sizes_do_not_wrap(void **state) {
    (void)state;
    size_t n;
    assert_false(size_mul(SIZE_MAX / 2, 3, &n));
    assert_false(size_add(SIZE_MAX, 1, &n));
    assert_false(size_align(SIZE_MAX - 3, 64, &n));
    assert_true(size_align(65, 64, &n));
    assert_int_equal(n, 128);
}

static void a_buffer_keeps_its_maximum(void **state) {
    (void)state;
    struct buf b = {.max = 8};
    buf_puts(&b, "1234");
    buf_printf(&b, "%d", 5678);
    assert_false(b.failed);
    assert_string_equal(buf_text(&b), "12345678");
    buf_putc(&b, '9');
    assert_true(b.failed);
    buf_clear(&b);
    buf_puts(&b, "abcdef");
    buf_drop(&b, 4);
    assert_string_equal(buf_text(&b), "ef");
    buf_cut(&b, 1);
    assert_string_equal(buf_text(&b), "e");
    buf_cut(&b, 5);
    assert_int_equal(b.len, 1);
    buf_reset(&b);
    mem_fail_at(1);
    buf_puts(&b, "x");
    mem_fail_at(0);
    assert_true(b.failed);
    assert_null(buf_take(&b));
}

static void an_arena_keeps_its_maximum(void **state) {
    (void)state;
    struct arena a = {.max = 100000};
    char *first = arena_alloc(&a, 1, 1);
    assert_non_null(first);
    assert_int_equal((uintptr_t)first % 16, 0);
    assert_int_equal(a.used, 16);
    *first = 'x';
    for (int i = 0; i < 9; i++) {
        char *p = arena_alloc(&a, 10, 1000);
        assert_non_null(p);
        memset(p, i, 10000);
    }
    assert_int_equal(*first, 'x');
    assert_null(arena_alloc(&a, 10, 1000));
    assert_true(a.full);
    assert_null(arena_alloc(&a, SIZE_MAX / 2, 3));
    arena_reset(&a);
    assert_int_equal(a.used, 0);
    mem_fail_at(1);
    assert_null(arena_alloc(&a, 1, 1));
    mem_fail_at(0);
    assert_false(a.full);
    assert_non_null(arena_alloc(&a, 0, 8));
    arena_reset(&a);
}

static void utf8_follows_the_standard(void **state) {
    (void)state;
    uint32_t c;
    char out[4];
    assert_int_equal(utf8_decode("\xF0\x9F\x98\x80", 4, &c), 4);
    assert_int_equal(c, 0x1F600);
    assert_int_equal(utf8_encode(c, out), 4);
    assert_memory_equal(out, "\xF0\x9F\x98\x80", 4);
    static const char *const bad[] = {"\xC0\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80",
                                      "\x80",     "\xE0\x9F\xBF", "\xF8\x88\x80\x80"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(utf8_decode(bad[i], strlen(bad[i]), &c), 0);
    assert_true(utf8_incomplete("\xF0\x9F\x98", 3));
    assert_false(utf8_incomplete("\xED\xA0", 2));
    assert_false(utf8_incomplete("a", 1));
    assert_int_equal(utf8_valid_prefix("ab\xC3\xA9\xFFz", 6), 4);
    assert_int_equal(utf8_encode(0xD800, out), 0);
    /* The worked example of Unicode section 3.9, table 3-8 and following. */
    assert_int_equal(utf8_bad_length("\xE1\x80\xE2", 3), 2);
    assert_int_equal(utf8_bad_length("\xF0\x91\x92\xF1", 4), 3);
    assert_int_equal(utf8_bad_length("\xED\xA0\x80", 3), 1);
    assert_int_equal(utf8_bad_length("\xC0\xAF", 2), 1);
    assert_int_equal(utf8_bad_length("\xF4\x91", 2), 1);
    assert_int_equal(utf8_bad_length("\x80", 1), 1);
}

static void json_refuses_what_rfc8259_refuses(void **state) {
    (void)state;
    static const char *const bad[] = {"",
                                      "{",
                                      "[1,]",
                                      "{\"a\":1,}",
                                      "nul",
                                      "NaN",
                                      "Infinity",
                                      "-Infinity",
                                      "'a'",
                                      "[1] x",
                                      "\"\x01\"",
                                      "\"\\ud800\"",
                                      "\"\\ud800\\u0041\"",
                                      "\"\xFF\"",
                                      "/* c */ 1",
                                      "01",
                                      "\"\\x41\"",
                                      "[1 2]",
                                      "{1:2}"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct json_object *o;
        sumi_error err = {0};
        if (json_parse(&o, bad[i], strlen(bad[i]), "text", &err) == SUMI_OK)
            fail_msg("accepted: %s", bad[i]);
        assert_true(strlen(err.msg) > 10);
    }
}

/* One object {"name": value} per text; the value is read by the letter of `kind`. */
static sumi_status read_one(const char *text, char kind, const char **s, size_t *n, int64_t *i) {
    sumi_error err = {0};
    bool more = false;
    struct json_reader r = {.text = text, .n = strlen(text), .what = "text", .err = &err};
    sumi_status status = jsonr_enter(&r, '{');
    if (status == SUMI_OK) status = jsonr_more(&r, '}', &more);
    if (status == SUMI_OK) status = more ? jsonr_key(&r, s, n) : SUMI_ERR_MISSING;
    if (status == SUMI_OK && kind == 's') {
        status = jsonr_string(&r, s, n);
        static char copy[32];
        if (status == SUMI_OK) *s = memcpy(copy, *s, *n);
    }
    if (status == SUMI_OK && kind == 'i') status = jsonr_int(&r, i);
    if (status == SUMI_OK && kind == '*') status = jsonr_skip(&r);
    if (status == SUMI_OK) status = jsonr_more(&r, '}', &more);
    if (status == SUMI_OK && (more || jsonr_peek(&r))) status = SUMI_ERR_STATE;
    assert_true(status == SUMI_OK || status == SUMI_ERR_MISSING || status == SUMI_ERR_STATE ||
                strstr(err.msg, "byte"));
    jsonr_reset(&r);
    return status;
}

static void json_is_read_without_a_tree(void **state) {
    (void)state;
    const char *s;
    size_t n;
    int64_t i;
    assert_int_equal(read_one(" { \"k\" : \"a\\u0120\\\\\\n\\ud83d\\ude00b\" } ", 's', &s, &n, &i),
                     SUMI_OK);
    assert_int_equal(n, 10);
    assert_memory_equal(s,
                        "a\xC4\xA0\\\n\xF0\x9F\x98\x80"
                        "b",
                        10);
    assert_int_equal(read_one("{\"k\":-123456789012345678}", 'i', &s, &n, &i), SUMI_OK);
    assert_true(i == -123456789012345678);
    assert_int_equal(read_one("{\"k\":[1,{\"}\":\"]\\\"\"},[]]}", '*', &s, &n, &i), SUMI_OK);
    assert_int_equal(read_one("{\"k\":-1.5e3}", '*', &s, &n, &i), SUMI_OK);
    assert_int_equal(read_one("{}", '*', &s, &n, &i), SUMI_ERR_MISSING);
    static const char *const bad[] = {"s{\"k\":\"\\ud800\"}",
                                      "s{\"k\":\"\\ude00\"}",
                                      "s{\"k\":\"\\x\"}",
                                      "s{\"k\":\"\n\"}",
                                      "s{\"k\":\"a",
                                      "s{\"k\":1}",
                                      "i{\"k\":1.0}",
                                      "i{\"k\":01}",
                                      "i{\"k\":}",
                                      "i{\"k\":1234567890123456789}",
                                      "i{\"k\" 1}",
                                      "i[1]",
                                      "i{\"k\":1",
                                      "i{\"k\":1]",
                                      "*{\"k\":}",
                                      "*{\"k\":[1}",
                                      "*{\"k\":\"\\",
                                      "*{\"k\":1,",
                                      "s{\"k\":\"\\u12\"}",
                                      ""};
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++)
        if (read_one(bad[k] + (bad[k][0] != 0), bad[k][0], &s, &n, &i) == SUMI_OK)
            fail_msg("accepted: %s", bad[k]);
}

static void json_depth_is_bounded(void **state) {
    (void)state;
    struct json_object *o;
    sumi_error err = {0};
    static char deep[200001];
    memset(deep, '[', 200000);
    assert_int_equal(json_parse(&o, deep, 200000, "body", &err), SUMI_ERR_LIMIT);
    assert_non_null(strstr(err.msg, "128"));
    memset(deep, '[', 128);
    memset(deep + 128, ']', 128);
    assert_int_equal(json_parse(&o, deep, 256, "body", &err), SUMI_OK);
    json_object_put(o);
}

static void json_round_trip_keeps_spelling(void **state) {
    (void)state;
    const char *text =
        "{\"a\":1e5,\"b\":[1.50,-0,true,null],\"c\":\"\\u0000\\n\xC3\xA9/\",\"a2\":1}";
    struct json_object *o;
    struct buf b = {0};
    assert_int_equal(json_parse(&o, text, strlen(text), "text", NULL), SUMI_OK);
    json_put_value(&b, o, true);
    assert_string_equal(buf_text(&b), "{\"a\": 1e5, \"b\": [1.50, 0, true, null], \"c\": "
                                      "\"\\u0000\\n\xC3\xA9/\", \"a2\": 1}");
    json_object_put(o);
    buf_clear(&b);
    json_put_string(&b, "\xFF\"", 2);
    assert_string_equal(buf_text(&b), "\"\xEF\xBF\xBD\\\"\"");
    buf_clear(&b);
    /* Spelled as CPython's repr() does. */
    static const struct {
        double x;
        const char *text;
    } spelled[] = {{0.1, "0.1"},
                   {1.0, "1.0"},
                   {-0.0, "-0.0"},
                   {1e7, "10000000.0"},
                   {123456.75, "123456.75"},
                   {9999999999999998.0, "9999999999999998.0"},
                   {1e16, "1e+16"},
                   {1.5e300, "1.5e+300"},
                   {0.0001, "0.0001"},
                   {0.00012345, "0.00012345"},
                   {1e-5, "1e-05"},
                   {5e-324, "5e-324"},
                   {2.0 / 3.0, "0.6666666666666666"},
                   {1.7976931348623157e308, "1.7976931348623157e+308"}};
    for (size_t i = 0; i < sizeof spelled / sizeof *spelled; i++) {
        buf_clear(&b);
        json_put_double(&b, spelled[i].x);
        assert_string_equal(buf_text(&b), spelled[i].text);
    }
    buf_reset(&b);
}

static void json_members_are_typed(void **state) {
    (void)state;
    const char *text = "{\"i\":5.0,\"s\":\"x\",\"big\":18446744073709551617,\"n\":null}";
    struct json_object *o;
    assert_int_equal(json_parse(&o, text, strlen(text), "text", NULL), SUMI_OK);
    int64_t i = 9;
    sumi_error err = {0};
    assert_int_equal(json_get_i64(o, "i", &i, &err), SUMI_OK);
    assert_int_equal(i, 5);
    assert_int_equal(json_get_i64(o, "n", &i, &err), SUMI_OK);
    assert_int_equal(i, 5);
    assert_int_equal(json_get_i64(o, "s", &i, &err), SUMI_ERR_FORMAT);
    assert_string_equal(err.param, "s");
    assert_int_equal(json_get_i64(o, "big", &i, &err), SUMI_ERR_FORMAT);
    json_object_put(o);
}

static void half_formats_round_to_even(void **state) {
    (void)state;
    assert_int_equal(bf16_from_f32(1.00390625f), 0x3F80); /* 1 + 2^-8: tie, to even */
    assert_int_equal(bf16_from_f32(1.01171875f), 0x3F82); /* 1 + 3 * 2^-8: tie, to even */
    for (uint32_t h = 0; h < 0x10000; h++) {
        float f = f16_to_f32((uint16_t)h);
        if (f != f) continue;
        assert_int_equal(f16_from_f32(f), h);
    }
    assert_int_equal(f16_from_f32(65520.0f), 0x7C00);
    assert_int_equal(f16_from_f32(1.00048828125f), 0x3C00); /* 1 + 2^-11: tie */
}

static void add_part(void *ctx, int64_t i) {
    atomic_fetch_add((atomic_long *)ctx, (long)i + 1);
}

static void the_pool_does_every_part_once(void **state) {
    (void)state;
    struct pool *p;
    assert_int_equal(pool_open(&p, 4, NULL), SUMI_OK);
    for (int round = 0; round < 200; round++) {
        atomic_long sum = 0;
        pool_run(p, round, add_part, &sum);
        assert_int_equal(sum, (long)round * (round + 1) / 2);
    }
    pool_close(p);
    assert_int_equal(pool_open(&p, -1, NULL), SUMI_ERR_ARG);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_say_where),
        cmocka_unit_test(sizes_do_not_wrap),
        cmocka_unit_test(a_buffer_keeps_its_maximum),
        cmocka_unit_test(an_arena_keeps_its_maximum),
        cmocka_unit_test(utf8_follows_the_standard),
        cmocka_unit_test(json_refuses_what_rfc8259_refuses),
        cmocka_unit_test(json_is_read_without_a_tree),
        cmocka_unit_test(json_depth_is_bounded),
        cmocka_unit_test(json_round_trip_keeps_spelling),
        cmocka_unit_test(json_members_are_typed),
        cmocka_unit_test(half_formats_round_to_even),
        cmocka_unit_test(the_pool_does_every_part_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
