/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as the query of an upload: what is taken keeps the rules of names. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/profiles/pyroscope/ingest_query.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_name(const struct ingest_name *name)
{
    assert(name->labels.count <= SERIES_LABELS_MAX);
    for (size_t i = 0; i < name->labels.count; i++) {
        struct slice key = name->labels.labels[i].name;
        assert(key.size > 0);
        assert(memchr(key.data, ' ', key.size) == NULL);
        assert(memchr(key.data, '{', key.size) == NULL);
        for (size_t k = 0; k < i; k++)
            assert(!slice_equal(name->labels.labels[k].name, key));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ingest_query query;
    struct error error = {.text = ""};
    uint64_t now_ns = (uint64_t)1790000000 * NS_PER_S;
    if (ingest_query_parse(&query, slice_of(data, size), now_ns, &error)) {
        check_name(&query.name);
        assert(query.from_ns <= INT64_MAX && query.until_ns <= INT64_MAX);
        ingest_query_fini(&query);
    } else {
        assert(error.text[0] != '\0');
    }
    return 0;
}
