/* SPDX-License-Identifier: Apache-2.0 */
#include "src/follow/line_splitter.h"

#include <assert.h>
#include <string.h>

static bool is_space(uint8_t c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static struct slice trimmed(const struct line_splitter *splitter, struct slice line)
{
    while (!splitter->keeps_trailing && line.size > 0 && is_space(line.data[line.size - 1]))
        line.size--;
    while (!splitter->keeps_leading && line.size > 0 && is_space(line.data[0]))
        line = slice_of(line.data + 1, line.size - 1);
    return line;
}

static enum split_step take(struct line_splitter *splitter, struct slice line, size_t used,
                            size_t *ret_used, struct slice *ret_line)
{
    *ret_used = used;
    *ret_line = trimmed(splitter, line);
    splitter->searched = 0;
    return SPLIT_LINE;
}

static enum split_step skip(struct line_splitter *splitter, size_t used, size_t *ret_used)
{
    *ret_used = used;
    splitter->searched = 0;
    return SPLIT_SKIP;
}

enum split_step line_splitter_next(struct line_splitter *splitter, struct slice data, bool is_end,
                                   size_t *ret_used, struct slice *ret_line)
{
    size_t max = splitter->bytes_max;
    const uint8_t *end = NULL;
    assert(max > 0);
    assert(splitter->searched <= data.size);
    *ret_used = 0;
    if (data.size == 0)
        return SPLIT_MORE;
    if (!splitter->takes_all)
        end = memchr(data.data + splitter->searched, '\n', data.size - splitter->searched);
    size_t size = end != NULL ? (size_t)(end - data.data) : data.size;
    size_t used = size + (end != NULL);
    if (splitter->is_skipping) {
        splitter->is_skipping = end == NULL;
        return skip(splitter, used, ret_used);
    }
    if (size > max) {
        splitter->is_skipping = splitter->truncates && end == NULL;
        return take(splitter, slice_of(data.data, max), splitter->truncates ? used : max, ret_used,
                    ret_line);
    }
    if (end == NULL && !is_end) {
        splitter->searched = data.size;
        return SPLIT_MORE;
    }
    struct slice line = slice_of(data.data, size);
    if (end != NULL && line.size > 0 && line.data[line.size - 1] == '\r')
        line.size--;
    return take(splitter, line, used, ret_used, ret_line);
}
