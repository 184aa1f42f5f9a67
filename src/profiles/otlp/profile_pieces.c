/* SPDX-License-Identifier: Apache-2.0 */
/* One pass over the request. A resource and a scope begin in a piece with their first Profile, so
 * that those without any are left out, as merging does. */
#include "src/profiles/otlp/profile_pieces.h"

#include <assert.h>
#include <string.h>

#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/limits.h"
#include "src/core/batch.h"
#include "src/profiles/otlp/opaque_profile.h"
#include "src/profiles/otlp/profile_bytes.h"
#include "src/profiles/otlp/profile_view.h"

enum {
    RESOURCES = 1, /* of the request */
    SCOPES = 2,    /* of a resource */
    PROFILES_FIELD = 2,
    /* Bytes of copies in a piece, at most, for each byte of its own, */
    SHARED_BYTES_RATIO = 2,
    /* and how many times as large as the request all pieces together are then, at most. */
    COPIES_MAX = 1 + SHARED_BYTES_RATIO,
};

struct cutting {
    const struct batch *model;
    uint64_t profiles_max;
    struct budget *budget;
    void (*take)(void *arg, struct batch *piece);
    void *arg;
    struct profile_bytes shared;   /* fields of the request but resources */
    struct profile_bytes resource; /* fields of the current resource but scopes */
    struct profile_bytes scope;    /* fields of the current scope but profiles */
    struct profile_bytes out;      /* the piece */
    size_t resource_begin;         /* in out, when is_open */
    size_t scope_begin;
    bool is_resource_open;
    bool is_scope_open;
    uint64_t profiles; /* in the piece */
    uint64_t items;
    uint64_t own_bytes;
};

bool profile_pieces_are_needed(uint64_t bytes, uint64_t profiles, const struct budget *budget)
{
    return profiles > DENSE_PROFILES_MAX && bytes / profiles < DENSE_PROFILE_BYTES_MAX &&
           budget_has_room(budget, COPIES_MAX * bytes);
}

static void copy_others(struct slice message, uint32_t child, struct profile_bytes *out)
{
    struct wire_reader reader = wire_reader_of(message);
    struct wire_field field;
    out->size = 0;
    while (wire_read_field(&reader, &field))
        if (field.number != child)
            profile_bytes_add(out, field.whole);
}

/* The next field of that number. */
static bool next_child(struct wire_reader *reader, uint32_t child, struct wire_field *ret_field)
{
    while (wire_read_field(reader, ret_field))
        if (ret_field->number == child)
            return true;
    return false;
}

static void close_scope(struct cutting *cutting)
{
    if (cutting->is_scope_open)
        profile_bytes_wrap(&cutting->out, cutting->scope_begin, SCOPES);
    cutting->is_scope_open = false;
}

static void close_resource(struct cutting *cutting)
{
    assert(!cutting->is_scope_open);
    if (cutting->is_resource_open)
        profile_bytes_wrap(&cutting->out, cutting->resource_begin, RESOURCES);
    cutting->is_resource_open = false;
}

static void end_piece(struct cutting *cutting)
{
    close_scope(cutting);
    close_resource(cutting);
    struct buffer *buffer =
        buffer_create(cutting->budget, cutting->out.size + cutting->shared.size);
    memcpy(buffer->data, cutting->out.data, cutting->out.size);
    if (cutting->shared.size > 0)
        memcpy(buffer->data + cutting->out.size, cutting->shared.data, cutting->shared.size);
    buffer->size = cutting->out.size + cutting->shared.size;
    struct batch *piece = batch_create_like(cutting->model, 1);
    batch_append(piece, buffer, buffer_slice(buffer));
    piece->items = cutting->items;
    buffer_unref(buffer);
    cutting->out.size = 0;
    cutting->profiles = 0;
    cutting->items = 0;
    cutting->own_bytes = 0;
    cutting->take(cutting->arg, piece);
}

static void add_profile(struct cutting *cutting, const struct wire_field *field)
{
    struct profile profile = profile_of(field->bytes);
    uint64_t shared = cutting->shared.size + cutting->resource.size + cutting->scope.size;
    if (cutting->profiles >= cutting->profiles_max &&
        cutting->own_bytes * SHARED_BYTES_RATIO >= shared)
        end_piece(cutting);
    if (!cutting->is_resource_open) {
        cutting->resource_begin = cutting->out.size;
        profile_bytes_add(&cutting->out, profile_bytes_slice(&cutting->resource));
        cutting->is_resource_open = true;
    }
    if (!cutting->is_scope_open) {
        cutting->scope_begin = cutting->out.size;
        profile_bytes_add(&cutting->out, profile_bytes_slice(&cutting->scope));
        cutting->is_scope_open = true;
    }
    profile_bytes_add(&cutting->out, field->whole);
    cutting->profiles++;
    cutting->own_bytes += field->whole.size;
    cutting->items += profile_items(&profile);
}

void profile_pieces_cut(const struct batch *batch, uint64_t profiles_max, struct budget *budget,
                        void (*take)(void *arg, struct batch *piece), void *arg)
{
    assert(batch->signal == PROFILES && batch->parts_count == 1);
    struct slice request = batch->parts[0].bytes;
    struct cutting cutting = {.model = batch,
                              .profiles_max = profiles_max,
                              .budget = budget,
                              .take = take,
                              .arg = arg,
                              .shared.budget = budget,
                              .resource.budget = budget,
                              .scope.budget = budget,
                              .out.budget = budget};
    struct wire_reader resources = wire_reader_of(request);
    struct wire_field resource;
    struct wire_field scope;
    struct wire_field profile;
    copy_others(request, RESOURCES, &cutting.shared);
    while (next_child(&resources, RESOURCES, &resource)) {
        struct wire_reader scopes = wire_reader_of(resource.bytes);
        copy_others(resource.bytes, SCOPES, &cutting.resource);
        while (next_child(&scopes, SCOPES, &scope)) {
            struct wire_reader profiles = wire_reader_of(scope.bytes);
            copy_others(scope.bytes, PROFILES_FIELD, &cutting.scope);
            while (next_child(&profiles, PROFILES_FIELD, &profile))
                add_profile(&cutting, &profile);
            close_scope(&cutting);
        }
        close_resource(&cutting);
    }
    assert(cutting.profiles > 0);
    end_piece(&cutting);
    profile_bytes_fini(&cutting.shared);
    profile_bytes_fini(&cutting.resource);
    profile_bytes_fini(&cutting.scope);
    profile_bytes_fini(&cutting.out);
}
