/* SPDX-License-Identifier: Apache-2.0 */
/* Responses of HTTP/1.1 back-ends. The first byte says into pieces of which size the rest is cut:
 * the result must not depend on it, and nothing may be kept beyond its bound. */
#include "src/base/limits.h"
#include "src/net/client/http1_response_parser.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t feed_in_pieces(struct http1_response *response, const uint8_t *data, size_t size,
                             size_t piece)
{
    size_t taken = 0;
    http1_response_init(response, NULL);
    while (taken < size) {
        size_t offered = size - taken < piece ? size - taken : piece;
        size_t used = http1_response_feed(response, data + taken, offered);
        assert(used <= offered);
        taken += used;
        if (used < offered)
            break;
    }
    return taken;
}

static void check_bounds(const struct http1_response *response)
{
    assert(response->status == 0 || (response->status >= 200 && response->status <= 999));
    assert(response->body.size <= RESPONSE_BYTES_MAX);
    assert(response->line_size <= RESPONSE_HEADER_BYTES_MAX);
    assert(memchr(response->retry_after, 0, sizeof(response->retry_after)) != NULL);
    assert(memchr(response->content_type, 0, sizeof(response->content_type)) != NULL);
    assert((response->state == RESPONSE_FAILED) == (response->failure != NULL));
    assert(response->location == NULL || strlen(response->location) <= RESPONSE_HEADER_BYTES_MAX);
    assert(!response->keeps_alive || response->state == RESPONSE_DONE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct http1_response whole;
    struct http1_response cut;
    if (size == 0)
        return 0;
    size_t taken = feed_in_pieces(&whole, data + 1, size - 1, size);
    size_t taken_cut = feed_in_pieces(&cut, data + 1, size - 1, (size_t)data[0] + 1);
    if (whole.state != RESPONSE_FAILED)
        assert(taken == taken_cut);
    http1_response_end(&whole);
    http1_response_end(&cut);
    check_bounds(&whole);
    check_bounds(&cut);
    assert(whole.state == cut.state);
    assert(whole.status == cut.status);
    assert(whole.keeps_alive == cut.keeps_alive);
    assert((whole.location == NULL) == (cut.location == NULL));
    assert(whole.location == NULL || strcmp(whole.location, cut.location) == 0);
    assert(slice_equal(http1_response_body(&whole), http1_response_body(&cut)));
    http1_response_reset(&whole);
    assert(whole.state == RESPONSE_STATUS_LINE);
    http1_response_fini(&whole);
    http1_response_fini(&cut);
    return 0;
}
