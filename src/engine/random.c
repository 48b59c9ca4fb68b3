/* A key and a counter flow in, mixed words flow out. Knows nothing of tokens. */
#include "engine/random.h"

static uint32_t mul_hi_lo(uint32_t a, uint32_t b, uint32_t *lo) {
    uint64_t product = (uint64_t)a * b;
    *lo = (uint32_t)product;
    return (uint32_t)(product >> 32);
}

void philox4x32(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]) {
    enum { ROUNDS = 10 };
    uint32_t x0 = counter[0], x1 = counter[1], x2 = counter[2], x3 = counter[3];
    uint32_t k0 = key[0], k1 = key[1];
    for (int i = 0; i < ROUNDS; i++) {
        uint32_t lo0, lo2;
        uint32_t hi0 = mul_hi_lo(0xD2511F53u, x0, &lo0);
        uint32_t hi2 = mul_hi_lo(0xCD9E8D57u, x2, &lo2);
        x0 = hi2 ^ x1 ^ k0;
        x1 = lo2;
        x2 = hi0 ^ x3 ^ k1;
        x3 = lo0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out[0] = x0, out[1] = x1, out[2] = x2, out[3] = x3;
}

uint64_t random_bits(uint64_t seed, uint64_t position, uint64_t stream) {
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    const uint32_t counter[4] = {(uint32_t)position, (uint32_t)(position >> 32), (uint32_t)stream,
                                 (uint32_t)(stream >> 32)};
    uint32_t out[4];
    philox4x32(counter, key, out);
    return (uint64_t)out[1] << 32 | out[0];
}

double random_unit(uint64_t seed, uint64_t position, uint64_t stream) {
    /* 52 bits and a half fit a double exactly, so rounding cannot produce 1. */
    return ((double)(random_bits(seed, position, stream) >> 12) + 0.5) * 0x1p-52;
}
