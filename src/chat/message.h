/* Chat messages as clients send them, turned into what templates expect. */
#ifndef SUMI_CHAT_MESSAGE_H
#define SUMI_CHAT_MESSAGE_H

#include "base/json.h"

struct message_form {
    bool parts;        /* content is a list of {"type":"text","text":...}; else a string */
    bool no_developer; /* the role developer becomes system */
};

/* Makes a new array (json_object_put) of new messages:
 *   role          kept; names that the API knows are trusted text
 *   content       a string, or a list of parts when form->parts. Text parts (text, input_text,
 *                 output_text, refusal, thinking, bare strings) keep their order, joined by
 * newlines into a string; a text or refusal part of null is skipped. null is empty content. Results
 * of tools are always strings system        a part that begins with x-anthropic-billing-header
 * loses its first line: it differs in every request and would ruin prefix reuse tool_calls
 * arguments become an object: a JSON string is parsed; "" and null are {} reasoning     or
 * reasoning_content: an assistant's message has it under both names other members as they are; a
 * null member is left out SUMI_ERR_ARG, param "messages", for everything that the API refuses; the
 * message says where. */
sumi_status messages_prepare(struct json_object *messages, const struct message_form *form,
                             struct json_object **out, sumi_error *err);

#endif
