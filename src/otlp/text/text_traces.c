/* SPDX-License-Identifier: Apache-2.0 */
/* Spans as text. Span: 1 trace_id, 2 span_id, 3 trace_state, 4 parent_span_id, 5 name, 6 kind,
 * 7 and 8 times, 9 attributes, 11 events, 13 links, 15 status; 10, 12, 14 what was dropped.
 * Any thread. */
#include "src/otlp/text/text_parts.h"

#include <assert.h>
#include <inttypes.h>

static const char *name_of(const char *const *names, size_t count, uint64_t number)
{
    assert(count > 0);
    return number < count ? names[number] : "";
}

static void normal(struct text *text, struct slice record)
{
    struct message span = message_of(record);
    text_add_slice(text, message_bytes(&span, 5));
    text_add(text, " ");
    text_add_id(text, message_bytes(&span, 1));
    text_add(text, " ");
    text_add_id(text, message_bytes(&span, 2));
    if (message_count(&span, 9) > 0)
        text_add(text, " ");
    text_add_pairs(text, &span, 9, " ");
    text_add(text, "\n");
}

/* Status: 2 message, 3 code. Event: 1 time, 2 name, 3 attributes, 4 dropped. Link: 1 trace_id,
 * 2 span_id, 3 trace_state, 4 attributes, 5 dropped. */
static void detailed(struct text *text, struct slice record, size_t index)
{
    static const char *const kinds[] = {"Unspecified", "Internal", "Server",
                                        "Client",      "Producer", "Consumer"};
    static const char *const codes[] = {"Unset", "Ok", "Error"};
    struct message span = message_of(record);
    struct message status = message_in(&span, 15);
    text_add(text, "Span #%zu\n", index);
    text_add_id_line(text, "    Trace ID       : ", message_bytes(&span, 1));
    text_add_id_line(text, "    Parent ID      : ", message_bytes(&span, 4));
    text_add_id_line(text, "    ID             : ", message_bytes(&span, 2));
    text_add_line(text, "    Name           : ", message_bytes(&span, 5));
    text_add(text, "    Kind           : %s\n",
             name_of(kinds, sizeof(kinds) / sizeof(kinds[0]), message_number(&span, 6)));
    if (message_bytes(&span, 3).size > 0)
        text_add_line(text, "    TraceState     : ", message_bytes(&span, 3));
    text_add_time_line(text, "    Start time     : ", message_number(&span, 7));
    text_add_time_line(text, "    End time       : ", message_number(&span, 8));
    text_add(text, "    Status code    : %s\n",
             name_of(codes, sizeof(codes) / sizeof(codes[0]), message_number(&status, 3)));
    text_add_line(text, "    Status message : ", message_bytes(&status, 2));
    text_add(text, "    DroppedAttributesCount: %" PRIu32 "\n",
             (uint32_t)message_number(&span, 10));
    text_add(text, "    DroppedEventsCount: %" PRIu32 "\n", (uint32_t)message_number(&span, 12));
    text_add(text, "    DroppedLinksCount: %" PRIu32 "\n", (uint32_t)message_number(&span, 14));
    text_add_attributes(text, "Attributes", "     ->", &span, 9);
    struct wire_reader events = message_reader(&span);
    struct slice bytes;
    for (size_t i = 0; !text->is_cut && message_next(&events, 11, &bytes); i++) {
        struct message event = message_of(bytes);
        text_add(text, "%sSpanEvent #%zu\n", i == 0 ? "Events:\n" : "", i);
        text_add_line(text, "     -> Name: ", message_bytes(&event, 2));
        text_add_time_line(text, "     -> Timestamp: ", message_number(&event, 1));
        text_add(text, "     -> DroppedAttributesCount: %" PRIu32 "\n",
                 (uint32_t)message_number(&event, 4));
        text_add_attributes(text, "     -> Attributes:", "          ->", &event, 3);
    }
    struct wire_reader links = message_reader(&span);
    for (size_t i = 0; !text->is_cut && message_next(&links, 13, &bytes); i++) {
        struct message link = message_of(bytes);
        text_add(text, "%sSpanLink #%zu\n", i == 0 ? "Links:\n" : "", i);
        text_add_id_line(text, "     -> Trace ID: ", message_bytes(&link, 1));
        text_add_id_line(text, "     -> ID: ", message_bytes(&link, 2));
        text_add_line(text, "     -> TraceState: ", message_bytes(&link, 3));
        text_add(text, "     -> DroppedAttributesCount: %" PRIu32 "\n",
                 (uint32_t)message_number(&link, 5));
        text_add_attributes(text, "     -> Attributes:", "          ->", &link, 4);
    }
}

const struct otlp_text_writer otlp_text_traces = {
    .resource = "ResourceTraces",
    .resource_detailed = "ResourceSpans",
    .scope = "ScopeTraces",
    .scope_detailed = "ScopeSpans",
    .normal = normal,
    .detailed = detailed,
};
