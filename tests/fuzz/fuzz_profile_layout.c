/* SPDX-License-Identifier: Apache-2.0 */
/* profile_normalize on any bytes: byte 0 is the layout, or that it is to be detected; the rest is
 * the request. protobuf-c can decode what it accepts, and every index is inside its table, used or
 * not; the careful check finds nothing in what the fast one accepts. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/buffer.h"
#include "src/profiles/otlp/profile_normalize.h"
#include "tests/support/profile_oracle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct profile_normalized normalized;
    if (size == 0)
        return 0;
    enum profile_layout layout = (enum profile_layout)(data[0] % (PROFILE_LAYOUTS + 1));
    struct buffer *request = buffer_create(NULL, size - 1);
    if (size > 1)
        memcpy(request->data, data + 1, size - 1);
    request->size = size - 1;
    profile_oracle_fast_check(buffer_slice(request));
    bool is_taken = profile_normalize(request, buffer_slice(request), layout, NULL, &normalized) ==
                    PROFILES_TAKEN;
    if (is_taken && !oracle_repeats_empty_value(PROFILES, normalized.request)) {
        assert(oracle_decodes(PROFILES, normalized.request));
        if (normalized.profiles > 0) {
            struct oracle_items items = {0};
            profile_oracle_list(&items, normalized.request, PROFILE_WHOLE);
            oracle_clear(&items);
        }
    }
    assert(!is_taken || normalized.profiles == 0 || profile_oracle_strays(normalized.request) == 0);
    if (is_taken)
        buffer_unref(normalized.owner);
    buffer_unref(request);
    return 0;
}
