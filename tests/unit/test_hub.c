/* file/hub: from a model argument to a path, over caches laid out as the Hugging Face library does.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "file/hub.h"
#include "scratch.h"

#define HASH  "0123456789abcdef0123456789abcdef01234567"
#define OTHER "fedcba9876543210fedcba9876543210fedcba98"
#define REPO  "hub/models--org--name"
#define SNAP  REPO "/snapshots/" HASH

static struct hub_env cache_env(void) {
    static char folder[128];
    snprintf(folder, sizeof folder, "%s", scratch_path("hub"));
    return (struct hub_env){.hf_hub_cache = folder};
}

static void assert_resolves(const char *model, const char *revision, const struct hub_env *env,
                            const char *want) {
    char *got;
    sumi_error err = {0};
    if (hub_resolve(&got, model, revision, env, &err) != SUMI_OK) fail_msg("%s", err.msg);
    assert_string_equal(got, want);
    mem_free(got);
}

static void assert_fails(const char *model, const char *revision, const struct hub_env *env,
                         sumi_status want, const char *part) {
    char *got;
    sumi_error err = {0};
    sumi_status status = hub_resolve(&got, model, revision, env, &err);
    if (status != want || !strstr(err.msg, part))
        fail_msg("%s: status %d, message \"%s\", expected status %d and \"%s\"", model, (int)status,
                 err.msg, (int)want, part);
    assert_null(got);
}

/* A file as the library stores it: a relative link into blobs/. */
static void put_blob(const char *name, const char *text) {
    char path[256], target[256];
    static int serial;
    snprintf(path, sizeof path, REPO "/blobs/%d", ++serial);
    scratch_text(path, text);
    snprintf(path, sizeof path, SNAP "/%s", name);
    snprintf(target, sizeof target, "../../%sblobs/%d", strchr(name, '/') ? "../" : "", serial);
    scratch_link(path, target);
}

static void an_existing_path_is_used_as_it_is(void **state) {
    (void)state;
    struct hub_env env = {0};
    scratch_open();
    scratch_text("m.gguf", "");
    scratch_text("m.safetensors", "");
    scratch_text("m.bin", "");
    assert_resolves(scratch_dir, NULL, &env, scratch_dir);
    assert_resolves(scratch_path("m.gguf"), NULL, &env, scratch_path("m.gguf"));
    assert_resolves(scratch_path("m.safetensors"), NULL, &env, scratch_path("m.safetensors"));
    assert_fails(scratch_path("m.bin"), NULL, &env, SUMI_ERR_ARG, "m.bin");
    scratch_close();
}

static void what_is_neither_path_nor_name_is_refused(void **state) {
    (void)state;
    static const char *const bad[] = {"",       "/no/such",   "a/b/c",          "../x",   "./x",
                                      "a/..",   "org/na--me", "org/na..me",     "-a/b",   "a/b-",
                                      "org/",   "/name",      "org/na me",      "org/b:", ":x",
                                      "x.gguf", "a/x.gguf",   "a/x.safetensors"};
    scratch_open();
    struct hub_env env = cache_env();
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_fails(bad[i], NULL, &env, SUMI_ERR_MISSING, "no such file or folder");
    scratch_close();
}

static void the_cache_folder_is_the_first_that_is_set(void **state) {
    (void)state;
    scratch_open();
    char folder[6][128];
    static const char *const names[] = {
        "dl", "c1", "c2", "home/hub", "x/huggingface/hub", "h/.cache/huggingface/hub"};
    for (int i = 0; i < 6; i++) {
        char file[192];
        snprintf(file, sizeof file, "%s/models--org--name/refs/main", names[i]);
        scratch_text(file, HASH);
        snprintf(file, sizeof file, "%s/models--org--name/snapshots/" HASH "/m.gguf", names[i]);
        scratch_text(file, "");
        snprintf(folder[i], sizeof folder[i], "%s", scratch_path(names[i]));
    }
    char base[6][128];
    static const char *const bases[] = {"dl", "c1", "c2", "home", "x", "h"};
    for (int i = 0; i < 6; i++) snprintf(base[i], sizeof base[i], "%s", scratch_path(bases[i]));
    struct hub_env env = {base[0], base[1], base[2], base[3], base[4], base[5]};
    const char **member[] = {&env.download_dir, &env.hf_hub_cache, &env.hub_cache_old,
                             &env.hf_home,      &env.xdg_cache,    &env.home};
    for (int i = 0; i < 6; i++) {
        char want[1024];
        snprintf(want, sizeof want, "%s/models--org--name/snapshots/" HASH "/m.gguf", folder[i]);
        assert_resolves("org/name", NULL, &env, want);
        *member[i] = i % 2 ? "" : NULL; /* both mean unset */
    }
    assert_fails("org/name", NULL, &env, SUMI_ERR_MISSING, "HOME");
    scratch_close();
}

