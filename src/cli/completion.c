/* sumi completion bash|zsh|fish */
#include <stdio.h>

#include "base/option_table.h"
#include "cli/cli.h"

int verb_completion(const struct options *o) {
    struct buf b = {0};
    sumi_error err = {0};
    if (!opt_string(o, "shell")) {
        fprintf(stderr, "usage: sumi completion bash|zsh|fish\nsumi completion: name a shell\n");
        return EXIT_USAGE;
    }
    if (opt_completion(&option_table, opt_string(o, "shell"), &b, &err) != SUMI_OK)
        return cli_fail(&err);
    return cli_print(&b) ? EXIT_OK : EXIT_FAILED;
}
