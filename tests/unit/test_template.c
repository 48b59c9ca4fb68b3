/* Chat templates: origins of bytes, limits, messages, failing memory. What the language means is
 * compared with jinja2 in tests/py/test_template*.py. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/mem.h"
#include "text/template.h"

#if defined(__SANITIZE_ADDRESS__)
#define STACK_BYTES (1024 * 1024) /* redzones make frames several times as large */
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define STACK_BYTES (1024 * 1024)
#endif
#endif
#ifndef STACK_BYTES
#define STACK_BYTES (256 * 1024)
#endif

static sumi_error err;

static sumi_status render(const char *source, const char *json,
                          const struct template_limits *limits, struct template_output *out) {
    struct chat_template *t;
    struct json_object *variables = NULL;
    memset(&err, 0, sizeof err);
    sumi_status status = chat_template_parse(&t, source, strlen(source), &err);
    if (status != SUMI_OK) return status;
    if (json) assert_int_equal(json_parse(&variables, json, strlen(json), "test", NULL), SUMI_OK);
    status = chat_template_render(t, variables, limits, out, &err);
    chat_template_close(t);
    json_object_put(variables);
    return status;
}

/* Renders with u = "<|user|>" and others; compares the text, and the mask spelled t and u. */
static void check(const char *source, const char *text, const char *mask) {
    struct template_output out = {0};
    const char *json =
        "{\"u\": \"<|user|>\", \"p\": \" a b \", \"l\": [\"x\", \"y\"], \"n\": 12,"
        " \"d\": {\"k\": \"v\", \"n\": 1}, \"w\": \"\\u00e9\\u00dfx\", \"yes\": true}";
    if (render(source, json, NULL, &out) != SUMI_OK) fail_msg("%s: %s", source, err.msg);
    assert_string_equal(buf_text(&out.text), text);
    assert_int_equal(out.text.len, out.trusted.len);
    assert_int_equal(out.text.len, strlen(mask));
    for (size_t i = 0; i < out.trusted.len; i++)
        if ((out.trusted.data[i] ? 't' : 'u') != mask[i])
            fail_msg("%s: byte %zu ('%c') is not '%c'", source, i, text[i], mask[i]);
    buf_reset(&out.text);
    buf_reset(&out.trusted);
}

static void text_of_variables_is_never_trusted(void **state) {
    (void)state;
    check("<|user|>{{ u }}<|user|>", "<|user|><|user|><|user|>", "ttttttttuuuuuuuutttttttt");
    check("{{ u ~ '<|user|>' }}", "<|user|><|user|>", "uuuuuuuutttttttt");
    check("{{ '<|' + u[2:6] + '|>' }}", "<|user|>", "ttuuuutt");
    check("{{ l }}", "['x', 'y']", "uuuuuuuuuu");
    check("{{ [u] }}", "['<|user|>']", "ttuuuuuuuutt");
    check("{% for c in u[:3] %}{{ c }}.{% endfor %}", "<.|.u.", "ututut");
    check("{% for k in d %}{{ k }}={% endfor %}", "k=n=", "utut");
    check("{{ d.items() | list }}", "[('k', 'v'), ('n', 1)]", "uuuuuuuuuuuuuuuuuuuuuu");
}

static void computed_text_is_trusted(void **state) {
    (void)state;
    check("{{ n }}{{ n + 1 }}{{ yes }}{{ n / 5 }}{{ none }}", "1213True2.4None", "ttttttttttttttt");
    check("{{ l | length }}{{ 'a' * n }}", "2aaaaaaaaaaaa", "ttttttttttttt");
    check("{{ strftime_now('%Y') | length }}", "4", "t");
}

