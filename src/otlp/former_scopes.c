/* SPDX-License-Identifier: Apache-2.0 */
/* Each Resource… message is read twice: what it will be, then field by field. Runs on the lane that
 * received the request, or on its helper. */
#include "src/otlp/former_scopes.h"

#include <assert.h>

#include "src/base/buffer.h"
#include "src/otlp/wire.h"

enum { RESOURCES = 1, SCOPES = 2 };

/* What becomes of a Resource… message. */
struct resource_outlook {
    bool has_scopes;
    bool has_former;
    size_t moved_bytes; /* of its content when its former scopes are moved */
    size_t other_bytes; /* when they are left out */
};

static struct resource_outlook look_at(struct slice resource)
{
    struct resource_outlook outlook = {.has_scopes = false};
    struct wire_reader reader = wire_reader_of(resource);
    struct wire_field field;
    while (wire_next_field(&reader, &field)) {
        if (field.number == FORMER_SCOPES) {
            outlook.has_former = true;
            outlook.moved_bytes += wire_field_size(SCOPES, field.bytes.size);
            continue;
        }
        outlook.has_scopes |= field.number == SCOPES;
        outlook.moved_bytes += field.whole.size;
        outlook.other_bytes += field.whole.size;
    }
    assert(reader.failure == NULL);
    return outlook;
}

struct buffer *former_scopes_move(enum signal_kind signal, struct slice request,
                                  struct budget *budget)
{
    assert(signal != PROFILES);
    struct buffer *moved = buffer_try_create(budget, request.size);
    if (moved == NULL)
        return NULL;
    struct wire_writer writer = wire_writer_of(moved->data, request.size);
    struct wire_reader reader = wire_reader_of(request);
    struct wire_field resource;
    struct wire_field field;
    while (wire_next_field(&reader, &resource)) {
        struct resource_outlook outlook = {.has_former = false};
        if (resource.number == RESOURCES)
            outlook = look_at(resource.bytes);
        if (!outlook.has_former) {
            wire_write_raw(&writer, resource.whole);
            continue;
        }
        wire_write_header(&writer, RESOURCES,
                          outlook.has_scopes ? outlook.other_bytes : outlook.moved_bytes);
        struct wire_reader fields = wire_reader_of(resource.bytes);
        while (wire_next_field(&fields, &field))
            if (field.number != FORMER_SCOPES)
                wire_write_raw(&writer, field.whole);
            else if (!outlook.has_scopes)
                wire_write_bytes(&writer, SCOPES, field.bytes);
    }
    assert(reader.failure == NULL && !writer.has_failed);
    moved->size = wire_written(&writer).size;
    return moved;
}
