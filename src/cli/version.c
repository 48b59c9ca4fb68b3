/* sumi version */
#include <stdio.h>

#include "cli/cli.h"

int verb_version(const struct options *o) {
    (void)o;
    return printf("sumi %s\n", sumi_version()) > 0 && fflush(stdout) == 0 ? EXIT_OK : EXIT_FAILED;
}
