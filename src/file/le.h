/* Little-endian numbers at any address, on any machine. */
#ifndef SUMI_FILE_LE_H
#define SUMI_FILE_LE_H

#include <stdint.h>
#include <string.h>

static inline uint16_t le16(const uint8_t *p) {
    return (uint16_t)(p[0] | p[1] << 8);
}

static inline uint32_t le32(const uint8_t *p) {
    return (uint32_t)le16(p) | (uint32_t)le16(p + 2) << 16;
}

static inline uint64_t le64(const uint8_t *p) {
    return (uint64_t)le32(p) | (uint64_t)le32(p + 4) << 32;
}

static inline float le_f32(const uint8_t *p) {
    uint32_t u = le32(p);
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

static inline double le_f64(const uint8_t *p) {
    uint64_t u = le64(p);
    double d;
    memcpy(&d, &u, sizeof d);
    return d;
}

#endif
