/* Output dialects: how a model writes reasoning, content and tool calls, parsed while it streams.
 * A dialect is a table entry; the framework (answer.c) does what all share. */
#ifndef SUMI_CHAT_DIALECT_H
#define SUMI_CHAT_DIALECT_H

#include "base/json.h"
#include "text/stream.h"

struct dialect;

/* By parser name ("glm47", "glm45"); NULL if unknown. `names` for messages: comma separated. */
const struct dialect *dialect_find(const char *name);
const char *dialect_names(void);

enum delta_kind {
    DELTA_REASONING,  /* text */
    DELTA_CONTENT,    /* text */
    DELTA_CALL_START, /* text = the complete name; call = its index */
    DELTA_CALL_ARGS   /* text = a fragment of the JSON arguments */
};
struct delta {
    enum delta_kind kind;
    int32_t call;
    const char *text; /* borrowed until the next call on the parser */
    size_t n;
};

struct answer_options {
    const struct dialect *reasoning; /* NULL: reasoning markers are ordinary text */
    const struct dialect *tools;     /* NULL: call markup is ordinary text */
    struct json_object *tool_list;   /* the request's tools (array) or NULL; kept referenced */
    bool drop_calls;       /* tool_choice none: call markup is removed, no call is returned */
    bool single_call;      /* parallel_tool_calls false: only the first call */
    bool thinking;         /* whether the template arguments leave thinking on */
    const int32_t *prompt; /* [n_prompt] decides the start state; borrowed */
    size_t n_prompt;
};

struct answer;

sumi_status answer_open(struct answer **out, const struct tokenizer *t,
                        const struct answer_options *options, sumi_error *err);
void answer_close(struct answer *a);

/* Feeds released pieces; *deltas [*n] is what became certain. Adjacent deltas of one kind and call
 * are merged. Concatenated deltas do not depend on how the text was cut. */
sumi_status answer_push(struct answer *a, const struct piece *pieces, size_t n_piece,
                        const struct delta **deltas, size_t *n, sumi_error *err);

/* The end. `complete` is false when the budget ran out: a call in progress is then left with
 * unterminated arguments. */
sumi_status answer_finish(struct answer *a, bool complete, const struct delta **deltas, size_t *n,
                          sumi_error *err);

/* Counts and state after any push. */
int32_t answer_calls(const struct answer *a);
bool answer_in_reasoning(const struct answer *a);
/* Tokens between the reasoning markers, the markers not counted: call once per sampled token,
 * before its pieces are pushed. */
void answer_count_token(struct answer *a, int32_t id);
int32_t answer_reasoning_tokens(const struct answer *a);

/* The whole-response form, from the same deltas: strips content when calls are present, null where
 * the API says null. */
struct answer_message {
    const char *reasoning, *content; /* NULL: null in the response; borrowed from the parser */
    size_t reasoning_len, content_len;
    struct answer_call {
        const char *name, *arguments;
        size_t name_len, arguments_len;
    } * call;
    size_t n_call;
};
/* Needs every delta to have been collected: valid after answer_finish. */
sumi_status answer_message(struct answer *a, struct answer_message *out, sumi_error *err);

#endif