static void cutting_and_joining_keep_origins(void **state) {
    (void)state;
    check("{{ ('<' ~ p ~ '>').strip('<') }}", " a b >", "uuuuut");
    check("{{ p.strip() }}{{ p | trim }}", "a ba b", "uuuuuu");
    check("{{ ('a,' ~ u ~ ',b').split(',') | join('+') }}", "a+<|user|>+b", "ttuuuuuuuutt");
    check("{{ u.split('|')[1] }}", "user", "uuuu");
    check("{{ u | replace('user', 'sys') }}", "<|sys|>", "uutttuu");
    check("{{ 'a-b' | replace('-', u) }}", "a<|user|>b", "tuuuuuuuut");
    check("{{ l | join('<|sep|>') }}", "x<|sep|>y", "utttttttu");
    check("{{ u[::-1] }}{{ (u ~ '!')[::-8] }}", ">|resu|<!<", "uuuuuuuutu");
    check("{{ u[0] }}{{ u[-1] }}{{ u | first }}{{ u | last }}", "<><>", "uuuu");
    check("{{ u.partition('user') | join }}", "<|user|>", "uuuuuuuu");
    check("{{ ('x' ~ u).removeprefix('x') }}", "<|user|>", "uuuuuuuu");
    check("{{ u * 2 }}", "<|user|><|user|>", "uuuuuuuuuuuuuuuu");
    check("{{ (p ~ '\n' ~ 'q').splitlines() | join('|') }}", " a b |q", "uuuuutt");
    check("{{ ['b', l[0]] | sort | join }}{{ l | reverse | join }}", "bxyx", "tuuu");
}

static void changing_letters_keeps_origins(void **state) {
    (void)state;
    check("{{ ('ab' ~ l[0] ~ 'c') | upper }}", "ABXC", "ttut");
    check("{{ (w ~ 'ß') | upper }}", "\xC3\x89SSXSS", "uuuuutt");
    check("{{ p | title }}{{ u | capitalize }}", " A B <|user|>", "uuuuuuuuuuuuu");
    check("{{ ('a\n' ~ l[0] ~ '\n') | indent(2) }}", "a\n  x\n", "ttttut");
    check("{{ 'x' | center(3) }}{{ l[0].center(3) }}", " x  x ", "ttttut");
    check("{{ ('<' ~ u[0]) | escape }}", "&lt;&lt;", "ttttuuuu");
}

static void formatting_keeps_origins(void **state) {
    (void)state;
    check("{{ '%s=%d' % (u[:2], 7) }}", "<|=7", "uutt");
    check("{{ u[:2] % () }}{{ (u[:1] ~ '%s') % 'x' }}", "<|<x", "uuut");
    check("{{ '{}{x:>3}'.format(u[:1], x='q') }}", "<  q", "uttt");
}

static void json_of_variables_is_untrusted(void **state) {
    (void)state;
    check("{{ d | tojson }}", "{\"k\": \"v\", \"n\": 1}", "uuuuuuuuuuuuuuuuuu");
    check("{{ l | tojson(indent=1) }}", "[\n \"x\",\n \"y\"\n]", "uuuuuuuuuuuuuu");
    check("{{ u | tojson }}", "\"<|user|>\"", "tuuuuuuuut");
    check("{{ {'a': u[:1], 'b': [1]} | tojson }}", "{\"a\": \"<\", \"b\": [1]}",
          "tttttttutttttttttttt");
    check("{{ ('\"' ~ u[:1] ~ w[:1]) | tojson(ensure_ascii=true) }}", "\"\\\"<\\u00e9\"",
          "tttuuuuuuut");
}

static void captured_text_keeps_origins(void **state) {
    (void)state;
    check("{% set x %}a{{ l[0] }}b{% endset %}{{ x }}", "axb", "tut");
    check("{% macro m(v) %}<{{ v }}>{% endmacro %}{{ m(l[0]) ~ m('y') }}", "<x><y>", "tutttt");
    check("{% filter upper %}a{{ l[0] }}{% endfilter %}", "AX", "tu");
    check("{% macro m() %}[{{ caller() }}]{% endmacro %}{% call m() %}{{ l[0] }}.{% endcall %}",
          "[x.]", "tutt");
    check(
        "{% set ns = namespace(s='') %}{% for x in l %}{% set ns.s = ns.s ~ x ~ ',' %}{% endfor %}"
        "{{ ns.s }}",
        "x,y,", "utut");
    check("{% for t in [[l[0]]] recursive %}{{ t if t is string else '(' ~ loop(t) ~ ')' }}"
          "{% endfor %}",
          "(x)", "tut");
}

