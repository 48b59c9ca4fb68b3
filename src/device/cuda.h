/* The CUDA device. It lives in a plugin, libsumi-cuda.so, so that one program serves machines with
 * and without a GPU; this header is what both sides share. Facts and limits: docs/cuda.md. */
#ifndef SUMI_DEVICE_CUDA_H
#define SUMI_DEVICE_CUDA_H

#include <stdbool.h>

#include "device/device.h"

/* Changes with every change of struct device, struct op, struct step or this header. */
#define CUDA_PLUGIN_VERSION "0.1.0/1"
#define CUDA_PLUGIN_FILE    "libsumi-cuda.so"
#define CUDA_PLUGIN_SYMBOL  "sumi_cuda_plugin"

struct cuda_options {
    bool graphs; /* replay steps of up to 64 rows from captured graphs */
    bool pdl;    /* let a kernel start before its predecessor has ended */
    bool timed;  /* measure steps with events */
};

struct cuda_stats {
    int n_kernel;     /* launched, or replayed, by the last run_list */
    float forward_ms; /* its time on the device, if timed */
    bool replayed;    /* it came from a graph */
    size_t weight_bytes;
};

struct cuda_plugin {
    const char *version;
    const char *archs; /* what it was built for, for messages */
    sumi_status (*open)(struct device **out, int index, sumi_error *err);
    void (*set_options)(struct device *d, const struct cuda_options *o);
    void (*stats)(struct device *d, struct cuda_stats *out);
};

/* The plugin's only exported symbol. */
const struct cuda_plugin *sumi_cuda_plugin(void);

/* Opens GPU `index` through the plugin in plugin_dir (NULL: where the loader looks). Errors say
 * whether the plugin, its version, the driver or the device is at fault; SUMI_ERR_MISSING where
 * there is none, SUMI_ERR_UNSUPPORTED where it cannot be used. */
sumi_status device_open_cuda(struct device **out, int index, const char *plugin_dir,
                             sumi_error *err);

/* The plugin in use; NULL before the first device was opened. */
const struct cuda_plugin *cuda_plugin_loaded(void);

#endif
