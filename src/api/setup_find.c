/* Which files the options mean: MODEL, the shipped model, --tokenizer, --chat-template. Paths come
 * out; nothing but a template's text is read. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/setup.h"
#include "base/mem.h"
#include "file/hub.h"

/* Name of the model that ships with sumi, and where it may lie as seen from the program. */
static const char shipped_name[] = "flint-tiny";
static const char *const shipped_places[] = {"../models", "../../models", "../share/sumi/models"};

enum { MAX_TEMPLATE = 1 << 20 };

static struct hub_env hub_env(const struct options *o) {
    return (struct hub_env){
        .download_dir = opt_string(o, "download-dir"),
        .hf_hub_cache = opt_string(o, "hub-cache"),
        .hub_cache_old = opt_string(o, "hub-cache-old"),
        .hf_home = opt_string(o, "hf-home"),
        .xdg_cache = opt_string(o, "xdg-cache-home"),
        .home = opt_string(o, "home"),
    };
}

/* First .gguf of a folder in alphabetical order, as a path; NULL if there is none. */
static char *first_gguf(const char *folder) {
    DIR *d = opendir(folder);
    char best[256] = "";
    for (struct dirent *e; d && (e = readdir(d));) {
        size_t n = strlen(e->d_name);
        if (n < 6 || n >= sizeof best || strcmp(e->d_name + n - 5, ".gguf") != 0) continue;
        if (!*best || strcmp(e->d_name, best) < 0) snprintf(best, sizeof best, "%s", e->d_name);
    }
    if (d) closedir(d);
    if (!*best) return NULL;
    struct buf b = {0};
    buf_printf(&b, "%s/%s", folder, best);
    return buf_take(&b);
}

sumi_status program_folder(char *out, size_t size, sumi_error *err) {
    ssize_t n = readlink("/proc/self/exe", out, size - 1);
    if (n < 0) return fail_with(err, SUMI_ERR_IO, "the program's own path cannot be read");
    out[n] = 0;
    char *slash = strrchr(out, '/');
    if (slash) *slash = 0;
    return SUMI_OK;
}

static sumi_status find_shipped(struct setup *s, sumi_error *err) {
    char exe[4096];
    TRY(program_folder(exe, sizeof exe, err));
    for (size_t i = 0; i < sizeof shipped_places / sizeof *shipped_places && !s->path; i++) {
        struct buf b = {0};
        buf_printf(&b, "%s/%s/%s", exe, shipped_places[i], shipped_name);
        if (!b.failed) s->path = first_gguf(buf_text(&b));
        buf_reset(&b);
    }
    if (!s->path)
        return fail_param(err, SUMI_ERR_MISSING, "model",
                          "no MODEL is given, and the one that ships with sumi is not there: "
                          "expected models/%s/*.gguf beside %s or one level up",
                          shipped_name, exe);
    s->shipped = true;
    s->name = mem_string(shipped_name, sizeof shipped_name - 1);
    return s->name ? SUMI_OK : NO_MEMORY(err, sizeof shipped_name);
}

sumi_status setup_find_model(struct setup *s, sumi_error *err) {
    const char *model = opt_string(s->o, "model");
    struct hub_env env = hub_env(s->o);
    if (model && *model) {
        s->name = mem_string(model, strlen(model));
        if (!s->name) return NO_MEMORY(err, strlen(model));
        return hub_resolve(&s->path, model, opt_string(s->o, "revision"), &env, err);
    }
    if (!opt_string(s->o, "hf-config-path")) return find_shipped(s, err);
    const char *config = opt_string(s->o, "hf-config-path");
    s->name = mem_string(config, strlen(config));
    return s->name ? SUMI_OK : NO_MEMORY(err, strlen(config));
}

static bool exists(const char *path) {
    struct stat st;
    return stat(path, &st) == 0;
}

sumi_status setup_find_tokenizer(struct setup *s, sumi_error *err) {
    const char *t = opt_string(s->o, "tokenizer");
    struct hub_env env = hub_env(s->o);
    if (!t) return SUMI_OK;
    if (!exists(t))
        return hub_resolve(&s->tokenizer_path, t, opt_string(s->o, "tokenizer-revision"), &env,
                           err);
    s->tokenizer_path = mem_string(t, strlen(t));
    return s->tokenizer_path ? SUMI_OK : NO_MEMORY(err, strlen(t));
}

sumi_status setup_find_template(struct setup *s, sumi_error *err) {
    const char *t = opt_string(s->o, "chat-template");
    size_t n;
    if (!t) return SUMI_OK;
    if (exists(t)) return file_read(t, MAX_TEMPLATE, &s->template_text, &n, err);
    if (!strpbrk(t, "{}\n"))
        return fail_param(err, SUMI_ERR_ARG, "chat-template",
                          "--chat-template %.200s: there is no such file, and it is not the text "
                          "of a template",
                          t);
    s->template_text = mem_string(t, strlen(t));
    return s->template_text ? SUMI_OK : NO_MEMORY(err, strlen(t));
}
