/* Chat templates: the subset of Jinja that checkpoints ship (docs/templates.md lists it), with
 * recursion, steps and output bounded, and with the origin of every output byte kept: text of the
 * template itself is trusted, text that came in through a variable is not. */
#ifndef SUMI_TEXT_TEMPLATE_H
#define SUMI_TEXT_TEMPLATE_H

#include <json-c/json.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/status.h"

struct chat_template;

/* Parses source with trim_blocks and lstrip_blocks on, no autoescape. Errors: FORMAT with line
 * number, UNSUPPORTED naming the construct, LIMIT (nesting over 100, source over 1 MiB). Immutable
 * afterwards. */
sumi_status chat_template_parse(struct chat_template **out, const char *source, size_t n,
                                sumi_error *err);
void chat_template_close(struct chat_template *t);

/* True if the template loops over message content parts (the "openai" content format), false if it
 * wants strings. */
bool chat_template_wants_parts(const struct chat_template *t);
/* True if the template reads a variable of that name anywhere. */
bool chat_template_reads(const struct chat_template *t, const char *name);

struct template_limits {
    int64_t max_steps; /* evaluated nodes; 0: 50 million */
    size_t max_output; /* bytes, also of any one string value; 0: 64 MiB */
    int max_depth;     /* nested calls of macros and values; 0: 200 */
    int64_t now;       /* unix time for strftime_now; 0: the clock */
};

/* Marks a string among the variables as trusted, as if the template itself had written it. For
 * names from a closed set (roles) and texts of the checkpoint's own tokens, never for what a client
 * chose.
 */
void chat_template_trust(struct json_object *string);

struct template_output {
    struct buf text;    /* UTF-8 */
    struct buf trusted; /* one byte per byte of text: 1 from the template, 0 from a variable */
};

/* Renders with the members of `variables` (a JSON object, borrowed) as globals. A string constant
 * is trusted, a string from the variables is not (but see chat_template_trust); slicing, joining,
 * splitting, trimming and replacing keep the origin of each byte; tojson of an untrusted value is
 * untrusted; a string computed from numbers or booleans is trusted. raise_exception gives
 * SUMI_ERR_ARG with the template's own message; a limit gives SUMI_ERR_LIMIT naming it; other
 * faults SUMI_ERR_FORMAT with the line. Out is reset by the caller (buf_reset both). */
sumi_status chat_template_render(const struct chat_template *t, struct json_object *variables,
                                 const struct template_limits *limits, struct template_output *out,
                                 sumi_error *err);

#endif
