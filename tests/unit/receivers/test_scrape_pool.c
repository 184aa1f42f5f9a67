/* SPDX-License-Identifier: Apache-2.0 */
/* When targets are scraped and how they come and go, on a fake clock: places in the interval,
 * targets in files, ends, lanes, limits, memory. */
#include "receivers/scrape/scrape_pool.h"

#include "receivers/scrape/scrape_config.h"
#include "src/base/budget.h"
#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/lane.h"
#include "src/base/mem.h"
#include "src/core/component.h"
#include "src/net/syntax/http_url.h"
#include "tests/support/scripted_backend.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum {
    LANES_USED_MAX = 2,
    EVENTS_MAX = 256,
    QUIET_TURNS = 30,
    TURNS_MAX = 100000,
    TEXT_BYTES_MAX = 4096,
    TARGETS_MAX = 8,
};
#define S           ((uint64_t)NS_PER_S)
#define INTERVAL_NS (10 * S)
#define REFRESH_NS  (60 * S)

enum event_kind { SCRAPED, LEFT, OPENED, CLOSED };

struct event {
    enum event_kind kind;
    uint64_t at_ns;
    uint64_t stale_ns;
    unsigned lane;
    char name[32]; /* the target's label name */
};

/* An instance. */
struct receiver {
    struct component base; /* first */
    struct scrape_pool pool;
    struct stop_latch stopping;
    struct scrape_counters counters;
    bool is_stopped;
};

static struct event events[EVENTS_MAX];
static size_t events_count;
static size_t running;
static bool holds; /* responses are not reported as ended */
static struct scrape *held;
static bool marks_ends;
static bool is_silent;
static uint64_t most_left; /* targets that have left in one turn */
static struct budget budget;
static struct lane *lanes[LANES_USED_MAX];
static unsigned lanes_count;
static struct receiver receivers[LANES_USED_MAX];
static struct scripted_backend *backend;
static char directory[64];
static char path[96];
static struct scrape_file_sd_config files;
static struct scrape_static_config statics;
static struct scrape_discovery_config discovery;
static struct scrape_start start;
static struct target_job job;
static struct scrape_http_config http_config;
static struct scrape_http https[LANES_USED_MAX];

static void note(enum event_kind kind, const struct scrape *scrape)
{
    assert_true(events_count < EVENTS_MAX);
    struct event *event = &events[events_count++];
    struct slice name = scrape_target_label(scrape->target, "name");
    event->kind = kind;
    event->at_ns = clock_now_ns();
    event->stale_ns = scrape->stale_ns;
    event->lane = lane_index(scrape->pool->lane);
    snprintf(event->name, sizeof(event->name), "%.*s", (int)name.size, (const char *)name.data);
}

static void on_open(struct scrape *scrape)
{
    note(OPENED, scrape);
}

static void on_due(struct scrape *scrape)
{
    note(SCRAPED, scrape);
    running++;
    scrape_get(scrape, UINT64_MAX);
}

static void on_responded(struct scrape *scrape, const struct http_result *result)
{
    (void)result;
    scrape_drop_body(scrape);
    running--;
    if (holds)
        held = scrape;
    else
        scrape_ended(scrape);
}

static void on_leave(struct scrape *scrape)
{
    note(LEFT, scrape);
    scrape_ended(scrape);
}

static void on_close(struct scrape *scrape)
{
    note(CLOSED, scrape);
}

static const struct scrape_pool_ops marking = {
    .scrape_size = sizeof(struct scrape),
    .sends_timeout = true,
    .open = on_open,
    .due = on_due,
    .responded = on_responded,
    .leave = on_leave,
    .close = on_close,
};
static const struct scrape_pool_ops plain = {
    .scrape_size = sizeof(struct scrape),
    .open = on_open,
    .due = on_due,
    .responded = on_responded,
    .close = on_close,
};

static void on_silent(struct scrape *scrape)
{
    (void)scrape;
}

/* For more targets than events have room. */
static const struct scrape_pool_ops silent = {
    .scrape_size = sizeof(struct scrape),
    .open = on_silent,
    .due = on_due,
    .responded = on_responded,
    .close = on_silent,
};

static const struct component_factory factory = {.type = "test", .kind = RECEIVER};

static struct scrape_pool *pool_of(struct component *component)
{
    return &((struct receiver *)component)->pool;
}