static const struct {
    const char *source;
    sumi_status status;
    const char *message;
} faults[] = {
    {"a\n{{ missing.x }}", SUMI_ERR_FORMAT, "chat template, line 2: 'missing' is undefined"},
    {"a\n\n{% set x = 1 +\n 'a' %}", SUMI_ERR_FORMAT,
     "line 3: no operator '+' between int and str"},
    {"{{ 1 }}\n{% for x in 5 %}{% endfor %}", SUMI_ERR_FORMAT, "line 2: a int cannot be iterated"},
    {"{% macro m(a) %}{% endmacro %}\n{{ m(1, 2) }}", SUMI_ERR_FORMAT,
     "line 2: the macro takes at most 1 arguments, found 2"},
    {"{{ 'a' | trim(1, 2) }}", SUMI_ERR_FORMAT, "line 1: trim takes at most 1 arguments, found 2"},
    {"{{ 'a' | replace('b') }}", SUMI_ERR_FORMAT, "line 1: replace needs the argument 'new'"},
    {"{{ [].append(1) }}", SUMI_ERR_FORMAT, "append() would change a list"},
    {"{{ raise_exception('no ' ~ 'user') }}", SUMI_ERR_ARG, "no user"},
    {"\n{{ 'x", SUMI_ERR_FORMAT, "line 2: a string without its closing quote"},
    {"{% if x %}\n{% for y in z %}\n{% endif %}", SUMI_ERR_FORMAT,
     "line 3: unexpected tag 'endif'"},
    {"\n{% if x %}\n\n", SUMI_ERR_FORMAT,
     "line 3: end of template; the tag of line 2 is not closed"},
    {"{{ 'a' | nosuch }}", SUMI_ERR_FORMAT, "line 1: no filter is named 'nosuch'"},
    {"{{ 'a' is nosuch }}", SUMI_ERR_FORMAT, "line 1: no test is named 'nosuch'"},
    {"\n\n{% include 'x' %}", SUMI_ERR_UNSUPPORTED, "line 3: the tag 'include' is not supported"},
    {"{% block b %}{% endblock %}", SUMI_ERR_UNSUPPORTED, "the tag 'block' is not supported"},
    {"\n{{ x | urlize }}", SUMI_ERR_UNSUPPORTED, "line 2: the filter 'urlize' is not supported"},
    {"{{ x.encode('utf-8') }}", SUMI_ERR_UNSUPPORTED, "'encode()' is not supported"},
    {"{{ lipsum() }}", SUMI_ERR_UNSUPPORTED, "'lipsum()' is not supported"},
    {"{{ self.x }}", SUMI_ERR_UNSUPPORTED, "'self' is not supported"},
    {"{{ a[1, 2] }}", SUMI_ERR_UNSUPPORTED, "a subscript with a comma is not supported"},
    {"{{ 99999999999999999999 }}", SUMI_ERR_LIMIT, "line 1: an integer over 64 bits"},
    {"{{ 10 ** 30 }}", SUMI_ERR_LIMIT, "line 1: an integer over 64 bits"},
    {"{{ 9223372036854775807 + 1 }}", SUMI_ERR_LIMIT, "an integer over 64 bits"},
    {"{{ -9223372036854775807 - 2 }}", SUMI_ERR_LIMIT, "an integer over 64 bits"},
    {"{{ (-9223372036854775807 - 1) // -1 }}", SUMI_ERR_LIMIT, "an integer over 64 bits"},
    {"\n{{ range(100001) }}", SUMI_ERR_LIMIT, "line 2: a range of over 100000 items"},
    {"{{ joiner }}", SUMI_ERR_FORMAT, "a function cannot be printed"},
    {"{{ [1]|map('abs') }}", SUMI_ERR_FORMAT, "a generator cannot be printed"},
};

