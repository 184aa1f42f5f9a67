/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of the Agent's service, in either protocol of Thrift: bit 1 of byte 0 chooses. See
 * fuzz_jaeger.h. */
#include "tests/fuzz/fuzz_jaeger.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bool is_compact = size > 0 && (data[0] & 2) != 0;
    fuzz_jaeger(is_compact ? JAEGER_COMPACT_CALL : JAEGER_BINARY_CALL, data, size);
    return 0;
}
