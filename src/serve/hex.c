/* Random bytes in, hex digits out. */
#include "serve/hex.h"

#include <string.h>
#include <sys/random.h>

void random_hex(char *out, size_t n_byte) {
    static const char digit[] = "0123456789abcdef";
    unsigned char byte[32] = {0};
    /* Up to 256 bytes come whole, or not at all on a kernel without the call: then ids repeat,
     * which harms nobody but a reader of logs. */
    if (getrandom(byte, sizeof byte, 0) < 0) memset(byte, 0, sizeof byte);
    for (size_t i = 0; i < n_byte && i < sizeof byte; i++) {
        out[2 * i] = digit[byte[i] >> 4];
        out[2 * i + 1] = digit[byte[i] & 15];
    }
    out[2 * n_byte] = 0;
}
