/* SPDX-License-Identifier: Apache-2.0 */
/* Walks a batch from Resources to records, runs what the plan has for each context, and notes what
 * changes. Runs on the lane, or on its helper. */
#include "src/ottl/ottl_runner.h"

#include <assert.h>
#include <stdio.h>

#include "src/base/budget.h"
#include "src/base/buffer.h"
#include "src/base/lane.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/core/batch.h"
#include "src/otlp/rope.h"
#include "src/ottl/ottl_context_metrics.h"

/* Resource…: 1 resource, 2 scope_…, 3 schema_url; Scope…: 1 scope, 2 items, 3 schema_url. */
enum { HEAD = 1, CHILDREN = 2, SCHEMA_URL = 3, REQUEST = 1 };
/* Of Profile. */
enum { SAMPLES = 2 };

enum decision { KEEP, DROP, ABORT };

/* A message in a batch: where it is, and what had been noted before it. */
struct place {
    uint64_t header_at;
    uint64_t content_at;
    uint64_t content_bytes;
    uint32_t number;
    size_t edits;
    size_t messages;
};

void ottl_runner_init(struct ottl_runner *runner, const struct ottl_plan *plan,
                      struct budget *budget)
{
    assert(plan->is_finished);
    static const enum ottl_context items[SIGNAL_KINDS] = {[TRACES] = OTTL_SPAN,
                                                          [METRICS] = OTTL_METRIC,
                                                          [LOGS] = OTTL_LOG,
                                                          [PROFILES] = OTTL_PROFILE};
    *runner = (struct ottl_runner){.plan = plan, .budget = budget, .item = items[plan->signal]};
    ottl_edits_init(&runner->edits, budget);
    ottl_dictionary_init(&runner->dictionary, budget);
    runner->run.dictionary = &runner->dictionary;
    ottl_edits_init(&runner->detached, budget);
    ottl_rewrite_init(&runner->rewrite, budget);
    runner->run.rewrite = &runner->rewrite;
    runner->run.remembered = mem_zalloc((plan->memos + 1) * sizeof(*runner->run.remembered));
    runner->run.work_left = OTTL_OUTER_BYTES_MIN;
    unsigned innermost = 0;
    for (unsigned i = 0; i < OTTL_CONTEXTS; i++) {
        const struct ottl_context_type *type = ottl_context_type((enum ottl_context)i);
        if (type == NULL)
            continue;
        ottl_record_init(&runner->records[i], type, &plan->keys[i], budget);
        runner->records[i].memory.work_left = &runner->run.work_left;
        runner->run.records[i] = &runner->records[i];
        if ((plan->contexts & OTTL_CONTEXT_BIT(i)) != 0)
            innermost = i;
    }
    /* What inner records put into outer ones must outlive them. */
    for (unsigned i = 0; i < innermost; i++)
        runner->records[i].memory.copies_text = true;
}

void ottl_runner_fini(struct ottl_runner *runner)
{
    for (unsigned i = 0; i < OTTL_CONTEXTS; i++)
        ottl_record_fini(&runner->records[i]);
    ottl_edits_fini(&runner->edits);
    ottl_dictionary_fini(&runner->dictionary);
    ottl_edits_fini(&runner->detached);
    ottl_rewrite_fini(&runner->rewrite);
    scratch_fini(&runner->noted, NULL);
    ottl_patterns_clear(&runner->run.patterns);
    for (uint32_t i = 0; i < runner->plan->memos; i++)
        mem_free(runner->run.remembered[i].error);
    mem_free(runner->run.remembered);
}

void ottl_runner_rest(struct ottl_runner *runner)
{
    runner->run.work_left = OTTL_OUTER_BYTES_MIN;
    ottl_patterns_clear(&runner->run.patterns);
    for (unsigned i = 0; i < OTTL_CONTEXTS; i++)
        if (runner->run.records[i] != NULL)
            ottl_memory_rest(&runner->records[i].memory);
}

static __attribute__((noinline)) enum decision fail(struct ottl_runner *runner,
                                                    const struct ottl_sequence *sequence,
                                                    const char *text, const char *what)
{
    struct ottl_run *run = &runner->run;
    char whole[OTTL_ERROR_BYTES_MAX];
    if (!run->is_out_of_memory && !runner->is_too_long && sequence->error_mode != OTTL_PROPAGATE) {
        if (sequence->error_mode == OTTL_IGNORE && runner->on_failure != NULL)
            runner->on_failure(runner->arg, text, run->error);
        return KEEP;
    }
    snprintf(whole, sizeof(whole), "failed to %s: %.200s, %.250s", what, text, run->error);
    memcpy(run->error, whole, sizeof(whole));
    runner->is_aborted = true;
    return ABORT;
}

/* Sets an attribute with a slot to a value that is neither map nor list and outlives the record. */
static inline __attribute__((always_inline)) bool put_attribute(
    const struct ottl_compiled_statement *statement, struct ottl_run *run, struct ottl_value value)
{
    struct ottl_entry *entry =
        ottl_record_set(run->records[statement->target->context], (uint32_t)statement->slot);
    if (entry == NULL)
        return ottl_run_no_memory(run);
    entry->value = value;
    entry->ready = statement->ready;
    return true;
}

/* `set` */
static inline __attribute__((always_inline)) bool set(
    const struct ottl_compiled_statement *statement, struct ottl_run *run)
{
    const struct ottl_path *path = statement->target;
    struct ottl_value value;
    if (!statement->value->get(statement->value, run, &value))
        return false;
    if (value.type == OTTL_NIL)
        return true;
    if (statement->slot >= 0 && value.type <= OTTL_BYTES &&
        !run->records[path->context]->memory.copies_text)
        return put_attribute(statement, run, value);
    if (statement->is_outer)
        ottl_run_charge(run, &value); /* it is copied */
    return path->row->set(run, path, &value);
}

static inline __attribute__((always_inline)) bool edit(
    const struct ottl_compiled_statement *statement, struct ottl_run *run)
{
    struct ottl_value ignored;
    if (statement->ready != NULL)
        return put_attribute(statement, run, statement->ready->value);
    if (statement->value != NULL)
        return set(statement, run);
    if (statement->target == NULL)
        return ottl_invoke(&statement->editor, run, &ignored);
    return ottl_record_remove_slot(run->records[statement->target->context],
                                   (uint32_t)statement->slot) ||
           ottl_run_no_memory(run);
}

/* What statements may read of records around theirs is used up, which fails them. On an event-loop
 * lane they are run again elsewhere. */
static __attribute__((noinline)) int fail_used_up(struct ottl_runner *runner)
{
    runner->is_too_long = runner->lane != NULL;
    ottl_run_fail_used_up(&runner->run);
    return OTTL_FAILED;
}

/* The result of what reads records around its own (`is_outer`), which may have used up what was
 * left for that. */
static inline int conclude(struct ottl_runner *runner, bool is_outer, int result)
{
    const bool is_used_up = result == OTTL_FAILED && is_outer && runner->run.work_left == 0 &&
                            !runner->run.is_out_of_memory;
    return is_used_up ? fail_used_up(runner) : result;
}

/* Whether any condition holds. Those that fail are passed over. */
static inline enum decision evaluate_conditions(struct ottl_runner *runner,
                                                const struct ottl_sequence *sequence, bool *ret)
{
    *ret = false;
    for (size_t i = 0; i < sequence->conditions_count; i++) {
        const struct ottl_condition *condition = &sequence->conditions[i];
        const int result = condition->is_outer && runner->run.work_left == 0
                               ? fail_used_up(runner)
                               : conclude(runner, condition->is_outer,
                                          condition->test->test(condition->test, &runner->run));
        if (result == OTTL_FAILED &&
            fail(runner, sequence, condition->text, "eval condition") == ABORT)
            return ABORT;
        if (result != OTTL_TRUE)
            continue;
        *ret = true;
        return KEEP;
    }
    return KEEP;
}

