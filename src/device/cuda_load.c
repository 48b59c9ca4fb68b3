/* Finds the CUDA plugin and lets it open a device. Knows nothing of CUDA. The plugin stays loaded:
 * unloading it would pull the driver's threads from under their feet. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "device/cuda.h"

static const struct cuda_plugin *loaded;

const struct cuda_plugin *cuda_plugin_loaded(void) {
    return loaded;
}

typedef const struct cuda_plugin *plugin_fn(void);

static sumi_status load(const char *plugin_dir, const struct cuda_plugin **out, sumi_error *err) {
    char path[4096];
    int n = snprintf(path, sizeof path, "%s%s%s", plugin_dir ? plugin_dir : "",
                     plugin_dir ? "/" : "", CUDA_PLUGIN_FILE);
    if (n < 0 || (size_t)n >= sizeof path)
        return fail_with(err, SUMI_ERR_ARG,
                         "the folder of " CUDA_PLUGIN_FILE " has a name of %d "
                         "bytes, at most %zu are possible",
                         n, sizeof path - 1);
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        return fail_with(err, SUMI_ERR_MISSING,
                         "the CUDA plugin cannot be loaded: %s; build it with `make cuda`, or run "
                         "with --device cpu",
                         dlerror());
    plugin_fn *get;
    void *symbol = dlsym(handle, CUDA_PLUGIN_SYMBOL);
    if (!symbol) {
        dlclose(handle);
        return fail_with(err, SUMI_ERR_UNSUPPORTED, "%s is no sumi plugin: it has no symbol %s",
                         path, CUDA_PLUGIN_SYMBOL);
    }
    memcpy(&get, &symbol, sizeof get);
    const struct cuda_plugin *plugin = get();
    if (strcmp(plugin->version, CUDA_PLUGIN_VERSION) != 0) {
        fail_with(err, SUMI_ERR_UNSUPPORTED,
                  "%s is version %s, expected " CUDA_PLUGIN_VERSION "; build it from the same "
                  "source as this program",
                  path, plugin->version);
        dlclose(handle);
        return SUMI_ERR_UNSUPPORTED;
    }
    *out = plugin;
    return SUMI_OK;
}

sumi_status device_open_cuda(struct device **out, int index, const char *plugin_dir,
                             sumi_error *err) {
    const struct cuda_plugin *plugin;
    *out = NULL;
    TRY(load(plugin_dir, &plugin, err));
    loaded = plugin;
    return plugin->open(out, index, err);
}
