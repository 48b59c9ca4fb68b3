/* The table of number formats. */
#include "base/dtype.h"

#include <math.h>

#include "base/size.h"

const struct dtype_info *dtype_info(enum dtype t) {
    static const struct dtype_info info[] = {
#define X(name, text, values, bytes) {text, values, bytes},
        DTYPE_LIST(X)
#undef X
    };
    return &info[t];
}

bool dtype_parse(const char *name, enum dtype *out) {
    for (int t = 0; t < DT_COUNT; t++)
        if (strcmp(dtype_info((enum dtype)t)->name, name) == 0) {
            *out = (enum dtype)t;
            return true;
        }
    return false;
}

bool dtype_row_bytes(enum dtype t, size_t n, size_t *bytes) {
    const struct dtype_info *d = dtype_info(t);
    if (n % (size_t)d->block) return false;
    return size_mul(n / (size_t)d->block, (size_t)d->bytes, bytes);
}

float f16_to_f32(uint16_t x) {
    int e = x >> 10 & 31, m = x & 1023;
    float v = e == 31  ? (m ? NAN : INFINITY)
              : e == 0 ? ldexpf((float)m, -24)
                       : ldexpf((float)(1024 + m), e - 25);
    return x & 0x8000 ? -v : v;
}

uint16_t f16_from_f32(float f) {
    uint32_t u;
    memcpy(&u, &f, 4);
    uint16_t sign = (uint16_t)(u >> 16 & 0x8000);
    u &= 0x7FFFFFFF;
    if (u > 0x7F800000) return (uint16_t)(sign | 0x7E00);
    if (u >= 0x47800000) return (uint16_t)(sign | 0x7C00);
    if (u < 0x38800000) { /* subnormal half: the value in units of 2^-24, ties to even */
        float a;
        memcpy(&a, &u, 4);
        return (uint16_t)(sign | (uint16_t)nearbyintf(ldexpf(a, 24)));
    }
    uint32_t r = u + 0xFFF + (u >> 13 & 1); /* may carry into the exponent, which is right */
    return (uint16_t)(sign | (uint16_t)((r - 0x38000000) >> 13));
}
