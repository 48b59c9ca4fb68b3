/* The glm47 dialect: reasoning, content and calls out of what a model writes. Every row is played
 * with the markers as single tokens and without such tokens, each in four cuts. Expected values are
 * those of the specification of the format. */
#include "answer_play.h"

#include "base/json.h"

static struct tokenizer *tagged, *plain; /* markers are single tokens; there are none */

static const char tools[] =
    "[{\"type\":\"function\",\"function\":{\"name\":\"get_time\",\"parameters\":{}}},"
    "{\"type\":\"function\",\"function\":{\"name\":\"get\"}},"
    "{\"type\":\"function\",\"function\":{\"name\":\"get_current_date\"}},"
    "{\"type\":\"function\",\"function\":{\"name\":\"get_weather\",\"parameters\":{"
    "\"type\":\"object\",\"properties\":{\"city\":{\"type\":\"string\"}}}}},"
    "{\"type\":\"function\",\"function\":{\"name\":\"a\",\"parameters\":{\"properties\":{"
    "\"x\":{\"type\":\"integer\"}}}}},"
    "{\"type\":\"function\",\"function\":{\"name\":\"b\",\"parameters\":{\"properties\":{"
    "\"y\":{\"type\":\"string\"}}}}},"
    "{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":{\"properties\":{"
    "\"n\":{\"type\":\"integer\"},\"list\":{\"type\":\"array\"},\"on\":{\"type\":\"boolean\"},"
    "\"cur\":{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"null\"}]},"
    "\"opt\":{\"type\":\"object\"},\"q\":{\"type\":\"string\"},\"x\":{\"type\":\"number\"},"
    "\"two words\":{\"type\":\"string\"},\"level\":{\"enum\":[1,2,3]},"
    "\"maybe\":{\"type\":[\"string\",\"null\"]}}}}}]";

enum {
    OPEN = 1,
    CUT_OFF = 2,
    NO_TOOLS = 4,
    NO_REASONING = 8,
    NO_CALLS = 16,
    DROP = 32,
    ONE = 64,
    OFF = 128,
    CLOSED = 256,
    ANY_NAME = 512,
    TAGS_ONLY = 1024,
    TEXT_ONLY = 2048
};

struct row {
    int flags;
    const char *output;
    const char *reasoning, *content; /* as streamed */
    const char *whole;               /* "reasoning|content|name arguments|..." */
};

static void options_of(const struct row *r, struct answer_options *o, struct json_object *list) {
    const struct dialect *d = dialect_find("glm47");
    *o = (struct answer_options){.reasoning = r->flags & NO_REASONING ? NULL : d,
                                 .tools = r->flags & NO_CALLS ? NULL : d,
                                 .tool_list = r->flags & ANY_NAME ? NULL : list,
                                 .drop_calls = r->flags & DROP,
                                 .single_call = r->flags & ONE,
                                 .thinking = !(r->flags & OFF)};
}

static const char *prompt_of(const struct row *r) {
    if (r->flags & OPEN) return "<|user|>hi<|assistant|><think>";
    if (r->flags & CLOSED) return "<|user|>hi<|assistant|></think>";
    return "<|user|>hi<|assistant|>";
}

static void check(const struct row *r, const struct tokenizer *t, struct json_object *list) {
    struct answer_options o;
    struct ids prompt = {0};
    options_of(r, &o, list);
    encode(t, prompt_of(r), strlen(prompt_of(r)), &prompt);
    o.prompt = prompt.data;
    o.n_prompt = prompt.n;
    for (int cut = 0; cut < N_CUT; cut++) {
        struct heard h = {0};
        play(&h, t, &o, r->output, strlen(r->output), !(r->flags & CUT_OFF), (enum cut)cut);
        if (strcmp(buf_text(&h.whole), r->whole)) print_error("cut %d of: %s\n", cut, r->output);
        assert_string_equal(buf_text(&h.whole), r->whole);
        assert_string_equal(buf_text(&h.reasoning), r->reasoning);
        assert_string_equal(buf_text(&h.content), r->content);
        /* Calls have one form only: the stream's fragments are the whole. */
        const char *calls = r->whole;
        for (int i = 0; i < h.n_call; i++) {
            struct buf call = {0};
            buf_printf(&call, "|%s %s", buf_text(&h.name[i]), buf_text(&h.arguments[i]));
            calls = strstr(calls, call.data);
            assert_non_null(calls);
            buf_reset(&call);
        }
        heard_reset(&h);
    }
    mem_free(prompt.data);
}

static void check_rows(const struct row *rows, size_t n) {
    struct json_object *list = NULL;
    sumi_error err = {0};
    assert_int_equal(json_parse(&list, tools, strlen(tools), "tools", &err), SUMI_OK);
    for (size_t i = 0; i < n; i++) {
        if (!(rows[i].flags & TEXT_ONLY)) check(&rows[i], tagged, list);
        if (!(rows[i].flags & TAGS_ONLY)) check(&rows[i], plain, list);
    }
    json_object_put(list);
}

#define CHECK(...)                                       \
    do {                                                 \
        static const struct row rows_[] = {__VA_ARGS__}; \
        check_rows(rows_, sizeof rows_ / sizeof *rows_); \
    } while (0)

#define K(key, value) "<arg_key>" key "</arg_key><arg_value>" value "</arg_value>"
#define WEATHER       "<tool_call>get_weather" K("city", "Beijing") "</tool_call>"
#define WEATHER_OUT   "get_weather {\"city\": \"Beijing\"}"

static void the_common_cases_of_the_format(void **state) {
    (void)state;
    CHECK({0, "This is a plain response.", "", "This is a plain response.",
           "null|This is a plain response."},
          {0, "<tool_call>get_current_date</tool_call>", "", "", "null|null|get_current_date {}"},
          {0, "<tool_call>get_current_date\n</tool_call>", "", "", "null|null|get_current_date {}"},
          {0, WEATHER, "", "", "null|null|" WEATHER_OUT},
          {0,
           "<tool_call>\nget_weather\n<arg_key>city</arg_key>\n<arg_value>Beijing</arg_value>\n"
           "</tool_call>",
           "", "", "null|null|" WEATHER_OUT},
          {0, "Checking." WEATHER, "", "Checking.", "null|Checking.|" WEATHER_OUT},
          {0, WEATHER WEATHER, "", "", "null|null|" WEATHER_OUT "|" WEATHER_OUT},
          {0, "  \n  " WEATHER, "", "", "null|null|" WEATHER_OUT},
          {OPEN, "thinking</think>", "thinking", "", "thinking|null"},
          {OPEN, "thinking", "thinking", "", "thinking|null"},
          {0, "<think>thinking", "thinking", "", "thinking|null"},
          {0, "<think>r</think>between" WEATHER, "r", "between", "r|between|" WEATHER_OUT},
          {OPEN, "r</think>\none" WEATHER "two" WEATHER "three\n", "r", "\nonetwothree\n",
           "r|onetwothree|" WEATHER_OUT "|" WEATHER_OUT},
          {OFF | CLOSED, "all <think>of</think> it", "", "all <think>of</think> it",
           "null|all <think>of</think> it"});
}

static void a_call_without_arguments_is_kept(void **state) {
    (void)state;
    CHECK({0, "<tool_call>get_time</tool_call>", "", "", "null|null|get_time {}"},
          {0, "<tool_call>get_time\n</tool_call>", "", "", "null|null|get_time {}"},
          {0, "<tool_call>get</tool_call>", "", "", "null|null|get {}"},
          {0, "ok\n<tool_call>get</tool_call>\n", "", "ok\n", "null|ok|get {}"});
}

static void arguments_have_the_types_of_the_schema(void **state) {
    (void)state;
    CHECK({0,
           "<tool_call>f" K("n", "10") K("list", "[]") K("on", "true") K("cur", "null")
               K("opt", "{\"a\":1}") K("q", "hi") "</tool_call>",
           "", "",
           "null|null|f {\"n\": 10, \"list\": [], \"on\": true, \"cur\": null, \"opt\": "
           "{\"a\": 1}, \"q\": \"hi\"}"},
          {0, "<tool_call>f" K("q", "123") K("level", "2") "</tool_call>", "", "",
           "null|null|f {\"q\": \"123\", \"level\": 2}"},
          {0, "<tool_call>f" K("q", "true") K("maybe", "null") K("other", "7") "</tool_call>", "",
           "", "null|null|f {\"q\": \"true\", \"maybe\": null, \"other\": \"7\"}"},
          {0, "<tool_call>f" K("x", "1e5") K("n", "1.5") K("on", "maybe") "</tool_call>", "", "",
           "null|null|f {\"x\": 100000, \"n\": 1.5, \"on\": \"maybe\"}"});
}

static void two_calls_may_meet_in_one_delta(void **state) {
    (void)state;
    CHECK({0, "ok<tool_call>a" K("x", "1") "</tool_call><tool_call>b" K("y", "z") "</tool_call>",
           "", "ok", "null|ok|a {\"x\": 1}|b {\"y\": \"z\"}"},
          {ONE, "ok<tool_call>a" K("x", "1") "</tool_call><tool_call>b" K("y", "z") "</tool_call>x",
           "", "okx", "null|okx|a {\"x\": 1}"});
}

static void a_call_ends_reasoning(void **state) {
    (void)state;
    CHECK(
        {OPEN, "Let me see.<tool_call>get_time</tool_call>", "Let me see.", "",
         "Let me see.|null|get_time {}"},
        {OPEN, "Let me see. \n<tool_call>get_time</tool_call> then", "Let me see.", " then",
         "Let me see.|then|get_time {}"},
        {OPEN, "Never closed, no call", "Never closed, no call", "", "Never closed, no call|null"});
}

static void a_quoted_call_of_an_undeclared_name_stays_text(void **state) {
    (void)state;
    CHECK({OPEN, "I could use <tool_call>frobnicate</tool_call> here</think>done",
           "I could use <tool_call>frobnicate</tool_call> here", "done",
           "I could use <tool_call>frobnicate</tool_call> here|done"},
          {OPEN, "the word <tool_call> opens one.</think>ok", "the word <tool_call> opens one.",
           "ok", "the word <tool_call> opens one.|ok"},
          {OPEN, "a <tool_call></think>b", "a <tool_call>", "b", "a <tool_call>|b"},
          {OPEN, "a <tool_call><tool_call>get_time</tool_call>", "a <tool_call>", "",
           "a <tool_call>|null|get_time {}"},
          {0, "<tool_call>nope" K("k", "v") "</tool_call>", "",
           "<tool_call>nope" K("k", "v") "</tool_call>",
           "null|<tool_call>nope" K("k", "v") "</tool_call>"},
          {0, "x<tool_call>get_timer</tool_call>y" WEATHER, "",
           "x<tool_call>get_timer</tool_call>y",
           "null|x<tool_call>get_timer</tool_call>y|" WEATHER_OUT},
          {0, "<tool_call> </tool_call>", "", "<tool_call> </tool_call>",
           "null|<tool_call> </tool_call>"},
          {0, "<tool_call>{\"name\": \"get\"}</tool_call>", "",
           "<tool_call>{\"name\": \"get\"}</tool_call>",
           "null|<tool_call>{\"name\": \"get\"}</tool_call>"});
}

static void values_may_hold_anything_but_their_end(void **state) {
    (void)state;
    CHECK({0, "<tool_call>f" K("q", "a<b </arg <arg_key> <tool_call> &lt;") "</tool_call>", "", "",
           "null|null|f {\"q\": \"a<b </arg <arg_key> <tool_call> &lt;\"}"},
          {0, "<tool_call>f" K("q", "say \"hi\" \\ to\nall\tof you\r") "</tool_call>", "", "",
           "null|null|f {\"q\": \"say \\\"hi\\\" \\\\ to\\nall\\tof you\\r\"}"},
          {0, "<tool_call>f" K("q", "😀 語 \\u00e9 \\ud83d\x01") "</tool_call>", "", "",
           "null|null|f {\"q\": \"😀 語 \\\\u00e9 \\\\ud83d\\u0001\"}"},
          {0, "<tool_call>f" K("q", " </think> ") "</tool_call>", "", "",
           "null|null|f {\"q\": \" </think> \"}"},
          {0, "<tool_call>f" K(" two words ", " v ") K("q", "") "</tool_call>", "", "",
           "null|null|f {\"two words\": \" v \", \"q\": \"\"}"},
          {0, "<tool_call>f" K("q", "1") K("q", "2") K("n", "3") K("n", "4") "</tool_call>", "", "",
           "null|null|f {\"q\": \"1\", \"n\": 3}"},
          {0, "<tool_call>f" K("q\"\n", "1") K("q", "2") "</tool_call>", "", "",
           "null|null|f {\"q\\\"\": \"1\", \"q\": \"2\"}"},
          {0, "<tool_call>f drop" K("q", "1") "</tool_call>", "",
           "<tool_call>f drop" K("q", "1") "</tool_call>",
           "null|<tool_call>f drop" K("q", "1") "</tool_call>"},
          {0,
           "<tool_call>f<arg_key>q</arg_key>noise<arg_value>1</arg_value>noise" K(
               "n", "2") "noise</tool_call>",
           "", "", "null|null|f {\"q\": \"1\", \"n\": 2}"});
}

static void malformed_calls_keep_what_is_whole(void **state) {
    (void)state;
    CHECK(
        {0, "<tool_call>f<arg_key>q</arg_key></tool_call>", "", "", "null|null|f {}"},
        {0, "<tool_call>f<arg_key>q</tool_call>x", "", "x", "null|x|f {}"},
        {0,
         "<tool_call>f<arg_key>z</arg_key><arg_key>q</arg_key><arg_value>1</arg_value></tool_call>",
         "", "", "null|null|f {\"q\": \"1\"}"},
        {0, "<tool_call>f" K("n", "1") "<arg_key>q</arg_key><arg_value>abc</tool_call>", "", "",
         "null|null|f {\"n\": 1, \"q\": \"abc\"}"},
        {0, "<tool_call>f" K("q", "1") "<arg_key>n</arg_key><arg_value>12</tool_call>", "", "",
         "null|null|f {\"q\": \"1\"}"},
        {0, "<tool_call>f" K("n", "1") "<tool_call>get</tool_call>", "", "",
         "null|null|f {\"n\": 1}|get {}"},
        {0, "a</tool_call>b</arg_key>c<arg_value>", "", "a</tool_call>b</arg_key>c<arg_value>",
         "null|a</tool_call>b</arg_key>c<arg_value>"});
}

static void a_call_cut_off_by_the_budget_stays_open(void **state) {
    (void)state;
    CHECK({CUT_OFF, "<tool_call>f" K("n", "3") "<arg_key>q</arg_key><arg_value>abc", "", "",
           "null|null|f {\"n\": 3, \"q\": \"abc"},
          {CUT_OFF, "<tool_call>f" K("q", "3") "<arg_key>n</arg_key><arg_value>12", "", "",
           "null|null|f {\"q\": \"3\""},
          {CUT_OFF, "<tool_call>f<arg_key>n</arg_k", "", "", "null|null|f {"},
          {CUT_OFF, "<tool_call>f" K("n", "3"), "", "", "null|null|f {\"n\": 3"},
          {CUT_OFF, "ok <tool_call>get", "", "ok <tool_call>get", "null|ok <tool_call>get"},
          {CUT_OFF, "ok <tool", "", "ok <tool", "null|ok <tool"},
          {CUT_OFF | OPEN, "so <tool_call>ge", "so <tool_call>ge", "", "so <tool_call>ge|null"},
          {CUT_OFF, WEATHER "<tool_call>", "", "<tool_call>", "null|<tool_call>|" WEATHER_OUT});
}

static void a_model_that_stops_inside_a_call_closed_it(void **state) {
    (void)state;
    CHECK({0, "<tool_call>f" K("n", "3") "<arg_key>q</arg_key><arg_value>abc", "", "",
           "null|null|f {\"n\": 3, \"q\": \"abc\"}"},
          {0, "<tool_call>f" K("q", "3") "<arg_key>n</arg_key><arg_value>12", "", "",
           "null|null|f {\"q\": \"3\"}"},
          {0, "<tool_call>get_time", "", "", "null|null|get_time {}"},
          {0, "<tool_call>get_tim", "", "<tool_call>get_tim", "null|<tool_call>get_tim"});
}

static void thinking_follows_the_prompt(void **state) {
    (void)state;
    CHECK({0, "\n<think>r</think>hi", "r", "hi", "r|hi"},
          {OPEN, "<think>r</think>hi", "r", "hi", "r|hi"},
          {OPEN | OFF, "r</think>hi", "r", "hi", "r|hi"},
          {OPEN, " r \n</think>\n\nhi", " r", "\n\nhi", " r|\n\nhi"},
          {0, "hi<think>r</think>there", "r", "hithere", "r|hithere"},
          {OPEN, "one </think><think>two</think>x", "onetwo", "x", "onetwo|x"},
          {CLOSED, "a</think>b", "", "ab", "null|ab"},
          /* A stream cannot know; the whole response can. */
          {0, "reasoned\n</think>answer", "", "reasoned\nanswer", "reasoned|answer"},
          {0, "reasoned</think>a</think>b" WEATHER, "", "reasonedab", "reasoned|ab|" WEATHER_OUT},
          {0, "<think>r</think>a</think>b", "r", "ab", "r|ab"},
          {0, WEATHER "a</think>b", "", "ab", "null|ab|" WEATHER_OUT},
          {0, "x</think><think>y</think>z", "y", "xz", "xy|z"},
          {0, " \n ", "", " \n ", "null| \n "}, {OPEN, " \n ", "", "", "null|null"},
          {OPEN, "r </thin", "r </thin", "", "r </thin|null"});
}

static void a_feature_that_is_off_leaves_its_markers_as_text(void **state) {
    (void)state;
    CHECK({NO_REASONING, "<think>r</think>" WEATHER, "", "<think>r</think>",
           "null|<think>r</think>|" WEATHER_OUT},
          {NO_CALLS, "<think>r</think>" WEATHER, "r", WEATHER, "r|" WEATHER},
          {NO_CALLS | NO_REASONING, "<think>r</think>" WEATHER, "", "<think>r</think>" WEATHER,
           "null|<think>r</think>" WEATHER});
}

static void dropped_calls_leave_no_trace(void **state) {
    (void)state;
    CHECK({DROP, "a" WEATHER "b", "", "ab", "null|ab"},
          {DROP | OPEN, "r " WEATHER " b", "r", " b", "r| b"},
          {DROP | ANY_NAME, "a<tool_call>nope" K("k", "v") "</tool_call>b", "", "ab", "null|ab"},
          {DROP | ANY_NAME, "The <tool_call> tag opens", "", "The <tool_call> tag opens",
           "null|The <tool_call> tag opens"},
          {DROP, "  " WEATHER, "", "", "null|null"});
}

static void without_declarations_any_word_is_a_name(void **state) {
    (void)state;
    CHECK({ANY_NAME, "<tool_call>nope" K("k", "1") "</tool_call>", "", "",
           "null|null|nope {\"k\": \"1\"}"},
          {ANY_NAME, "<tool_call>two words</tool_call>", "", "<tool_call>two words</tool_call>",
           "null|<tool_call>two words</tool_call>"},
          {ANY_NAME, "<tool_call>x", "", "<tool_call>x", "null|<tool_call>x"});
}

static void special_tokens_that_are_no_markers_vanish(void **state) {
    (void)state;
    CHECK({TAGS_ONLY, "a<|user|>b<think>c<|endoftext|>d</think>e", "cd", "abe", "cd|abe"},
          {TAGS_ONLY, "<tool_call>f" K("q", "a<|user|>b") "</tool_call>", "", "",
           "null|null|f {\"q\": \"ab\"}"});
}

static void a_marker_spelled_by_ordinary_tokens_is_data(void **state) {
    (void)state;
    static const char *const text[] = {"<think>",     "</think>", "<tool_call>get</tool_call>",
                                       "<tool_call>", "get",      "</tool_call>"};
    struct answer *a;
    struct heard h = {0};
    const struct delta *d;
    size_t n;
    sumi_error err = {0};
    const struct dialect *glm = dialect_find("glm45");
    struct answer_options o = {.reasoning = glm, .tools = glm, .thinking = true};
    assert_int_equal(answer_open(&a, tagged, &o, &err), SUMI_OK);
    for (size_t i = 0; i < 6; i++) push(a, &h, &(struct piece){-1, text[i], strlen(text[i])}, 1);
    assert_int_equal(answer_finish(a, true, &d, &n, &err), SUMI_OK);
    hear(&h, d, n);
    assert_string_equal(buf_text(&h.content), "<think></think><tool_call>get</tool_call>"
                                              "<tool_call>get</tool_call>");
    assert_int_equal(h.n_call, 0);
    heard_reset(&h);
    answer_close(a);
}

static void a_call_end_spelled_inside_a_value_is_data_where_it_has_a_token(void **state) {
    (void)state;
    const struct dialect *glm = dialect_find("glm47");
    struct answer_options o = {.reasoning = glm, .tools = glm, .thinking = true};
    for (int with_token = 0; with_token < 2; with_token++) {
        struct tokenizer *t = with_token ? tagged : plain;
        struct heard h = {0};
        struct answer *a;
        const struct delta *d;
        size_t n;
        sumi_error err = {0};
        int32_t open = tokenizer_find(t, "<tool_call>", 11);
        int32_t end = tokenizer_find(t, "</tool_call>", 12);
        struct piece list[] = {{open, "<tool_call>", 11},
                               {-1,
                                "f"
                                "<arg_key>q</arg_key><arg_value>x</tool_call>y</arg_value>",
                                58},
                               {end, "</tool_call>", 12}};
        list[1].n = strlen(list[1].text);
        assert_int_equal(answer_open(&a, t, &o, &err), SUMI_OK);
        push(a, &h, list, 3);
        assert_int_equal(answer_finish(a, true, &d, &n, &err), SUMI_OK);
        hear(&h, d, n);
        assert_string_equal(buf_text(&h.arguments[0]),
                            with_token ? "{\"q\": \"x</tool_call>y\"}" : "{\"q\": \"x\"}");
        heard_reset(&h);
        answer_close(a);
    }
}

static void a_long_string_streams_while_it_arrives(void **state) {
    (void)state;
    const struct dialect *glm = dialect_find("glm47");
    struct json_object *list = NULL;
    sumi_error err = {0};
    assert_int_equal(json_parse(&list, tools, strlen(tools), "tools", &err), SUMI_OK);
    struct answer_options o = {.reasoning = glm, .tools = glm, .tool_list = list, .thinking = true};
    struct buf text = {0};
    buf_puts(&text, "<tool_call>f<arg_key>q</arg_key><arg_value>");
    size_t prefix = text.len;
    for (int i = 0; i < 4000; i++) buf_putc(&text, (char)(i % 40 == 39 ? '\n' : 'a' + i % 26));
    buf_puts(&text, "</arg_value></tool_call>");
    struct heard h = {0};
    struct answer *a;
    assert_int_equal(answer_open(&a, plain, &o, &err), SUMI_OK);
    for (size_t i = 0; i < text.len; i++) {
        push(a, &h, &(struct piece){-1, text.data + i, 1}, 1);
        if (i < prefix || i >= prefix + 4000) continue;
        /* Nothing lags: after k characters of the value they are all there. */
        size_t newlines = (i - prefix + 1) / 40;
        assert_int_equal(h.arguments[0].len, strlen("{\"q\": \"") + i - prefix + 1 + newlines);
    }
    const struct delta *d;
    size_t n;
    assert_int_equal(answer_finish(a, true, &d, &n, &err), SUMI_OK);
    hear(&h, d, n);
    assert_int_equal(h.arguments[0].len, strlen("{\"q\": \"\"}") + 4000 + 100);
    heard_reset(&h);
    buf_reset(&text);
    answer_close(a);
    json_object_put(list);
}

static void no_name_is_sent_before_it_is_complete(void **state) {
    (void)state;
    const struct dialect *glm = dialect_find("glm47");
    struct json_object *list = NULL;
    sumi_error err = {0};
    assert_int_equal(json_parse(&list, tools, strlen(tools), "tools", &err), SUMI_OK);
    struct answer_options o = {.reasoning = glm, .tools = glm, .tool_list = list, .thinking = true};
    static const char *const parts[] = {"<tool_call>", "get_weather\n", "<arg_key>city</arg_key>",
                                        "<arg_value>", "Beijing",       "</arg_value>",
                                        "</tool_call>"};
    static const char *const after[] = {"",
                                        "",
                                        "",
                                        "{\"city\": \"",
                                        "{\"city\": \"Beijing",
                                        "{\"city\": \"Beijing\"",
                                        "{\"city\": \"Beijing\"}"};
    struct heard h = {0};
    struct answer *a;
    assert_int_equal(answer_open(&a, plain, &o, &err), SUMI_OK);
    for (size_t i = 0; i < 7; i++) {
        push(a, &h, &(struct piece){-1, parts[i], strlen(parts[i])}, 1);
        assert_int_equal(h.n_call, i >= 2);
        if (h.n_call) assert_string_equal(buf_text(&h.name[0]), "get_weather");
        assert_string_equal(buf_text(&h.arguments[0]), after[i]);
    }
    heard_reset(&h);
    answer_close(a);
    json_object_put(list);
}

static void every_marker_may_be_cut_at_every_byte(void **state) {
    (void)state;
    static const char text[] = "<think>r</think>c<tool_call>get_weather<arg_key>city</arg_key>"
                               "<arg_value>Oslo</arg_value></tool_call>d";
    const struct dialect *glm = dialect_find("glm47");
    struct answer_options o = {.reasoning = glm, .tools = glm, .thinking = true};
    for (size_t i = 0; i < sizeof text; i++) {
        for (size_t j = i; j < sizeof text; j++) {
            struct heard h = {0};
            struct answer *a;
            const struct delta *d;
            size_t n;
            sumi_error err = {0};
            assert_int_equal(answer_open(&a, plain, &o, &err), SUMI_OK);
            push(a, &h, &(struct piece){-1, text, i}, 1);
            push(a, &h, &(struct piece){-1, text + i, j - i}, 1);
            push(a, &h, &(struct piece){-1, text + j, sizeof text - 1 - j}, j < sizeof text - 1);
            assert_int_equal(answer_finish(a, true, &d, &n, &err), SUMI_OK);
            hear(&h, d, n);
            whole_form(&h, a);
            assert_string_equal(buf_text(&h.whole), "r|cd|get_weather {\"city\": \"Oslo\"}");
            heard_reset(&h);
            answer_close(a);
        }
    }
}

static int make_tokenizers(void **state) {
    (void)state;
    static const char *const tags[] = {GLM_ROLES, GLM_TAGS};
    tagged = byte_tokenizer(tags, sizeof tags / sizeof *tags);
    plain = byte_tokenizer(NULL, 0);
    return tagged && plain ? 0 : -1;
}

static int drop_tokenizers(void **state) {
    (void)state;
    tokenizer_close(tagged);
    tokenizer_close(plain);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_common_cases_of_the_format),
        cmocka_unit_test(a_call_without_arguments_is_kept),
        cmocka_unit_test(arguments_have_the_types_of_the_schema),
        cmocka_unit_test(two_calls_may_meet_in_one_delta),
        cmocka_unit_test(a_call_ends_reasoning),
        cmocka_unit_test(a_quoted_call_of_an_undeclared_name_stays_text),
        cmocka_unit_test(values_may_hold_anything_but_their_end),
        cmocka_unit_test(malformed_calls_keep_what_is_whole),
        cmocka_unit_test(a_call_cut_off_by_the_budget_stays_open),
        cmocka_unit_test(a_model_that_stops_inside_a_call_closed_it),
        cmocka_unit_test(thinking_follows_the_prompt),
        cmocka_unit_test(a_feature_that_is_off_leaves_its_markers_as_text),
        cmocka_unit_test(dropped_calls_leave_no_trace),
        cmocka_unit_test(without_declarations_any_word_is_a_name),
        cmocka_unit_test(special_tokens_that_are_no_markers_vanish),
        cmocka_unit_test(a_marker_spelled_by_ordinary_tokens_is_data),
        cmocka_unit_test(a_call_end_spelled_inside_a_value_is_data_where_it_has_a_token),
        cmocka_unit_test(a_long_string_streams_while_it_arrives),
        cmocka_unit_test(no_name_is_sent_before_it_is_complete),
        cmocka_unit_test(every_marker_may_be_cut_at_every_byte),
    };
    return cmocka_run_group_tests(tests, make_tokenizers, drop_tokenizers);
}
