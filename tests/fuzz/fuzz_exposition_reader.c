/* SPDX-License-Identifier: Apache-2.0 */
/* The first byte chooses the format, the rest is the body. Whatever it is, names and values lie in
 * it or are unescaped, values are UTF-8, lines do not go back, and a failure has a text. */
#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "src/base/utf8.h"
#include "src/prometheus/exposition_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_labels(const struct prometheus_label *labels, size_t count)
{
    assert(count <= EXPOSITION_READER_LABELS_MAX);
    for (size_t i = 0; i < count; i++) {
        utf8_is_valid(labels[i].name); /* reads all of it */
        assert(utf8_is_valid(labels[i].value));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct exposition_reader reader;
    struct exposition_entry entry;
    size_t entries = 0;
    size_t line = 1;
    if (size == 0)
        return 0;
    struct slice body = slice_of(data + 1, size - 1);
    exposition_reader_init(
        &reader, body, data[0] == 'O' ? EXPOSITION_PROTOCOL_OPENMETRICS : EXPOSITION_PROTOCOL_TEXT,
        NULL);
    while (exposition_reader_next(&reader, &entry)) {
        entries++;
        assert(entry.line >= line);
        line = entry.line;
        utf8_is_valid(entry.name);
        if (entry.kind == EXPOSITION_ENTRY_HELP)
            assert(utf8_is_valid(entry.text));
        if (entry.kind != EXPOSITION_ENTRY_SAMPLE)
            continue;
        assert(entry.series.data >= body.data && entry.series.size <= body.size);
        check_labels(entry.labels, entry.labels_count);
        if (entry.has_exemplar)
            check_labels(entry.exemplar.labels, entry.exemplar.labels_count);
    }
    assert(entries <= size);
    assert(reader.has_failed == (reader.failure[0] != '\0'));
    assert(!reader.has_failed || reader.failure_line >= line);
    assert(!exposition_reader_next(&reader, &entry));
    exposition_reader_fini(&reader);
    return 0;
}
