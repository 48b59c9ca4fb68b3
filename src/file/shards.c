/* File names and the index of a sharded checkpoint flow in; the list of files that belong together
 * flows out. Trusts no name: nothing it returns leads out of its folder. Knows no tensor data. */
#include "file/shards.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/mem.h"
#include "file/listing.h"
#include "file/strings.h"

enum { NUMBERS = 15, INDEX_MAX_BYTES = 1 << 28 }; /* "-00002-of-00005" */

static bool five_digits(const char *s, int *out) {
    *out = 0;
    for (int i = 0; i < 5; i++) {
        if (!isdigit((unsigned char)s[i])) return false;
        *out = *out * 10 + (s[i] - '0');
    }
    return true;
}

bool split_name_parse(const char *name, struct split_name *out) {
    const char *base = base_name(name), *dot = strrchr(base, '.');
    if (!dot || dot - base < NUMBERS) return false;
    const char *p = dot - NUMBERS;
    if (p[0] != '-' || !five_digits(p + 1, &out->index) || memcmp(p + 6, "-of-", 4) != 0 ||
        !five_digits(p + 10, &out->count))
        return false;
    out->prefix = (size_t)(p - name);
    out->suffix = dot;
    return out->index >= 1 && out->index <= out->count;
}

char *split_name_part(const char *path, const struct split_name *s, int i) {
    struct buf b = {0};
    buf_put(&b, path, s->prefix);
    buf_printf(&b, "-%05d-of-%05d%s", i, s->count, s->suffix);
    return buf_take(&b);
}

static sumi_status look(const char *dir, const char *name, bool *found, bool required,
                        sumi_error *err) {
    struct stat s;
    char *path = path_join(dir, name);
    if (!path) return NO_MEMORY(err, strlen(dir) + strlen(name));
    sumi_status status = SUMI_OK;
    *found = stat(path, &s) == 0;
    if (!*found && errno != ENOENT && errno != ENOTDIR)
        status = fail_with(err, SUMI_ERR_IO, "%s: %s", path, strerror(errno));
    else if (!*found && required)
        status =
            fail_with(err, SUMI_ERR_MISSING, "%s is not there; the download is not complete", path);
    mem_free(path);
    return status;
}

sumi_status shard_exists(const char *dir, const char *name, bool *found, sumi_error *err) {
    return look(dir, name, found, false, err);
}

sumi_status shard_present(const char *dir, const char *name, sumi_error *err) {
    bool found;
    return look(dir, name, &found, true, err);
}

sumi_status split_complete(const char *dir, const char *name, sumi_error *err) {
    struct split_name s;
    if (!split_name_parse(name, &s)) return shard_present(dir, name, err);
    for (int i = 1; i <= s.count; i++) {
        char *part = split_name_part(name, &s, i);
        if (!part) return NO_MEMORY(err, strlen(name));
        sumi_status status = shard_present(dir, part, err);
        mem_free(part);
        TRY(status);
    }
    return SUMI_OK;
}

static bool safe_shard_name(const char *s) {
    return *s && *s != '.' && !strpbrk(s, "/\\") && has_suffix(s, ".safetensors");
}

static sumi_status read_weight_map(struct shard_index *x, const char *path, sumi_error *err) {
    struct json_object *map = json_get(x->json, "weight_map");
    if (!map || !json_is(map, json_type_object) || json_object_object_length(map) == 0)
        return fail_with(err, SUMI_ERR_FORMAT,
                         "%s: expected an object weight_map with a file for each tensor", path);
    size_t count = (size_t)json_object_object_length(map);
    x->entry = mem_zero(count, sizeof *x->entry);
    if (!x->entry) return NO_MEMORY(err, count * sizeof *x->entry);
    json_object_object_foreach(map, tensor, value) {
        const char *shard = json_is(value, json_type_string) ? json_object_get_string(value) : NULL;
        if (!shard || !safe_shard_name(shard))
            return fail_with(err, SUMI_ERR_FORMAT,
                             "%s: tensor \"%.200s\" is in \"%.200s\", expected the name of a "
                             ".safetensors file in the same folder",
                             path, tensor, shard ? shard : "(no text)");
        x->entry[x->n++] = (struct shard_entry){.tensor = tensor, .shard = shard};
    }
    return SUMI_OK;
}

static sumi_status collect_shards(struct shard_index *x, sumi_error *err) {
    x->shard = mem_zero(x->n, sizeof *x->shard);
    if (!x->shard) return NO_MEMORY(err, x->n * sizeof *x->shard);
    for (size_t i = 0; i < x->n; i++) x->shard[i] = x->entry[i].shard;
    qsort(x->shard, x->n, sizeof *x->shard, strings_compare);
    for (size_t i = 0; i < x->n; i++)
        if (x->n_shard == 0 || strcmp(x->shard[x->n_shard - 1], x->shard[i]) != 0)
            x->shard[x->n_shard++] = x->shard[i];
    return SUMI_OK;
}

sumi_status shard_index_read(struct shard_index *x, const char *dir, sumi_error *err) {
    *x = (struct shard_index){0};
    char *path = path_join(dir, SHARD_INDEX);
    if (!path) return NO_MEMORY(err, strlen(dir));
    sumi_status status = json_parse_file(&x->json, path, INDEX_MAX_BYTES, err);
    if (status == SUMI_OK) status = read_weight_map(x, path, err);
    if (status == SUMI_OK) status = collect_shards(x, err);
    mem_free(path);
    if (status != SUMI_OK) shard_index_reset(x);
    return status;
}

void shard_index_reset(struct shard_index *x) {
    mem_free(x->entry);
    mem_free(x->shard);
    json_object_put(x->json);
    *x = (struct shard_index){0};
}
