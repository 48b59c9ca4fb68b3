/* file/: GGUF files, good ones, split ones and hostile ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/mem.h"
#include "file/checkpoint.h"
#include "file/gguf.h"
#include "scratch.h"

static void put(struct buf *b, uint64_t v, int bytes) {
    for (int i = 0; i < bytes; i++) buf_putc(b, (char)(v >> 8 * i));
}

static void put_string(struct buf *b, const char *s) {
    put(b, strlen(s), 8);
    buf_puts(b, s);
}

static struct buf head(uint64_t n_tensor, uint64_t n_key) {
    struct buf b = {0};
    buf_puts(&b, "GGUF");
    put(&b, 3, 4);
    put(&b, n_tensor, 8);
    put(&b, n_key, 8);
    return b;
}

static void put_key(struct buf *b, const char *key, enum gguf_type type) {
    put_string(b, key);
    put(b, type, 4);
}

static void put_array(struct buf *b, const char *key, enum gguf_type type, uint64_t n) {
    put_key(b, key, GGUF_ARRAY);
    put(b, type, 4);
    put(b, n, 8);
}

/* ne[0..n) is innermost first, as in the file. */
static void put_info(struct buf *b, const char *name, uint32_t n, const uint64_t *ne, uint32_t type,
                     uint64_t offset) {
    put_string(b, name);
    put(b, n, 4);
    for (uint32_t i = 0; i < n; i++) put(b, ne[i], 8);
    put(b, type, 4);
    put(b, offset, 8);
}

/* `bytes` bytes 0, 1, 2, ... at the next multiple of the alignment. */
static void put_data(struct buf *b, size_t align, size_t bytes) {
    while (b->len % align) buf_putc(b, 0);
    for (size_t i = 0; i < bytes; i++) buf_putc(b, (char)i);
    assert_false(b->failed);
}

static void vector(struct buf *b, const char *name, uint64_t n, uint32_t type, uint64_t offset) {
    put_info(b, name, 1, &n, type, offset);
}

/* Opens an exact copy, so that the sanitizer sees a read behind the end. */
static sumi_status open_bytes(struct checkpoint **c, const struct buf *b, size_t n, char **copy,
                              sumi_error *err) {
    *copy = mem_alloc(n);
    assert_non_null(*copy);
    memcpy(*copy, b->data, n);
    return checkpoint_open_memory(c, *copy, n, "m.gguf", err);
}

