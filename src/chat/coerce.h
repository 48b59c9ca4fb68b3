/* Tool declarations, and arguments that a model wrote as bare text, typed by their schema. */
#ifndef SUMI_CHAT_COERCE_H
#define SUMI_CHAT_COERCE_H

#include "base/buf.h"
#include "base/json.h"

/* The function object ({name, parameters, ...}) of the declared tool with that name, or NULL.
 * `tools` is the request's array: {"type":"function","function":{...}} or the flat form. */
struct json_object *tool_find(struct json_object *tools, const char *name, size_t n);
/* True if some declared name begins with s[0..n). */
bool tool_name_begins(struct json_object *tools, const char *s, size_t n);

/* Schema of a parameter, references within the tool's own schema resolved; NULL when unknown. */
struct json_object *tool_parameter(struct json_object *function, const char *key);

/* True when a value of this schema (NULL: unknown) is a string whatever its text, so that it may be
 * written before it is complete. */
bool coerce_is_string(struct json_object *function, struct json_object *schema);

/* Writes the JSON value that text[0..n) stands for. The kinds that the schema allows (its types,
 * those of enum members and of anyOf, oneOf, allOf) are tried in the order null, integer, number,
 * boolean, object, array, string; when none fits, the text is taken as JSON if it is JSON, else as
 * a string. Members of objects and items of arrays that are strings where their schema allows none
 * are typed in the same way. Integers keep their digits; an integral number is written as an
 * integer; what JSON cannot say (infinities) never fits. text[n] is NUL. */
void coerce_put(struct buf *out, struct json_object *function, struct json_object *schema,
                const char *text, size_t n);

#endif