static void faults_name_the_line_and_the_construct(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        struct template_output out = {0};
        sumi_status status = render(faults[i].source, NULL, NULL, &out);
        if (status != faults[i].status || !strstr(err.msg, faults[i].message))
            fail_msg("%s: %s: %s", faults[i].source, sumi_status_text(status), err.msg);
        buf_reset(&out.text);
        buf_reset(&out.trusted);
    }
}

static void sources_that_are_no_text_are_refused(void **state) {
    (void)state;
    struct chat_template *t;
    assert_int_equal(chat_template_parse(&t, "ab\xFFz", 4, &err), SUMI_ERR_FORMAT);
    assert_non_null(strstr(err.msg, "invalid UTF-8 at byte 2"));
    assert_null(t);
    size_t n = ((size_t)1 << 20) + 1;
    char *big = malloc(n);
    memset(big, 'a', n);
    assert_int_equal(chat_template_parse(&t, big, n, &err), SUMI_ERR_LIMIT);
    assert_int_equal(chat_template_parse(&t, big, n - 1, &err), SUMI_OK);
    chat_template_close(t);
    free(big);
    assert_int_equal(chat_template_parse(&t, "", 0, &err), SUMI_OK);
    chat_template_close(t);
    chat_template_close(NULL);
}

static const struct {
    const char *source, *message;
} endless[] = {
    {"{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}", "steps"},
    {"{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "nested over"},
    {"{% macro m(x=m()) %}{% endmacro %}{{ m() }}", "macros nested over 200"},
    {"{% macro m() %}{{ m() }}{{ m() }}{% endmacro %}{{ m() }}", "nested over"},
    {"{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(60) }}",
     "steps"},
    {"{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}", "nested over"},
    {"{{ 'x' * 1000000000000 }}", "output"},
    {"{{ [0] * 1000000000 }}", "steps"},
    {"{{ [0] * 4611686018427387904 }}", "items"},
    {"{% set ns = namespace(s='xxxxxxxx') %}{% for i in range(99) %}{% set ns.s = ns.s ~ ns.s %}"
     "{% endfor %}",
     "output"},
    {"{% set ns = namespace(l=[1]) %}{% for i in range(99) %}{% set ns.l = ns.l + ns.l %}{% endfor "
     "%}",
     "steps"},
    {"{% for i in range(99999) %}{% for j in range(99) %}{{ i }}{{ j }}abcdefgh{% endfor %}{% "
     "endfor %}",
     "steps"},
    {"{{ '%9999999s' % 'a' }}", "output"},
    {"{{ 'a'.center(99999999999) }}", "output"},
    {"{{ '\n' | indent(99999999, true) }}", "output"},
    {"{{ [[1]] | tojson(indent=99999999) }}", "output"},
    {"{{ ('ab' * 100000).replace('a', 'x' * 100000) | length }}", "output"},
    {"{{ ('a' * 90000).split('a') | join('b' * 1000) }}", "output"},
    {"{% for i in range(9999) %}{{ ('a' * 500000).count('aab') }}{% endfor %}", "steps"},
    {"{% set ns = namespace(x=1) %}{% for i in range(999) %}{% set ns.x = [ns.x] %}{% endfor %}"
     "{{ ns.x }}",
     "values nested over 200"},
    {"{% set ns = namespace(x=1) %}{% for i in range(999) %}{% set ns.x = [ns.x] %}{% endfor %}"
     "{{ ns.x == [ns.x] }}{{ ns.x | tojson }}",
     "values nested over 200"},
    {"{% set ns = namespace() %}{% set ns.a = ns %}{{ ns }}", "values nested over 200"},
};

static void work_output_and_depth_are_bounded(void **state) {
    (void)state;
    const struct template_limits limits = {.max_steps = 300000, .max_output = 1000000};
    for (size_t i = 0; i < sizeof endless / sizeof *endless; i++) {
        struct template_output out = {0};
        sumi_status status = render(endless[i].source, NULL, &limits, &out);
        if (status != SUMI_ERR_LIMIT || !strstr(err.msg, endless[i].message))
            fail_msg("%s: %s: %s", endless[i].source, sumi_status_text(status), err.msg);
        assert_true(out.text.len <= limits.max_output);
        buf_reset(&out.text);
        buf_reset(&out.trusted);
    }
}

static void memory_of_values_is_bounded(void **state) {
    (void)state;
    struct template_output out = {0};
    const struct template_limits limits = {.max_output = 1000000};
    assert_int_equal(render("{% set s = 'x' * 900000 %}{% for i in range(999) %}"
                            "{% set t = s ~ i %}{% endfor %}",
                            NULL, &limits, &out),
                     SUMI_ERR_LIMIT);
    assert_non_null(strstr(err.msg, "memory"));
    buf_reset(&out.text);
    buf_reset(&out.trusted);
}

static char *repeated(const char *left, const char *mid, const char *right, int n,
                      const char *before, const char *after) {
    struct buf b = {0};
    buf_puts(&b, before);
    for (int i = 0; i < n; i++) buf_puts(&b, left);
    buf_puts(&b, mid);
    for (int i = 0; i < n; i++) buf_puts(&b, right);
    buf_puts(&b, after);
    return buf_take(&b);
}

static void nesting_of_sources_is_bounded(void **state) {
    (void)state;
    static const struct {
        const char *left, *mid, *right, *before, *after;
        bool endless_is_fine;
    } shapes[] = {
        {"(", "1", ")", "{{ ", " }}", false},
        {"[", "1", "]", "{{ ", " }}", false},
        {"{1:", "1", "}", "{{ ", " }}", false},
        {"f(x=", "1", ")", "{{ ", " }}", false},
        {"-", "1", "", "{{ ", " }}", false},
        {"not ", "1", "", "{{ ", " }}", false},
        {"1 if 0 else ", "1", "", "{{ ", " }}", false},
        {"", "1", "|trim", "{{ ", " }}", false},
        {"", "a", ".b", "{{ ", " }}", false},
        {"(", "x", ")", "{% set ", " = 1 %}", false},
        {"{% if 1 %}", "x", "{% endif %}", "", "", false},
        {"{% for a in b %}", "x", "{% endfor %}", "", "", false},
        {"{% macro m() %}", "x", "{% endmacro %}", "", "", false},
        {"{% set x %}", "x", "{% endset %}", "", "", false},
        {"(a or b and c == d + e ~ f * g ** ", "1", ")", "{{ ", " }}", false},
        {"1 + ", "1", "", "{{ ", " }}", true},
        {"'a' ~ ", "1", "", "{{ ", " }}", true},
        {"1 or ", "1", "", "{{ ", " }}", true},
        {"1 < ", "1", "", "{{ ", " }}", true},
        {"'a' ", "'b'", "", "{{ ", " }}", true},
        {"{{ 1 }}", "x", "", "", "", true},
        {"{% if 1 %}{% endif %}", "x", "", "", "", true},
        {"{% elif 1 %}", "x", "", "{% if 1 %}", "{% endif %}", true},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        struct chat_template *t;
        for (int n = 10; n <= 10000; n *= 1000) {
            char *source = repeated(shapes[i].left, shapes[i].mid, shapes[i].right, n,
                                    shapes[i].before, shapes[i].after);
            sumi_status want = n == 10 || shapes[i].endless_is_fine ? SUMI_OK : SUMI_ERR_LIMIT;
            sumi_status status = chat_template_parse(&t, source, strlen(source), &err);
            if (status != want) fail_msg("%s x %d: %s", shapes[i].left, n, err.msg);
            chat_template_close(t);
            mem_free(source);
        }
    }
}

static void *run_in_thread(void *test) {
    void (*run)(void **) = (void (*)(void **))(uintptr_t)test;
    run(NULL);
    return NULL;
}

static void a_small_stack_is_enough(void **state) {
    (void)state;
    pthread_attr_t attr;
    pthread_t thread;
    pthread_attr_init(&attr);
    assert_int_equal(pthread_attr_setstacksize(&attr, STACK_BYTES), 0);
    void *tests[] = {(void *)(uintptr_t)work_output_and_depth_are_bounded,
                     (void *)(uintptr_t)nesting_of_sources_is_bounded};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&thread, &attr, run_in_thread, tests[i]), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
    }
    pthread_attr_destroy(&attr);
}

