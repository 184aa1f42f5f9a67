/* SPDX-License-Identifier: Apache-2.0 */
/* Pairing of halves, what becomes of those without the other one, the limits of edges, series and
 * memory, and the start times of series that come back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "connectors/service_graph/graph_store.h"
#include "src/base/budget.h"
#include "src/base/limits.h"
#include "src/base/mem.h"

#define S    ((uint64_t)NS_PER_S)
#define WALL ((uint64_t)1700000000 * NS_PER_S)

static const double bounds[] = {0.002, 0.004, 0.006, 0.008, 0.01, 0.05, 0.1, 0.2,
                                0.4,   0.8,   1,     1.4,   2,    5,    10,  15};
enum { BOUNDS = sizeof(bounds) / sizeof(bounds[0]) };

struct fixture {
    struct budget budget;
    struct graph_store store;
    struct graph_figures figures;
    uint64_t now_ns;
};

static struct graph_settings standard(void)
{
    return (struct graph_settings){
        .dimensions_count = 2,
        .bounds = bounds,
        .bounds_count = BOUNDS,
        .has_virtual_nodes = true,
        .ttl_ns = 2 * S,
        .edges_max = 1000,
        .series_max = 10000,
    };
}

static struct fixture *fixture_create(const struct graph_settings *settings)
{
    static struct fixture fixture;
    fixture = (struct fixture){.now_ns = 100 * S};
    clock_fake_start(fixture.now_ns, WALL);
    budget_init(&fixture.budget, UINT64_MAX);
    graph_store_init(&fixture.store, settings, &fixture.budget);
    return &fixture;
}

static void fixture_destroy(struct fixture *f)
{
    graph_store_clear(&f->store);
    assert_int_equal(budget_used(&f->budget), 0);
    budget_fini(&f->budget);
    clock_fake_stop();
}

static struct graph_word word(const struct fixture *f, const char *text)
{
    struct slice bytes = slice_of_text(text);
    return (struct graph_word){.bytes = bytes, .hash = graph_hash(&f->store, bytes)};
}

static struct graph_half client(const struct fixture *f, uint64_t span, const char *service)
{
    return (struct graph_half){
        .trace = {7, 8},
        .span = span,
        .latency_ns = 3 * NS_PER_MS,
        .service = word(f, service),
        .peer_rank = GRAPH_NO_PEER,
        .is_client = true,
    };
}

static struct graph_half server(const struct fixture *f, uint64_t parent, const char *service)
{
    struct graph_half half = client(f, parent, service);
    half.latency_ns = 1 * NS_PER_MS;
    half.is_client = false;
    return half;
}

static void add(struct fixture *f, struct graph_half half)
{
    graph_store_add(&f->store, &half, 1, f->now_ns, &f->figures);
}

static void expire(struct fixture *f)
{
    assert_false(graph_store_expire(&f->store, f->now_ns, 1000, &f->figures));
}

static bool is_text(const struct graph_text *text, const char *wanted)
{
    return slice_equal_text(slice_of(text->bytes, text->size), wanted);
}

/* The only series. */
static struct graph_series *only(const struct fixture *f)
{
    size_t at = 0;
    struct graph_series *series = graph_store_next(&f->store, &at);
    assert_non_null(series);
    assert_null(graph_store_next(&f->store, &at));
    return series;
}

static struct graph_series *find(const struct fixture *f, const char *from, const char *to)
{
    size_t at = 0;
    struct graph_series *series;
    while ((series = graph_store_next(&f->store, &at)) != NULL)
        if (series->client != NULL && is_text(series->client, from) && is_text(series->server, to))
            return series;
    fail_msg("no series from %s to %s", from, to);
    return NULL;
}

