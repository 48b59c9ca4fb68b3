/* Weights in several files: the numbers in their names and the safetensors index. */
#ifndef SUMI_FILE_SHARDS_H
#define SUMI_FILE_SHARDS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

struct json_object;

#define SHARD_INDEX "model.safetensors.index.json"

/* "PREFIX-00002-of-00005.SUFFIX" */
struct split_name {
    size_t prefix;      /* length of PREFIX */
    int index;          /* 2; from 1 */
    int count;          /* 5 */
    const char *suffix; /* ".SUFFIX", inside the name */
};

/* False for any other name, and for numbers that make no sense. */
bool split_name_parse(const char *name, struct split_name *out);

/* The path of part i (from 1) of the split file that `path` is a part of; mem_free it. NULL when
 * memory is short. */
char *split_name_part(const char *path, const struct split_name *s, int i);

/* Whether dir/name is there; a link to nothing is not. */
sumi_status shard_exists(const char *dir, const char *name, bool *found, sumi_error *err);

/* SUMI_ERR_MISSING, naming it, when `dir/name` is not there (or a link to nothing). */
sumi_status shard_present(const char *dir, const char *name, sumi_error *err);

/* Checks that every part of the split file that `name` (relative to dir) belongs to is there; a
 * name without numbers is checked alone. */
sumi_status split_complete(const char *dir, const char *name, sumi_error *err);

struct shard_index {
    struct shard_entry {
        const char *tensor, *shard; /* borrowed from json */
    } * entry;                      /* [n] in file order; owned */
    size_t n;
    const char **shard; /* [n_shard] distinct, in order of name; owned */
    size_t n_shard;
    struct json_object *json; /* owned */
};

/* Reads dir/model.safetensors.index.json. Each shard is a plain file name that ends in
 * .safetensors; whether it exists is not checked. */
sumi_status shard_index_read(struct shard_index *x, const char *dir, sumi_error *err);
void shard_index_reset(struct shard_index *x);

#endif
