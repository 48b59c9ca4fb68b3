/* sumi run: one prompt, one answer on stdout while it is made. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/jsonw.h"
#include "base/mem.h"
#include "cli/ask.h"
#include "cli/cli.h"
#include "cli/show.h"

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal) {
    (void)signal;
    interrupted = 1;
}

/* The prompt: argument, --prompt, or standard input. */
static sumi_status prompt_text(const struct options *o, char **own, const char **text, size_t *n,
                               sumi_error *err) {
    *own = NULL;
    *text = opt_string(o, "prompt");
    if (*text && strcmp(*text, "-") != 0) {
        *n = strlen(*text);
        return SUMI_OK;
    }
    TRY(cli_read_stdin(own, n, err));
    *text = *own;
    /* The line's end of `echo question |` is not part of the question. */
    while (*n && !opt_bool(o, "raw") && ((*text)[*n - 1] == '\n' || (*text)[*n - 1] == '\r')) --*n;
    return *n ? SUMI_OK
              : fail_param(err, SUMI_ERR_ARG, "prompt",
                           "the prompt is empty: give it as second argument, with --prompt, or on "
                           "standard input");
}

static sumi_status render(const struct setup *s, const char *text, size_t n, struct ids *out,
                          sumi_error *err) {
    const char *system = opt_string(s->o, "system-prompt");
    if (opt_bool(s->o, "raw"))
        return tokenizer_encode(s->loaded.tokenizer, text, n, NULL, true, out, err);
    struct json_object *messages = json_object_new_array();
    sumi_status status = messages ? SUMI_OK : NO_MEMORY(err, 64);
    if (status == SUMI_OK && system)
        status = message_add(messages, "system", system, strlen(system), err);
    if (status == SUMI_OK) status = message_add(messages, "user", text, n, err);
    if (status == SUMI_OK) status = ask_render(s, messages, out, err);
    json_object_put(messages);
    return status;
}

static void put_member(struct buf *b, const char *name, const char *text, size_t n) {
    buf_printf(b, "\"%s\":", name);
    if (text) json_put_string(b, text, n);
    else buf_puts(b, "null");
}

static sumi_status put_json(struct asked *a, struct buf *b, sumi_error *err) {
    struct answer_message m = {.content = buf_text(&a->text), .content_len = a->text.len};
    if (a->answer) TRY(answer_message(a->answer, &m, err));
    buf_putc(b, '{');
    put_member(b, "content", m.content, m.content_len);
    buf_putc(b, ',');
    put_member(b, "reasoning", m.reasoning, m.reasoning_len);
    buf_puts(b, ",\"tool_calls\":[");
    for (size_t i = 0; i < m.n_call; i++) {
        buf_puts(b, i ? ",{" : "{");
        put_member(b, "name", m.call[i].name, m.call[i].name_len);
        buf_putc(b, ',');
        put_member(b, "arguments", m.call[i].arguments, m.call[i].arguments_len);
        buf_putc(b, '}');
    }
    buf_printf(
        b,
        "],\"finish_reason\":\"%s\",\"usage\":{\"prompt_tokens\":%d,\"completion_tokens\":%d,"
        "\"reasoning_tokens\":%d}}\n",
        finish_name(a->finish), a->n_prompt, a->n_output, a->n_reasoning);
    return b->failed ? NO_MEMORY(err, b->len) : SUMI_OK;
}

static sumi_status answer_prompt(struct setup *s, const struct ids *prompt, sumi_error *err) {
    const struct options *o = s->o;
    bool raw = opt_bool(o, "raw"), json = opt_bool(o, "json");
    struct sampling sampling;
    size_t *stop_len = NULL;
    struct asked a = {0};
    struct show show;
    struct buf out = {0};
    sumi_status status = ask_sampling(s, prompt->n, raw, &sampling, &stop_len, err);
    show_begin(&show, o, json);
    struct ask q = {.prompt = prompt,
                    .sampling = &sampling,
                    .raw = raw,
                    .thinking = ask_thinking(s),
                    .interrupted = &interrupted,
                    .on_delta = show_delta,
                    .user = &show};
    if (status == SUMI_OK) status = ask(s, &q, &a, err);
    show_end(&show);
    if (status == SUMI_OK && json) status = put_json(&a, &out, err);
    if (status == SUMI_OK && json && !cli_print(&out))
        status = fail_with(err, SUMI_ERR_IO, "standard output takes no more");
    if (status == SUMI_OK && opt_bool(o, "stats")) show_stats(&a);
    buf_reset(&out);
    asked_reset(&a);
    mem_free(stop_len);
    return status;
}

static sumi_status run(struct setup *s, const struct options *o, sumi_error *err) {
    const char *text;
    char *own = NULL;
    size_t n = 0;
    struct ids ids = {0};
    TRY(setup_load(s, o, WEIGHTS_FILE, err));
    TRY(setup_plan(s, err));
    TRY(setup_chat(s, err));
    sumi_status status = prompt_text(o, &own, &text, &n, err);
    if (status == SUMI_OK) status = setup_engine(s, err);
    if (status == SUMI_OK) status = render(s, text, n, &ids, err);
    if (status == SUMI_OK) status = answer_prompt(s, &ids, err);
    mem_free(own);
    mem_free(ids.data);
    return status;
}

int verb_run(const struct options *o) {
    struct setup s = {0};
    sumi_error err = {0};
    struct sigaction stop = {.sa_handler = on_interrupt, .sa_flags = (int)SA_RESETHAND};
    cli_log_setup(o);
    sigaction(SIGINT, &stop, NULL);
    sumi_status status = run(&s, o, &err);
    setup_close(&s);
    if (status != SUMI_OK) return cli_fail(&err);
    return interrupted ? 128 + SIGINT : EXIT_OK;
}