static void both_halves_make_an_edge_in_either_order(void **state)
{
    (void)state;
    struct graph_settings settings = standard();
    struct fixture *f = fixture_create(&settings);
    struct graph_half failed = server(f, 2, "b");
    failed.is_failed = true;
    add(f, client(f, 1, "a"));
    assert_int_equal(f->store.series_count, 0);
    add(f, server(f, 1, "b"));
    struct graph_series *series = only(f);
    assert_true(is_text(series->client, "a"));
    assert_true(is_text(series->server, "b"));
    assert_int_equal(series->connection, CONNECTION_UNKNOWN);
    assert_int_equal(series->requests, 1);
    assert_int_equal(series->failed, 0);
    assert_int_equal(graph_series_counts(&settings, series, GRAPH_SERVER)[0], 1); /* 1 ms */
    assert_int_equal(graph_series_counts(&settings, series, GRAPH_CLIENT)[1], 1); /* 3 ms */
    assert_true(series->sums[GRAPH_SERVER] == 0.001);
    assert_true(series->sums[GRAPH_CLIENT] == 0.003);
    add(f, failed);
    add(f, client(f, 2, "a"));
    assert_int_equal(f->store.series_count, 2); /* failed requests have their own */
    assert_int_equal(f->figures.edges, 2);
    assert_int_equal(f->store.edges_count, 0);
    add(f, server(f, 3, "b"));
    add(f, client(f, 3, "a"));
    assert_int_equal(f->store.series_count, 2);
    fixture_destroy(f);
}

static void a_database_needs_no_server(void **state)
{
    (void)state;
    struct graph_settings settings = standard();
    struct fixture *f = fixture_create(&settings);
    struct graph_half half = client(f, 1, "a");
    half.has_database = true;
    half.database = word(f, "orders");
    add(f, half);
    struct graph_series *series = only(f);
    assert_true(is_text(series->server, "orders"));
    assert_int_equal(series->connection, CONNECTION_DATABASE);
    assert_true(series->sums[GRAPH_SERVER] == 0.003);
    /* A database without a name is not known. */
    half.span = 2;
    half.database = word(f, "");
    add(f, half);
    assert_int_equal(only(f)->requests, 1);
    assert_int_equal(f->store.edges_count, 1);
    fixture_destroy(f);
}

static void messages_join_producer_and_consumer(void **state)
{
    (void)state;
    struct graph_settings settings = standard();
    struct fixture *f = fixture_create(&settings);
    struct graph_half producer = client(f, 1, "a");
    struct graph_half consumer = server(f, 1, "b");
    producer.is_messaging = true;
    consumer.is_messaging = true;
    add(f, producer);
    add(f, consumer);
    assert_int_equal(only(f)->connection, CONNECTION_MESSAGING);
    fixture_destroy(f);
}

static void what_waited_too_long_gets_a_virtual_node(void **state)
{
    (void)state;
    struct graph_settings settings = standard();
    struct fixture *f = fixture_create(&settings);
    struct graph_half with_peer = client(f, 2, "b");
    with_peer.peer = word(f, "mail");
    with_peer.peer_rank = 1;
    add(f, client(f, 1, "a"));
    add(f, with_peer);
    with_peer.peer = word(f, "smtp");
    with_peer.peer_rank = 2; /* a later name does not replace an earlier one */
    add(f, with_peer);
    add(f, server(f, 0, "root"));
    add(f, server(f, 3, "orphan"));
    f->now_ns += 2 * S;
    expire(f);
    assert_int_equal(f->figures.expired, 0); /* exactly the ttl is not too long */
    f->now_ns += 1;
    expire(f);
    assert_int_equal(f->figures.expired, 4);
    assert_int_equal(f->store.edges_count, 0);
    assert_int_equal(f->store.series_count, 3);
    assert_int_equal(find(f, "a", "unknown")->virtual_node, VIRTUAL_SERVER);
    assert_int_equal(find(f, "b", "mail")->connection, CONNECTION_VIRTUAL_NODE);
    assert_int_equal(find(f, "user", "root")->virtual_node, VIRTUAL_CLIENT);
    fixture_destroy(f);
}

static void virtual_nodes_can_be_switched_off(void **state)
{
    (void)state;
    struct graph_settings settings = standard();
    settings.has_virtual_nodes = false;
    struct fixture *f = fixture_create(&settings);
    add(f, client(f, 1, "a"));
    add(f, server(f, 0, "root"));
    f->now_ns += 3 * S;
    expire(f);
    assert_int_equal(f->figures.expired, 2);
    assert_int_equal(f->store.series_count, 0);
    fixture_destroy(f);
}

