/* Tokenizer at the command line, for the Python tests.
 *   tok_tool encode FILE [plain]   records (u32 length, bytes) from stdin; a line of ids for each,
 *                                  or a line "error: ..."; plain: special tokens not recognised
 *   tok_tool decode FILE [skip]    lines of ids from stdin; records of text for each
 *   tok_tool split PATTERN BEHAVIOR [invert]   records from stdin; a line of piece lengths in bytes
 *                                  for each; BEHAVIOR: number of enum split_behavior
 *   tok_tool time FILE TEXT        seconds to open, seconds and MB/s to encode the file TEXT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "text/pretok.h"
#include "text/tokenizer.h"

static int fail(const sumi_error *err) {
    fprintf(stderr, "tok_tool: %s\n", err->msg);
    return 1;
}

/* The next record of stdin. */
static bool read_record(struct buf *text) {
    uint32_t n;
    char chunk[4096];
    buf_clear(text);
    if (fread(&n, 4, 1, stdin) != 1) return false;
    while (text->len < n) {
        size_t want = n - text->len < sizeof chunk ? n - text->len : sizeof chunk;
        if (fread(chunk, 1, want, stdin) != want) return false;
        buf_put(text, chunk, want);
    }
    return true;
}

static int encode(const struct tokenizer *t, bool specials) {
    struct ids ids = {0};
    struct buf text = {0};
    while (read_record(&text)) {
        sumi_error err = {0};
        ids.n = 0;
        if (tokenizer_encode(t, buf_text(&text), text.len, NULL, specials, &ids, &err) != SUMI_OK)
            printf("error: %s", err.msg);
        for (size_t i = 0; i < ids.n; i++) printf(i ? " %d" : "%d", ids.data[i]);
        putchar('\n');
    }
    mem_free(ids.data);
    buf_reset(&text);
    return 0;
}

static sumi_status print_length(void *ctx, const char *piece, size_t n, sumi_error *err) {
    (void)ctx, (void)piece, (void)err;
    printf("%zu ", n);
    return SUMI_OK;
}

static int split(const char *pattern, int behavior, bool invert) {
    sumi_error err = {0};
    struct pretok p;
    struct pretok_work w = {0};
    struct buf text = {0};
    struct pretok_step step = {.kind = PRETOK_SPLIT,
                               .pattern = pattern,
                               .behavior = (enum split_behavior)behavior,
                               .invert = invert};
    if (pretok_open(&p, &step, 1, &err) != SUMI_OK) return fail(&err);
    while (read_record(&text)) {
        if (pretok_run(&p, &w, buf_text(&text), text.len, print_length, NULL, &err) != SUMI_OK)
            printf("error: %s", err.msg);
        putchar('\n');
    }
    pretok_work_reset(&w);
    pretok_close(&p);
    buf_reset(&text);
    return 0;
}

static int decode(const struct tokenizer *t, bool skip) {
    char *line = NULL;
    size_t cap = 0;
    struct ids ids = {0};
    struct buf text = {0};
    while (getline(&line, &cap, stdin) > 0) {
        ids.n = 0;
        buf_clear(&text);
        for (char *s = line, *end; s; s = end) {
            long id = strtol(s, &end, 10);
            if (end == s || !ids_push(&ids, (int32_t)id)) break;
        }
        tokenizer_decode(t, ids.data, ids.n, skip, &text);
        uint32_t n = (uint32_t)text.len;
        fwrite(&n, 4, 1, stdout);
        fwrite(buf_text(&text), 1, text.len, stdout);
    }
    free(line);
    mem_free(ids.data);
    buf_reset(&text);
    return 0;
}

static int time_text(const struct tokenizer *t, double open_s, const char *path) {
    char *text;
    size_t n;
    sumi_error err = {0};
    struct ids ids = {0};
    if (file_read(path, (size_t)1 << 30, &text, &n, &err) != SUMI_OK) return fail(&err);
    double from = clock_seconds();
    if (tokenizer_encode(t, text, n, NULL, true, &ids, &err) != SUMI_OK) return fail(&err);
    double s = clock_seconds() - from;
    printf("open %.3f s, encode %zu bytes to %zu ids in %.3f s, %.1f MB/s\n", open_s, n, ids.n, s,
           (double)n / s / 1e6);
    mem_free(ids.data);
    mem_free(text);
    return 0;
}

int main(int argc, char **argv) {
    if (argc < 3) return 2;
    if (strcmp(argv[1], "split") == 0)
        return argc < 4 ? 2 : split(argv[2], atoi(argv[3]), argc > 4);
    struct tokenizer *t;
    sumi_error err = {0};
    double from = clock_seconds();
    if (tokenizer_open_json(&t, argv[2], &err) != SUMI_OK) return fail(&err);
    double open_s = clock_seconds() - from;
    int rc = 2;
    if (strcmp(argv[1], "encode") == 0) rc = encode(t, argc < 4);
    else if (strcmp(argv[1], "decode") == 0) rc = decode(t, argc >= 4);
    else if (strcmp(argv[1], "time") == 0 && argc >= 4) rc = time_text(t, open_s, argv[3]);
    tokenizer_close(t);
    return rc;
}
