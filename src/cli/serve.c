/* sumi serve: from options to a listening server, and from a signal to its end. */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/option_table.h"
#include "cli/cli.h"
#include "cli/setup.h"
#include "serve/server.h"

/* What the signal handler reaches: set once before signals are caught. */
static _Atomic(struct server *) running;
static double drain_s;

static void on_signal(int signal) {
    (void)signal;
    int saved = errno;
    struct server *s = atomic_load(&running);
    if (s) server_stop(s, drain_s);
    errno = saved;
}

static void catch_signals(struct server *s, double drain) {
    struct sigaction stop = {.sa_handler = on_signal}, ignore = {.sa_handler = SIG_IGN};
    drain_s = drain;
    atomic_store(&running, s);
    sigaction(SIGINT, &stop, NULL);
    sigaction(SIGTERM, &stop, NULL);
    sigaction(SIGPIPE, &ignore, NULL);
}

static sumi_status log_options(const struct options *o, sumi_error *err) {
    struct json_object *c = opt_json(o, "logging-config");
    const char *level_name = NULL, *formatter = "text";
    enum log_level level;
    TRY(json_get_str(c, "log_level", &level_name, err));
    TRY(json_get_str(c, "formatter", &formatter, err));
    if (level_name && !log_level_parse(level_name, &level))
        return fail_param(err, SUMI_ERR_ARG, "logging-config",
                          "--logging-config: log_level is debug, info, warning, error or critical, "
                          "found \"%.100s\"",
                          level_name);
    if (strcmp(formatter, "text") != 0 && strcmp(formatter, "json") != 0)
        return fail_param(err, SUMI_ERR_ARG, "logging-config",
                          "--logging-config: formatter is text or json, found \"%.100s\"",
                          formatter);
    if (level_name) log_set_level(level);
    log_set_json(strcmp(formatter, "json") == 0);
    return SUMI_OK;
}

static sumi_status check_together(const struct options *o, sumi_error *err) {
    const char *parser = opt_string(o, "tool-call-parser");
    if (opt_bool(o, "enable-auto-tool-choice") && (!parser || !*parser))
        return fail_param(err, SUMI_ERR_ARG, "enable-auto-tool-choice",
                          "--enable-auto-tool-choice needs --tool-call-parser; the parsers are: %s",
                          dialect_names());
    if (opt_bool(o, "enable-per-request-metrics") && opt_bool(o, "disable-log-stats"))
        return fail_param(
            err, SUMI_ERR_ARG, "enable-per-request-metrics",
            "--enable-per-request-metrics and --disable-log-stats exclude each other");
    if (strcmp(opt_string(o, "fingerprint-mode"), "custom") == 0 &&
        !opt_string(o, "fingerprint-value"))
        return fail_param(err, SUMI_ERR_ARG, "fingerprint-value",
                          "--fingerprint-mode custom needs --fingerprint-value");
    return SUMI_OK;
}

/* A name for this program with these options, so that clients see when one of them changes. */
static const char *fingerprint(const struct options *o, char *out, size_t n) {
    const char *mode = opt_string(o, "fingerprint-mode");
    if (strcmp(mode, "none") == 0) return NULL;
    if (strcmp(mode, "custom") == 0) return opt_string(o, "fingerprint-value");
    struct buf config = {0};
    opt_print_config(o, &config);
    uint32_t hash = 2166136261u; /* FNV-1a */
    for (size_t i = 0; i < config.len; i++)
        hash = (hash ^ (unsigned char)config.data[i]) * 16777619u;
    buf_reset(&config);
    if (strcmp(mode, "hash") == 0) snprintf(out, n, "%08x", hash);
    else snprintf(out, n, "sumi-%s-%08x", sumi_version(), hash);
    return out;
}

static struct string_list strings(const struct options *o, const char *name) {
    struct opt_list l = opt_list(o, name);
    return (struct string_list){l.item, l.n};
}

