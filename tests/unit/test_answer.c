/* What all dialects share: cuts that do not matter, counts of reasoning tokens, order of calls on
 * the parser, and memory that runs out. */
#include "answer_play.h"

#include "base/json.h"
#include "chat/parse.h"

static struct tokenizer *tagged, *plain;
static struct json_object *tools;

static const char tools_text[] =
    "[{\"type\":\"function\",\"function\":{\"name\":\"get\",\"parameters\":{\"properties\":{"
    "\"q\":{\"type\":\"string\"},\"n\":{\"type\":\"integer\"},\"o\":{\"type\":\"object\"}}}}},"
    "{\"name\":\"get_time\"}]";

static struct answer_options both(void) {
    const struct dialect *glm = dialect_find("glm47");
    return (struct answer_options){
        .reasoning = glm, .tools = glm, .tool_list = tools, .thinking = true};
}

static void parsers_are_found_by_their_names(void **state) {
    (void)state;
    assert_non_null(dialect_find("glm47"));
    assert_ptr_equal(dialect_find("glm47"), dialect_find("glm45"));
    assert_null(dialect_find("glm"));
    assert_null(dialect_find(""));
    assert_string_equal(dialect_names(), "glm47, glm45");
}

static void reasoning_and_tools_must_speak_one_dialect(void **state) {
    (void)state;
    static const struct dialect other = {.name = "other", .alias = "other"};
    struct answer_options o = both();
    struct answer *a;
    sumi_error err = {0};
    o.tools = &other;
    assert_int_equal(answer_open(&a, plain, &o, &err), SUMI_ERR_ARG);
    assert_null(a);
    assert_non_null(strstr(err.msg, "\"glm47\""));
    assert_non_null(strstr(err.msg, "\"other\""));
}

static void an_ended_answer_takes_nothing(void **state) {
    (void)state;
    struct answer_options o = both();
    struct answer *a;
    struct answer_message m;
    const struct delta *d;
    size_t n;
    sumi_error err = {0};
    assert_int_equal(answer_open(&a, plain, &o, &err), SUMI_OK);
    assert_int_equal(answer_message(a, &m, &err), SUMI_ERR_STATE);
    assert_int_equal(answer_finish(a, true, &d, &n, &err), SUMI_OK);
    assert_int_equal(n, 0);
    assert_int_equal(answer_finish(a, true, &d, &n, &err), SUMI_ERR_STATE);
    assert_int_equal(answer_push(a, NULL, 0, &d, &n, &err), SUMI_ERR_STATE);
    assert_int_equal(answer_message(a, &m, &err), SUMI_OK);
    assert_null(m.content);
    assert_null(m.reasoning);
    assert_int_equal(m.n_call, 0);
    answer_close(a);
}

static void without_parsers_everything_is_content(void **state) {
    (void)state;
    struct answer_options o = {0};
    struct heard h = {0};
    static const char text[] = " <think>a</think><tool_call>b<|user|> ";
    play(&h, tagged, &o, text, sizeof text - 1, true, CUT_CHARACTERS);
    assert_string_equal(buf_text(&h.content), text);
    assert_string_equal(buf_text(&h.reasoning), "");
    heard_reset(&h);
}

static void one_push_merges_what_belongs_together(void **state) {
    (void)state;
    struct answer_options o = both();
    struct answer *a;
    const struct delta *d;
    size_t n;
    sumi_error err = {0};
    static const char text[] = "<think>r</think>c<tool_call>get<arg_key>q</arg_key><arg_value>a"
                               "</arg_value><arg_key>n</arg_key><arg_value>1</arg_value>";
    static const struct delta want[] = {{DELTA_REASONING, 0, "r", 1},
                                        {DELTA_CONTENT, 0, "c", 1},
                                        {DELTA_CALL_START, 0, "get", 3},
                                        {DELTA_CALL_ARGS, 0, "{\"q\": \"a\", \"n\": 1", 17}};
    assert_int_equal(answer_open(&a, plain, &o, &err), SUMI_OK);
    assert_int_equal(answer_push(a, &(struct piece){-1, text, sizeof text - 1}, 1, &d, &n, &err),
                     SUMI_OK);
    assert_int_equal(n, 4);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(d[i].kind, want[i].kind);
        assert_int_equal(d[i].call, want[i].call);
        assert_int_equal(d[i].n, want[i].n);
        assert_memory_equal(d[i].text, want[i].text, want[i].n);
    }
    assert_int_equal(answer_calls(a), 1);
    answer_close(a);
}

