/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as an object of the Docker API: the members are text, no longer than the object. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "processors/resource_detection/detector.h"
#include "src/base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"Name", "OSType"};
    char *texts[2];
    (void)docker_read_members(slice_of(data, size), names, 2, texts);
    for (size_t i = 0; i < 2; i++) {
        assert(strlen(texts[i]) <= size);
        mem_free(texts[i]);
    }
    return 0;
}
