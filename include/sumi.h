/* sumi.h: the only public header of libsumi.
 *
 *   options   what the command line would say, by the same names: "model", "threads", "temperature"
 *   engine    a loaded model with its device, memory and the one thread that runs it
 *   session   one conversation; its answers arrive piece by piece through a callback
 *
 * Every call that can fail returns a status and, when the caller passes an error, a message that
 * says what was expected, what was found, where, and what to do. Nothing here calls exit or abort,
 * and nothing reads the environment. Several sessions may share an engine from several threads; one
 * session belongs to one thread at a time. */
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

/* ---- options: as `sumi run` takes them, see `sumi run --help=all` ---- */

typedef struct sumi_options sumi_options;

SUMI_API sumi_status sumi_options_open(sumi_options **out, sumi_error *err);
SUMI_API void sumi_options_close(sumi_options *o); /* NULL is fine */
/* Sets one option by its long name without dashes; "model" is a directory, a .gguf file or a name
 * in the local Hugging Face cache. value NULL: a bare flag. SUMI_ERR_ARG names the nearest option.
 */
SUMI_API sumi_status sumi_options_set(sumi_options *o, const char *name, const char *value,
                                      sumi_error *err);

/* ---- engine ---- */

typedef struct sumi_engine sumi_engine;

/* Loads the model and starts the engine. The options are kept: close them after the engine. */
SUMI_API sumi_status sumi_engine_open(sumi_engine **out, const sumi_options *o, sumi_error *err);
SUMI_API void sumi_engine_close(sumi_engine *e); /* after its sessions; NULL is fine */

/* ---- session ---- */

typedef struct sumi_session sumi_session;

typedef enum sumi_piece_kind {
    SUMI_REASONING,
    SUMI_CONTENT,
    SUMI_CALL_NAME,     /* a tool call begins: its complete name */
    SUMI_CALL_ARGUMENTS /* a fragment of its arguments, JSON text */
} sumi_piece_kind;

typedef struct sumi_piece {
    sumi_piece_kind kind;
    int call;         /* index of the tool call, from 0 */
    const char *text; /* UTF-8, not NUL-terminated, borrowed for the duration of the callback */
    unsigned long n;
} sumi_piece;

typedef struct sumi_result {
    int prompt_tokens, output_tokens, reasoning_tokens;
    int tool_calls;
    const char *finish; /* "stop", "length" or "abort" */
} sumi_result;

SUMI_API sumi_status sumi_session_open(sumi_session **out, sumi_engine *e, sumi_error *err);
SUMI_API void sumi_session_close(sumi_session *s); /* NULL is fine */

/* The tools that may be called: a JSON array as in the OpenAI API, or NULL for none. */
SUMI_API sumi_status sumi_session_tools(sumi_session *s, const char *json, sumi_error *err);
/* Appends a message: role "system", "user" or "tool"; NUL-terminated UTF-8. */
SUMI_API sumi_status sumi_session_say(sumi_session *s, const char *role, const char *text,
                                      sumi_error *err);
/* Answers the conversation so far and appends the answer to it. on_piece is called on the calling
 * thread; returning non-zero stops the answer. result may be NULL. */
SUMI_API sumi_status sumi_session_answer(sumi_session *s,
                                         int (*on_piece)(void *user, const sumi_piece *piece),
                                         void *user, sumi_result *result, sumi_error *err);

#ifdef __cplusplus
}
#endif
#endif
