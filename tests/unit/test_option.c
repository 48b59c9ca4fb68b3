/* The option machinery over a small table of its own, then sumi's own table. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/option.h"
#include "base/option_table.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

static const struct opt_row rows[] = {
    OPTION(I, TEXT, 1, "model", NULL, NULL, "model"),
    OPTION(I, TEXT, 1, "config", NULL, NULL, "config file"),
    OPTION(I, TEXT, 1, "help", NULL, NULL, "help", .flags = OPT_STOP | OPT_MAYBE, .alias = "-h"),
    OPTION(I, SIZE, 1, "max-model-len", NULL, "auto=-1|-1|1..", "length"),
    OPTION(I, INT, 1, "max-num-seqs", "4", "1..", "sequences", .flags = OPT_COMMON),
    OPTION(I, NUMBER, 1, "share", "0.92", ">0..1", "share", .alias = "--portion"),
    OPTION(I, INT, 1, "tensor-parallel-size", "1", NULL, "ranks", .alias = "-tp"),
    OPTION(I, INT, 1, "level", "2", "0..3", "level", .alias = "-O"),
    OPTION(I, TEXT, 1, "dtype", "auto", "auto|bfloat16|half=float16", "type",
           .env = "T_OLD,T_DTYPE"),
    OPTION(I, BOOL, 1, "enable-x", "false", NULL, "x", .env = "T_X"),
    OPTION(I, BOOL, 1, "disable-stats", "false", NULL, "no stats"),
    OPTION(I, BOOL, 1, "eager", "false", NULL, "eager"),
    OPTION(I, LIST, 1, "name", "[]", NULL, "names"),
    OPTION(I, LIST, 1, "api-key", NULL, NULL, "keys", .env = "T_KEY", .flags = OPT_SECRET),
    OPTION(I, JSON, 1, "over", "{}", "object", "overrides", .alias = "-ov"),
    OPTION(A, INT, 1, "swap-space", NULL, NULL, "nothing is swapped"),
    OPTION(A, BOOL, 1, "dbo", "false", NULL, "no such batches"),
    OPTION(R, TEXT, 1, "middleware", NULL, NULL, "no Python"),
    OPTION(R, BOOL, 1, "enable-lora", "false", NULL, "no adapters"),
    OPTION(D, INT, 1, "pp", "1", NULL, "layers stay together"),
    OPTION(D, TEXT, 1, "runner", "auto", "generate", "text only"),
    OPTION(N, TEXT, 1, "kv-dtype", "auto", "bfloat16", "type of the cache"),
    OPTION(N, BOOL, 1, "enable-cache", "true", NULL, "cache"),
    OPTION(I, INT, 1, "stops", "4", "0..", "stop strings", .env = "T_STOPS", .flags = OPT_ENV_ONLY),
    OPTION(I, TEXT, 2, "other", NULL, NULL, "of the other verb"),
};
static const struct opt_group group = {"Things", rows, COUNT(rows)};
static const struct opt_group *const groups[] = {&group};
static const struct opt_verb verbs[] = {
    {"serve", 1, {"model", NULL}, "[MODEL]", "serves", NULL},
    {"other", 2, {NULL, NULL}, "", "does other things", NULL},
};
static const struct opt_table table = {"prog", "a program", groups, 1, verbs, 2, "T_"};

#define ARGS(...) (const char *const[]){__VA_ARGS__}, COUNT(((const char *const[]){__VA_ARGS__}))

static sumi_status parse(struct options **o, const char *const *argv, size_t n, sumi_error *err) {
    *o = NULL;
    sumi_status status = options_open(o, &table, &verbs[0], err);
    if (status == SUMI_OK) status = options_parse(*o, (int)n, argv, NULL, err);
    return status;
}

static struct options *good(const char *const *argv, size_t n) {
    struct options *o;
    sumi_error err = {0};
    if (parse(&o, argv, n, &err) != SUMI_OK) fail_msg("%s", err.msg);
    return o;
}

/* The message of a command line that must be refused. */
static const char *refused(const char *const *argv, size_t n) {
    static sumi_error err;
    struct options *o;
    err = (sumi_error){0};
    if (parse(&o, argv, n, &err) == SUMI_OK) fail_msg("%s ... was accepted", argv[0]);
    assert_true(strlen(err.msg) > 0);
    options_close(o);
    return err.msg;
}

