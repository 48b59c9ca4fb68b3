/* sumi help [COMMAND|man] */
#include <stdio.h>
#include <string.h>

#include "base/option_table.h"
#include "cli/cli.h"

int verb_help(const struct options *o) {
    const char *topic = opt_string(o, "topic");
    const struct opt_verb *verb = topic ? opt_find_verb(&option_table, topic) : NULL;
    struct buf b = {0};
    sumi_error err = {0};
    if (!topic) opt_overview(&option_table, &b);
    else if (strcmp(topic, "man") == 0) opt_manual(&option_table, &b);
    else if (verb) opt_help(&option_table, verb, NULL, &b, &err);
    else {
        fprintf(stderr,
                "sumi help: there is no command \"%.100s\"; the commands are listed by: "
                "sumi help\n",
                topic);
        return EXIT_USAGE;
    }
    return cli_print(&b) ? EXIT_OK : EXIT_FAILED;
}
