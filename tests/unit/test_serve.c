/* serve/: a whole server in this process, asked over sockets. What it answers in detail is tested
 * with real clients; here memory fails in every place, and its life ends in every phase. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "serve/server.h"

#define MODEL "tests/golden/replay-model/"

static struct tokenizer *tokenizer;
static struct chat_template *template;
static struct engine *engine;
static struct server *server;
static pthread_t loop;
static struct server_config config;

static void *run_loop(void *unused) {
    sumi_error err = {0};
    (void)unused;
    return server_run(server, &err) == SUMI_OK ? NULL : server;
}

static int open_model(void **state) {
    sumi_error err = {0};
    char *text;
    size_t n;
    (void)state;
    log_set_level(LOG_OFF);
    if (tokenizer_open_json(&tokenizer, MODEL "tokenizer.json", &err) != SUMI_OK ||
        file_read(MODEL "chat_template.jinja", 1 << 20, &text, &n, &err) != SUMI_OK)
        return -1;
    sumi_status status = chat_template_parse(&template, text, n, &err);
    mem_free(text);
    return status == SUMI_OK ? 0 : -1;
}

static int close_model(void **state) {
    (void)state;
    chat_template_close(template);
    tokenizer_close(tokenizer);
    return 0;
}

static int open_server(void **state) {
    static const char *const name[] = {"tiny"};
    sumi_error err = {0};
    int32_t eos = tokenizer_find(tokenizer, "<|endoftext|>", 13);
    (void)state;
    const struct engine_config engine_config = {.max_num_seqs = 8,
                                                .max_num_batched_tokens = 512,
                                                .max_model_len = 2048,
                                                .max_logprobs = 20,
                                                .eos = &eos,
                                                .n_eos = 1,
                                                .replay = true};
    if (engine_open(&engine, &engine_config, NULL, tokenizer, &err) != SUMI_OK) return -1;
    config = (struct server_config){.host = "127.0.0.1",
                                    .served_name = {name, 1},
                                    .root = "model",
                                    .max_body = 1 << 20,
                                    .max_header_bytes = 1 << 16,
                                    .max_header_count = 64,
                                    .max_connections = 100,
                                    .keep_alive_s = 5,
                                    .stream_interval = 1,
                                    .auto_tool_choice = true,
                                    .reasoning = dialect_find("glm47"),
                                    .tools = dialect_find("glm47"),
                                    .max_model_len = 2048,
                                    .max_logprobs = 20,
                                    .max_n = 100,
                                    .max_stop = 4,
                                    .max_prompts = 10,
                                    .max_bad_words = 10,
                                    .replay = true,
                                    .engine = engine,
                                    .tokenizer = tokenizer,
                                    .prompt = {.chat_template = template, .tokenizer = tokenizer}};
    if (server_open(&server, &config, &err) != SUMI_OK) return -1;
    return pthread_create(&loop, NULL, run_loop, NULL);
}

static int close_server(void **state) {
    void *failed = NULL;
    (void)state;
    server_stop(server, 0);
    pthread_join(loop, &failed);
    server_close(server);
    engine_close(engine);
    return failed ? -1 : 0;
}

static int dial(void) {
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)server_port(server)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, (void *)&to, sizeof to), 0);
    return fd;
}

static char answer[1 << 20]; /* not from the heap that is made to fail */

/* Everything the server sends until it closes; "" when it closes at once. */
static void ask(const char *path, const char *body) {
    char head[300];
    size_t len = 0;
    int fd = dial();
    int n = snprintf(head, sizeof head,
                     "POST %s HTTP/1.1\r\nContent-Type: application/json\r\nConnection: close\r\n"
                     "Content-Length: %zu\r\n\r\n",
                     path, strlen(body));
    ssize_t got = send(fd, head, (size_t)n, MSG_NOSIGNAL);
    if (got > 0) got = send(fd, body, strlen(body), MSG_NOSIGNAL);
    while ((got = recv(fd, answer + len, sizeof answer - 1 - len, 0)) > 0) len += (size_t)got;
    answer[len] = 0;
    close(fd);
}

static const char chat[] =
    "{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}],\"logprobs\":true,\"stop\":[\"zzz\"],"
    "\"return_token_ids\":true,\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\"}}],"
    "\"vllm_xargs\":{\"replay\":\"<think>a</think>The fox<tool_call>f</tool_call>\"}}";
static const char chat_stream[] =
    "{\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}],\"stream\":true,\"logprobs\":true,"
    "\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\"}}],"
    "\"stream_options\":{\"include_usage\":true},"
    "\"vllm_xargs\":{\"replay\":\"<think>a</think>The fox<tool_call>f</tool_call>\"}}";
static const char completion[] = "{\"prompt\":[\"The fox\",\"b\"],\"echo\":true,\"logprobs\":1,"
                                 "\"stream\":true,\"return_token_ids\":true}";

static bool has(const char *text) {
    return strstr(answer, text) != NULL;
}

static void a_server_answers_chat_and_completions(void **state) {
    (void)state;
    ask("/v1/chat/completions", chat);
    assert_true(has("HTTP/1.1 200 OK\r\n"));
    assert_true(has("\"content\":\"The fox\""));
    assert_true(has("\"finish_reason\":\"tool_calls\""));
    ask("/v1/chat/completions", chat_stream);
    assert_true(has("\"reasoning\":\"a\"") && has("data: [DONE]\n\n\r\n0\r\n"));
    ask("/v1/completions", completion);
    assert_true(has("data: [DONE]\n\n"));
    ask("/nope", "{}");
    assert_true(has("HTTP/1.1 404 Not Found\r\n"));
}

