/* Which device steps run on. In come options, out comes an open device; what it computes with is
 * not known here. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api/setup.h"
#include "base/log.h"
#include "device/cuda.h"
#include "ops/op.h"

static sumi_status open_cpu(struct setup *s, sumi_error *err) {
    enum cpu_isa isa;
    TRY(device_open_cpu(&s->device, (int)opt_int(s->o, "threads"), err));
    TRY(cpu_isa_parse(opt_string(s->o, "cpu-isa"), &isa, err));
    return ops_bind_cpu_isa(s->device, isa, err);
}

/* The plugin lies beside the program, in the lib folder of its prefix, or where the loader looks.
 */
static sumi_status open_cuda(struct setup *s, sumi_error *err) {
    static const char *const place[] = {"", "/../lib"};
    char folder[4096], dir[4096 + 16], path[sizeof dir + 32];
    const char *found = NULL;
    TRY(program_folder(folder, sizeof folder, err));
    for (size_t i = 0; i < 2 && !found; i++) {
        snprintf(dir, sizeof dir, "%s%s", folder, place[i]);
        snprintf(path, sizeof path, "%s/%s", dir, CUDA_PLUGIN_FILE);
        if (access(path, R_OK) == 0) found = dir;
    }
    TRY(device_open_cuda(&s->device, 0, found, err));
    s->device->progress = progress;
    return SUMI_OK;
}

sumi_status setup_device(struct setup *s, sumi_error *err) {
    const char *want = opt_string(s->o, "device");
    sumi_error why = {0};
    if (strcmp(want, "cuda") == 0) return open_cuda(s, err);
    if (strcmp(want, "auto") == 0 && s->bf16) {
        if (open_cuda(s, &why) == SUMI_OK) return SUMI_OK;
        /* A GPU that cannot be used is worth a line; a machine without one is not. */
        log_line(why.status == SUMI_ERR_MISSING ? LOG_DEBUG : LOG_WARNING, "running on the CPU: %s",
                 why.msg);
    }
    return open_cpu(s, err);
}