static void limits_can_be_raised(void **state) {
    (void)state;
    struct template_output out = {0};
    const struct template_limits limits = {.max_depth = 400};
    const char *source = "{% macro m(n) %}{{ m(n - 1) if n else 'end' }}{% endmacro %}{{ m(250) }}";
    assert_int_equal(render(source, NULL, NULL, &out), SUMI_ERR_LIMIT);
    buf_clear(&out.text);
    buf_clear(&out.trusted);
    assert_int_equal(render(source, NULL, &limits, &out), SUMI_OK);
    assert_string_equal(buf_text(&out.text), "end");
    buf_reset(&out.text);
    buf_reset(&out.trusted);
}

static const char everything[] =
    "{% macro m(a, b=[1, 2]) %}{{ a }}{{ b | join(',') }}{{ varargs }}{{ kwargs }}{% endmacro %}"
    "{% set ns = namespace(x=0) %}{% set cap | upper %}c{{ s }}{% endset %}"
    "{% for k, v in d.items() if v %}{{ loop.index }}{{ k }}{{ v | tojson }}{{ loop.length }}"
    "{% set ns.x = ns.x + 1 %}{% else %}none{% endfor %}{{ m(s, [3], 4, x=5) }}{{ cap }}{{ ns }}"
    "{{ s.split(',') | map('trim') | select('ne', '') | list | sort | unique | list }}"
    "{{ '%s %5.2f' % (s, 1.5) }}{{ '{:>5}'.format(s) }}{{ s[::-1] }}{{ s | title | replace('A', "
    "'b') }}"
    "{{ strftime_now('%d %b %Y') }}{{ (s ~ 'x') | tojson(ensure_ascii=true, indent=2) }}{{ l | "
    "batch(2) | list }}"
    "{{ {1: 2, 'a': [none, true]} | dictsort(by='key') if no else range(3) | list }}{{ 1.5 | round "
    "}}"
    "{% call m(1) %}x{% endcall %}{% with q = 1 %}{{ q }}{% endwith %}";

