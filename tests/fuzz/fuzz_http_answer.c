/* SPDX-License-Identifier: Apache-2.0 */
/* Answers of HTTP/1.1 back-ends. The first byte says into pieces of which size the rest is cut: the
 * result must not depend on it, and nothing may be kept beyond its bound. */
#include "src/base/limits.h"
#include "src/net/client/http_answer.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t feed_in_pieces(struct http_answer *answer, const uint8_t *data, size_t size,
                             size_t piece)
{
    size_t taken = 0;
    http_answer_init(answer);
    while (taken < size) {
        size_t offered = size - taken < piece ? size - taken : piece;
        size_t used = http_answer_feed(answer, data + taken, offered);
        assert(used <= offered);
        taken += used;
        if (used < offered)
            break;
    }
    return taken;
}

static void check_bounds(const struct http_answer *answer)
{
    assert(answer->status == 0 || (answer->status >= 200 && answer->status <= 999));
    assert(answer->body_size <= RESPONSE_BYTES_MAX);
    assert(answer->line_size <= RESPONSE_HEADER_BYTES_MAX);
    assert(memchr(answer->retry_after, 0, sizeof(answer->retry_after)) != NULL);
    assert(memchr(answer->content_type, 0, sizeof(answer->content_type)) != NULL);
    assert((answer->state == ANSWER_FAILED) == (answer->failure != NULL));
    assert(answer->location == NULL || strlen(answer->location) <= RESPONSE_HEADER_BYTES_MAX);
    assert(!answer->keeps_alive || answer->state == ANSWER_DONE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct http_answer whole;
    struct http_answer cut;
    if (size == 0)
        return 0;
    size_t taken = feed_in_pieces(&whole, data + 1, size - 1, size);
    size_t taken_cut = feed_in_pieces(&cut, data + 1, size - 1, (size_t)data[0] + 1);
    if (whole.state != ANSWER_FAILED)
        assert(taken == taken_cut);
    http_answer_end(&whole);
    http_answer_end(&cut);
    check_bounds(&whole);
    check_bounds(&cut);
    assert(whole.state == cut.state);
    assert(whole.status == cut.status);
    assert(whole.keeps_alive == cut.keeps_alive);
    assert((whole.location == NULL) == (cut.location == NULL));
    assert(whole.location == NULL || strcmp(whole.location, cut.location) == 0);
    assert(slice_equal(http_answer_body(&whole), http_answer_body(&cut)));
    http_answer_reset(&whole);
    assert(whole.state == ANSWER_STATUS_LINE);
    http_answer_fini(&whole);
    http_answer_fini(&cut);
    return 0;
}