/* Takes b. */
static void assert_refused(struct buf *b, sumi_status want, const char *part) {
    struct checkpoint *c;
    char *copy;
    sumi_error err = {0};
    sumi_status status = open_bytes(&c, b, b->len, &copy, &err);
    if (status != want || !strstr(err.msg, part) || !strstr(err.msg, "m.gguf"))
        fail_msg("status %d, message \"%s\", expected status %d and \"%s\"", (int)status, err.msg,
                 (int)want, part);
    assert_null(c);
    mem_free(copy);
    buf_reset(b);
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

/* tests/golden/small.gguf: see tools/golden/make_containers.py. */
static void a_file_of_the_public_writer_is_read(void **state) {
    (void)state;
    struct checkpoint *c;
    int64_t i = 0;
    double d = 0;
    bool flag = false;
    const char *s;
    size_t n, at = 0;
    assert_int_equal(checkpoint_open(&c, "tests/golden/small.gguf", NULL), SUMI_OK);
    const struct gguf *g = checkpoint_gguf(c);
    assert_int_equal(gguf_count(g), 8);
    assert_string_equal(gguf_at(g, 0)->key, "general.architecture");
    assert_int_equal(gguf_get_string(g, "general.architecture", true, &s, &n, NULL), SUMI_OK);
    assert_int_equal(n, 3);
    assert_memory_equal(s, "toy", 3);
    assert_int_equal(gguf_get_i64(g, "toy.block_count", true, &i, NULL), SUMI_OK);
    assert_int_equal(i, 3);
    assert_int_equal(gguf_get_i64(g, "toy.offset", true, &i, NULL), SUMI_OK);
    assert_int_equal(i, -((int64_t)1 << 40));
    assert_int_equal(gguf_get_f64(g, "toy.eps", true, &d, NULL), SUMI_OK);
    assert_true(d == 0.25);
    assert_int_equal(gguf_get_bool(g, "toy.norm", true, &flag, NULL), SUMI_OK);
    assert_true(flag);
    const struct gguf_value *v = gguf_find(g, "toy.pattern");
    assert_true(v->is_array && v->type == GGUF_BOOL && v->n == 3);
    for (size_t k = 0; k < 3; k++) {
        assert_true(gguf_value_i64(v, k, &i));
        assert_int_equal(i, k != 1);
    }
    assert_false(gguf_value_i64(v, 3, &i));
    v = gguf_find(g, "tokenizer.ggml.tokens");
    static const char *const tokens[] = {"a", "", "\xC3\xA9\xE4\xB8\xAD"};
    for (size_t k = 0; k < 3; k++) {
        assert_true(gguf_next_string(v, &at, &s, &n));
        assert_int_equal(n, strlen(tokens[k]));
        assert_memory_equal(s, tokens[k], n);
    }
    assert_false(gguf_next_string(v, &at, &s, &n));

    assert_int_equal(checkpoint_count(c), 3);
    assert_int_equal(checkpoint_bytes(c), 20 + 12 + 72);
    const struct tensor *t = checkpoint_find(c, "m.weight");
    char text[64];
    assert_string_equal(tensor_describe(t, text, sizeof text), "F16 [2, 3]");
    assert_memory_equal(t->data, "\x00\x00\x00\x3C\x00\x40", 6); /* 0, 1, 2 */
    t = checkpoint_find(c, "v.weight");
    assert_memory_equal(t->data, "\x00\x00\x00\x00\x00\x00\x80\x3F", 8); /* 0, 1 */
    t = checkpoint_find(c, "q.weight");
    assert_string_equal(tensor_describe(t, text, sizeof text), "NVFP4 [2, 64]");
    assert_int_equal(t->bytes, 72);
    assert_memory_equal(t->data, "\0\1\2\3", 4);
    checkpoint_close(c);
}

static void values_of_every_type_are_read(void **state) {
    (void)state;
    static const struct {
        enum gguf_type type;
        int bytes;
        uint64_t bits;
        bool whole; /* readable as an integer */
        int64_t i;
        bool number; /* readable as a float */
        double f;
    } cases[] = {
        {GGUF_U8, 1, 0xFF, true, 255, true, 255},
        {GGUF_I8, 1, 0xFF, true, -1, true, -1},
        {GGUF_U16, 2, 0xFFFE, true, 65534, true, 65534},
        {GGUF_I16, 2, 0xFFFE, true, -2, true, -2},
        {GGUF_U32, 4, 0xFFFFFFFF, true, 4294967295, true, 4294967295.0},
        {GGUF_I32, 4, 0xFFFFFFFF, true, -1, true, -1},
        {GGUF_F32, 4, 0x3FC00000, false, 0, true, 1.5},
        {GGUF_BOOL, 1, 1, true, 1, false, 0},
        {GGUF_U64, 8, 0x7FFFFFFFFFFFFFFF, true, INT64_MAX, true, 0x1p63},
        {GGUF_U64, 8, 0x8000000000000000, false, 0, true, 0x1p63},
        {GGUF_I64, 8, UINT64_MAX - 6, true, -7, true, -7},
        {GGUF_F64, 8, 0xBFF4000000000000, false, 0, true, -1.25},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct buf b = head(0, 2);
        put_key(&b, "scalar", cases[k].type);
        put(&b, cases[k].bits, cases[k].bytes);
        put_array(&b, "array", cases[k].type, 2);
        put(&b, 0, cases[k].bytes);
        put(&b, cases[k].bits, cases[k].bytes);
        struct checkpoint *c;
        int64_t i = 0;
        double f = 0;
        assert_int_equal(checkpoint_open_memory(&c, b.data, b.len, "m.gguf", NULL), SUMI_OK);
        const struct gguf_value *scalar = gguf_find(checkpoint_gguf(c), "scalar");
        const struct gguf_value *array = gguf_find(checkpoint_gguf(c), "array");
        assert_false(scalar->is_array);
        assert_true(array->is_array && array->n == 2);
        for (int which = 0; which < 2; which++) {
            assert_int_equal(gguf_value_i64(which ? array : scalar, (size_t)which, &i),
                             cases[k].whole);
            if (cases[k].whole) assert_true(i == cases[k].i);
            assert_int_equal(gguf_value_f64(which ? array : scalar, (size_t)which, &f),
                             cases[k].number);
            if (cases[k].number) assert_true(f == cases[k].f);
        }
        checkpoint_close(c);
        buf_reset(&b);
    }
}

static void typed_reads_name_the_key_and_both_types(void **state) {
    (void)state;
    struct buf b = head(0, 5);
    put_key(&b, "text", GGUF_STRING);
    put_string(&b, "x");
    put_key(&b, "flag", GGUF_BOOL);
    put(&b, 1, 1);
    put_array(&b, "list", GGUF_U32, 1);
    put(&b, 9, 4);
    put_key(&b, "big", GGUF_U64);
    put(&b, UINT64_MAX, 8);
    put_array(&b, "empty", GGUF_STRING, 0);
    struct checkpoint *c;
    assert_int_equal(checkpoint_open_memory(&c, b.data, b.len, "m.gguf", NULL), SUMI_OK);
    const struct gguf *g = checkpoint_gguf(c);
    sumi_error err = {0};
    int64_t i = 42;
    double d = 42;
    bool flag = true;
    const char *s = "old";
    size_t n = 3, at = 0;
    assert_int_equal(gguf_get_i64(g, "absent", false, &i, &err), SUMI_OK);
    assert_int_equal(gguf_get_f64(g, "absent", false, &d, &err), SUMI_OK);
    assert_int_equal(gguf_get_bool(g, "absent", false, &flag, &err), SUMI_OK);
    assert_int_equal(gguf_get_string(g, "absent", false, &s, &n, &err), SUMI_OK);
    assert_true(i == 42 && d == 42 && flag && n == 3);
    assert_string_equal(s, "old");
    assert_int_equal(gguf_get_i64(g, "absent", true, &i, &err), SUMI_ERR_MISSING);
    assert_string_equal(err.param, "absent");
    assert_non_null(strstr(err.msg, "absent"));
    assert_int_equal(gguf_get_i64(g, "text", true, &i, &err), SUMI_ERR_FORMAT);
    assert_non_null(strstr(err.msg, "\"text\": expected an integer, found type string"));
    assert_int_equal(gguf_get_i64(g, "flag", true, &i, &err), SUMI_ERR_FORMAT);
    assert_int_equal(gguf_get_i64(g, "list", true, &i, &err), SUMI_ERR_FORMAT);
    assert_non_null(strstr(err.msg, "an array of 1 values of type u32"));
    assert_int_equal(gguf_get_i64(g, "big", true, &i, &err), SUMI_ERR_FORMAT);
    assert_non_null(strstr(err.msg, "18446744073709551615"));
    assert_int_equal(gguf_get_f64(g, "text", true, &d, &err), SUMI_ERR_FORMAT);
    assert_int_equal(gguf_get_bool(g, "big", true, &flag, &err), SUMI_ERR_FORMAT);
    assert_non_null(strstr(err.msg, "\"big\": expected a bool, found type u64"));
    assert_int_equal(gguf_get_string(g, "flag", true, &s, &n, &err), SUMI_ERR_FORMAT);
    assert_int_equal(gguf_get_string(g, "empty", true, &s, &n, &err), SUMI_ERR_FORMAT);
    assert_false(gguf_next_string(gguf_find(g, "empty"), &at, &s, &n));
    assert_false(gguf_next_string(gguf_find(g, "list"), &at, &s, &n));
    assert_true(i == 42);
    checkpoint_close(c);
    buf_reset(&b);
}

/* Bytes of one block, and values in it, by the definition of the format. */
static void every_supported_type_has_its_size(void **state) {
    (void)state;
    static const struct {
        uint32_t id;
        enum dtype dtype;
        size_t values, bytes;
    } types[] = {
        {0, DT_F32, 1, 4},       {1, DT_F16, 1, 2},       {2, DT_Q4_0, 32, 18},
        {3, DT_Q4_1, 32, 20},    {8, DT_Q8_0, 32, 34},    {12, DT_Q4_K, 256, 144},
        {13, DT_Q5_K, 256, 176}, {14, DT_Q6_K, 256, 210}, {24, DT_I8, 1, 1},
        {25, DT_I16, 1, 2},      {26, DT_I32, 1, 4},      {27, DT_I64, 1, 8},
        {28, DT_F64, 1, 8},      {30, DT_BF16, 1, 2},     {40, DT_NVFP4, 64, 36},
    };
    for (size_t k = 0; k < sizeof types / sizeof *types; k++) {
        uint64_t ne[4] = {3 * types[k].values, 2, 5, 7};
        struct buf b = head(2, 0);
        put_info(&b, "scalar", 0, NULL, 0, 0);
        put_info(&b, "t", 4, ne, types[k].id, 32);
        put_data(&b, 32, 32 + 3 * types[k].bytes * 70);
        struct checkpoint *c;
        char *copy;
        sumi_error err = {0};
        if (open_bytes(&c, &b, b.len, &copy, &err) != SUMI_OK) fail_msg("%s", err.msg);
        const struct tensor *t = checkpoint_at(c, 1);
        assert_int_equal(t->dtype, types[k].dtype);
        assert_int_equal(t->bytes, 3 * types[k].bytes * 70);
        assert_int_equal(t->dim[0], 7);
        assert_int_equal(t->dim[1], 5);
        assert_int_equal(t->dim[2], 2);
        assert_int_equal(t->dim[3], 3 * types[k].values);
        assert_int_equal(*(const uint8_t *)t->data, 32);
        assert_int_equal(checkpoint_at(c, 0)->n_dim, 0);
        checkpoint_close(c);
        mem_free(copy);
        buf_reset(&b);
        if (types[k].values == 1) continue;
        b = head(1, 0);
        vector(&b, "tn", types[k].values + 1, types[k].id, 0);
        put_data(&b, 32, 2 * types[k].bytes);
        assert_refused(&b, SUMI_ERR_SHAPE, "tensor \"tn\" has rows of");
    }
}

static void other_types_are_refused_by_name(void **state) {
    (void)state;
    static const struct {
        uint32_t id;
        const char *part;
    } types[] = {{6, "\"tn\" has the type Q5_0 (id 6)"},
                 {10, "Q2_K"},
                 {15, "Q8_K"},
                 {16, "IQ2_XXS"},
                 {23, "IQ4_XS"},
                 {29, "IQ1_M"},
                 {35, "TQ2_0"},
                 {39, "MXFP4"},
                 {42, "unknown (id 42)"},
                 {0xFFFFFFFF, "4294967295"}};
    for (size_t k = 0; k < sizeof types / sizeof *types; k++) {
        struct buf b = head(1, 0);
        vector(&b, "tn", 256, types[k].id, 0);
        put_data(&b, 32, 256);
        assert_refused(&b, SUMI_ERR_UNSUPPORTED, types[k].part);
    }
}

static void versions_and_byte_orders_are_told_apart(void **state) {
    (void)state;
    static const struct {
        uint32_t version;
        const char *part;
    } cases[] = {{0, "version 0"},
                 {1, "version 1, expected 3: convert"},
                 {2, "version 2, expected 3: convert"},
                 {4, "version 4, expected 3"},
                 {0x03000000, "big-endian"}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct buf b = head(0, 0);
        for (int i = 0; i < 4; i++) b.data[4 + i] = (char)(cases[k].version >> 8 * i);
        assert_refused(&b, SUMI_ERR_UNSUPPORTED, cases[k].part);
    }
    struct buf b = head(0, 0);
    memcpy(b.data, "PK\3\4", 4);
    assert_refused(&b, SUMI_ERR_FORMAT, "begins with 50 4b 03 04");
}

static void counts_and_lengths_that_no_file_can_hold_are_refused(void **state) {
    (void)state;
    struct buf b = head((uint64_t)1 << 61, 0);
    assert_refused(&b, SUMI_ERR_FORMAT, "tensor count is 2305843009213693952");
    b = head(0, (uint64_t)1 << 61);
    assert_refused(&b, SUMI_ERR_FORMAT, "key count is 2305843009213693952");
    b = head(0, 1);
    put(&b, (uint64_t)1 << 63, 8);
    put_data(&b, 64, 0);
    assert_refused(&b, SUMI_ERR_FORMAT, "9223372036854775808");
    b = head(0, 1);
    put_key(&b, "kn", GGUF_STRING);
    put(&b, UINT64_MAX, 8);
    assert_refused(&b, SUMI_ERR_FORMAT, "\"kn\" at byte 46 takes 18446744073709551615 bytes");
    static const struct {
        enum gguf_type type;
        uint64_t n;
    } arrays[] = {{GGUF_U32, (uint64_t)1 << 62}, /* times 4 it wraps to 0 */
                  {GGUF_U64, ((uint64_t)1 << 61) + 1},
                  {GGUF_U8, 33},
                  {GGUF_STRING, 5}, /* 5 * 8 bytes, of 32 */
                  {GGUF_STRING, UINT64_MAX}};
    for (size_t k = 0; k < sizeof arrays / sizeof *arrays; k++) {
        b = head(0, 1);
        put_array(&b, "kn", arrays[k].type, arrays[k].n);
        for (int i = 0; i < 32; i++) buf_putc(&b, 0);
        assert_refused(&b, SUMI_ERR_FORMAT, "key \"kn\" has ");
    }
    b = head(0, 1);
    put_array(&b, "kn", GGUF_STRING, 2);
    put_string(&b, "good");
    put(&b, 9, 8);
    assert_refused(&b, SUMI_ERR_FORMAT, "\"kn\"");
    b = head(0, 1);
    put_array(&b, "kn", GGUF_ARRAY, 1);
    put(&b, GGUF_U8, 4);
    put(&b, 0, 8);
    assert_refused(&b, SUMI_ERR_UNSUPPORTED, "\"kn\" is an array of arrays");
    b = head(0, 1);
    put_key(&b, "kn", 13);
    put(&b, 0, 8);
    assert_refused(&b, SUMI_ERR_UNSUPPORTED, "\"kn\" has an unknown value type (13)");
}

static void counts_over_the_limits_are_refused_even_if_the_file_could_hold_them(void **state) {
    (void)state;
    struct buf b = head(0, (1 << 16) + 1);
    put_data(&b, 1, 14 * ((1 << 16) + 1));
    assert_refused(&b, SUMI_ERR_LIMIT, "key count is 65537, over the limit of 65536");
    b = head((1 << 20) + 1, 0);
    put_data(&b, 1, 25 * ((1 << 20) + 1));
    assert_refused(&b, SUMI_ERR_LIMIT, "tensor count is 1048577, over the limit of 1048576");
}

static void sizes_that_wrap_are_refused_by_name(void **state) {
    (void)state;
    static const uint64_t two63 = (uint64_t)1 << 63, two42 = (uint64_t)1 << 42;
    const struct {
        uint32_t n, type;
        uint64_t ne[5];
        sumi_status want;
    } cases[] = {
        {4, 0, {two63 - 1, 2, 1, 1}, SUMI_ERR_SHAPE},
        {4, 0, {two42 + 1, two42, 2, 1}, SUMI_ERR_SHAPE},
        {4, 24, {((uint64_t)1 << 32) + 1, ((uint64_t)1 << 32) - 1, 1, 1}, SUMI_ERR_SHAPE},
        {2, 0, {(uint64_t)1 << 31, (uint64_t)1 << 31}, SUMI_ERR_SHAPE},
        {2, 24, {(uint64_t)1 << 31, (uint64_t)1 << 31}, SUMI_ERR_FORMAT}, /* merely not there */
        {1, 8, {two63 - 32}, SUMI_ERR_SHAPE},
        {1, 0, {0}, SUMI_ERR_SHAPE},
        {2, 0, {4, 0}, SUMI_ERR_SHAPE},
        {1, 0, {UINT64_MAX}, SUMI_ERR_SHAPE}, /* -1 */
        {1, 0, {two63}, SUMI_ERR_SHAPE},
        {5, 0, {1, 1, 1, 1, 1}, SUMI_ERR_UNSUPPORTED},
        {0xFFFFFFFF, 0, {0}, SUMI_ERR_UNSUPPORTED},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct buf b = head(1, 0);
        put_string(&b, "tn");
        put(&b, cases[k].n, 4);
        for (uint32_t i = 0; i < cases[k].n && i < 5; i++) put(&b, cases[k].ne[i], 8);
        put(&b, cases[k].type, 4);
        put(&b, 0, 8);
        put_data(&b, 32, 64);
        assert_refused(&b, cases[k].want, "tensor \"tn\"");
    }
}

static void offsets_stay_inside_the_file(void **state) {
    (void)state;
    struct buf b = head(1, 0);
    vector(&b, "tn", 4, 0, 64);
    put_data(&b, 32, 64);
    assert_refused(&b, SUMI_ERR_FORMAT, "expected 144 bytes, where tensor \"tn\" ends, found 128");
    static const uint64_t far[] = {UINT64_MAX - 31, (uint64_t)1 << 63, ((uint64_t)1 << 63) - 32};
    for (size_t k = 0; k < 3; k++) {
        b = head(1, 0);
        vector(&b, "tn", 4, 0, far[k]);
        put_data(&b, 32, 64);
        assert_refused(&b, SUMI_ERR_FORMAT, "tensor \"tn\"");
    }
    b = head(1, 0);
    vector(&b, "tn", 4, 0, 16);
    put_data(&b, 32, 64);
    assert_refused(&b, SUMI_ERR_FORMAT, "\"tn\" has the offset 16, expected a multiple of 32");
    b = head(2, 0);
    vector(&b, "ta", 16, 0, 0);
    vector(&b, "tb", 4, 0, 32);
    put_data(&b, 32, 64);
    assert_refused(&b, SUMI_ERR_FORMAT, "\"ta\" and \"tb\" overlap");
    b = head(2, 0);
    vector(&b, "tb", 4, 0, 0);
    vector(&b, "ta", 4, 0, 0);
    put_data(&b, 32, 64);
    assert_refused(&b, SUMI_ERR_FORMAT, "overlap");
}

static void names_are_distinct_and_printable(void **state) {
    (void)state;
    struct buf b = head(2, 0);
    vector(&b, "tn", 4, 0, 0);
    vector(&b, "tn", 4, 0, 32);
    put_data(&b, 32, 64);
    assert_refused(&b, SUMI_ERR_FORMAT, "\"tn\" comes twice");
    b = head(0, 2);
    put_key(&b, "kn", GGUF_U8);
    put(&b, 1, 1);
    put_key(&b, "kn", GGUF_U8);
    put(&b, 1, 1);
    assert_refused(&b, SUMI_ERR_FORMAT, "key \"kn\" comes twice");
    static const char *const bad[] = {"", "a\nb", "\xFF"};
    for (size_t k = 0; k < 3; k++) {
        b = head(1, 0);
        vector(&b, bad[k], 4, 0, 0);
        put_data(&b, 32, 16);
        assert_refused(&b, SUMI_ERR_FORMAT, "tensor name");
        b = head(0, 1);
        put_key(&b, bad[k], GGUF_U8);
        put(&b, 1, 1);
        assert_refused(&b, SUMI_ERR_FORMAT, "metadata key");
    }
    b = head(0, 1);
    put(&b, 3, 8);
    buf_put(&b, "a\0b", 3);
    put(&b, GGUF_U8, 4);
    put(&b, 1, 1);
    assert_refused(&b, SUMI_ERR_FORMAT, "metadata key");
}

static void the_alignment_is_a_small_power_of_two(void **state) {
    (void)state;
    static const struct {
        enum gguf_type type;
        uint64_t bits;
        const char *part;
    } cases[] = {{GGUF_U32, 0, "general.alignment"},
                 {GGUF_U32, 3, "general.alignment"},
                 {GGUF_U32, (uint64_t)1 << 31, "(2147483648)"},
                 {GGUF_I32, 32, "\"general.alignment\": expected type u32, found i32"},
                 {GGUF_U64, 32, "found u64"},
                 {GGUF_STRING, 4, "found string"}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct buf b = head(1, 1);
        put_key(&b, "general.alignment", cases[k].type);
        if (cases[k].type == GGUF_STRING) put_string(&b, "32");
        else put(&b, cases[k].bits, cases[k].type == GGUF_U64 ? 8 : 4);
        vector(&b, "tn", 4, 0, 0);
        put_data(&b, 32, 16);
        assert_refused(&b, SUMI_ERR_FORMAT, cases[k].part);
    }
    static const uint32_t good[] = {8, 64, 4096};
    for (size_t k = 0; k < 3; k++) {
        struct buf b = head(2, 1);
        put_key(&b, "general.alignment", GGUF_U32);
        put(&b, good[k], 4);
        vector(&b, "a", 4, 24, 0);
        vector(&b, "b", 4, 24, good[k]);
        put_data(&b, good[k], good[k] + 4);
        struct checkpoint *c;
        assert_int_equal(checkpoint_open_memory(&c, b.data, b.len, "m.gguf", NULL), SUMI_OK);
        const uint8_t *a = checkpoint_find(c, "a")->data, *data = checkpoint_find(c, "b")->data;
        assert_int_equal(data - a, good[k]);
        assert_int_equal((size_t)(a - (const uint8_t *)b.data) % good[k], 0);
        checkpoint_close(c);
        buf_reset(&b);
    }
}

static void a_file_cut_anywhere_is_refused(void **state) {
    (void)state;
    struct buf b = head(2, 3);
    put_key(&b, "text", GGUF_STRING);
    put_string(&b, "value");
    put_array(&b, "texts", GGUF_STRING, 2);
    put_string(&b, "x");
    put_string(&b, "");
    put_array(&b, "numbers", GGUF_I16, 3);
    put(&b, 0, 6);
    vector(&b, "ta", 3, 0, 0);
    vector(&b, "tb", 4, 0, 32);
    put_data(&b, 32, 48);
    char part[96];
    for (size_t n = 0; n < b.len; n++) {
        struct checkpoint *c;
        char *copy;
        sumi_error err = {0};
        assert_int_equal(open_bytes(&c, &b, n, &copy, &err), SUMI_ERR_FORMAT);
        assert_null(c);
        snprintf(part, sizeof part, "expected %zu bytes, where tensor \"tb\" ends, found %zu",
                 b.len, n);
        if (n > b.len - 48 && !strstr(err.msg, part)) fail_msg("%s", err.msg);
        mem_free(copy);
    }
    struct checkpoint *c;
    put_data(&b, 32, 0); /* padding behind the last tensor */
    assert_int_equal(checkpoint_open_memory(&c, b.data, b.len, "m.gguf", NULL), SUMI_OK);
    assert_int_equal(checkpoint_count(c), 2);
    checkpoint_close(c);
    buf_reset(&b);
}

/* Part `no` (from 0) of `count`, with one tensor; as the public splitter writes them. */
static void write_part(const char *file, int no, int count, const char *tensor, size_t cut) {
    struct buf b = head(1, no == 0 ? 4 : 3);
    put_key(&b, "split.no", GGUF_U16);
    put(&b, (uint64_t)no, 2);
    put_key(&b, "split.count", GGUF_U16);
    put(&b, (uint64_t)count, 2);
    put_key(&b, "split.tensors.count", GGUF_I32);
    put(&b, 3, 4);
    if (no == 0) {
        put_key(&b, "general.architecture", GGUF_STRING);
        put_string(&b, "toy");
    }
    vector(&b, tensor, 4, 24, 0);
    put_data(&b, 32, 4);
    scratch_write(file, b.data, b.len - cut);
    buf_reset(&b);
}

static void split_files_are_one_checkpoint(void **state) {
    (void)state;
    static const char *const parts[] = {"m-00001-of-00003.gguf", "m-00002-of-00003.gguf",
                                        "m-00003-of-00003.gguf"};
    static const char *const tensors[] = {"z", "y", "x"};
    scratch_open();
    write_part(parts[0], 0, 3, "z", 0);
    write_part(parts[1], 1, 3, "y", 0);
    assert_open_fails(scratch_path(parts[0]), SUMI_ERR_MISSING, "m-00003-of-00003.gguf");
    assert_open_fails(scratch_dir, SUMI_ERR_MISSING, "m-00003-of-00003.gguf");
    write_part(parts[2], 2, 3, "x", 0);
    for (int k = 0; k < 4; k++) {
        struct checkpoint *c;
        sumi_error err = {0};
        if (checkpoint_open(&c, k < 3 ? scratch_path(parts[k]) : scratch_dir, &err) != SUMI_OK)
            fail_msg("%s", err.msg);
        assert_int_equal(checkpoint_count(c), 3);
        for (size_t i = 0; i < 3; i++) {
            assert_string_equal(checkpoint_at(c, i)->name, tensors[i]);
            assert_string_equal(checkpoint_at(c, i)->file, parts[i]);
        }
        assert_non_null(gguf_find(checkpoint_gguf(c), "general.architecture"));
        checkpoint_close(c);
    }
    write_part(parts[1], 1, 3, "y", 2);
    assert_open_fails(scratch_path(parts[0]), SUMI_ERR_FORMAT,
                      "part 2 of 3: m-00002-of-00003.gguf");
    write_part(parts[1], 2, 3, "y", 0);
    assert_open_fails(scratch_path(parts[0]), SUMI_ERR_FORMAT,
                      "named part 2 of 3, but it says "
                      "split.no 2");
    write_part(parts[1], 1, 3, "z", 0);
    assert_open_fails(scratch_path(parts[0]), SUMI_ERR_FORMAT, "\"z\" comes twice");
    write_part("alone.gguf", 1, 3, "y", 0);
    assert_open_fails(scratch_path("alone.gguf"), SUMI_ERR_UNSUPPORTED, "-00002-of-00003.gguf");
    write_part("m-00001-of-00002.gguf", 0, 2, "y", 0);
    write_part("m-00002-of-00002.gguf", 1, 2, "x", 0);
    assert_open_fails(scratch_path("m-00001-of-00002.gguf"), SUMI_ERR_FORMAT,
                      "split.tensors.count is 3, but the 2 parts hold 2 tensors");
    scratch_close();
}

static void a_folder_may_hold_one_gguf_file(void **state) {
    (void)state;
    struct checkpoint *c;
    scratch_open();
    write_part("one.gguf", 0, 1, "a", 0);
    write_part("mmproj-one.gguf", 0, 1, "b", 0);
    scratch_text("config.json", "{}");
    assert_int_equal(checkpoint_open(&c, scratch_dir, NULL), SUMI_OK);
    assert_string_equal(checkpoint_at(c, 0)->file, "one.gguf");
    checkpoint_close(c);
    write_part("Two.GGUF", 0, 1, "a", 0);
    assert_open_fails(scratch_dir, SUMI_ERR_ARG, "Two.GGUF, one.gguf");
    scratch_close();
}

static void a_file_without_a_suffix_is_known_by_its_first_bytes(void **state) {
    (void)state;
    struct checkpoint *c;
    scratch_open();
    write_part("blob", 0, 1, "a", 0);
    assert_int_equal(checkpoint_open(&c, scratch_path("blob"), NULL), SUMI_OK);
    assert_non_null(checkpoint_gguf(c));
    checkpoint_close(c);
    scratch_close();
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    scratch_open();
    write_part("m-00001-of-00003.gguf", 0, 3, "a", 0);
    write_part("m-00002-of-00003.gguf", 1, 3, "b", 0);
    write_part("m-00003-of-00003.gguf", 2, 3, "c", 0);
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
    assert_true(n > 30);
    scratch_close();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_of_the_public_writer_is_read),
        cmocka_unit_test(values_of_every_type_are_read),
        cmocka_unit_test(typed_reads_name_the_key_and_both_types),
        cmocka_unit_test(every_supported_type_has_its_size),
        cmocka_unit_test(other_types_are_refused_by_name),
        cmocka_unit_test(versions_and_byte_orders_are_told_apart),
        cmocka_unit_test(counts_and_lengths_that_no_file_can_hold_are_refused),
        cmocka_unit_test(counts_over_the_limits_are_refused_even_if_the_file_could_hold_them),
        cmocka_unit_test(sizes_that_wrap_are_refused_by_name),
        cmocka_unit_test(offsets_stay_inside_the_file),
        cmocka_unit_test(names_are_distinct_and_printable),
        cmocka_unit_test(the_alignment_is_a_small_power_of_two),
        cmocka_unit_test(a_file_cut_anywhere_is_refused),
        cmocka_unit_test(split_files_are_one_checkpoint),
        cmocka_unit_test(a_folder_may_hold_one_gguf_file),
        cmocka_unit_test(a_file_without_a_suffix_is_known_by_its_first_bytes),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
