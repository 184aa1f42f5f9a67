/* SPDX-License-Identifier: Apache-2.0 */
/* Any request cut into groups by an attribute: no item is lost, and each group is a request. The
 * first byte is the signal. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "exporters/file/file_groups.h"
#include "src/base/buffer.h"
#include "src/core/batch.h"
#include "src/otlp/check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct otlp_figures figures;
    struct file_groups groups;
    const char *reason;
    if (size == 0)
        return 0;
    enum signal_kind signal = (enum signal_kind)(data[0] % SIGNAL_KINDS);
    struct slice request = slice_of(data + 1, size - 1);
    if (!otlp_check(signal, request, &figures, &reason) || figures.has_former_scopes)
        return 0;
    struct buffer *buffer = buffer_create(NULL, request.size + 1);
    memcpy(buffer->data, request.data, request.size);
    buffer->size = request.size;
    struct batch *batch = batch_create(signal, 1);
    batch_append(batch, buffer, buffer_slice(buffer));
    batch->items = figures.items;
    if (file_groups_make(&groups, batch, "g", NULL)) {
        uint64_t items = groups.ungrouped_items;
        for (size_t i = 0; i < groups.count; i++) {
            struct otlp_figures part;
            struct batch_part whole;
            assert(i == 0 || slice_compare(groups.list[i - 1].name, groups.list[i].name) < 0);
            assert(batch_join(groups.list[i].batch, NULL, &whole));
            assert(otlp_check(signal, whole.bytes, &part, &reason));
            assert(part.items == groups.list[i].items);
            buffer_unref(whole.owner);
            items += part.items;
        }
        assert(items == figures.items);
        file_groups_free(&groups);
    }
    batch_unref(batch);
    buffer_unref(buffer);
    return 0;
}
