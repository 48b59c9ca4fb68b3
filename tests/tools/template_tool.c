/* Renders a chat template for tests: template_tool TEMPLATE VARIABLES.json [MASK [NOW]]
 * The text goes to stdout, one byte 0 or 1 per byte of text to the file MASK. A failure prints the
 * status and the message to stderr and ends with 1. NOW is the time of strftime_now. */
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/mem.h"
#include "text/template.h"

static sumi_status render(char **argv, int argc, struct template_output *out, sumi_error *err) {
    char *source;
    size_t n;
    struct json_object *variables = NULL;
    struct chat_template *t = NULL;
    struct template_limits limits = {.now = argc > 4 ? strtoll(argv[4], NULL, 10) : 0};
    TRY(file_read(argv[1], 1 << 24, &source, &n, err));
    sumi_status status = chat_template_parse(&t, source, n, err);
    if (status == SUMI_OK) status = json_parse_file(&variables, argv[2], 1 << 28, err);
    if (status == SUMI_OK) status = chat_template_render(t, variables, &limits, out, err);
    chat_template_close(t);
    json_object_put(variables);
    mem_free(source);
    return status;
}

int main(int argc, char **argv) {
    struct template_output out = {0};
    sumi_error err = {0};
    if (argc < 3) {
        fputs("usage: template_tool TEMPLATE VARIABLES.json [MASK [NOW]]\n", stderr);
        return 2;
    }
    sumi_status status = render(argv, argc, &out, &err);
    if (status != SUMI_OK) {
        fprintf(stderr, "%s: %s\n", sumi_status_text(status), err.msg);
    } else {
        fwrite(buf_text(&out.text), 1, out.text.len, stdout);
        FILE *mask = argc > 3 ? fopen(argv[3], "wb") : NULL;
        if (mask) {
            fwrite(buf_text(&out.trusted), 1, out.trusted.len, mask);
            fclose(mask);
        }
    }
    buf_reset(&out.text);
    buf_reset(&out.trusted);
    return status != SUMI_OK;
}