static void assert_has(const char *text, const char *part) {
    if (!strstr(text, part)) fail_msg("expected \"%s\" in \"%s\"", part, text);
}

static void values_have_their_defaults(void **state) {
    (void)state;
    struct options *o = good(NULL, 0);
    assert_int_equal(opt_int(o, "max-num-seqs"), 4);
    assert_true(opt_double(o, "share") > 0.91 && opt_double(o, "share") < 0.93);
    assert_null(opt_string(o, "model"));
    assert_false(opt_given(o, "max-model-len"));
    assert_false(opt_bool(o, "enable-x"));
    assert_int_equal(opt_list(o, "name").n, 0);
    assert_int_equal(json_object_object_length(opt_json(o, "over")), 0);
    assert_int_equal(opt_int(o, "stops"), 4);
    options_close(o);
}

static void flags_may_be_written_in_many_ways(void **state) {
    (void)state;
    static const char *const eight[][2] = {{"--max-num-seqs", "8"},
                                           {"--max_num_seqs", "8"},
                                           {"--max_num-seqs=8", NULL},
                                           {"--max-num", "8"},
                                           {"--max-num-seqs=8", NULL}};
    for (size_t i = 0; i < COUNT(eight); i++) {
        struct options *o = good(eight[i], eight[i][1] ? 2 : 1);
        assert_int_equal(opt_int(o, "max-num-seqs"), 8);
        assert_int_equal(opt_source(o, "max-num-seqs"), OPT_FROM_COMMAND);
        options_close(o);
    }
    struct options *o = good(ARGS("org/name", "-tp", "2", "-O3", "--portion=0.5", "--dtype", "half",
                                  "--max-model-len", "-1"));
    assert_string_equal(opt_string(o, "model"), "org/name");
    assert_true(opt_positional(o, "model"));
    assert_int_equal(opt_int(o, "tensor-parallel-size"), 2);
    assert_int_equal(opt_int(o, "level"), 3);
    assert_true(opt_double(o, "share") == 0.5);
    assert_string_equal(opt_string(o, "dtype"), "float16");
    assert_int_equal(opt_int(o, "max-model-len"), -1);
    options_close(o);
    o = good(ARGS("-O=1", "--max-model-len=auto", "--model", "m"));
    assert_int_equal(opt_int(o, "level"), 1);
    assert_int_equal(opt_int(o, "max-model-len"), -1);
    assert_string_equal(opt_string(o, "model"), "m");
    assert_false(opt_positional(o, "model"));
    options_close(o);
    o = good(ARGS("--", "--odd-name"));
    assert_string_equal(opt_string(o, "model"), "--odd-name");
    options_close(o);
}

static void booleans_have_opposites(void **state) {
    (void)state;
    static const struct {
        const char *flag, *name;
        bool value;
    } cases[] = {{"--enable-x", "enable-x", true},
                 {"--disable-x", "enable-x", false},
                 {"--no-enable-x", "enable-x", false},
                 {"--enable_x", "enable-x", true},
                 {"--eager", "eager", true},
                 {"--no-eager", "eager", false},
                 {"--disable-stats", "disable-stats", true},
                 {"--enable-stats", "disable-stats", false},
                 {"--no-disable-stats", "disable-stats", false},
                 {"--eager=true", "eager", true},
                 {"--eager=0", "eager", false}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct options *o = good(&cases[i].flag, 1);
        assert_int_equal(opt_bool(o, cases[i].name), cases[i].value);
        assert_true(opt_given(o, cases[i].name));
        options_close(o);
    }
    assert_has(refused(ARGS("--no-eager=true")), "takes no value");
    assert_has(refused(ARGS("--eager=perhaps")), "true or false");
}

static void the_last_of_several_wins_and_is_noted(void **state) {
    (void)state;
    struct options *o = good(ARGS("--max-num-seqs", "8", "--eager", "--max-num-seqs", "9"));
    assert_int_equal(opt_int(o, "max-num-seqs"), 9);
    assert_int_equal(options_note_count(o), 1);
    assert_has(options_note(o, 0), "--max-num-seqs is given more than once");
    options_close(o);
}

