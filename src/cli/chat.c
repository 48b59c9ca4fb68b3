/* sumi chat: a conversation in the terminal. Lines come in through libedit (plain reading when
 * standard input is no terminal), answers go out while they are made. */
#include <editline/readline.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/ask.h"
#include "base/mem.h"
#include "cli/cli.h"
#include "cli/show.h"

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal) {
    (void)signal;
    interrupted = 1;
}

static const char help[] = "/reset     forget the conversation\n"
                           "/help      this list\n"
                           "/quit      end (also Ctrl-D)\n"
                           "Ctrl-C     stop an answer\n"
                           "A line that ends with a backslash goes on in the next one.\n";

struct chat {
    struct setup *s;
    struct json_object *messages;
    bool terminal;
};

static sumi_status reset(struct chat *c, sumi_error *err) {
    const char *system = opt_string(c->s->o, "system-prompt");
    json_object_put(c->messages);
    c->messages = json_object_new_array();
    if (!c->messages) return NO_MEMORY(err, 64);
    return system ? message_add(c->messages, "system", system, strlen(system), err) : SUMI_OK;
}

/* One line without its end; NULL at the end of input. free() it: libedit and getline allocate so.
 */
static char *read_line(const struct chat *c, const char *prompt) {
    while (c->terminal) {
        interrupted = 0;
        char *line = readline(prompt);
        if (line || !interrupted) return line;
        fputs("\n(Ctrl-D or /quit ends)\n", stderr);
    }
    char *line = NULL;
    size_t cap = 0;
    ssize_t n = getline(&line, &cap, stdin);
    if (n < 0) {
        free(line);
        return NULL;
    }
    while (n && (line[n - 1] == '\n' || line[n - 1] == '\r')) line[--n] = 0;
    return line;
}

/* A message of one or several lines; false at the end of input. */
static bool read_message(const struct chat *c, struct buf *out) {
    buf_clear(out);
    for (const char *prompt = "> ";; prompt = ". ") {
        char *line = read_line(c, prompt);
        if (!line) return out->len > 0;
        size_t n = strlen(line);
        bool more = n && line[n - 1] == '\\';
        buf_put(out, line, n - more);
        free(line);
        if (!more) return true;
        buf_putc(out, '\n');
    }
}

static sumi_status reply(struct chat *c, sumi_error *err) {
    struct setup *s = c->s;
    struct ids ids = {0};
    struct sampling sampling;
    size_t *stop_len = NULL;
    struct asked a = {0};
    struct show show;
    sumi_status status = ask_render(s, c->messages, NULL, &ids, err);
    if (status == SUMI_OK) status = ask_sampling(s, ids.n, false, &sampling, &stop_len, err);
    show_begin(&show, s->o, false);
    struct ask q = {.prompt = &ids,
                    .sampling = &sampling,
                    .thinking = ask_thinking(s),
                    .interrupted = &interrupted,
                    .on_delta = show_delta,
                    .user = &show};
    interrupted = 0;
    if (status == SUMI_OK) status = ask(s, &q, &a, err);
    show_end(&show);
    if (status == SUMI_OK && a.finish == FINISH_LENGTH) fprintf(stderr, "(cut off by length)\n");
    if (status == SUMI_OK && opt_bool(s->o, "stats")) show_stats(&a);
    if (status == SUMI_OK) status = message_add_answer(c->messages, &a, err);
    asked_reset(&a);
    mem_free(stop_len);
    mem_free(ids.data);
    return status;
}

/* Adds the message, answers it; a question that cannot be answered is taken back. */
static sumi_status say(struct chat *c, const struct buf *line, sumi_error *err) {
    size_t before = json_object_array_length(c->messages);
    TRY(message_add(c->messages, "user", line->data, line->len, err));
    sumi_status status = reply(c, err);
    if (status == SUMI_OK || status == SUMI_ERR_MEMORY || status == SUMI_ERR_STATE) return status;
    fprintf(stderr, "sumi: %s; /reset forgets the conversation\n", err->msg);
    json_object_array_del_idx(c->messages, before, json_object_array_length(c->messages) - before);
    return SUMI_OK;
}

static sumi_status loop(struct chat *c, sumi_error *err) {
    struct buf line = {.max = 1 << 20};
    sumi_status status = reset(c, err);
    while (status == SUMI_OK && read_message(c, &line)) {
        if (line.failed) {
            fprintf(stderr, "sumi: a message may have at most 1 MiB\n");
            continue;
        }
        const char *text = buf_text(&line);
        if (!*text) continue;
        if (c->terminal) add_history(text);
        if (strcmp(text, "/quit") == 0 || strcmp(text, "/exit") == 0) break;
        if (strcmp(text, "/help") == 0) fputs(help, stderr);
        else if (strcmp(text, "/reset") == 0) status = reset(c, err);
        else if (*text == '/')
            fprintf(stderr, "sumi: unknown command %.40s; /help lists them\n", text);
        else status = say(c, &line, err);
    }
    buf_reset(&line);
    return status;
}

static sumi_status chat(struct setup *s, const struct options *o, sumi_error *err) {
    struct chat c = {.s = s, .terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO)};
    TRY(setup_load(s, o, WEIGHTS_FILE, err));
    TRY(setup_plan(s, err));
    TRY(setup_chat(s, err));
    if (!s->chat_template)
        return fail_param(err, SUMI_ERR_MISSING, "chat-template",
                          "%s has no chat template; give one with --chat-template, or use sumi run "
                          "--raw",
                          s->name);
    TRY(setup_engine(s, err));
    if (c.terminal)
        fprintf(stderr, "%s, %d tokens of context. /help lists the commands.\n", s->name,
                s->plan.max_model_len);
    /* A signal must end a read, so that Ctrl-C at the prompt is seen. */
    struct sigaction catch = {.sa_handler = on_interrupt};
    rl_catch_signals = 0;
    if (c.terminal) sigaction(SIGINT, &catch, NULL);
    sumi_status status = loop(&c, err);
    json_object_put(c.messages);
    return status;
}

int verb_chat(const struct options *o) {
    struct setup s = {0};
    sumi_error err = {0};
    cli_log_setup(o);
    sumi_status status = chat(&s, o, &err);
    setup_close(&s);
    return status == SUMI_OK ? EXIT_OK : cli_fail(&err);
}
