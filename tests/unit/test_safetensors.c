/* file/: safetensors files and folders of them, good ones and hostile ones. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/mem.h"
#include "file/checkpoint.h"
#include "scratch.h"

/* A file with this header and `bytes` bytes of data 0, 1, 2, ... */
static struct buf pack(const char *header, size_t bytes) {
    struct buf b = {0};
    uint64_t n = strlen(header);
    for (int i = 0; i < 8; i++) buf_putc(&b, (char)(n >> 8 * i));
    buf_puts(&b, header);
    for (size_t i = 0; i < bytes; i++) buf_putc(&b, (char)i);
    assert_false(b.failed);
    return b;
}

static void write_file(const char *name, const char *header, size_t bytes) {
    struct buf b = pack(header, bytes);
    scratch_write(name, b.data, b.len);
    buf_reset(&b);
}

static sumi_status open_text(struct checkpoint **c, const char *header, size_t bytes,
                             sumi_error *err) {
    struct buf b = pack(header, bytes);
    /* An exact copy, so that the sanitizer sees a read behind the end. */
    char *copy = mem_alloc(b.len);
    assert_non_null(copy);
    memcpy(copy, b.data, b.len);
    sumi_status status = checkpoint_open_memory(c, copy, b.len, "m.safetensors", err);
    assert_int_equal(status == SUMI_OK, *c != NULL);
    checkpoint_close(*c);
    mem_free(copy);
    buf_reset(&b);
    return status;
}

static void assert_refused(const char *header, size_t bytes, sumi_status want, const char *part) {
    struct checkpoint *c;
    sumi_error err = {0};
    sumi_status status = open_text(&c, header, bytes, &err);
    if (status != want || !strstr(err.msg, part) || !strstr(err.msg, "m.safetensors"))
        fail_msg("header %s: status %d, message \"%s\", expected status %d and \"%s\"", header,
                 (int)status, err.msg, (int)want, part);
}

static void assert_open_fails(const char *path, sumi_status want, const char *part) {
    struct checkpoint *c;
    sumi_error err = {0};
    sumi_status status = checkpoint_open(&c, path, &err);
    if (status != want || !strstr(err.msg, part))
        fail_msg("%s: status %d, message \"%s\", expected status %d and \"%s\"", path, (int)status,
                 err.msg, (int)want, part);
    assert_null(c);
}

static void tensors_are_views_in_the_order_of_their_data(void **state) {
    (void)state;
    struct checkpoint *c;
    struct buf b = pack(" {\"__metadata__\": {\"format\":\"pt\", \"a\\n\":\"\"},\n"
                        "\"w\":{\"dtype\":\"BF16\",\"shape\":[2,3],\"data_offsets\":[5,17]},"
                        "\"none\":{\"dtype\":\"F32\",\"shape\":[0,7],\"data_offsets\":[5,5]},"
                        "\"s\\u00e9\\ud83d\\ude00\\/\":{\"data_offsets\":[1,5],\"shape\":[],"
                        "\"dtype\":\"F32\"},"
                        "\"u\" : { \"dtype\" : \"U8\" , \"shape\" : [ 1 ] , \"data_offsets\" : "
                        "[ 0 , 1 ] } }  ",
                        17);
    assert_int_equal(checkpoint_open_memory(&c, b.data, b.len, "x.safetensors", NULL), SUMI_OK);
    assert_int_equal(checkpoint_count(c), 4);
    assert_int_equal(checkpoint_bytes(c), 17);
    assert_null(checkpoint_gguf(c));
    static const char *const order[] = {"u", "s\xC3\xA9\xF0\x9F\x98\x80/", "none", "w"};
    for (size_t i = 0; i < 4; i++) assert_string_equal(checkpoint_at(c, i)->name, order[i]);
    const struct tensor *w = checkpoint_find(c, "w");
    assert_ptr_equal(w, checkpoint_at(c, 3));
    assert_string_equal(w->file, "x.safetensors");
    assert_int_equal(w->dtype, DT_BF16);
    assert_int_equal(w->n_dim, 2);
    assert_int_equal(w->dim[0], 2);
    assert_int_equal(w->dim[1], 3);
    assert_int_equal(w->dim[2], 1);
    assert_int_equal(w->bytes, 12);
    assert_memory_equal(w->data, "\5\6\7", 3);
    const struct tensor *s = checkpoint_at(c, 1);
    assert_int_equal(s->n_dim, 0);
    assert_int_equal(s->bytes, 4);
    assert_null(checkpoint_find(c, "W"));
    char text[64];
    assert_string_equal(tensor_describe(w, text, sizeof text), "BF16 [2, 3]");
    assert_string_equal(tensor_describe(s, text, sizeof text), "F32 []");
    checkpoint_close(c);
    buf_reset(&b);
}

