/* SPDX-License-Identifier: Apache-2.0 */
/* What the signals' text forms share: reading a message's fields in any order, and writing values,
 * attributes, ids and times as Go does. Only for src/otlp/text. */
#pragma once

#include <stdint.h>

#include "src/otlp/text/text_buffer.h"
#include "src/otlp/wire.h"

/* The last occurrence of each field numbered below MESSAGE_FIELDS; all zero when absent. */
enum { MESSAGE_FIELDS = 17 };
struct message {
    struct slice bytes;
    struct wire_field fields[MESSAGE_FIELDS];
};

struct message message_of(struct slice bytes);
struct slice message_bytes(const struct message *message, uint32_t number);
uint64_t message_number(const struct message *message, uint32_t number);
double message_double(const struct message *message, uint32_t number);
bool message_has(const struct message *message, uint32_t number);
/* The last of these fields, which is the set member of a oneof; 0: none. */
uint32_t message_last_of(const struct message *message, const uint32_t *numbers, size_t count);
/* Reads the nested message of that number. */
struct message message_in(const struct message *message, uint32_t number);
/* Iterates over the occurrences of a repeated length-delimited field. */
bool message_next(struct wire_reader *reader, uint32_t number, struct slice *ret_bytes);
struct wire_reader message_reader(const struct message *message);
size_t message_count(const struct message *message, uint32_t number);

/* The text form of one signal. */
struct otlp_text_writer {
    const char *resource;       /* "ResourceSpans", normal: "ResourceTraces" */
    const char *scope;          /* "ScopeSpans", normal: "ScopeTraces" */
    const char *scope_detailed; /* and so on */
    const char *resource_detailed;
    /* Each writes one record (span, metric, log record, profile) of a scope. */
    void (*normal)(struct text *text, struct slice record);
    void (*detailed)(struct text *text, struct slice record, size_t index);
};
extern const struct otlp_text_writer otlp_text_traces;
extern const struct otlp_text_writer otlp_text_metrics;
extern const struct otlp_text_writer otlp_text_logs;
extern const struct otlp_text_writer otlp_text_profiles;

/* fmt's %v and %f. */
void text_add_shortest(struct text *text, double number);
void text_add_fixed(struct text *text, double number);
/* Hexadecimal, or nothing when all bytes are zero. */
void text_add_id(struct text *text, struct slice id);
/* "2020-02-11 20:26:12.000000321 +0000 UTC" */
void text_add_time(struct text *text, uint64_t unix_ns);
/* Whole lines: what comes before the value, the value, a line end. */
void text_add_line(struct text *text, const char *head, struct slice value);
void text_add_id_line(struct text *text, const char *head, struct slice id);
void text_add_time_line(struct text *text, const char *head, uint64_t unix_ns);
/* AnyValue: "Str(…)", and the value alone. */
void text_add_typed_value(struct text *text, struct slice bytes);
void text_add_value(struct text *text, struct slice bytes);
/* "key=value" for each attribute of that field, joined. Returns how many. */
size_t text_add_pairs(struct text *text, const struct message *message, uint32_t number,
                      const char *separator);
/* "header:" and a line per attribute, each after prefix; nothing without attributes. */
void text_add_attributes(struct text *text, const char *header, const char *prefix,
                         const struct message *message, uint32_t number);