/* Time */

/* Until nothing happens at this instant. */
static void settle(void)
{
    unsigned quiet = 0;
    for (unsigned i = 0; i < TURNS_MAX && (quiet < QUIET_TURNS || running > 0); i++) {
        bool ran = false;
        for (unsigned k = 0; k < lanes_count; k++) {
            uint64_t before = counter_read(&receivers[k].counters.targets);
            ran |= lane_turn(lanes[k]);
            uint64_t now = counter_read(&receivers[k].counters.targets);
            most_left = now + most_left < before ? before - now : most_left;
        }
        quiet = ran ? 0 : quiet + 1;
    }
    assert_int_equal(running, 0);
}

static void pass(uint64_t by_ns)
{
    uint64_t end_ns = clock_now_ns() + by_ns;
    settle();
    for (;;) {
        uint64_t next_ns = end_ns;
        for (unsigned k = 0; k < lanes_count; k++) {
            uint64_t lane_ns = timers_next_ns(lane_timers(lanes[k]));
            next_ns = lane_ns < next_ns ? lane_ns : next_ns;
        }
        if (next_ns > clock_now_ns())
            clock_fake_advance(next_ns - clock_now_ns());
        settle();
        if (clock_now_ns() >= end_ns)
            return;
    }
}

/* Files */