/* tests/golden/small.safetensors: see tools/golden/make_containers.py. */
static void a_file_of_the_public_writer_is_read(void **state) {
    (void)state;
    struct checkpoint *c;
    char text[64];
    assert_int_equal(checkpoint_open(&c, "tests/golden/small.safetensors", NULL), SUMI_OK);
    assert_int_equal(checkpoint_count(c), 4);
    assert_int_equal(checkpoint_bytes(c), 20 + 12 + 2 + 8);
    const struct tensor *t = checkpoint_find(c, "m");
    assert_string_equal(tensor_describe(t, text, sizeof text), "F16 [2, 3]");
    assert_memory_equal(t->data, "\x00\x00\x00\x3C\x00\x40", 6); /* 0, 1, 2 */
    t = checkpoint_find(c, "flag");
    assert_string_equal(tensor_describe(t, text, sizeof text), "BOOL [2]");
    assert_memory_equal(t->data, "\1\0", 2);
    t = checkpoint_find(c, "scalar");
    assert_string_equal(tensor_describe(t, text, sizeof text), "I64 []");
    assert_memory_equal(t->data, "\7\0\0\0\0\0\0\0", 8);
    checkpoint_close(c);
}

/* Bytes of each type by the safetensors format. */
static void the_types_of_checkpoints_are_known_and_others_refused_by_name(void **state) {
    (void)state;
    static const struct {
        const char *name;
        int bytes;
    } good[] = {{"F64", 8}, {"F32", 4}, {"F16", 2}, {"BF16", 2}, {"F8_E4M3", 1}, {"I64", 8},
                {"I32", 4}, {"I16", 2}, {"I8", 1},  {"U8", 1},   {"BOOL", 1}};
    static const char *const bad[] = {"F8_E5M2", "F4", "Q4_0", "NVFP4", "f32", "", "C64", "U32"};
    char header[256];
    struct checkpoint *c;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        snprintf(header, sizeof header,
                 "{\"t\":{\"dtype\":\"%s\",\"shape\":[3],\"data_offsets\":[0,%d]}}", good[i].name,
                 3 * good[i].bytes);
        sumi_error err = {0};
        if (open_text(&c, header, (size_t)(3 * good[i].bytes), &err) != SUMI_OK)
            fail_msg("%s: %s", good[i].name, err.msg);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        snprintf(header, sizeof header,
                 "{\"t\":{\"dtype\":\"%s\",\"shape\":[32],\"data_offsets\":[0,18]}}", bad[i]);
        assert_refused(header, 18, SUMI_ERR_UNSUPPORTED, bad[i]);
    }
}