static bool access_log(const struct options *o) {
    const char *level = opt_string(o, "uvicorn-log-level");
    bool quiet = strcmp(level, "warning") == 0 || strcmp(level, "error") == 0 ||
                 strcmp(level, "critical") == 0;
    return !quiet && !opt_bool(o, "disable-uvicorn-access-log");
}

static void fill_http(struct server_config *c, const struct options *o) {
    c->host = opt_string(o, "host");
    c->port = (int)opt_int(o, "port");
    c->uds = opt_string(o, "uds");
    c->api_key = strings(o, "api-key");
    c->root_path = opt_string(o, "root-path");
    c->allowed_origins = strings(o, "allowed-origins");
    c->allowed_methods = strings(o, "allowed-methods");
    c->allowed_headers = strings(o, "allowed-headers");
    c->allow_credentials = opt_bool(o, "allow-credentials");
    c->max_body = (size_t)opt_int(o, "max-body");
    c->max_header_bytes = (size_t)opt_int(o, "h11-max-incomplete-event-size");
    c->max_header_count = (int)opt_int(o, "h11-max-header-count");
    c->max_connections = (int)opt_int(o, "max-connections");
    c->keep_alive_s = (int)opt_int(o, "keep-alive");
    c->sse_keep_alive_s = opt_double(o, "sse-keep-alive-interval");
    c->stream_interval = (int)opt_int(o, "stream-interval");
    c->request_id_headers = opt_bool(o, "enable-request-id-headers");
    c->access_log = access_log(o);
    c->log_requests = opt_bool(o, "enable-log-requests");
    c->write_timeout_s = (int)opt_int(o, "write-timeout");
    c->stay_on_engine_death = opt_bool(o, "keep-alive-on-engine-death");
    c->stats_interval_s =
        opt_bool(o, "disable-log-stats") ? 0 : opt_double(o, "log-stats-interval");
    c->load_tracking = opt_bool(o, "enable-server-load-tracking");
    c->dev_mode = opt_bool(o, "server-dev-mode");
}

static void fill_api(struct server_config *c, const struct options *o) {
    c->force_include_usage = opt_bool(o, "enable-force-include-usage");
    c->prompt_tokens_details = opt_bool(o, "enable-prompt-tokens-details");
    c->per_request_metrics = opt_bool(o, "enable-per-request-metrics");
    c->reasoning_content = opt_bool(o, "emit-reasoning-content");
    c->tokens_as_ids = opt_bool(o, "return-tokens-as-token-ids");
    c->skip_name_check = opt_bool(o, "skip-model-name-validation");
    c->trust_request_template = opt_bool(o, "trust-request-chat-template");
    c->exclude_tools_when_none = opt_bool(o, "exclude-tools-when-tool-choice-none");
    c->response_role = opt_string(o, "response-role");
    c->template_kwargs = opt_json(o, "default-chat-template-kwargs");
    c->max_logprobs = (int32_t)opt_int(o, "max-logprobs");
    c->max_n = (int32_t)opt_int(o, "max-n");
    c->max_stop = (int32_t)opt_int(o, "max-stop");
    c->max_prompts = (int32_t)opt_int(o, "max-prompts");
    c->max_bad_words = (int32_t)opt_int(o, "max-bad-words");
    c->seed = (uint64_t)opt_int(o, "seed");
}

/* Paths separated by commas, cut up in place; *list is owned. */
static sumi_status split(char *text, const char ***list, size_t *n, sumi_error *err) {
    size_t count = 1;
    for (const char *p = text; *p; p++) count += *p == ',';
    *list = mem_zero(count, sizeof **list);
    *n = 0;
    if (!*list) return NO_MEMORY(err, count * sizeof **list);
    char *rest = text;
    for (char *one; (one = strsep(&rest, ","));)
        if (*one) (*list)[(*n)++] = one;
    return SUMI_OK;
}

