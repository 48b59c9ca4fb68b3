/* Error bodies of the OpenAI-style routes, and the way from a sumi_error to one. */
#ifndef SUMI_SERVE_ERROR_H
#define SUMI_SERVE_ERROR_H

#include <json-c/json.h>

#include "base/buf.h"
#include "base/status.h"

struct conn;

/* {"error":{"message","type","param","code"}}; param NULL writes null. */
void error_body(struct buf *out, int status, const char *type, const char *param,
                const char *message, size_t n);

/* HTTP status and type of an error:
 *   FORMAT            400 Bad Request: the body breaks the schema; param is a "body." path
 *   ARG, LIMIT, SHAPE 400 BadRequestError: a value breaks a rule; param is the field
 *   MISSING           404 NotFoundError
 *   UNSUPPORTED       501 NotImplementedError
 *   BUSY              503 Service Unavailable, may be retried
 *   STATE, MEMORY     503 ServiceUnavailableError
 *   others            500 InternalServerError */
int error_status(sumi_status status, const char **type);

/* Writes the body and returns the HTTP status. With `request` (or NULL) the value of the field at
 * fault is appended to the message of a broken rule. */
int error_write(struct buf *out, const sumi_error *err, struct json_object *request);

/* Answers with an error; ends the exchange. */
void error_reply(struct conn *c, const sumi_error *err, struct json_object *request);

/* Appends a value for a message: strings cut to `max` bytes, containers as their size. */
void error_put_value(struct buf *out, struct json_object *value, size_t max);

#endif
