/* The pool of slabs: who holds which, and how often. A slab holds the keys and values of
 * PAGE_TOKENS positions of one layer; layers with a window give theirs back once they lie wholly
 * behind it. Not thread-safe: the engine's thread owns a pool. */
#ifndef SUMI_ENGINE_PAGES_H
#define SUMI_ENGINE_PAGES_H

#include "model/batch.h"

struct pages;

/* The leases of one sequence, in the layout of struct seq_pages. All zero is an empty table. */
struct page_table {
    int32_t *slab;   /* [n_layer][stride], -1 where nothing is held; owned by the table */
    int32_t *first;  /* [n_layer] blocks before this one are no longer held; behind slab */
    int32_t stride;  /* blocks there is room for */
    int32_t n_block; /* blocks leased so far, counted from position 0 */
};

/* The shape's windows are copied. Slabs and layers may be 0: then nothing is ever needed. */
sumi_status pages_open(struct pages **out, const struct cache_shape *shape, int32_t n_slab,
                       sumi_error *err);
void pages_close(struct pages *p);

int32_t pages_total(const struct pages *p);
int32_t pages_free(const struct pages *p);
int32_t pages_held(const struct pages *p, const struct page_table *t); /* slabs in a table */

/* The most slabs that a sequence of n_pos positions holds at any time when at most `chunk` rows run
 * in one step. */
int64_t pages_peak(const struct pages *p, int32_t n_pos, int32_t chunk);
/* The longest sequence, at most max_pos, that a pool with nothing else in it can hold. */
int32_t pages_fit(const struct pages *p, int32_t chunk, int32_t max_pos);

/* Leases slabs in every layer for the positions below n_pos that have none yet. All or nothing:
 * SUMI_ERR_BUSY when too few are free, SUMI_ERR_MEMORY when the table cannot grow. */
sumi_status pages_reserve(struct pages *p, struct page_table *t, int32_t n_pos, sumi_error *err);

/* Gives back what no query at position `next` or later can see. */
void pages_trim(struct pages *p, struct page_table *t, int32_t next);

/* Makes the empty table `to` a second holder of whatever of `from` a query at n_pos, a multiple of
 * PAGE_TOKENS, can see. Both may go on alone from there: later positions lie in slabs of their own.
 * `from` must not be trimmed beyond n_pos. */
sumi_status pages_share(struct pages *p, const struct page_table *from, struct page_table *to,
                        int32_t n_pos, sumi_error *err);

/* Gives everything back and frees the table's memory; the table is empty afterwards. */
void pages_release(struct pages *p, struct page_table *t);

/* Whether free and used add up; costs nothing. */
bool pages_balanced(const struct pages *p);
/* The full audit: begin, then every table that exists, then end, which says whether each slab is
 * either free or held exactly as often as the tables say. */
void pages_audit_begin(struct pages *p);
void pages_audit_table(struct pages *p, const struct page_table *t);
bool pages_audit_end(const struct pages *p);

#endif
