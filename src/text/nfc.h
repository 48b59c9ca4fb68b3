/* Unicode normalisation form C that remembers which bytes were trusted. */
#ifndef SUMI_TEXT_NFC_H
#define SUMI_TEXT_NFC_H

#include <stdint.h>

#include "base/buf.h"
#include "base/status.h"

/* Appends NFC(text[0..n)), text valid UTF-8, to `out`. With trusted [n], appends to `origin` one
 * byte per byte written: nonzero only if all bytes that it may come from were trusted. Linear in n
 * whatever the text. Errors: MEMORY; LIMIT over 256 MiB. */
sumi_status nfc_append(const char *text, size_t n, const uint8_t *trusted, struct buf *out,
                       struct buf *origin, sumi_error *err);

#endif