static void sizes_take_suffixes(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int64_t value;
    } cases[] = {
        {"1k", 1000},          {"1K", 1024},       {"25.6k", 25600},   {"2m", 2000000},
        {"1M", 1048576},       {"1g", 1000000000}, {"1G", 1073741824}, {"1t", 1000000000000},
        {"1T", 1099511627776}, {"0.5k", 500},      {"-1", -1},         {"1.0005k", 1000}};
    int64_t v;
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_true(opt_parse_size(cases[i].text, &v));
        assert_int_equal(v, cases[i].value);
    }
    static const char *const bad[] = {
        "", "k", "25.6K", "1.5", "1kk", "1 k", "0x1", "1e3", "9223372036854775808", "9999999T"};
    for (size_t i = 0; i < COUNT(bad); i++)
        if (opt_parse_size(bad[i], &v)) fail_msg("\"%s\" was accepted", bad[i]);
}

static void values_are_checked(void **state) {
    (void)state;
    const char *m = refused(ARGS("--max-num-seqs", "0"));
    assert_has(m, "--max-num-seqs");
    assert_has(m, "1..");
    assert_has(m, "\"0\"");
    assert_has(refused(ARGS("--max-num-seqs", "x")), "a whole number");
    assert_has(refused(ARGS("--max-num-seqs", "1.5")), "a whole number");
    assert_has(refused(ARGS("--share", "0")), "above 0..1");
    assert_has(refused(ARGS("--share", "nan")), "a number");
    assert_has(refused(ARGS("--share", "1.01")), "\"1.01\"");
    assert_has(refused(ARGS("--dtype", "int3")), "auto, bfloat16, half");
    assert_has(refused(ARGS("--dtype")), "needs a value");
    assert_has(refused(ARGS("--dtype", "--eager")), "needs a value");
    assert_has(refused(ARGS("--over", "[1]")), "object");
    assert_has(refused(ARGS("--over", "{")), "JSON");
    assert_has(refused(ARGS("a", "b")), "unexpected argument \"b\"");
}

static void unknown_flags_get_a_suggestion(void **state) {
    (void)state;
    assert_has(refused(ARGS("--max-modle-len", "1")), "did you mean --max-model-len?");
    assert_has(refused(ARGS("--max-len", "1")), "did you mean --max-model-len?");
    assert_has(refused(ARGS("--disable-stast")), "did you mean --disable-stats?");
    assert_null(strstr(refused(ARGS("--zzzzzzzz")), "did you mean"));
    const char *m = refused(ARGS("--max", "1"));
    assert_has(m, "--max-model-len, --max-num-seqs");
    assert_has(refused(ARGS("--stops", "3")), "unknown option");
    assert_has(refused(ARGS("--other", "3")), "unknown option");
    assert_has(refused(ARGS("-x")), "unknown option -x");
    assert_has(refused(ARGS("--tp", "2")), "did you mean -tp?");
    assert_string_equal(opt_nearest_verb(&table, "sevre")->name, "serve");
    assert_null(opt_nearest_verb(&table, "qqqqq"));
}

static void lists_take_words_or_an_array(void **state) {
    (void)state;
    struct options *o = good(ARGS("m", "--name", "a", "b c", "--api-key", "[\"x\", \"y\"]"));
    assert_int_equal(opt_list(o, "name").n, 2);
    assert_string_equal(opt_list(o, "name").item[1], "b c");
    assert_int_equal(opt_list(o, "api-key").n, 2);
    assert_string_equal(opt_list(o, "api-key").item[0], "x");
    options_close(o);
    assert_has(refused(ARGS("--name", "[1]")), "a list");
}

static void json_flags_take_members(void **state) {
    (void)state;
    struct options *o = good(ARGS("--over.a.b", "1k", "--over", "{\"c\":[1], \"a\":{\"d\":2}}",
                                  "--over.e+", "x", "--over.e+=y,2", "-ov.some_key=true"));
    const char *text = json_object_to_json_string_ext(opt_json(o, "over"), JSON_C_TO_STRING_PLAIN);
    assert_string_equal(text, "{\"c\":[1],\"a\":{\"d\":2,\"b\":1000},\"e\":[\"x\",\"y\",2],"
                              "\"some_key\":true}");
    assert_int_equal(options_note_count(o), 0);
    options_close(o);
    assert_has(refused(ARGS("--dtype.x", "1")), "no members");
    assert_has(refused(ARGS("--over.", "1")), "member names");
}

