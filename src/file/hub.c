/* A model argument flows in, a path flows out: of a local file or folder, or of a snapshot in the
 * Hugging Face cache. Reads only that cache's layout (docs/formats.md); it never reaches for the
 * network or the environment, and no name or hash it is given leads out of the cache. */
#include "file/hub.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/mem.h"
#include "file/listing.h"
#include "file/snapshot.h"

enum { HASH_DIGITS = 40, MAX_REPO_NAME = 96, REF_MAX_BYTES = 4096 };

struct request {
    const char *model;    /* as given */
    const char *want;     /* behind the ':', or NULL */
    const char *revision; /* "main" when none is given */
    char repo[2 * MAX_REPO_NAME + 2];
    char *cache;  /* cache folder; owned */
    char *folder; /* of the repository, in the cache; owned */
    char hash[HASH_DIGITS + 1];
};

static bool is_set(const char *s) {
    return s && *s;
}

/* The value of a variable in a folder name; of those that the caller passes on. */
static const char *variable(const struct hub_env *env, const char *name, size_t n) {
    static const char *const names[] = {"HOME", "XDG_CACHE_HOME", "HF_HOME"};
    const char *const values[] = {env->home, env->xdg_cache, env->hf_home};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strlen(names[i]) == n && memcmp(names[i], name, n) == 0) return values[i];
    return NULL;
}

/* Appends a folder with a leading ~ and each $NAME or ${NAME} replaced; an unset one stays. */
static void put_expanded(struct buf *b, const char *path, const struct hub_env *env) {
    if (*path == '~' && (path[1] == '/' || !path[1]) && is_set(env->home)) {
        buf_puts(b, env->home);
        path++;
    }
    while (*path) {
        bool brace = path[0] == '$' && path[1] == '{';
        const char *name = path + 1 + brace, *end = name;
        while (*path == '$' && (isalnum((unsigned char)*end) || *end == '_')) end++;
        const char *value = end > name && (!brace || *end == '}')
                                ? variable(env, name, (size_t)(end - name))
                                : NULL;
        if (is_set(value)) {
            buf_puts(b, value);
            path = end + brace;
        } else {
            buf_putc(b, *path++);
        }
    }
}

/* The first that is set: download_dir, HF_HUB_CACHE, HUGGINGFACE_HUB_CACHE, HF_HOME/hub,
 * XDG_CACHE_HOME/huggingface/hub, HOME/.cache/huggingface/hub. */
static sumi_status find_cache(struct request *r, const struct hub_env *env, sumi_error *err) {
    const struct {
        const char *base, *rest;
    } order[] = {
        {env->download_dir, ""},
        {env->hf_hub_cache, ""},
        {env->hub_cache_old, ""},
        {env->hf_home, "/hub"},
        {env->xdg_cache, "/huggingface/hub"},
        {env->home, "/.cache/huggingface/hub"},
    };
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        if (!is_set(order[i].base)) continue;
        struct buf b = {0};
        put_expanded(&b, order[i].base, env);
        buf_puts(&b, order[i].rest);
        r->cache = buf_take(&b);
        return r->cache ? SUMI_OK : NO_MEMORY(err, strlen(order[i].base));
    }
    return fail_with(err, SUMI_ERR_MISSING,
                     "model \"%s\" is no file or folder here, and there is no cache folder to look "
                     "in: HOME is not set; set it, HF_HOME or --download-dir",
                     r->model);
}

/* One component of a repository's name: letters, digits, '-', '_', '.', not at its ends a '-' or
 * '.', and without "--" and "..", which the cache uses for itself. */
static bool valid_component(const char *s, size_t n) {
    if (n < 1 || n > MAX_REPO_NAME || strchr("-.", s[0]) || strchr("-.", s[n - 1])) return false;
    for (size_t i = 0; i < n; i++) {
        if (!isalnum((unsigned char)s[i]) && !(s[i] && strchr("-_.", s[i]))) return false;
        if (i && s[i] == s[i - 1] && strchr("-.", s[i])) return false;
    }
    return true;
}

/* Splits "org/name[:want]" or "name[:want]". */
static bool parse_model(struct request *r) {
    const char *colon = strchr(r->model, ':');
    size_t n = colon ? (size_t)(colon - r->model) : strlen(r->model);
    const char *slash = memchr(r->model, '/', n);
    size_t org = slash ? (size_t)(slash - r->model) : 0;
    const char *name = slash ? slash + 1 : r->model;
    if (slash && !valid_component(r->model, org)) return false;
    if (!valid_component(name, n - (size_t)(name - r->model))) return false;
    if (colon && !colon[1]) return false;
    memcpy(r->repo, r->model, n);
    r->repo[n] = 0;
    r->want = colon ? colon + 1 : NULL;
    return true;
}

static bool is_hash(const char *s, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (!isxdigit((unsigned char)s[i])) return false;
    return n == HASH_DIGITS;
}

