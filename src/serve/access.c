/* Request heads in, permission and answer headers out. It knows keys and origins, no routes. */
#include "serve/access.h"

#include <string.h>
#include <strings.h>

#include "serve/conn.h"
#include "serve/hex.h"
#include "serve/internal.h"

/* Takes time that depends on the candidate's length alone: every byte of it is compared, whatever
 * the key. */
static bool same_secret(const char *key, const char *candidate) {
    size_t n_key = strlen(key), n = strlen(candidate), diff = n_key ^ n;
    if (!n_key) return false;
    for (size_t i = 0; i < n; i++) diff |= (unsigned char)(key[i % n_key] ^ candidate[i]);
    return diff == 0;
}

static bool known_key(const struct server *s, const char *candidate) {
    bool found = false; /* no early exit: all keys are compared */
    for (size_t i = 0; i < s->config.api_key.n; i++)
        found |= same_secret(s->config.api_key.item[i], candidate);
    return found;
}

static bool starts_with(const char *s, const char *prefix) {
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

bool access_allowed(const struct server *s, const struct http_request *r, const char *path) {
    if (!s->config.api_key.n || strcmp(r->method, "OPTIONS") == 0) return true;
    if (!starts_with(path, "/v1") && !starts_with(path, "/v2") &&
        !starts_with(path, "/inference") && !starts_with(path, "/cohere"))
        return true;
    const char *value = http_find(r, "authorization");
    if (!value || strncasecmp(value, "bearer ", 7) != 0) return false;
    return known_key(s, value + 7 + strspn(value + 7, " "));
}

static bool lists(const struct string_list *list, const char *word, bool ignore_case) {
    for (size_t i = 0; i < list->n; i++)
        if (strcmp(list->item[i], "*") == 0 ||
            (ignore_case ? strcasecmp(list->item[i], word) : strcmp(list->item[i], word)) == 0)
            return true;
    return false;
}

static bool any_origin(const struct server *s) {
    return s->config.allowed_origins.n && lists(&s->config.allowed_origins, "*", false);
}

static void put_origin(const struct server *s, const char *origin, struct buf *head) {
    bool any = any_origin(s);
    if (any && !s->config.allow_credentials) buf_puts(head, "access-control-allow-origin: *\r\n");
    else if (lists(&s->config.allowed_origins, origin, false))
        buf_printf(head, "access-control-allow-origin: %s\r\n", origin);
    if (s->config.allow_credentials) buf_puts(head, "access-control-allow-credentials: true\r\n");
}

void access_headers(const struct server *s, const struct http_request *r, int status,
                    struct buf *head) {
    const char *origin = http_find(r, "origin");
    const char *id = http_find(r, "x-request-id");
    char fresh[33];
    random_hex(fresh, 16);
    buf_printf(head, "x-request-id: %s\r\n", id && *id && strlen(id) <= 256 ? id : fresh);
    if (status == 401) return; /* the key check sits outside the CORS layer */
    if (!any_origin(s) || s->config.allow_credentials) buf_puts(head, "vary: Origin\r\n");
    if (origin) put_origin(s, origin, head);
}

/* Requested headers are a comma-separated list; all must be allowed. */
static bool headers_allowed(const struct server *s, const char *wanted) {
    char name[128];
    while (wanted && *wanted) {
        wanted += strspn(wanted, " \t,");
        size_t n = strcspn(wanted, " \t,");
        if (n >= sizeof name) return false;
        memcpy(name, wanted, n);
        name[n] = 0;
        if (n && !lists(&s->config.allowed_headers, name, true)) return false;
        wanted += n;
    }
    return true;
}

static void put_methods(const struct string_list *list, struct buf *head) {
    buf_puts(head, "access-control-allow-methods: ");
    if (lists(list, "*", false)) buf_puts(head, "DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT");
    else
        for (size_t i = 0; i < list->n; i++) buf_printf(head, "%s%s", i ? ", " : "", list->item[i]);
    buf_puts(head, "\r\naccess-control-max-age: 600\r\n");
}

bool access_preflight(struct server *s, struct conn *c) {
    const struct http_request *r = conn_request(c);
    const char *origin = http_find(r, "origin");
    const char *method = http_find(r, "access-control-request-method");
    const char *headers = http_find(r, "access-control-request-headers");
    if (strcmp(r->method, "OPTIONS") != 0 || !origin || !method) return false;
    const char *refused = !lists(&s->config.allowed_origins, origin, false)   ? "origin"
                          : !lists(&s->config.allowed_methods, method, false) ? "method"
                          : !headers_allowed(s, headers)                      ? "headers"
                                                                              : NULL;
    struct buf *extra = conn_extra_headers(c);
    put_methods(&s->config.allowed_methods, extra);
    if (headers && !refused) buf_printf(extra, "access-control-allow-headers: %s\r\n", headers);
    struct buf text = {0};
    if (refused) buf_printf(&text, "Disallowed CORS %s", refused);
    else buf_puts(&text, "OK");
    conn_reply(c, refused ? 400 : 200, "text/plain; charset=utf-8", buf_text(&text), text.len);
    buf_reset(&text);
    return true;
}
