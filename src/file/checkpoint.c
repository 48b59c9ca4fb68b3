/* A path flows in; one list of tensors, found by name, flows out, whatever the files are. Knows
 * which files belong together, leaves their bytes to the container readers, and knows no model. */
#include "file/checkpoint.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "base/size.h"
#include "file/gguf_read.h"
#include "file/listing.h"
#include "file/map.h"
#include "file/safetensors.h"
#include "file/shards.h"

struct checkpoint {
    struct tensor_list list;
    struct name_index index; /* over list */
    struct file_map *map;    /* [n_map]; owned */
    size_t n_map;
    struct gguf *gguf; /* of the first part; owned, or NULL */
    size_t bytes;
};

/* The name decides, so that a damaged file is told what it should be; a name that says nothing
 * leaves it to the first bytes. */
static bool is_gguf(const char *file, const uint8_t *data, size_t bytes) {
    if (has_suffix(file, ".gguf")) return true;
    return !has_suffix(file, ".safetensors") && bytes >= 4 && memcmp(data, "GGUF", 4) == 0;
}

/* Reads one container; *gguf is given to the caller, NULL for safetensors. */
static sumi_status add_container(struct checkpoint *c, const uint8_t *data, size_t bytes,
                                 const char *path, struct gguf **gguf, sumi_error *err) {
    *gguf = NULL;
    const char *base = base_name(path);
    const char *file = strings_copy(&c->list.strings, base, strlen(base));
    if (!file) return NO_MEMORY(err, strlen(base));
    if (is_gguf(file, data, bytes)) return gguf_read(gguf, &c->list, data, bytes, file, err);
    return safetensors_read(&c->list, data, bytes, file, err);
}

static sumi_status add_file(struct checkpoint *c, const char *path, struct gguf **gguf,
                            sumi_error *err) {
    *gguf = NULL;
    struct file_map *map = mem_resize(c->map, c->n_map + 1, sizeof *map);
    if (!map) return NO_MEMORY(err, (c->n_map + 1) * sizeof *map);
    c->map = map;
    TRY(file_map_open(&c->map[c->n_map], path, err));
    struct file_map *m = &c->map[c->n_map++];
    return add_container(c, m->data, m->bytes, path, gguf, err);
}

static sumi_status add_shard(struct checkpoint *c, const char *dir, const char *name,
                             sumi_error *err) {
    struct gguf *none;
    char *path = path_join(dir, name);
    if (!path) return NO_MEMORY(err, strlen(dir) + strlen(name));
    sumi_status status = add_file(c, path, &none, err);
    mem_free(path);
    return status;
}

/* Compares what a part says of itself with what its name says: part i (from 1) of count. */
static sumi_status check_part(const struct gguf *g, int i, int count, sumi_error *err) {
    int64_t says_i = 0, says_count = 1;
    TRY(gguf_get_i64(g, "split.no", false, &says_i, err));
    TRY(gguf_get_i64(g, "split.count", false, &says_count, err));
    if (says_count <= 1 && count == 1) return SUMI_OK;
    if (says_i == i - 1 && says_count == count) return SUMI_OK;
    if (count == 1)
        return fail_with(err, SUMI_ERR_UNSUPPORTED,
                         "%s: split.no %" PRId64 " of split.count %" PRId64 ": one part of a split "
                         "file; its parts are found by names that end in "
                         "-%05" PRId64 "-of-%05" PRId64 ".gguf",
                         g->file, says_i, says_count, says_i + 1, says_count);
    return fail_with(err, SUMI_ERR_FORMAT,
                     "%s: named part %d of %d, but it says split.no %" PRId64 " and split.count "
                     "%" PRId64,
                     g->file, i, count, says_i, says_count);
}

/* All parts count as one file; the first holds the metadata. */
static sumi_status add_split(struct checkpoint *c, const char *path, const struct split_name *s,
                             sumi_error *err) {
    for (int i = 1; i <= s->count; i++) {
        struct gguf *g;
        char *part = split_name_part(path, s, i);
        if (!part) return NO_MEMORY(err, strlen(path));
        sumi_status status = add_file(c, part, &g, err);
        mem_free(part);
        if (status == SUMI_OK) status = check_part(g, i, s->count, err);
        if (status != SUMI_OK) error_prefix(err, "part %d of %d", i, s->count);
        if (i == 1) c->gguf = g;
        else gguf_close(g);
        TRY(status);
    }
    int64_t n = (int64_t)c->list.n;
    TRY(gguf_get_i64(c->gguf, "split.tensors.count", false, &n, err));
    if (n == (int64_t)c->list.n) return SUMI_OK;
    return fail_with(err, SUMI_ERR_FORMAT,
                     "%s: split.tensors.count is %" PRId64 ", but the %d parts hold %zu tensors",
                     c->gguf->file, n, s->count, c->list.n);
}

static sumi_status open_file(struct checkpoint *c, const char *path, sumi_error *err) {
    struct split_name s;
    if (has_suffix(path, ".gguf") && split_name_parse(path, &s) && s.count > 1) {
        TRY(split_complete("", path, err));
        return add_split(c, path, &s, err);
    }
    TRY(add_file(c, path, &c->gguf, err));
    return c->gguf ? check_part(c->gguf, 1, 1, err) : SUMI_OK;
}

static sumi_status build_index(struct checkpoint *c, sumi_error *err) {
    TRY(name_index_build(&c->index, c->list.at, c->list.n, sizeof *c->list.at, err));
    const void *const *twice = name_index_twice(&c->index);
    if (twice) {
        const struct tensor *a = twice[0], *b = twice[1];
        return fail_with(err, SUMI_ERR_FORMAT, "%s: tensor \"%s\" comes twice, in %s and in %s",
                         b->file, b->name, a->file, b->file);
    }
    for (size_t i = 0; i < c->list.n; i++)
        if (!size_add(c->bytes, c->list.at[i].bytes, &c->bytes))
            return fail_with(err, SUMI_ERR_LIMIT, "%s: the sum of all tensors overflows",
                             c->list.at[i].file);
    return SUMI_OK;
}

