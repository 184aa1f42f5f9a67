/* SPDX-License-Identifier: Apache-2.0 */
/* Edits of one request of traces, metrics or logs: a walk over its messages in their order, and
 * changes at the place at hand. What does not change is shared with the request. One owner, one
 * thread at a time; reused from request to request. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/join/splice.h"
#include "src/otlp/wire.h"

struct attribute_list;
struct batch;
struct budget;

/* Field numbers, the same in all three signals: of Resource… and Scope… messages, of Resource, and
 * of InstrumentationScope. */
enum {
    RECORDS_RESOURCES = 1,
    RECORDS_HEAD = 1, /* Resource… : resource; Scope… : scope */
    RECORDS_CHILDREN = 2,
    RESOURCE_ATTRIBUTES = 1,
    SCOPE_NAME = 1,
    SCOPE_VERSION = 2,
    SCOPE_ATTRIBUTES = 3,
};

enum record_level { RECORD_RESOURCE, RECORD_SCOPE };

struct record_edit {
    struct splice_list splices;
    struct budget *budget;
    /* The request at hand. */
    struct batch *batch;   /* borrowed */
    struct batch *whole;   /* the same in one part */
    uint64_t dropped;      /* items that the visitor has left out */
    uint64_t missed_bytes; /* what the last refused change needed; UINT64_MAX: no message may be as
                              large as it would make the request */
    uint64_t written_max;  /* set by the owner: what one that repeats parts of the request may write
                              before it gives up, so that the helper does it; and the work of one
                              that remembers what it has seen (struct record_needs) */
    const struct lane *lane; /* set by the owner: it gives up, too, once this has been held for
                                LANE_EDIT_NS, unless the visitor remembers what it has seen. NULL:
                                it may take long */
    size_t steps;            /* since it looked at the clock */
    uint64_t reread_bytes;   /* by record_edit_rereads */
    uint64_t expected_bytes; /* `written` of the needs of a visitor that remembers */
    bool may_give_up;
    bool is_long;    /* it has given up; nothing is changed */
    bool may_exceed; /* the budget's limit: the client has got its response */
    bool has_failed; /* there is no room; nothing more is changed */
};

/* What a request takes from a visitor that remembers what it has seen. Bytes. */
struct record_needs {
    uint64_t at_once; /* the visitor's own memory, for the largest of the messages */
    uint64_t written; /* memory for the changes, as far as they can be told before */
    uint64_t work;    /* what is read and written at most */
};

/* What an edit does at each message, in the order of the bytes. */
struct record_visitor {
    void *arg;
    /* A Resource… or Scope… message, before what is inside. NULL: nothing. */
    void (*enter)(void *arg, struct record_edit *edit, enum record_level level,
                  struct slice content);
    /* Asked after enter. False: the message is left out with all that is inside, whose items the
     * visitor has counted in edit->dropped. NULL: it stays. */
    bool (*takes)(void *arg, struct record_edit *edit, enum record_level level,
                  struct slice content);
    /* Its Resource or InstrumentationScope; may change it. NULL: nothing. */
    void (*head)(void *arg, struct record_edit *edit, enum record_level level,
                 const struct wire_field *field);
    /* A Span, LogRecord or Metric; may change it. False: it is left out, and the visitor has
     * counted its items in edit->dropped. */
    bool (*record)(void *arg, struct record_edit *edit, const struct wire_field *field);
    /* Of a visitor that remembers what it has seen: what the request takes. Others: NULL. */
    void (*needs)(void *arg, struct slice request, struct record_needs *ret_needs);
    bool drops_empty; /* Scope… messages without records, then Resource… messages without scopes */
};

void record_edit_init(struct record_edit *edit, struct budget *budget);
void record_edit_fini(struct record_edit *edit);
/* Walks through batch. Returns a new reference: to batch when nothing has changed, else to an
 * edited copy; its items are those of batch without the dropped ones. NULL: the budget has no room
 * for the changes. */
struct batch *record_edit_run(struct record_edit *edit, struct batch *batch,
                              const struct record_visitor *visitor);
/* The same for visitors that remember what they have seen, and so cannot begin anew: before the
 * first call but `needs`, the request is refused for lack of room, or left to the helper, or not at
 * all. What it needs is reserved in the budget meanwhile. */
struct batch *record_edit_run_on(struct record_edit *edit, struct batch *batch,
                                 const struct record_visitor *visitor);
