/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of metrics that passed the check, translated for remote write. Byte 0 chooses the
 * settings and limits, the rest is the request. What is written is whole: labels are sorted and
 * there once, samples ascend, every request but one of a single series keeps its limit, and each
 * data point is in a request or counted as lost. */
#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exporters/prometheus_remote_write/remote_write_writer.h"
#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/mem.h"
#include "src/otlp/check.h"
#include "src/otlp/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { REQUEST_BYTES = 300 };

static struct slice first_text(struct slice message)
{
    struct wire_reader reader = wire_reader_of(message);
    struct wire_field field;
    struct slice text = {0};
    while (wire_read_field(&reader, &field)) {
        assert(field.number == 1 || field.number == 2);
        assert(field.type == WIRE_BYTES);
        if (field.number == 1)
            text = field.bytes;
    }
    assert(reader.failure == NULL);
    return text;
}

static int64_t sample_time(struct slice message)
{
    struct wire_reader reader = wire_reader_of(message);
    struct wire_field field;
    int64_t time_ms = 0;
    while (wire_read_field(&reader, &field)) {
        assert(field.number == 1 || field.number == 2);
        if (field.number == 2)
            time_ms = (int64_t)field.number_value;
    }
    assert(reader.failure == NULL);
    return time_ms;
}

static void check_fields(struct slice message)
{
    struct wire_reader reader = wire_reader_of(message);
    struct wire_field field;
    while (wire_read_field(&reader, &field))
        assert(field.number <= 15);
    assert(reader.failure == NULL);
}

static void check_series(struct slice series)
{
    struct wire_reader reader = wire_reader_of(series);
    struct wire_field field;
    struct slice name = {0};
    int64_t last_ms = INT64_MIN;
    bool has_name = false;
    size_t values = 0;
    while (wire_read_field(&reader, &field)) {
        assert(field.number >= 1 && field.number <= 4);
        if (field.number == 1) {
            struct slice next = first_text(field.bytes);
            assert(next.size > 0);
            assert(slice_compare(name, next) < 0);
            name = next;
            has_name |= slice_equal_text(name, "__name__");
        } else if (field.number == 2) {
            int64_t time_ms = sample_time(field.bytes);
            assert(time_ms >= last_ms);
            last_ms = time_ms;
        } else {
            check_fields(field.bytes);
        }
        values += field.number == 2 || field.number == 4;
    }
    assert(reader.failure == NULL);
    assert(has_name && values > 0);
}

/* ---- version 2.0 ---- */

enum { SYMBOLS_MAX = 1 << 16 };

static struct {
    struct slice list[SYMBOLS_MAX];
    size_t count;
} table;

static void check_refs(struct slice refs, bool are_labels)
{
    struct wire_reader reader = wire_reader_of(refs);
    struct slice name = {0};
    bool has_name = false;
    size_t count = 0;
    for (; reader.at < reader.end; count++) {
        uint64_t place = wire_read_varint(&reader, WIRE_SHORT_VARINT_BYTES_MAX);
        assert(reader.failure == NULL && place < table.count);
        struct slice text = table.list[place];
        if (count % 2 == 0 && are_labels) {
            assert(text.size > 0 && (count == 0 || slice_compare(name, text) < 0));
            has_name |= slice_equal_text(text, "__name__");
        } else if (count % 2 == 0) {
            assert(count == 0 || slice_compare(name, text) <= 0);
        }
        name = count % 2 == 0 ? text : name;
    }
    assert(count % 2 == 0 && (has_name || !are_labels));
}

static void check_exemplar(struct slice message)
{
    struct wire_reader reader = wire_reader_of(message);
    struct wire_field field;
    while (wire_read_field(&reader, &field)) {
        assert(field.number >= 1 && field.number <= 3);
        if (field.number == 1)
            check_refs(field.bytes, false);
    }
    assert(reader.failure == NULL);
}

static void check_metadata(struct slice message)
{
    struct wire_reader reader = wire_reader_of(message);
    struct wire_field field;
    while (wire_read_field(&reader, &field))
        assert((field.number == 1 && field.number_value <= 7) ||
               ((field.number == 3 || field.number == 4) && field.number_value < table.count));
    assert(reader.failure == NULL);
}

