/* text/stream.h: forced ids, hand-computed releases, and random streams against a plain model. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "text/bytelevel.h"
#include "text/stream.h"

/* ---- a tokenizer: ids 0 to 255 are bytes, then these ---- */

enum { NEWLINES = 256, MIXED, FOX, USER, THINK, GAP, N_ID };
static const char *const texts[] = {"\n\n", "a\n\nb", "wn fox jumps", "<|user|>", "<think>"};

struct fixture {
    struct tokenizer *t;
    struct stream *s;
    struct buf text;  /* everything released */
    struct buf shape; /* the same with <id> before added tokens and | between calls */
    size_t n_push;
    int stopped;
};

static struct tokenizer *open_tokenizer(void) {
    static char spelling[N_ID][32];
    static struct token_text vocab[N_ID];
    for (int id = 0; id < USER; id++) {
        char byte = (char)id;
        const char *raw = id < 256 ? &byte : texts[id - 256];
        size_t n = id < 256 ? 1 : strlen(raw), len = 0;
        for (size_t i = 0; i < n; i++)
            len += (size_t)utf8_encode(byte_to_char((unsigned char)raw[i]), spelling[id] + len);
        vocab[id] = (struct token_text){spelling[id], len};
    }
    static const struct added_token added[] = {
        {.id = USER, .text = "<|user|>", .len = 8, .special = true},
        {.id = THINK, .text = "<think>", .len = 7}};
    struct tokenizer_lists lists = {.vocab = vocab, .n_vocab = USER, .added = added, .n_added = 2};
    struct tokenizer *t;
    sumi_error err = {0};
    if (tokenizer_open_lists(&t, &lists, &err) != SUMI_OK) fail_msg("%s", err.msg);
    return t;
}

/* `stops`: strings up to NULL. */
static struct fixture start(const char *const *stops, struct stream_options o) {
    struct fixture f = {.t = open_tokenizer(), .stopped = -1};
    size_t len[8];
    sumi_error err = {0};
    for (; stops[o.n_stop]; o.n_stop++) len[o.n_stop] = strlen(stops[o.n_stop]);
    o.stop = stops;
    o.stop_len = len;
    if (stream_open(&f.s, f.t, &o, &err) != SUMI_OK) fail_msg("%s", err.msg);
    return f;
}

static void take_pieces(struct fixture *f, const struct piece *p, size_t n) {
    for (size_t i = 0; i < n; i++) {
        assert_true(p[i].n > 0);
        assert_true(utf8_valid(p[i].text, p[i].n));
        buf_put(&f->text, p[i].text, p[i].n);
        if (p[i].id >= 0) buf_printf(&f->shape, "<%d>", p[i].id);
        buf_put(&f->shape, p[i].text, p[i].n);
    }
    buf_putc(&f->shape, '|');
}

static void push(struct fixture *f, int32_t id) {
    const struct piece *p;
    size_t n;
    sumi_error err = {0};
    if (stream_push(f->s, id, &p, &n, &f->stopped, &err) != SUMI_OK) fail_msg("%s", err.msg);
    take_pieces(f, p, n);
}

static void push_bytes(struct fixture *f, const char *s) {
    for (; *s && f->stopped < 0; s++) push(f, (unsigned char)*s);
}

static void finish(struct fixture *f) {
    const struct piece *p;
    size_t n;
    sumi_error err = {0};
    assert_int_equal(stream_finish(f->s, &p, &n, &err), SUMI_OK);
    take_pieces(f, p, n);
}

static void end(struct fixture *f) {
    stream_close(f->s);
    tokenizer_close(f->t);
    buf_reset(&f->text);
    buf_reset(&f->shape);
}

#define STOPS(...)   ((const char *const[]){__VA_ARGS__, NULL})
#define NO_STOPS     ((const char *const[]){NULL})
#define OPTIONS(...) ((struct stream_options){__VA_ARGS__})
static const struct stream_options plain;

/* ---- characters ---- */

static void a_character_in_several_tokens_comes_out_once_and_whole(void **state) {
    (void)state;
    static const char *const stop_sets[][2] = {{NULL}, {"zzz"}, {"!"}};
    for (size_t i = 0; i < 3; i++) {
        struct fixture f = start(stop_sets[i], plain);
        push_bytes(&f, "\xF0\x9F\x98\x80\xC4\x8F\xE4\xBD\xA0");
        finish(&f);
        assert_string_equal(buf_text(&f.shape), "|||\xF0\x9F\x98\x80||\xC4\x8F|||\xE4\xBD\xA0||");
        end(&f);
    }
}