static void the_state_tells_whether_the_model_reasons(void **state) {
    (void)state;
    struct answer_options o = both();
    struct answer *a;
    struct heard h = {0};
    sumi_error err = {0};
    static const char *const parts[] = {"<think>", "hm", "</think>", "x", "<think>", "<tool_call>"};
    static const bool reasons[] = {true, true, false, false, true, false};
    assert_int_equal(answer_open(&a, plain, &o, &err), SUMI_OK);
    assert_false(answer_in_reasoning(a));
    for (size_t i = 0; i < 6; i++) {
        push(a, &h, &(struct piece){-1, parts[i], strlen(parts[i])}, 1);
        assert_int_equal(answer_in_reasoning(a), reasons[i]);
    }
    heard_reset(&h);
    answer_close(a);
}

/* One token per byte, or per marker where it is one. */
static void tokens_between_the_markers_are_counted(void **state) {
    (void)state;
    static const struct {
        const char *prompt, *text;
        int with_tokens, spelled;
    } rows[] = {
        {"", "<think>abc</think>de", 3, 3},
        {"", "no thinking", 0, 0},
        {"<think>", "abc</think>de", 3, 3},
        {"<think>", "abcd", 4, 4},
        {"<think>", "a < b</think>c", 5, 5},
        {"<think>", "a</b</think>c", 4, 4},
        {"<think>", "ab<tool_call>get_time</tool_call>cd", 2, 2},
        {"<think>", "a<tool_call>zz</tool_call>b</think>c", 6, 1 + 11 + 2 + 12 + 1},
        {"<think>", "a<tool_call>get_time</tool_call><think>bc</think>d", 3, 3},
        {"<think>", "a</think><think>b</think>c", 2, 2},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (int spelled = 0; spelled < 2; spelled++) {
            struct tokenizer *t = spelled ? plain : tagged;
            struct answer_options o = both();
            struct heard h = {0};
            struct ids prompt = {0};
            encode(t, rows[i].prompt, strlen(rows[i].prompt), &prompt);
            o.prompt = prompt.data;
            o.n_prompt = prompt.n;
            play(&h, t, &o, rows[i].text, strlen(rows[i].text), true, CUT_TOKENS);
            assert_int_equal(h.n_reasoning_token, spelled ? rows[i].spelled : rows[i].with_tokens);
            heard_reset(&h);
            mem_free(prompt.data);
        }
    }
}

