/* SPDX-License-Identifier: Apache-2.0 */
/* Which service runs in a process: by every name of a process, on one lane and on several, and not
 * at all where two have the same name. */
#include "src/join/index/process_table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "src/join/index/resource_facts.h"
#include "src/join/index/span_index.h"
#include "src/join/join_limits.h"
#include "src/otlp/wire.h"

enum { ROOM = 1024, LANES = 2 };

#define NOW (1000 * (uint64_t)NS_PER_S)

struct fixture {
    struct span_index index;
    struct process_table table;
};

static void setup(struct fixture *f)
{
    assert_true(span_index_init(&f->index, LANES, 1000, LANES * SPAN_SHARD_BYTES_MIN));
    assert_true(process_table_init(&f->table, &f->index));
}

static void teardown(struct fixture *f)
{
    process_table_fini(&f->table);
    span_index_fini(&f->index);
}

static void put_text(struct wire_writer *out, const char *key, const char *text)
{
    uint8_t value_room[128];
    uint8_t room[256];
    struct wire_writer value = wire_writer_of(value_room, sizeof(value_room));
    struct wire_writer attribute = wire_writer_of(room, sizeof(room));
    wire_write_bytes(&value, 1, slice_of_text(text));
    wire_write_bytes(&attribute, 1, slice_of_text(key));
    wire_write_bytes(&attribute, 2, wire_written(&value));
    wire_write_bytes(out, 1, wire_written(&attribute));
}

/* Key, text, … up to NULL. The facts borrow from room. */
static struct resource_facts facts_of(const char *const *pairs, uint8_t room[ROOM])
{
    struct wire_writer content = wire_writer_of(room, ROOM);
    for (; *pairs != NULL; pairs += 2)
        put_text(&content, pairs[0], pairs[1]);
    assert_false(content.has_failed);
    return resource_facts_of(wire_written(&content));
}

static void add(struct fixture *f, unsigned lane, const char *const *pairs, uint64_t now_ns)
{
    uint8_t room[ROOM];
    struct resource_facts facts = facts_of(pairs, room);
    process_table_add(&f->table, lane, &facts, now_ns);
}

/* The name of the service that is found; empty: none. */
static const char *find(const struct fixture *f, const char *const *pairs, uint64_t now_ns)
{
    static char name[64];
    struct process_found found;
    struct slice key_value;
    uint8_t room[ROOM];
    struct resource_facts facts = facts_of(pairs, room);
    name[0] = '\0';
    if (!process_table_find(&f->table, &facts, now_ns, &found))
        return name;
    assert_true(record_next(&found.attributes, &key_value));
    struct wire_reader reader = wire_reader_of(key_value);
    struct wire_field field;
    while (wire_next_field(&reader, &field))
        if (field.number == 2)
            snprintf(name, sizeof(name), "%.*s", (int)field.bytes.size - 2, field.bytes.data + 2);
    return name;
}

#define PAIRS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void a_process_is_found_by_container_pod_or_host_and_pid(void **state)
{
    static const struct {
        const char *const pairs[5];
        const char *service;
    } rows[] = {
        {{"container.id", "c1"}, "in container"},
        {{"container.id", "c2"}, ""},
        {{"k8s.pod.uid", "p1", "k8s.container.name", "app"}, "in pod"},
        {{"k8s.pod.uid", "p1", "k8s.container.name", "sidecar"}, ""},
        {{"k8s.pod.uid", "p1"}, "in pod"},
        {{"k8s.pod.uid", "p2"}, "in some container"},
        {{"k8s.pod.uid", "p2", "k8s.container.name", "app"}, "in some container"},
        {{"host.id", "h1", "process.pid", "7"}, "on host"},
        {{"host.name", "h1", "process.pid", "7"}, ""},
        {{"host.id", "h1"}, ""},
        {{"process.pid", "7"}, ""},
        {{"container.id", "c3"}, ""},
    };
    struct fixture f;
    (void)state;
    setup(&f);
    add(&f, 0, PAIRS("service.name", "in container", "container.id", "c1"), NOW);
    add(&f, 1, PAIRS("service.name", "in pod", "k8s.pod.uid", "p1", "k8s.container.name", "app"),
        NOW);
    add(&f, 0, PAIRS("service.name", "in some container", "k8s.pod.uid", "p2"), NOW);
    add(&f, 1, PAIRS("service.name", "on host", "host.id", "h1", "process.pid", "7"), NOW);
    add(&f, 0, PAIRS("service.name", "unknown_service:java", "container.id", "c3"), NOW);
    add(&f, 0, PAIRS("service.name", "", "container.id", "c3"), NOW);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        assert_string_equal(find(&f, rows[i].pairs, NOW), rows[i].service);
    teardown(&f);
}

