/* SPDX-License-Identifier: Apache-2.0 */
/* Reading spans and resources for policies. Most attributes are unwanted: where the key comes
 * first, as every SDK writes it, its length rules most of them out. Of several attributes with the
 * same key the first counts, as in the Go collector. Pure functions; any thread. */
#include "processors/tail_sampling/tail_span.h"

#include <assert.h>
#include <endian.h>

#include "processors/tail_sampling/tail_trace_state.h"
#include "src/base/pattern.h"
#include "src/otlp/value.h"
#include "src/otlp/wire.h"

enum span_field {
    SPAN_TRACE_ID = 1,
    SPAN_ID = 2,
    SPAN_TRACE_STATE = 3,
    SPAN_PARENT_ID = 4,
    SPAN_START = 7,
    SPAN_END = 8,
    SPAN_ATTRIBUTES = 9,
    SPAN_STATUS = 15,
    SPAN_FLAGS = 16,
    STATUS_CODE_FIELD = 3,
    RESOURCE_ATTRIBUTES = 1,
    ATTRIBUTE_KEY = 1,
    ATTRIBUTE_VALUE = 2,
};

enum {
    TAG_TRACE_ID = SPAN_TRACE_ID << 3 | WIRE_BYTES,
    TAG_ID = SPAN_ID << 3 | WIRE_BYTES,
    TAG_START = SPAN_START << 3 | WIRE_FIXED64,
    TAG_END = SPAN_END << 3 | WIRE_FIXED64,
    TAG_ATTRIBUTES = SPAN_ATTRIBUTES << 3 | WIRE_BYTES,
    TAG_KEY = ATTRIBUTE_KEY << 3 | WIRE_BYTES,
    TAG_VALUE = ATTRIBUTE_VALUE << 3 | WIRE_BYTES,
    SPAN_ID_BYTES = 8,
    EMPTY_FIELD_BYTES = 2,
    FLAG_SAMPLED = 1,
};

/* Fields that the Go collector writes also when they are empty. */
enum { HAS_TRACE_ID = 1, HAS_ID = 2, HAS_PARENT = 4, HAS_STATUS = 8, HAS_ALL = 15 };

struct span_rest {
    unsigned has;
    unsigned zeros; /* bytes of ids of zeros, which it writes without them */
    uint64_t status;
    uint64_t flags;
    struct slice trace_state;
};

static void set_bit(uint64_t *bits, unsigned bit)
{
    bits[bit / 64] |= (uint64_t)1 << bit % 64;
}

static bool string_matches(const struct tail_leaf *leaf, struct slice string)
{
    for (size_t i = 0; i < leaf->values_count; i++)
        if (slice_equal(leaf->values[i], string))
            return true;
    for (size_t i = 0; i < leaf->patterns_count; i++)
        if (pattern_matches(leaf->patterns[i], string))
            return true;
    return false;
}

/* Values of another type count as 0, false or "". */
static bool value_matches(const struct tail_leaf *leaf, const struct value *value, bool is_of_span)
{
    struct slice string = value->type == VALUE_STRING ? value->bytes : (struct slice){0};
    int64_t integer = value->type == VALUE_INT ? value->integer : 0;
    bool boolean = value->type == VALUE_BOOL && value->boolean;
    switch (leaf->kind) {
    case TAIL_NUMERIC:
        return integer >= leaf->min && integer <= leaf->max;
    case TAIL_BOOLEAN:
        return boolean == leaf->boolean;
    case TAIL_STRING:
        return !(is_of_span && string.size == 0) && string_matches(leaf, string);
    case TAIL_ALWAYS:
    case TAIL_LATENCY:
    case TAIL_PROBABILISTIC:
    case TAIL_STATUS:
    case TAIL_RATE:
    case TAIL_BYTES:
    case TAIL_SPAN_COUNT:
    case TAIL_TRACE_STATE:
    case TAIL_TRACE_FLAGS:
    case TAIL_OTTL:
    case TAIL_PROFILE:
    case TAIL_OTTL_FAILED:
    default:
        assert(false);
        return false;
    }
}