static void classes_decide_what_becomes_of_a_flag(void **state) {
    (void)state;
    struct options *o =
        good(ARGS("--swap-space", "4", "--swap-space=5", "--dbo", "--pp", "1", "--runner=generate",
                  "--no-enable-lora", "--kv-dtype", "bfloat16"));
    int ignored = 0;
    for (size_t i = 0; i < options_note_count(o); i++)
        ignored += strstr(options_note(o, i), "--swap-space is accepted and ignored") != NULL;
    assert_int_equal(ignored, 1);
    options_close(o);
    assert_has(refused(ARGS("--middleware", "x")), "--middleware is not supported: no Python");
    assert_has(refused(ARGS("--enable-lora")), "--enable-lora is not supported: no adapters");
    assert_has(refused(ARGS("--pp", "2")), "--pp 2 is not supported: layers stay together");
    assert_has(refused(ARGS("--pp", "2")), "accepted: 1");
    assert_has(refused(ARGS("--runner", "pooling")), "accepted: generate, auto");
    assert_has(refused(ARGS("--kv-dtype", "fp8")), "--kv-dtype fp8 is not supported yet");
    assert_has(refused(ARGS("--no-enable-cache")), "--no-enable-cache is not supported yet");
}

static void sources_have_a_rank(void **state) {
    (void)state;
    static const char *const env[] = {
        "T_DTYPE=bfloat16", "T_X=1", "T_KEY=secret", "T_STOPS=7", "T_UNKNOWN=1", "PATH=/bin", NULL};
    static const char file[] = "enable-x: false\nmax_num_seqs: 6\nshare: 0.25 # a comment\n";
    struct options *o;
    sumi_error err = {0};
    assert_int_equal(options_open(&o, &table, &verbs[0], &err), SUMI_OK);
    static const char *const argv[] = {"--share", "0.5"};
    assert_int_equal(options_config(o, file, sizeof file - 1, "f.yaml", &err), SUMI_OK);
    assert_int_equal(options_parse(o, 2, argv, env, &err), SUMI_OK);
    assert_string_equal(opt_string(o, "dtype"), "bfloat16");
    assert_false(opt_bool(o, "enable-x"));
    assert_int_equal(opt_source(o, "enable-x"), OPT_FROM_FILE);
    assert_int_equal(opt_int(o, "max-num-seqs"), 6);
    assert_true(opt_double(o, "share") == 0.5);
    assert_string_equal(opt_list(o, "api-key").item[0], "secret");
    assert_int_equal(opt_int(o, "stops"), 7);
    assert_string_equal(options_unknown_env(o), "T_UNKNOWN");
    options_close(o);
    static const char *const bad[] = {"T_STOPS=many", NULL};
    assert_int_equal(options_open(&o, &table, &verbs[0], &err), SUMI_OK);
    assert_int_equal(options_parse(o, 0, NULL, bad, &err), SUMI_ERR_ARG);
    assert_has(err.msg, "T_STOPS");
    options_close(o);
}

static void a_config_file_is_a_subset_of_yaml(void **state) {
    (void)state;
    static const char file[] =
        "# settings\n---\nmodel: org/name\nmax-model-len: 32k\n"
        "name:\n  - one # first\n  - 'it''s'\n\napi_key: [a, \"b, c\", 'd']\n"
        "over: {\"k\": [1, {\"#\": 2}]}\nover.z: 3\neager: yes\n"
        "dtype: \"half\"\nshare: null\nno-enable-x: true\n";
    struct options *o;
    sumi_error err = {0};
    assert_int_equal(options_open(&o, &table, &verbs[0], &err), SUMI_OK);
    if (options_config(o, file, sizeof file - 1, "f", &err) != SUMI_OK) fail_msg("%s", err.msg);
    assert_string_equal(opt_string(o, "model"), "org/name");
    assert_int_equal(opt_int(o, "max-model-len"), 32000);
    assert_int_equal(opt_list(o, "name").n, 2);
    assert_string_equal(opt_list(o, "name").item[0], "one");
    assert_string_equal(opt_list(o, "name").item[1], "it's");
    assert_int_equal(opt_list(o, "api-key").n, 3);
    assert_string_equal(opt_list(o, "api-key").item[1], "b, c");
    assert_string_equal(json_object_to_json_string_ext(opt_json(o, "over"), JSON_C_TO_STRING_PLAIN),
                        "{\"k\":[1,{\"#\":2}],\"z\":3}");
    assert_true(opt_bool(o, "eager"));
    assert_string_equal(opt_string(o, "dtype"), "float16");
    assert_false(opt_given(o, "share"));
    assert_false(opt_bool(o, "enable-x"));
    options_close(o);
}

