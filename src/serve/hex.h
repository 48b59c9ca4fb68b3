/* Random identifiers. */
#ifndef SUMI_SERVE_HEX_H
#define SUMI_SERVE_HEX_H

#include <stddef.h>

/* Hex digits from the system's random source; n_byte is at most 32, out has room for 2 n_byte + 1.
 */
void random_hex(char *out, size_t n_byte);

#endif
