/* Recognising an architecture. */
#include "model/family.h"

#include <string.h>

static const struct family *const families[] = {&flint_family};
enum { N_FAMILY = sizeof families / sizeof *families };

const struct family *family_by_config(struct json_object *config, sumi_error *err) {
    const char *type = "";
    if (json_get_str(config, "model_type", &type, err) != SUMI_OK) return NULL;
    struct json_object *list = json_get(config, "architectures");
    const char *arch = "";
    if (json_is(list, json_type_array) && json_object_array_length(list) > 0) {
        struct json_object *first = json_object_array_get_idx(list, 0);
        if (json_is(first, json_type_string)) arch = json_object_get_string(first);
    }
    for (int i = 0; i < N_FAMILY; i++)
        if (strcmp(families[i]->model_type, type) == 0 ||
            (!*type && strcmp(families[i]->architecture, arch) == 0))
            return families[i];
    fail_with(err, SUMI_ERR_UNSUPPORTED,
              "config.json: model_type \"%.60s\" (architecture \"%.60s\") is not supported; this "
              "build runs %s",
              type, arch, families[0]->architecture);
    return NULL;
}

const struct family *family_by_gguf(const struct gguf *g, sumi_error *err) {
    const char *arch;
    size_t n;
    if (gguf_get_string(g, "general.architecture", true, &arch, &n, err) != SUMI_OK) return NULL;
    for (int i = 0; i < N_FAMILY; i++)
        if (strlen(families[i]->gguf_architecture) == n &&
            memcmp(families[i]->gguf_architecture, arch, n) == 0)
            return families[i];
    fail_with(err, SUMI_ERR_UNSUPPORTED,
              "GGUF: general.architecture \"%.*s\" is not supported; this build runs \"%s\"",
              (int)(n > 60 ? 60 : n), arch, families[0]->gguf_architecture);
    return NULL;
}