static void write_file(const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

/* Targets by name, all at the back-end. */
static void write_targets(const char *names)
{
    char text[TEXT_BYTES_MAX] = "[";
    size_t size = 1;
    for (const char *at = names; *at != '\0'; at++)
        size += (size_t)snprintf(text + size, sizeof(text) - size,
                                 "%s{\"targets\": [\"%s\"], \"labels\": {\"name\": \"%c\"}}",
                                 at > names ? "," : "",
                                 scripted_backend_url(backend) + strlen("http://"), *at);
    snprintf(text + size, sizeof(text) - size, "]");
    write_file(text);
}

/* The receiver */

static void open_lane(unsigned index)
{
    struct receiver *receiver = &receivers[index];
    struct error error = {.text = ""};
    receiver->base = (struct component){
        .factory = &factory,
        .id = "test",
        .lane = lanes[index],
        .budget = &budget,
        .first = &receivers[0].base,
        .next_lane = index + 1 < lanes_count ? &receivers[index + 1].base : NULL,
    };
    assert_true(scrape_http_open(&https[index], &http_config, false, &error));
    const struct scrape_pool_settings settings = {
        .component = &receiver->base,
        .ops = is_silent    ? &silent
               : marks_ends ? &marking
                            : &plain,
        .jobs = &job,
        .https = &https[index],
        .jobs_count = 1,
        .counters = &receiver->counters,
        .pool_of = pool_of,
    };
    if (!scrape_pool_init(&receiver->pool, &settings, &error))
        fail_msg("%s", error.text);
}

static void begin(unsigned count)
{
    struct error error = {.text = ""};
    lanes_count = count;
    for (unsigned i = 1; i < count; i++)
        lanes[i] = lane_create(i);
    for (unsigned i = 0; i < count; i++)
        open_lane(i);
    for (unsigned i = count; i > 0; i--)
        if (!scrape_pool_start(&receivers[i - 1].pool, &error))
            fail_msg("%s", error.text);
    settle();
}

static void on_all_stopped(void *arg)
{
    struct receiver *receiver = arg;
    receiver->is_stopped = true;
}

static void end(void)
{
    for (unsigned i = 0; i < lanes_count; i++) {
        receivers[i].stopping =
            (struct stop_latch){.fn = on_all_stopped, .arg = &receivers[i], .pending = 1};
        receivers[i].base.stopping = &receivers[i].stopping;
        scrape_pool_stop(&receivers[i].pool);
    }
    settle();
    for (unsigned i = 0; i < lanes_count; i++) {
        assert_true(receivers[i].is_stopped);
        assert_null(receivers[i].pool.first);
        scrape_pool_fini(&receivers[i].pool);
        scrape_http_close(&https[i]);
    }
    assert_int_equal(budget_used(&budget), 0);
}

static int set_up(void **state)
{
    static const struct backend_step step = {.response =
                                                 "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"};
    static const char *const paths[] = {path};
    (void)state;
    clock_fake_start(1000 * S, 1700000000 * S);
    budget_init(&budget, UINT64_MAX);
    lanes[0] = lane_create(0);
    lanes_count = 1;
    backend = scripted_backend_create(lanes[0], &step, 1);
    snprintf(directory, sizeof(directory), "/tmp/spanflame-test-pool-XXXXXX");
    assert_non_null(mkdtemp(directory));
    snprintf(path, sizeof(path), "%s/targets.json", directory);
    memset(receivers, 0, sizeof(receivers));
    memset(https, 0, sizeof(https));
    events_count = 0;
    running = 0;
    holds = false;
    held = NULL;
    marks_ends = true;
    is_silent = false;
    most_left = 0;
    files = (struct scrape_file_sd_config){.files = {.count = 1, .texts = paths},
                                           .refresh_interval = "1m"};
    statics = (struct scrape_static_config){.targets = {.count = 0}};
    discovery = (struct scrape_discovery_config){
        .static_configs = {.count = 1, .items = &statics},
        .file_sd_configs = {.count = 1, .items = &files},
    };
    http_config =
        (struct scrape_http_config){.bearer_token = "", .bearer_token_file = "", .proxy_url = ""};
    start = (struct scrape_start){
        .job_name = "shop",
        .interval_ns = INTERVAL_NS,
        .timeout_ns = 5 * S,
        .presets = {{.key = "__scheme__", .value = "http"}, {.key = "__path__", .value = "/m"}},
        .presets_count = 2,
        .path_label = "__path__",
    };
    job = (struct target_job){
        .name = "shop", .discovery = &discovery, .starts = &start, .starts_count = 1};
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    scripted_backend_destroy(backend);
    for (unsigned i = 0; i < lanes_count; i++)
        lane_destroy(lanes[i]);
    unlink(path);
    rmdir(directory);
    budget_fini(&budget);
    clock_fake_stop();
    return 0;
}

/* Questions */

static size_t count(enum event_kind kind, const char *name)
{
    size_t found = 0;
    for (size_t i = 0; i < events_count; i++)
        found += events[i].kind == kind && strcmp(events[i].name, name) == 0;
    return found;
}

static const struct event *last(enum event_kind kind, const char *name)
{
    for (size_t i = events_count; i > 0; i--)
        if (events[i - 1].kind == kind && strcmp(events[i - 1].name, name) == 0)
            return &events[i - 1];
    fail_msg("no such event of %s", name);
    return NULL;
}

/* Tests */

static void test_each_target_has_its_place_in_the_interval(void **state)
{
    (void)state;
    write_targets("abc");
    begin(1);
    pass(10 * INTERVAL_NS);
    for (const char *const *name = (const char *const[]){"a", "b", "c", NULL}; *name != NULL;
         name++) {
        const struct event *scraped = NULL;
        size_t scrapes = 0;
        assert_int_equal(count(OPENED, *name), 1);
        for (size_t i = 0; i < events_count; i++) {
            if (events[i].kind != SCRAPED || strcmp(events[i].name, *name) != 0)
                continue;
            if (scraped != NULL)
                assert_int_equal(events[i].at_ns - scraped->at_ns, INTERVAL_NS);
            scraped = &events[i];
            scrapes++;
        }
        assert_in_range(scrapes, 9, 10);
    }
    assert_int_not_equal(last(SCRAPED, "a")->at_ns, last(SCRAPED, "b")->at_ns);
    assert_non_null(strstr(scripted_backend_head(backend), "GET /m HTTP/1.1"));
    assert_non_null(
        strstr(scripted_backend_head(backend), "X-Prometheus-Scrape-Timeout-Seconds: 5\r\n"));
    end();
}

static void test_targets_come_with_a_file(void **state)
{
    (void)state;
    begin(1);
    pass(INTERVAL_NS);
    assert_int_equal(events_count, 0);
    write_targets("a");
    pass(REFRESH_NS + INTERVAL_NS);
    assert_int_equal(count(OPENED, "a"), 1);
    assert_int_equal(counter_read(&receivers[0].counters.targets), 1);
    uint64_t place_ns = last(SCRAPED, "a")->at_ns % INTERVAL_NS;
    write_targets("ba");
    pass(REFRESH_NS + INTERVAL_NS);
    assert_int_equal(counter_read(&receivers[0].counters.targets), 2);
    assert_int_equal(count(OPENED, "a"), 1);
    assert_int_equal(count(CLOSED, "a"), 0);
    assert_int_equal(last(SCRAPED, "a")->at_ns % INTERVAL_NS, place_ns);
    end();
}

static void test_the_end_of_a_target_is_marked_once_and_late(void **state)
{
    (void)state;
    write_targets("ab");
    begin(1);
    pass(2 * INTERVAL_NS);
    write_targets("b");
    uint64_t written_ns = clock_now_ns();
    pass(REFRESH_NS);
    size_t scrapes = count(SCRAPED, "a");
    const uint64_t last_ns = last(SCRAPED, "a")->at_ns;
    assert_in_range(last_ns, written_ns - INTERVAL_NS, written_ns + REFRESH_NS);
    pass(3 * INTERVAL_NS);
    assert_int_equal(count(SCRAPED, "a"), scrapes);
    assert_int_equal(count(LEFT, "a"), 1);
    assert_int_equal(count(CLOSED, "a"), 1);
    const struct event *left = last(LEFT, "a");
    const uint64_t wall_less_now_ns = (1700000000 - 1000) * S;
    assert_int_equal(left->stale_ns - wall_less_now_ns, last_ns + INTERVAL_NS);
    assert_int_equal(left->at_ns, last_ns + 2 * INTERVAL_NS + INTERVAL_NS / 10);
    assert_int_equal(counter_read(&receivers[0].counters.targets), 1);
    assert_int_equal(count(LEFT, "b"), 0);
    end();
}

static void test_without_ends_to_mark_a_target_goes_at_once(void **state)
{
    (void)state;
    marks_ends = false;
    write_targets("ab");
    begin(1);
    pass(2 * INTERVAL_NS);
    holds = true;
    pass(INTERVAL_NS);
    write_targets("");
    pass(REFRESH_NS);
    /* One is still at work with its response. */
    assert_non_null(held);
    assert_int_equal(count(CLOSED, "a") + count(CLOSED, "b"), 0);
    holds = false;
    for (struct scrape *scrape = receivers[0].pool.first; scrape != NULL; scrape = scrape->next)
        scrape_ended(scrape);
    settle();
    assert_int_equal(count(CLOSED, "a") + count(CLOSED, "b"), 2);
    end();
}

/* A list that has lost very many targets is taken in parts, as one that has got them. */
static void test_many_targets_leave_in_several_turns(void **state)
{
    enum { TARGETS = 3 * SCRAPE_SYNC_TARGETS_MAX, ROOM = 32 * 1024 };
    (void)state;
    char *text = mem_alloc(ROOM);
    size_t size = (size_t)snprintf(text, ROOM, "[{\"targets\": [\"127.0.0.1:1\"");
    for (unsigned i = 2; i <= TARGETS; i++)
        size += (size_t)snprintf(text + size, ROOM - size, ", \"127.0.0.1:%u\"", i);
    snprintf(text + size, ROOM - size, "]}]");
    write_file(text);
    mem_free(text);
    is_silent = true;
    start.interval_ns = 1000000 * S; /* none of them is scraped so soon */
    begin(1);
    pass(S);
    assert_int_equal(counter_read(&receivers[0].counters.targets), TARGETS);
    write_file("[{\"targets\": [\"127.0.0.1:1\"]}]");
    pass(REFRESH_NS);
    assert_int_equal(counter_read(&receivers[0].counters.targets), 1);
    assert_in_range(most_left, 1, SCRAPE_SYNC_TARGETS_MAX);
    end();
}

static void test_a_target_that_comes_back_goes_on(void **state)
{
    (void)state;
    write_targets("a");
    begin(1);
    pass(2 * INTERVAL_NS);
    uint64_t place_ns = last(SCRAPED, "a")->at_ns % INTERVAL_NS;
    write_targets("");
    /* The event of the file system, or the refresh at the latest. */
    for (int i = 0; i < 100 && !receivers[0].pool.first->is_leaving; i++)
        pass(S);
    assert_true(receivers[0].pool.first->is_leaving);
    pass(INTERVAL_NS);
    assert_true(receivers[0].pool.first->has_missed);
    size_t scrapes = count(SCRAPED, "a");
    write_targets("a");
    for (int i = 0; i < 100 && receivers[0].pool.first->is_leaving; i++)
        pass(S / 10);
    if (count(LEFT, "a") == 0) {
        pass(REFRESH_NS);
        assert_int_equal(count(OPENED, "a"), 1);
        assert_true(count(SCRAPED, "a") > scrapes);
        assert_int_equal(last(SCRAPED, "a")->at_ns % INTERVAL_NS, place_ns);
    } else {
        pass(REFRESH_NS + SCRAPE_RETRY_NS);
        assert_int_equal(count(OPENED, "a"), 2);
    }
    end();
}

static void test_messages_show_no_secrets(void **state)
{
    (void)state;
    write_file("[{\"targets\": [\"user:secret@127.0.0.1:1\", \"127.0.0.1:1\\r\\nX: y\"],"
               "\"labels\": {\"__param_token\": \"secret\"}}]");
    begin(1);
    pass(INTERVAL_NS);
    /* The second one would have been a header. */
    assert_int_equal(counter_read(&receivers[0].counters.targets), 1);
    const struct scrape_target *target = receivers[0].pool.first->target;
    assert_string_equal(target->url, "http://user:secret@127.0.0.1:1/m?token=secret");
    assert_string_equal(target->shown, "http://127.0.0.1:1/m");
    end();
}

/* What would become of a long label or address is not written out first. */
static void test_long_urls_are_left_out(void **state)
{
    enum { LABEL_BYTES = 1 << 20 };
    static const struct slice address = {.data = (const uint8_t *)"shop:80", .size = 7};
    struct prometheus_label param = {.name = slice_of_text("__param_q")};
    struct relabel_labels work;
    struct error error;
    char *value = mem_alloc(LABEL_BYTES);
    (void)state;
    memset(value, '\t', LABEL_BYTES);
    relabel_labels_init(&work);
    /* http://shop:80/m?q= and three bytes for each of the value. */
    const size_t longest = (HTTP_URL_BYTES_MAX - 19) / 3;
    const size_t sizes[] = {1, longest, longest + 1, LABEL_BYTES};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        param.value = slice_of(value, sizes[i]);
        struct scrape_target *target =
            scrape_target_create(&start, address, &param, 1, &work, &budget, &error);
        assert_int_equal(target != NULL, sizes[i] <= longest);
        if (target != NULL)
            assert_int_equal(strlen(target->url), 19 + 3 * sizes[i]);
        else
            assert_string_equal(error.text, "the URL has more than 8192 bytes");
        scrape_target_unref(target);
    }
    relabel_labels_fini(&work);
    mem_free(value);
}

