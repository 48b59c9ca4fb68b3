/* A chat request and its answer. */
#ifndef SUMI_SERVE_CHAT_H
#define SUMI_SERVE_CHAT_H

#include "chat/dialect.h"
#include "serve/generation.h"

/* A piece of a call that was not sent yet: its start, arguments, or both. */
struct call_part {
    int32_t call;
    bool start;
    struct buf name, args;
};

struct chat_choice {
    struct answer *answer;         /* NULL: no parser is configured, all text is content */
    struct buf content, reasoning; /* not yet sent; of a whole answer without parser: all */
    struct call_part *part;        /* [n_part] not yet sent, owned */
    size_t n_part, cap_part;
    struct buf logprobs, ids; /* JSON list members, not yet sent */
    bool closed;              /* the last chunk was made */
    bool parsed_call;         /* a call was seen */
};

/* What tools and tool_choice come to. */
struct tool_rules {
    struct json_object *list; /* the request's tools, or NULL; borrowed */
    bool drop;                /* calls are removed from the answer */
    bool single;              /* only the first call */
    bool forced, named;       /* required or named; named */
    bool in_prompt;           /* the template sees the tools */
};

struct chat {
    struct generation g;        /* first: generation_api functions cast to this */
    struct chat_choice *choice; /* [g.n_choice] owned */
    struct tool_rules tools;    /* list is not to be used after the request was read */
    bool include_reasoning;
    bool return_prompt_text;
    char *role;
    struct buf echo;            /* content to put before the answer */
    struct buf prompt_text;     /* rendered */
    struct buf prompt_logprobs; /* the value, as JSON */
};

extern const struct generation_api chat_api;

/* chat_tools.c */
void tool_schema(struct schema_report *r, struct json_object *body);
sumi_status tool_rules_read(struct tool_rules *t, struct json_object *body,
                            const struct server_config *config, sumi_error *err);

/* chat_answer.c: opens the choices' parsers; the prompt decides their start. */
sumi_status chat_open(struct chat *x, const struct ids *prompt, bool thinking, sumi_error *err);
/* finish_reason as JSON text. */
const char *chat_finish_text(const struct chat *x, const struct choice *c);
int64_t chat_reasoning_tokens(const struct chat *x, const struct choice *one); /* NULL: all */

/* chat_stream.c */
void chat_flush(struct generation *g, struct choice *c);
void chat_finish_stream(struct generation *g);

#endif
