/* The listening socket. */
#ifndef SUMI_SERVE_LISTEN_H
#define SUMI_SERVE_LISTEN_H

#include <event2/util.h>

#include "serve/server.h"

/* Binds and listens; *port is the bound one (0 for a unix socket). SUMI_ERR_IO names the address.
 */
sumi_status listen_open(const struct server_config *config, evutil_socket_t *fd, int *port,
                        sumi_error *err);
void listen_close(const struct server_config *config); /* removes the unix socket's file */

#endif