static sumi_status check_index(const struct checkpoint *c, const struct shard_index *x,
                               sumi_error *err) {
    for (size_t i = 0; i < x->n; i++) {
        const struct shard_entry *e = &x->entry[i];
        const struct tensor *t = checkpoint_find(c, e->tensor);
        if (t && strcmp(t->file, e->shard) == 0) continue;
        return fail_with(err, SUMI_ERR_FORMAT,
                         SHARD_INDEX ": tensor \"%.200s\" should be in %s, but it is in %s",
                         e->tensor, e->shard, t ? t->file : "none of the files");
    }
    return SUMI_OK;
}

static sumi_status open_indexed(struct checkpoint *c, const char *dir, sumi_error *err) {
    struct shard_index x;
    TRY(shard_index_read(&x, dir, err));
    sumi_status status = SUMI_OK;
    for (size_t i = 0; status == SUMI_OK && i < x.n_shard; i++)
        status = shard_present(dir, x.shard[i], err);
    for (size_t i = 0; status == SUMI_OK && i < x.n_shard; i++)
        status = add_shard(c, dir, x.shard[i], err);
    if (status == SUMI_OK) status = build_index(c, err);
    if (status == SUMI_OK) status = check_index(c, &x, err);
    shard_index_reset(&x);
    return status;
}

static sumi_status open_gguf_of(struct checkpoint *c, const char *dir, sumi_error *err) {
    struct listing l;
    const char *name = NULL;
    TRY(listing_read(&l, dir, ".gguf", 0, err));
    sumi_status status =
        l.n ? listing_choose_gguf(&l, NULL, dir, &name, err)
            : fail_with(err, SUMI_ERR_MISSING,
                        "%s: expected *.safetensors or a .gguf file, found none (pickled weights "
                        "such as *.bin and *.pt are not read)",
                        dir);
    if (status == SUMI_OK) {
        char *path = path_join(dir, name);
        status = path ? open_file(c, path, err) : NO_MEMORY(err, strlen(dir));
        mem_free(path);
    }
    listing_reset(&l);
    return status == SUMI_OK ? build_index(c, err) : status;
}

static sumi_status open_folder(struct checkpoint *c, const char *dir, sumi_error *err) {
    struct listing l;
    bool indexed;
    TRY(shard_exists(dir, SHARD_INDEX, &indexed, err));
    if (indexed) return open_indexed(c, dir, err);
    TRY(listing_read(&l, dir, ".safetensors", 0, err));
    sumi_status status = SUMI_OK;
    size_t n = l.n;
    for (size_t i = 0; status == SUMI_OK && i < n; i++) {
        status = split_complete(dir, l.name[i], err);
        if (status == SUMI_OK) status = add_shard(c, dir, l.name[i], err);
    }
    listing_reset(&l);
    TRY(status);
    return n ? build_index(c, err) : open_gguf_of(c, dir, err);
}

static sumi_status open_path(struct checkpoint *c, const char *path, sumi_error *err) {
    struct stat s;
    if (stat(path, &s) != 0) return fail_with(err, SUMI_ERR_IO, "%s: %s", path, strerror(errno));
    if (S_ISDIR(s.st_mode)) return open_folder(c, path, err);
    TRY(open_file(c, path, err));
    return build_index(c, err);
}

static sumi_status open_bytes(struct checkpoint *c, const void *data, size_t bytes,
                              const char *file, sumi_error *err) {
    TRY(add_container(c, data, bytes, file, &c->gguf, err));
    if (c->gguf) TRY(check_part(c->gguf, 1, 1, err));
    return build_index(c, err);
}

sumi_status checkpoint_open(struct checkpoint **out, const char *path, sumi_error *err) {
    *out = NULL;
    struct checkpoint *c = mem_zero(1, sizeof *c);
    if (!c) return NO_MEMORY(err, sizeof *c);
    sumi_status status = open_path(c, path, err);
    if (status == SUMI_OK) *out = c;
    else checkpoint_close(c);
    return status;
}

sumi_status checkpoint_open_memory(struct checkpoint **out, const void *data, size_t bytes,
                                   const char *file, sumi_error *err) {
    *out = NULL;
    struct checkpoint *c = mem_zero(1, sizeof *c);
    if (!c) return NO_MEMORY(err, sizeof *c);
    sumi_status status = open_bytes(c, data, bytes, file, err);
    if (status == SUMI_OK) *out = c;
    else checkpoint_close(c);
    return status;
}

void checkpoint_close(struct checkpoint *c) {
    if (!c) return;
    gguf_close(c->gguf);
    name_index_reset(&c->index);
    tensor_list_reset(&c->list);
    for (size_t i = 0; i < c->n_map; i++) file_map_close(&c->map[i]);
    mem_free(c->map);
    mem_free(c);
}

size_t checkpoint_count(const struct checkpoint *c) {
    return c->list.n;
}

const struct tensor *checkpoint_at(const struct checkpoint *c, size_t i) {
    return &c->list.at[i];
}

const struct tensor *checkpoint_find(const struct checkpoint *c, const char *name) {
    return name_index_find(&c->index, name);
}

size_t checkpoint_bytes(const struct checkpoint *c) {
    return c->bytes;
}

const struct gguf *checkpoint_gguf(const struct checkpoint *c) {
    return c->gguf;
}