static sumi_status find_folder(struct request *r, sumi_error *err) {
    struct buf b = {0};
    struct stat s;
    buf_printf(&b, "%s/models--", r->cache);
    for (const char *p = r->repo; *p; p++) {
        if (*p == '/') buf_puts(&b, "--");
        else buf_putc(&b, *p);
    }
    r->folder = buf_take(&b);
    if (!r->folder) return NO_MEMORY(err, strlen(r->cache) + strlen(r->repo));
    if (stat(r->folder, &s) == 0 && S_ISDIR(s.st_mode)) return SUMI_OK;
    return fail_with(err, SUMI_ERR_MISSING,
                     "model \"%s\" is no file or folder here, and repository %s (revision %s) is "
                     "not in the cache %s",
                     r->model, r->repo, r->revision, r->cache);
}

/* A name inside refs/ that stays there: no empty, "." or ".." component. */
static bool valid_revision(const char *s) {
    for (const char *p = s;; p++) {
        size_t n = strcspn(p, "/");
        if (n == 0 || (n == 1 && p[0] == '.') || (n == 2 && memcmp(p, "..", 2) == 0)) return false;
        p += n;
        if (!*p) return true;
    }
}

/* Reads refs/REVISION, which holds the hash of a commit. */
static sumi_status read_ref(struct request *r, const char *path, sumi_error *err) {
    struct stat s;
    char *text;
    size_t n;
    if (stat(path, &s) != 0)
        return fail_with(err, SUMI_ERR_MISSING,
                         "revision %s of repository %s is not in the cache %s", r->revision,
                         r->repo, r->cache);
    TRY(file_read(path, REF_MAX_BYTES, &text, &n, err));
    const char *p = text;
    while (n && isspace((unsigned char)*p)) p++, n--;
    while (n && isspace((unsigned char)p[n - 1])) n--;
    bool valid = is_hash(p, n);
    if (valid) memcpy(r->hash, p, n);
    mem_free(text);
    if (valid) return SUMI_OK;
    return fail_with(err, SUMI_ERR_FORMAT,
                     "%s: expected a commit hash of %d hexadecimal digits, found something else",
                     path, HASH_DIGITS);
}

static sumi_status find_hash(struct request *r, sumi_error *err) {
    if (is_hash(r->revision, strlen(r->revision))) {
        memcpy(r->hash, r->revision, HASH_DIGITS);
        return SUMI_OK;
    }
    if (!valid_revision(r->revision))
        return fail_with(err, SUMI_ERR_ARG,
                         "revision \"%s\": expected a branch, a tag or a commit hash", r->revision);
    struct buf b = {0};
    buf_printf(&b, "%s/refs/%s", r->folder, r->revision);
    sumi_status status = b.failed ? NO_MEMORY(err, b.len) : read_ref(r, buf_text(&b), err);
    buf_reset(&b);
    return status;
}

static sumi_status open_snapshot(char **out, const struct request *r, sumi_error *err) {
    struct stat s;
    struct buf dir = {0}, tree = {0};
    buf_printf(&dir, "%s/snapshots/%s", r->folder, r->hash);
    buf_printf(&tree, "%s/trees/%s.json", r->folder, r->hash);
    sumi_status status = SUMI_OK;
    if (dir.failed || tree.failed) status = NO_MEMORY(err, strlen(r->folder));
    else if (stat(buf_text(&dir), &s) != 0 || !S_ISDIR(s.st_mode))
        status = fail_with(err, SUMI_ERR_MISSING,
                           "revision %s (commit %s) of repository %s is not in the cache %s",
                           r->revision, r->hash, r->repo, r->cache);
    else {
        status = snapshot_choose(out, buf_text(&dir), r->want, buf_text(&tree), err);
        if (status != SUMI_OK)
            error_prefix(err, "repository %s, revision %s, in the cache %s", r->repo, r->revision,
                         r->cache);
    }
    buf_reset(&dir);
    buf_reset(&tree);
    return status;
}

/* A folder, or a file whose name says that it holds weights. */
static sumi_status use_path(char **out, const char *model, const struct stat *s, sumi_error *err) {
    if (!S_ISDIR(s->st_mode) && !has_suffix(model, ".gguf") && !has_suffix(model, ".safetensors"))
        return fail_with(err, SUMI_ERR_ARG,
                         "model \"%s\": expected a folder, a .gguf or a .safetensors file", model);
    *out = mem_string(model, strlen(model));
    return *out ? SUMI_OK : NO_MEMORY(err, strlen(model));
}

sumi_status hub_resolve(char **out, const char *model, const char *revision,
                        const struct hub_env *env, sumi_error *err) {
    *out = NULL;
    struct stat s;
    struct request r = {.model = model, .revision = is_set(revision) ? revision : "main"};
    if (stat(model, &s) == 0) return use_path(out, model, &s, err);
    if (!parse_model(&r) || (!r.want && has_suffix(model, ".gguf")) ||
        has_suffix(model, ".safetensors"))
        return fail_with(err, SUMI_ERR_MISSING,
                         "model \"%s\": no such file or folder, and not a repository's name "
                         "(ORG/NAME or ORG/NAME:FILE)",
                         model);
    sumi_status status = find_cache(&r, env, err);
    if (status == SUMI_OK) status = find_folder(&r, err);
    if (status == SUMI_OK) status = find_hash(&r, err);
    if (status == SUMI_OK) status = open_snapshot(out, &r, err);
    mem_free(r.cache);
    mem_free(r.folder);
    return status;
}