/* OTTL_TRUE: its condition holds, and it did what it does; OTTL_FAILED: one of them failed. */
static inline __attribute__((always_inline)) int execute(
    const struct ottl_compiled_statement *statement, struct ottl_run *run)
{
    int result =
        statement->where != NULL ? statement->where->test(statement->where, run) : OTTL_TRUE;
    return result == OTTL_TRUE && !edit(statement, run) ? OTTL_FAILED : result;
}

static __attribute__((noinline)) enum decision run_statements(struct ottl_runner *runner,
                                                              const struct ottl_sequence *sequence)
{
    const struct ottl_compiled_statement *const end =
        sequence->statements + sequence->statements_count;
    for (const struct ottl_compiled_statement *statement = sequence->statements; statement != end;
         statement++) {
        const bool is_used_up = statement->is_outer && runner->run.work_left == 0;
        const int result =
            is_used_up ? fail_used_up(runner)
                       : conclude(runner, statement->is_outer, execute(statement, &runner->run));
        if (result == OTTL_FAILED &&
            fail(runner, sequence, statement->text, "execute statement") == ABORT)
            return ABORT;
    }
    return KEEP;
}

static inline enum decision run_context(struct ottl_runner *runner, enum ottl_context context)
{
    struct ottl_run *run = &runner->run;
    run->memory = &runner->records[context].memory;
    for (const struct ottl_sequence *sequence = runner->plan->sequences[context]; sequence != NULL;
         sequence = sequence->next) {
        bool holds;
        run->cache = NULL;
        enum decision decision = evaluate_conditions(runner, sequence, &holds);
        if (decision != KEEP)
            return decision;
        if (sequence->statements_count == 0 && holds)
            return DROP;
        if (sequence->statements_count > 0 && (holds || sequence->conditions_count == 0) &&
            run_statements(runner, sequence) == ABORT)
            return ABORT;
    }
    return KEEP;
}

/* The run's error says why what has to be done for the batch cannot be done. */
static enum decision give_up(struct ottl_runner *runner)
{
    runner->is_too_large = !runner->run.is_out_of_memory;
    runner->is_aborted = true;
    return ABORT;
}

static enum decision abort_without_memory(struct ottl_runner *runner)
{
    ottl_run_no_memory(&runner->run);
    return give_up(runner);
}

/* Remembers whether a condition held for the record. */
static bool note(struct ottl_runner *runner, bool holds)
{
    const uint64_t at = runner->decided++;
    uint8_t *bits = scratch_room(&runner->noted, runner->edits.budget, (size_t)(at / 8) + 1);
    if (bits == NULL)
        return false;
    const uint8_t bit = (uint8_t)(1u << (at % 8));
    bits[at / 8] = (uint8_t)(holds ? bits[at / 8] | bit : bits[at / 8] & ~bit);
    return true;
}

static bool was_noted(struct ottl_runner *runner)
{
    const uint64_t at = runner->decided++;
    const uint8_t *bits = runner->noted.memory;
    assert(at / 8 < runner->noted.bytes);
    return (bits[at / 8] >> (at % 8) & 1) != 0;
}

/* After a visitor was called. */
static enum decision show(struct ottl_runner *runner, bool goes_on)
{
    runner->is_aborted = runner->is_aborted || !goes_on;
    return goes_on ? KEEP : ABORT;
}

/* Runs the statement of a division. */
static enum decision run_edit(struct ottl_runner *runner, enum ottl_context context, bool *ret)
{
    struct ottl_run *run = &runner->run;
    const struct ottl_sequence *sequence = runner->plan->sequences[context];
    assert(sequence->statements_count == 1 && sequence->conditions_count == 0);
    run->memory = &runner->records[context].memory;
    run->cache = NULL;
    const struct ottl_compiled_statement *statement = &sequence->statements[0];
    const int result = statement->is_outer && run->work_left == 0
                           ? fail_used_up(runner)
                           : conclude(runner, statement->is_outer, execute(statement, run));
    *ret = result == OTTL_TRUE;
    return result == OTTL_FAILED
               ? fail(runner, sequence, sequence->statements[0].text, "execute statement")
               : KEEP;
}

static __attribute__((noinline)) enum decision edit_and_note(struct ottl_runner *runner,
                                                             enum ottl_context context)
{
    bool holds;
    if (run_edit(runner, context, &holds) == ABORT)
        return ABORT;
    runner->matches += holds;
    return note(runner, holds) ? KEEP : abort_without_memory(runner);
}

/* Whether the record stays, for a purpose other than OTTL_DROPS. */
static __attribute__((noinline)) enum decision decide_otherwise(struct ottl_runner *runner,
                                                                enum ottl_context context)
{
    const enum ottl_purpose purpose = runner->purpose;
    if (purpose == OTTL_VISITS)
        return show(runner, runner->visitor->record(runner->visitor->arg, context));
    if (purpose == OTTL_EDITS)
        return edit_and_note(runner, context);
    if (purpose == OTTL_LEAVES_NOTED || purpose == OTTL_PICKS_NOTED)
        return was_noted(runner) == (purpose == OTTL_PICKS_NOTED) ? KEEP : DROP;
    enum decision decision = run_context(runner, context);
    if (decision == ABORT)
        return ABORT;
    const bool holds = decision == DROP;
    runner->matches += holds;
    if (purpose == OTTL_LEAVES && !note(runner, holds))
        return abort_without_memory(runner);
    return holds == (purpose == OTTL_PICKS) ? KEEP : DROP;
}

static __attribute__((noinline)) enum decision hand_over(struct ottl_runner *runner)
{
    runner->is_too_long = runner->is_aborted = true;
    return ABORT;
}

static __attribute__((noinline)) bool is_late(struct ottl_runner *runner, size_t bytes)
{
    runner->steps = 0;
    return bytes > OTTL_LANE_RECORD_BYTES_MAX || lane_held_ns(runner->lane) >= LANE_EDIT_NS;
}

/* Whether the record is one for another runner. */
static inline bool takes_long(struct ottl_runner *runner, enum ottl_context context)
{
    enum { STEPS_PER_LOOK = 64, STEP_BYTES = 1024 };
    if (runner->lane == NULL)
        return false;
    const size_t bytes = runner->records[context].bytes.size;
    runner->steps += 1 + (unsigned)(bytes / STEP_BYTES);
    return runner->steps >= STEPS_PER_LOOK && is_late(runner, bytes);
}

static inline enum decision decide(struct ottl_runner *runner, enum ottl_context context)
{
    if (takes_long(runner, context))
        return hand_over(runner);
    return runner->purpose == OTTL_DROPS ? run_context(runner, context)
                                         : decide_otherwise(runner, context);
}

static bool has_context(const struct ottl_runner *runner, unsigned contexts)
{
    return (runner->plan->contexts & contexts) != 0;
}

static bool reads(const struct ottl_runner *runner, enum ottl_context context)
{
    return ((runner->plan->used | runner->plan->contexts) & OTTL_CONTEXT_BIT(context)) != 0;
}

static struct place place_of(const struct ottl_runner *runner, const struct rope_field *field)
{
    return (struct place){.header_at = field->begin.at,
                          .content_at = field->content.at,
                          .content_bytes = field->content_bytes,
                          .number = field->number,
                          .edits = runner->edits.count,
                          .messages = runner->edits.messages_count};
}

/* Of an open record, in the message around it. */
static struct place place_of_record(const struct ottl_runner *runner,
                                    const struct ottl_record *record, uint64_t header_at,
                                    uint32_t number)
{
    return (struct place){.header_at = header_at,
                          .content_at = record->at,
                          .content_bytes = record->bytes.size,
                          .number = number,
                          .edits = runner->edits.count,
                          .messages = runner->edits.messages_count};
}

static void begin_message(struct ottl_runner *runner, const struct place *place)
{
    ottl_edits_add_message(&runner->edits, place->header_at, place->content_at,
                           place->content_bytes, place->number);
}

