/* Output dialects: how a model writes reasoning, content and tool calls, parsed while it streams.
 * A dialect is a table entry (parse.h); the framework (answer.c) does what all share.
 *
 * A marker is recognised by token id where the vocabulary has it as an added token: spelled by
 * ordinary tokens it is then text. Special tokens that are no markers are dropped, so the stream
 * must let them through (skip_special false). Whatever turns out not to be a call, above all the
 * name of a tool that was not declared, is given back as text of the state it came from: reasoning
 * that only quotes a call stays reasoning. */
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
    const char *text; /* not NUL-terminated; borrowed until the next call on the parser */
    size_t n;         /* never 0 */
};

struct answer_options {
    const struct dialect *reasoning; /* NULL: reasoning markers are ordinary text */
    const struct dialect *tools;     /* NULL: call markup is ordinary text. Not another dialect than
                                        `reasoning` (SUMI_ERR_ARG); both NULL: all is content */
    struct json_object *tool_list;   /* the request's tools (array) or NULL: any name is a call;
                                        kept referenced */
    bool drop_calls;       /* tool_choice none: call markup is removed, no call is returned */
    bool single_call;      /* parallel_tool_calls false: only the first call */
    bool thinking;         /* whether the template arguments leave thinking on; a prompt that ends
                              inside reasoning wins over false */
    const int32_t *prompt; /* [n_prompt] decides the start state; borrowed */
    size_t n_prompt;
};

struct answer;

/* `t` is kept until close. */
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

/* The whole-response form, from the same deltas: strips content when calls are present (as the
 * dialect does), counts content before an end of reasoning without a beginning as reasoning, null
 * where the API says null. */
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
