/* sumi tokenize: text to ids, or ids to text, with a model's tokenizer alone. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/jsonw.h"
#include "base/mem.h"
#include "cli/cli.h"
#include "cli/setup.h"

/* A folder or file that has a tokenizer needs no model beside it. */
static sumi_status open_tokenizer(struct setup *s, const struct options *o, struct tokenizer **own,
                                  const struct tokenizer **out, sumi_error *err) {
    const char *model = opt_string(o, "model");
    struct stat st;
    struct buf path = {0};
    *own = NULL;
    if (model && !opt_string(o, "tokenizer")) {
        size_t n = strlen(model);
        if (n > 5 && strcmp(model + n - 5, ".json") == 0) buf_puts(&path, model);
        else buf_printf(&path, "%s/tokenizer.json", model);
    }
    sumi_status status = path.failed ? NO_MEMORY(err, 64) : SUMI_OK;
    if (status == SUMI_OK && path.len && stat(buf_text(&path), &st) == 0) {
        status = tokenizer_open_json(own, buf_text(&path), err);
        *out = *own;
    } else if (status == SUMI_OK) {
        status = setup_load(s, o, WEIGHTS_NONE, err);
        *out = s->loaded.tokenizer;
        if (status == SUMI_OK && !*out)
            status = fail_with(err, SUMI_ERR_MISSING, "%s has no tokenizer", s->name);
    }
    buf_reset(&path);
    return status;
}

/* Ids separated by commas and white space; brackets around them are fine. */
static sumi_status read_ids(const struct tokenizer *t, const char *text, struct ids *out,
                            sumi_error *err) {
    for (;;) {
        text += strspn(text, " \t\r\n,[]");
        if (!*text) return SUMI_OK;
        char *end;
        long id = strtol(text, &end, 10);
        if (end == text || id < 0 || id >= tokenizer_size(t))
            return fail_with(err, SUMI_ERR_ARG,
                             "expected token ids from 0 to %d separated by commas or blanks, found "
                             "\"%.20s\"",
                             tokenizer_size(t) - 1, text);
        if (!ids_push(out, (int32_t)id)) return NO_MEMORY(err, out->n * sizeof id);
        text = end;
    }
}

static void put_ids(const struct tokenizer *t, const struct ids *ids, const struct options *o,
                    struct buf *out) {
    if (opt_bool(o, "count")) {
        buf_printf(out, "%zu\n", ids->n);
        return;
    }
    bool pieces = opt_bool(o, "pieces");
    for (size_t i = 0; i < ids->n; i++) {
        if (!pieces) {
            buf_printf(out, "%s%d", i ? "," : "", ids->data[i]);
            continue;
        }
        size_t n = 0;
        const char *bytes = tokenizer_bytes(t, ids->data[i], &n);
        buf_printf(out, "%8d  ", ids->data[i]);
        json_put_string(out, bytes ? bytes : "", n);
        buf_putc(out, '\n');
    }
    if (!pieces) buf_putc(out, '\n');
}

static sumi_status tokenize(struct setup *s, const struct options *o, struct buf *out,
                            sumi_error *err) {
    struct tokenizer *own;
    const struct tokenizer *t = NULL;
    const char *text = opt_string(o, "text");
    char *input = NULL;
    size_t n = text ? strlen(text) : 0;
    struct ids ids = {0};
    sumi_status status = open_tokenizer(s, o, &own, &t, err);
    if (status == SUMI_OK && !text) {
        status = cli_read_stdin(&input, &n, err);
        text = input;
    }
    bool special = opt_bool(o, "special");
    if (status == SUMI_OK && opt_bool(o, "decode")) {
        status = read_ids(t, text, &ids, err);
        if (status == SUMI_OK) {
            tokenizer_decode(t, ids.data, ids.n, !special, out);
            buf_putc(out, '\n');
        }
    } else if (status == SUMI_OK) {
        status = tokenizer_encode(t, text, n, NULL, special, &ids, err);
        if (status == SUMI_OK) put_ids(t, &ids, o, out);
    }
    mem_free(ids.data);
    mem_free(input);
    tokenizer_close(own);
    return status;
}

int verb_tokenize(const struct options *o) {
    struct setup s = {0};
    struct buf out = {0};
    sumi_error err = {0};
    cli_log_setup(o);
    sumi_status status = tokenize(&s, o, &out, &err);
    setup_close(&s);
    if (status != SUMI_OK) {
        buf_reset(&out);
        return cli_fail(&err);
    }
    return cli_print(&out) ? EXIT_OK : EXIT_FAILED;
}
