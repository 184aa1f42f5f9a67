/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a file's content, whose lines are the same in whatever pieces it comes, and as a
 * file of offsets with a right checksum. */
#include <assert.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "src/base/error.h"
#include "src/follow/follow_offsets.h"
#include "src/follow/followed_file.h"
#include "src/follow/line_splitter.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LINE_BYTES_MAX = 20, FINGERPRINT_BYTES = 16 };

/* A number that stands for all lines, when they come in pieces of that size. */
static uint64_t lines_of(const uint8_t *text, size_t size, size_t piece, bool truncates)
{
    struct line_splitter splitter = {.bytes_max = LINE_BYTES_MAX, .truncates = truncates};
    XXH3_state_t *state = XXH3_createState();
    size_t begin = 0;
    size_t end = 0;
    XXH3_64bits_reset(state);
    for (bool is_end = false; !is_end;) {
        end = size - end < piece ? size : end + piece;
        is_end = end == size;
        struct slice line;
        size_t used;
        enum split_step step;
        while ((step = line_splitter_next(&splitter, slice_of(text + begin, end - begin), is_end,
                                          &used, &line)) != SPLIT_MORE) {
            assert(used > 0 && used <= end - begin);
            begin += used;
            assert(step == SPLIT_SKIP || line.size <= LINE_BYTES_MAX);
            if (step == SPLIT_SKIP)
                continue;
            XXH3_64bits_update(state, line.data, line.size);
            XXH3_64bits_update(state, "\n", 1);
        }
        assert(end - begin <= LINE_BYTES_MAX + piece);
    }
    assert(begin == size);
    uint64_t hash = XXH3_64bits_digest(state);
    XXH3_freeState(state);
    return hash;
}

static void on_file(struct followed_file *file, void *arg)
{
    (void)arg;
    assert(file->first_size > 0 && file->first_size <= FINGERPRINT_BYTES);
    assert(file->path != NULL);
    followed_file_destroy(NULL, file);
}

static void check_offsets(const uint8_t *data, size_t size)
{
    static const char head[] = "spanflame file offsets 1\n";
    enum { SUM_BYTES = 32 };
    struct error error = {.text = ""};
    char *text = malloc(sizeof(head) + size + SUM_BYTES);
    size_t used = sizeof(head) - 1;
    memcpy(text, head, used);
    if (size > 0)
        memcpy(text + used, data, size);
    used += size;
    used +=
        (size_t)snprintf(text + used, SUM_BYTES, "sum %016" PRIx64 "\n", XXH3_64bits(text, used));
    if (!follow_offsets_read("offsets", text, used, FINGERPRINT_BYTES, NULL, on_file, NULL, &error))
        assert(error.text[0] != '\0');
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (int truncates = 0; truncates < 2; truncates++) {
        uint64_t whole = lines_of(data, size, size + 1, truncates != 0);
        for (size_t piece = 1; piece < 64; piece = piece * 2 + 1)
            assert(lines_of(data, size, piece, truncates != 0) == whole);
    }
    check_offsets(data, size);
    return 0;
}
