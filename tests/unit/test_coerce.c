/* Arguments typed by a tool's schema. The expected values follow the rules of the specification
 * (order of kinds, aliases, integral numbers) and Python's json.dumps for their spelling. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "chat/coerce.h"

static void check(const char *schema, const char *text, const char *want) {
    struct json_object *v = NULL, *function = NULL;
    struct buf out = {0};
    sumi_error err = {0};
    struct buf f = {0};
    buf_printf(&f,
               "{\"name\":\"f\",\"parameters\":{\"$defs\":{\"n\":{\"type\":\"integer\"},\"loop\":"
               "{\"$ref\":\"#/$defs/loop\"},\"wide\":{\"anyOf\":[{\"$ref\":\"#/$defs/wide\"},"
               "{\"$ref\":\"#/$defs/wide\"},{\"$ref\":\"#/$defs/wide\"}]},\"tree\":{\"type\":"
               "\"object\",\"properties\":{\"n\":{\"type\":\"integer\"},\"kids\":{\"items\":"
               "{\"$ref\":\"#/$defs/tree\"}}}}},\"properties\":{\"p\":%s}}}",
               schema);
    assert_int_equal(json_parse(&function, f.data, f.len, "function", &err), SUMI_OK);
    v = tool_parameter(function, "p");
    coerce_put(&out, function, v, text, strlen(text));
    if (strcmp(buf_text(&out), want)) print_error("schema %s, text %s\n", schema, text);
    assert_string_equal(buf_text(&out), want);
    if (coerce_is_string(function, v)) assert_int_equal(out.data[0], '"');
    buf_reset(&out);
    buf_reset(&f);
    json_object_put(function);
}

static void a_string_is_never_reinterpreted(void **state) {
    (void)state;
    check("{\"type\":\"string\"}", "123", "\"123\"");
    check("{\"type\":\"string\"}", "true", "\"true\"");
    check("{\"type\":\"string\"}", "null", "\"null\"");
    check("{\"type\":\"string\"}", "{\"a\": 1}", "\"{\\\"a\\\": 1}\"");
    check("{\"type\":[\"str\"]}", "[]", "\"[]\"");
    check("{\"enum\":[\"a\",\"b\"]}", "1", "\"1\"");
    check("{}", "5", "\"5\"");
    check("true", "5", "\"5\"");
    check("{\"type\":\"nonsense\"}", "5", "\"5\"");
    check("{\"type\":\"string\"}", "", "\"\"");
}

static void integers_keep_every_digit(void **state) {
    (void)state;
    check("{\"type\":\"integer\"}", "10", "10");
    check("{\"type\":\"int\"}", " -7\n", "-7");
    check("{\"type\":\"integer\"}", "+007", "7");
    check("{\"type\":\"integer\"}", "-0", "0");
    check("{\"type\":\"integer\"}", "123456789012345678901234567890",
          "123456789012345678901234567890");
    check("{\"type\":\"number\"}", "123456789012345678901", "123456789012345678901");
    /* No integer: plain JSON if it is that, else the text. */
    check("{\"type\":\"integer\"}", "1.5", "1.5");
    check("{\"type\":\"integer\"}", "ten", "\"ten\"");
    check("{\"type\":\"integer\"}", "", "\"\"");
    check("{\"type\":\"integer\"}", "-", "\"-\"");
    check("{\"type\":\"integer\"}", "1 2", "\"1 2\"");
    check("{\"type\":\"integer\"}", "true", "true");
}

static void numbers_are_finite_and_integral_ones_integers(void **state) {
    (void)state;
    check("{\"type\":\"number\"}", "2.5", "2.5");
    check("{\"type\":\"number\"}", "5.0", "5");
    check("{\"type\":\"float\"}", "1e5", "100000");
    check("{\"type\":\"number\"}", "-0.0", "0");
    check("{\"type\":\"number\"}", ".5", "0.5");
    check("{\"type\":\"number\"}", "0.1", "0.1");
    check("{\"type\":\"number\"}", "1e-7", "1e-07");
    check("{\"type\":\"number\"}", "1e22", "10000000000000000000000");
    check("{\"type\":\"number\"}", "1e999", "\"1e999\"");
    check("{\"type\":\"number\"}", "inf", "\"inf\"");
    check("{\"type\":\"number\"}", "NaN", "\"NaN\"");
    check("{\"type\":\"number\"}", "0x10", "\"0x10\"");
    check("{\"type\":\"number\"}", "1.2.3", "\"1.2.3\"");
}

