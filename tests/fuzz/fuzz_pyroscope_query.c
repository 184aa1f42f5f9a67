/* SPDX-License-Identifier: Apache-2.0 */
/* Labels as a query of /ingest, read again as the pyroscope receiver reads it: whatever they hold,
 * the query is one, the application's name is said, and no label's value spills into another. The
 * input is strings, each with a zero byte behind it: service name, then names and values in turn.
 */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "exporters/pyroscope/pyroscope_query.h"
#include "src/base/buffer.h"
#include "src/base/error.h"
#include "src/profiles/pprof/entry_table.h"
#include "src/profiles/pprof/otlp_text.h"
#include "src/profiles/pyroscope/ingest_query.h"

enum { BYTES_MAX = 4096, LABELS_MAX = 30 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct slice next_text(struct slice *input)
{
    const uint8_t *end = input->size > 0 ? memchr(input->data, 0, input->size) : NULL;
    struct slice text =
        slice_of(input->data, end != NULL ? (size_t)(end - input->data) : input->size);
    size_t used = text.size + (end != NULL);
    *input = slice_of(input->data + used, input->size - used);
    return text;
}

static void add_label(struct byte_run *labels, struct slice name, struct slice value)
{
    struct byte_run pair = {.size = 0};
    bool is_added = byte_run_append_message(&pair, NULL, 1, name) &&
                    byte_run_append_message(&pair, NULL, 2, value) &&
                    byte_run_append_message(labels, NULL, 1, byte_run_slice(&pair));
    assert(is_added);
    scratch_fini(&pair.scratch, NULL);
}

static void check_target(const struct buffer *target, size_t labels)
{
    struct ingest_query query;
    struct error error;
    const char *text = (const char *)target->data;
    assert(strlen(text) == target->size);
    assert(strncmp(text, "/ingest?name=", 13) == 0);
    for (size_t i = 0; i < target->size; i++)
        assert(text[i] > ' ' && text[i] < 0x7f);
    bool is_read = ingest_query_parse(&query, slice_of_text(text + strlen("/ingest?")), 1, &error);
    assert(is_read);
    assert(query.name.app.size > 0);
    assert(query.name.labels.count <= labels + 1);
    assert(slice_equal_text(query.values[INGEST_SPY_NAME], "a&b=c,}"));
    ingest_query_fini(&query);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct slice input = slice_of(data, size);
    struct pyroscope_query query = {.path = "/ingest"};
    struct byte_run labels = {.size = 0};
    uint64_t changed = 0;
    size_t count = 0;
    struct slice service = next_text(&input);
    if (size > BYTES_MAX || otlp_text_valid(slice_of(data, size)) < size || service.size == 0)
        return 0;
    add_label(&labels, slice_of_text("service_name"), service);
    while (input.size > 0 && count < LABELS_MAX) {
        struct slice name = next_text(&input);
        struct slice value = next_text(&input);
        if (name.size == 0 || slice_equal_text(name, "service_name"))
            continue;
        add_label(&labels, name, value);
        count++;
    }
    query.labels = byte_run_slice(&labels);
    pyroscope_query_add(&query, "spyName", slice_of_text("a&b=c,}"));
    struct buffer *target = pyroscope_query_target(&query, NULL, &changed);
    assert(target != NULL);
    check_target(target, count);
    buffer_unref(target);
    scratch_fini(&labels.scratch, NULL);
    return 0;
}
