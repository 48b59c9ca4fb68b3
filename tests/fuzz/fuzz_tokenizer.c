/* Any bytes as tokenizer.json: refused, or good for encoding a fixed text and decoding the ids. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "text/tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char text[] =
        "  The caf\xC3\xA9's 12345 e\xCC\xA3\xCC\x81 <s><t>\r\n\r\n\t\xE4\xBD\xA0\xF0\x9F\x98\x80 "
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa x<s";
    const size_t n = sizeof text - 1;
    uint8_t trusted[sizeof text];
    struct tokenizer *t;
    sumi_error err = {0};
    if (tokenizer_parse_json(&t, (const char *)data, size, "input", &err) != SUMI_OK) {
        if (!err.msg[0]) abort(); /* every refusal says why */
        return 0;
    }
    memset(trusted, 1, sizeof trusted);
    memset(trusted + n / 2, 0, n / 4);
    for (int mode = 0; mode < 3; mode++) {
        struct ids ids = {0};
        struct buf b = {0};
        sumi_status status =
            tokenizer_encode(t, text, n, mode == 2 ? trusted : NULL, mode != 1, &ids, &err);
        for (size_t i = 0; i < ids.n; i++)
            if (!tokenizer_has(t, ids.data[i])) abort();
        if (status != SUMI_OK && ids.n) abort();
        tokenizer_decode(t, ids.data, ids.n, mode == 1, &b);
        if (!utf8_valid(buf_text(&b), b.len)) abort();
        buf_reset(&b);
        mem_free(ids.data);
    }
    tokenizer_close(t);
    return 0;
}
