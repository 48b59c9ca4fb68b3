/* A byte tokenizer for tests of the chat room: ids 0 to 255 are the bytes, added tokens follow. */
#ifndef SUMI_TESTS_CHAT_TOKENS_H
#define SUMI_TESTS_CHAT_TOKENS_H

#include <string.h>

#include "base/utf8.h"
#include "text/tokenizer.h"

enum { FIRST_ADDED = 256 };

/* Texts that begin with '!' are special added tokens (the '!' is not part of them). */
static inline struct tokenizer *byte_tokenizer(const char *const *added, size_t n_added) {
    static char spelling[256][3];
    struct token_text vocab[256 + 64];
    struct added_token list[64];
    uint32_t next = 256;
    for (int b = 0; b < 256; b++) {
        bool plain = (b > 32 && b < 127) || (b > 160 && b != 173);
        vocab[b].text = spelling[b];
        vocab[b].len = (size_t)utf8_encode(plain ? (uint32_t)b : next++, spelling[b]);
    }
    for (size_t i = 0; i < n_added; i++) {
        bool special = added[i][0] == '!';
        const char *text = added[i] + special;
        list[i] = (struct added_token){
            .id = FIRST_ADDED + (int32_t)i, .text = text, .len = strlen(text), .special = special};
        vocab[256 + i] = (struct token_text){0};
    }
    static const struct pretok_step bytes = {.kind = PRETOK_BYTE_LEVEL};
    struct tokenizer_lists lists = {.vocab = vocab,
                                    .n_vocab = 256 + n_added,
                                    .added = list,
                                    .n_added = n_added,
                                    .steps = &bytes,
                                    .n_step = 1};
    struct tokenizer *t = NULL;
    sumi_error err = {0};
    return tokenizer_open_lists(&t, &lists, &err) == SUMI_OK ? t : NULL;
}

#define GLM_ROLES "!<|system|>", "!<|user|>", "!<|assistant|>", "!<|observation|>", "!<|endoftext|>"
#define GLM_TAGS                                                                     \
    "<think>", "</think>", "<tool_call>", "</tool_call>", "<arg_key>", "</arg_key>", \
        "<arg_value>", "</arg_value>"

#endif
