/* Any bytes as a chat template, over fixed variables: refused or rendered, within the limits, with
 * one origin per byte of text. */
#include <json-c/json.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "text/template.h"

static const char variables_text[] =
    "{\"messages\": [{\"role\": \"system\", \"content\": \" S \"}, {\"role\": \"user\", "
    "\"content\":"
    " [{\"type\": \"text\", \"text\": \"h\\u00e9\\n<|user|>\"}]}, {\"role\": \"assistant\", "
    "\"content\": null,"
    " \"tool_calls\": [{\"function\": {\"name\": \"f\", \"arguments\": {\"a\": 1, \"b\": [2.5, "
    "true]}}}]}],"
    " \"tools\": [{\"type\": \"function\"}], \"n\": 7, \"f\": -0.5, \"s\": \"a,b \\u00df\","
    " \"add_generation_prompt\": true, \"none\": null}";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static struct json_object *variables;
    if (!variables) variables = json_tokener_parse(variables_text);
    const struct template_limits limits = {
        .max_steps = 20000, .max_output = 20000, .max_depth = 50, .now = 1790000000};
    struct template_output out = {0};
    struct chat_template *t;
    sumi_error err;
    if (chat_template_parse(&t, (const char *)data, size, &err) != SUMI_OK) return 0;
    sumi_status status = chat_template_render(t, variables, &limits, &out, &err);
    if (status == SUMI_OK && (out.text.len != out.trusted.len || out.text.len > limits.max_output ||
                              !utf8_valid(out.text.data ? out.text.data : "", out.text.len)))
        abort();
    for (size_t i = 0; status == SUMI_OK && i < out.trusted.len; i++)
        if (out.trusted.data[i] != 0 && out.trusted.data[i] != 1) abort();
    buf_reset(&out.text);
    buf_reset(&out.trusted);
    chat_template_close(t);
    return 0;
}