static void test_a_bad_file_keeps_its_targets(void **state)
{
    (void)state;
    write_targets("a");
    begin(1);
    pass(INTERVAL_NS);
    write_file("[{\"targets\": ");
    pass(REFRESH_NS);
    assert_in_range(counter_read(&receivers[0].counters.file_errors), 1, 3);
    assert_int_equal(counter_read(&receivers[0].counters.targets), 1);
    write_targets("b");
    pass(REFRESH_NS);
    unlink(path);
    pass(REFRESH_NS + 3 * INTERVAL_NS);
    assert_int_equal(counter_read(&receivers[0].counters.targets), 0);
    assert_int_equal(count(LEFT, "a"), 1);
    assert_int_equal(count(LEFT, "b"), 1);
    end();
}

static void test_a_stop_marks_no_ends(void **state)
{
    (void)state;
    write_targets("ab");
    begin(1);
    pass(2 * INTERVAL_NS);
    write_targets("b");
    for (int i = 0; i < 100 && count(LEFT, "a") == 0; i++) {
        bool is_leaving = false;
        for (struct scrape *scrape = receivers[0].pool.first; scrape != NULL; scrape = scrape->next)
            is_leaving |= scrape->is_leaving;
        if (is_leaving)
            break;
        pass(S);
    }
    assert_int_equal(count(LEFT, "a"), 0);
    end();
    assert_int_equal(count(LEFT, "a") + count(LEFT, "b"), 0);
    assert_int_equal(count(CLOSED, "a") + count(CLOSED, "b"), 2);
}