/* Blocks of 64 tokens that the cache holds when every sequence is as long as it may be. */
static int32_t cache_blocks(const struct memory_plan *p) {
    double tokens = (double)p->n_slab / (double)p->slabs_per_sequence * p->max_model_len;
    return tokens / PAGE_TOKENS < INT32_MAX ? (int32_t)(tokens / PAGE_TOKENS) : INT32_MAX;
}

static void fill_model(struct server_config *c, const struct setup *s) {
    bool given = s->tools && opt_given(s->o, "tool-call-parser");
    c->auto_tool_choice = s->tools && (!given || opt_bool(s->o, "enable-auto-tool-choice"));
    c->reasoning = s->reasoning;
    c->tools = s->tools;
    c->sampling_defaults = s->sampling;
    c->max_tokens_cap = s->max_tokens_cap;
    c->default_max_tokens = s->default_max_tokens;
    c->max_model_len = s->plan.max_model_len;
    c->cache_blocks = s->replay ? 0 : cache_blocks(&s->plan);
    c->root = s->name;
    c->replay = s->replay;
    c->engine = s->engine;
    c->tokenizer = s->loaded.tokenizer;
    c->prompt = s->prompt;
}

static void log_address(const struct server_config *c, int port) {
    for (size_t i = 0; i < c->served_name.n; i++)
        log_info("serving as: %s", c->served_name.item[i]);
    if (c->uds) log_info("listening on unix socket %s", c->uds);
    else
        log_info("listening on http://%s:%d%s", c->host && *c->host ? c->host : "0.0.0.0", port,
                 c->root_path ? c->root_path : "");
}

static sumi_status listen_and_serve(struct setup *s, const struct server_config *c,
                                    sumi_error *err) {
    struct server *server = NULL;
    TRY(server_open(&server, c, err));
    catch_signals(server, (double)opt_int(s->o, "shutdown-timeout"));
    log_address(c, server_port(server));
    sumi_status status = server_run(server, err);
    atomic_store(&running, NULL);
    server_close(server);
    return status;
}

static sumi_status serve(struct setup *s, sumi_error *err) {
    const struct options *o = s->o;
    const char *quiet = opt_string(o, "disable-access-log-for-endpoints"), *own_name = s->name;
    struct server_config c = {0};
    char print[64];
    char *paths = mem_string(quiet ? quiet : "", quiet ? strlen(quiet) : 0);
    const char **path = NULL;
    fill_http(&c, o);
    fill_api(&c, o);
    fill_model(&c, s);
    c.served_name = strings(o, "served-model-name");
    if (c.served_name.n == 0) c.served_name = (struct string_list){&own_name, 1};
    c.fingerprint = fingerprint(o, print, sizeof print);
    sumi_status status = paths ? split(paths, &path, &c.quiet_path.n, err) : NO_MEMORY(err, 64);
    c.quiet_path.item = path;
    if (status == SUMI_OK) status = listen_and_serve(s, &c, err);
    mem_free(path);
    mem_free(paths);
    return status;
}

static sumi_status start(struct setup *s, const struct options *o, sumi_error *err) {
    TRY(log_options(o, err));
    TRY(check_together(o, err));
    if (opt_source(o, "model") == OPT_FROM_COMMAND && !opt_positional(o, "model"))
        log_warning("--model works, but MODEL is better given as the first argument");
    if (opt_given(o, "enable-prefix-caching") && opt_bool(o, "enable-prefix-caching"))
        log_warning("prefix caching is not built yet: every prompt is computed in full");
    TRY(setup_load(s, o, WEIGHTS_FILE, err));
    TRY(setup_plan(s, err));
    TRY(setup_chat(s, err));
    TRY(setup_engine(s, err));
    setup_log(s);
    return serve(s, err);
}

int verb_serve(const struct options *o) {
    struct setup s = {0};
    sumi_error err = {0};
    cli_log_setup(o);
    sumi_status status = start(&s, o, &err);
    setup_close(&s);
    return status == SUMI_OK ? EXIT_OK : cli_fail(&err);
}
