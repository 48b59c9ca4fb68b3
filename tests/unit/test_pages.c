/* engine/pages: leases, windows, sharing, the audit. A slab holds 64 positions of one layer; counts
 * are worked out by hand from that. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "engine/pages.h"

static sumi_error err;

/* Layer 0 sees everything, layer 1 the last 100 positions, layer 2 the last one. */
static const int32_t windows[] = {0, 100, 1};
static const struct cache_shape shape = {.n_layer = 3, .window = windows, .slab_bytes = 1};

static struct pages *pool_of(int32_t n_slab) {
    struct pages *p;
    assert_int_equal(pages_open(&p, &shape, n_slab, &err), SUMI_OK);
    return p;
}

static int32_t used(const struct pages *p) {
    return pages_total(p) - pages_free(p);
}

static int32_t slab_at(const struct page_table *t, int32_t layer, int32_t pos) {
    return t->slab[layer * t->stride + pos / PAGE_TOKENS];
}

static bool audit(struct pages *p, const struct page_table *a, const struct page_table *b) {
    pages_audit_begin(p);
    pages_audit_table(p, a);
    if (b) pages_audit_table(p, b);
    return pages_audit_end(p);
}

static void a_reservation_covers_its_positions_in_every_layer(void **state) {
    (void)state;
    struct pages *p = pool_of(20);
    struct page_table t = {0};
    assert_int_equal(pages_reserve(p, &t, 1, &err), SUMI_OK);
    assert_int_equal(used(p), 3);
    assert_int_equal(pages_reserve(p, &t, 64, &err), SUMI_OK);
    assert_int_equal(used(p), 3);
    assert_int_equal(pages_reserve(p, &t, 65, &err), SUMI_OK);
    assert_int_equal(used(p), 6);
    assert_int_equal(pages_held(p, &t), 6);
    uint32_t seen = 0;
    for (int32_t l = 0; l < 3; l++) {
        for (int32_t pos = 0; pos < 128; pos += PAGE_TOKENS) {
            assert_in_range(slab_at(&t, l, pos), 0, 19);
            seen |= 1u << slab_at(&t, l, pos);
        }
    }
    assert_int_equal(__builtin_popcount(seen), 6); /* six different ones */
    assert_true(audit(p, &t, NULL));
    pages_release(p, &t);
    assert_int_equal(used(p), 0);
    assert_null(t.slab);
    pages_release(p, &t); /* an empty table is fine */
    pages_close(p);
}

static void a_reservation_is_all_or_nothing(void **state) {
    (void)state;
    struct pages *p = pool_of(8);
    struct page_table t = {0};
    assert_int_equal(pages_reserve(p, &t, 128, &err), SUMI_OK);
    assert_int_equal(pages_reserve(p, &t, 129, &err), SUMI_ERR_BUSY); /* 3 more, 2 are free */
    assert_int_equal(used(p), 6);
    assert_true(audit(p, &t, NULL));
    pages_release(p, &t);
    pages_close(p);
}

static void a_growing_table_keeps_its_slabs(void **state) {
    (void)state;
    struct pages *p = pool_of(60);
    struct page_table t = {0};
    int32_t at[3][20];
    for (int32_t b = 0; b < 20; b++) {
        assert_int_equal(pages_reserve(p, &t, (b + 1) * PAGE_TOKENS, &err), SUMI_OK);
        for (int32_t l = 0; l < 3; l++) at[l][b] = slab_at(&t, l, b * PAGE_TOKENS);
    }
    for (int32_t l = 0; l < 3; l++)
        for (int32_t b = 0; b < 20; b++)
            assert_int_equal(slab_at(&t, l, b * PAGE_TOKENS), at[l][b]);
    assert_int_equal(used(p), 60);
    pages_release(p, &t);
    pages_close(p);
}

