/* Writing JSON into a buf. The caller writes punctuation; these write values. */
#ifndef SUMI_BASE_JSONW_H
#define SUMI_BASE_JSONW_H

#include <stdbool.h>

#include "base/buf.h"

struct json_object;

/* A quoted string: \" \\ \n \r \t \b \f, other control characters as \u00XX, the rest as it is.
 * Invalid UTF-8 is written as U+FFFD, so that the output is always valid. */
void json_put_string(struct buf *b, const char *s, size_t n);
void json_put_text(struct buf *b, const char *s); /* NUL-terminated; NULL writes null */
/* The inside of a string, without quotes: a fragment of a streamed value. */
void json_put_escaped(struct buf *b, const char *s, size_t n);
/* The shortest digits that read back to the same double, spelled as Python does: 0.1, 1.0,
 * 10000000.0, 1e+16, 1e-05. Not finite writes null. */
void json_put_double(struct buf *b, double x);
/* A json-c value, key order and number spelling kept, non-ASCII unescaped. `spaced` writes ", " and
 * ": " as Python's json.dumps does, otherwise no blanks. */
void json_put_value(struct buf *b, struct json_object *o, bool spaced);

#endif
