/* What is measured: names, kinds, labels and buckets. They are facts of the interface (vLLM's), so
 * that dashboards and routers find them; "old names" are those that newer releases dropped and that
 * routers still read. */
#include "serve/metrics.h"

static const double ttft[] = {0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5,  0.75, 1,
                              2.5,   5,     7.5,  10,   20,   40,   80,   160, 640,  2560, 0};
static const double itl[] = {0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5,
                             0.75, 1,     2.5,  5,     7.5, 10,   20,  40,  80,  0};
static const double latency[] = {0.3, 0.5, 0.8, 1,  1.5, 2,   2.5, 5,   10,   15,   20,
                                 30,  40,  50,  60, 120, 240, 480, 960, 1920, 7680, 0};
static const double iteration[] = {1,   8,    16,   32,   64,   128,   256,
                                   512, 1024, 2048, 4096, 8192, 16384, 0};
static const double params_n[] = {1, 2, 5, 10, 20, 0};
static const double preemptions[] = {1, 2, 3, 4, 5, 10, 20, 0};

static const char *const waiting_reasons[] = {"capacity", "deferred", NULL};
static const char *const sleep_states[] = {"awake", "weights_offloaded", "discard_all", NULL};
static const char *const sources[] = {"local_compute", "local_cache_hit", "external_kv_transfer",
                                      NULL};
static const char *const cache_sources[] = {"device", "host", "p2p", "disk", "external_unspecified",
                                            NULL};
static const char *const rejections[] = {"max_num_queued_reqs", "max_num_queued_tokens", NULL};
static const char *const finished[] = {"stop", "length", "abort", "error", "repetition", NULL};
/* The value of "mode" with the two labels that follow it, so that one table serves all. */
static const char *const parser_modes[] = {
    "non_streaming\",outcome=\"no_tool_call\",request_type=\"chat_completions",
    "non_streaming\",outcome=\"tool_call\",request_type=\"chat_completions",
    "streaming\",outcome=\"no_tool_call\",request_type=\"chat_completions",
    "streaming\",outcome=\"tool_call\",request_type=\"chat_completions",
    "non_streaming\",outcome=\"no_tool_call\",request_type=\"responses",
    "non_streaming\",outcome=\"tool_call\",request_type=\"responses",
    "streaming\",outcome=\"no_tool_call\",request_type=\"responses",
    "streaming\",outcome=\"tool_call\",request_type=\"responses",
    "non_streaming\",outcome=\"no_tool_call\",request_type=\"other",
    "non_streaming\",outcome=\"tool_call\",request_type=\"other",
    "streaming\",outcome=\"no_tool_call\",request_type=\"other",
    "streaming\",outcome=\"tool_call\",request_type=\"other",
    NULL};

#define GAUGE(name, help) \
    { name, METRIC_GAUGE, SCOPE_ENGINE, help, NULL, NULL, NULL }
#define COUNTER(name, help) \
    { name, METRIC_COUNTER, SCOPE_ENGINE, help, NULL, NULL, NULL }
#define HISTOGRAM(name, bounds, help) \
    { name, METRIC_HISTOGRAM, SCOPE_ENGINE, help, NULL, NULL, bounds }