static void expired_edges_make_room_and_others_do_not(void **state)
{
    (void)state;
    struct graph_settings settings = standard();
    settings.edges_max = 3;
    struct fixture *f = fixture_create(&settings);
    for (uint64_t i = 1; i <= 4; i++)
        add(f, client(f, i, "a"));
    assert_int_equal(f->figures.dropped, 1);
    assert_int_equal(f->figures.edges, 3);
    assert_int_equal(f->store.edges_count, 3);
    add(f, server(f, 2, "b")); /* completes one of them */
    assert_int_equal(f->store.edges_count, 2);
    f->now_ns += 3 * S;
    add(f, client(f, 5, "a"));
    add(f, client(f, 6, "a"));
    assert_int_equal(f->figures.expired, 1);
    assert_int_equal(f->figures.dropped, 1);
    assert_int_equal(f->store.edges_count, 3);
    fixture_destroy(f);
}

static void traces_keep_apart_and_a_span_that_comes_twice_counts_once(void **state)
{
    (void)state;
    struct graph_settings settings = standard();
    struct fixture *f = fixture_create(&settings);
    struct graph_half other = server(f, 1, "b");
    other.trace[1]++;
    add(f, client(f, 1, "a"));
    add(f, client(f, 1, "a"));
    add(f, other);
    assert_int_equal(f->store.series_count, 0);
    assert_int_equal(f->store.edges_count, 2);
    assert_int_equal(f->figures.edges, 2);
    add(f, server(f, 1, "b"));
    assert_int_equal(only(f)->requests, 1);
    fixture_destroy(f);
}

static struct graph_word record(const struct fixture *f, uint8_t *room, const char *first,
                                const char *second)
{
    const struct slice none = {.data = NULL};
    size_t size = graph_dimension_write(room, first != NULL ? slice_of_text(first) : none);
    size += graph_dimension_write(room + size, second != NULL ? slice_of_text(second) : none);
    struct slice bytes = slice_of(room, size);
    return (struct graph_word){.bytes = bytes, .hash = graph_hash(&f->store, bytes)};
}

static void dimensions_of_both_halves_are_part_of_the_series(void **state)
{
    (void)state;
    struct graph_settings settings = standard();
    struct fixture *f = fixture_create(&settings);
    char long_value[301];
    uint8_t rooms[3][1024];
    memset(long_value, 'x', sizeof(long_value) - 1);
    long_value[300] = '\0';
    struct graph_half first = client(f, 1, "a");
    struct graph_half again = first;
    struct graph_half last = server(f, 1, "b");
    first.dimensions = record(f, rooms[0], "one", "two");
    again.dimensions = record(f, rooms[1], NULL, ""); /* what it lacks stays */
    last.dimensions = record(f, rooms[2], long_value, NULL);
    add(f, first);
    add(f, again);
    add(f, last);
    const struct graph_series *series = only(f);
    struct slice ours = slice_of(series->client_dimensions->bytes, series->client_dimensions->size);
    struct slice theirs =
        slice_of(series->server_dimensions->bytes, series->server_dimensions->size);
    size_t at = 0;
    assert_true(slice_equal_text(graph_dimension_read(ours, &at), "one"));
    struct slice empty = graph_dimension_read(ours, &at);
    assert_non_null(empty.data);
    assert_int_equal(empty.size, 0);
    at = 0;
    assert_true(slice_equal_text(graph_dimension_read(theirs, &at), long_value));
    assert_null(graph_dimension_read(theirs, &at).data);
    first.span = 2;
    last.span = 2;
    add(f, first);
    add(f, last);
    assert_int_equal(f->store.series_count, 2);
    fixture_destroy(f);
}

static void add_edge(struct fixture *f, uint64_t i)
{
    char name[32];
    snprintf(name, sizeof(name), "service %llu", (unsigned long long)i);
    add(f, client(f, i, name));
    add(f, server(f, i, "b"));
}