/* Otherwise what waits behind would be lost once the drain's time is over. */
static void test_a_stop_cuts_off_a_target_that_does_not_respond(void **state)
{
    static const struct backend_step mute = {.response = "HTTP/1.1 "};
    (void)state;
    scripted_backend_destroy(backend);
    backend = scripted_backend_create(lanes[0], &mute, 1);
    write_targets("a");
    begin(1);
    for (unsigned i = 0; i < INTERVAL_NS / S + 1 && running == 0; i++) {
        clock_fake_advance(S);
        for (unsigned k = 0; k < QUIET_TURNS; k++)
            lane_turn(lanes[0]);
    }
    assert_int_equal(running, 1);
    for (unsigned k = 0; k < TURNS_MAX && scripted_backend_requests(backend) == 0; k++)
        lane_turn(lanes[0]);
    end();
    assert_int_equal(count(CLOSED, "a"), 1);
}

#define LIST(type, body)                                                                           \
    {                                                                                              \
        .response = "HTTP/1.1 200 OK\r\nContent-Type: " type "\r\nConnection: close\r\n\r\n" body, \
        .closes = true                                                                             \
    }
#define ONE(name) "[{\"targets\":[\"127.0.0.1:1\"],\"labels\":{\"name\":\"" name "\"}}]"