#define LABELLED(name, kind, scope, label, values, help) \
    { name, METRIC_##kind, SCOPE_##scope, help, label, values, NULL }

const struct metric_row metric_table[METRIC_COUNT] = {
    [M_RUNNING] = GAUGE("vllm:num_requests_running", "Requests in the running batch."),
    [M_WAITING] = GAUGE("vllm:num_requests_waiting", "Requests waiting to run."),
    [M_WAITING_BY_REASON] =
        LABELLED("vllm:num_requests_waiting_by_reason", GAUGE, ENGINE, "reason", waiting_reasons,
                 "Requests waiting to run, by what they wait for."),
    [M_KV_USAGE] = GAUGE("vllm:kv_cache_usage_perc", "Part of the KV cache in use, 0 to 1."),
    [M_SLEEP_STATE] = LABELLED("vllm:engine_sleep_state", GAUGE, ENGINE, "sleep_state",
                               sleep_states, "1 marks the state that the engine is in."),
    [M_PROMPT_TOKENS] = COUNTER("vllm:prompt_tokens_total", "Prompt tokens processed."),
    [M_GENERATION_TOKENS] = COUNTER("vllm:generation_tokens_total", "Tokens generated."),
    [M_PROMPT_BY_SOURCE] = LABELLED("vllm:prompt_tokens_by_source_total", COUNTER, ENGINE, "source",
                                    sources, "Prompt tokens, by where they came from."),
    [M_PROMPT_CACHED] =
        COUNTER("vllm:prompt_tokens_cached_total", "Prompt tokens taken from a cache."),
    [M_PROMPT_CACHED_BY_SOURCE] =
        LABELLED("vllm:prompt_tokens_cached_by_source_total", COUNTER, ENGINE, "source",
                 cache_sources, "Cached prompt tokens, by cache."),
    [M_REJECTIONS] = LABELLED("vllm:admission_rejections_total", COUNTER, MODEL, "reason",
                              rejections, "Requests refused at admission."),
    [M_TOOL_PARSER] = LABELLED("vllm:tool_call_parser_invocations_total", COUNTER, MODEL, "mode",
                               parser_modes, "Answers read by the tool call parser."),
    [M_SUCCESS] = LABELLED("vllm:request_success_total", COUNTER, ENGINE, "finished_reason",
                           finished, "Finished requests."),
    [M_PREEMPTIONS] = COUNTER("vllm:num_preemptions_total", "Preemptions of running requests."),
    [M_PREFIX_QUERIES] =
        COUNTER("vllm:prefix_cache_queries_total", "Prompt tokens looked up in the prefix cache."),
    [M_PREFIX_HITS] =
        COUNTER("vllm:prefix_cache_hits_total", "Prompt tokens found in the prefix cache."),
    [M_EXTERNAL_QUERIES] = COUNTER("vllm:external_prefix_cache_queries_total",
                                   "Prompt tokens looked up in an external cache."),
    [M_EXTERNAL_HITS] = COUNTER("vllm:external_prefix_cache_hits_total",
                                "Prompt tokens found in an external cache."),
    [M_MEDIA_QUERIES] =
        COUNTER("vllm:mm_cache_queries_total", "Media items looked up in the processor cache."),
    [M_MEDIA_HITS] =
        COUNTER("vllm:mm_cache_hits_total", "Media items found in the processor cache."),
    [M_TTFT] = HISTOGRAM("vllm:time_to_first_token_seconds", ttft, "Arrival to first token."),
    [M_ITL] = HISTOGRAM("vllm:inter_token_latency_seconds", itl, "Time between two tokens."),
    [M_TPOT] = HISTOGRAM("vllm:request_time_per_output_token_seconds", itl,
                         "Mean time between tokens of a request."),
    [M_E2E] = HISTOGRAM("vllm:e2e_request_latency_seconds", latency, "Arrival to end."),
    [M_QUEUE_TIME] = HISTOGRAM("vllm:request_queue_time_seconds", latency,
                               "Arrival in the engine to first scheduling."),
    [M_INFERENCE_TIME] = HISTOGRAM("vllm:request_inference_time_seconds", latency,
                                   "First scheduling to last token."),
    [M_PREFILL_TIME] =
        HISTOGRAM("vllm:request_prefill_time_seconds", latency, "First scheduling to first token."),
    [M_DECODE_TIME] =
        HISTOGRAM("vllm:request_decode_time_seconds", latency, "First to last token."),
    [M_REQUEST_PROMPT_TOKENS] =
        HISTOGRAM("vllm:request_prompt_tokens", NULL, "Prompt tokens of a request."),
    [M_REQUEST_GENERATION_TOKENS] =
        HISTOGRAM("vllm:request_generation_tokens", NULL, "Generated tokens of a request."),
    [M_REQUEST_MAX_GENERATION] = HISTOGRAM("vllm:request_max_num_generation_tokens", NULL,
                                           "Generated tokens of the longest choice of a request."),
    [M_REQUEST_MAX_TOKENS] =
        HISTOGRAM("vllm:request_params_max_tokens", NULL, "Output budget of a request."),
    [M_PREFILL_COMPUTED] = HISTOGRAM("vllm:request_prefill_kv_computed_tokens", NULL,
                                     "Prompt tokens computed, cached ones left out."),
    [M_ITERATION_TOKENS] =
        HISTOGRAM("vllm:iteration_tokens_total", iteration, "Tokens of an engine step."),
    [M_REQUEST_N] = HISTOGRAM("vllm:request_params_n", params_n, "Choices asked for by a request."),
    [M_REQUEST_PREEMPTIONS] = HISTOGRAM("vllm:request_num_preemptions", preemptions,
                                        "Preemptions of a finished request."),
    [M_OLD_KV_USAGE] = GAUGE("vllm:gpu_cache_usage_perc", "Old name of kv_cache_usage_perc."),
    [M_OLD_PREFIX_QUERIES] =
        COUNTER("vllm:gpu_prefix_cache_queries_total", "Old name of prefix_cache_queries."),
    [M_OLD_PREFIX_HITS] =
        COUNTER("vllm:gpu_prefix_cache_hits_total", "Old name of prefix_cache_hits."),
    [M_OLD_PREFIX_RATE] = GAUGE("vllm:gpu_prefix_cache_hit_rate", "Hits over queries, in tokens."),
    [M_OLD_TPOT] = HISTOGRAM("vllm:time_per_output_token_seconds", itl,
                             "Old name of inter_token_latency_seconds."),
    [M_OLD_SWAPPED] = GAUGE("vllm:num_requests_swapped", "Always 0: nothing is swapped."),
    [M_OLD_CPU_USAGE] = GAUGE("vllm:cpu_cache_usage_perc", "Always 0: no cache in host memory."),
};
