/* The processor's feature bits flow in through the compiler's run-time support (which also asks
 * the operating system whether it saves the wide registers), a level flows out. */
#include "base/cpu_isa.h"

#include <string.h>

static const char *const name_of[] = {"ref", "avx2", "avx512", "auto"};

const char *cpu_isa_name(enum cpu_isa isa) {
    return name_of[isa];
}

enum cpu_isa cpu_isa_best(void) {
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return CPU_ISA_REF;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        return CPU_ISA_AVX512;
    return CPU_ISA_AVX2;
#else
    return CPU_ISA_REF;
#endif
}

sumi_status cpu_isa_choose(enum cpu_isa want, enum cpu_isa *out, sumi_error *err) {
    enum cpu_isa best = cpu_isa_best();
    *out = want == CPU_ISA_AUTO ? best : want;
    if (*out <= best) return SUMI_OK;
    return fail_param(err, SUMI_ERR_UNSUPPORTED, "cpu-isa",
                      "cpu-isa %s: this processor offers %s at most; use that or auto",
                      cpu_isa_name(want), cpu_isa_name(best));
}

sumi_status cpu_isa_parse(const char *name, enum cpu_isa *out, sumi_error *err) {
    for (enum cpu_isa i = CPU_ISA_REF; i <= CPU_ISA_AUTO; i++)
        if (strcmp(name, name_of[i]) == 0) {
            *out = i;
            return SUMI_OK;
        }
    return fail_param(err, SUMI_ERR_ARG, "cpu-isa",
                      "cpu-isa: expected auto, ref, avx2 or avx512, found \"%s\"", name);
}
