/* A temporary folder for tests that need files. */
#ifndef SUMI_TESTS_SCRATCH_H
#define SUMI_TESTS_SCRATCH_H

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char scratch_dir[64];

static inline void scratch_open(void) {
    strcpy(scratch_dir, P_tmpdir "/sumi-test-XXXXXX");
    if (!mkdtemp(scratch_dir)) fail_msg("no temporary folder can be made");
}

static inline int scratch_unlink(const char *path, const struct stat *s, int type, struct FTW *f) {
    (void)s, (void)type, (void)f;
    return remove(path);
}

static inline void scratch_close(void) {
    nftw(scratch_dir, scratch_unlink, 16, FTW_DEPTH | FTW_PHYS);
}

/* The path of a name in the folder; valid until the call after the next seven. */
static inline const char *scratch_path(const char *name) {
    static char path[8][1024];
    static int turn;
    turn = (turn + 1) % 8;
    snprintf(path[turn], sizeof path[turn], "%s/%s", scratch_dir, name);
    return path[turn];
}

/* Makes the folders above a name. */
static inline void scratch_parents(const char *name) {
    char path[1024];
    snprintf(path, sizeof path, "%s", scratch_path(name));
    for (char *p = path + strlen(scratch_dir) + 1; (p = strchr(p, '/')); *p++ = '/') {
        *p = 0;
        mkdir(path, 0700);
    }
}

static inline void scratch_write(const char *name, const void *data, size_t n) {
    scratch_parents(name);
    FILE *f = fopen(scratch_path(name), "wb");
    if (!f || fwrite(data, 1, n, f) != n || fclose(f) != 0) fail_msg("%s: cannot write", name);
}

static inline void scratch_text(const char *name, const char *text) {
    scratch_write(name, text, strlen(text));
}

static inline void scratch_link(const char *name, const char *target) {
    scratch_parents(name);
    if (symlink(target, scratch_path(name)) != 0) fail_msg("%s: cannot link", name);
}

#endif
