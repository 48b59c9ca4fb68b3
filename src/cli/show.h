/* An answer on a terminal or in a pipe: reasoning is dimmed on a terminal and left out of a pipe
 * unless it is asked for; calls are shown as name and arguments. */
#ifndef SUMI_CLI_SHOW_H
#define SUMI_CLI_SHOW_H

#include "cli/ask.h"

struct show {
    bool silent, reasoning, colour;
    bool any, in_reasoning, in_call, at_line_start;
    bool failed; /* stdout takes no more */
};

void show_begin(struct show *s, const struct options *o, bool silent);
void show_delta(void *show, const struct delta *d); /* fits struct ask */
void show_end(struct show *s);                      /* ends the last line */
void show_stats(const struct asked *a);             /* one line on stderr */

#endif
