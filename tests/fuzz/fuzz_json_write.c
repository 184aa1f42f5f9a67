/* SPDX-License-Identifier: Apache-2.0 */
/* Protobuf as OTLP/JSON: byte 0 is the signal, the rest a request. What passes the wire walker can
 * be written, is UTF-8 within the stated size, and says the same when it is read and written again.
 */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/buffer.h"
#include "src/base/mem.h"
#include "src/base/utf8.h"
#include "src/otlp/check.h"
#include "src/otlp/json/json_read.h"
#include "src/otlp/json/json_write.h"
#include "src/otlp/otlp_limits.h"
#include "src/otlp/schema.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_utf8(struct slice text)
{
    while (text.size > 0) {
        size_t size = utf8_size(text);
        assert(size > 0);
        assert(size > 1 || text.data[0] >= ' ');
        text = slice_of(text.data + size, text.size - size);
    }
}

/* Ids of profiles may have any size in protobuf; in JSON they may not. */
static void check_again(const struct otlp_message *message, const struct buffer *text)
{
    struct buffer *encoded;
    char reason[JSON_REASON_BYTES_MAX];
    enum json_result result = json_read(message, buffer_slice(text), NULL, &encoded, reason);
    if (result != JSON_READ) {
        assert(strstr(reason, "expected an id of") != NULL);
        return;
    }
    struct buffer *again = json_write(message, buffer_slice(encoded), NULL);
    assert(slice_equal(buffer_slice(text), buffer_slice(again)));
    buffer_unref(encoded);
    buffer_unref(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct otlp_figures figures;
    const char *reason;
    if (size == 0)
        return 0;
    enum signal_kind signal = (enum signal_kind)(data[0] % SIGNAL_KINDS);
    const struct otlp_message *message = otlp_request(signal);
    uint8_t *body = mem_copy(data + 1, size - 1);
    struct slice bytes = slice_of(body, size - 1);
    if (otlp_check(signal, bytes, &figures, &reason)) {
        struct buffer *text = json_write(message, bytes, NULL);
        assert(text->size <= JSON_WRITE_RATIO_MAX * bytes.size + 256);
        check_utf8(buffer_slice(text));
        check_again(message, text);
        buffer_unref(text);
    }
    mem_free(body);
    return 0;
}
