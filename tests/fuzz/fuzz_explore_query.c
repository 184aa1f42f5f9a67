/* SPDX-License-Identifier: Apache-2.0 */
/* Any query of a URL, and the filter that it becomes. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "src/explore/explore_query.h"
#include "src/explore/trace_query.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct explore_query query;
    const char *reason = NULL;
    char text[FILTER_REASON_BYTES_MAX];
    struct trace_filter filter;
    if (!explore_query_parse(&query, slice_of(data, size), &reason)) {
        assert(reason != NULL);
        return 0;
    }
    assert(query.size <= size && query.count <= EXPLORE_PAIRS_MAX);
    text[0] = '\0';
    if (!trace_filter_read(&filter, &query, text))
        assert(text[0] != '\0');
    uint64_t number;
    uint8_t id[16];
    for (size_t i = 0; i < query.count; i++) {
        explore_read_number(query.pairs[i].value, &number);
        explore_read_duration(query.pairs[i].value, &number);
        explore_read_hex(query.pairs[i].value, id, sizeof(id));
    }
    return 0;
}