static void kinds_are_tried_in_order(void **state) {
    (void)state;
    check("{\"type\":[\"string\",\"null\"]}", "null", "null");
    check("{\"type\":[\"string\",\"null\"]}", "NULL", "null");
    check("{\"type\":[\"string\",\"null\"]}", "nil", "\"nil\"");
    check("{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"null\"}]}", "null", "null");
    check("{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"integer\"}]}", "3", "3");
    check("{\"oneOf\":[{\"type\":\"boolean\"},{\"type\":\"integer\"}]}", "1", "1");
    check("{\"type\":\"boolean\"}", "1", "true");
    check("{\"type\":\"bool\"}", "FALSE", "false");
    check("{\"type\":\"boolean\"}", "yes", "\"yes\"");
    check("{\"allOf\":[{\"enum\":[1,2]}]}", "2", "2");
    check("{\"enum\":[1.5]}", "1.5", "1.5");
    check("{\"enum\":[true,null]}", "null", "null");
    check("{\"const\":4}", "4", "4");
}

static void objects_and_arrays_are_json(void **state) {
    (void)state;
    check("{\"type\":\"object\"}", "{\"a\":1,\"b\":[1.50,\"é\"]}",
          "{\"a\": 1, \"b\": [1.50, \"é\"]}");
    check("{\"type\":\"dict\"}", " {} ", "{}");
    check("{\"type\":\"array\"}", "[]", "[]");
    check("{\"type\":\"list\"}", "[1, null, {\"x\": []}]", "[1, null, {\"x\": []}]");
    check("{\"type\":\"array\"}", "{\"a\": 1}", "{\"a\": 1}");
    check("{\"type\":\"object\"}", "{broken", "\"{broken\"");
    check("{\"type\":\"object\"}", "{\"a\": NaN}", "\"{\\\"a\\\": NaN}\"");
    check("{\"type\":\"array\"}", "[1e999]", "\"[1e999]\"");
    check("{\"type\":\"array\"}", " [123456789012345678901234567890,1] ",
          "[123456789012345678901234567890,1]");
    check("{\"type\":[\"object\",\"string\"]}", "{broken", "\"{broken\"");
}

static void nested_strings_follow_their_schema(void **state) {
    (void)state;
    check("{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\"},\"s\":"
          "{\"type\":\"string\"}}}",
          "{\"n\": \"3\", \"s\": \"3\", \"t\": \"3\"}", "{\"n\": 3, \"s\": \"3\", \"t\": \"3\"}");
    check("{\"type\":\"array\",\"items\":{\"type\":\"number\"}}", "[\"1.5\", 2]", "[1.5, 2]");
    check("{\"type\":\"array\",\"items\":{\"type\":[\"number\",\"string\"]}}", "[\"1\"]",
          "[\"1\"]");
    check("{\"type\":\"array\",\"items\":{\"type\":\"array\",\"items\":{\"type\":\"integer\"}}}",
          "[\"[\\\"7\\\"]\"]", "[[7]]");
}

static void references_stay_inside_the_schema(void **state) {
    (void)state;
    check("{\"$ref\":\"#/$defs/n\"}", "3", "3");
    check("{\"anyOf\":[{\"$ref\":\"#/$defs/n\"},{\"type\":\"null\"}]}", "null", "null");
    check("{\"$ref\":\"#/$defs/tree\"}", "{\"n\": \"1\", \"kids\": [{\"n\": \"2\"}]}",
          "{\"n\": 1, \"kids\": [{\"n\": 2}]}");
    check("{\"$ref\":\"#/$defs/loop\"}", "3", "\"3\"");
    check("{\"$ref\":\"#/$defs/wide\"}", "3", "\"3\"");
    check("{\"$ref\":\"#/$defs/absent\"}", "3", "\"3\"");
    check("{\"$ref\":\"https://example.org/x\"}", "3", "\"3\"");
}

static void tools_are_found_by_whole_names(void **state) {
    (void)state;
    static const char text[] = "[{\"type\":\"function\",\"function\":{\"name\":\"get_time\"}},"
                               "{\"name\":\"flat\"},{\"function\":{\"name\":7}},5]";
    struct json_object *tools;
    sumi_error err = {0};
    assert_int_equal(json_parse(&tools, text, sizeof text - 1, "tools", &err), SUMI_OK);
    assert_non_null(tool_find(tools, "get_time", 8));
    assert_non_null(tool_find(tools, "flat", 4));
    assert_null(tool_find(tools, "get", 3));
    assert_null(tool_find(tools, "get_times", 9));
    assert_null(tool_find(tools, "", 0));
    assert_true(tool_name_begins(tools, "get", 3));
    assert_true(tool_name_begins(tools, "", 0));
    assert_false(tool_name_begins(tools, "gets", 4));
    assert_null(tool_find(NULL, "get", 3));
    assert_false(tool_name_begins(NULL, "", 0));
    assert_null(tool_parameter(tool_find(tools, "flat", 4), "x"));
    json_object_put(tools);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_string_is_never_reinterpreted),
        cmocka_unit_test(integers_keep_every_digit),
        cmocka_unit_test(numbers_are_finite_and_integral_ones_integers),
        cmocka_unit_test(kinds_are_tried_in_order),
        cmocka_unit_test(objects_and_arrays_are_json),
        cmocka_unit_test(nested_strings_follow_their_schema),
        cmocka_unit_test(references_stay_inside_the_schema),
        cmocka_unit_test(tools_are_found_by_whole_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
