/* SPDX-License-Identifier: Apache-2.0 */
/* Spans of Zipkin: see fuzz_zipkin.h. */
#include "tests/fuzz/fuzz_zipkin.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_zipkin(ZIPKIN_V2_JSON, data, size);
    return 0;
}
