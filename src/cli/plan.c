/* sumi plan: the memory plan of a model with these options, from its header alone. */
#include <stdio.h>

#include "base/log.h"
#include "cli/cli.h"
#include "cli/setup.h"

static sumi_status plan(struct setup *s, const struct options *o, struct buf *out,
                        sumi_error *err) {
    struct checkpoint *c = NULL;
    TRY(setup_load(s, o, WEIGHTS_NONE, err));
    if (s->loaded.checkpoint) s->weight_bytes = (int64_t)checkpoint_bytes(s->loaded.checkpoint);
    else if (s->path && !s->replay) {
        TRY(checkpoint_open(&c, s->path, err));
        s->weight_bytes = (int64_t)checkpoint_bytes(c);
        checkpoint_close(c);
    }
    TRY(setup_plan(s, err));
    buf_printf(out, "%s (%s)\n", s->name, s->loaded.model->family);
    memory_describe(&s->plan, s->loaded.model, out);
    return SUMI_OK;
}

int verb_plan(const struct options *o) {
    struct setup s = {0};
    struct buf out = {0};
    sumi_error err = {0};
    cli_log_setup(o);
    sumi_status status = plan(&s, o, &out, &err);
    setup_close(&s);
    if (status != SUMI_OK) {
        buf_reset(&out);
        return cli_fail(&err);
    }
    return cli_print(&out) ? EXIT_OK : EXIT_FAILED;
}