static void __attribute__((noinline))
read_attribute(const struct tail_policies *policies, struct slice attribute, bool is_of_span,
               uint64_t *seen, uint64_t *bits)
{
    struct wire_reader reader = wire_reader_of(attribute);
    struct wire_field field;
    struct slice key = {0};
    struct slice encoded = {0};
    while (wire_next_field(&reader, &field)) {
        if (field.number == ATTRIBUTE_KEY)
            key = field.bytes;
        else if (field.number == ATTRIBUTE_VALUE)
            encoded = field.bytes;
    }
    assert(reader.failure == NULL);
    if ((policies->key_lengths >> key.size % 64 & 1) == 0)
        return;
    size_t place = 0;
    while (place < policies->keys_count && !slice_equal(policies->keys[place].name, key))
        place++;
    if (place == policies->keys_count || (seen[place / 64] >> place % 64 & 1) != 0)
        return;
    set_bit(seen, (unsigned)place);
    const struct tail_key *found = &policies->keys[place];
    struct value value = value_read(encoded);
    for (size_t i = 0; i < found->leaves_count; i++) {
        const struct tail_leaf *leaf = &policies->leaves[found->leaves[i]];
        if ((bits[leaf->bit / 64] >> leaf->bit % 64 & 1) == 0 &&
            value_matches(leaf, &value, is_of_span))
            set_bit(bits, leaf->bit);
    }
}

/* Whether it has the usual layout, key and value in fields of less than 128 bytes and nothing else,
 * and no wanted key has its key's length. */
static inline bool is_unwanted(const struct tail_policies *policies, struct slice attribute)
{
    enum { HEADERS_BYTES = 4 };
    const uint8_t *at = attribute.data;
    if (attribute.size < HEADERS_BYTES || at[0] != TAG_KEY)
        return false;
    size_t left = attribute.size - HEADERS_BYTES;
    size_t key = at[1];
    if (key >= 0x80 || key > left || (policies->key_lengths >> key % 64 & 1) != 0)
        return false;
    return at[2 + key] == TAG_VALUE && at[3 + key] < 0x80 && at[3 + key] == left - key;
}

/* Passes over consecutive attributes that are unwanted, in the usual form: key and value once, in
 * this order, and all lengths in one byte, so that one word has tags and lengths, and another what
 * is between key and value. Returns where something else begins, or near the end. */
static inline const uint8_t *skip_unwanted(const struct tail_policies *policies, const uint8_t *at,
                                           const uint8_t *end)
{
    enum { HEADERS = 4, FAR = 2 + 0x7f + HEADERS + 2 };
    const uint32_t head = TAG_ATTRIBUTES | TAG_KEY << 16; /* the lengths are 0 */
    const uint64_t lengths = policies->key_lengths;
    while (end - at >= FAR) {
        uint32_t word;
        uint16_t between;
        memcpy(&word, at, sizeof(word));
        word = le32toh(word);
        const size_t size = at[1]; /* the next attribute waits for it: no shift */
        const size_t key = word >> 24;
        if ((word & UINT32_C(0x80ff80ff)) != head || (lengths >> (key & 63) & 1) != 0)
            break;
        memcpy(&between, at + HEADERS + key, sizeof(between));
        /* A key that is too long makes this more than 16 bits. */
        if (le16toh(between) != ((size - key - HEADERS) << 8 | TAG_VALUE))
            break;
        at += size + 2;
    }
    return at;
}

/* Reads consecutive attributes with lengths of one or two bytes. Returns where something else
 * begins. */
