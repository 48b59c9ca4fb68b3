/* Dummy weights: the sum of four uniform bytes is near enough to normal for timing and for routing
 * that spreads. */
#include "model/dummy.h"

static uint64_t next(uint64_t *s) { /* splitmix64 */
    uint64_t z = *s += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

void dummy_fill(bf16 *data, size_t n, uint64_t seed) {
    uint64_t state = seed * 0xD1342543DE82EF95u + 1;
    const float unit = 0.02f / 147.8f; /* a sum of four bytes has standard deviation 147.8 */
    for (size_t i = 0; i < n; i += 2) {
        uint64_t u = next(&state);
        for (size_t j = 0; j < 2 && i + j < n; j++, u >>= 32) {
            int sum =
                (int)(u & 255) + (int)(u >> 8 & 255) + (int)(u >> 16 & 255) + (int)(u >> 24 & 255);
            data[i + j] = bf16_from_f32((float)(sum - 510) * unit);
        }
    }
}