static void the_header_length_is_checked_before_it_is_used(void **state) {
    (void)state;
    struct checkpoint *c;
    sumi_error err = {0};
    uint8_t file[64] = {0};
    static const char text[] = "{}                      ";
    memcpy(file + 8, text, 24);
    static const struct {
        uint64_t length;
        sumi_status want;
        const char *part;
    } cases[] = {{UINT64_MAX, SUMI_ERR_FORMAT, "18446744073709551615"},
                 {UINT64_MAX - 7, SUMI_ERR_FORMAT, "18446744073709551608"},
                 {(uint64_t)1 << 63, SUMI_ERR_FORMAT, "9223372036854775808"},
                 {33, SUMI_ERR_FORMAT, "33"}, /* the file's 32 bytes and one */
                 {25, SUMI_ERR_FORMAT, "only 24"},
                 {0, SUMI_ERR_FORMAT, "ends at byte 0"},
                 {1, SUMI_ERR_FORMAT, "ends at byte 1"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int k = 0; k < 8; k++) file[k] = (uint8_t)(cases[i].length >> 8 * k);
        assert_int_equal(checkpoint_open_memory(&c, file, 32, "m.safetensors", &err),
                         cases[i].want);
        if (!strstr(err.msg, cases[i].part)) fail_msg("%s", err.msg);
    }
    for (size_t n = 0; n < 8; n++) {
        char part[32];
        snprintf(part, sizeof part, "found %zu", n);
        assert_int_equal(checkpoint_open_memory(&c, file, n, "m.safetensors", &err),
                         SUMI_ERR_FORMAT);
        assert_non_null(strstr(err.msg, part));
    }
    assert_int_equal(open_text(&c, "{}", 0, NULL), SUMI_OK);
}

static void a_header_over_the_limit_is_not_read(void **state) {
    (void)state;
    enum { HEADER = 100000001 };
    struct checkpoint *c;
    sumi_error err = {0};
    uint8_t *file = mem_zero(HEADER + 8, 1);
    assert_non_null(file);
    for (int k = 0; k < 4; k++) file[k] = (uint8_t)(HEADER >> 8 * k);
    assert_int_equal(checkpoint_open_memory(&c, file, HEADER + 8, "m.safetensors", &err),
                     SUMI_ERR_LIMIT);
    assert_non_null(strstr(err.msg, "100000001"));
    mem_free(file);
}

#define ONE(dtype, shape, offsets) \
    "{\"tn\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}}"
#define U8(name, n, offsets) \
    "\"" name "\":{\"dtype\":\"U8\",\"shape\":[" #n "],\"data_offsets\":" offsets "}"

