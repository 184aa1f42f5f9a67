/* SPDX-License-Identifier: Apache-2.0 */
/* OTLP/JSON on anything: byte 0 is the message, the rest the JSON. What is taken passes the wire
 * walker but for its limits, and says the same after it was written and read again. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "src/base/buffer.h"
#include "src/base/mem.h"
#include "src/otlp/check.h"
#include "src/otlp/json/json_read.h"
#include "src/otlp/json/json_write.h"
#include "src/otlp/otlp_limits.h"
#include "src/otlp/schema.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct buffer *read_again(const struct otlp_message *message, struct buffer *text)
{
    struct buffer *encoded;
    char reason[JSON_REASON_BYTES_MAX];
    enum json_result result = json_read(message, buffer_slice(text), NULL, &encoded, reason);
    assert(result == JSON_READ);
    (void)result;
    buffer_unref(text);
    return encoded;
}

static void check_written(const struct otlp_message *message, struct slice encoded)
{
    struct buffer *first = json_write(message, encoded, NULL);
    assert(first->size <= JSON_WRITE_RATIO_MAX * encoded.size + 256);
    struct buffer *text = buffer_ref(first);
    struct buffer *again = read_again(message, first);
    struct buffer *second = json_write(message, buffer_slice(again), NULL);
    assert(slice_equal(buffer_slice(text), buffer_slice(second)));
    buffer_unref(text);
    buffer_unref(again);
    buffer_unref(second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buffer *encoded;
    char reason[JSON_REASON_BYTES_MAX] = "";
    if (size == 0)
        return 0;
    enum signal_kind signal = (enum signal_kind)(data[0] % SIGNAL_KINDS);
    bool is_response = (data[0] & 8) != 0;
    const struct otlp_message *message = is_response ? otlp_response(signal) : otlp_request(signal);
    /* An allocation of its own: the sanitizer sees every byte read beyond it. */
    uint8_t *text = mem_copy(data + 1, size - 1);
    enum json_result result = json_read(message, slice_of(text, size - 1), NULL, &encoded, reason);
    mem_free(text);
    if (result != JSON_READ) {
        assert(result == JSON_MALFORMED);
        assert(strncmp(reason, "JSON at byte ", 13) == 0);
        return 0;
    }
    struct otlp_figures figures;
    const char *why;
    bool is_sound = is_response || otlp_check(signal, buffer_slice(encoded), &figures, &why);
    assert(is_sound || strstr(why, "more than") != NULL);
    if (is_sound)
        check_written(message, buffer_slice(encoded));
    buffer_unref(encoded);
    return 0;
}
