/* Which handler answers which path, and what is checked before and noted after. */
#ifndef SUMI_SERVE_ROUTES_H
#define SUMI_SERVE_ROUTES_H

#include <stdbool.h>
#include <stddef.h>

struct conn;
struct route;
struct server;

/* Finds the route and checks key and method. Answers and returns false when the request is refused.
 * May be called before the body was read. */
bool routes_admit(struct server *s, struct conn *c);
/* The request is complete: admits it if that was not done, then calls the handler. */
void routes_dispatch(struct server *s, struct conn *c);
/* The answer is complete: access log, metrics, load. */
void routes_done(struct server *s, struct conn *c, int status, size_t reply_bytes);
/* The client went away before. */
void routes_leave(struct server *s, const struct route *route);

/* The part of the path that a pattern's last segment stands for. */
const char *routes_rest(const struct server *s, const struct conn *c);

#endif
