/* A snapshot folder flows in, the path to open flows out, once every file behind it is known to be
 * there. Looks at names and sizes only; what is in a file is for those who open it. */
#include "file/snapshot.h"

#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "base/json.h"
#include "base/mem.h"
#include "file/listing.h"
#include "file/shards.h"

enum { TREE_MAX_BYTES = 1 << 26, GGUF_DEPTH = 2 };

/* The list of the repository's files, NULL without one. It is a help: one that is absent, damaged
 * or of another version is passed over. */
static sumi_status read_tree(struct json_object **out, const char *path, sumi_error *err) {
    int64_t version = 0;
    sumi_error passed_over;
    sumi_status status = json_parse_file(out, path, TREE_MAX_BYTES, &passed_over);
    if (status == SUMI_ERR_MEMORY) return fail_with(err, status, "%s", passed_over.msg);
    if (status == SUMI_OK && json_get_i64(*out, "format_version", &version, NULL) == SUMI_OK &&
        version == 1)
        return SUMI_OK;
    json_object_put(*out);
    *out = NULL;
    return SUMI_OK;
}

/* Present, and of the listed size. */
static sumi_status check_file(const char *dir, const char *name, struct json_object *files,
                              sumi_error *err) {
    struct stat s;
    int64_t size = -1;
    TRY(shard_present(dir, name, err));
    struct json_object *entry = json_get(files, name);
    if (!entry || json_get_i64(entry, "size", &size, NULL) != SUMI_OK || size < 0) return SUMI_OK;
    char *path = path_join(dir, name);
    if (!path) return NO_MEMORY(err, strlen(dir) + strlen(name));
    sumi_status status = SUMI_OK;
    if (stat(path, &s) == 0 && s.st_size != size)
        status = fail_with(err, SUMI_ERR_FORMAT,
                           "%s: expected %" PRId64 " bytes, found %" PRId64
                           "; the download is not complete",
                           path, size, (int64_t)s.st_size);
    mem_free(path);
    return status;
}

static sumi_status check_indexed(const char *dir, struct json_object *files, sumi_error *err) {
    struct shard_index x;
    TRY(shard_index_read(&x, dir, err));
    sumi_status status = SUMI_OK;
    for (size_t i = 0; status == SUMI_OK && i < x.n_shard; i++)
        status = check_file(dir, x.shard[i], files, err);
    shard_index_reset(&x);
    return status;
}

/* Without an index the names must do: those that are there, the parts that their numbers promise,
 * and those that the list has. */
static sumi_status check_unindexed(const char *dir, const struct listing *l,
                                   struct json_object *files, sumi_error *err) {
    for (size_t i = 0; i < l->n; i++) {
        TRY(split_complete(dir, l->name[i], err));
        TRY(check_file(dir, l->name[i], files, err));
    }
    if (!json_is(files, json_type_object)) return SUMI_OK;
    json_object_object_foreach(files, name, entry) {
        (void)entry;
        if (has_suffix(name, ".safetensors") && !strchr(name, '/'))
            TRY(shard_present(dir, name, err));
    }
    return SUMI_OK;
}

static sumi_status check_safetensors(const char *dir, const struct listing *l, bool indexed,
                                     struct json_object *files, sumi_error *err) {
    if (indexed) return check_indexed(dir, files, err);
    if (json_get(files, SHARD_INDEX)) TRY(shard_present(dir, SHARD_INDEX, err));
    return check_unindexed(dir, l, files, err);
}

static sumi_status choose_gguf(char **out, const char *dir, const char *want,
                               struct json_object *files, sumi_error *err) {
    struct listing l;
    const char *name = NULL;
    TRY(listing_read(&l, dir, ".gguf", GGUF_DEPTH, err));
    sumi_status status = SUMI_OK;
    if (l.n == 0 && !want)
        status = fail_with(err, SUMI_ERR_MISSING,
                           "%s: expected *.safetensors or *.gguf, found none; the download is not "
                           "complete, or the repository has only formats that are not read",
                           dir);
    else status = listing_choose_gguf(&l, want, dir, &name, err);
    if (status == SUMI_OK) status = split_complete(dir, name, err);
    if (status == SUMI_OK) status = check_file(dir, name, files, err);
    if (status == SUMI_OK) {
        *out = path_join(dir, name);
        if (!*out) status = NO_MEMORY(err, strlen(dir) + strlen(name));
    }
    listing_reset(&l);
    return status;
}

static sumi_status choose(char **out, const char *dir, const char *want, const struct listing *l,
                          struct json_object *files, sumi_error *err) {
    bool indexed = false;
    if (!want) TRY(shard_exists(dir, SHARD_INDEX, &indexed, err));
    if (want || (l->n == 0 && !indexed)) return choose_gguf(out, dir, want, files, err);
    TRY(check_safetensors(dir, l, indexed, files, err));
    *out = mem_string(dir, strlen(dir));
    return *out ? SUMI_OK : NO_MEMORY(err, strlen(dir));
}

sumi_status snapshot_choose(char **out, const char *dir, const char *want, const char *tree,
                            sumi_error *err) {
    struct listing l;
    struct json_object *list = NULL;
    *out = NULL;
    TRY(listing_read(&l, dir, ".safetensors", 0, err));
    sumi_status status = read_tree(&list, tree, err);
    if (status == SUMI_OK) status = choose(out, dir, want, &l, json_get(list, "files"), err);
    json_object_put(list);
    listing_reset(&l);
    return status;
}