/* The n-th allocation of anything in the process fails: the answer is whole, or an error, or the
 * connection ends; a stream that ends well says so. Afterwards the server works as before. */
static void survive(const char *path, const char *body) {
    bool failed = true;
    for (long n = 1; failed; n++) {
        long before = mem_count();
        mem_fail_at(n);
        ask(path, body);
        mem_fail_at(0);
        failed = mem_count() - before >= n;
        if (has("HTTP/1.1 200") && has("\r\n0\r\n\r\n")) assert_true(has("data: [DONE]\n\n"));
        else if (*answer && !has("HTTP/1.1 200"))
            if (!has("HTTP/1.1 50")) fail_msg("allocation %ld: %s", n, answer);
        assert_true(n < 5000);
    }
    assert_true(has("HTTP/1.1 200"));
}

static void a_server_survives_any_failed_allocation(void **state) {
    (void)state;
    survive("/v1/chat/completions", chat);
    survive("/v1/chat/completions", chat_stream);
    survive("/v1/completions", completion);
    survive("/tokenize", "{\"prompt\":\"The fox\",\"return_token_strs\":true}");
}

static void opening_fails_cleanly_at_any_allocation(void **state) {
    sumi_status status = SUMI_ERR_MEMORY;
    (void)state;
    for (long n = 1; status != SUMI_OK; n++) {
        struct server *second = NULL;
        sumi_error err = {0};
        mem_fail_at(n);
        status = server_open(&second, &config, &err);
        mem_fail_at(0);
        if (status == SUMI_OK) server_close(second);
        else assert_int_equal(status, SUMI_ERR_MEMORY);
        assert_true(n < 5000);
    }
}

static void a_port_in_use_is_an_error_with_its_name(void **state) {
    struct server_config taken = config;
    struct server *second;
    sumi_error err = {0};
    char port[16];
    (void)state;
    taken.port = server_port(server);
    snprintf(port, sizeof port, "port %d", taken.port);
    assert_int_equal(server_open(&second, &taken, &err), SUMI_ERR_IO);
    assert_non_null(strstr(err.msg, port));
    assert_non_null(strstr(err.msg, "in use"));
}

static void it_can_be_closed_while_clients_wait(void **state) {
    static const char request[] =
        "POST /v1/completions HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: 63\r\n"
        "\r\n{\"prompt\":\"The fox\",\"max_tokens\":2000,\"n\":50,\"ignore_eos\":true}";
    int fd[20];
    (void)state;
    for (int i = 0; i < 20; i++) {
        fd[i] = dial();
        assert_true(send(fd[i], request, sizeof request - 1, MSG_NOSIGNAL) > 0);
    }
    server_stop(server, 100);
    server_stop(server, 0);
    assert_int_equal(pthread_join(loop, NULL), 0);
    server_close(server);
    for (int i = 0; i < 20; i++) close(fd[i]);
    engine_close(engine);
    assert_int_equal(open_server(NULL), 0);
}

static sumi_status broken_step(void *ctx, const struct batch *batch, float *logits,
                               sumi_error *err) {
    (void)ctx, (void)batch, (void)logits;
    return fail_with(err, SUMI_ERR_DEVICE, "the device is gone");
}

static void an_engine_that_dies_ends_the_server_with_its_fault(void **state) {
    static const int32_t window[] = {0};
    const struct stepper stepper = {.step = broken_step,
                                    .vocab = tokenizer_size(tokenizer),
                                    .cache = {1, window, 64},
                                    .n_slab = 100,
                                    .max_rows = 512};
    const struct engine_config engine_config = {.max_num_seqs = 4,
                                                .max_num_batched_tokens = 512,
                                                .max_model_len = 2048,
                                                .max_logprobs = 20};
    sumi_error err = {0};
    void *failed;
    (void)state;
    close_server(NULL);
    assert_int_equal(engine_open(&engine, &engine_config, &stepper, tokenizer, &err), SUMI_OK);
    config.engine = engine;
    config.replay = false;
    assert_int_equal(server_open(&server, &config, &err), SUMI_OK);
    assert_int_equal(pthread_create(&loop, NULL, run_loop, NULL), 0);
    ask("/v1/completions", "{\"prompt\":\"a\"}");
    assert_true(has("HTTP/1.1 500") && has("InternalServerError"));
    ask("/v1/completions", "{\"prompt\":\"a\",\"stream\":true}");
    assert_true(has("HTTP/1.1 500") || (has("data: {\"error\":{") && has("data: [DONE]\n\n")));
    ask("/ping", "{}");
    assert_true(has("HTTP/1.1 503"));
    pthread_join(loop, &failed); /* by itself */
    assert_ptr_equal(failed, server);
    server_close(server);
    engine_close(engine);
    assert_int_equal(open_server(NULL), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_server_answers_chat_and_completions, open_server,
                                        close_server),
        cmocka_unit_test_setup_teardown(a_server_survives_any_failed_allocation, open_server,
                                        close_server),
        cmocka_unit_test_setup_teardown(opening_fails_cleanly_at_any_allocation, open_server,
                                        close_server),
        cmocka_unit_test_setup_teardown(a_port_in_use_is_an_error_with_its_name, open_server,
                                        close_server),
        cmocka_unit_test_setup_teardown(it_can_be_closed_while_clients_wait, open_server,
                                        close_server),
        cmocka_unit_test_setup_teardown(an_engine_that_dies_ends_the_server_with_its_fault,
                                        open_server, close_server),
    };
    return cmocka_run_group_tests(tests, open_model, close_model);
}
