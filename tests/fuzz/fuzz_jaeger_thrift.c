/* SPDX-License-Identifier: Apache-2.0 */
/* Spans of Jaeger: see fuzz_jaeger.h. */
#include "tests/fuzz/fuzz_jaeger.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_jaeger(JAEGER_THRIFT, data, size);
    return 0;
}