static void a_config_file_is_refused_with_its_line(void **state) {
    (void)state;
    static const struct {
        const char *text, *part;
    } cases[] = {
        {"eager: true\nmax-num: 3\n",
         "line 2: max-num: unknown option; did you mean max-num-seqs?"},
        {"max-num-seqs: many\n", "line 1: max-num-seqs: expected a whole number"},
        {"over:\n  a: 1\n", "line 2: nested maps are not supported; write over:"},
        {"just words\n", "line 1: expected \"key: value\""},
        {"dtype: &x auto\n", "'&' begins something"},
        {"dtype: |\n  text\n", "'|' begins something"},
        {"name: [a, [b]]\n", "lists within lists"},
        {"name: [a\n", "must end on its line"},
        {"dtype: \"auto\n", "does not end on its line"},
        {"dtype: \"auto\" x\n", "after a closing quote"},
        {"dtype: {a: 1}\n", "a map in braces"},
        {"dtype: [a, b]\n", "expected one value, found a list"},
        {" dtype: auto\n", "indentation"},
        {"config: other.yaml\n", "cannot name another"},
        {"over: {broken\n", "JSON"},
        {"middleware: x\n", "line 1: middleware is not supported"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct options *o;
        sumi_error err = {0};
        assert_int_equal(options_open(&o, &table, &verbs[0], &err), SUMI_OK);
        assert_int_not_equal(
            options_config(o, cases[i].text, strlen(cases[i].text), "f.yaml", &err), SUMI_OK);
        assert_has(err.msg, "f.yaml");
        assert_has(err.msg, cases[i].part);
        options_close(o);
    }
}

static void a_printed_config_reads_back(void **state) {
    (void)state;
    struct options *a =
        good(ARGS("a: model", "--max-model-len", "1k", "--name", "x", "yes", "[q", "--over",
                  "{\"a\":\"#b\"}", "--eager", "--api-key", "hush", "--share", "0.5"));
    struct options *b;
    struct buf text = {0}, again = {0};
    sumi_error err = {0};
    opt_print_config(a, &text);
    assert_null(strstr(buf_text(&text), "hush"));
    assert_has(buf_text(&text), "share: 0.5 # command line\n");
    assert_int_equal(options_open(&b, &table, &verbs[0], &err), SUMI_OK);
    if (options_config(b, text.data, text.len, "f", &err) != SUMI_OK) fail_msg("%s", err.msg);
    assert_string_equal(opt_string(b, "model"), "a: model");
    assert_int_equal(opt_int(b, "max-model-len"), 1000);
    assert_int_equal(opt_list(b, "name").n, 3);
    assert_string_equal(opt_list(b, "name").item[2], "[q");
    assert_true(json_object_equal(opt_json(a, "over"), opt_json(b, "over")));
    assert_true(opt_bool(b, "eager"));
    opt_print_config(b, &again);
    assert_false(again.failed);
    buf_reset(&text);
    buf_reset(&again);
    options_close(a);
    options_close(b);
}

static void help_finds_options_and_groups(void **state) {
    (void)state;
    struct buf b = {0};
    sumi_error err = {0};
    assert_int_equal(opt_help(&table, &verbs[0], NULL, &b, &err), SUMI_OK);
    assert_has(buf_text(&b), "--max-num-seqs");
    assert_null(strstr(buf_text(&b), "--dtype"));
    static const char *const topics[] = {"all", "things", "dtype", "--dtype", "typ"};
    for (size_t i = 0; i < COUNT(topics); i++) {
        buf_clear(&b);
        assert_int_equal(opt_help(&table, &verbs[0], topics[i], &b, &err), SUMI_OK);
        assert_has(buf_text(&b), "--dtype TEXT");
        assert_has(buf_text(&b), "auto, bfloat16, half");
    }
    assert_int_equal(opt_help(&table, &verbs[0], "nothing", &b, &err), SUMI_ERR_MISSING);
    assert_has(err.msg, "Things");
    struct options *o = good(ARGS("--help=dtype", "--nonsense"));
    assert_string_equal(opt_string(o, "help"), "dtype");
    options_close(o);
    buf_reset(&b);
}

static void parsing_survives_a_failing_allocation(void **state) {
    (void)state;
    static const char *const argv[] = {
        "m", "--name",       "a", "b",       "--over",  "{}",      "--over.k",
        "v", "--swap-space", "1", "--eager", "--eager", "--share", "0.5"};
    static const char *const env[] = {"T_KEY=x", "T_ODD=1", NULL};
    static const char file[] = "max-num-seqs: 3\n";
    for (long n = 1;; n++) {
        struct options *o = NULL;
        sumi_error err = {0};
        long before = mem_count();
        mem_fail_at(n);
        sumi_status status = options_open(&o, &table, &verbs[0], &err);
        if (status == SUMI_OK) status = options_parse(o, (int)COUNT(argv), argv, env, &err);
        if (status == SUMI_OK) status = options_config(o, file, sizeof file - 1, "f", &err);
        bool reached = mem_count() - before >= n;
        mem_fail_at(0);
        options_close(o);
        if (!reached) {
            assert_int_equal(status, SUMI_OK);
            break;
        }
        assert_int_equal(status, SUMI_ERR_MEMORY);
    }
}

/* sumi's own table: every row is sane for every verb. */
static void the_table_is_consistent(void **state) {
    (void)state;
    size_t n_flag = 0;
    for (size_t v = 0; v < option_table.n_verb; v++) {
        struct options *o;
        sumi_error err = {0};
        if (options_open(&o, &option_table, &option_table.verb[v], &err) != SUMI_OK)
            fail_msg("%s: %s", option_table.verb[v].name, err.msg);
        options_close(o);
    }
    for (size_t g = 0; g < option_table.n_group; g++)
        for (size_t i = 0; i < option_table.group[g]->n; i++) {
            const struct opt_row *r = &option_table.group[g]->row[i];
            assert_true(r->name && r->text && *r->text && r->verbs);
            assert_null(strchr(r->name, '_'));
            if ((r->flags & OPT_ENV_ONLY) != 0) assert_non_null(r->env);
            else n_flag++;
            for (size_t h = 0; h <= g; h++)
                for (size_t j = 0; j < (h == g ? i : option_table.group[h]->n); j++) {
                    const struct opt_row *other = &option_table.group[h]->row[j];
                    if (strcmp(r->name, other->name) == 0) fail_msg("%s is there twice", r->name);
                }
        }
    assert_true(n_flag > 320);
}

static void generated_texts_name_every_verb(void **state) {
    (void)state;
    static const char *const shells[] = {"bash", "zsh", "fish"};
    sumi_error err = {0};
    for (size_t s = 0; s <= COUNT(shells); s++) {
        struct buf b = {0};
        if (s < COUNT(shells))
            assert_int_equal(opt_completion(&option_table, shells[s], &b, &err), SUMI_OK);
        else opt_manual(&option_table, &b);
        assert_false(b.failed);
        for (size_t v = 0; v < option_table.n_verb; v++)
            assert_has(buf_text(&b), option_table.verb[v].name);
        buf_reset(&b);
    }
    struct buf b = {0};
    assert_int_equal(opt_completion(&option_table, "tcsh", &b, &err), SUMI_ERR_ARG);
    assert_has(err.msg, "bash, zsh or fish");
    buf_reset(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_have_their_defaults),
        cmocka_unit_test(flags_may_be_written_in_many_ways),
        cmocka_unit_test(booleans_have_opposites),
        cmocka_unit_test(the_last_of_several_wins_and_is_noted),
        cmocka_unit_test(sizes_take_suffixes),
        cmocka_unit_test(values_are_checked),
        cmocka_unit_test(unknown_flags_get_a_suggestion),
        cmocka_unit_test(lists_take_words_or_an_array),
        cmocka_unit_test(json_flags_take_members),
        cmocka_unit_test(classes_decide_what_becomes_of_a_flag),
        cmocka_unit_test(sources_have_a_rank),
        cmocka_unit_test(a_config_file_is_a_subset_of_yaml),
        cmocka_unit_test(a_config_file_is_refused_with_its_line),
        cmocka_unit_test(a_printed_config_reads_back),
        cmocka_unit_test(help_finds_options_and_groups),
        cmocka_unit_test(parsing_survives_a_failing_allocation),
        cmocka_unit_test(the_table_is_consistent),
        cmocka_unit_test(generated_texts_name_every_verb),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
