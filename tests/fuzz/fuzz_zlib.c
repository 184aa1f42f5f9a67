/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a zlib stream. */
#include "tests/fuzz/fuzz_codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_codec(CODEC_ZLIB, data, size);
    return 0;
}