/* Takes the message back if nothing has changed in it. */
static enum decision end_message(struct ottl_runner *runner, const struct place *place)
{
    if (runner->edits.has_failed)
        return abort_without_memory(runner);
    if (runner->edits.count == place->edits)
        ottl_edits_cut(&runner->edits, place->edits, place->messages);
    return KEEP;
}

static enum decision remove_message(struct ottl_runner *runner, const struct place *place)
{
    ottl_edits_cut(&runner->edits, place->edits, place->messages);
    ottl_edits_remove(&runner->edits, place->header_at,
                      place->content_at + place->content_bytes - place->header_at);
    return runner->edits.has_failed ? abort_without_memory(runner) : DROP;
}

/* The content of a field, in one piece: copied into the record's memory if it lies in several
 * parts. */
static bool borrow_field(struct ottl_record *record, const struct rope_field *field)
{
    size_t bytes = (size_t)field->content_bytes;
    struct slice content =
        bytes > 0 ? rope_contiguous(&field->content, bytes) : slice_of("", 0); /* not NULL */
    if (content.size < bytes) {
        uint8_t *room = ottl_memory_room(&record->memory, bytes);
        if (room == NULL)
            return false;
        rope_copy(field->content, bytes, room);
        content = slice_of(room, bytes);
    }
    ottl_record_borrow(record, content, 0, field->content.at);
    return true;
}

/* Joins the contents of a Resource or scope that came in several fields, which are one message. */
static bool join_heads(struct ottl_record *record, struct rope rope, uint64_t end, size_t bytes)
{
    struct rope_field field;
    uint8_t *room = ottl_memory_room(&record->memory, bytes);
    size_t used = 0;
    if (room == NULL)
        return false;
    while (rope_read_field(&rope, end, &field)) {
        if (field.number != HEAD)
            continue;
        rope_copy(field.content, field.content_bytes, room + used);
        used += (size_t)field.content_bytes;
    }
    assert(used == bytes);
    ottl_record_borrow(record, slice_of(room, used), 0, 0);
    record->is_joined = true;
    return true;
}

/* Opens the record of a Resource or scope: finds it, and the schema URL, in the message around. */
static bool open_head(struct ottl_record *record, const struct rope_field *holder)
{
    struct rope rope = holder->content;
    const uint64_t end = holder->content.at + holder->content_bytes;
    struct rope_field field;
    struct rope_field head = {.number = 0};
    unsigned heads = 0;
    size_t bytes = 0;
    ottl_record_open(record);
    record->number = HEAD;
    record->holder_at = holder->content.at;
    while (rope_read_field(&rope, end, &field)) {
        if (field.number == HEAD) {
            head = field;
            heads++;
            bytes += (size_t)field.content_bytes;
        } else if (field.number == SCHEMA_URL) {
            struct slice url = rope_contiguous(&field.content, field.content_bytes);
            if (url.size < field.content_bytes) {
                uint8_t *room = ottl_memory_room(&record->memory, (size_t)field.content_bytes);
                if (room == NULL)
                    return false;
                rope_copy(field.content, field.content_bytes, room);
                url = slice_of(room, (size_t)field.content_bytes);
            }
            /* Only the size of `whole` counts: its place is schema_at. */
            record->fields[OTTL_SCHEMA_URL] = (struct ottl_field){
                .whole = slice_of(url.data, (size_t)field.size), .bytes = url, .wire = WIRE_BYTES};
            record->schema_at = field.begin.at;
            record->present |= 1u << OTTL_SCHEMA_URL;
        }
    }
    if (heads > 1)
        return join_heads(record, holder->content, end, bytes);
    return heads == 0 || borrow_field(record, &head);
}

/* Notes what has become of a Resource or scope. */
static enum decision finish_head(struct ottl_runner *runner, struct ottl_record *record,
                                 const struct rope_field *holder)
{
    struct rope rope = holder->content;
    const uint64_t end = holder->content.at + holder->content_bytes;
    struct rope_field field;
    if (!ottl_record_has_changed(record))
        return KEEP;
    bool is_rewritten = ottl_record_is_rewritten(record);
    while (record->exists && is_rewritten && rope_read_field(&rope, end, &field)) {
        if (field.number != HEAD)
            continue;
        if (record->is_joined)
            ottl_edits_remove(&runner->edits, field.begin.at, field.size);
        else
            ottl_edits_add_message(&runner->edits, field.begin.at, field.content.at,
                                   field.content_bytes, HEAD);
    }
    return ottl_record_finish(record, &runner->edits) ? KEEP : abort_without_memory(runner);
}

/* Messages that are children of a Resource… message's children, or of a Scope… message. */
static uint64_t count_children(const struct rope_field *holder, unsigned levels)
{
    struct rope rope = holder->content;
    struct rope_field field;
    uint64_t children = 0;
    while (rope_read_field(&rope, holder->content.at + holder->content_bytes, &field))
        if (field.number == CHILDREN)
            children += levels > 1 ? count_children(&field, levels - 1) : 1;
    return children;
}

/* The points of the metrics in such messages. */
static uint64_t count_points_in(const struct rope_field *holder, unsigned levels)
{
    struct rope rope = holder->content;
    struct rope_field field;
    uint64_t points = 0;
    while (rope_read_field(&rope, holder->content.at + holder->content_bytes, &field)) {
        if (levels > 0 && field.number == CHILDREN)
            points += count_points_in(&field, levels - 1);
        else if (levels == 0 && ottl_metric_data_of(field.number) != OTTL_NO_DATA) {
            struct rope data = field.content;
            struct rope_field point;
            while (rope_read_field(&data, field.content.at + field.content_bytes, &point))
                points += point.number == 1;
        }
    }
    return points;
}

/* What a profile's items follow from: its samples; a file that is passed on as it came
 * (opaque_profile.h) is one. */
struct profile_census {
    uint64_t samples;
    bool is_jfr;
    bool has_payload;
};

enum { PROFILE_PAYLOAD_FORMAT = 9, PROFILE_PAYLOAD = 10 };

static uint64_t items_of(const struct profile_census *census)
{
    return census->samples > 0 ? census->samples : census->is_jfr && census->has_payload;
}

static uint64_t profile_items(struct slice profile)
{
    struct profile_census census = {.samples = 0};
    struct wire_reader reader = wire_reader_of(profile);
    struct wire_field field;
    while (wire_next_field(&reader, &field)) {
        census.samples += field.number == SAMPLES;
        if (field.number == PROFILE_PAYLOAD_FORMAT)
            census.is_jfr = slice_equal_text(field.bytes, "jfr");
        else if (field.number == PROFILE_PAYLOAD)
            census.has_payload = field.bytes.size > 0;
    }
    return items_of(&census);
}

/* The same of one that lies in several parts, as edits leave it. */
static uint64_t profile_items_in(struct rope profile, uint64_t end)
{
    static const char jfr[] = {'j', 'f', 'r'};
    struct profile_census census = {.samples = 0};
    struct rope_field field;
    while (rope_read_field(&profile, end, &field)) {
        census.samples += field.number == SAMPLES;
        if (field.number == PROFILE_PAYLOAD_FORMAT) {
            uint8_t format[sizeof(jfr)];
            census.is_jfr = field.content_bytes == sizeof(jfr);
            if (census.is_jfr) {
                rope_copy(field.content, sizeof(format), format);
                census.is_jfr = memcmp(format, jfr, sizeof(jfr)) == 0;
            }
        } else if (field.number == PROFILE_PAYLOAD) {
            census.has_payload = field.content_bytes > 0;
        }
    }
    return items_of(&census);
}