/* For such visitors, before they change a record: whether there is room for so many bytes in so
 * many changes, either expected or free in the budget. If not, they leave the record out. */
bool record_edit_has_room(const struct record_edit *edit, size_t changes, uint64_t bytes);
/* For edits that write all of the request anew: begin gives `whole` (unless the batch is empty),
 * end takes it back. False: the budget has no room. */
bool record_edit_begin(struct record_edit *edit, struct batch *batch);
void record_edit_end(struct record_edit *edit);
/* Whether a request that is grouped anew may become so many bytes. */
bool record_may_grow(const struct batch *batch, uint64_t bytes);
/* Asked at each step of a walk, as for each record, data point or attribute. False: the edit has
 * failed, or gives up (`lane`); nothing that the visitor does has an effect any more. */
bool record_edit_goes_on(struct record_edit *edit);
/* The same before so many bytes are read that other records share and that were read for them
 * already. The edit also fails, for good, when that comes to more than RECORD_REREAD_FACTOR_MAX
 * times the request beyond RECORD_REREAD_BYTES_MIN. */
bool record_edit_rereads(struct record_edit *edit, uint64_t bytes);
/* The same before work on a text of which each byte may take hundreds of nanoseconds: on a lane it
 * also gives up if the text is longer than RECORD_LANE_TEXT_BYTES_MAX. */
bool record_edit_goes_into(struct record_edit *edit, struct slice text);
/* True when the refused edit takes more than the whole budget. */
bool record_edit_never_fits(const struct record_edit *edit);

/* ---- Changes, at ascending places ---- */

/* A message that has changes inside; close it after them. Messages nest. */
size_t record_open(struct record_edit *edit, const struct wire_field *message);
void record_close(struct record_edit *edit, size_t opened, const struct wire_field *message);
/* Forgets all changes inside, and leaves the message out. */
void record_drop(struct record_edit *edit, size_t opened, const struct wire_field *message);
/* Forgets all changes inside. */
void record_forget(struct record_edit *edit, size_t opened);
void record_remove(struct record_edit *edit, struct slice old);
/* Replaces old, which may be empty, by `bytes` bytes that the caller writes into the result, all of
 * them and at once. NULL: there is no room, edit->has_failed is set. */
uint8_t *record_replace(struct record_edit *edit, struct slice old, size_t bytes);
/* Replaces a varint or fixed64 field by one with another value; where found.whole is empty, inserts
 * it there. */
void record_put_number(struct record_edit *edit, struct slice old, uint32_t number, uint64_t value);
void record_put_fixed64(struct record_edit *edit, struct slice old, uint32_t number,
                        uint64_t value);
/* Replaces old by the list's attributes as field `number`. */
void record_replace_attributes(struct record_edit *edit, struct slice old, uint32_t number,
                               const struct attribute_list *list);
/* A new value of a field of a message. */
enum record_value_kind {
    RECORD_GONE,
    RECORD_FIXED64,
    RECORD_VARINT,
    RECORD_BYTES,
};
struct record_value {
    uint32_t number;
    enum record_value_kind kind;
    uint64_t bits;      /* FIXED64, VARINT */
    struct slice bytes; /* BYTES */
};
/* Gives the fields of the open message with that content their new values, where they are or at its
 * end; at most RECORD_VALUES_MAX. Numbers occur once. */
enum { RECORD_VALUES_MAX = 32 };
void record_put_values(struct record_edit *edit, struct slice content,
                       const struct record_value *values, size_t count);
/* Makes the list the attributes (field `number`) of the open message with that content: where its
 * first one is, or at its end. Does nothing unless the list has changed. */
void record_put_attributes(struct record_edit *edit, struct slice content, uint32_t number,
                           const struct attribute_list *list);

/* ---- Reading ---- */

/* Fills the list with the attributes (field `number`) of a message. */
void record_read_attributes(struct record_edit *edit, struct slice content, uint32_t number,
                            struct attribute_list *list);
/* The same of all Resource or InstrumentationScope fields of a Resource… or Scope… message. */
void record_read_head_attributes(struct record_edit *edit, struct slice content, uint32_t number,
                                 struct attribute_list *list);
/* Notes a list's lack of memory in the edit. True when the list can be used. */
bool record_list_is_whole(struct record_edit *edit, const struct attribute_list *list);
