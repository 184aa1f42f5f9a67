/* SPDX-License-Identifier: Apache-2.0 */
/* Log records as text. LogRecord: 1 time, 2 severity_number, 3 severity_text, 5 body, 6 attributes,
 * 8 flags, 9 trace_id, 10 span_id, 11 observed time, 12 event_name. Any thread. */
#include "src/otlp/text/text_parts.h"

#include <inttypes.h>

static void normal(struct text *text, struct slice bytes)
{
    struct message record = message_of(bytes);
    text_add_value(text, message_bytes(&record, 5));
    text_add(text, " ");
    text_add_pairs(text, &record, 6, " ");
    text_add(text, "\n");
}

static void detailed(struct text *text, struct slice bytes, size_t index)
{
    static const char *const names[] = {"Trace", "Debug", "Info", "Warn", "Error", "Fatal"};
    struct message record = message_of(bytes);
    text_add(text, "LogRecord #%zu\n", index);
    text_add_time_line(text, "ObservedTimestamp: ", message_number(&record, 11));
    text_add_time_line(text, "Timestamp: ", message_number(&record, 1));
    text_add_line(text, "SeverityText: ", message_bytes(&record, 3));
    /* Trace, Trace2, Trace3, Trace4, Debug … Fatal4; nothing beyond. */
    int32_t severity = (int32_t)message_number(&record, 2);
    text_add(text, "SeverityNumber: ");
    if (severity == 0)
        text_add(text, "Unspecified");
    else if (severity > 0 && severity <= 24 && severity % 4 == 1)
        text_add(text, "%s", names[severity / 4]);
    else if (severity > 0 && severity <= 24)
        text_add(text, "%s%d", names[(severity - 1) / 4], (severity - 1) % 4 + 1);
    text_add(text, "(%" PRId32 ")\n", severity);
    if (message_bytes(&record, 12).size > 0)
        text_add_line(text, "EventName: ", message_bytes(&record, 12));
    text_add(text, "Body: ");
    text_add_typed_value(text, message_bytes(&record, 5));
    text_add(text, "\n");
    text_add_attributes(text, "Attributes", "     ->", &record, 6);
    text_add_id_line(text, "Trace ID: ", message_bytes(&record, 9));
    text_add_id_line(text, "Span ID: ", message_bytes(&record, 10));
    text_add(text, "Flags: %" PRIu32 "\n", (uint32_t)message_number(&record, 8));
}

const struct otlp_text_writer otlp_text_logs = {
    .resource = "ResourceLog",
    .resource_detailed = "ResourceLog",
    .scope = "ScopeLog",
    .scope_detailed = "ScopeLogs",
    .normal = normal,
    .detailed = detailed,
};