static void any_allocation_may_fail(void **state) {
    (void)state;
    const char *json =
        "{\"s\": \"a, b,c\", \"l\": [1, 2, 3], \"d\": {\"a\": 1, \"b\": [2.5, \"x\"]}}";
    /* The last call block passes a keyword that the macro collects, so all of it succeeds. */
    struct json_object *variables;
    assert_int_equal(json_parse(&variables, json, strlen(json), "test", NULL), SUMI_OK);
    bool done = false;
    for (long n = 1; !done; n++) {
        struct chat_template *t;
        struct template_output out = {0};
        assert_true(n < 2000);
        mem_fail_at(n);
        sumi_status status = chat_template_parse(&t, everything, sizeof everything - 1, &err);
        if (status == SUMI_OK) {
            status = chat_template_render(t, variables, NULL, &out, &err);
            done = status == SUMI_OK;
        }
        mem_fail_at(0);
        if (!done && status != SUMI_ERR_MEMORY) fail_msg("allocation %ld: %s", n, err.msg);
        chat_template_close(t);
        buf_reset(&out.text);
        buf_reset(&out.trusted);
    }
    json_object_put(variables);
}

static void check_scan(const char *source, bool parts) {
    struct chat_template *t;
    assert_int_equal(chat_template_parse(&t, source, strlen(source), &err), SUMI_OK);
    if (chat_template_wants_parts(t) != parts) fail_msg("%s", source);
    chat_template_close(t);
}

