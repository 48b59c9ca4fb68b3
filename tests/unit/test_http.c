/* serve/http: heads, chunked bodies, paths. Shapes from RFC 9112. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "serve/http.h"

static sumi_status parse(struct http_request *r, const char *text) {
    sumi_error err = {0};
    return http_parse_head(r, text, strlen(text), 8, &err);
}

static void a_head_is_cut_into_its_parts(void **state) {
    (void)state;
    struct http_request r;
    assert_int_equal(parse(&r, "POST /v1/chat%20x/?a=%20b HTTP/1.1\r\nHost: h\r\n"
                               "Content-Length:  12 \r\nX-A:\tone  two\t\r\n\r\n"),
                     SUMI_OK);
    assert_string_equal(r.method, "POST");
    assert_string_equal(r.path, "/v1/chat x/");
    assert_string_equal(r.query, "a=%20b");
    assert_int_equal(r.n_header, 3);
    assert_string_equal(http_find(&r, "x-a"), "one  two");
    assert_null(http_find(&r, "x-b"));
    assert_true(r.has_length && r.length == 12 && r.keep_alive && !r.chunked);
    http_request_reset(&r);
}

static void the_end_of_a_head_is_found_wherever_it_was_cut(void **state) {
    (void)state;
    static const char text[] = "GET / HTTP/1.1\r\nA: b\r\n\r\nrest";
    size_t whole = strlen("GET / HTTP/1.1\r\nA: b\r\n\r\n");
    for (size_t n = 0; n < whole; n++) assert_int_equal(http_head_length(text, n, 0), 0);
    for (size_t seen = 0; seen < whole; seen++)
        assert_int_equal(http_head_length(text, sizeof text - 1, seen), whole);
    assert_int_equal(http_head_length("GET / HTTP/1.1\n\n", 16, 0), 16);
}

static void connection_and_version_decide_whether_it_stays_open(void **state) {
    (void)state;
    static const struct {
        const char *text;
        bool keep;
    } rows[] = {{"GET / HTTP/1.1\r\n\r\n", true},
                {"GET / HTTP/1.0\r\n\r\n", false},
                {"GET / HTTP/1.1\r\nConnection: Close\r\n\r\n", false},
                {"GET / HTTP/1.1\r\nConnection: x, close\r\n\r\n", false},
                {"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", true}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct http_request r;
        assert_int_equal(parse(&r, rows[i].text), SUMI_OK);
        assert_int_equal(r.keep_alive, rows[i].keep);
        http_request_reset(&r);
    }
}

static void shapes_that_smuggle_or_confuse_are_refused(void **state) {
    (void)state;
    static const char *const rows[] = {
        "GET /\r\n\r\n",
        "GET / HTTP/1.1 x\r\n\r\n",
        " GET / HTTP/1.1\r\n\r\n",
        "GET x HTTP/1.1\r\n\r\n",
        "G(T / HTTP/1.1\r\n\r\n",
        "GET /%00 HTTP/1.1\r\n\r\n",
        "GET /a%0db HTTP/1.1\r\n\r\n",
        "GET / FTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nA : b\r\n\r\n",
        "GET / HTTP/1.1\r\nA: b\r\n c\r\n\r\n",
        "GET / HTTP/1.1\r\nno colon\r\n\r\n",
        "GET / HTTP/1.1\r\nA: b\x01\r\n\r\n",
        "GET / HTTP/1.1\r\nA: b\rc\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 1, 1\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: +1\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length:\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 18446744073709551616\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct http_request r;
        assert_int_equal(parse(&r, rows[i]), SUMI_ERR_FORMAT);
    }
}

static void codings_versions_and_counts_have_their_own_errors(void **state) {
    (void)state;
    struct http_request r;
    sumi_error err = {0};
    static const char nul[] = "GET / HTTP/1.1\r\nA: b\0c\r\n\r\n";
    assert_int_equal(parse(&r, "POST / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"),
                     SUMI_ERR_UNSUPPORTED);
    assert_int_equal(parse(&r, "GET / HTTP/2.0\r\n\r\n"), SUMI_ERR_UNSUPPORTED);
    assert_int_equal(http_parse_head(&r, nul, sizeof nul - 1, 8, &err), SUMI_ERR_FORMAT);
    assert_int_equal(parse(&r, "GET / HTTP/1.1\r\na:1\r\nb:2\r\nc:3\r\nd:4\r\ne:5\r\nf:6\r\ng:7\r\n"
                               "h:8\r\ni:9\r\n\r\n"),
                     SUMI_ERR_LIMIT);
    assert_int_equal(parse(&r, "POST / HTTP/1.1\r\nContent-Length: 7\r\nContent-Length: 7\r\n"
                               "Expect: 100-Continue\r\n\r\n"),
                     SUMI_OK);
    assert_true(r.length == 7 && r.expect_continue);
    http_request_reset(&r);
    assert_int_equal(parse(&r, "GET http://host:80/v1/models HTTP/1.1\r\n\r\n"), SUMI_OK);
    assert_string_equal(r.path, "/v1/models");
    http_request_reset(&r);
}

static void a_chunked_body_reads_the_same_in_every_cut(void **state) {
    (void)state;
    static const char text[] = "4;ext=1\r\nWiki\r\n6\r\npedia \r\nE\r\nin \r\n\r\nchunks.\r\n"
                               "0\r\nTrailer: x\r\n\r\nNEXT";
    size_t n = sizeof text - 1;
    for (size_t step = 1; step <= n; step++) {
        struct chunked c = {0};
        struct buf body = {.max = 100};
        size_t at = 0;
        while (!c.done && at < n) {
            size_t take = n - at < step ? n - at : step, used;
            sumi_error err;
            assert_int_equal(chunked_feed(&c, text + at, take, &used, &body, &err), SUMI_OK);
            at += used;
        }
        assert_true(c.done);
        assert_string_equal(text + at, "NEXT");
        assert_string_equal(buf_text(&body), "Wikipedia in \r\n\r\nchunks.");
        buf_reset(&body);
    }
}

static void bad_chunks_are_refused(void **state) {
    (void)state;
    static const struct {
        const char *text;
        sumi_status status;
    } rows[] = {{"\r\n", SUMI_ERR_FORMAT},     {"x\r\n", SUMI_ERR_FORMAT},
                {"-1\r\n", SUMI_ERR_FORMAT},   {"1\rx", SUMI_ERR_FORMAT},
                {"1\r\nabc", SUMI_ERR_FORMAT}, {"ffffffffffffffff1\r\n", SUMI_ERR_FORMAT},
                {"0\r\n\rx", SUMI_ERR_FORMAT}, {"9\r\n123456789", SUMI_ERR_LIMIT}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct chunked c = {0};
        struct buf body = {.max = 8};
        size_t used;
        sumi_error err;
        assert_int_equal(chunked_feed(&c, rows[i].text, strlen(rows[i].text), &used, &body, &err),
                         rows[i].status);
        buf_reset(&body);
    }
}

static void a_root_path_is_cut_at_segments_only(void **state) {
    (void)state;
    assert_string_equal(http_strip_root("/api/v1/models", "/api"), "/v1/models");
    assert_string_equal(http_strip_root("/api/v1/models", "/api/"), "/v1/models");
    assert_string_equal(http_strip_root("/api", "/api"), "/");
    assert_string_equal(http_strip_root("/apix/v1", "/api"), "/apix/v1");
    assert_string_equal(http_strip_root("/v1", NULL), "/v1");
    assert_string_equal(http_strip_root("/v1", ""), "/v1");
}

static void a_failed_allocation_is_an_error_and_leaks_nothing(void **state) {
    (void)state;
    sumi_status status = SUMI_ERR_MEMORY;
    for (long n = 1; status != SUMI_OK; n++) {
        struct http_request r;
        mem_fail_at(n);
        status = parse(&r, "GET /x HTTP/1.1\r\nA: b\r\n\r\n");
        mem_fail_at(0);
        if (status == SUMI_OK) http_request_reset(&r);
        else assert_int_equal(status, SUMI_ERR_MEMORY);
        assert_true(n < 10);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_head_is_cut_into_its_parts),
        cmocka_unit_test(the_end_of_a_head_is_found_wherever_it_was_cut),
        cmocka_unit_test(connection_and_version_decide_whether_it_stays_open),
        cmocka_unit_test(shapes_that_smuggle_or_confuse_are_refused),
        cmocka_unit_test(codings_versions_and_counts_have_their_own_errors),
        cmocka_unit_test(a_chunked_body_reads_the_same_in_every_cut),
        cmocka_unit_test(bad_chunks_are_refused),
        cmocka_unit_test(a_root_path_is_cut_at_segments_only),
        cmocka_unit_test(a_failed_allocation_is_an_error_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
