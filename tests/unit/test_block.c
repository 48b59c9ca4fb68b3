/* file/block: stored number formats against gguf-py, torch and numbers worked out by hand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/mem.h"
#include "file/block.h"
#include "file/le.h"

/* A file of tools/golden/make_blocks.py. */
struct golden {
    char *text; /* owned */
    size_t n, bytes;
    const uint8_t *stored, *values;
};

static struct golden golden_read(const char *name) {
    struct golden g = {0};
    char path[128];
    size_t size;
    snprintf(path, sizeof path, "tests/golden/blocks/%s.bin", name);
    sumi_error err = {0};
    if (file_read(path, 1 << 20, &g.text, &size, &err) != SUMI_OK) fail_msg("%s", err.msg);
    const uint8_t *p = (const uint8_t *)g.text;
    assert_true(size > 8);
    g.n = le32(p);
    g.bytes = le32(p + 4);
    assert_int_equal(size, 8 + g.bytes + 4 * g.n);
    g.stored = p + 8;
    g.values = g.stored + g.bytes;
    return g;
}

static void assert_same_bits(const char *name, size_t i, float got, float want) {
    if (isnan(want) && isnan(got)) return;
    if (memcmp(&got, &want, 4) != 0)
        fail_msg("%s: value %zu is %.9g, expected %.9g", name, i, (double)got, (double)want);
}

static void every_format_decodes_to_the_bits_of_the_public_implementations(void **state) {
    (void)state;
    static const enum dtype types[] = {DT_F32,  DT_F16,  DT_BF16, DT_E4M3, DT_Q4_0, DT_Q4_1,
                                       DT_Q8_0, DT_Q4_K, DT_Q5_K, DT_Q6_K, DT_NVFP4};
    for (size_t k = 0; k < sizeof types / sizeof *types; k++) {
        const struct dtype_info *d = dtype_info(types[k]);
        struct golden g = golden_read(d->name);
        assert_int_equal(g.bytes, g.n / (size_t)d->block * (size_t)d->bytes);
        float *y = mem_zero(g.n + 1, sizeof *y);
        uint8_t *odd = mem_zero(g.bytes + 1, 1);
        assert_non_null(y);
        assert_non_null(odd);
        y[g.n] = 77;
        memcpy(odd + 1, g.stored, g.bytes); /* an address that suits no type */
        block_decode(types[k], odd + 1, g.n, y);
        for (size_t i = 0; i < g.n; i++)
            assert_same_bits(d->name, i, y[i], le_f32(g.values + 4 * i));
        assert_true(y[g.n] == 77);
        mem_free(odd);
        mem_free(y);
        mem_free(g.text);
    }
}

static void block_scales_decode_to_the_bits_of_gguf_py(void **state) {
    (void)state;
    struct golden g = golden_read("UE4M3");
    for (size_t i = 0; i < g.n; i++)
        assert_same_bits("UE4M3", i, ue4m3_to_f32(g.stored[i]), le_f32(g.values + 4 * i));
    mem_free(g.text);
}

static void eight_bit_floats_follow_their_definition(void **state) {
    (void)state;
    assert_true(e4m3_to_f32(0x38) == 1.0f);         /* 2^(7-7) */
    assert_true(e4m3_to_f32(0xB9) == -1.125f);      /* -(1 + 1/8) */
    assert_true(e4m3_to_f32(0x01) == 0.001953125f); /* 2^-9 */
    assert_true(e4m3_to_f32(0x7E) == 448.0f);
    assert_true(isnan(e4m3_to_f32(0x7F)) && isnan(e4m3_to_f32(0xFF)));
    assert_true(ue4m3_to_f32(0x7F) == 0 && ue4m3_to_f32(0xFF) == 0);
    assert_true(ue4m3_to_f32(0xC0) == 2.0f); /* bit 7 means nothing */
}