static void loops_over_content_parts_are_noticed(void **state) {
    (void)state;
    check_scan("{% for m in messages %}{{ m.content }}{% endfor %}", false);
    check_scan("{% for m in messages %}{% for p in m.content %}{% endfor %}{% endfor %}", true);
    check_scan(
        "{% for m in messages[1:] %}{% for p in m['content'] | list %}{% endfor %}{% endfor %}",
        true);
    check_scan("{% set ms = messages %}{% for m in ms | reverse %}{% set c = m.content %}"
               "{% for p in c %}{% endfor %}{% endfor %}",
               true);
    check_scan("{% macro t(x) %}{% for p in x %}{% endfor %}{% endmacro %}"
               "{% for m in messages %}{{ t(m.get('content')) }}{% endfor %}",
               true);
    check_scan("{% macro t(x) %}{% for p in x %}{% endfor %}{% endmacro %}"
               "{% for m in messages %}{{ t(m.tool_calls) }}{{ m.content }}{% endfor %}",
               false);
    check_scan("{% for p in messages[0].content %}{% endfor %}", true);
    check_scan("{% for m in messages %}{% for l in m.content.split('x') %}{% endfor %}{% endfor %}",
               false);
    check_scan("{% for m in docs %}{% for p in m.content %}{% endfor %}{% endfor %}", false);
}

static void the_templates_in_golden_are_told_apart(void **state) {
    (void)state;
    static const struct {
        const char *name;
        bool parts;
    } files[] = {{"flint_small", true},    {"flint_tiny", true},     {"glm_style", true},
                 {"chatml_style", true},   {"gemma_style", true},    {"llama3_style", false},
                 {"mistral_style", false}, {"deepseek_style", false}};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char path[128], *source;
        size_t n;
        struct chat_template *t;
        snprintf(path, sizeof path, "tests/golden/templates/%s.jinja", files[i].name);
        assert_int_equal(file_read(path, 1 << 20, &source, &n, &err), SUMI_OK);
        assert_int_equal(chat_template_parse(&t, source, n, &err), SUMI_OK);
        if (chat_template_wants_parts(t) != files[i].parts) fail_msg("%s", path);
        assert_true(chat_template_reads(t, "messages"));
        chat_template_close(t);
        mem_free(source);
    }
}

static void variables_that_are_read_are_known(void **state) {
    (void)state;
    struct chat_template *t;
    const char *source = "{% set a = b.c %}{% for d in e if f %}{{ g | trim(h) }}{% endfor %}"
                         "{% macro i(j=k) %}{{ l }}{% endmacro %}{{ m(n=o) }}{% set p.q = 1 %}";
    assert_int_equal(chat_template_parse(&t, source, strlen(source), &err), SUMI_OK);
    for (const char *c = "befghklmop"; *c; c++) {
        const char name[2] = {*c, 0};
        if (!chat_template_reads(t, name)) fail_msg("%s", name);
    }
    for (const char *c = "acdijnqz"; *c; c++) {
        const char name[2] = {*c, 0};
        if (chat_template_reads(t, name)) fail_msg("%s", name);
    }
    chat_template_close(t);
}

