/* Choices with rows flow in, a batch flows out. Knows nothing of who runs it. */
#include "engine/step.h"

#include "base/mem.h"
#include "base/size.h"

sumi_status step_open(struct step *s, int32_t max_rows, int32_t max_seqs, int32_t max_logits,
                      int32_t vocab, sumi_error *err) {
    size_t rows = (size_t)max_rows, seqs = (size_t)max_seqs, n_logit = 0, bytes = 0;
    *s = (struct step){0};
    if (!size_mul((size_t)max_logits, (size_t)vocab, &n_logit) ||
        !size_mul(n_logit, sizeof(float), &bytes))
        return NO_MEMORY(err, SIZE_MAX);
    s->choice = mem_zero(seqs, sizeof *s->choice);
    s->first_logit = mem_zero(seqs, sizeof *s->first_logit);
    s->seq = mem_zero(seqs, sizeof *s->seq);
    s->token = mem_zero(rows, sizeof *s->token);
    s->pos = mem_zero(rows, sizeof *s->pos);
    s->seq_of = mem_zero(rows, sizeof *s->seq_of);
    s->logit_row = mem_zero((size_t)max_logits, sizeof *s->logit_row);
    s->logits = mem_alloc(bytes);
    if (s->choice && s->first_logit && s->seq && s->token && s->pos && s->seq_of && s->logit_row &&
        s->logits)
        return SUMI_OK;
    step_close(s);
    return NO_MEMORY(err, bytes);
}

void step_close(struct step *s) {
    mem_free(s->choice);
    mem_free(s->first_logit);
    mem_free(s->seq);
    mem_free(s->token);
    mem_free(s->pos);
    mem_free(s->seq_of);
    mem_free(s->logit_row);
    mem_free(s->logits);
    *s = (struct step){0};
}

void step_build(struct step *s, struct choice *const *running, int32_t n_running) {
    int32_t n_row = 0, n_seq = 0, n_logit = 0;
    for (int32_t i = 0; i < n_running; i++) {
        struct choice *c = running[i];
        if (c->n_row == 0) continue;
        for (int32_t r = 0; r < c->n_row; r++, n_row++) {
            s->pos[n_row] = c->n_computed + r;
            s->token[n_row] = choice_token(c, c->n_computed + r);
            s->seq_of[n_row] = n_seq;
        }
        s->first_logit[n_seq] = n_logit;
        for (int32_t j = c->n_logit; j > 0; j--) s->logit_row[n_logit++] = n_row - j;
        s->seq[n_seq] = (struct seq_pages){c->pages.slab, c->pages.stride};
        s->choice[n_seq++] = c;
    }
    s->batch = (struct batch){
        .n_row = n_row,
        .token = s->token,
        .pos = s->pos,
        .seq_of = s->seq_of,
        .n_seq = n_seq,
        .seq = s->seq,
        .n_logit = n_logit,
        .logit_row = s->logit_row,
    };
}
