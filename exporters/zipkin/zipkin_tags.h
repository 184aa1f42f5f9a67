/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of tags: attributes of a resource, a scope or a span, and what is derived from them, by
 * key. What a tag points to is its owner's. One owner, one thread at a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/base/slice.h"

struct budget;

enum tag_form {
    TAG_ENCODED, /* value is an AnyValue */
    TAG_TEXT,    /* value is the text */
    TAG_REMOVED, /* there is no such tag, whatever resource and scope say */
};

struct tag {
    struct slice key;
    struct slice value;
    uint32_t order; /* set by tag_list_add */
    enum tag_form form;
};

struct tag_list {
    struct tag *tags;
    size_t count;
    size_t capacity;
    size_t bytes_max;      /* of memory */
    struct budget *budget; /* NULL: not charged */
    bool is_too_large;     /* the last tag was refused because of bytes_max */
};

/* Attributes that say something about a span's endpoints or status. */
enum known_key {
    HTTP_RESPONSE_STATUS_CODE,
    HTTP_STATUS_CODE,
    SERVICE_PEER_NAME,
    PEER_SERVICE,
    NETWORK_LOCAL_ADDRESS,
    NET_HOST_PORT,
    NETWORK_PEER_ADDRESS,
    NET_PEER_PORT,
    KNOWN_KEYS,
};

struct known_tags {
    unsigned found;                  /* a bit for each known_key */
    struct slice values[KNOWN_KEYS]; /* encoded */
};

void tag_list_init(struct tag_list *list, size_t bytes_max, struct budget *budget);
void tag_list_fini(struct tag_list *list);
/* False: refused. */
bool tag_list_add(struct tag_list *list, struct tag tag) __attribute__((warn_unused_result));
/* Sorts by key, and keeps the last of equal ones. */
void tag_list_settle(struct tag_list *list);
/* Looks in the first count tags, which are settled. NULL: there is none. */
struct tag *tag_list_find(const struct tag_list *list, size_t count, const char *key);

/* A KeyValue. */
struct tag tag_of_attribute(struct slice encoded);
/* "peer.service" … */
const char *known_key_name(enum known_key key);
/* Notes the tag if it is one of these; the last one counts. */
void known_tags_note(struct known_tags *known, const struct tag *tag);
