/* sumi.h: the only public header of libsumi.
 *
 * An engine owns a model, its device and one thread that runs it. Requests are JSON bodies of the
 * OpenAI chat or completion API; answers arrive through a callback. Every call that can fail
 * returns a status and, when the caller passes an error, a message that says what was expected,
 * what was found, where, and what to do. Nothing here calls exit or abort. */
#ifndef SUMI_H
#define SUMI_H

#ifdef __cplusplus
extern "C" {
#endif

#define SUMI_VERSION "0.1.0"

#if defined(__GNUC__)
#define SUMI_API __attribute__((visibility("default")))
#else
#define SUMI_API
#endif

/* name, text */
#define SUMI_STATUS_LIST(X)                       \
    X(OK, "ok")                                   \
    X(ERR_ARG, "invalid argument")                \
    X(ERR_IO, "input/output error")               \
    X(ERR_FORMAT, "malformed data")               \
    X(ERR_SHAPE, "wrong shape or type")           \
    X(ERR_MISSING, "not found")                   \
    X(ERR_UNSUPPORTED, "not supported")           \
    X(ERR_MEMORY, "out of memory")                \
    X(ERR_LIMIT, "limit exceeded")                \
    X(ERR_STATE, "wrong state")                   \
    X(ERR_NUMERIC, "not a number in the results") \
    X(ERR_DEVICE, "device error")                 \
    X(ERR_BUSY, "refused for the moment")         \
    X(ERR_CANCELLED, "cancelled")

typedef enum sumi_status {
#define X(name, text) SUMI_##name,
    SUMI_STATUS_LIST(X)
#undef X
} sumi_status;

typedef struct sumi_error {
    sumi_status status;
    char param[64]; /* the request field or option at fault, or "" */
    char msg[1024]; /* one sentence for a person, NUL-terminated */
} sumi_error;

SUMI_API const char *sumi_version(void);
SUMI_API const char *sumi_status_text(sumi_status status);

#ifdef __cplusplus
}
#endif
#endif
