/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as LZ4 frames. */
#include "tests/fuzz/fuzz_codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_codec(CODEC_LZ4, data, size);
    return 0;
}
