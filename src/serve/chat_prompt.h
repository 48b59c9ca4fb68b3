/* From a chat request's fields to prompt ids: messages, tools, template arguments. Shared by the
 * chat route and /tokenize. */
#ifndef SUMI_SERVE_CHAT_PROMPT_H
#define SUMI_SERVE_CHAT_PROMPT_H

#include "serve/schema.h"
#include "serve/server.h"

struct chat_prompt {
    struct prompt_request request;
    struct chat_template *own_template; /* from the request, or NULL; owned */
    struct json_object *kwargs;         /* owned */
    bool thinking;                      /* whether the template arguments leave it on */
};

void chat_prompt_schema(struct schema_report *r, struct json_object *body);
/* The result borrows from body. chat_prompt_reset is to be called in any case. */
sumi_status chat_prompt_read(struct chat_prompt *p, struct json_object *body,
                             const struct server_config *config, bool with_tools, sumi_error *err);
/* Refuses messages whose text alone cannot fit the model length, before they are tokenised. */
sumi_status chat_prompt_check_size(const struct chat_prompt *p, const struct server_config *config,
                                   sumi_error *err);
/* `text` may be NULL. */
sumi_status chat_prompt_render(const struct chat_prompt *p, const struct server_config *config,
                               struct ids *out, struct buf *text, sumi_error *err);
void chat_prompt_reset(struct chat_prompt *p);

#endif
