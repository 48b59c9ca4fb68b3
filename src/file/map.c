/* A path flows in, its bytes flow out as one read-only mapping. Knows nothing about what is in
 * them, except how to tell a file that was never downloaded from a damaged one. */
#include "file/map.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static sumi_status map_descriptor(struct file_map *out, int fd, const char *path, sumi_error *err) {
    struct stat s;
    if (fstat(fd, &s) != 0) return fail_with(err, SUMI_ERR_IO, "%s: %s", path, strerror(errno));
    if (!S_ISREG(s.st_mode))
        return fail_with(err, SUMI_ERR_IO, "%s: a regular file is expected here", path);
    if (s.st_size == 0) return SUMI_OK;
    if ((uintmax_t)s.st_size > PTRDIFF_MAX)
        return fail_with(err, SUMI_ERR_LIMIT, "%s: too large for this machine's addresses", path);
    void *p = mmap(NULL, (size_t)s.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (p == MAP_FAILED)
        return fail_with(err, SUMI_ERR_IO, "%s: cannot be mapped: %s", path, strerror(errno));
    *out = (struct file_map){.data = p, .bytes = (size_t)s.st_size};
    return SUMI_OK;
}

sumi_status file_map_open(struct file_map *out, const char *path, sumi_error *err) {
    static const char pointer[] = "version https://git-lfs";
    *out = (struct file_map){0};
    /* O_NONBLOCK: opening a named pipe must not wait for a writer. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return fail_with(err, SUMI_ERR_IO, "%s: %s", path, strerror(errno));
    sumi_status status = map_descriptor(out, fd, path, err);
    close(fd);
    TRY(status);
    if (out->bytes < sizeof pointer || memcmp(out->data, pointer, sizeof pointer - 1) != 0)
        return SUMI_OK;
    file_map_close(out);
    return fail_with(err, SUMI_ERR_FORMAT,
                     "%s: a Git LFS pointer, not the file itself; fetch it with `git lfs pull`",
                     path);
}

void file_map_close(struct file_map *m) {
    if (m->data) munmap((void *)(uintptr_t)m->data, m->bytes);
    *m = (struct file_map){0};
}