static void the_time_is_given_or_the_clock(void **state) {
    (void)state;
    struct template_output out = {0};
    struct template_limits limits = {.now = 1790000000};
    setenv("TZ", "UTC", 1);
    tzset();
    const char *source = "{{ strftime_now('%d %B %Y %H:%M:%S') }}";
    assert_int_equal(render(source, NULL, &limits, &out), SUMI_OK);
    assert_string_equal(buf_text(&out.text), "21 September 2026 14:13:20");
    buf_clear(&out.text);
    buf_clear(&out.trusted);
    limits.now = INT64_MAX;
    assert_int_equal(render(source, NULL, &limits, &out), SUMI_ERR_FORMAT);
    assert_int_equal(render("{{ strftime_now('%Y') | int > 2025 }}", NULL, NULL, &out), SUMI_OK);
    assert_string_equal(buf_text(&out.text), "True");
    buf_reset(&out.text);
    buf_reset(&out.trusted);
}

static void one_template_serves_many_renderings(void **state) {
    (void)state;
    struct chat_template *t;
    struct template_output out = {0};
    const char *source = "{% set x = x | default(0) + 1 %}{{ x }}{{ y }}";
    assert_int_equal(chat_template_parse(&t, source, strlen(source), &err), SUMI_OK);
    for (int i = 0; i < 3; i++) {
        struct json_object *v = json_object_new_object();
        json_object_object_add(v, "y", json_object_new_int(i));
        assert_int_equal(chat_template_render(t, v, NULL, &out, &err), SUMI_OK);
        json_object_put(v);
    }
    assert_string_equal(buf_text(&out.text), "101112");
    assert_int_equal(out.trusted.len, 6);
    buf_reset(&out.text);
    buf_reset(&out.trusted);
    chat_template_close(t);
}

static void hostile_variables_are_refused(void **state) {
    (void)state;
    struct chat_template *t;
    struct template_output out = {0};
    assert_int_equal(chat_template_parse(&t, "{{ v }}", 7, &err), SUMI_OK);
    struct json_object *v = json_object_new_object();
    json_object_object_add(v, "v", json_object_new_string("a\xFF"));
    assert_int_equal(chat_template_render(t, v, NULL, &out, &err), SUMI_ERR_FORMAT);
    assert_non_null(strstr(err.msg, "invalid UTF-8"));
    struct json_object *deep = json_object_new_array();
    for (int i = 0; i < 300; i++) {
        struct json_object *outer = json_object_new_array();
        json_object_array_add(outer, deep);
        deep = outer;
    }
    json_object_object_add(v, "v", deep);
    assert_int_equal(chat_template_render(t, v, NULL, &out, &err), SUMI_ERR_LIMIT);
    assert_non_null(strstr(err.msg, "nested over 200"));
    json_object_put(v);
    assert_int_equal(chat_template_render(t, NULL, NULL, &out, &err), SUMI_OK);
    assert_int_equal(out.text.len, 0);
    chat_template_close(t);
    buf_reset(&out.text);
    buf_reset(&out.trusted);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_of_variables_is_never_trusted),
        cmocka_unit_test(computed_text_is_trusted),
        cmocka_unit_test(cutting_and_joining_keep_origins),
        cmocka_unit_test(changing_letters_keeps_origins),
        cmocka_unit_test(formatting_keeps_origins),
        cmocka_unit_test(json_of_variables_is_untrusted),
        cmocka_unit_test(captured_text_keeps_origins),
        cmocka_unit_test(faults_name_the_line_and_the_construct),
        cmocka_unit_test(sources_that_are_no_text_are_refused),
        cmocka_unit_test(work_output_and_depth_are_bounded),
        cmocka_unit_test(memory_of_values_is_bounded),
        cmocka_unit_test(nesting_of_sources_is_bounded),
        cmocka_unit_test(a_small_stack_is_enough),
        cmocka_unit_test(limits_can_be_raised),
        cmocka_unit_test(any_allocation_may_fail),
        cmocka_unit_test(loops_over_content_parts_are_noticed),
        cmocka_unit_test(the_templates_in_golden_are_told_apart),
        cmocka_unit_test(variables_that_are_read_are_known),
        cmocka_unit_test(the_time_is_given_or_the_clock),
        cmocka_unit_test(one_template_serves_many_renderings),
        cmocka_unit_test(hostile_variables_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