static void shapes_and_offsets_that_disagree_are_refused_by_name(void **state) {
    (void)state;
    static const struct {
        const char *header;
        size_t bytes;
        sumi_status want;
        const char *part;
    } cases[] = {
        {ONE("F32", "[32,8]", "[0,65536]"), 1024, SUMI_ERR_SHAPE,
         "\"tn\" is F32 [32, 8], which "
         "takes 1024 bytes"},
        {ONE("F32", "[32,8]", "[0,4]"), 1024, SUMI_ERR_SHAPE, "\"tn\""},
        {ONE("F32", "[1]", "[8,4]"), 8, SUMI_ERR_FORMAT, "\"tn\" begins at 8"},
        {ONE("F32", "[4294967296,4294967296]", "[0,4]"), 4, SUMI_ERR_SHAPE, "\"tn\""},
        {ONE("F32", "[4611686018427387904]", "[0,0]"), 0, SUMI_ERR_SHAPE, "\"tn\""},
        {ONE("F32", "[18446744073709551615,0]", "[0,0]"), 0, SUMI_ERR_SHAPE, "\"tn\""},
        {ONE("U8", "[9223372036854775808]", "[0,9223372036854775808]"), 0, SUMI_ERR_SHAPE, "tn"},
        {ONE("F32", "[1]", "[18446744073709551612,18446744073709551616]"), 4, SUMI_ERR_FORMAT,
         "below 2^64"},
        {ONE("F32", "[1]", "[18446744073709551608,18446744073709551612]"), 4, SUMI_ERR_FORMAT,
         "\"tn\" ends at byte 18446744073709551612"},
        {ONE("F32", "[1]", "[9223372036854775803,9223372036854775807]"), 4, SUMI_ERR_FORMAT, "tn"},
        {ONE("F32", "[1]", "[-4,0]"), 4, SUMI_ERR_FORMAT, "not negative"},
        {ONE("F32", "[-1]", "[0,4]"), 4, SUMI_ERR_FORMAT, "not negative"},
        {ONE("F32", "[1.0]", "[0,4]"), 4, SUMI_ERR_FORMAT, "whole number"},
        {ONE("F32", "[1e2]", "[0,400]"), 400, SUMI_ERR_FORMAT, "whole number"},
        {ONE("F32", "[01]", "[0,4]"), 4, SUMI_ERR_FORMAT, "whole number"},
        {ONE("F32", "[1]", "[4]"), 4, SUMI_ERR_FORMAT, "expected ','"},
        {ONE("F32", "[1]", "[]"), 4, SUMI_ERR_FORMAT, "whole number"},
        {ONE("F32", "[1]", "[0,4,8]"), 4, SUMI_ERR_FORMAT, "expected ']'"},
        {ONE("F32", "[1]", "4"), 4, SUMI_ERR_FORMAT, "expected '['"},
        {ONE("F32", "[1,]", "[0,4]"), 4, SUMI_ERR_FORMAT, "whole number"},
        {ONE("F32", "[1,1,1,1,1]", "[0,4]"), 4, SUMI_ERR_UNSUPPORTED, "\"tn\" has more than 4"},
        {"{" U8("aa", 4, "[0,4]") "," U8("bb", 4, "[3,7]") "}", 7, SUMI_ERR_FORMAT,
         "\"aa\" and \"bb\" overlap"},
        {"{" U8("aa", 4, "[0,4]") "," U8("bb", 4, "[0,4]") "}", 4, SUMI_ERR_FORMAT, "overlap"},
        {"{" U8("aa", 4, "[0,4]") "," U8("bb", 0, "[2,2]") "}", 4, SUMI_ERR_FORMAT, "overlap"},
        {"{" U8("aa", 4, "[0,4]") "," U8("bb", 4, "[6,10]") "}", 10, SUMI_ERR_FORMAT,
         "hole of 2 bytes before tensor \"bb\""},
        {"{" U8("aa", 4, "[1,5]") "}", 5, SUMI_ERR_FORMAT, "hole of 1 bytes before tensor \"aa\""},
        {"{" U8("aa", 4, "[0,4]") "}", 9, SUMI_ERR_FORMAT, "5 bytes behind the last tensor"},
        {"{}", 1, SUMI_ERR_FORMAT, "1 bytes behind"},
        {"{" U8("aa", 4, "[0,4]") "," U8("aa", 4, "[4,8]") "}", 8, SUMI_ERR_FORMAT,
         "\"aa\" comes twice"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_refused(cases[i].header, cases[i].bytes, cases[i].want, cases[i].part);
}

static void a_malformed_header_is_refused_with_the_place(void **state) {
    (void)state;
    static const struct {
        const char *header, *part;
    } cases[] = {
        {"[]", "byte 0 of the header: expected '{', found '['"},
        {"{", "ends at byte 1"},
        {"{}x", "byte 2 of the header: expected nothing but blanks, found 'x'"},
        {"{\"a\"}", "expected ':'"},
        {"{\"a\":1}", "expected '{'"},
        {"{a:1}", "expected a string"},
        {"{\"a\":{}}", "\"a\" has no dtype"},
        {"{\"a\":{\"dtype\":\"U8\"}}", "\"a\" has no shape"},
        {"{\"a\":{\"dtype\":\"U8\",\"shape\":[]}}", "\"a\" has no data_offsets"},
        {"{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\"}}", "\"a\" has dtype twice"},
        {"{\"a\":{\"shape\":[],\"shape\":[]}}", "\"a\" has shape twice"},
        {"{\"a\":{\"data_offsets\":[0,0],\"data_offsets\":[0,0]}}", "has data_offsets twice"},
        {"{\"a\":{\"strides\":[]}}", "\"a\" has a field \"strides\""},
        {"{\"a\":{\"dtype\":1}}", "expected a string, found '1'"},
        {"{\"a\":{\"dtype\":\"U8\",}}", "expected a string, found '}'"},
        {"{" U8("a", 0, "[0,0]") ",}", "expected a string, found '}'"},
        {"{" U8("", 0, "[0,0]") "}", "tensor name of 0 bytes"},
        {"{" U8("a\\u0000b", 0, "[0,0]") "}", "no NUL"},
        {"{" U8("a\\tb", 0, "[0,0]") "}", "control character 0x09 at position 1"},
        {"{" U8("a\tb", 0, "[0,0]") "}", "no control character"},
        {"{" U8("\\ud800", 0, "[0,0]") "}", "surrogate"},
        {"{" U8("\\udc00", 0, "[0,0]") "}", "surrogate"},
        {"{" U8("\\ud800\\u0041", 0, "[0,0]") "}", "surrogate"},
        {"{" U8("\\u00g0", 0, "[0,0]") "}", "hexadecimal"},
        {"{" U8("\\x", 0, "[0,0]") "}", "escape letter"},
        {"{\"\\", "escape letter"},
        {"{\"\\u12", "hexadecimal"},
        {"{\"abc", "'\"' at the end"},
        {"{" U8("\xFF", 0, "[0,0]") "}", "byte 2 of the header is not valid UTF-8"},
        {"{\"__metadata__\":{\"a\":1}}", "expected a string"},
        {"{\"__metadata__\":[]}", "expected '{'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_refused(cases[i].header, 0, SUMI_ERR_FORMAT, cases[i].part);
}

static void a_name_may_have_512_bytes(void **state) {
    (void)state;
    struct checkpoint *c;
    char header[700], name[514];
    for (size_t n = 512; n <= 513; n++) {
        memset(name, 'n', n);
        name[n] = 0;
        snprintf(header, sizeof header,
                 "{\"%s\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}", name);
        assert_int_equal(open_text(&c, header, 0, NULL), n == 512 ? SUMI_OK : SUMI_ERR_LIMIT);
    }
}

static void a_cut_file_says_how_long_it_should_be(void **state) {
    (void)state;
    struct checkpoint *c;
    sumi_error err = {0};
    struct buf b = pack("{" U8("first", 6, "[0,6]") "," U8("end", 10, "[6,16]") "}", 16);
    char part[64];
    for (size_t cut = 1; cut <= 16; cut++) {
        assert_int_equal(checkpoint_open_memory(&c, b.data, b.len - cut, "m.safetensors", &err),
                         SUMI_ERR_FORMAT);
        snprintf(part, sizeof part, "expected %zu bytes, where tensor \"end\" ends, found %zu",
                 b.len, b.len - cut);
        if (!strstr(err.msg, part)) fail_msg("%s", err.msg);
    }
    buf_reset(&b);
}

static void thirty_six_thousand_tensors_are_found_by_name(void **state) {
    (void)state;
    enum { N = 36734 };
    struct buf header = {0};
    for (int i = 0; i < N; i++)
        buf_printf(&header,
                   "%c\"model.layers.%d.mlp.experts.%d.w\":{\"dtype\":\"U8\",\"shape\":[2],"
                   "\"data_offsets\":[%d,%d]}",
                   i ? ',' : '{', i % 49, i / 49, 2 * i, 2 * i + 2);
    buf_putc(&header, '}');
    struct buf b = pack(buf_text(&header), 2 * N);
    struct checkpoint *c;
    assert_int_equal(checkpoint_open_memory(&c, b.data, b.len, "m.safetensors", NULL), SUMI_OK);
    assert_int_equal(checkpoint_count(c), N);
    for (int i = 0; i < N; i++) {
        char name[64];
        snprintf(name, sizeof name, "model.layers.%d.mlp.experts.%d.w", i % 49, i / 49);
        assert_ptr_equal(checkpoint_find(c, name), checkpoint_at(c, (size_t)i));
    }
    checkpoint_close(c);
    buf_reset(&b);
    buf_reset(&header);
}

static void a_folder_is_read_by_its_index(void **state) {
    (void)state;
    scratch_open();
    write_file("m-2.safetensors", "{" U8("c", 3, "[0,3]") "," U8("b", 1, "[3,4]") "}", 4);
    write_file("m-1.safetensors", "{" U8("a", 2, "[0,2]") "}", 2);
    write_file("unused.safetensors", "{" U8("a", 2, "[0,2]") "}", 2);
    scratch_text("model.safetensors.index.json",
                 "{\"metadata\":{\"total_size\":6},\"weight_map\":{\"c\":\"m-2.safetensors\","
                 "\"a\":\"m-1.safetensors\",\"b\":\"m-2.safetensors\"}}");
    struct checkpoint *c;
    assert_int_equal(checkpoint_open(&c, scratch_dir, NULL), SUMI_OK);
    assert_int_equal(checkpoint_count(c), 3);
    assert_string_equal(checkpoint_at(c, 0)->name, "a");
    assert_string_equal(checkpoint_at(c, 1)->name, "c");
    assert_string_equal(checkpoint_at(c, 2)->file, "m-2.safetensors");
    assert_memory_equal(checkpoint_find(c, "b")->data, "\3", 1);
    assert_int_equal(checkpoint_bytes(c), 6);
    checkpoint_close(c);
    scratch_close();
}

static void an_index_that_leads_elsewhere_is_refused(void **state) {
    (void)state;
    static const struct {
        const char *map;
        sumi_status want;
        const char *part;
    } cases[] = {
        {"{\"a\":\"../x.safetensors\"}", SUMI_ERR_FORMAT, "\"a\" is in \"../x.safetensors\""},
        {"{\"a\":\"../x\"}", SUMI_ERR_FORMAT, "\"../x\""},
        {"{\"a\":\"/etc/x.safetensors\"}", SUMI_ERR_FORMAT, "\"/etc/x.safetensors\""},
        {"{\"a\":\"sub/x.safetensors\"}", SUMI_ERR_FORMAT, "\"sub/x.safetensors\""},
        {"{\"a\":\".x.safetensors\"}", SUMI_ERR_FORMAT, "\".x.safetensors\""},
        {"{\"a\":\"config.json\"}", SUMI_ERR_FORMAT, "\"config.json\""},
        {"{\"a\":\"\"}", SUMI_ERR_FORMAT, "\"a\""},
        {"{\"a\":7}", SUMI_ERR_FORMAT, "\"a\""},
        {"{\"a\":\"m-1.safetensors\",\"z\":\"m-9.safetensors\"}", SUMI_ERR_MISSING,
         "m-9.safetensors is not there"},
        {"{\"a\":\"m-2.safetensors\",\"b\":\"m-1.safetensors\"}", SUMI_ERR_FORMAT,
         "\"a\" should be in m-2.safetensors, but it is in m-1.safetensors"},
        {"{\"a\":\"m-1.safetensors\",\"y\":\"m-1.safetensors\"}", SUMI_ERR_FORMAT,
         "\"y\" should be in m-1.safetensors, but it is in none"},
        {"{}", SUMI_ERR_FORMAT, "weight_map"},
        {"[]", SUMI_ERR_FORMAT, "weight_map"},
        {"{\"a\"}", SUMI_ERR_FORMAT, "JSON"},
    };
    scratch_open();
    write_file("m-1.safetensors", "{" U8("a", 2, "[0,2]") "}", 2);
    write_file("m-2.safetensors", "{" U8("b", 2, "[0,2]") "}", 2);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[256];
        snprintf(text, sizeof text, "{\"weight_map\":%s}", cases[i].map);
        scratch_text("model.safetensors.index.json", text);
        assert_open_fails(scratch_dir, cases[i].want, cases[i].part);
    }
    scratch_close();
}

static void a_folder_without_index_is_read_in_order_of_name(void **state) {
    (void)state;
    scratch_open();
    write_file("model-00002-of-00003.safetensors", "{" U8("b", 2, "[0,2]") "}", 2);
    write_file("model-00001-of-00003.safetensors", "{" U8("z", 2, "[0,2]") "}", 2);
    scratch_text("._model.safetensors", "hidden files are no weights");
    scratch_text("config.json", "{}");
    assert_open_fails(scratch_dir, SUMI_ERR_MISSING, "model-00003-of-00003.safetensors");
    write_file("model-00003-of-00003.safetensors", "{" U8("a", 2, "[0,2]") "}", 2);
    struct checkpoint *c;
    assert_int_equal(checkpoint_open(&c, scratch_dir, NULL), SUMI_OK);
    static const char *const order[] = {"z", "b", "a"};
    for (size_t i = 0; i < 3; i++) assert_string_equal(checkpoint_at(c, i)->name, order[i]);
    checkpoint_close(c);
    write_file("other.safetensors", "{" U8("b", 2, "[0,2]") "}", 2);
    assert_open_fails(
        scratch_dir, SUMI_ERR_FORMAT,
        "\"b\" comes twice, in model-00002-of-00003.safetensors and in other.safetensors");
    scratch_close();
}

static void what_is_no_checkpoint_is_named(void **state) {
    (void)state;
    scratch_open();
    assert_open_fails(scratch_dir, SUMI_ERR_MISSING, scratch_dir);
    assert_open_fails(scratch_path("no.safetensors"), SUMI_ERR_IO, "no.safetensors");
    scratch_text("empty.safetensors", "");
    assert_open_fails(scratch_path("empty.safetensors"), SUMI_ERR_FORMAT, "found 0");
    scratch_text("lfs.safetensors", "version https://git-lfs.github.com/spec/v1\noid sha256:00\n");
    assert_open_fails(scratch_path("lfs.safetensors"), SUMI_ERR_FORMAT, "git lfs pull");
    assert_int_equal(mkfifo(scratch_path("pipe.safetensors"), 0600), 0);
    assert_open_fails(scratch_path("pipe.safetensors"), SUMI_ERR_IO, "regular file");
    scratch_close();
}

static void one_file_is_opened_by_its_path(void **state) {
    (void)state;
    scratch_open();
    write_file("blob", "{" U8("a", 2, "[0,2]") "}", 2);
    scratch_link("model.safetensors", "blob");
    static const char *const names[] = {"blob", "model.safetensors"};
    for (size_t i = 0; i < 2; i++) {
        struct checkpoint *c;
        assert_int_equal(checkpoint_open(&c, scratch_path(names[i]), NULL), SUMI_OK);
        assert_string_equal(checkpoint_find(c, "a")->file, names[i]);
        checkpoint_close(c);
    }
    scratch_close();
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    scratch_open();
    write_file("m-1.safetensors", "{" U8("a", 2, "[0,2]") "}", 2);
    write_file("m-2.safetensors", "{" U8("b", 2, "[0,2]") "}", 2);
    for (int with_index = 0; with_index < 2; with_index++) {
        if (with_index)
            scratch_text("model.safetensors.index.json",
                         "{\"weight_map\":{\"a\":\"m-1.safetensors\",\"b\":\"m-2.safetensors\"}}");
        long n = 1;
        for (;; n++) {
            struct checkpoint *c;
            sumi_error err = {0};
            mem_fail_at(n);
            sumi_status status = checkpoint_open(&c, scratch_dir, &err);
            mem_fail_at(0);
            checkpoint_close(c);
            if (status == SUMI_OK) break;
            if (status != SUMI_ERR_MEMORY) fail_msg("allocation %ld: %s", n, err.msg);
            assert_null(c);
        }
        assert_true(n > 10);
    }
    scratch_close();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors_are_views_in_the_order_of_their_data),
        cmocka_unit_test(a_file_of_the_public_writer_is_read),
        cmocka_unit_test(the_types_of_checkpoints_are_known_and_others_refused_by_name),
        cmocka_unit_test(the_header_length_is_checked_before_it_is_used),
        cmocka_unit_test(a_header_over_the_limit_is_not_read),
        cmocka_unit_test(shapes_and_offsets_that_disagree_are_refused_by_name),
        cmocka_unit_test(a_malformed_header_is_refused_with_the_place),
        cmocka_unit_test(a_name_may_have_512_bytes),
        cmocka_unit_test(a_cut_file_says_how_long_it_should_be),
        cmocka_unit_test(thirty_six_thousand_tensors_are_found_by_name),
        cmocka_unit_test(a_folder_is_read_by_its_index),
        cmocka_unit_test(an_index_that_leads_elsewhere_is_refused),
        cmocka_unit_test(a_folder_without_index_is_read_in_order_of_name),
        cmocka_unit_test(what_is_no_checkpoint_is_named),
        cmocka_unit_test(one_file_is_opened_by_its_path),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
