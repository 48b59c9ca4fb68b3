/* The public interface, as a program would use it: the shipped model answers, calls a tool, goes on
 * with the tool's result; mistakes come back as sentences. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sumi.h"

static const char model[] = "models/flint-tiny/flint-tiny.gguf";
static const char weather[] =
    "[{\"type\":\"function\",\"function\":{\"name\":\"get_weather\",\"description\":\"Get the "
    "weather.\","
    "\"parameters\":{\"type\":\"object\",\"properties\":{\"city\":{\"type\":\"string\"}},"
    "\"required\":[\"city\"]}}}]";

struct heard {
    char content[512], name[64], arguments[256];
    int n_piece, stop_after;
};

static void add(char *to, size_t cap, const sumi_piece *p) {
    size_t n = strlen(to);
    if (n + p->n + 1 > cap) return;
    memcpy(to + n, p->text, p->n);
    to[n + p->n] = 0;
}

static int hear(void *user, const sumi_piece *p) {
    struct heard *h = user;
    if (p->kind == SUMI_CONTENT) add(h->content, sizeof h->content, p);
    if (p->kind == SUMI_CALL_NAME) add(h->name, sizeof h->name, p);
    if (p->kind == SUMI_CALL_ARGUMENTS) add(h->arguments, sizeof h->arguments, p);
    return h->stop_after && ++h->n_piece >= h->stop_after;
}

static void open_engine(sumi_options **o, sumi_engine **e) {
    sumi_error err = {0};
    assert_int_equal(sumi_options_open(o, &err), SUMI_OK);
    assert_int_equal(sumi_options_set(*o, "model", model, &err), SUMI_OK);
    assert_int_equal(sumi_options_set(*o, "temperature", "0", &err), SUMI_OK);
    assert_int_equal(sumi_options_set(*o, "tool-call-parser", "glm47", &err), SUMI_OK);
    assert_int_equal(sumi_options_set(*o, "reasoning-parser", "glm47", &err), SUMI_OK);
    if (sumi_engine_open(e, *o, &err) != SUMI_OK) fail_msg("%s", err.msg);
}

static void a_question_is_answered(void **state) {
    (void)state;
    sumi_options *o;
    sumi_engine *e;
    sumi_session *s;
    struct heard h = {0};
    sumi_result r;
    open_engine(&o, &e);
    assert_int_equal(sumi_session_open(&s, e, NULL), SUMI_OK);
    assert_int_equal(sumi_session_say(s, "user", "What is the capital of France?", NULL), SUMI_OK);
    assert_int_equal(sumi_session_answer(s, hear, &h, &r, NULL), SUMI_OK);
    assert_non_null(strstr(h.content, "Paris"));
    assert_string_equal(r.finish, "stop");
    assert_true(r.output_tokens > 0 && r.prompt_tokens > 5 && r.tool_calls == 0);
    sumi_session_close(s);
    sumi_engine_close(e);
    sumi_options_close(o);
}

static void a_tool_is_called_and_its_result_used(void **state) {
    (void)state;
    sumi_options *o;
    sumi_engine *e;
    sumi_session *s;
    struct heard h = {0};
    sumi_result r;
    open_engine(&o, &e);
    assert_int_equal(sumi_session_open(&s, e, NULL), SUMI_OK);
    assert_int_equal(sumi_session_tools(s, weather, NULL), SUMI_OK);
    assert_int_equal(sumi_session_say(s, "user", "What is the weather in Oslo?", NULL), SUMI_OK);
    assert_int_equal(sumi_session_answer(s, hear, &h, &r, NULL), SUMI_OK);
    assert_int_equal(r.tool_calls, 1);
    assert_string_equal(h.name, "get_weather");
    assert_string_equal(h.arguments, "{\"city\": \"Oslo\"}");
    assert_int_equal(sumi_session_say(s, "tool", "{\"temperature\": 17}", NULL), SUMI_OK);
    h = (struct heard){0};
    assert_int_equal(sumi_session_answer(s, hear, &h, &r, NULL), SUMI_OK);
    assert_non_null(strstr(h.content, "17"));
    sumi_session_close(s);
    sumi_engine_close(e);
    sumi_options_close(o);
}

static void a_callback_may_stop_the_answer(void **state) {
    (void)state;
    sumi_options *o;
    sumi_engine *e;
    sumi_session *s;
    struct heard h = {.stop_after = 2};
    sumi_result r;
    open_engine(&o, &e);
    assert_int_equal(sumi_session_open(&s, e, NULL), SUMI_OK);
    assert_int_equal(sumi_session_say(s, "user", "Tell me a long story.", NULL), SUMI_OK);
    assert_int_equal(sumi_session_answer(s, hear, &h, &r, NULL), SUMI_OK);
    assert_int_equal(h.n_piece, 2);
    sumi_session_close(s);
    sumi_engine_close(e);
    sumi_options_close(o);
}

static void mistakes_are_sentences(void **state) {
    (void)state;
    sumi_options *o;
    sumi_engine *e;
    sumi_session *s;
    sumi_error err = {0};
    assert_int_equal(sumi_options_open(&o, &err), SUMI_OK);
    assert_int_equal(sumi_options_set(o, "temprature", "0", &err), SUMI_ERR_ARG);
    assert_non_null(strstr(err.msg, "temperature"));
    assert_int_equal(sumi_options_set(o, "temperature", "hot", &err), SUMI_ERR_ARG);
    assert_int_equal(sumi_options_set(o, "model", "models/none.gguf", &err), SUMI_OK);
    assert_int_not_equal(sumi_engine_open(&e, o, &err), SUMI_OK);
    assert_null(e);
    assert_non_null(strstr(err.msg, "models/none.gguf"));
    sumi_options_close(o);
    open_engine(&o, &e);
    assert_int_equal(sumi_session_open(&s, e, &err), SUMI_OK);
    assert_int_equal(sumi_session_tools(s, "{}", &err), SUMI_ERR_FORMAT);
    assert_int_equal(sumi_session_tools(s, "[", &err), SUMI_ERR_FORMAT);
    assert_int_equal(sumi_session_say(s, "pirate", "arr", &err), SUMI_OK);
    assert_int_not_equal(sumi_session_answer(s, NULL, NULL, NULL, &err), SUMI_OK);
    assert_non_null(strstr(err.msg, "pirate"));
    sumi_session_close(s);
    sumi_engine_close(e);
    sumi_options_close(o);
    sumi_session_close(NULL);
    sumi_engine_close(NULL);
    sumi_options_close(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_question_is_answered),
        cmocka_unit_test(a_tool_is_called_and_its_result_used),
        cmocka_unit_test(a_callback_may_stop_the_answer),
        cmocka_unit_test(mistakes_are_sentences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