static void bytes_that_later_tokens_prove_invalid_become_replacements(void **state) {
    (void)state;
    struct fixture f = start(NO_STOPS, plain);
    push_bytes(&f, "\xE4\xBD"
                   "a\xC0"
                   "b\xF0\x9F\xE4\xBD\xA0\x80");
    push(&f, 0xC4);
    push(&f, THINK);
    push(&f, 0xE4);
    push(&f, 0xBD);
    finish(&f); /* what is still incomplete is dropped */
    assert_string_equal(buf_text(&f.shape), "||\xEF\xBF\xBD"
                                            "a|\xEF\xBF\xBD|b|||\xEF\xBF\xBD||\xE4\xBD\xA0"
                                            "|\xEF\xBF\xBD||\xEF\xBF\xBD<260><think>||||");
    end(&f);
}

static void a_prompt_may_end_inside_a_character(void **state) {
    (void)state;
    static const int32_t prompt[] = {'x', 0xC4, 0x8F, 0xE4};
    static const struct {
        const char *answer, *text;
    } cases[] = {{"\xBD\xA0", "\xE4\xBD\xA0"}, /* completed by the answer */
                 {"a", "a"},                   /* the prompt's bad byte is not ours */
                 {"\xBD"
                  "a",
                  "\xEF\xBF\xBD"
                  "a"}}; /* partly ours */
    for (size_t i = 0; i < 3; i++) {
        struct fixture f = start(NO_STOPS, plain);
        stream_prime(f.s, prompt, 4);
        push_bytes(&f, cases[i].answer);
        finish(&f);
        assert_string_equal(buf_text(&f.text), cases[i].text);
        end(&f);
    }
    struct fixture f = start(NO_STOPS, plain);
    stream_prime(f.s, prompt, 3); /* ends with a whole character */
    push(&f, 0xBD);
    assert_string_equal(buf_text(&f.text), "\xEF\xBF\xBD");
    end(&f);
    f = start(NO_STOPS, plain);
    stream_prime(f.s, NULL, 0);
    push_bytes(&f, "ok");
    assert_string_equal(buf_text(&f.shape), "o|k|");
    end(&f);
}

/* ---- stop strings ---- */

static void a_stop_string_over_tokens_is_never_seen(void **state) {
    (void)state;
    struct fixture f = start(STOPS("own fox"), plain);
    push_bytes(&f, "The quick bro");
    assert_string_equal(buf_text(&f.text), "The quick br");
    push(&f, FOX);
    assert_int_equal(f.stopped, 0);
    finish(&f);
    assert_string_equal(buf_text(&f.text), "The quick br");
    end(&f);
    f = start(STOPS("own fox"), plain);
    push_bytes(&f, "The quick brown fo"); /* the limit comes first */
    assert_string_equal(buf_text(&f.text), "The quick br");
    finish(&f);
    assert_string_equal(buf_text(&f.text), "The quick brown fo");
    end(&f);
}

static void only_the_longest_matching_prefix_is_held(void **state) {
    (void)state;
    struct fixture f = start(STOPS("abababc", "zz"), plain);
    push_bytes(&f, "xababab");
    assert_string_equal(buf_text(&f.shape), "x|||||||"); /* after "ababab" still possible */
    push(&f, 'a');                                       /* now "ababa" at most */
    assert_string_equal(buf_text(&f.text), "xab");
    push_bytes(&f, "bc");
    assert_int_equal(f.stopped, 0);
    assert_string_equal(buf_text(&f.text), "xab");
    end(&f);
}

static void a_stop_string_inside_one_token_cuts_it(void **state) {
    (void)state;
    struct fixture f = start(STOPS("\n\n"), plain);
    push(&f, MIXED);
    assert_int_equal(f.stopped, 0);
    assert_string_equal(buf_text(&f.text), "a");
    end(&f);
    f = start(STOPS("\n\n"), OPTIONS(.include_stop = true));
    push(&f, MIXED);
    assert_string_equal(buf_text(&f.text), "a\n\n");
    end(&f);
}

