/* Options from hostile hands: the first byte chooses a config file ('c') or a command line, one
 * word a line. What is accepted must print as a config that is accepted again with the same values.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/option_table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static sumi_status words(struct options *o, const char *text, size_t n) {
    const char *argv[64];
    int argc = 0;
    char *copy = mem_string(text, n), *rest = copy;
    if (!copy) return SUMI_ERR_MEMORY;
    for (char *word; argc < 64 && (word = strsep(&rest, "\n"));) argv[argc++] = word;
    /* A file named by the input is none of the fuzzer's business. */
    sumi_status status = strstr(copy, "conf") ? SUMI_ERR_ARG : SUMI_OK;
    for (int i = 0; i < argc; i++)
        if (strncmp(argv[i], "--c", 3) == 0) status = SUMI_ERR_ARG;
    if (status == SUMI_OK) status = options_parse(o, argc, argv, NULL, NULL);
    mem_free(copy);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const struct opt_verb *verb = opt_find_verb(&option_table, "serve");
    struct options *a, *b;
    struct buf first = {0}, second = {0};
    sumi_error err;
    if (size < 1 || size > 4096 || options_open(&a, &option_table, verb, NULL) != SUMI_OK) return 0;
    const char *text = (const char *)data + 1;
    sumi_status status =
        *data == 'c' ? options_config(a, text, size - 1, "fuzz", &err) : words(a, text, size - 1);
    if (status == SUMI_OK && options_open(&b, &option_table, verb, NULL) == SUMI_OK) {
        opt_print_config(a, &first);
        if (options_config(b, buf_text(&first), first.len, "printed", &err) != SUMI_OK) abort();
        opt_print_config(b, &second);
        if (first.failed || second.failed) abort();
        options_close(b);
    }
    buf_reset(&first);
    buf_reset(&second);
    options_close(a);
    return 0;
}