/* Those of the profiles in such messages. */
static uint64_t count_samples_in(const struct rope_field *holder, unsigned levels)
{
    const uint64_t end = holder->content.at + holder->content_bytes;
    const struct slice whole = rope_contiguous(&holder->content, holder->content_bytes);
    struct rope rope = holder->content;
    struct rope_field field;
    uint64_t samples = 0;
    if (levels == 0)
        return whole.size == holder->content_bytes ? profile_items(whole)
                                                   : profile_items_in(rope, end);
    while (rope_read_field(&rope, end, &field))
        if (field.number == CHILDREN)
            samples += count_samples_in(&field, levels - 1);
    return samples;
}

static uint64_t count_items(const struct ottl_runner *runner, const struct rope_field *holder,
                            unsigned levels)
{
    return runner->item == OTTL_METRIC    ? count_points_in(holder, levels)
           : runner->item == OTTL_PROFILE ? count_samples_in(holder, levels)
                                          : count_children(holder, levels);
}

/* Bytes that can be read behind the field that was read last, of a record's message. */
static size_t behind(const struct wire_reader *reader, const struct ottl_record *record)
{
    return (size_t)(reader->end - reader->at) + record->behind;
}

/* The samples of a profile; counts those that stay. */
static enum decision walk_samples(struct ottl_runner *runner, const struct ottl_record *profile,
                                  uint64_t *kept)
{
    struct ottl_record *sample = &runner->records[OTTL_PROFILE_SAMPLE];
    struct wire_reader reader = wire_reader_of(profile->bytes);
    struct wire_field field;
    while (wire_next_field(&reader, &field)) {
        if (field.number != SAMPLES)
            continue;
        uint64_t at = profile->at + (uint64_t)(field.bytes.data - profile->bytes.data);
        const struct place place = {.header_at = at - (field.whole.size - field.bytes.size),
                                    .content_at = at,
                                    .content_bytes = field.bytes.size,
                                    .number = SAMPLES,
                                    .edits = runner->edits.count,
                                    .messages = runner->edits.messages_count};
        ottl_record_open(sample);
        ottl_record_borrow(sample, field.bytes, behind(&reader, profile), at);
        enum decision decision = decide(runner, OTTL_PROFILE_SAMPLE);
        if (decision == DROP) {
            runner->dropped++;
            decision = remove_message(runner, &place);
        } else if (decision == KEEP && ottl_record_has_changed(sample)) {
            begin_message(runner, &place);
            if (!ottl_record_finish(sample, &runner->edits))
                return abort_without_memory(runner);
        }
        if (decision == ABORT)
            return ABORT;
        *kept += decision == KEEP;
    }
    return KEEP;
}

/* The profile whose record is open. One that loses its last sample goes, too. */
static __attribute__((noinline)) enum decision run_profile(struct ottl_runner *runner,
                                                           const struct place *place)
{
    struct ottl_record *profile = &runner->records[OTTL_PROFILE];
    const bool has_samples = has_context(runner, OTTL_CONTEXT_BIT(OTTL_PROFILE_SAMPLE));
    const uint64_t dropped_before = runner->dropped;
    uint64_t kept = 0;
    if (has_context(runner, OTTL_CONTEXT_BIT(OTTL_PROFILE))) {
        enum decision decision = decide(runner, OTTL_PROFILE);
        if (decision == DROP)
            runner->dropped += profile_items(profile->bytes);
        if (decision != KEEP)
            return decision;
    }
    if (!has_samples && !ottl_record_has_changed(profile))
        return KEEP;
    begin_message(runner, place);
    if (has_samples && walk_samples(runner, profile, &kept) == ABORT)
        return ABORT;
    if (has_samples && kept == 0 && runner->prunes && runner->dropped > dropped_before) {
        ottl_edits_cut(&runner->edits, place->edits, place->messages);
        return DROP;
    }
    if (ottl_record_has_changed(profile) && !ottl_record_finish(profile, &runner->edits))
        return abort_without_memory(runner);
    return end_message(runner, place);
}

/* Messages in a record that end there: the events of a span, the exemplars of a point. */
static enum decision walk_leaves(struct ottl_runner *runner, const struct ottl_record *holder,
                                 uint32_t number, enum ottl_context context)
{
    struct ottl_record *leaf = &runner->records[context];
    struct wire_reader reader = wire_reader_of(holder->bytes);
    struct wire_field field;
    while (wire_next_field(&reader, &field)) {
        if (field.number != number)
            continue;
        uint64_t at = holder->at + (uint64_t)(field.bytes.data - holder->bytes.data);
        const struct place place = {.header_at = at - (field.whole.size - field.bytes.size),
                                    .content_at = at,
                                    .content_bytes = field.bytes.size,
                                    .number = number,
                                    .edits = runner->edits.count,
                                    .messages = runner->edits.messages_count};
        ottl_record_open(leaf);
        ottl_record_borrow(leaf, field.bytes, behind(&reader, holder), at);
        enum decision decision = decide(runner, context);
        if (decision == DROP)
            decision = remove_message(runner, &place);
        else if (decision == KEEP && ottl_record_has_changed(leaf)) {
            begin_message(runner, &place);
            if (!ottl_record_finish(leaf, &runner->edits))
                return abort_without_memory(runner);
        }
        if (decision == ABORT)
            return ABORT;
    }
    return KEEP;
}

static enum decision walk_events(struct ottl_runner *runner, const struct ottl_record *span)
{
    enum { EVENTS = 11 };
    return walk_leaves(runner, span, EVENTS, OTTL_SPAN_EVENT);
}

static enum decision walk_exemplars(struct ottl_runner *runner, const struct ottl_record *point)
{
    const unsigned number = ottl_data_point_exemplars((enum ottl_metric_data)point->kind);
    return number != 0 ? walk_leaves(runner, point, number, OTTL_EXEMPLAR) : KEEP;
}

/* The point whose record is open, and that stays. */
static enum decision finish_point(struct ottl_runner *runner, const struct place *place)
{
    struct ottl_record *point = &runner->records[OTTL_DATA_POINT];
    const bool has_exemplars = has_context(runner, OTTL_CONTEXT_BIT(OTTL_EXEMPLAR));
    if (!has_exemplars && !ottl_record_has_changed(point))
        return KEEP;
    begin_message(runner, place);
    if (has_exemplars && walk_exemplars(runner, point) == ABORT)
        return ABORT;
    if (ottl_record_has_changed(point) && !ottl_record_finish(point, &runner->edits))
        return abort_without_memory(runner);
    return end_message(runner, place);
}

/* The points of a metric, in its data. */
static enum decision walk_points(struct ottl_runner *runner, const struct ottl_record *data,
                                 uint64_t *kept)
{
    enum { POINTS = 1 };
    struct ottl_record *point = &runner->records[OTTL_DATA_POINT];
    struct wire_reader reader = wire_reader_of(data->bytes);
    struct wire_field field;
    while (wire_next_field(&reader, &field)) {
        if (field.number != POINTS)
            continue;
        uint64_t at = data->at + (uint64_t)(field.bytes.data - data->bytes.data);
        const struct place place = {.header_at = at - (field.whole.size - field.bytes.size),
                                    .content_at = at,
                                    .content_bytes = field.bytes.size,
                                    .number = POINTS,
                                    .edits = runner->edits.count,
                                    .messages = runner->edits.messages_count};
        ottl_record_open(point);
        ottl_record_borrow(point, field.bytes, behind(&reader, data), at);
        ottl_data_point_set_kind(point, (enum ottl_metric_data)data->kind);
        enum decision decision = decide(runner, OTTL_DATA_POINT);
        if (decision == DROP) {
            runner->dropped++;
            decision = remove_message(runner, &place);
        } else if (decision == KEEP) {
            decision = finish_point(runner, &place);
        }
        if (decision == ABORT)
            return ABORT;
        *kept += decision == KEEP;
    }
    return KEEP;
}