static void windows_give_back_what_no_query_sees(void **state) {
    (void)state;
    struct pages *p = pool_of(30);
    struct page_table t = {0};
    assert_int_equal(pages_reserve(p, &t, 200, &err), SUMI_OK); /* 4 blocks in 3 layers */
    /* A query at 162 sees 63.. in layer 1, which is the last position of block 0, and only itself
     * in layer 2, which is block 2. */
    pages_trim(p, &t, 162);
    assert_int_equal(used(p), 12 - 2);
    assert_true(slab_at(&t, 1, 63) >= 0);
    assert_int_equal(slab_at(&t, 2, 127), -1);
    assert_true(slab_at(&t, 2, 128) >= 0);
    pages_trim(p, &t, 163); /* now 64.. */
    assert_int_equal(used(p), 12 - 3);
    assert_int_equal(slab_at(&t, 1, 63), -1);
    assert_true(slab_at(&t, 1, 64) >= 0);
    assert_true(slab_at(&t, 0, 0) >= 0);
    assert_int_equal(pages_held(p, &t), 9);
    assert_true(audit(p, &t, NULL));
    /* A query at 256 needs nothing of layer 2; its block is not leased yet. */
    pages_trim(p, &t, 256);
    assert_int_equal(used(p), 4 + 2 + 0);
    assert_int_equal(pages_reserve(p, &t, 257, &err), SUMI_OK);
    assert_int_equal(used(p), 9);
    pages_release(p, &t);
    assert_int_equal(used(p), 0);
    pages_close(p);
}

static void early_queries_trim_nothing(void **state) {
    (void)state;
    struct pages *p = pool_of(6);
    struct page_table t = {0};
    assert_int_equal(pages_reserve(p, &t, 100, &err), SUMI_OK);
    for (int32_t next = 0; next < 64; next++) pages_trim(p, &t, next);
    assert_int_equal(used(p), 6);
    pages_release(p, &t);
    pages_close(p);
}

static void shared_slabs_go_back_with_the_last_holder(void **state) {
    (void)state;
    struct pages *p = pool_of(40);
    struct page_table a = {0}, b = {0};
    assert_int_equal(pages_reserve(p, &a, 200, &err), SUMI_OK);
    /* A query at 192 sees 93.. in layer 1: blocks 1 and 2; nothing yet in layer 2. */
    assert_int_equal(pages_share(p, &a, &b, 192, &err), SUMI_OK);
    assert_int_equal(used(p), 12);
    assert_int_equal(pages_held(p, &b), 3 + 2 + 0);
    for (int32_t pos = 0; pos < 192; pos += PAGE_TOKENS)
        assert_int_equal(slab_at(&b, 0, pos), slab_at(&a, 0, pos));
    assert_int_equal(slab_at(&b, 1, 0), -1);
    assert_int_equal(slab_at(&b, 1, 64), slab_at(&a, 1, 64));
    assert_int_equal(slab_at(&b, 2, 128), -1);
    assert_true(audit(p, &a, &b));
    assert_false(audit(p, &a, NULL)); /* the audit sees a holder that is missing */
    assert_int_equal(pages_reserve(p, &b, 193, &err), SUMI_OK);
    assert_int_not_equal(slab_at(&b, 0, 192), slab_at(&a, 0, 192)); /* they part here */
    assert_int_equal(used(p), 15);
    pages_release(p, &a); /* 5 of its 12 are held by b */
    assert_int_equal(used(p), 8);
    assert_true(audit(p, &b, NULL));
    pages_trim(p, &b, 1000);
    assert_int_equal(used(p), 4);
    pages_release(p, &b);
    assert_int_equal(used(p), 0);
    assert_true(pages_balanced(p));
    pages_close(p);
}

static void the_peak_counts_window_and_chunk(void **state) {
    (void)state;
    struct pages *p = pool_of(20);
    assert_int_equal(pages_peak(p, 0, 1), 0);
    assert_int_equal(pages_peak(p, 64, 1000), 3);
    assert_int_equal(pages_peak(p, 65, 1000), 6);
    /* 640 positions, one row a step: 10 blocks; 100 positions touch at most 3; 1 touches 1. */
    assert_int_equal(pages_peak(p, 640, 1), 10 + 3 + 1);
    /* 65 rows a step: 164 positions touch at most 4; 65 touch at most 2 or, ill placed, 2. */
    assert_int_equal(pages_peak(p, 640, 65), 10 + 4 + 2);
    assert_int_equal(pages_peak(p, 640, 66), 10 + 4 + 3); /* 63, 64..127, 128 */
    /* 20 slabs: 16 blocks, 3 and 1 fit with one row a step. */
    assert_int_equal(pages_fit(p, 1, 100000), 16 * 64);
    assert_int_equal(pages_fit(p, 1, 777), 777);
    assert_int_equal(pages_fit(p, 100000, 100000), 6 * 64);
    pages_close(p);
    p = pool_of(2);
    assert_int_equal(pages_fit(p, 1, 100), 0);
    pages_close(p);
}

