/* SPDX-License-Identifier: Apache-2.0 */
/* A question that is being answered, and what all answers use. On the explore worker. */
#pragma once

#include "src/explore/explore_data.h"
#include "src/explore/explore_json.h"
#include "src/explore/explore_query.h"
#include "src/explore/trace_query.h"

struct asking {
    struct explore_data *data;
    const struct explore_query *query;
    struct slice id; /* of the path, decoded from hexadecimal by who answers */
    struct slice part;
    struct explore_limit limit;
    struct json_output out;
    unsigned status; /* 200, or of the error */
    char reason[FILTER_REASON_BYTES_MAX];
    char *disposition; /* of a file, 128 bytes */
    const char *type;
};

/* Of EXPLORE_RESPONSE_BYTES_MAX. */
#define TOO_LARGE_REASON "the answer is larger than 64 MiB: ask for less"

/* Makes the answer an error. */
void asking_fail(struct asking *asking, unsigned status, const char *reason);
void asking_fail_by(struct asking *asking, enum explore_result result);
/* Room for the rows of any block; NULL: no memory, and the answer is that error. */
struct span_row *asking_rows(struct asking *asking);
/* A number of the query; the standard if it is absent. More than most is an error. */
uint64_t asking_number(struct asking *asking, const char *key, uint64_t standard, uint64_t most);

/* The waterfall of that trace; NULL: the answer is an error. */
struct trace_view *asking_view(struct asking *asking, const uint8_t id[static 16]);

/* Each writes its answer to out, or fails. */
void answer_services(struct asking *asking);
void answer_traces(struct asking *asking);
void answer_scatter(struct asking *asking);
void answer_spans(struct asking *asking);
void answer_live(struct asking *asking);
void answer_trace(struct asking *asking);
void answer_rows(struct asking *asking);
void answer_find(struct asking *asking);
void answer_span(struct asking *asking);
void answer_flame(struct asking *asking);
void answer_diff(struct asking *asking);
void answer_download(struct asking *asking);
void answer_folded(struct asking *asking);
void answer_pprof(struct asking *asking);