/* Opens the record of a metric's data: the last field that has some. */
static struct place open_data(struct ottl_runner *runner, const struct ottl_record *metric)
{
    struct ottl_record *data = &runner->records[OTTL_METRIC_DATA];
    struct wire_reader reader = wire_reader_of(metric->bytes);
    struct wire_field field;
    struct place place = {.number = 0};
    ottl_record_open(data);
    while (wire_next_field(&reader, &field)) {
        if (field.type != WIRE_BYTES || ottl_metric_data_of(field.number) == OTTL_NO_DATA)
            continue;
        uint64_t at = metric->at + (uint64_t)(field.bytes.data - metric->bytes.data);
        place = (struct place){.header_at = at - (field.whole.size - field.bytes.size),
                               .content_at = at,
                               .content_bytes = field.bytes.size,
                               .number = field.number};
        ottl_record_borrow(data, field.bytes, behind(&reader, metric), at);
        data->kind = (uint8_t)ottl_metric_data_of(field.number);
    }
    return place;
}

/* All points of a metric, as items are counted: also those of data that a later field replaces. */
static uint64_t count_points(struct slice metric)
{
    struct wire_reader reader = wire_reader_of(metric);
    struct wire_field field;
    struct wire_field point;
    uint64_t points = 0;
    while (wire_next_field(&reader, &field)) {
        if (field.type != WIRE_BYTES || ottl_metric_data_of(field.number) == OTTL_NO_DATA)
            continue;
        struct wire_reader data = wire_reader_of(field.bytes);
        while (wire_next_field(&data, &point))
            points += point.number == 1;
    }
    return points;
}

/* Puts the Metric, as a field of a scope, into the edits. */
static bool put_metric(struct ottl_runner *runner, struct slice metric, size_t *ret_bytes)
{
    const size_t whole = wire_field_size(CHILDREN, metric.size);
    uint8_t *room = ottl_edits_room(&runner->edits, whole);
    if (room == NULL)
        return false;
    struct wire_writer writer = wire_writer_of(room, whole);
    wire_write_bytes(&writer, CHILDREN, metric);
    *ret_bytes = whole;
    return true;
}

/* The metric has become another one. */
static enum decision replace_metric(struct ottl_runner *runner, const struct place *place,
                                    uint64_t points_before)
{
    struct slice metric;
    size_t bytes;
    if (!ottl_metric_current(&runner->run, &metric))
        return give_up(runner);
    if (!put_metric(runner, metric, &bytes))
        return abort_without_memory(runner);
    ottl_edits_add(&runner->edits, place->header_at,
                   place->content_at + place->content_bytes - place->header_at, bytes);
    runner->edits.is_unsorted = true;
    runner->dropped += points_before;
    runner->made += count_points(metric);
    return KEEP;
}

/* The metric whose record is open. */
static __attribute__((noinline)) enum decision run_metric(struct ottl_runner *runner,
                                                          const struct place *place)
{
    struct ottl_record *metric = &runner->records[OTTL_METRIC];
    struct ottl_record *data = &runner->records[OTTL_METRIC_DATA];
    struct place inner = open_data(runner, metric);
    const bool has_points =
        has_context(runner, OTTL_CONTEXT_BIT(OTTL_DATA_POINT) | OTTL_CONTEXT_BIT(OTTL_EXEMPLAR));
    const bool prunes = runner->prunes && has_context(runner, OTTL_CONTEXT_BIT(OTTL_DATA_POINT));
    uint64_t dropped_before = runner->dropped;
    uint64_t kept = 0;
    if (has_context(runner, OTTL_CONTEXT_BIT(OTTL_METRIC))) {
        const struct slice before = metric->bytes;
        runner->rewrite.is_rewritten = false;
        enum decision decision = decide(runner, OTTL_METRIC);
        if (decision == DROP)
            runner->dropped += count_points(metric->bytes);
        if (decision == KEEP && runner->rewrite.is_rewritten)
            return replace_metric(runner, place, count_points(before));
        if (decision != KEEP)
            return decision;
    }
    if (!has_points && !ottl_record_has_changed(metric) && !ottl_record_has_changed(data))
        return KEEP;
    if (has_points && !data->exists && runner->purpose >= OTTL_PICKS)
        return DROP;
    begin_message(runner, place);
    inner.edits = runner->edits.count;
    inner.messages = runner->edits.messages_count;
    if (data->exists) {
        begin_message(runner, &inner);
        if (has_points && walk_points(runner, data, &kept) == ABORT)
            return ABORT;
        if (prunes && kept == 0) {
            runner->dropped = dropped_before + count_points(metric->bytes);
            ottl_edits_cut(&runner->edits, place->edits, place->messages);
            return DROP;
        }
        if (ottl_record_has_changed(data) && !ottl_record_finish(data, &runner->edits))
            return abort_without_memory(runner);
        if (end_message(runner, &inner) == ABORT)
            return ABORT;
    }
    if (ottl_record_has_changed(metric) && !ottl_record_finish(metric, &runner->edits))
        return abort_without_memory(runner);
    return end_message(runner, place);
}

/* The changes of a span that stays, and of its events. */
static __attribute__((noinline)) enum decision finish_events(struct ottl_runner *runner,
                                                             struct ottl_record *span,
                                                             uint64_t header_at)
{
    const struct place place = place_of_record(runner, span, header_at, CHILDREN);
    begin_message(runner, &place);
    if (walk_events(runner, span) == ABORT)
        return ABORT;
    if (ottl_record_has_changed(span) && !ottl_record_finish(span, &runner->edits))
        return abort_without_memory(runner);
    return end_message(runner, &place);
}

/* Those of any other item. */
static __attribute__((noinline)) enum decision finish_item(struct ottl_runner *runner,
                                                           struct ottl_record *record,
                                                           uint64_t header_at)
{
    const size_t edits = runner->edits.count;
    if (!ottl_record_finish(record, &runner->edits))
        return abort_without_memory(runner);
    ottl_edits_add_leaf(&runner->edits, edits, header_at, record->at, record->bytes.size, CHILDREN);
    return runner->edits.has_failed ? abort_without_memory(runner) : KEEP;
}

/* The item whose record is open. */
static inline enum decision run_item(struct ottl_runner *runner, struct ottl_record *record,
                                     uint64_t header_at)
{
    const unsigned contexts = runner->plan->contexts;
    if ((contexts & OTTL_CONTEXT_BIT(runner->item)) != 0) {
        enum decision decision = decide(runner, runner->item);
        if (decision != KEEP)
            return decision;
    }
    if ((contexts & OTTL_CONTEXT_BIT(OTTL_SPAN_EVENT)) != 0)
        return finish_events(runner, record, header_at);
    return ottl_record_has_changed(record) ? finish_item(runner, record, header_at) : KEEP;
}

/* Metrics and profiles, whose items are in them. */
static __attribute__((noinline)) enum decision run_holder(struct ottl_runner *runner,
                                                          const struct ottl_record *record,
                                                          uint64_t header_at)
{
    const struct place place = place_of_record(runner, record, header_at, CHILDREN);
    return runner->item == OTTL_METRIC ? run_metric(runner, &place) : run_profile(runner, &place);
}

/* Dropped items that follow one another are one edit. */
struct gap {
    uint64_t at;
    uint64_t bytes;
};

static void close_gap(struct ottl_runner *runner, struct gap *gap)
{
    if (gap->bytes > 0)
        ottl_edits_remove(&runner->edits, gap->at, gap->bytes);
    gap->bytes = 0;
}

static void widen_gap(struct ottl_runner *runner, struct gap *gap, uint64_t at, uint64_t bytes)
{
    if (gap->bytes == 0 || gap->at + gap->bytes != at) {
        close_gap(runner, gap);
        gap->at = at;
    }
    gap->bytes += bytes;
}

/* Runs the item whose record is open; counts those that stay. */
static inline enum decision walk_item(struct ottl_runner *runner, struct ottl_record *record,
                                      uint64_t header_at, struct gap *gap, uint64_t *kept)
{
    const bool is_holder = runner->item == OTTL_METRIC || runner->item == OTTL_PROFILE;
    const uint64_t end_at = record->at + record->bytes.size; /* a metric may become another */
    if (gap->bytes > 0 && gap->at + gap->bytes != header_at)
        close_gap(runner, gap);
    const enum decision decision =
        is_holder ? run_holder(runner, record, header_at) : run_item(runner, record, header_at);
    if (decision == DROP) {
        widen_gap(runner, gap, header_at, end_at - header_at);
        runner->dropped += !is_holder; /* what is in it is counted */
        return KEEP;
    }
    ++*kept;
    return decision;
}