static void series_beyond_the_limit_are_counted_in_one(void **state)
{
    (void)state;
    struct graph_settings settings = standard();
    settings.series_max = 5;
    struct fixture *f = fixture_create(&settings);
    for (unsigned round = 0; round < 3; round++)
        for (uint64_t i = 1; i <= 20; i++)
            add_edge(f, i);
    uint64_t requests = 0;
    size_t at = 0;
    for (const struct graph_series *s; (s = graph_store_next(&f->store, &at)) != NULL;)
        requests += s->requests;
    assert_int_equal(f->store.series_count, 6);
    assert_int_equal(requests, 60);
    assert_null(f->store.overflow->client);
    assert_int_equal(f->store.overflow->requests, 45);
    fixture_destroy(f);
}

static void old_series_are_forgotten_and_begin_anew(void **state)
{
    (void)state;
    struct graph_settings settings = standard();
    settings.series_max = 2;
    struct fixture *f = fixture_create(&settings);
    size_t at = 0;
    for (uint64_t i = 1; i <= 3; i++)
        add_edge(f, i);
    assert_int_equal(find(f, "service 1", "b")->start_ns, WALL);
    f->now_ns += GRAPH_SERIES_KEEP_NS;
    add_edge(f, 1);
    assert_false(graph_store_clean(&f->store, f->now_ns, WALL + 900 * S, &at, 100));
    assert_int_equal(f->store.series_count, 3); /* exactly that long is not too long */
    at = 0;
    f->now_ns += 1;
    assert_true(graph_store_clean(&f->store, f->now_ns, WALL + 900 * S, &at, 1));
    assert_false(graph_store_clean(&f->store, f->now_ns, WALL + 900 * S, &at, 100));
    assert_int_equal(f->store.series_count, 1); /* the overflow series went, too */
    assert_null(f->store.overflow);
    assert_int_equal(find(f, "service 1", "b")->start_ns, WALL);
    add_edge(f, 2);
    assert_int_equal(find(f, "service 2", "b")->start_ns, WALL + 900 * S);
    assert_int_equal(find(f, "service 2", "b")->requests, 1);
    f->now_ns += GRAPH_SERIES_KEEP_NS + 1;
    at = 0;
    assert_false(graph_store_clean(&f->store, f->now_ns, WALL + 1800 * S, &at, 100));
    assert_int_equal(f->store.series_count, 0);
    assert_int_equal(f->store.series_slab.chunks_count, 0);
    assert_int_equal(f->store.edge_slab.chunks_count, 0);
    fixture_destroy(f);
}

/* A lane reads its clock before it has the lock: another may have counted since. */
static void series_updated_after_the_clean_began_stay(void **state)
{
    (void)state;
    struct graph_settings settings = standard();
    struct fixture *f = fixture_create(&settings);
    const uint64_t begin_ns = f->now_ns;
    size_t at = 0;
    f->now_ns += 1;
    add_edge(f, 1);
    assert_false(graph_store_clean(&f->store, begin_ns, WALL, &at, 100));
    assert_int_equal(f->store.series_count, 1);
    fixture_destroy(f);
}

static void exponential_histograms_replace_buckets(void **state)
{
    (void)state;
    struct graph_settings settings = standard();
    settings.exponential_max = 160;
    struct fixture *f = fixture_create(&settings);
    for (uint64_t i = 1; i <= 200; i++) {
        struct graph_half half = client(f, i, "a");
        half.latency_ns = i * i * NS_PER_MS;
        add(f, half);
        add(f, server(f, i, "b"));
    }
    const struct exponential_histogram *histogram = graph_series_exponential(only(f), GRAPH_CLIENT);
    assert_int_equal(histogram->count, 200);
    assert_true(histogram->max == 40);
    assert_int_equal(graph_series_exponential(only(f), GRAPH_SERVER)->count, 200);
    fixture_destroy(f);
}