/* On one lane, then with each service on a lane of its own. */
static void of_two_services_with_one_name_neither_is_found(void **state)
{
    (void)state;
    for (unsigned lane = 0; lane < LANES; lane++) {
        const char *const *place = PAIRS("container.id", "c1");
        uint64_t now_ns = NOW;
        struct fixture f;
        setup(&f);
        add(&f, 0, PAIRS("service.name", "old", "container.id", "c1"), now_ns);
        assert_string_equal(find(&f, place, now_ns), "old");
        add(&f, lane, PAIRS("service.name", "new", "container.id", "c1"), now_ns);
        assert_string_equal(find(&f, place, now_ns), "");
        /* Another name may still be certain. */
        add(&f, 0, PAIRS("service.name", "old", "host.id", "h", "process.pid", "1"), now_ns);
        assert_string_equal(
            find(&f, PAIRS("container.id", "c1", "host.id", "h", "process.pid", "1"), now_ns),
            "old");
        /* One of them has ended. */
        now_ns += JOIN_WARM_UP_NS + 2 * (uint64_t)NS_PER_S;
        add(&f, lane, PAIRS("service.name", "new", "container.id", "c1"), now_ns);
        assert_string_equal(find(&f, place, now_ns), "new");
        teardown(&f);
    }
}

static bool has_instances(const struct fixture *f, uint64_t now_ns)
{
    struct process_found found;
    uint8_t room[ROOM];
    struct resource_facts facts = facts_of(PAIRS("container.id", "c1"), room);
    assert_true(process_table_find(&f->table, &facts, now_ns, &found));
    return found.has_instances;
}

static void several_instances_of_a_service_are_still_that_service(void **state)
{
    (void)state;
    for (unsigned lane = 0; lane < LANES; lane++) {
        static const char key[] = "service.instance.id";
        uint64_t later_ns = NOW + JOIN_WARM_UP_NS + 2 * (uint64_t)NS_PER_S;
        struct fixture f;
        setup(&f);
        for (unsigned i = 0; i < 2; i++) {
            add(&f, 0, PAIRS("service.name", "shop", "container.id", "c1", key, "1"), NOW);
            assert_false(has_instances(&f, NOW));
        }
        add(&f, lane, PAIRS("service.name", "shop", "container.id", "c1", key, "2"), NOW);
        assert_true(has_instances(&f, NOW));
        add(&f, lane, PAIRS("service.name", "shop", "container.id", "c1", key, "2"), later_ns);
        assert_false(has_instances(&f, later_ns));
        teardown(&f);
    }
}

/* By whatever name: no other is more certain. */
static void a_doubtful_name_is_not_guessed(void **state)
{
    static const char *const places[][5] = {
        {"container.id", "c"},
        {"k8s.pod.uid", "p", "k8s.container.name", "app"},
        {"k8s.pod.uid", "p"},
        {"host.id", "h", "process.pid", "1"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        const char *const *p = places[i];
        struct fixture f;
        setup(&f);
        add(&f, 0, PAIRS("service.name", "one", p[0], p[1], p[2], p[3]), NOW);
        assert_string_equal(find(&f, p, NOW), "one");
        add(&f, 0, PAIRS("service.name", "two", p[0], p[1], p[2], p[3]), NOW);
        assert_string_equal(find(&f, p, NOW), "");
        teardown(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_process_is_found_by_container_pod_or_host_and_pid),
        cmocka_unit_test(of_two_services_with_one_name_neither_is_found),
        cmocka_unit_test(a_doubtful_name_is_not_guessed),
        cmocka_unit_test(several_instances_of_a_service_are_still_that_service),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