/* One request a minute: each is the next step. */
static void test_a_server_lists_targets(void **state)
{
    static const struct backend_step steps[] = {
        LIST("application/json", ONE("a")),
        {.response = "HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"},
        LIST("text/plain", ONE("b")),
        LIST("application/json; charset=latin1", ONE("b")),
        LIST("application/json", "[{\"targets\":"),
        {.response =
             "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 900\r\n\r\n[",
         .closes = true},
        LIST("Application/JSON; charset=\"UTF-8\"", ONE("b")),
    };
    static struct scrape_http_sd_config server;
    (void)state;
    scripted_backend_destroy(backend);
    backend = scripted_backend_create(lanes[0], steps, sizeof(steps) / sizeof(steps[0]));
    server = (struct scrape_http_sd_config){
        .url = scripted_backend_url(backend), .refresh_interval = "1m", .http = http_config};
    discovery.file_sd_configs.count = 0;
    discovery.http_sd_configs = (struct config_sections){.count = 1, .items = &server};
    begin(1);
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        for (unsigned k = 0; k < TURNS_MAX && scripted_backend_requests(backend) <= i; k++)
            lane_turn(lanes[0]);
        pass(REFRESH_NS / 2);
        assert_int_equal(scripted_backend_requests(backend), i + 1);
        bool is_good = i == 0 || i + 1 == sizeof(steps) / sizeof(steps[0]);
        assert_int_equal(counter_read(&receivers[0].counters.http_failures),
                         is_good && i > 0 ? i - 1 : i);
        assert_int_equal(count(OPENED, i > 0 && is_good ? "b" : "a"), 1);
        assert_int_equal(count(CLOSED, "a"), is_good && i > 0);
        pass(REFRESH_NS / 2);
    }
    assert_non_null(
        strstr(scripted_backend_head(backend), "X-Prometheus-Refresh-Interval-Seconds: 60\r\n"));
    assert_non_null(strstr(scripted_backend_head(backend), "Accept: application/json\r\n"));
    end();
}

static void test_lanes_share_the_targets(void **state)
{
    (void)state;
    write_targets("abcdef");
    begin(2);
    pass(2 * INTERVAL_NS);
    assert_int_equal(counter_read(&receivers[0].counters.targets), 3);
    assert_int_equal(counter_read(&receivers[1].counters.targets), 3);
    unsigned lane_of_f = last(SCRAPED, "f")->lane;
    write_targets("fgabcdeh");
    pass(REFRESH_NS + 2 * INTERVAL_NS);
    assert_int_equal(counter_read(&receivers[0].counters.targets), 4);
    assert_int_equal(counter_read(&receivers[1].counters.targets), 4);
    assert_int_equal(last(SCRAPED, "f")->lane, lane_of_f);
    assert_int_equal(count(OPENED, "f"), 1);
    write_targets("");
    pass(REFRESH_NS + 4 * INTERVAL_NS);
    assert_int_equal(counter_read(&receivers[0].counters.targets), 0);
    assert_int_equal(counter_read(&receivers[1].counters.targets), 0);
    end();
}

