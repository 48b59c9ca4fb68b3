/* Memory limits as Linux tells them: /proc/meminfo and the control group's files. Whatever cannot
 * be read is no limit. */
#include "base/machine.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* First number in a file after `key` at a line's start ("" for the file's beginning). "max", an
 * absent file and anything else that is no number give false. */
static bool read_number(const char *path, const char *key, int64_t *out) {
    FILE *f = fopen(path, "r");
    char line[256];
    bool found = false;
    if (!f) return false;
    while (!found && fgets(line, sizeof line, f)) {
        size_t n = strlen(key);
        char *end;
        if (strncmp(line, key, n) != 0) continue;
        long long v = strtoll(line + n, &end, 10);
        if (end == line + n) break;
        *out = v;
        found = true;
    }
    fclose(f);
    return found;
}

/* What a control group of either version leaves; page cache that can be dropped counts as free. */
static void group_limit(const char *limit, const char *usage, const char *stat, const char *cache,
                        int64_t *left) {
    int64_t max, used, file = 0;
    if (!read_number(limit, "", &max) || !read_number(usage, "", &used)) return;
    if (max >= INT64_MAX / 2) return;
    read_number(stat, cache, &file);
    int64_t free = max - used + file;
    if (free < 0) free = 0;
    if (*left < 0 || free < *left) *left = free;
}

int64_t machine_memory_available(void) {
    int64_t left = -1, kib;
    if (read_number("/proc/meminfo", "MemAvailable:", &kib)) left = kib * 1024;
    group_limit("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current",
                "/sys/fs/cgroup/memory.stat", "inactive_file", &left);
    group_limit("/sys/fs/cgroup/memory/memory.limit_in_bytes",
                "/sys/fs/cgroup/memory/memory.usage_in_bytes", "/sys/fs/cgroup/memory/memory.stat",
                "total_inactive_file", &left);
    return left;
}