static const uint8_t *read_attributes(const struct tail_policies *policies, const uint8_t *at,
                                      const uint8_t *end, uint64_t *seen, uint64_t *bits)
{
    enum { HEADER_BYTES_MAX = 3 };
    for (;;) {
        at = skip_unwanted(policies, at, end);
        if (end - at < HEADER_BYTES_MAX || *at != TAG_ATTRIBUTES)
            return at;
        const uint8_t *content = at + 2;
        size_t size = at[1];
        if (size >= 0x80) {
            size = (size & 0x7f) | (size_t)*content << 7;
            if (*content++ >= 0x80)
                return at;
        }
        if (size > (size_t)(end - content))
            return at;
        at = content + size;
        if (policies->keys_count > 0 && !is_unwanted(policies, slice_of(content, size)))
            read_attribute(policies, slice_of(content, size), true, seen, bits);
    }
}

static bool is_zero(struct slice bytes)
{
    uint64_t word;
    if (bytes.size == sizeof(word)) {
        memcpy(&word, bytes.data, sizeof(word));
        return word == 0;
    }
    for (size_t i = 0; i < bytes.size; i++)
        if (bytes.data[i] != 0)
            return false;
    return true;
}

static void read_status(struct slice content, struct span_rest *rest)
{
    enum { TAG_CODE = STATUS_CODE_FIELD << 3 | WIRE_VARINT };
    struct wire_reader reader = wire_reader_of(content);
    struct wire_field field;
    rest->has |= HAS_STATUS;
    if (content.size == 2 && content.data[0] == TAG_CODE) { /* it has no message, as most */
        rest->status = content.data[1];
        return;
    }
    while (wire_next_field(&reader, &field))
        if (field.number == STATUS_CODE_FIELD)
            rest->status = field.number_value;
    assert(reader.failure == NULL);
}

/* A field with bytes, but for attributes. */
static void read_bytes(enum span_field number, struct slice bytes, struct tail_span *span,
                       struct span_rest *rest)
{
    switch (number) {
    case SPAN_TRACE_ID:
        rest->has |= HAS_TRACE_ID;
        memset(span->trace_id, 0, sizeof(span->trace_id));
        if (bytes.size == TAIL_TRACE_ID_BYTES)
            memcpy(span->trace_id, bytes.data, TAIL_TRACE_ID_BYTES);
        if (is_zero(bytes))
            rest->zeros += (unsigned)bytes.size;
        break;
    case SPAN_ID:
        rest->has |= HAS_ID;
        if (is_zero(bytes))
            rest->zeros += (unsigned)bytes.size;
        break;
    case SPAN_PARENT_ID:
        rest->has |= HAS_PARENT;
        span->is_root = is_zero(bytes);
        if (span->is_root)
            rest->zeros += (unsigned)bytes.size;
        break;
    case SPAN_TRACE_STATE:
        rest->trace_state = bytes;
        break;
    case SPAN_STATUS:
        read_status(bytes, rest);
        break;
    case SPAN_START:
    case SPAN_END:
    case SPAN_ATTRIBUTES:
    case SPAN_FLAGS:
    default:
        break;
    }
}

static void read_field(const struct tail_policies *policies, const struct wire_field *field,
                       struct tail_span *span, struct span_rest *rest, uint64_t *seen,
                       uint64_t *bits)
{
    const enum span_field number = (enum span_field)field->number;
    if (number == SPAN_ATTRIBUTES)
        read_attribute(policies, field->bytes, true, seen, bits);
    else if (number == SPAN_START)
        span->start_ns = field->number_value;
    else if (number == SPAN_END)
        span->end_ns = field->number_value;
    else if (number == SPAN_FLAGS)
        rest->flags = field->number_value;
    else
        read_bytes(number, field->bytes, span, rest);
}

