/* Tensors flow in one by one from a container reader; an array in the order of the data flows out.
 * Knows sizes, order and overlap, not where a header keeps them. */
#include "file/tensor_list.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/size.h"
#include "base/utf8.h"

void tensor_list_reset(struct tensor_list *l) {
    mem_free(l->at);
    strings_reset(&l->strings);
    *l = (struct tensor_list){0};
}

sumi_status tensor_list_add(struct tensor_list *l, const struct tensor *t, sumi_error *err) {
    if (l->n == l->cap) {
        size_t cap = l->cap ? l->cap * 2 : 64;
        struct tensor *at = mem_resize(l->at, cap, sizeof *at);
        if (!at) return NO_MEMORY(err, cap * sizeof *at);
        l->at = at;
        l->cap = cap;
    }
    l->at[l->n++] = *t;
    return SUMI_OK;
}

sumi_status name_check(const char *name, size_t n, size_t max, const char *file, const char *what,
                       sumi_error *err) {
    if (n < 1 || n > max)
        return fail_with(err, SUMI_ERR_FORMAT, "%s: a %s of %zu bytes, expected 1 to %zu", file,
                         what, n, max);
    if (!utf8_valid(name, n))
        return fail_with(err, SUMI_ERR_FORMAT, "%s: a %s is not valid UTF-8", file, what);
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)name[i] < 0x20 || name[i] == 0x7F)
            return fail_with(err, SUMI_ERR_FORMAT,
                             "%s: a %s contains the control character 0x%02X at position %zu", file,
                             what, (unsigned)name[i], i);
    return SUMI_OK;
}

char *tensor_describe(const struct tensor *t, char *out, size_t n) {
    char dims[96];
    size_t at = 0;
    dims[0] = 0;
    for (int i = 0; i < t->n_dim; i++)
        at += (size_t)snprintf(dims + at, sizeof dims - at, "%s%" PRId64, i ? ", " : "", t->dim[i]);
    snprintf(out, n, "%s [%s]", dtype_info(t->dtype)->name, dims);
    return out;
}

sumi_status tensor_measure(struct tensor *t, sumi_error *err) {
    size_t row = t->n_dim ? (size_t)t->dim[t->n_dim - 1] : 1;
    const struct dtype_info *d = dtype_info(t->dtype);
    if (row % (size_t)d->block)
        return fail_with(err, SUMI_ERR_SHAPE,
                         "%s: tensor \"%s\" has rows of %zu values, expected a multiple of %d, the "
                         "block of %s",
                         t->file, t->name, row, d->block, d->name);
    bool fits = dtype_row_bytes(t->dtype, row, &t->bytes);
    for (int i = 0; i < t->n_dim - 1; i++)
        fits = fits && size_mul(t->bytes, (size_t)t->dim[i], &t->bytes);
    if (fits && t->bytes <= PTRDIFF_MAX) return SUMI_OK;
    char text[128];
    return fail_with(err, SUMI_ERR_SHAPE, "%s: tensor \"%s\" is %s: its size overflows", t->file,
                     t->name, tensor_describe(t, text, sizeof text));
}

static int by_data(const void *a, const void *b) {
    const struct tensor *x = a, *y = b;
    uintptr_t p = (uintptr_t)x->data, q = (uintptr_t)y->data;
    if (p != q) return p < q ? -1 : 1;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? -1 : 1; /* empty ones first */
    return strcmp(x->name, y->name);
}

sumi_status tensor_list_order(struct tensor_list *l, size_t first, sumi_error *err) {
    if (l->n == first) return SUMI_OK;
    qsort(l->at + first, l->n - first, sizeof *l->at, by_data);
    for (size_t i = first + 1; i < l->n; i++) {
        const struct tensor *a = &l->at[i - 1], *b = &l->at[i];
        if ((uintptr_t)b->data - (uintptr_t)a->data < a->bytes)
            return fail_with(err, SUMI_ERR_FORMAT,
                             "%s: the data of tensors \"%s\" and \"%s\" overlap", b->file, a->name,
                             b->name);
    }
    return SUMI_OK;
}