/* An item in a Scope… message: its field, and the content. */
struct child {
    const uint8_t *begin;
    struct slice content;
};

static __attribute__((noinline)) bool next_child_of_any_form(struct wire_reader *reader,
                                                             struct child *ret)
{
    struct wire_field field;
    while (wire_next_field(reader, &field)) {
        if (field.number != CHILDREN)
            continue;
        *ret = (struct child){.begin = field.whole.data, .content = field.bytes};
        return true;
    }
    return false;
}

/* Most have a length of one or two bytes. */
static inline bool next_child(struct wire_reader *reader, struct child *ret)
{
    enum { HEADER_BYTES = 3, SHORT = 0x80 };
    const uint8_t *const at = reader->at;
    const size_t left = (size_t)(reader->end - at);
    if (left < HEADER_BYTES || at[0] != wire_tag(CHILDREN, WIRE_BYTES))
        return next_child_of_any_form(reader, ret);
    const uint8_t *content = at + 2;
    size_t size = at[1];
    if (size >= SHORT) {
        size += (size_t)at[2] * SHORT - SHORT;
        content++;
    }
    if (size >= SHORT * SHORT || size > (size_t)(reader->end - content))
        return next_child_of_any_form(reader, ret);
    *ret = (struct child){.begin = at, .content = slice_of(content, size)};
    reader->at = content + size;
    return true;
}

/* The items of a Scope… message that lies in one part, the usual one, which has more bytes behind
 * it. */
static enum decision walk_contiguous(struct ottl_runner *runner, struct slice content,
                                     size_t more_bytes, uint64_t at, struct gap *gap,
                                     uint64_t *kept)
{
    struct ottl_record *const record = &runner->records[runner->item];
    struct wire_reader reader = wire_reader_of(content);
    struct child child;
    while (next_child(&reader, &child)) {
        ottl_record_open(record);
        ottl_record_borrow(record, child.content, (size_t)(reader.end - reader.at) + more_bytes,
                           at + (uint64_t)(child.content.data - content.data));
        if (walk_item(runner, record, at + (uint64_t)(child.begin - content.data), gap, kept) ==
            ABORT)
            return ABORT;
    }
    close_gap(runner, gap);
    return KEEP;
}

static enum decision walk_items(struct ottl_runner *runner, const struct rope_field *holder,
                                uint64_t *kept)
{
    struct gap gap = {.bytes = 0};
    struct slice part =
        rope_contiguous(&holder->content, holder->content.batch->bytes - holder->content.at);
    if (part.size >= holder->content_bytes)
        return walk_contiguous(runner, slice_of(part.data, (size_t)holder->content_bytes),
                               part.size - (size_t)holder->content_bytes, holder->content.at, &gap,
                               kept);
    struct ottl_record *const record = &runner->records[runner->item];
    struct rope rope = holder->content;
    struct rope_field field;
    while (rope_read_field(&rope, holder->content.at + holder->content_bytes, &field)) {
        if (field.number != CHILDREN)
            continue;
        ottl_record_open(record);
        if (!borrow_field(record, &field))
            return abort_without_memory(runner);
        if (walk_item(runner, record, field.begin.at, &gap, kept) == ABORT)
            return ABORT;
    }
    close_gap(runner, &gap);
    return KEEP;
}

/* A metric that a function has appended: the group's statements run on it, as on the others. */
static enum decision run_appended(struct ottl_runner *runner, struct slice bytes, size_t *ret_bytes)
{
    struct ottl_record *metric = &runner->records[OTTL_METRIC];
    struct ottl_record *data = &runner->records[OTTL_METRIC_DATA];
    struct slice result;
    uint64_t kept = 0;
    ottl_record_open(metric);
    uint8_t *room = ottl_memory_room(&metric->memory, bytes.size);
    if (room == NULL)
        return abort_without_memory(runner);
    memcpy(room, bytes.data, bytes.size);
    ottl_record_borrow(metric, slice_of(room, bytes.size), 0, 0);
    const struct place place = open_data(runner, metric);
    if (has_context(runner, OTTL_CONTEXT_BIT(OTTL_METRIC)) &&
        run_context(runner, OTTL_METRIC) == ABORT)
        return ABORT;
    if (has_context(runner, OTTL_CONTEXT_BIT(OTTL_DATA_POINT)) && data->exists) {
        /* By places in the metric itself. */
        const struct ottl_edits edits = runner->edits;
        runner->edits = runner->detached;
        ottl_edits_reuse(&runner->edits);
        begin_message(runner, &place);
        enum decision decision = walk_points(runner, data, &kept);
        bool is_written =
            decision != ABORT &&
            (!ottl_record_has_changed(data) || ottl_record_finish(data, &runner->edits)) &&
            (!ottl_record_has_changed(metric) || ottl_record_finish(metric, &runner->edits)) &&
            ottl_rewrite_apply(&runner->edits, metric->bytes, &metric->memory, &result);
        runner->detached = runner->edits;
        runner->edits = edits;
        if (decision == ABORT)
            return ABORT;
        if (!is_written)
            return abort_without_memory(runner);
    } else if (!ottl_metric_current(&runner->run, &result)) {
        return give_up(runner);
    }
    if (!put_metric(runner, result, ret_bytes))
        return abort_without_memory(runner);
    runner->made += count_points(result);
    return KEEP;
}

/* Puts what functions have appended behind the scope's metrics. */
static enum decision append_metrics(struct ottl_runner *runner, const struct rope_field *holder)
{
    struct ottl_rewrite *rewrite = &runner->rewrite;
    struct rope rope = holder->content;
    struct rope_field field;
    uint64_t end = 0;
    size_t inserted = 0;
    while (rope_read_field(&rope, holder->content.at + holder->content_bytes, &field))
        if (field.number == CHILDREN)
            end = field.begin.at + field.size;
    for (size_t at = 0; at < rewrite->appended_bytes;) {
        const uint8_t *bytes = (const uint8_t *)rewrite->appended.memory + at;
        uint64_t size;
        size_t put;
        memcpy(&size, bytes, sizeof(size));
        if (run_appended(runner, slice_of(bytes + sizeof(size), (size_t)size), &put) == ABORT)
            return ABORT;
        inserted += put;
        at += sizeof(size) + (((size_t)size + OTTL_APPENDED_ALIGNMENT - 1) &
                              ~(size_t)(OTTL_APPENDED_ALIGNMENT - 1));
    }
    rewrite->appended_bytes = 0;
    ottl_edits_add_behind(&runner->edits, end, holder->content.at, inserted);
    return runner->edits.has_failed ? abort_without_memory(runner) : KEEP;
}

static enum decision walk_scope(struct ottl_runner *runner, const struct rope_field *holder)
{
    const unsigned inner = ~(OTTL_CONTEXT_BIT(OTTL_RESOURCE) | OTTL_CONTEXT_BIT(OTTL_SCOPE));
    struct ottl_record *scope = &runner->records[OTTL_SCOPE];
    const struct place place = place_of(runner, holder);
    uint64_t kept = 0;
    begin_message(runner, &place);
    if (reads(runner, OTTL_SCOPE) && !open_head(scope, holder))
        return abort_without_memory(runner);
    if (has_context(runner, OTTL_CONTEXT_BIT(OTTL_SCOPE))) {
        enum decision decision = decide(runner, OTTL_SCOPE);
        if (decision == DROP)
            runner->dropped += count_items(runner, holder, 1);
        if (decision != KEEP)
            return decision == DROP ? remove_message(runner, &place) : decision;
    }
    if (has_context(runner, inner)) {
        if (walk_items(runner, holder, &kept) == ABORT)
            return ABORT;
        if (runner->rewrite.appended_bytes > 0 && append_metrics(runner, holder) == ABORT)
            return ABORT;
        if (kept == 0 && runner->prunes)
            return remove_message(runner, &place);
    } else if (runner->prunes && count_children(holder, 1) == 0) {
        return remove_message(runner, &place);
    }
    if (reads(runner, OTTL_SCOPE) && finish_head(runner, scope, holder) == ABORT)
        return ABORT;
    return end_message(runner, &place);
}