static void of_several_stop_strings_the_first_to_end_wins_then_list_order(void **state) {
    (void)state;
    static const struct {
        const char *stops[3], *text, *left;
        int stopped;
    } cases[] = {{{"ab", "abc"}, "xabc", "x", 0},  {{"abc", "ab"}, "xabc", "x", 1},
                 {{"bc", "abc"}, "xabc", "xa", 0}, {{"abc", "bc"}, "xabc", "x", 0},
                 {{"abcd", "bc"}, "abcd", "a", 1}, {{"ab", "ab"}, "ab", "", 0},
                 {{"aab", "c"}, "aaab", "a", 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct fixture f = start(cases[i].stops, plain);
        push_bytes(&f, cases[i].text);
        assert_int_equal(f.stopped, cases[i].stopped);
        assert_string_equal(buf_text(&f.text), cases[i].left);
        end(&f);
    }
}

static void a_stop_string_may_begin_in_a_split_character(void **state) {
    (void)state;
    struct fixture f = start(STOPS("\xF0\x9F\x98\x80!"), plain);
    push_bytes(&f, "ab\xF0\x9F\x98\x80!");
    assert_int_equal(f.stopped, 0);
    assert_string_equal(buf_text(&f.text), "ab");
    end(&f);
    f = start(STOPS("\xF0\x9F\x98\x80!"), plain); /* begins with the same three bytes */
    push_bytes(&f, "\xF0\x9F\x98\x81!");
    assert_string_equal(buf_text(&f.text), "\xF0\x9F\x98\x81!");
    end(&f);
}

static void early_tokens_do_not_stop(void **state) {
    (void)state;
    struct fixture f = start(STOPS("ab"), OPTIONS(.min_tokens = 2));
    push_bytes(&f, "ab");
    assert_int_equal(f.stopped, -1);
    push_bytes(&f, "ab");
    assert_int_equal(f.stopped, 0);
    assert_string_equal(buf_text(&f.text), "ab");
    end(&f);
    f = start(STOPS("ba"), OPTIONS(.min_tokens = 2)); /* ends in the third */
    push_bytes(&f, "aba");
    assert_int_equal(f.stopped, 0);
    assert_string_equal(buf_text(&f.text), "a");
    end(&f);
}

/* ---- added tokens ---- */

static void added_tokens_are_pieces_of_their_own(void **state) {
    (void)state;
    struct fixture f = start(NO_STOPS, plain);
    push(&f, 'a');
    push(&f, USER);
    push(&f, THINK);
    push(&f, GAP);
    push(&f, 'b');
    assert_string_equal(buf_text(&f.shape), "a|<259><|user|>|<260><think>||b|");
    end(&f);
    f = start(STOPS("ab"), OPTIONS(.skip_special = true));
    push(&f, 'a');
    push(&f, USER); /* silent, and no part of any stop string */
    push(&f, THINK);
    push(&f, 'a');
    push(&f, USER);
    push(&f, 'b');
    assert_int_equal(f.stopped, 0);
    assert_string_equal(buf_text(&f.shape), "||a<260><think>||||");
    end(&f);
}

static void a_stop_string_may_reach_over_added_tokens(void **state) {
    (void)state;
    struct fixture f = start(STOPS("a<|user|>b"), plain);
    push_bytes(&f, "xa");
    push(&f, USER);
    push(&f, 'b');
    assert_int_equal(f.stopped, 0);
    assert_string_equal(buf_text(&f.shape), "x||||");
    end(&f);
    f = start(STOPS("a<|user|>b"), plain); /* not this time: the token keeps its id */
    push_bytes(&f, "a");
    push(&f, USER);
    push(&f, 'c');
    assert_string_equal(buf_text(&f.shape), "||a<259><|user|>c|");
    end(&f);
    f = start(STOPS("<|us"), OPTIONS(.include_stop = true)); /* a cut token is text */
    push(&f, USER);
    assert_int_equal(f.stopped, 0);
    assert_string_equal(buf_text(&f.shape), "<|us|");
    end(&f);
}

static void an_added_token_is_held_whole(void **state) {
    (void)state;
    struct fixture f = start(STOPS(">x"), plain);
    push(&f, 'a');
    push(&f, USER);
    assert_string_equal(buf_text(&f.shape), "a||");
    push(&f, 'y');
    assert_string_equal(buf_text(&f.shape), "a||<259><|user|>y|");
    push(&f, USER);
    push(&f, 'x');
    assert_int_equal(f.stopped, 0);
    assert_string_equal(buf_text(&f.text), "a<|user|>y<|user|");
    end(&f);
}

/* ---- ends and errors ---- */

static void after_the_end_nothing_is_taken(void **state) {
    (void)state;
    const struct piece *p;
    size_t n;
    int stopped;
    sumi_error err = {0};
    struct fixture f = start(STOPS("a"), plain);
    push(&f, 'a');
    assert_int_equal(stream_push(f.s, 'b', &p, &n, &stopped, &err), SUMI_ERR_STATE);
    assert_int_equal(n, 0);
    finish(&f);
    assert_string_equal(buf_text(&f.text), "");
    end(&f);
    f = start(NO_STOPS, plain);
    finish(&f);
    assert_int_equal(stream_push(f.s, 'b', &p, &n, &stopped, &err), SUMI_ERR_STATE);
    end(&f);
}

static void bad_stop_strings_are_refused(void **state) {
    (void)state;
    struct tokenizer *t = open_tokenizer();
    static const char *const stops[] = {"ok", "\xE4\xBD"};
    static const size_t lens[][2] = {{2, 2}, {2, 0}};
    for (size_t i = 0; i < 2; i++) {
        struct stream *s;
        sumi_error err = {0};
        struct stream_options o = {.stop = stops, .stop_len = lens[i], .n_stop = 2};
        assert_int_equal(stream_open(&s, t, &o, &err), SUMI_ERR_ARG);
        assert_string_equal(err.param, "stop");
        assert_null(s);
    }
    tokenizer_close(t);
}

/* ---- random streams against a model that looks at the whole text every time ---- */

static uint32_t seed;
static uint32_t rnd(uint32_t n) {
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % n;
}

/* The text after n ids, an incomplete end dropped. */
static void whole_text(const struct tokenizer *t, const int32_t *ids, size_t n, bool skip,
                       struct buf *out) {
    struct buf raw = {0};
    buf_clear(out);
    for (size_t i = 0; i < n; i++) {
        size_t len;
        const char *s = tokenizer_bytes(t, ids[i], &len);
        if (s && !(skip && tokenizer_is_special(t, ids[i]))) buf_put(&raw, s, len);
    }
    for (size_t k = 1; k <= 3 && k <= raw.len; k++)
        if (utf8_incomplete(raw.data + raw.len - k, k)) {
            raw.len -= k;
            break;
        }
    for (size_t i = 0; i < raw.len;) {
        uint32_t c;
        size_t len = (size_t)utf8_decode(raw.data + i, raw.len - i, &c);
        if (len) buf_put(out, raw.data + i, len);
        else {
            buf_puts(out, "\xEF\xBF\xBD");
            len = 1;
            while (len < 3 && i + len < raw.len && utf8_incomplete(raw.data + i, len + 1)) len++;
        }
        i += len;
    }
    buf_reset(&raw);
}

static size_t longest_prefix_at_end(const struct buf *text, const char *const *stops) {
    size_t best = 0;
    for (; *stops; stops++)
        for (size_t k = 1; k < strlen(*stops) && k <= text->len; k++)
            if (k > best && memcmp(text->data + text->len - k, *stops, k) == 0) best = k;
    return best;
}

/* End of the stop string that ends first behind `from`; *index which. 0: none. */
static size_t first_end(const struct buf *text, size_t from, const char *const *stops, int *index) {
    for (size_t e = from + 1; e <= text->len; e++)
        for (int i = 0; stops[i]; i++) {
            size_t n = strlen(stops[i]);
            if (n > e || memcmp(text->data + e - n, stops[i], n) != 0) continue;
            *index = i;
            return e;
        }
    return 0;
}

static void one_random_stream(void) {
    static const char alphabet[] = "aab\xE4\xBD\xA0\xC4\x8F\xF0";
    char stop_text[3][16];
    const char *stops[4] = {NULL};
    size_t n_stop = rnd(4);
    for (size_t i = 0; i < n_stop; i++) {
        size_t n = 1 + rnd(5), len = 0;
        static const char *const parts[] = {"a",  "a", "b",           "\xE4\xBD\xA0",
                                            "\n", ">", "\xEF\xBF\xBD"};
        for (size_t k = 0; k < n && len < 12; k++)
            len += strlen(strcpy(stop_text[i] + len, parts[rnd(7)]));
        stops[i] = stop_text[i];
    }
    struct stream_options o = {
        .include_stop = rnd(2), .skip_special = rnd(2), .min_tokens = rnd(3) ? 0 : rnd(6)};
    bool with_added = rnd(2);
    struct fixture f = start(stops, o);
    struct buf whole = {0};
    int32_t ids[24];
    size_t before = 0, n_id = 1 + rnd(24);
    bool stop_seen = false;
    for (size_t k = 0; k < n_id && !stop_seen; k++) {
        ids[k] = rnd(6) ? (unsigned char)alphabet[rnd(sizeof alphabet - 1)]
                        : (int32_t)(NEWLINES + rnd(with_added ? 6 : 3));
        push(&f, ids[k]);
        whole_text(f.t, ids, k + 1, o.skip_special, &whole);
        int index = -1;
        size_t e = k < o.min_tokens ? 0 : first_end(&whole, before, stops, &index);
        assert_int_equal(f.stopped, index);
        stop_seen = e > 0;
        size_t visible = e ? e - (o.include_stop ? 0 : strlen(stops[index]))
                           : whole.len - longest_prefix_at_end(&whole, stops);
        if (e || !with_added) assert_int_equal(f.text.len, visible);
        assert_true(f.text.len <= visible);
        assert_memory_equal(buf_text(&f.text), buf_text(&whole), f.text.len);
        before = whole.len;
    }
    finish(&f);
    if (!stop_seen) assert_string_equal(buf_text(&f.text), buf_text(&whole));
    buf_reset(&whole);
    end(&f);
}

static void random_streams_release_what_the_model_says(void **state) {
    (void)state;
    for (seed = 1; seed < 4000000000u; seed += 2000003u) {
        uint32_t keep = seed;
        one_random_stream();
        seed = keep;
    }
}

static void short_memory_ends_a_stream_and_leaks_nothing(void **state) {
    (void)state;
    struct tokenizer *t = open_tokenizer();
    static const char *const stops[] = {"abcabd", "b\n"};
    static const size_t lens[] = {6, 2};
    struct stream_options o = {.stop = stops, .stop_len = lens, .n_stop = 2};
    long used, n_memory = 0;
    for (long k = 1;; k++) {
        struct stream *s = NULL;
        sumi_error err = {0};
        used = mem_count();
        mem_fail_at(k);
        sumi_status status = stream_open(&s, t, &o, &err);
        for (int i = 0; i < 40 && status == SUMI_OK; i++) {
            const struct piece *p;
            size_t n;
            int stopped;
            static const int32_t ids[] = {'a', 'b', 'c', THINK, USER, FOX, 0xE4, 0xBD};
            status = stream_push(s, ids[i % 8], &p, &n, &stopped, &err);
            if (status == SUMI_OK) continue;
            assert_int_equal(n, 0);
            assert_int_equal(stream_push(s, 'a', &p, &n, &stopped, &err), SUMI_ERR_STATE);
        }
        mem_fail_at(0);
        used = mem_count() - used;
        if (status != SUMI_OK) {
            assert_int_equal(status, SUMI_ERR_MEMORY);
            n_memory++;
        }
        stream_close(s);
        if (used < k) break;
    }
    assert_true(n_memory >= 5);
    tokenizer_close(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_character_in_several_tokens_comes_out_once_and_whole),
        cmocka_unit_test(bytes_that_later_tokens_prove_invalid_become_replacements),
        cmocka_unit_test(a_prompt_may_end_inside_a_character),
        cmocka_unit_test(a_stop_string_over_tokens_is_never_seen),
        cmocka_unit_test(only_the_longest_matching_prefix_is_held),
        cmocka_unit_test(a_stop_string_inside_one_token_cuts_it),
        cmocka_unit_test(of_several_stop_strings_the_first_to_end_wins_then_list_order),
        cmocka_unit_test(a_stop_string_may_begin_in_a_split_character),
        cmocka_unit_test(early_tokens_do_not_stop),
        cmocka_unit_test(added_tokens_are_pieces_of_their_own),
        cmocka_unit_test(a_stop_string_may_reach_over_added_tokens),
        cmocka_unit_test(an_added_token_is_held_whole),
        cmocka_unit_test(after_the_end_nothing_is_taken),
        cmocka_unit_test(bad_stop_strings_are_refused),
        cmocka_unit_test(random_streams_release_what_the_model_says),
        cmocka_unit_test(short_memory_ends_a_stream_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