static void the_start_follows_the_end_of_the_prompt(void **state) {
    (void)state;
    static const struct {
        const char *prompt;
        bool reasons_with_tokens, reasons_spelled;
    } rows[] = {
        {"", false, false},
        {"<|user|>hi<|assistant|>", false, false},
        {"<|user|>hi<|assistant|><think>", true, true},
        {"<|user|>hi<|assistant|><think>\n", true, true},
        {"<|user|>hi<|assistant|><think>so far", true, false},
        {"<|user|>hi<|assistant|></think>", false, false},
        {"<|assistant|><think>old", true, false},
        {"<|assistant|><think>old<|user|>new<|assistant|>", false, false},
        {"<|assistant|><think>r</think>x<|user|>y<|assistant|><think>", true, true},
        {"<|assistant|><think>r<tool_call>get</tool_call><|observation|>1<|assistant|><think>",
         true, true},
        {"<|assistant|><think>r<tool_call>get</tool_call>", false, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (int spelled = 0; spelled < 2; spelled++) {
            struct tokenizer *t = spelled ? plain : tagged;
            struct answer_options o = both();
            struct answer *a;
            sumi_error err = {0};
            struct ids prompt = {0};
            encode(t, rows[i].prompt, strlen(rows[i].prompt), &prompt);
            o.prompt = prompt.data;
            o.n_prompt = prompt.n;
            assert_int_equal(answer_open(&a, t, &o, &err), SUMI_OK);
            assert_int_equal(answer_in_reasoning(a),
                             spelled ? rows[i].reasons_spelled : rows[i].reasons_with_tokens);
            answer_close(a);
            mem_free(prompt.data);
        }
    }
}

static void characters_cut_between_pieces_come_out_whole(void **state) {
    (void)state;
    struct answer_options o = both();
    static const char text[] = "😀<tool_call>get<arg_key>q</arg_key><arg_value>日😀"
                               "</arg_value></tool_call>é";
    struct answer *a;
    struct heard h = {0};
    const struct delta *d;
    size_t n;
    sumi_error err = {0};
    assert_int_equal(answer_open(&a, plain, &o, &err), SUMI_OK);
    for (size_t i = 0; i < sizeof text - 1; i++) {
        assert_int_equal(answer_push(a, &(struct piece){-1, text + i, 1}, 1, &d, &n, &err),
                         SUMI_OK);
        for (size_t k = 0; k < n; k++) assert_true(utf8_valid(d[k].text, d[k].n));
        hear(&h, d, n);
    }
    assert_int_equal(answer_finish(a, true, &d, &n, &err), SUMI_OK);
    hear(&h, d, n);
    assert_string_equal(buf_text(&h.content), "😀é");
    assert_string_equal(buf_text(&h.arguments[0]), "{\"q\": \"日😀\"}");
    heard_reset(&h);
    answer_close(a);
}

static const char *const fragments[] = {
    "<think>",
    "</think>",
    "<tool_call>",
    "</tool_call>",
    "<arg_key>",
    "</arg_key>",
    "<arg_value>",
    "</arg_value>",
    "get",
    "get_time",
    "q",
    "n",
    "o",
    "12",
    "{\"a\": [1, \"x\"]}",
    "\"",
    "\\",
    "\n",
    " ",
    "😀",
    "語",
    "<",
    "</",
    "<tool",
    "</arg_val",
    "<think",
    "_call>",
    "nope",
    "<|user|>",
    "a b",
    "<tool_call>get<arg_key>q</arg_key><arg_value>",
    "<tool_call>get_time</tool_call>",
    "<arg_key>n</arg_key><arg_value>5</arg_value>",
    "</arg_value></tool_call>",
};

static void random_text(struct buf *text) {
    size_t n = (size_t)(rand() % 24);
    while (n--) buf_puts(text, fragments[(size_t)rand() % (sizeof fragments / sizeof *fragments)]);
}

static void same(const struct heard *a, const struct heard *b) {
    assert_string_equal(buf_text((struct buf *)&a->whole), buf_text((struct buf *)&b->whole));
    assert_string_equal(buf_text((struct buf *)&a->reasoning),
                        buf_text((struct buf *)&b->reasoning));
    assert_string_equal(buf_text((struct buf *)&a->content), buf_text((struct buf *)&b->content));
    assert_int_equal(a->n_call, b->n_call);
    for (int i = 0; i < a->n_call; i++) {
        assert_string_equal(buf_text((struct buf *)&a->name[i]),
                            buf_text((struct buf *)&b->name[i]));
        assert_string_equal(buf_text((struct buf *)&a->arguments[i]),
                            buf_text((struct buf *)&b->arguments[i]));
    }
}

/* Arguments of a complete answer are JSON objects, and every call is of a declared tool. */
static void check_calls(struct heard *h) {
    for (int i = 0; i < h->n_call; i++) {
        struct json_object *v = NULL;
        sumi_error err = {0};
        assert_int_equal(json_parse(&v, h->arguments[i].data, h->arguments[i].len, "args", &err),
                         SUMI_OK);
        assert_true(json_is(v, json_type_object));
        json_object_put(v);
        const char *name = buf_text(&h->name[i]);
        assert_true(!strcmp(name, "get") || !strcmp(name, "get_time"));
    }
}

static void random_answers_do_not_depend_on_cuts(void **state) {
    (void)state;
    srand(20);
    int n_with_call = 0, n_with_reasoning = 0;
    for (int round = 0; round < 1000; round++) {
        struct tokenizer *t = round & 1 ? tagged : plain;
        struct answer_options o = both();
        struct ids prompt = {0};
        struct buf text = {0};
        bool complete = rand() % 2;
        if (rand() % 2) encode(t, "<think>", 7, &prompt);
        o.prompt = prompt.data;
        o.n_prompt = prompt.n;
        o.single_call = rand() % 8 == 0;
        o.drop_calls = rand() % 8 == 0;
        random_text(&text);
        struct heard first = {0};
        play(&first, t, &o, buf_text(&text), text.len, complete, CUT_WHOLE);
        if (complete) check_calls(&first);
        n_with_call += first.n_call > 0;
        n_with_reasoning += first.reasoning.len > 0;
        for (int cut = 1; cut < N_CUT; cut++) {
            struct heard h = {0};
            play(&h, t, &o, buf_text(&text), text.len, complete, (enum cut)cut);
            same(&first, &h);
            heard_reset(&h);
        }
        heard_reset(&first);
        buf_reset(&text);
        mem_free(prompt.data);
    }
    /* The generator reaches what it is meant to reach. */
    assert_true(n_with_call > 100 && n_with_reasoning > 100);
}

/* A second dialect, as small as one can be: "<a>" and "<b>" switch between reasoning and content.
 */
static sumi_status two_open(void *state, const struct tokenizer *t, const struct answer_options *o,
                            uint32_t *enabled, sumi_error *err) {
    (void)t, (void)o, (void)err;
    *(bool *)state = false;
    *enabled = 3;
    return SUMI_OK;
}

static void two_close(void *state) {
    (void)state;
}

static uint32_t two_expects(const void *state) {
    (void)state;
    return 3;
}

static bool two_in_reasoning(const void *state) {
    return *(const bool *)state;
}

static size_t two_text(void *state, struct collect *out, const char *s, size_t n) {
    if (*(bool *)state) collect_reasoning(out, s, n);
    else collect_content(out, s, n);
    return n;
}

static void two_marker(void *state, struct collect *out, int marker) {
    if (marker) collect_end_reasoning(out);
    else collect_end_content(out);
    *(bool *)state = marker == 0;
}

static void two_end(void *state, struct collect *out, bool complete) {
    (void)state, (void)complete;
    collect_end(out);
}

static void another_dialect_needs_only_its_states(void **state) {
    (void)state;
    static const struct marker markers[] = {{"<a>", false, COUNT_BEGINS},
                                            {"<b>", false, COUNT_ENDS}};
    static const struct dialect two = {.name = "two",
                                       .alias = "two",
                                       .marker = markers,
                                       .n_marker = 2,
                                       .state_size = sizeof(bool),
                                       .open = two_open,
                                       .close = two_close,
                                       .expects = two_expects,
                                       .in_reasoning = two_in_reasoning,
                                       .on_text = two_text,
                                       .on_marker = two_marker,
                                       .on_end = two_end};
    struct answer_options o = {.reasoning = &two, .tools = &two};
    for (int cut = 0; cut < N_CUT; cut++) {
        struct heard h = {0};
        play(&h, plain, &o, "x<a>re <b>y<c><", 15, true, (enum cut)cut);
        assert_string_equal(buf_text(&h.reasoning), "re");
        assert_string_equal(buf_text(&h.content), "xy<c><");
        if (cut == CUT_TOKENS) assert_int_equal(h.n_reasoning_token, 3);
        heard_reset(&h);
    }
}

static sumi_status everything_once(sumi_error *err) {
    static const char text[] = " <think>r </think>c<tool_call>nope</tool_call><tool_call>get"
                               "<arg_key>q</arg_key><arg_value>s\n</arg_value><arg_key>o</arg_key>"
                               "<arg_value>{\"a\": 1}</arg_value></tool_call>d";
    struct answer_options o = both();
    struct answer *a;
    struct answer_message m;
    const struct delta *d;
    size_t n;
    static const int32_t prompt[] = {'h', 'i'};
    o.prompt = prompt;
    o.n_prompt = 2;
    TRY(answer_open(&a, plain, &o, err));
    sumi_status status = SUMI_OK;
    for (size_t i = 0; i < sizeof text - 1 && status == SUMI_OK; i++)
        status = answer_push(a, &(struct piece){-1, text + i, 1}, 1, &d, &n, err);
    if (status == SUMI_OK) status = answer_finish(a, true, &d, &n, err);
    if (status == SUMI_OK) status = answer_message(a, &m, err);
    if (status == SUMI_OK) {
        static const char want[] = "{\"q\": \"s\\n\", \"o\": {\"a\": 1}}";
        assert_int_equal(m.n_call, 1);
        assert_int_equal(m.call[0].arguments_len, sizeof want - 1);
        assert_memory_equal(m.call[0].arguments, want, sizeof want - 1);
    }
    answer_close(a);
    return status;
}

static void memory_may_run_out_anywhere(void **state) {
    (void)state;
    sumi_error err = {0};
    long k = 1;
    for (;; k++) {
        mem_fail_at(k);
        sumi_status status = everything_once(&err);
        mem_fail_at(0);
        if (status == SUMI_OK) break;
        assert_int_equal(status, SUMI_ERR_MEMORY);
    }
    assert_true(k > 10);
}

static int make_fixture(void **state) {
    (void)state;
    static const char *const tags[] = {GLM_ROLES, GLM_TAGS};
    sumi_error err = {0};
    tagged = byte_tokenizer(tags, sizeof tags / sizeof *tags);
    plain = byte_tokenizer(NULL, 0);
    return tagged && plain &&
                   json_parse(&tools, tools_text, sizeof tools_text - 1, "tools", &err) == SUMI_OK
               ? 0
               : -1;
}

static int drop_fixture(void **state) {
    (void)state;
    tokenizer_close(tagged);
    tokenizer_close(plain);
    json_object_put(tools);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parsers_are_found_by_their_names),
        cmocka_unit_test(reasoning_and_tools_must_speak_one_dialect),
        cmocka_unit_test(an_ended_answer_takes_nothing),
        cmocka_unit_test(without_parsers_everything_is_content),
        cmocka_unit_test(one_push_merges_what_belongs_together),
        cmocka_unit_test(the_state_tells_whether_the_model_reasons),
        cmocka_unit_test(tokens_between_the_markers_are_counted),
        cmocka_unit_test(the_start_follows_the_end_of_the_prompt),
        cmocka_unit_test(characters_cut_between_pieces_come_out_whole),
        cmocka_unit_test(random_answers_do_not_depend_on_cuts),
        cmocka_unit_test(another_dialect_needs_only_its_states),
        cmocka_unit_test(memory_may_run_out_anywhere),
    };
    return cmocka_run_group_tests(tests, make_fixture, drop_fixture);
}