/* The promise behind the peak: running alone in chunks never needs more. */
static void a_sequence_stays_below_its_peak(void **state) {
    (void)state;
    for (int32_t chunk = 1; chunk < 300; chunk += 13) {
        struct pages *p = pool_of(100);
        int32_t n_pos = 1000, fit = (int32_t)pages_peak(p, n_pos, chunk);
        pages_close(p);
        p = pool_of(fit);
        struct page_table t = {0};
        for (int32_t pos = 0; pos < n_pos;) {
            int32_t end = pos + chunk < n_pos ? pos + chunk : n_pos;
            assert_int_equal(pages_reserve(p, &t, end, &err), SUMI_OK);
            for (int32_t l = 0; l < 3; l++) { /* every query's window is there */
                int32_t first = windows[l] && pos >= windows[l] ? pos - windows[l] + 1 : 0;
                for (int32_t q = first; q < end; q++) assert_true(slab_at(&t, l, q) >= 0);
            }
            pages_trim(p, &t, end);
            pos = end;
        }
        pages_release(p, &t);
        pages_close(p);
    }
}

static void a_pool_without_layers_needs_nothing(void **state) {
    (void)state;
    struct pages *p;
    struct page_table a = {0}, b = {0};
    assert_int_equal(pages_open(&p, &(struct cache_shape){0}, 0, &err), SUMI_OK);
    assert_int_equal(pages_fit(p, 100, 5000), 5000);
    assert_int_equal(pages_reserve(p, &a, 5000, &err), SUMI_OK);
    assert_int_equal(pages_share(p, &a, &b, 64, &err), SUMI_OK);
    pages_trim(p, &a, 5000);
    assert_int_equal(pages_held(p, &a), 0);
    assert_true(audit(p, &a, &b));
    pages_release(p, &a);
    pages_release(p, &b);
    pages_close(p);
    assert_int_equal(pages_open(&p, &(struct cache_shape){0}, -1, &err), SUMI_ERR_ARG);
}

static void short_memory_leaves_a_table_as_it_was(void **state) {
    (void)state;
    struct pages *p = NULL;
    sumi_status status = SUMI_ERR_MEMORY;
    for (long n = 1; status == SUMI_ERR_MEMORY; n++) {
        mem_fail_at(n);
        status = pages_open(&p, &shape, 20, &err);
        mem_fail_at(0);
    }
    assert_int_equal(status, SUMI_OK);
    struct page_table a = {0}, b = {0};
    assert_int_equal(pages_reserve(p, &a, 128, &err), SUMI_OK);
    mem_fail_at(1);
    assert_int_equal(pages_reserve(p, &a, 200, &err), SUMI_ERR_MEMORY);
    mem_fail_at(1);
    assert_int_equal(pages_share(p, &a, &b, 64, &err), SUMI_ERR_MEMORY);
    mem_fail_at(0);
    assert_int_equal(used(p), 6);
    assert_true(audit(p, &a, &b));
    pages_release(p, &a);
    pages_close(p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reservation_covers_its_positions_in_every_layer),
        cmocka_unit_test(a_reservation_is_all_or_nothing),
        cmocka_unit_test(a_growing_table_keeps_its_slabs),
        cmocka_unit_test(windows_give_back_what_no_query_sees),
        cmocka_unit_test(early_queries_trim_nothing),
        cmocka_unit_test(shared_slabs_go_back_with_the_last_holder),
        cmocka_unit_test(the_peak_counts_window_and_chunk),
        cmocka_unit_test(a_sequence_stays_below_its_peak),
        cmocka_unit_test(a_pool_without_layers_needs_nothing),
        cmocka_unit_test(short_memory_leaves_a_table_as_it_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