static void test_equal_targets_are_scraped_once(void **state)
{
    (void)state;
    write_targets("aab");
    begin(1);
    pass(INTERVAL_NS);
    assert_int_equal(count(OPENED, "a"), 1);
    assert_int_equal(counter_read(&receivers[0].counters.targets), 2);
    end();
}

/* Two jobs may filter what they take of the same target; two profiles may have one path. */
static void test_each_job_has_its_targets(void **state)
{
    static const char *const addresses[] = {"shop:80", "shop:80"};
    const struct scrape_start starts[] = {start, start};
    const struct target_job jobs[] = {
        job, {.name = "shop again", .discovery = &discovery, .starts = starts, .starts_count = 2}};
    struct target_list_builder builder;
    (void)state;
    statics.targets = (struct config_texts){.count = 2, .texts = addresses};
    struct scrape_target_list *former = NULL;
    for (unsigned round = 0; round < 2; round++) {
        target_list_begin(&builder, jobs, 2, 1, former, &budget, &receivers[0].base.logger);
        for (size_t i = 0; i < 2; i++)
            target_list_add_static(&builder, i);
        struct scrape_target_list *list = target_list_end(&builder);
        assert_int_equal(list->count, 3);
        for (size_t i = 0; i < 3; i++) {
            assert_int_equal(list->targets[i]->job, i > 0);
            assert_int_equal(list->targets[i]->start, i > 1);
            assert_true(former == NULL || former->targets[i] == list->targets[i]);
        }
        scrape_target_list_unref(former);
        former = list;
    }
    scrape_target_list_unref(former);
    assert_int_equal(budget_used(&budget), 0);
}

static void test_too_many_targets_are_known(void **state)
{
    (void)state;
    job.targets_max = 1;
    write_targets("ab");
    begin(1);
    pass(INTERVAL_NS);
    assert_true(scrape_has_too_many(receivers[0].pool.first));
    write_targets("a");
    pass(REFRESH_NS + 3 * INTERVAL_NS);
    assert_false(scrape_has_too_many(receivers[0].pool.first));
    end();
}

static void test_a_short_budget_is_tried_again(void **state)
{
    (void)state;
    write_targets("abc");
    begin(1);
    pass(S);
    uint64_t used = budget_used(&budget);
    end();
    budget_fini(&budget);
    /* Room for one scrape less, at the worst of times. */
    events_count = 0;
    memset(receivers, 0, sizeof(receivers));
    budget_init(&budget, used - 1);
    begin(1);
    pass(S);
    assert_in_range(counter_read(&receivers[0].counters.targets), 1, 2);
    atomic_store(&budget.limit, UINT64_MAX);
    pass(SCRAPE_RETRY_NS);
    assert_int_equal(counter_read(&receivers[0].counters.targets), 3);
    end();
}

static void test_no_room_for_a_file_is_an_error(void **state)
{
    (void)state;
    begin(1);
    uint64_t used = budget_used(&budget);
    write_targets("abc");
    atomic_store(&budget.limit, used + 64);
    pass(REFRESH_NS);
    assert_true(counter_read(&receivers[0].counters.file_errors) > 0);
    assert_int_equal(counter_read(&receivers[0].counters.targets), 0);
    atomic_store(&budget.limit, UINT64_MAX);
    pass(REFRESH_NS);
    assert_int_equal(counter_read(&receivers[0].counters.targets), 3);
    end();
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_each_target_has_its_place_in_the_interval),
        TEST(test_targets_come_with_a_file),
        TEST(test_the_end_of_a_target_is_marked_once_and_late),
        TEST(test_without_ends_to_mark_a_target_goes_at_once),
        TEST(test_many_targets_leave_in_several_turns),
        TEST(test_a_target_that_comes_back_goes_on),
        TEST(test_messages_show_no_secrets),
        TEST(test_long_urls_are_left_out),
        TEST(test_a_bad_file_keeps_its_targets),
        TEST(test_a_stop_marks_no_ends),
        TEST(test_a_stop_cuts_off_a_target_that_does_not_respond),
        TEST(test_a_server_lists_targets),
        TEST(test_lanes_share_the_targets),
        TEST(test_equal_targets_are_scraped_once),
        TEST(test_each_job_has_its_targets),
        TEST(test_too_many_targets_are_known),
        TEST(test_a_short_budget_is_tried_again),
        TEST(test_no_room_for_a_file_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
