/* Requests in, handlers called. The table is the whole surface of this server. */
#include "serve/routes.h"

#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "serve/access.h"
#include "serve/api.h"
#include "serve/conn.h"
#include "serve/error.h"
#include "serve/internal.h"

static api_handler health, version, metrics_page, load, root;

struct route {
    const char *pattern; /* "{...}" at the end stands for the rest of the path, slashes included */
    const char *methods; /* comma separated, as in an Allow header */
    api_handler *handler;
    bool quiet; /* not counted in the HTTP series */
    bool load;  /* counted by /load */
};

static const struct route routes[] = {
    {"/v1/chat/completions", "POST", chat_handle, false, true},
    {"/v1/completions", "POST", completions_handle, false, true},
    {"/v1/models", "GET", models_list, false, false},
    {"/v1/models/{id}", "GET", models_get, false, false},
    {"/tokenize", "POST", tokenize_handle, false, false},
    {"/detokenize", "POST", detokenize_handle, false, false},
    {"/health", "GET", health, true, false},
    {"/ping", "GET, POST", health, true, false},
    {"/version", "GET", version, true, false},
    {"/metrics", "GET", metrics_page, true, false},
    {"/metrics/", "GET", metrics_page, true, false},
    {"/load", "GET", load, true, false},
    {"/", "GET, HEAD", root, false, false},
};
/* What unknown paths are noted under. */
static const struct route unknown = {"none", "", NULL, false, false};

static const char *path_of(const struct server *s, const struct conn *c) {
    return http_strip_root(conn_request(c)->path, s->config.root_path);
}

/* Length of the part before "{", or of the whole pattern. */
static bool matches(const struct route *r, const char *path) {
    const char *brace = strchr(r->pattern, '{');
    if (!brace) return strcmp(r->pattern, path) == 0;
    size_t n = (size_t)(brace - r->pattern);
    return strncmp(r->pattern, path, n) == 0 && path[n];
}

static const struct route *find(const char *path) {
    for (size_t i = 0; i < sizeof routes / sizeof *routes; i++)
        if (matches(&routes[i], path)) return &routes[i];
    return &unknown;
}

const char *routes_rest(const struct server *s, const struct conn *c) {
    const char *brace = strchr(conn_route(c)->pattern, '{');
    return path_of(s, c) + (brace ? brace - conn_route(c)->pattern : 0);
}

static bool has_method(const char *list, const char *method) {
    size_t n = strlen(method);
    for (const char *p = list; *p; p += strspn(p, ", ")) {
        size_t len = strcspn(p, ",");
        if (len == n && memcmp(p, method, n) == 0) return true;
        p += len;
    }
    return false;
}

/* A body for both kinds of readers: those of "detail" and those of "error". */
static void reply_detail(struct conn *c, int status, const char *type, const char *detail) {
    struct buf body = {0};
    error_body(&body, status, type, NULL, detail, strlen(detail));
    if (body.len) body.data[--body.len] = 0;
    buf_printf(&body, ",\"detail\":\"%s\"}", detail);
    conn_reply(c, status, "application/json", buf_text(&body), body.len);
    buf_reset(&body);
}

static void enter(struct server *s, struct conn *c, const struct route *r) {
    conn_set_route(c, r);
    if (r->load && s->config.load_tracking) s->server_load++;
}

bool routes_admit(struct server *s, struct conn *c) {
    static const char denied[] = "{\"error\":\"Unauthorized\"}";
    const struct http_request *request = conn_request(c);
    const char *path = path_of(s, c);
    if (conn_route(c)) return true;
    const struct route *r = find(path);
    enter(s, c, r);
    if (!access_allowed(s, request, path)) {
        buf_puts(conn_extra_headers(c), "www-authenticate: Bearer\r\n");
        conn_reply(c, 401, "application/json", denied, sizeof denied - 1);
        return false;
    }
    if (access_preflight(s, c)) return false;
    if (!r->handler) {
        reply_detail(c, 404, "NotFoundError", "Not Found");
        return false;
    }
    if (has_method(r->methods, request->method)) return true;
    buf_printf(conn_extra_headers(c), "allow: %s\r\n", r->methods);
    reply_detail(c, 405, "MethodNotAllowedError", "Method Not Allowed");
    return false;
}

void routes_dispatch(struct server *s, struct conn *c) {
    if (routes_admit(s, c)) conn_route(c)->handler(s, c);
}

void routes_leave(struct server *s, const struct route *route) {
    if (route->load && s->config.load_tracking) s->server_load--;
}

static bool is_quiet(const struct server *s, const char *path) {
    for (size_t i = 0; i < s->config.quiet_path.n; i++)
        if (strcmp(s->config.quiet_path.item[i], path) == 0) return true;
    return false;
}

void routes_done(struct server *s, struct conn *c, int status, size_t reply_bytes) {
    const struct http_request *r = conn_request(c);
    const struct route *route = conn_route(c) ? conn_route(c) : &unknown;
    if (conn_route(c)) routes_leave(s, route);
    if (!r->method) return; /* the head itself was refused */
    double seconds = (double)(clock_ns() - conn_started_ns(c)) * 1e-9;
    if (!route->quiet)
        metrics_http(s->metrics, route->pattern, r->method, status, seconds, (size_t)r->length,
                     reply_bytes);
    if (s->config.access_log && !is_quiet(s, r->path))
        log_info("%s - \"%s %s HTTP/1.%d\" %d %s", conn_peer(c), r->method, r->path, r->minor,
                 status, http_phrase(status));
}

static void health(struct server *s, struct conn *c) {
    bool well = s->phase == SERVING && !engine_stats(s->config.engine).dead;
    conn_reply(c, well ? 200 : 503, NULL, NULL, 0);
}

/* The release of vLLM whose interface this is: clients read it to know what they may use. */
static void version(struct server *s, struct conn *c) {
    static const char body[] = "{\"version\":\"0.33.0\"}";
    (void)s;
    conn_reply(c, 200, "application/json", body, sizeof body - 1);
}

static void metrics_page(struct server *s, struct conn *c) {
    struct engine_stats stats = engine_stats(s->config.engine);
    struct buf body = {0};
    metrics_write(s->metrics, &stats, &body);
    if (body.failed) {
        sumi_error err = {0};
        NO_MEMORY(&err, body.cap);
        error_reply(c, &err, NULL);
    } else conn_reply(c, 200, "text/plain; version=0.0.4; charset=utf-8", body.data, body.len);
    buf_reset(&body);
}

static void load(struct server *s, struct conn *c) {
    struct buf body = {0};
    buf_printf(&body, "{\"server_load\":%d}", s->server_load);
    conn_reply(c, 200, "application/json", buf_text(&body), body.len);
    buf_reset(&body);
}

static void root(struct server *s, struct conn *c) {
    static const char body[] = "sumi: an OpenAI-compatible server. Start at /v1/models.\n";
    (void)s;
    conn_reply(c, 200, "text/plain; charset=utf-8", body, sizeof body - 1);
}
