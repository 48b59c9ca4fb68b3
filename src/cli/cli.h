/* The program: one function per verb. Each takes parsed options and gives the exit status: 0, 1
 * when the work failed, 2 for a wrong command line. Only main() ends the process. */
#ifndef SUMI_CLI_CLI_H
#define SUMI_CLI_CLI_H

#include "base/option.h"

enum { EXIT_OK, EXIT_FAILED, EXIT_USAGE };

int verb_serve(const struct options *o);
int verb_run(const struct options *o);
int verb_chat(const struct options *o);
int verb_plan(const struct options *o);
int verb_info(const struct options *o);
int verb_tokenize(const struct options *o);
int verb_trace(const struct options *o);
int verb_completion(const struct options *o);
int verb_version(const struct options *o);
int verb_help(const struct options *o);

/* One sentence on stderr; returns EXIT_FAILED, or EXIT_USAGE when the error is about an option. */
int cli_fail(const sumi_error *err);
/* Writes all of b to stdout and empties it; false when stdout takes no more. */
bool cli_print(struct buf *b);
/* Sets the log's level and format from the options and logs what parsing had to say. */
void cli_log_setup(const struct options *o);
/* Standard input to its end (at most 16 MiB); mem_free it. */
sumi_status cli_read_stdin(char **text, size_t *n, sumi_error *err);

#endif
