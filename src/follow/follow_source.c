/* SPDX-License-Identifier: Apache-2.0 */
#include "src/follow/follow_source.h"

#include <assert.h>
#include <errno.h>

#include <isa-l/igzip_lib.h>

#include "src/base/fileops.h"
#include "src/base/mem.h"

enum { INPUT_BYTES = 64 * 1024 };

struct follow_source {
    int fd;
    bool is_gzip;
    uint64_t offset; /* of the next byte to read from the file */
    uint64_t end;
    bool is_in_member;
    struct inflate_state state;
    uint8_t input[INPUT_BYTES];
};

struct follow_source *follow_source_create(void)
{
    struct follow_source *source = mem_zalloc(sizeof(*source));
    isal_inflate_init(&source->state);
    return source;
}

void follow_source_destroy(struct follow_source *source)
{
    mem_free(source);
}

static void begin_member(struct follow_source *source)
{
    uint8_t *next = source->state.next_in;
    uint32_t left = source->state.avail_in;
    source->is_in_member = false;
    isal_inflate_reset(&source->state);
    source->state.crc_flag = ISAL_GZIP;
    source->state.next_in = next;
    source->state.avail_in = left;
}

void follow_source_begin(struct follow_source *source, int fd, bool is_gzip, uint64_t offset,
                         uint64_t end)
{
    source->fd = fd;
    source->is_gzip = is_gzip;
    source->offset = offset;
    source->end = end;
    source->is_in_member = false;
    source->state.avail_in = 0;
    if (is_gzip)
        begin_member(source);
}

static int64_t read_some(struct follow_source *source, void *data, size_t size)
{
    uint64_t left = source->offset < source->end ? source->end - source->offset : 0;
    if (size > left)
        size = (size_t)left;
    ssize_t got;
    do
        got = size > 0 ? fileops()->pread(source->fd, data, size, (off_t)source->offset) : 0;
    while (got == -EINTR);
    if (got > 0)
        source->offset += (uint64_t)got;
    return got;
}

/* The next member begins behind what the last has used. */
static int64_t inflate_some(struct follow_source *source, void *data, size_t size)
{
    struct inflate_state *state = &source->state;
    if (state->block_state == ISAL_BLOCK_FINISH)
        begin_member(source);
    state->next_out = data;
    state->avail_out = size < UINT32_MAX ? (uint32_t)size : UINT32_MAX;
    uint32_t room = state->avail_out;
    while (state->avail_out == room) {
        if (state->avail_in == 0) {
            int64_t got = read_some(source, source->input, INPUT_BYTES);
            if (got < 0)
                return got;
            if (got == 0 && !source->is_in_member)
                return 0;
            state->next_in = source->input;
            state->avail_in = (uint32_t)got;
            /* Output may be left inside. */
            if (got == 0) {
                if (isal_inflate(state) != ISAL_DECOMP_OK)
                    return -EBADMSG;
                if (state->avail_out == room)
                    return -ENODATA;
                break;
            }
        }
        source->is_in_member = true;
        if (isal_inflate(state) != ISAL_DECOMP_OK)
            return -EBADMSG;
        if (state->block_state == ISAL_BLOCK_FINISH && state->avail_out == room) {
            begin_member(source);
            state->next_out = data;
            state->avail_out = room;
        }
    }
    return room - state->avail_out;
}

int64_t follow_source_read(struct follow_source *source, void *data, size_t size)
{
    assert(size > 0);
    return source->is_gzip ? inflate_some(source, data, size) : read_some(source, data, size);
}

uint64_t follow_source_members_end(const struct follow_source *source)
{
    return source->offset - source->state.avail_in;
}

int follow_source_is_gzip(int fd)
{
    uint8_t magic[2];
    ssize_t got;
    do
        got = fileops()->pread(fd, magic, sizeof(magic), 0);
    while (got == -EINTR);
    if (got < 0)
        return (int)got;
    return got == sizeof(magic) && magic[0] == 0x1f && magic[1] == 0x8b;
}
