/* Pieces of an answer to stdout. Knows terminals, nothing of models. */
#include "cli/show.h"

#include <stdio.h>
#include <unistd.h>

void show_begin(struct show *s, const struct options *o, bool silent) {
    bool terminal = isatty(STDOUT_FILENO);
    *s = (struct show){.silent = silent,
                       .reasoning = opt_given(o, "show-reasoning") ? opt_bool(o, "show-reasoning")
                                                                   : terminal,
                       .colour = terminal,
                       .at_line_start = true};
}

static void put(struct show *s, const char *text, size_t n) {
    if (!n) return;
    s->failed |= fwrite(text, 1, n, stdout) != n;
    s->at_line_start = text[n - 1] == '\n';
}

static void line_break(struct show *s) {
    if (!s->at_line_start) put(s, "\n", 1);
}

static void leave_reasoning(struct show *s) {
    if (!s->in_reasoning) return;
    line_break(s);
    if (s->colour) fputs("\033[0m", stdout);
    s->in_reasoning = false;
    s->any = false;
}

/* Blank lines that only separate an answer from what came before it are not shown. */
static void put_content(struct show *s, const char *text, size_t n) {
    while (!s->any && n && (*text == '\n' || *text == '\r')) text++, n--;
    if (n) s->any = true;
    put(s, text, n);
}

void show_delta(void *show, const struct delta *d) {
    struct show *s = show;
    if (s->silent || (d->kind == DELTA_REASONING && !s->reasoning)) return;
    switch (d->kind) {
    case DELTA_REASONING:
        if (!s->in_reasoning && s->colour) fputs("\033[2m", stdout);
        if (!s->in_reasoning) s->any = false;
        s->in_reasoning = true;
        put_content(s, d->text, d->n);
        break;
    case DELTA_CONTENT:
        leave_reasoning(s);
        put_content(s, d->text, d->n);
        break;
    case DELTA_CALL_START:
        leave_reasoning(s);
        line_break(s);
        put(s, "call ", 5);
        put(s, d->text, d->n);
        put(s, " ", 1);
        s->any = true;
        break;
    case DELTA_CALL_ARGS: put(s, d->text, d->n); break;
    }
    fflush(stdout);
}

void show_end(struct show *s) {
    if (s->silent) return;
    leave_reasoning(s);
    line_break(s);
    fflush(stdout);
}

void show_stats(const struct asked *a) {
    double decode = a->total_s - a->first_s;
    fprintf(stderr,
            "%d prompt tokens in %.2f s (%.1f/s), %d answer tokens in %.2f s (%.1f/s), %s\n",
            a->n_prompt, a->first_s, a->first_s > 0 ? a->n_prompt / a->first_s : 0, a->n_output,
            decode, decode > 0 ? (a->n_output - 1) / decode : 0, finish_name(a->finish));
}
