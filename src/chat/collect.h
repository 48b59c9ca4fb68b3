/* What an answer consists of so far: the deltas of the current call, and everything collected since
 * the beginning. The white-space rules that all dialects share live here:
 *   - white space at the end of reasoning is held, and dropped when reasoning ends
 *   - content that is only white space is held until text follows, and dropped when reasoning or a
 *     call follows, or the end after a call */
#ifndef SUMI_CHAT_COLLECT_H
#define SUMI_CHAT_COLLECT_H

#include "base/buf.h"
#include "chat/dialect.h"

struct collected_call {
    struct buf name, arguments;
};

/* A delta whose text is still an offset: the buffers move while they grow. */
struct collect_span {
    enum delta_kind kind;
    int32_t call;
    size_t at, n;
};

struct collect {
    bool drop_calls, single_call; /* as in struct answer_options */
    struct buf reasoning, content, held;
    bool content_begun; /* the current stretch of content holds more than white space */
    struct collected_call *call;
    size_t n_call, call_cap;
    bool call_shown;  /* the call in progress is returned, not dropped */
    size_t n_implied; /* bytes of content that the whole-response form counts as reasoning */
    struct collect_span *span; /* [n_span] what collect_deltas will give out */
    size_t n_span, span_cap;
    struct delta *delta;
    bool failed;      /* memory ran out */
    struct buf whole; /* reasoning of the whole-response form when n_implied > 0 */
    struct answer_call *whole_call;
};

void collect_reset(struct collect *c);

void collect_reasoning(struct collect *c, const char *s, size_t n);
void collect_end_reasoning(struct collect *c);
void collect_content(struct collect *c, const char *s, size_t n);
/* A stretch of content ends because reasoning or a call begins. */
void collect_end_content(struct collect *c);
/* An end of reasoning without a beginning: in the whole-response form all content so far is
 * reasoning. */
void collect_implied_reasoning(struct collect *c);
/* A call whose name is complete. Arguments of a call that is not returned go nowhere. */
void collect_call(struct collect *c, const char *name, size_t n);
void collect_arguments(struct collect *c, const char *s, size_t n);
/* The end of the answer inside content. (Inside reasoning it is collect_end_reasoning.) */
void collect_end(struct collect *c);

/* The deltas since collect_clear_deltas; adjacent ones of one kind and call are one. Borrowed until
 * anything else is collected. */
sumi_status collect_deltas(struct collect *c, const struct delta **out, size_t *n, sumi_error *err);
void collect_clear_deltas(struct collect *c);

sumi_status collect_message(struct collect *c, bool strip_content, struct answer_message *out,
                            sumi_error *err);

/* White space as the wire formats know it: blank, tab, LF, VT, FF, CR. */
bool chat_is_space(char c);
bool chat_is_blank(const char *s, size_t n);
/* Narrows s[0..n) to what is between white space. */
void chat_strip(const char **s, size_t *n);

#endif