static void tilde_and_variables_in_the_folder_are_expanded(void **state) {
    (void)state;
    scratch_open();
    scratch_text(REPO "/refs/main", HASH);
    scratch_text(SNAP "/m.gguf", "");
    static const char *const folders[] = {"~/hub", "$HOME/hub", "${HOME}/hub",
                                          "$XDG_CACHE_HOME/hub"};
    for (size_t i = 0; i < 4; i++) {
        struct hub_env env = {
            .hf_hub_cache = folders[i], .home = scratch_dir, .xdg_cache = scratch_dir};
        assert_resolves("org/name", NULL, &env, scratch_path(SNAP "/m.gguf"));
    }
    struct hub_env env = {.hf_hub_cache = "$HF_HOME/$NONE/${NONE/$", .home = scratch_dir};
    assert_fails("org/name", NULL, &env, SUMI_ERR_MISSING, "the cache $HF_HOME/$NONE/${NONE/$");
    scratch_close();
}

static void a_revision_is_a_ref_or_a_hash(void **state) {
    (void)state;
    scratch_open();
    struct hub_env env = cache_env();
    scratch_text(REPO "/refs/main", HASH "\n");
    scratch_text(REPO "/refs/refs/pr/1", HASH);
    scratch_text(REPO "/refs/odd", "../../../etc");
    scratch_text(REPO "/refs/short", "0123");
    scratch_text(REPO "/refs/gone", OTHER);
    scratch_text(SNAP "/m.gguf", "");
    const char *want = scratch_path(SNAP "/m.gguf");
    assert_resolves("org/name", NULL, &env, want);
    assert_resolves("org/name", "", &env, want);
    assert_resolves("org/name", "main", &env, want);
    assert_resolves("org/name", "refs/pr/1", &env, want);
    assert_resolves("org/name", HASH, &env, want);
    assert_fails("org/name", "v2", &env, SUMI_ERR_MISSING, "revision v2 of repository org/name");
    assert_fails("org/name", OTHER, &env, SUMI_ERR_MISSING, OTHER);
    assert_fails("org/name", "gone", &env, SUMI_ERR_MISSING, OTHER);
    assert_fails("org/name", "odd", &env, SUMI_ERR_FORMAT, "refs/odd");
    assert_fails("org/name", "short", &env, SUMI_ERR_FORMAT, "refs/short");
    static const char *const bad[] = {"../main", "a/../main", "/main", "main/", ".", "a//b"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_fails("org/name", bad[i], &env, SUMI_ERR_ARG, bad[i]);
    scratch_close();
}

static void a_name_that_is_not_cached_is_missing_with_all_three_named(void **state) {
    (void)state;
    scratch_open();
    struct hub_env env = cache_env();
    assert_fails("org/name", "v1", &env, SUMI_ERR_MISSING, "repository org/name (revision v1)");
    assert_fails("org/name", "v1", &env, SUMI_ERR_MISSING, env.hf_hub_cache);
    assert_fails("name:Q8_0", NULL, &env, SUMI_ERR_MISSING, "repository name (revision main)");
    scratch_text("hub/models--solo/refs/main", HASH);
    scratch_text("hub/models--solo/snapshots/" HASH "/m.gguf", "");
    assert_resolves("solo", NULL, &env, scratch_path("hub/models--solo/snapshots/" HASH "/m.gguf"));
    scratch_close();
}

static void a_snapshot_is_used_when_its_index_is_complete(void **state) {
    (void)state;
    scratch_open();
    struct hub_env env = cache_env();
    scratch_text(REPO "/refs/main", HASH);
    put_blob("config.json", "{}");
    assert_fails("org/name", NULL, &env, SUMI_ERR_MISSING, "*.safetensors or *.gguf");
    put_blob("model.safetensors.index.json",
             "{\"weight_map\":{\"a\":\"m-1.safetensors\",\"b\":\"m-2.safetensors\"}}");
    put_blob("m-1.safetensors", "one");
    put_blob("extra.gguf", "");
    assert_fails("org/name", NULL, &env, SUMI_ERR_MISSING, "m-2.safetensors is not there");
    scratch_link(SNAP "/m-2.safetensors", "../../blobs/nothing");
    assert_fails("org/name", NULL, &env, SUMI_ERR_MISSING, "m-2.safetensors is not there");
    scratch_text(REPO "/blobs/nothing", "three");
    assert_resolves("org/name", NULL, &env, scratch_path(SNAP)); /* wins over the .gguf */
    assert_resolves("org/name:extra", NULL, &env, scratch_path(SNAP "/extra.gguf"));
    scratch_close();
}

static void the_list_of_the_repository_is_believed(void **state) {
    (void)state;
    scratch_open();
    struct hub_env env = cache_env();
    scratch_text(REPO "/refs/main", HASH);
    put_blob("a.safetensors", "12345");
    assert_resolves("org/name", NULL, &env, scratch_path(SNAP));
    static const struct {
        const char *tree;
        sumi_status want;
        const char *part;
    } cases[] = {
        {"{\"format_version\":1,\"files\":{\"a.safetensors\":{\"size\":5}}}", SUMI_OK, ""},
        {"{\"format_version\":1,\"files\":{\"a.safetensors\":{\"size\":6}}}", SUMI_ERR_FORMAT,
         "a.safetensors: expected 6 bytes, found 5"},
        {"{\"format_version\":1,\"files\":{\"b.safetensors\":{}}}", SUMI_ERR_MISSING,
         "b.safetensors is not there"},
        {"{\"format_version\":1,\"files\":{\"model.safetensors.index.json\":{}}}", SUMI_ERR_MISSING,
         "model.safetensors.index.json is not there"},
        {"{\"format_version\":1,\"files\":{\"original/b.safetensors\":{}}}", SUMI_OK, ""},
        {"{\"format_version\":2,\"files\":{\"b.safetensors\":{}}}", SUMI_OK, ""},
        {"damaged", SUMI_OK, ""},
        {"[1]", SUMI_OK, ""},
        {"{\"format_version\":1,\"files\":[3]}", SUMI_OK, ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        scratch_text(REPO "/trees/" HASH ".json", cases[i].tree);
        if (cases[i].want == SUMI_OK) assert_resolves("org/name", NULL, &env, scratch_path(SNAP));
        else assert_fails("org/name", NULL, &env, cases[i].want, cases[i].part);
    }
    scratch_close();
}

static void numbered_files_without_an_index_are_counted(void **state) {
    (void)state;
    scratch_open();
    struct hub_env env = cache_env();
    scratch_text(REPO "/refs/main", HASH);
    put_blob("model-00001-of-00002.safetensors", "");
    assert_fails("org/name", NULL, &env, SUMI_ERR_MISSING, "model-00002-of-00002.safetensors");
    put_blob("model-00002-of-00002.safetensors", "");
    assert_resolves("org/name", NULL, &env, scratch_path(SNAP));
    scratch_close();
}

static void a_suffix_chooses_one_gguf_file(void **state) {
    (void)state;
    scratch_open();
    struct hub_env env = cache_env();
    scratch_text(REPO "/refs/main", HASH);
    put_blob("toy-Q8_0.gguf", "");
    assert_resolves("org/name", NULL, &env, scratch_path(SNAP "/toy-Q8_0.gguf"));
    put_blob("mmproj-toy-Q8_0.gguf", "");
    assert_resolves("org/name", NULL, &env, scratch_path(SNAP "/toy-Q8_0.gguf"));
    put_blob("toy-Q4_K_M.gguf", "");
    put_blob("toy-Q4_K_S.gguf", "");
    put_blob("BF16/toy-BF16-00001-of-00002.gguf", "");
    put_blob("BF16/toy-BF16-00002-of-00002.gguf", "");
    static const struct {
        const char *model, *want;
    } good[] = {{"org/name:Q8_0", SNAP "/toy-Q8_0.gguf"},
                {"org/name:q8_0", SNAP "/toy-Q8_0.gguf"},
                {"org/name:toy-Q4_K_S.gguf", SNAP "/toy-Q4_K_S.gguf"},
                {"org/name:Q4_K_M", SNAP "/toy-Q4_K_M.gguf"},
                {"org/name:k_m", SNAP "/toy-Q4_K_M.gguf"},
                {"org/name:BF16", SNAP "/BF16/toy-BF16-00001-of-00002.gguf"},
                {"org/name:mmproj-toy-Q8_0.gguf", SNAP "/mmproj-toy-Q8_0.gguf"}};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_resolves(good[i].model, NULL, &env, scratch_path(good[i].want));
    assert_fails("org/name", NULL, &env, SUMI_ERR_ARG,
                 "BF16/toy-BF16-00001-of-00002.gguf, toy-Q4_K_M.gguf, toy-Q4_K_S.gguf, "
                 "toy-Q8_0.gguf");
    assert_fails("org/name:Q4_K", NULL, &env, SUMI_ERR_ARG, "toy-Q4_K_M.gguf, toy-Q4_K_S.gguf");
    assert_fails("org/name:Q6_K", NULL, &env, SUMI_ERR_MISSING, "toy-Q8_0.gguf");
    assert_fails("org/name:../../x", NULL, &env, SUMI_ERR_MISSING, "\"../../x\"");
    put_blob("toy-Q8_0_XL.gguf", "");
    assert_resolves("org/name:Q8_0", NULL, &env, scratch_path(SNAP "/toy-Q8_0.gguf"));
    put_blob("Q6/toy-Q6_K-00001-of-00002.gguf", "");
    assert_fails("org/name:Q6_K", NULL, &env, SUMI_ERR_MISSING, "toy-Q6_K-00002-of-00002.gguf");
    scratch_close();
}

static void every_allocation_may_fail(void **state) {
    (void)state;
    scratch_open();
    struct hub_env env = cache_env();
    scratch_text(REPO "/refs/main", HASH);
    scratch_text(REPO "/trees/" HASH ".json", "{\"format_version\":1,\"files\":{}}");
    put_blob("toy-Q8_0.gguf", "");
    put_blob("model.safetensors.index.json", "{\"weight_map\":{\"a\":\"m.safetensors\"}}");
    put_blob("m.safetensors", "");
    static const char *const models[] = {"org/name", "org/name:Q8_0"};
    for (size_t k = 0; k < 2; k++) {
        long n = 1;
        for (;; n++) {
            char *got;
            sumi_error err = {0};
            mem_fail_at(n);
            sumi_status status = hub_resolve(&got, models[k], NULL, &env, &err);
            mem_fail_at(0);
            mem_free(got);
            if (status == SUMI_OK) break;
            if (status != SUMI_ERR_MEMORY) fail_msg("allocation %ld: %s", n, err.msg);
            assert_null(got);
        }
        assert_true(n > 10);
    }
    scratch_close();
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_existing_path_is_used_as_it_is),
        cmocka_unit_test(what_is_neither_path_nor_name_is_refused),
        cmocka_unit_test(the_cache_folder_is_the_first_that_is_set),
        cmocka_unit_test(tilde_and_variables_in_the_folder_are_expanded),
        cmocka_unit_test(a_revision_is_a_ref_or_a_hash),
        cmocka_unit_test(a_name_that_is_not_cached_is_missing_with_all_three_named),
        cmocka_unit_test(a_snapshot_is_used_when_its_index_is_complete),
        cmocka_unit_test(the_list_of_the_repository_is_believed),
        cmocka_unit_test(numbered_files_without_an_index_are_counted),
        cmocka_unit_test(a_suffix_chooses_one_gguf_file),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
