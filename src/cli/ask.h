/* One question to an engine in this process: prompt ids in, parsed pieces of the answer out. Shared
 * by run and chat. */
#ifndef SUMI_CLI_ASK_H
#define SUMI_CLI_ASK_H

#include <signal.h>

#include "cli/setup.h"

struct ask {
    const struct ids *prompt;
    const struct sampling *sampling;
    bool raw;                           /* no parser: everything is content */
    bool thinking;                      /* whether the template arguments leave thinking on */
    volatile sig_atomic_t *interrupted; /* set to stop the answer early; or NULL */
    /* Called on the asking thread for every piece that became certain. */
    void (*on_delta)(void *user, const struct delta *d);
    void *user;
};

struct asked {
    enum finish finish;
    int32_t n_prompt, n_output, n_reasoning;
    double first_s, total_s; /* to the first token, to the end */
    struct answer *answer;   /* for answer_message(); NULL when raw */
    struct buf text;         /* the answer when raw */
};

/* The options over the model's defaults, max_tokens cut to what fits behind n_prompt. *stop_len is
 * owned (mem_free); the stop strings are borrowed from the options. */
sumi_status ask_sampling(const struct setup *s, size_t n_prompt, bool raw, struct sampling *out,
                         size_t **stop_len, sumi_error *err);

sumi_status ask(struct setup *s, const struct ask *q, struct asked *out, sumi_error *err);
void asked_reset(struct asked *a);
/* "stop", "length", "abort". */
const char *finish_name(enum finish f);

/* Renders messages through the template; reasoning effort and template arguments from options. */
sumi_status ask_render(const struct setup *s, struct json_object *messages, struct ids *out,
                       sumi_error *err);
/* False when options switch the template's thinking off. */
bool ask_thinking(const struct setup *s);

/* {"role": role, "content": text} appended to a conversation. */
sumi_status message_add(struct json_object *messages, const char *role, const char *text, size_t n,
                        sumi_error *err);

#endif
