/* An address in, a listening socket out. */
#include "serve/listen.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { BACKLOG = 2048 };

static sumi_status refused(sumi_error *err, const char *where, int error) {
    const char *hint = error == EADDRINUSE ? "; another program listens there: choose another one"
                       : error == EACCES   ? "; this needs more rights, or another port"
                                           : "";
    return fail_with(err, SUMI_ERR_IO, "%s: %s%s", where, strerror(error), hint);
}

/* A socket file that nobody listens on is left over from a run that was killed. */
static void remove_stale(const struct sockaddr_un *address) {
    struct stat st;
    if (lstat(address->sun_path, &st) != 0 || !S_ISSOCK(st.st_mode)) return;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return;
    if (connect(fd, (const void *)address, sizeof *address) != 0 && errno == ECONNREFUSED)
        unlink(address->sun_path);
    close(fd);
}

static sumi_status open_unix(const char *path, evutil_socket_t *out, sumi_error *err) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof address.sun_path)
        return fail_with(err, SUMI_ERR_ARG, "%s: the path of a unix socket has at most %zu bytes",
                         path, sizeof address.sun_path - 1);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    remove_stale(&address);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return refused(err, path, errno);
    if (bind(fd, (void *)&address, sizeof address) != 0 || listen(fd, BACKLOG) != 0) {
        int error = errno;
        close(fd);
        return refused(err, path, error);
    }
    *out = fd;
    return SUMI_OK;
}

static int try_address(const struct addrinfo *a, evutil_socket_t *out) {
    int on = 1, off = 0;
    int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return errno;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (a->ai_family == AF_INET6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    if (bind(fd, a->ai_addr, a->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0) {
        *out = fd;
        return 0;
    }
    int error = errno;
    close(fd);
    return error;
}

static int bound_port(evutil_socket_t fd) {
    struct sockaddr_storage address;
    socklen_t n = sizeof address;
    if (getsockname(fd, (void *)&address, &n) != 0) return 0;
    if (address.ss_family == AF_INET6) return ntohs(((struct sockaddr_in6 *)&address)->sin6_port);
    return ntohs(((struct sockaddr_in *)&address)->sin_port);
}

/* Without a host: all interfaces, of both families where the system has IPv6. */
static sumi_status open_tcp(const struct server_config *config, evutil_socket_t *out, int *port,
                            sumi_error *err) {
    struct addrinfo hints = {.ai_family = AF_UNSPEC,
                             .ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *list = NULL;
    const char *host = config->host && *config->host ? config->host : NULL;
    char service[16], where[300];
    snprintf(service, sizeof service, "%d", config->port);
    snprintf(where, sizeof where, "%.255s port %d", host ? host : "all interfaces", config->port);
    int failed = getaddrinfo(host ? host : "::", service, &hints, &list);
    if (failed && !host) failed = getaddrinfo("0.0.0.0", service, &hints, &list);
    if (failed) return fail_with(err, SUMI_ERR_IO, "%s: %s", where, gai_strerror(failed));
    int error = EADDRNOTAVAIL;
    for (struct addrinfo *a = list; a && error; a = a->ai_next) error = try_address(a, out);
    freeaddrinfo(list);
    if (error == EAFNOSUPPORT && !host) {
        struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons((uint16_t)config->port)};
        struct addrinfo four = {
            .ai_family = AF_INET, .ai_addr = (void *)&any, .ai_addrlen = sizeof any};
        error = try_address(&four, out);
    }
    if (error) return refused(err, where, error);
    *port = bound_port(*out);
    return SUMI_OK;
}

sumi_status listen_open(const struct server_config *config, evutil_socket_t *fd, int *port,
                        sumi_error *err) {
    *port = 0;
    return config->uds ? open_unix(config->uds, fd, err) : open_tcp(config, fd, port, err);
}

void listen_close(const struct server_config *config) {
    if (config->uds) unlink(config->uds);
}
