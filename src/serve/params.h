/* The fields that chat and completion requests share, read and checked. Ranges that the engine
 * knows (sampling.h) are checked by sampling_check; the rest here. */
#ifndef SUMI_SERVE_PARAMS_H
#define SUMI_SERVE_PARAMS_H

#include "base/arena.h"
#include "engine/sampling.h"
#include "serve/schema.h"
#include "serve/server.h"

enum api_kind { API_CHAT, API_COMPLETION };
enum cut_side { CUT_DEFAULT, CUT_LEFT, CUT_RIGHT };

struct params {
    struct sampling sampling; /* lists lie in `memory` */
    int32_t n;
    bool stream, include_usage, continuous_usage;
    bool has_budget; /* the request names one */
    int64_t budget;
    const char *budget_field; /* which field it came from */
    bool has_truncate;
    int64_t truncate; /* tokens to keep; -1: what fits */
    enum cut_side side;
    bool echo, add_special_tokens, return_token_ids, tokens_as_ids;
    int32_t stream_interval;
    int64_t priority;
    const char *request_id; /* borrowed from the body, or NULL */
    struct arena memory;    /* every list; freed by params_reset */
};

/* Faults of the shared fields. */
void params_schema(struct schema_report *r, enum api_kind api, struct json_object *body);
/* After the schema passed. SUMI_ERR_ARG names the field; SUMI_ERR_UNSUPPORTED: a known field that
 * is not built yet. The body may be freed afterwards, except for request_id. */
sumi_status params_read(struct params *p, enum api_kind api, struct json_object *body,
                        const struct server_config *config, sumi_error *err);
void params_reset(struct params *p);

/* Stop strings, bad words, token lists, biases (params_lists.c). */
sumi_status params_read_lists(struct params *p, struct json_object *body,
                              const struct server_config *config, sumi_error *err);

#endif
