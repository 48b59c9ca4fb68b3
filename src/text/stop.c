/* In: strings, then bytes. Out: where a string ends, and how much of the end may begin one. */
#include "text/stop.h"

#include "base/mem.h"

static int32_t next_state(const struct stop_set *s, int32_t at, unsigned char byte) {
    int32_t next;
    while (!(next = trie_step(&s->trie, at, byte)) && at) at = s->state[at].fail;
    return next;
}

/* Fills the states in order of depth: a failure link leads to a state of less depth. */
static void link_states(struct stop_set *s, int32_t *queue) {
    const struct trie_node *node = s->trie.node;
    size_t head = 0, tail = 0;
    s->state[0] = (struct stop_state){.match = -1};
    queue[tail++] = 0;
    while (head < tail) {
        int32_t at = queue[head++];
        for (int32_t child = node[at].child; child; child = node[child].sibling) {
            int32_t fail = at ? next_state(s, s->state[at].fail, node[child].byte) : 0;
            struct stop_state *c = &s->state[child];
            *c = (struct stop_state){fail, node[child].value, s->state[at].depth + 1, 0};
            int32_t shorter = s->state[fail].match;
            if (shorter >= 0 && (c->match < 0 || shorter < c->match)) c->match = shorter;
            c->hold = node[child].child ? c->depth : s->state[fail].hold;
            queue[tail++] = child;
        }
    }
}

sumi_status stop_open(struct stop_set *s, const char *const *text, const size_t *len, size_t n,
                      sumi_error *err) {
    *s = (struct stop_set){0};
    if (n == 0) return SUMI_OK;
    int32_t *queue = NULL;
    sumi_status status = SUMI_OK;
    for (size_t i = 0; i < n; i++) TRY_OUT(trie_add(&s->trie, text[i], len[i], (int32_t)i, err));
    s->state = mem_alloc(s->trie.n * sizeof *s->state);
    queue = mem_alloc(s->trie.n * sizeof *queue);
    if (!s->state || !queue) TRY_OUT(NO_MEMORY(err, s->trie.n * sizeof *s->state));
    link_states(s, queue);
out:
    mem_free(queue);
    if (status != SUMI_OK) stop_close(s);
    return status;
}

void stop_close(struct stop_set *s) {
    trie_reset(&s->trie);
    mem_free(s->state);
    s->state = NULL;
}

int32_t stop_step(const struct stop_set *s, int32_t *state, unsigned char byte) {
    if (!s->state) return -1;
    *state = next_state(s, *state, byte);
    return s->state[*state].match;
}

size_t stop_hold(const struct stop_set *s, int32_t state) {
    return s->state ? (size_t)s->state[state].hold : 0;
}