static void check_series_v2(struct slice series)
{
    struct wire_reader reader = wire_reader_of(series);
    struct wire_field field;
    int64_t last_ms = INT64_MIN;
    size_t values = 0;
    bool has_labels = false;
    while (wire_read_field(&reader, &field)) {
        assert(field.number >= 1 && field.number <= 5);
        if (field.number == 1) {
            check_refs(field.bytes, true);
            has_labels = true;
        } else if (field.number == 2) {
            int64_t time_ms = sample_time(field.bytes);
            assert(time_ms >= last_ms);
            last_ms = time_ms;
        } else if (field.number == 3) {
            check_fields(field.bytes);
        } else if (field.number == 4) {
            check_exemplar(field.bytes);
        } else {
            check_metadata(field.bytes);
        }
        values += field.number == 2 || field.number == 3;
    }
    assert(reader.failure == NULL);
    assert(has_labels && values > 0);
}

/* Symbols come first, the empty one before all others. */
static void check_request_v2(struct slice request)
{
    struct wire_reader reader = wire_reader_of(request);
    struct wire_field field;
    size_t bytes = 0;
    size_t messages = 0;
    table.count = 0;
    while (wire_read_field(&reader, &field)) {
        assert(field.number == 4 || field.number == 5);
        if (field.number == 5) {
            check_series_v2(field.bytes);
            messages++;
        } else {
            assert(messages == 0 && table.count < SYMBOLS_MAX);
            assert((field.bytes.size == 0) == (table.count == 0));
            table.list[table.count++] = field.bytes;
        }
        bytes += field.bytes.size;
    }
    assert(reader.failure == NULL);
    assert(messages == 1 || (messages > 1 && bytes < REQUEST_BYTES));
}

static size_t check_request(struct slice request)
{
    struct wire_reader reader = wire_reader_of(request);
    struct wire_field field;
    size_t bytes = 0;
    size_t messages = 0;
    while (wire_read_field(&reader, &field)) {
        assert(field.number == 1 || field.number == 3);
        if (field.number == 1)
            check_series(field.bytes);
        else
            check_fields(field.bytes);
        bytes += field.bytes.size;
        messages++;
    }
    assert(reader.failure == NULL);
    assert(messages == 1 || bytes < REQUEST_BYTES);
    return messages;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct otlp_figures figures;
    struct remote_write_losses losses;
    struct remote_write_set set;
    struct budget budget;
    struct buffer *body;
    const char *reason;
    uint64_t points;
    if (size == 0)
        return 0;
    uint8_t choice = data[0];
    uint8_t *copy = mem_copy(data + 1, size - 1);
    struct slice request = slice_of(copy, size - 1);
    if (!otlp_check(METRICS, request, &figures, &reason) || figures.has_former_scopes) {
        mem_free(copy);
        return 0;
    }
    bool is_v2 = (choice & 64) != 0;
    bool has_utf8 = is_v2 && (choice & 128) != 0;
    const struct remote_write_settings settings = {
        .naming = {.name_space = (choice & 1) != 0 ? "a.b" : "",
                   .has_suffixes = (choice & 2) != 0,
                   .has_utf8 = has_utf8},
        .labels = {.has_scope = true,
                   .has_resource = (choice & 4) != 0,
                   .has_utf8 = has_utf8,
                   .is_v2 = is_v2},
        .has_target_info = true,
        .has_metadata = (choice & 8) != 0,
        .is_v2 = is_v2,
    };
    budget_init(&budget, (choice & 16) != 0 ? 300000 : UINT64_MAX);
    remote_write_set_init(&set, (choice & 32) != 0 ? 5000 : 64 << 20, &budget);
    enum remote_write_result result = remote_write_translate(request, &settings, &set, &losses);
    assert(result != REMOTE_WRITE_NO_MEMORY || (choice & 16) != 0);
    if (result == REMOTE_WRITE_TRANSLATED) {
        struct remote_write_cursor cursor = remote_write_cursor_of(&set);
        uint64_t sent = 0;
        enum remote_write_next next;
        while ((next = remote_write_cursor_next(&cursor, NULL, REQUEST_BYTES, &body, &points)) ==
               REMOTE_WRITE_REQUEST) {
            if (is_v2)
                check_request_v2(buffer_slice(body));
            else
                check_request(buffer_slice(body));
            buffer_unref(body);
            sent += points;
        }
        assert(next == REMOTE_WRITE_NO_MORE || (next == REMOTE_WRITE_TOO_MUCH && is_v2));
        assert(next == REMOTE_WRITE_TOO_MUCH || sent + losses.total == figures.items);
    }
    remote_write_set_fini(&set);
    assert(budget_used(&budget) == 0);
    budget_fini(&budget);
    mem_free(copy);
    return 0;
}
