/* SPDX-License-Identifier: Apache-2.0 */
/* gzip_inflate over anything: the limits hold, nothing leaks, and what it accepts survives a round
 * trip through gzip_deflate. */
#include "src/codec/gzip.h"

#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/limits.h"
#include "src/core/batch.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

enum { BODY_BYTES_MAX = 256 * 1024 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_round_trip(struct gzip *gzip, struct budget *budget, const struct buffer *plain)
{
    struct buffer *packed = NULL;
    struct buffer *again = NULL;
    struct batch_part part = {.bytes = buffer_slice(plain)};
    enum gzip_result result = gzip_deflate(gzip, budget, &part, 1, (int)(plain->size % 4), &packed);
    assert(result == GZIP_OK);
    result = gzip_inflate(gzip, budget, packed->data, packed->size, BODY_BYTES_MAX, &again);
    assert(result == GZIP_OK);
    assert(slice_equal(buffer_slice(plain), buffer_slice(again)));
    buffer_unref(packed);
    buffer_unref(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct gzip *gzip; /* kept, as in the daemon: a bad body may not spoil the next */
    struct buffer *plain = NULL;
    struct budget budget;
    if (gzip == NULL)
        gzip = gzip_create();
    budget_init(&budget, 4 * MIB);
    if (gzip_inflate(gzip, &budget, data, size, BODY_BYTES_MAX, &plain) == GZIP_OK) {
        assert(plain->size <= BODY_BYTES_MAX);
        check_round_trip(gzip, &budget, plain);
        buffer_unref(plain);
    }
    assert(budget_used(&budget) == 0);
    budget_fini(&budget);
    return 0;
}