static enum decision walk_resource(struct ottl_runner *runner, const struct rope_field *holder)
{
    const unsigned inner = ~OTTL_CONTEXT_BIT(OTTL_RESOURCE);
    struct ottl_record *resource = &runner->records[OTTL_RESOURCE];
    struct rope rope = holder->content;
    struct rope_field field;
    const struct place place = place_of(runner, holder);
    bool has_scopes = false;
    begin_message(runner, &place);
    if (reads(runner, OTTL_RESOURCE) && !open_head(resource, holder))
        return abort_without_memory(runner);
    const struct ottl_visitor *visitor = runner->purpose == OTTL_VISITS ? runner->visitor : NULL;
    if (visitor != NULL && show(runner, visitor->begin_resource(visitor->arg)) == ABORT)
        return ABORT;
    if (has_context(runner, OTTL_CONTEXT_BIT(OTTL_RESOURCE))) {
        enum decision decision = decide(runner, OTTL_RESOURCE);
        if (decision == DROP)
            runner->dropped += count_items(runner, holder, 2);
        if (decision != KEEP)
            return decision == DROP ? remove_message(runner, &place) : decision;
    }
    while (rope_read_field(&rope, holder->content.at + holder->content_bytes, &field)) {
        if (field.number != CHILDREN)
            continue;
        enum decision decision = has_context(runner, inner) ? walk_scope(runner, &field) : KEEP;
        if (decision == ABORT)
            return ABORT;
        has_scopes = has_scopes || decision == KEEP;
    }
    if (visitor != NULL && show(runner, visitor->end_resource(visitor->arg)) == ABORT)
        return ABORT;
    if (!has_scopes && runner->prunes)
        return remove_message(runner, &place);
    if (reads(runner, OTTL_RESOURCE) && finish_head(runner, resource, holder) == ABORT)
        return ABORT;
    return end_message(runner, &place);
}

/* Whether all that is held and what was refused is more than the budget has when it is empty, or
 * a limit is met. */
static bool never_fits(const struct ottl_runner *runner, const struct batch *batch)
{
    const struct ottl_rewrite *rewrite = &runner->rewrite;
    uint64_t bytes = ottl_edits_needed(&runner->edits) + ottl_edits_needed(&runner->detached) +
                     ottl_edits_needed(&rewrite->edits) + rewrite->appended_bytes +
                     runner->noted.bytes + runner->run.missed_bytes;
    if (runner->is_too_large || runner->edits.has_met_limit || runner->detached.has_met_limit ||
        rewrite->edits.has_met_limit)
        return true;
    if (runner->budget == NULL)
        return false;
    for (unsigned i = 0; i < OTTL_CONTEXTS; i++)
        bytes += runner->records[i].memory.held_bytes + runner->records[i].memory.refused_bytes;
    bytes += runner->dictionary.memory.held_bytes + runner->dictionary.memory.refused_bytes;
    const size_t first = batch->parts_count > 0 ? buffer_charge(batch->parts[0].owner) : 0;
    bytes += first > batch->bytes ? first : batch->bytes;
    bytes += runner->outer_bytes;
    return bytes > budget_room_max(runner->budget, batch_may_exceed(batch));
}

static struct ottl_result aborted(const struct ottl_runner *runner, const struct batch *batch)
{
    const bool has_failed = !runner->run.is_out_of_memory && !runner->is_too_large;
    return (struct ottl_result){.never_fits = never_fits(runner, batch),
                                .verdict = runner->is_too_long ? OTTL_TOO_LONG
                                           : has_failed        ? OTTL_REFUSED
                                                               : OTTL_NO_MEMORY,
                                .error = runner->run.error};
}

static struct ottl_result walk(struct ottl_runner *runner, struct batch *batch)
{
    struct rope rope = rope_of(batch);
    struct rope_field field;
    while (rope_read_field(&rope, batch->bytes, &field)) {
        if (field.number != REQUEST)
            continue;
        enum decision decision = walk_resource(runner, &field);
        if (decision == ABORT)
            return aborted(runner, batch);
        runner->resources += decision == KEEP;
    }
    /* A metric that becomes another one loses its points and gets new ones. */
    const uint64_t both = runner->dropped < runner->made ? runner->dropped : runner->made;
    struct ottl_result result = {
        .verdict = OTTL_PASSED, .dropped = runner->dropped - both, .made = runner->made - both};
    if (runner->resources == 0 && (runner->prunes || runner->purpose != OTTL_DROPS)) {
        result.verdict = OTTL_EMPTIED;
        return result;
    }
    ottl_dictionary_finish(&runner->dictionary, &runner->edits);
    if (runner->edits.has_failed) {
        abort_without_memory(runner);
        return aborted(runner, batch);
    }
    if (runner->edits.count == 0) {
        result.batch = batch_ref(batch);
        return result;
    }
    result.batch = ottl_edits_apply(&runner->edits, batch, runner->budget);
    if (result.batch == NULL) { /* by the budget, or by the edits' limit */
        abort_without_memory(runner);
        return aborted(runner, batch);
    }
    assert(result.dropped <= batch->items);
    result.batch->items = batch->items - result.dropped + result.made;
    return result;
}

/* What the records may hold for such a batch, though not less than they do. */
static void limit_records(struct ottl_runner *runner, uint64_t batch_bytes)
{
    const uint64_t more = OTTL_RECORD_FACTOR_MAX * batch_bytes;
    for (unsigned i = 0; i < OTTL_CONTEXTS; i++) {
        struct ottl_memory *memory = &runner->records[i].memory;
        memory->max_bytes = OTTL_RECORD_BYTES_MAX + (size_t)more;
        if (memory->max_bytes < memory->held_bytes)
            memory->max_bytes = memory->held_bytes;
    }
}

static void allow_work(struct ottl_runner *runner, uint64_t batch_bytes)
{
    runner->run.work_left =
        runner->lane != NULL ? OTTL_LANE_OUTER_BYTES_MIN + OTTL_LANE_OUTER_FACTOR_MAX * batch_bytes
                             : OTTL_OUTER_BYTES_MIN + OTTL_OUTER_FACTOR_MAX * batch_bytes;
}

/* One pass over a batch. Its edits are forgotten, what was noted stays. */
static struct ottl_result pass(struct ottl_runner *runner, struct batch *batch,
                               enum ottl_purpose purpose)
{
    runner->purpose = purpose;
    runner->run.client = batch->client;
    runner->records[OTTL_OTELCOL].generation++; /* another client */
    ottl_dictionary_open(&runner->dictionary, batch);
    runner->run.is_out_of_memory = false;
    runner->run.missed_bytes = 0;
    runner->is_aborted = runner->is_too_long = runner->is_too_large = false;
    limit_records(runner, batch->bytes);
    runner->dropped = runner->decided = runner->matches = runner->resources = 0;
    runner->made = 0;
    if (runner->plan->makes_metrics)
        ottl_rewrite_begin(&runner->rewrite, batch->bytes);
    ottl_edits_expect(&runner->edits, batch->bytes);
    allow_work(runner, batch->bytes);
    struct ottl_result result = walk(runner, batch);
    /* Between batches nothing is charged. */
    ottl_edits_clear(&runner->edits);
    ottl_memory_rest(&runner->dictionary.memory);
    if (runner->plan->makes_metrics) {
        ottl_edits_clear(&runner->detached);
        ottl_rewrite_begin(&runner->rewrite, 0);
    }
    ottl_runner_rest(runner);
    return result;
}

