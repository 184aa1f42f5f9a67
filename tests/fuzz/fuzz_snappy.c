/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a snappy block, or a framed stream when they begin as one. */
#include "tests/fuzz/fuzz_codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_codec(CODEC_SNAPPY, data, size);
    fuzz_codec(CODEC_SNAPPY_FRAMED, data, size);
    return 0;
}
