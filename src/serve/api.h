/* What every JSON route does first, and the routes themselves. */
#ifndef SUMI_SERVE_API_H
#define SUMI_SERVE_API_H

#include <json-c/json.h>

#include "base/status.h"

struct conn;
struct server;

/* The request body as a JSON object (json_object_put it), or NULL after an error was answered. The
 * body's bytes are freed. */
struct json_object *api_read(struct conn *c);

/* SUMI_ERR_MISSING unless the body's model is absent, empty or one of the served names. */
sumi_status api_check_model(const struct server *s, struct json_object *body, sumi_error *err);

typedef void api_handler(struct server *s, struct conn *c);
api_handler chat_handle;
api_handler completions_handle;
api_handler models_list;
api_handler models_get;
api_handler tokenize_handle;
api_handler detokenize_handle;

#endif
