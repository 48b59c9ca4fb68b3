/* The inside of a dialect: what the framework (answer.c) calls and what it does by itself.
 *
 * The framework turns pieces into text and markers. A marker is found by token id where the
 * vocabulary has it as an added token, and by its spelling elsewhere, with proper prefixes held
 * back. A dialect is a state machine over those two events; it writes to a struct collect. Nothing
 * that a dialect does may depend on how the text was cut into on_text calls. */
#ifndef SUMI_CHAT_PARSE_H
#define SUMI_CHAT_PARSE_H

#include "chat/collect.h"

enum { MAX_MARKERS = 32 };

/* What a marker means for the count of reasoning tokens. */
enum marker_count {
    COUNT_NOTHING,
    COUNT_BEGINS,
    COUNT_ENDS,
    COUNT_MAY_END /* it ends reasoning, unless the dialect turns out to stay in it */
};

struct marker {
    const char *text; /* begins with '<' */
    bool as_text;     /* matched by spelling even where the vocabulary has a token for it */
    enum marker_count count;
};

struct dialect {
    const char *name, *alias;
    const struct marker *marker; /* [n_marker], at most MAX_MARKERS; indexes are the dialect's */
    int n_marker;
    size_t state_size;  /* bytes, zeroed before open */
    bool strip_content; /* with a call, the whole-response content is stripped at both ends */

    /* Keeps what it needs of the options. *enabled (bit per marker): the others are ordinary text.
     * close is called after a failed open too. */
    sumi_status (*open)(void *state, const struct tokenizer *t, const struct answer_options *o,
                        uint32_t *enabled, sumi_error *err);
    void (*close)(void *state);
    /* Markers whose spelling matters in this state (those found by id always count). */
    uint32_t (*expects)(const void *state);
    bool (*in_reasoning)(const void *state);
    /* Text, n > 0, that holds no expected marker. Returns how many bytes were used; less than n
     * means that the state has changed, and the rest is looked at again. */
    size_t (*on_text)(void *state, struct collect *out, const char *s, size_t n);
    void (*on_marker)(void *state, struct collect *out, int marker);
    void (*on_end)(void *state, struct collect *out, bool complete);
};

extern const struct dialect dialect_glm47;

#endif
