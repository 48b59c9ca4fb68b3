/* --load-format replay: what the "model" is to say. */
#ifndef SUMI_SERVE_REPLAY_H
#define SUMI_SERVE_REPLAY_H

#include "serve/server.h"

/* Ids from the body's vllm_xargs: "replay" (a text, special tokens recognised) or "replay_ids".
 * *found tells whether either was there; without them the caller says the prompt back. */
sumi_status replay_read(const struct server_config *config, struct json_object *body,
                        struct ids *out, bool *found, sumi_error *err);

/* The content text of the last user message, as ordinary tokens. */
sumi_status replay_last_user(const struct server_config *config, struct json_object *messages,
                             struct ids *out, sumi_error *err);

#endif