/* One block in both layouts: codes 0..15 at scale 1, sixteen codes 2 at scale 2, codes 1 and 9 in
 * turn at scale 1/2, eight codes 7 and eight 15 at scale 448. */
static const uint8_t modelopt_weight[32] = {
    0x10, 0x32, 0x54, 0x76, 0x98, 0xBA, 0xDC, 0xFE, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22,
    0x91, 0x91, 0x91, 0x91, 0x91, 0x91, 0x91, 0x91, 0x77, 0x77, 0x77, 0x77, 0xFF, 0xFF, 0xFF, 0xFF};
static const uint8_t modelopt_scale[4] = {0x38, 0x40, 0x30, 0x7E};
static const uint8_t gguf_block[36] = {0x38, 0x40, 0x30, 0x7E, 0x80, 0x91, 0xA2, 0xB3, 0xC4,
                                       0xD5, 0xE6, 0xF7, 0x22, 0x22, 0x22, 0x22, 0x22, 0x22,
                                       0x22, 0x22, 0x11, 0x99, 0x11, 0x99, 0x11, 0x99, 0x11,
                                       0x99, 0xF7, 0xF7, 0xF7, 0xF7, 0xF7, 0xF7, 0xF7, 0xF7};

static void an_nvfp4_block_decodes_as_worked_out_by_hand(void **state) {
    (void)state;
    static const float first[16] = {0, .5f,  1,  1.5f,  2,  3,  4,  6,
                                    0, -.5f, -1, -1.5f, -2, -3, -4, -6};
    float y[64];
    block_decode(DT_NVFP4, gguf_block, 64, y);
    for (int i = 0; i < 16; i++) {
        assert_true(y[i] == first[i]);
        assert_true(y[16 + i] == 2.0f);
        assert_true(y[32 + i] == (i % 2 ? -.25f : .25f));
        assert_true(y[48 + i] == (i < 8 ? 2688.0f : -2688.0f));
    }
}

static void modelopt_weights_become_gguf_blocks(void **state) {
    (void)state;
    uint8_t out[36];
    nvfp4_from_modelopt(modelopt_weight, modelopt_scale, 1, 64, out);
    assert_memory_equal(out, gguf_block, 36);
}

/* Rows and columns: value (r, c) of the ModelOpt layout, read by its own definition, equals value c
 * of row r in the blocks. */
static void a_repacked_matrix_keeps_every_value(void **state) {
    (void)state;
    enum { ROWS = 3, COLS = 192 };
    uint8_t weight[ROWS * COLS / 2], scale[ROWS * COLS / 16], blocks[ROWS * COLS / 64 * 36];
    float y[ROWS * COLS];
    uint32_t x = 1;
    for (size_t i = 0; i < sizeof weight; i++) weight[i] = (uint8_t)((x = x * 69069 + 1) >> 24);
    for (size_t i = 0; i < sizeof scale; i++) scale[i] = (uint8_t)(i * 5 % 0x7F);
    nvfp4_from_modelopt(weight, scale, ROWS, COLS, blocks);
    block_decode(DT_NVFP4, blocks, ROWS * COLS, y);
    for (size_t r = 0; r < ROWS; r++)
        for (size_t c = 0; c < COLS; c++) {
            uint8_t byte = weight[r * COLS / 2 + c / 2];
            float want = e2m1_to_f32(c % 2 ? byte >> 4 : byte & 15) *
                         e4m3_to_f32(scale[r * COLS / 16 + c / 16]);
            assert_true(y[r * COLS + c] == want);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_format_decodes_to_the_bits_of_the_public_implementations),
        cmocka_unit_test(block_scales_decode_to_the_bits_of_gguf_py),
        cmocka_unit_test(eight_bit_floats_follow_their_definition),
        cmocka_unit_test(an_nvfp4_block_decodes_as_worked_out_by_hand),
        cmocka_unit_test(modelopt_weights_become_gguf_blocks),
        cmocka_unit_test(a_repacked_matrix_keeps_every_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
