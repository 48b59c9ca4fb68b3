/* A folder flows in, sorted names flow out, and one of them when a name is short for it. Opens no
 * file and knows no container. */
#include "file/listing.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/mem.h"
#include "file/shards.h"

bool has_suffix(const char *name, const char *suffix) {
    size_t n = strlen(name), m = strlen(suffix);
    return n >= m && strcasecmp(name + n - m, suffix) == 0;
}

const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

char *path_join(const char *dir, const char *name) {
    struct buf b = {0};
    buf_puts(&b, dir);
    if (*dir && dir[strlen(dir) - 1] != '/') buf_putc(&b, '/');
    buf_puts(&b, name);
    return buf_take(&b);
}

static sumi_status add_name(struct listing *l, const char *name, sumi_error *err) {
    if (l->n == l->cap) {
        size_t cap = l->cap ? l->cap * 2 : 16;
        const char **p = mem_resize(l->name, cap, sizeof *p);
        if (!p) return NO_MEMORY(err, cap * sizeof *p);
        l->name = p;
        l->cap = cap;
    }
    const char *copy = strings_copy(&l->strings, name, strlen(name));
    if (!copy) return NO_MEMORY(err, strlen(name));
    l->name[l->n++] = copy;
    return SUMI_OK;
}

static sumi_status read_folder(struct listing *l, const char *root, const char *below,
                               const char *suffix, int depth, sumi_error *err);

/* One entry; `below` is the folder relative to the root, "" for the root itself. */
static sumi_status read_name(struct listing *l, const char *root, const char *below,
                             const char *name, const char *suffix, int depth, sumi_error *err) {
    struct stat s;
    sumi_status status = SUMI_OK;
    char *relative = path_join(below, name);
    char *full = relative ? path_join(root, relative) : NULL;
    if (!full) status = NO_MEMORY(err, strlen(root) + strlen(below) + strlen(name));
    else if (stat(full, &s) == 0 && S_ISDIR(s.st_mode))
        status = depth ? read_folder(l, root, relative, suffix, depth - 1, err) : SUMI_OK;
    else if (has_suffix(name, suffix)) status = add_name(l, relative, err);
    mem_free(full);
    mem_free(relative);
    return status;
}

static sumi_status read_folder(struct listing *l, const char *root, const char *below,
                               const char *suffix, int depth, sumi_error *err) {
    char *path = path_join(root, below);
    if (!path) return NO_MEMORY(err, strlen(root) + strlen(below));
    DIR *d = opendir(path);
    sumi_status status = d ? SUMI_OK : fail_with(err, SUMI_ERR_IO, "%s: %s", path, strerror(errno));
    mem_free(path);
    for (struct dirent *e; status == SUMI_OK && (e = readdir(d));)
        if (e->d_name[0] != '.') status = read_name(l, root, below, e->d_name, suffix, depth, err);
    if (d) closedir(d);
    return status;
}

sumi_status listing_read(struct listing *l, const char *dir, const char *suffix, int depth,
                         sumi_error *err) {
    *l = (struct listing){0};
    sumi_status status = read_folder(l, dir, "", suffix, depth, err);
    if (status != SUMI_OK) listing_reset(l);
    else if (l->n) qsort(l->name, l->n, sizeof *l->name, strings_compare);
    return status;
}

void listing_reset(struct listing *l) {
    mem_free(l->name);
    strings_reset(&l->strings);
    *l = (struct listing){0};
}

/* True if `part` is in s between characters that are neither letters, digits nor '_'. */
static bool has_word(const char *s, const char *part) {
    size_t n = strlen(part);
    for (const char *p = s; (p = strcasestr(p, part)); p++) {
        bool before = p == s || !(isalnum((unsigned char)p[-1]) || p[-1] == '_');
        if (before && !(isalnum((unsigned char)p[n]) || p[n] == '_')) return true;
    }
    return false;
}

/* How well `want` names the file: 0 not at all, 3 in full. */
static int match(const char *name, const char *want) {
    const char *base = base_name(name);
    struct split_name part;
    if (want && (strcmp(name, want) == 0 || strcmp(base, want) == 0)) return 3;
    if (strncasecmp(base, "mmproj", 6) == 0) return 0;
    if (split_name_parse(base, &part) && part.index != 1) return 0;
    if (!want || has_word(name, want)) return 2;
    return strcasestr(name, want) ? 1 : 0;
}

static sumi_status choice_error(const struct listing *l, const char *want, const char *where,
                                int rank, sumi_error *err) {
    enum { SHOWN = 8 };
    struct buf b = {0};
    size_t n = 0;
    for (size_t i = 0; i < l->n; i++)
        if (rank == 0 || match(l->name[i], want) == rank)
            if (n++ < SHOWN) buf_printf(&b, "%s%s", n > 1 ? ", " : "", l->name[i]);
    if (n > SHOWN) buf_printf(&b, " and %zu more", n - SHOWN);
    const char *names = b.failed ? "(out of memory)" : buf_text(&b);
    sumi_status status;
    if (l->n == 0) status = fail_with(err, SUMI_ERR_MISSING, "%s: no .gguf file is there", where);
    else if (rank == 0)
        status = fail_with(err, SUMI_ERR_MISSING, "%s: no .gguf file matches \"%s\"; there: %s",
                           where, want ? want : "", names);
    else
        status = fail_with(err, SUMI_ERR_ARG, "%s: %zu .gguf files%s%s%s, name one of them: %s",
                           where, n, want ? " match \"" : " are there", want ? want : "",
                           want ? "\"" : "", names);
    buf_reset(&b);
    return status;
}

sumi_status listing_choose_gguf(const struct listing *l, const char *want, const char *where,
                                const char **out, sumi_error *err) {
    int best = 0;
    size_t n = 0;
    for (size_t i = 0; i < l->n; i++) {
        int rank = match(l->name[i], want);
        if (rank > best) {
            best = rank;
            n = 0;
            *out = l->name[i];
        }
        n += rank && rank == best;
    }
    return n == 1 ? SUMI_OK : choice_error(l, want, where, best, err);
}
