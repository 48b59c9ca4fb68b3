/* JSON text out. */
#include "base/jsonw.h"

#include <float.h>
#include <json-c/json.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

void json_put_escaped(struct buf *b, const char *s, size_t n) {
    size_t from = 0, i = 0;
    while (i < n) {
        unsigned char c = (unsigned char)s[i];
        if (c >= 0x20 && c < 0x80 && c != '"' && c != '\\') {
            i++;
            continue;
        }
        uint32_t cp;
        int len = c < 0x80 ? 1 : utf8_decode(s + i, n - i, &cp);
        if (c >= 0x80 && len > 0) {
            i += (size_t)len;
            continue;
        }
        buf_put(b, s + from, i - from);
        const char *at = c && c < 0x80 ? strchr("\"\"\\\\\nn\rr\tt\bb\ff", c) : NULL;
        if (c >= 0x80) buf_puts(b, "\xEF\xBF\xBD");
        else if (at) buf_put(b, (const char[]){'\\', at[1]}, 2);
        else buf_printf(b, "\\u%04x", c);
        i++;
        from = i;
    }
    buf_put(b, s + from, n - from);
}

void json_put_string(struct buf *b, const char *s, size_t n) {
    buf_putc(b, '"');
    json_put_escaped(b, s, n);
    buf_putc(b, '"');
}

void json_put_text(struct buf *b, const char *s) {
    if (s) json_put_string(b, s, strlen(s));
    else buf_puts(b, "null");
}

void json_put_double(struct buf *b, double x) {
    char text[40], digits[24];
    if (!isfinite(x)) {
        buf_puts(b, "null");
        return;
    }
    /* Every decimal of up to 15 digits that reads back is found at 15 (trailing zeros are dropped);
     * only subnormal numbers have fewer significant digits than that. */
    for (int n = fabs(x) < DBL_MIN ? 1 : 15; n <= 17; n++) {
        snprintf(text, sizeof text, "%.*e", n - 1, x);
        if (strtod(text, NULL) == x) break;
    }
    int exponent = (int)strtol(strchr(text, 'e') + 1, NULL, 10), n = 0;
    for (const char *p = text; *p != 'e'; p++)
        if (*p >= '0' && *p <= '9') digits[n++] = *p;
    while (n > 1 && digits[n - 1] == '0') n--;
    if (signbit(x)) buf_putc(b, '-');
    if (exponent < -4 || exponent >= 16) {
        buf_putc(b, digits[0]);
        if (n > 1) buf_printf(b, ".%.*s", n - 1, digits + 1);
        buf_printf(b, "e%c%02d", exponent < 0 ? '-' : '+', abs(exponent));
        return;
    }
    if (exponent < 0) buf_puts(b, "0.");
    for (int i = exponent < 0 ? exponent + 1 : 0; i < n || i <= exponent; i++) {
        buf_putc(b, i >= 0 && i < n ? digits[i] : '0');
        if (i == exponent) buf_putc(b, '.');
    }
    if (n - 1 <= exponent) buf_putc(b, '0');
}

static void put_object(struct buf *b, struct json_object *o, bool spaced) {
    bool first = true;
    buf_putc(b, '{');
    json_object_object_foreach(o, key, value) {
        if (!first) buf_puts(b, spaced ? ", " : ",");
        first = false;
        json_put_text(b, key);
        buf_puts(b, spaced ? ": " : ":");
        json_put_value(b, value, spaced);
    }
    buf_putc(b, '}');
}

static void put_array(struct buf *b, struct json_object *o, bool spaced) {
    buf_putc(b, '[');
    for (size_t i = 0; i < json_object_array_length(o); i++) {
        if (i) buf_puts(b, spaced ? ", " : ",");
        json_put_value(b, json_object_array_get_idx(o, i), spaced);
    }
    buf_putc(b, ']');
}

void json_put_value(struct buf *b, struct json_object *o, bool spaced) {
    switch (json_object_get_type(o)) {
    case json_type_object: put_object(b, o, spaced); break;
    case json_type_array: put_array(b, o, spaced); break;
    case json_type_string:
        json_put_string(b, json_object_get_string(o), (size_t)json_object_get_string_len(o));
        break;
    default: buf_puts(b, o ? json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN) : "null");
    }
}
