/* .npy files in and out. */
#include "base/npy.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/file_read.h"
#include "base/mem.h"

static const char magic[] = "\x93NUMPY\x01";
enum { PREFIX = 10 }; /* magic, version, u16 header length */

int64_t npy_count(const struct npy *a) {
    int64_t n = 1;
    for (int i = 0; i < a->n_dim; i++)
        if (a->dim[i] < 0 || __builtin_mul_overflow(n, a->dim[i], &n)) return -1;
    return n;
}

sumi_status npy_write(const char *path, const struct npy *a, sumi_error *err) {
    struct buf h = {0};
    buf_printf(&h, "{'descr': '%s', 'fortran_order': False, 'shape': (", a->is_int ? "<i4" : "<f4");
    for (int i = 0; i < a->n_dim; i++) buf_printf(&h, "%" PRId64 ",", a->dim[i]);
    buf_puts(&h, "), }");
    while ((PREFIX + h.len + 1) % 64) buf_putc(&h, ' ');
    buf_putc(&h, '\n');
    if (h.failed) {
        buf_reset(&h);
        return NO_MEMORY(err, 128);
    }
    FILE *f = fopen(path, "wb");
    size_t n = (size_t)npy_count(a);
    unsigned char len[2] = {(unsigned char)(h.len & 255), (unsigned char)(h.len >> 8)};
    bool ok = f && fwrite(magic, 1, 8, f) == 8 && fwrite(len, 1, 2, f) == 2 &&
              fwrite(h.data, 1, h.len, f) == h.len && fwrite(a->data, 4, n, f) == n;
    if (f && fclose(f) != 0) ok = false;
    buf_reset(&h);
    return ok ? SUMI_OK : fail_with(err, SUMI_ERR_IO, "%s: %s", path, strerror(errno));
}

/* The dictionary that NumPy writes, with its keys in any order. */
static bool parse_header(const char *h, struct npy *a) {
    const char *descr = strstr(h, "'descr':"), *shape = strstr(h, "'shape':");
    if (!descr || !shape || strstr(h, "'fortran_order': True")) return false;
    descr += strspn(descr + 8, " ") + 8;
    if (strncmp(descr, "'<i4'", 5) == 0) a->is_int = true;
    else if (strncmp(descr, "'<f4'", 5) != 0) return false;
    const char *p = strchr(shape, '(');
    if (!p) return false;
    for (p++; *p && *p != ')';) {
        char *end;
        long long v = strtoll(p, &end, 10);
        if (end == p || v < 0 || a->n_dim == NPY_MAX_DIM) return false;
        a->dim[a->n_dim++] = v;
        p = end + strspn(end, ", ");
    }
    return *p == ')';
}

sumi_status npy_read(const char *path, struct npy *out, sumi_error *err) {
    char *text;
    size_t n;
    *out = (struct npy){0};
    TRY(file_read(path, (size_t)1 << 34, &text, &n, err));
    size_t header =
        n >= PREFIX ? (size_t)(unsigned char)text[8] | (size_t)(unsigned char)text[9] << 8 : 0;
    char dict[512];
    bool ok =
        n >= PREFIX && memcmp(text, magic, 7) == 0 && n >= PREFIX + header && header < sizeof dict;
    if (ok) {
        memcpy(dict, text + PREFIX, header);
        dict[header] = 0;
        ok = parse_header(dict, out);
    }
    int64_t count = ok ? npy_count(out) : -1;
    if (count < 0 || (uint64_t)count > n / 4 || (size_t)count * 4 != n - PREFIX - header) {
        mem_free(text);
        return fail_with(
            err, SUMI_ERR_FORMAT,
            "%s: expected a version 1 .npy file of little-endian float32 or int32 in C "
            "order, of exactly the size its header says",
            path);
    }
    memmove(text, text + PREFIX + header, (size_t)count * 4);
    out->data = text;
    return SUMI_OK;
}