struct ottl_result ottl_runner_run(struct ottl_runner *runner, struct batch *batch)
{
    assert(batch->signal == runner->plan->signal);
    batch_begin_work(batch);
    const struct ottl_result result = pass(runner, batch, OTTL_DROPS);
    batch_end_work(batch);
    return result;
}

static bool has_left(const struct ottl_result *result)
{
    return result->verdict == OTTL_PASSED || result->verdict == OTTL_EMPTIED;
}

/* Takes the references of both parts, and of `edited`, if it is no part (NULL: none). */
static struct ottl_division division_of(const struct ottl_result *matched,
                                        const struct ottl_result *rest, struct batch *edited)
{
    const struct ottl_result *failed = has_left(matched) ? rest : matched;
    batch_unref(edited);
    if (has_left(failed))
        return (struct ottl_division){
            .verdict = OTTL_PASSED, .matched = matched->batch, .rest = rest->batch};
    batch_unref(matched->batch);
    batch_unref(rest->batch);
    return (struct ottl_division){
        .verdict = failed->verdict, .never_fits = failed->never_fits, .error = failed->error};
}

/* By a statement: it runs over all records, then the edited batch is divided as was noted. */
static struct ottl_division divide_edited(struct ottl_runner *runner, struct batch *batch,
                                          bool is_copy, bool prunes)
{
    struct ottl_result matched = {.verdict = OTTL_EMPTIED};
    struct ottl_result rest = {.verdict = OTTL_EMPTIED};
    runner->prunes = false;
    const struct ottl_result edited = pass(runner, batch, OTTL_EDITS);
    const bool matches = runner->matches > 0;
    runner->prunes = prunes;
    runner->outer_bytes = batch->bytes;
    if (edited.verdict != OTTL_PASSED)
        return division_of(&matched, &edited, NULL);
    if (matches)
        matched = pass(runner, edited.batch, OTTL_PICKS_NOTED);
    if (has_left(&matched) && is_copy)
        rest = (struct ottl_result){.verdict = OTTL_PASSED, .batch = batch_ref(edited.batch)};
    else if (has_left(&matched))
        rest = pass(runner, edited.batch, OTTL_LEAVES_NOTED);
    return division_of(&matched, &rest, edited.batch);
}

static struct ottl_division divide(struct ottl_runner *runner, struct batch *batch, bool is_copy,
                                   bool of_resources)
{
    struct ottl_result second = {.verdict = OTTL_EMPTIED};
    runner->prunes = !of_resources;
    struct ottl_result first = pass(runner, batch, is_copy ? OTTL_PICKS : OTTL_LEAVES);
    if (!has_left(&first))
        return division_of(&first, &second, NULL);
    if (is_copy) {
        second = (struct ottl_result){.verdict = OTTL_PASSED, .batch = batch_ref(batch)};
        return division_of(&first, &second, NULL);
    }
    if (runner->matches > 0 && of_resources && first.verdict == OTTL_EMPTIED)
        second = (struct ottl_result){.verdict = OTTL_PASSED, .batch = batch_ref(batch)};
    else if (runner->matches > 0)
        second = pass(runner, batch, OTTL_PICKS_NOTED);
    return division_of(&second, &first, NULL);
}

struct ottl_division ottl_runner_divide(struct ottl_runner *runner, struct batch *batch,
                                        bool is_copy)
{
    const struct ottl_plan *plan = runner->plan;
    const bool of_resources = plan->contexts == OTTL_CONTEXT_BIT(OTTL_RESOURCE);
    const struct ottl_sequence *sequence = plan->sequences[__builtin_ctz(plan->contexts)];
    assert(batch->signal == plan->signal);
    batch_begin_work(batch);
    struct ottl_division division = sequence->statements_count > 0
                                        ? divide_edited(runner, batch, is_copy, !of_resources)
                                        : divide(runner, batch, is_copy, of_resources);
    scratch_fini(&runner->noted, runner->budget);
    runner->outer_bytes = 0;
    batch_end_work(batch);
    return division;
}

struct ottl_result ottl_runner_visit(struct ottl_runner *runner, struct batch *batch,
                                     const struct ottl_visitor *visitor)
{
    assert(batch->signal == runner->plan->signal);
    assert(!runner->prunes);
    runner->visitor = visitor;
    batch_begin_work(batch);
    struct ottl_result result = pass(runner, batch, OTTL_VISITS);
    batch_end_work(batch);
    batch_unref(result.batch);
    result.batch = NULL;
    if (result.verdict == OTTL_EMPTIED)
        result.verdict = OTTL_PASSED;
    return result;
}

int ottl_runner_test(struct ottl_runner *runner, const struct ottl_sequence *sequence)
{
    bool holds = true;
    runner->run.memory = &runner->records[sequence->context].memory;
    runner->run.cache = NULL;
    if (sequence->conditions_count > 0 && evaluate_conditions(runner, sequence, &holds) == ABORT)
        return OTTL_FAILED;
    return holds ? OTTL_TRUE : OTTL_FALSE;
}

int ottl_runner_test_request(struct ottl_runner *runner, struct batch *batch)
{
    batch_begin_work(batch);
    runner->run.client = batch->client;
    runner->run.is_out_of_memory = runner->is_too_long = false;
    allow_work(runner, batch->bytes);
    ottl_record_open(&runner->records[OTTL_OTELCOL]);
    bool holds = false;
    enum decision decision;
    if (runner->plan->sequences[OTTL_OTELCOL]->statements_count > 0) {
        decision = run_edit(runner, OTTL_OTELCOL, &holds);
    } else {
        decision = run_context(runner, OTTL_OTELCOL);
        holds = decision == DROP;
    }
    ottl_runner_rest(runner);
    batch_end_work(batch);
    return decision == ABORT ? OTTL_FAILED : holds ? OTTL_TRUE : OTTL_FALSE;
}

bool ottl_runner_enter(struct ottl_runner *runner, enum ottl_context head, struct slice fields)
{
    struct batch batch = {.parts_count = 1, .bytes = fields.size};
    batch.first_part.bytes = fields;
    batch.parts = &batch.first_part;
    const struct rope_field holder = {.content = rope_of(&batch), .content_bytes = fields.size};
    assert(head == OTTL_RESOURCE || head == OTTL_SCOPE);
    runner->records[head].memory.may_exceed = true;
    return !reads(runner, head) || open_head(&runner->records[head], &holder);
}

int ottl_runner_test_span(struct ottl_runner *runner, struct slice span)
{
    enum { EVENTS = 11 };
    struct ottl_record *event = &runner->records[OTTL_SPAN_EVENT];
    struct wire_reader reader = wire_reader_of(span);
    struct wire_field field;
    enum decision decision = KEEP;
    runner->run.is_out_of_memory = false;
    runner->records[OTTL_SPAN].memory.may_exceed = event->memory.may_exceed = true;
    budget_begin_late();
    ottl_record_open(&runner->records[OTTL_SPAN]);
    ottl_record_borrow(&runner->records[OTTL_SPAN], span, 0, 0);
    if (has_context(runner, OTTL_CONTEXT_BIT(OTTL_SPAN)))
        decision = run_context(runner, OTTL_SPAN);
    while (decision == KEEP && has_context(runner, OTTL_CONTEXT_BIT(OTTL_SPAN_EVENT)) &&
           wire_next_field(&reader, &field)) {
        if (field.number != EVENTS)
            continue;
        ottl_record_open(event);
        ottl_record_borrow(event, field.bytes, behind(&reader, &runner->records[OTTL_SPAN]), 0);
        decision = run_context(runner, OTTL_SPAN_EVENT);
    }
    budget_end_late();
    return decision == KEEP ? OTTL_FALSE : decision == DROP ? OTTL_TRUE : OTTL_FAILED;
}
