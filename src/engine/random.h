/* Random numbers that depend on their key and place alone: Philox4x32-10 (Salmon, Moraes, Dror,
 * Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC 2011). There is no state, so a draw does
 * not depend on what else was drawn, in which order, or in which batch. */
#ifndef SUMI_ENGINE_RANDOM_H
#define SUMI_ENGINE_RANDOM_H

#include <stdint.h>

/* What a number is for: the last part of the counter, so that uses never share a number. */
enum random_stream { STREAM_TOKEN, STREAM_SEED };

/* One block: counter and key to four words. */
void philox4x32(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

/* 64 bits with the seed as key and (position, stream) as counter. */
uint64_t random_bits(uint64_t seed, uint64_t position, uint64_t stream);

/* The same as a double in (0, 1): a multiple of 2^-53, never 0, never 1. */
double random_unit(uint64_t seed, uint64_t position, uint64_t stream);

#endif
