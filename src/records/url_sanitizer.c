/* SPDX-License-Identifier: Apache-2.0 */
/* A segment stays if all its bytes are letters or one of "-_. ", but for one other at its second
 * place ("v1"), and if its letters are those of a word. All else is an id. */
#include "src/records/url_sanitizer.h"

#include <string.h>

#include "src/base/mem.h"
#include "src/records/key_set.h"
#include "src/records/letter_pairs.h"
#include "src/records/query_output.h"

/* As in Go: nothing is read from the last of them on. */
enum { SEPARATORS_MAX = 10 };

struct url_sanitizer {
    struct key_set attributes;
    bool has_span_names;
};

struct url_sanitizer *url_sanitizer_create(const struct url_settings *settings)
{
    if (!settings->is_enabled)
        return NULL;
    struct url_sanitizer *sanitizer = mem_zalloc(sizeof(*sanitizer));
    sanitizer->attributes = key_set_create(&settings->attributes, NULL, 0);
    sanitizer->has_span_names = settings->has_span_names;
    return sanitizer;
}

void url_sanitizer_destroy(struct url_sanitizer *sanitizer)
{
    if (sanitizer == NULL)
        return;
    key_set_destroy(&sanitizer->attributes);
    mem_free(sanitizer);
}

bool url_sanitizer_has_key(const struct url_sanitizer *sanitizer, struct slice key)
{
    return sanitizer != NULL && key_set_has(&sanitizer->attributes, key);
}

bool url_sanitizer_has_span_names(const struct url_sanitizer *sanitizer)
{
    return sanitizer != NULL && sanitizer->has_span_names;
}

static bool is_plain(struct slice segment)
{
    for (size_t i = 0; i < segment.size; i++) {
        uint8_t byte = segment.data[i];
        uint8_t lower = byte | 0x20;
        bool is_letter = lower >= 'a' && lower <= 'z';
        if (!is_letter && byte != '-' && byte != '_' && byte != '.' && byte != ' ' && i != 1)
            return false;
    }
    return true;
}

/* What ends the segment that begins there; the text's size: nothing. */
static size_t segment_end(struct slice text, size_t begin)
{
    size_t end = begin;
    while (end < text.size && text.data[end] != '/' && text.data[end] != '?' &&
           text.data[end] != '&' && text.data[end] != '#')
        end++;
    return end;
}

/* As in Go: what is left of an id before the last separator is looked at again, without its first
 * byte, and its star takes the separator's place. Returns where the path ends. */
static size_t hide_last(struct query_output *output, struct slice segment, size_t begin)
{
    size_t end = begin + segment.size;
    if (is_plain(segment) && letter_pairs_are_word(slice_of(segment.data + 1, segment.size - 1))) {
        query_output_replace(output, begin, begin + 1, '*');
        return end;
    }
    query_output_replace(output, begin, end, '*');
    query_output_replace(output, end, end + 1, '*');
    return end + 1;
}

struct slice url_sanitize(struct arena *arena, struct slice text)
{
    if (text.size == 0)
        return text;
    struct query_output output = query_output_of(arena, text);
    size_t end = 0;
    unsigned separators = 0;
    for (size_t begin = 0;; begin = end + 1) {
        end = segment_end(text, begin);
        struct slice segment = slice_of(text.data + begin, end - begin);
        bool is_separated = end < text.size && text.data[end] == '/';
        /* As in Go: random letters stay in front of a query. */
        bool has_query = end < text.size && !is_separated;
        bool is_kept = is_plain(segment) && (has_query || letter_pairs_are_word(segment));
        separators += is_separated;
        bool is_last = !is_separated || separators == SEPARATORS_MAX;
        if (!is_kept && is_last && is_separated)
            end = hide_last(&output, segment, begin);
        else if (!is_kept)
            query_output_replace(&output, begin, end, '*');
        if (is_last)
            break;
    }
    output.text.size = end;
    return query_output_finish(&output);
}

bool url_is_hidden(struct slice url)
{
    bool has_star = false;
    for (size_t begin = 0; begin < url.size;) {
        const uint8_t *at = url.data + begin;
        const uint8_t *slash = memchr(at, '/', url.size - begin);
        size_t size = slash != NULL ? (size_t)(slash - at) : url.size - begin;
        if (size > 1 || (size == 1 && *at != '*'))
            return false;
        has_star |= size == 1;
        begin += size + 1;
    }
    return has_star;
}
