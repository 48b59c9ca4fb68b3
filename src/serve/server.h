/* The HTTP server: vLLM's routes over an engine. Its event loop runs in its own thread; requests go
 * to the engine over a queue and answers come back over another. It never sees a tensor. */
#ifndef SUMI_SERVE_SERVER_H
#define SUMI_SERVE_SERVER_H

#include "base/json.h"
#include "chat/dialect.h"
#include "chat/prompt.h"
#include "engine/engine.h"

struct string_list {
    const char *const *item;
    size_t n;
};

/* Everything is borrowed until server_close. Names in comments are the flags that set a field. */
struct server_config {
    const char *host;               /* --host; NULL: all interfaces */
    int port;                       /* --port; 0: any free one */
    const char *uds;                /* --uds: unix socket instead */
    struct string_list api_key;     /* --api-key */
    struct string_list served_name; /* --served-model-name; at least one */
    const char *root;               /* the model argument as typed */
    const char *root_path;          /* --root-path */
    struct string_list allowed_origins, allowed_methods, allowed_headers; /* CORS */
    bool allow_credentials;
    size_t max_body;         /* bytes; 413 beyond */
    size_t max_header_bytes; /* --h11-max-incomplete-event-size */
    int max_header_count;    /* --h11-max-header-count */
    int max_connections;
    int keep_alive_s;        /* idle connections are closed after */
    int write_timeout_s;     /* a reader that takes nothing is dropped after; 0: 300 */
    double sse_keep_alive_s; /* --sse-keep-alive-interval; 0: off */
    int stream_interval;     /* --stream-interval */
    bool request_id_headers; /* the header is always sent; the flag changes nothing */
    bool access_log, log_requests, load_tracking, dev_mode;
    bool force_include_usage;   /* --enable-force-include-usage */
    bool prompt_tokens_details; /* --enable-prompt-tokens-details */
    bool per_request_metrics;
    bool reasoning_content; /* also emit the old field name */
    bool tokens_as_ids;     /* --return-tokens-as-token-ids */
    bool skip_name_check;
    bool trust_request_template;
    bool exclude_tools_when_none;    /* --exclude-tools-when-tool-choice-none */
    bool auto_tool_choice;           /* --enable-auto-tool-choice */
    const struct dialect *reasoning; /* --reasoning-parser, or NULL */
    const struct dialect *tools;     /* --tool-call-parser, or NULL */
    const char *response_role;
    const char *fingerprint;               /* system_fingerprint, or NULL */
    struct json_object *template_kwargs;   /* --default-chat-template-kwargs, or NULL */
    struct json_object *sampling_defaults; /* generation config merged with its override, or NULL */
    int32_t max_tokens_cap;                /* server-wide output cap O of spec 1.5.4; 0: none */
    int32_t default_max_tokens;            /* D of spec 1.5.4 (max_new_tokens); 0: none */
    int32_t max_model_len, max_logprobs, max_n, max_stop, max_prompts, max_bad_words;
    uint64_t seed;
    bool replay; /* --load-format replay */
    bool prefix_caching;
    int32_t cache_blocks;          /* tokens the KV cache holds / 64, for /metrics; 0: unknown */
    bool stay_on_engine_death;     /* else server_run ends with the engine's fault */
    double stats_interval_s;       /* a log line of figures while busy; 0: none */
    struct string_list quiet_path; /* --disable-access-log-for-endpoints */
    struct engine *engine;
    const struct tokenizer *tokenizer;
    struct prompt_env prompt;
};

struct server;

/* Binds and listens; a port in use is SUMI_ERR_IO naming it. */
sumi_status server_open(struct server **out, const struct server_config *config, sumi_error *err);
int server_port(const struct server *s);
/* Serves until server_stop; call on the thread that is to be the event loop. */
sumi_status server_run(struct server *s, sumi_error *err);
/* From any thread or a signal handler. drain_s 0: abort everything now; else let requests finish
 * for that long; a second call ends at once. */
void server_stop(struct server *s, double drain_s);
void server_close(struct server *s);

#endif
