/* SPDX-License-Identifier: Apache-2.0 */
/* Which traces a filter picks: by what their records say, and by spans of theirs that have a
 * service, a name and attributes (one span has all that is asked for). On the explore worker. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "src/explore/explore_query.h"
#include "src/explore/trace_store.h"

enum { FILTER_ATTRIBUTES_MAX = 8, FILTER_REASON_BYTES_MAX = 256 };

struct trace_filter {
    struct slice service; /* no data: any */
    struct slice name;
    uint64_t min_ns; /* of the trace's duration */
    uint64_t max_ns;
    uint64_t start_ns; /* unix: traces that begin in start <= t < end */
    uint64_t end_ns;
    bool has_errors;
    bool has_profile;
    size_t attributes_count;
    struct {
        struct slice key;
        struct slice value; /* as text */
    } attributes[FILTER_ATTRIBUTES_MAX];
};

/* Slices are the query's. False: reason says what was found and what was expected. */
bool trace_filter_read(struct trace_filter *filter, const struct explore_query *query,
                       char reason[FILTER_REASON_BYTES_MAX]);

/* How long a query may work: CPU time of the calling thread. */
struct explore_limit {
    uint64_t end_ns;
};
struct explore_limit explore_limit_of(uint64_t ns);
bool explore_is_over(const struct explore_limit *limit);
uint64_t explore_cpu_ns(void);

/* Which traces a run is about, and when it has done enough. */
struct trace_search {
    uint64_t after;  /* numbers of traces: after < number < before */
    uint64_t before; /* UINT64_MAX: up to the newest */
    uint64_t enough; /* traces; with them a run that has lasted EXPLORE_SEARCH_NS ends */
};

/* Of a run: a bit for each trace from store->first on. */
struct trace_matches {
    uint64_t first;
    uint64_t next;
    uint64_t *bits;  /* NULL: all records that trace_filter_has picks */
    bool is_partial; /* older blocks were not looked at: there may be more */
};

enum explore_result { EXPLORE_DONE, EXPLORE_NO_MEMORY, EXPLORE_TOO_LONG };

/* Looks at spans if the filter needs that, in the newest blocks first. rows: room for the rows of
 * any block. */
enum explore_result trace_filter_run(const struct trace_filter *filter, struct trace_store *store,
                                     struct span_row *rows, const struct explore_limit *limit,
                                     const struct trace_search *search,
                                     struct trace_matches *ret_matches);
void trace_matches_fini(struct trace_matches *matches);
/* Whether the filter picks that trace. has_profile: whether samples are known of it. */
bool trace_filter_has(const struct trace_filter *filter, const struct trace_matches *matches,
                      const struct trace_record *record, uint64_t number, bool has_profile);