/* Names included, which each series has one of here. */
static void a_series_takes_few_bytes(void **state)
{
    (void)state;
    enum { SERIES = 6144, SERIES_BYTES = 400 };
    struct graph_settings settings = standard();
    struct fixture *f = fixture_create(&settings);
    char names[2][16];
    for (unsigned i = 0; i < SERIES; i++) {
        snprintf(names[0], sizeof(names[0]), "s%u", i % 64);
        snprintf(names[1], sizeof(names[1]), "s%u", i / 64);
        add(f, client(f, i + 1, names[0]));
        add(f, server(f, i + 1, names[1]));
    }
    assert_int_equal(f->store.series_count, SERIES);
    uint64_t bytes = budget_used(&f->budget) / SERIES;
    assert_in_range(bytes, 300, SERIES_BYTES);
    fixture_destroy(f);
}

/* Something of everything. Returns what was dropped. */
static uint64_t work_through(struct fixture *f)
{
    uint8_t rooms[2][64];
    struct graph_half half;
    size_t at = 0;
    for (uint64_t i = 1; i <= 100; i++) {
        half = client(f, i, "a");
        half.dimensions = record(f, rooms[0], "one", NULL);
        add(f, half);
        half.dimensions = record(f, rooms[1], NULL, "two");
        half.peer = word(f, "peer");
        half.peer_rank = 0;
        add(f, half);
        if (i % 2 == 0)
            add_edge(f, i);
    }
    add(f, server(f, 0, "root"));
    f->now_ns += 10 * S;
    expire(f);
    f->now_ns += 2 * GRAPH_SERIES_KEEP_NS;
    graph_store_clean(&f->store, f->now_ns, WALL, &at, 10);
    return f->figures.dropped;
}

static void each_refused_allocation_costs_spans_and_nothing_else(void **state)
{
    (void)state;
    for (unsigned exponential = 0; exponential < 2; exponential++) {
        struct graph_settings settings = standard();
        settings.exponential_max = exponential > 0 ? 20 : 0;
        struct fixture *f = fixture_create(&settings);
        uint64_t tries = mem_tries();
        assert_int_equal(work_through(f), 0);
        tries = mem_tries() - tries;
        assert_in_range(tries, 20, 10000);
        fixture_destroy(f);
        uint64_t dropped = 0;
        for (uint64_t n = 1; n <= tries; n++) {
            f = fixture_create(&settings);
            mem_refuse_nth(n);
            dropped += work_through(f);
            mem_refuse_nth(0);
            fixture_destroy(f);
        }
        assert_true(dropped > 0);
    }
}

static void the_budget_bounds_everything(void **state)
{
    (void)state;
    struct graph_settings settings = standard();
    uint64_t dropped = UINT64_MAX;
    for (uint64_t limit = 0; dropped > 0; limit += 4 * KIB) {
        struct fixture *f = fixture_create(&settings);
        atomic_store(&f->budget.limit, limit);
        dropped = work_through(f);
        assert_true(atomic_load(&f->budget.high_water) <= limit);
        fixture_destroy(f);
        assert_true(limit < 1 * MIB);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_halves_make_an_edge_in_either_order),
        cmocka_unit_test(a_database_needs_no_server),
        cmocka_unit_test(messages_join_producer_and_consumer),
        cmocka_unit_test(what_waited_too_long_gets_a_virtual_node),
        cmocka_unit_test(virtual_nodes_can_be_switched_off),
        cmocka_unit_test(expired_edges_make_room_and_others_do_not),
        cmocka_unit_test(traces_keep_apart_and_a_span_that_comes_twice_counts_once),
        cmocka_unit_test(dimensions_of_both_halves_are_part_of_the_series),
        cmocka_unit_test(series_beyond_the_limit_are_counted_in_one),
        cmocka_unit_test(old_series_are_forgotten_and_begin_anew),
        cmocka_unit_test(series_updated_after_the_clean_began_stay),
        cmocka_unit_test(exponential_histograms_replace_buckets),
        cmocka_unit_test(a_series_takes_few_bytes),
        cmocka_unit_test(each_refused_allocation_costs_spans_and_nothing_else),
        cmocka_unit_test(the_budget_bounds_everything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