static void judge_state(const struct tail_policies *policies, struct slice trace_state,
                        uint64_t *bits)
{
    struct w3c_trace_state state;
    if (!w3c_trace_state_read(trace_state, &state))
        return;
    for (size_t i = 0; i < policies->states_count; i++) {
        const struct tail_leaf *leaf = &policies->leaves[policies->states[i]];
        if ((bits[leaf->bit / 64] >> leaf->bit % 64 & 1) == 0 &&
            string_matches(leaf, w3c_trace_state_value(&state, leaf->key)))
            set_bit(bits, leaf->bit);
    }
}

/* The bits that do not come from attributes. */
static void judge(const struct tail_policies *policies, const struct span_rest *rest,
                  uint64_t *bits)
{
    if (rest->status < TAIL_STATUSES)
        for (size_t i = 0; i < policies->words; i++)
            bits[i] |= policies->status_bits[rest->status][i];
    if ((rest->flags & FLAG_SAMPLED) != 0)
        for (size_t i = 0; i < policies->words; i++)
            bits[i] |= policies->flag_bits[i];
    if (rest->trace_state.size > 0 && policies->states_count > 0)
        judge_state(policies, rest->trace_state, bits);
}

static uint64_t read_number(const uint8_t *data)
{
    uint64_t number;
    memcpy(&number, data, sizeof(number));
    return le64toh(number);
}

/* Reads a field as nearly all are written: with a tag of one byte, and a length or a number of one,
 * or the flags. Returns what is behind it; at: it is written otherwise. */
static inline const uint8_t *read_short(const uint8_t *at, const uint8_t *end,
                                        struct tail_span *span, struct span_rest *rest)
{
    enum { HEADER = 2, FLAGS_BYTES = HEADER + 4 };
    enum { FLAGS_TAG = SPAN_FLAGS << 3 | WIRE_FIXED32, FLAGS_LOW = (FLAGS_TAG & 0x7f) | 0x80 };
    enum {
        READ = 1 << SPAN_TRACE_ID | 1 << SPAN_ID | 1 << SPAN_TRACE_STATE | 1 << SPAN_PARENT_ID |
               1 << SPAN_STATUS,
    };
    const uint8_t tag = *at;
    const size_t left = (size_t)(end - at);
    if (left < HEADER || tag == TAG_ATTRIBUTES)
        return at;
    const size_t size = at[1];
    const uint8_t *const content = at + HEADER;
    if (tag == FLAGS_LOW && size == FLAGS_TAG >> 7 && left >= FLAGS_BYTES) {
        uint32_t flags;
        memcpy(&flags, content, sizeof(flags));
        rest->flags = le32toh(flags);
        return at + FLAGS_BYTES;
    }
    if (tag >= 0x80 || size >= 0x80)
        return at;
    if ((tag & 7) == WIRE_VARINT) /* its kind, or a count */
        return content;
    if ((tag & 7) != WIRE_BYTES || size > left - HEADER)
        return at;
    if ((READ >> (tag >> 3) & 1) != 0)
        read_bytes((enum span_field)(tag >> 3), slice_of(content, size), span, rest);
    return content + size;
}

