/* Which vector instructions the CPU operations use. Levels are ordered: a processor that has one
 * has those before it. */
#ifndef SUMI_BASE_CPU_ISA_H
#define SUMI_BASE_CPU_ISA_H

#include "base/status.h"

enum cpu_isa {
    CPU_ISA_REF,    /* plain C, every processor */
    CPU_ISA_AVX2,   /* AVX2, FMA, F16C */
    CPU_ISA_AVX512, /* AVX-512 F, BW, DQ, VL */
    CPU_ISA_AUTO    /* the best that this processor has */
};

const char *cpu_isa_name(enum cpu_isa isa); /* "ref", "avx2", "avx512", "auto" */

/* The best level of this processor and operating system; never AUTO. */
enum cpu_isa cpu_isa_best(void);

/* Turns AUTO into the best level and refuses a level that the processor lacks. */
sumi_status cpu_isa_choose(enum cpu_isa want, enum cpu_isa *out, sumi_error *err);

/* A name as given to --cpu-isa. */
sumi_status cpu_isa_parse(const char *name, enum cpu_isa *out, sumi_error *err);

#endif
