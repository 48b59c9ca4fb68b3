/* How positions map to slabs of the cache pool; shared by who fills the tables and who reads them.
 */
#ifndef SUMI_BASE_PAGES_H
#define SUMI_BASE_PAGES_H

#include <stdint.h>

enum { PAGE_TOKENS = 64 }; /* positions of one layer's keys and values in a slab */

/* Where one sequence's keys and values are: slab[l * stride + p / PAGE_TOKENS] holds position p of
 * layer l. -1 where no slab is held (behind the window, or beyond the end). */
struct seq_pages {
    const int32_t *slab;
    int32_t stride;
};

#endif