void tail_span_read(const struct tail_policies *policies, struct slice content,
                    struct tail_span *ret_span, uint64_t *bits)
{
    enum { ID = 2 + TAIL_TRACE_ID_BYTES, IDS_BYTES = ID + 2 + SPAN_ID_BYTES };
    enum { FIXED64_BYTES = 1 + 8 };
    /* How many of the fields that a span always has in the Go collector are missing. */
    static const uint8_t missing[HAS_ALL + 1] = {4, 3, 3, 2, 3, 2, 2, 1, 3, 2, 2, 1, 2, 1, 1, 0};
    struct wire_reader reader = wire_reader_of(content);
    struct wire_field field;
    struct span_rest rest = {.has = 0};
    uint64_t seen[TAIL_KEY_WORDS];
    for (size_t i = 0; i <= policies->keys_count / 64 && i < TAIL_KEY_WORDS; i++)
        seen[i] = 0;
    ret_span->is_root = true;
    ret_span->start_ns = 0;
    ret_span->end_ns = 0;
    /* Nearly always both ids come first. */
    const uint8_t *at = reader.at;
    const uint8_t *const end = reader.end;
    if (end - at >= IDS_BYTES && at[0] == TAG_TRACE_ID && at[1] == TAIL_TRACE_ID_BYTES &&
        at[ID] == TAG_ID && at[ID + 1] == SPAN_ID_BYTES) {
        memcpy(ret_span->trace_id, at + 2, TAIL_TRACE_ID_BYTES);
        rest.has = HAS_TRACE_ID | HAS_ID;
        if (is_zero(slice_of(at + 2, TAIL_TRACE_ID_BYTES)))
            rest.zeros = TAIL_TRACE_ID_BYTES;
        if (is_zero(slice_of(at + ID + 2, SPAN_ID_BYTES)))
            rest.zeros += SPAN_ID_BYTES;
        at += IDS_BYTES;
    } else {
        memset(ret_span->trace_id, 0, sizeof(ret_span->trace_id));
    }
    while (at < end && reader.failure == NULL) {
        const uint8_t *const before = at;
        if (*at == TAG_ATTRIBUTES) {
            at = read_attributes(policies, at, end, seen, bits);
        } else if (*at == TAG_START && end - at >= FIXED64_BYTES) {
            ret_span->start_ns = read_number(at + 1);
            at += FIXED64_BYTES;
        } else if (*at == TAG_END && end - at >= FIXED64_BYTES) {
            ret_span->end_ns = read_number(at + 1);
            at += FIXED64_BYTES;
        } else {
            at = read_short(at, end, ret_span, &rest);
        }
        if (at != before)
            continue;
        reader.at = at;
        if (wire_next_field(&reader, &field))
            read_field(policies, &field, ret_span, &rest, seen, bits);
        at = reader.at;
    }
    assert(reader.failure == NULL);
    ret_span->bytes =
        content.size + (uint64_t)EMPTY_FIELD_BYTES * missing[rest.has & HAS_ALL] - rest.zeros;
    judge(policies, &rest, bits);
}

void tail_span_read_id(struct slice content, uint8_t ret_id[TAIL_TRACE_ID_BYTES])
{
    struct wire_reader reader = wire_reader_of(content);
    struct wire_field field;
    const uint8_t *at = content.data;
    enum { FIELD_BYTES = 2 + TAIL_TRACE_ID_BYTES, NEXT_ID = FIELD_BYTES };
    /* Whoever writes the id first, and then the span's, does not write it again. */
    if (content.size > FIELD_BYTES && at[0] == TAG_TRACE_ID && at[1] == TAIL_TRACE_ID_BYTES &&
        at[NEXT_ID] == TAG_ID) {
        memcpy(ret_id, at + 2, TAIL_TRACE_ID_BYTES);
        return;
    }
    memset(ret_id, 0, TAIL_TRACE_ID_BYTES);
    while (wire_next_field(&reader, &field)) {
        if (field.number != SPAN_TRACE_ID)
            continue;
        memset(ret_id, 0, TAIL_TRACE_ID_BYTES);
        if (field.bytes.size == TAIL_TRACE_ID_BYTES)
            memcpy(ret_id, field.bytes.data, TAIL_TRACE_ID_BYTES);
    }
    assert(reader.failure == NULL);
}

void tail_resource_begin(struct tail_resource *resource)
{
    *resource = (struct tail_resource){.seen = {0}};
}

void tail_resource_read(const struct tail_policies *policies, struct tail_resource *resource,
                        struct slice content, uint64_t *bits)
{
    struct wire_reader reader = wire_reader_of(content);
    struct wire_field field;
    while (policies->keys_count > 0 && wire_next_field(&reader, &field))
        if (field.number == RESOURCE_ATTRIBUTES)
            read_attribute(policies, field.bytes, false, resource->seen, bits);
    assert(reader.failure == NULL);
}
