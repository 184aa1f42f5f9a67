/* SPDX-License-Identifier: Apache-2.0 */
/* Words are cut as in Go: blanks in double quotes cut no argument, but they do cut a command. */
#include "src/records/command_obfuscator.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "src/base/arena.h"
#include "src/base/utf8_classes.h"

/* Which arguments are values, the first being 0. */
enum rule_kind {
    HIDES_ONE,
    HIDES_REST,  /* from the first one on, as one */
    HIDES_EVERY, /* from the first one on, each step-th */
    HIDES_CONFIG,
    HIDES_BITFIELD,
    HIDES_SCORES,
};

struct rule {
    const char *command;
    enum rule_kind kind;
    size_t first, step;
};

/* Ascending. */
static const struct rule rules[] = {
    {"APPEND", HIDES_ONE, 1, 0},
    {"AUTH", HIDES_REST, 0, 0},
    {"BITFIELD", HIDES_BITFIELD, 3, 0},
    {"CONFIG", HIDES_CONFIG, 2, 0},
    {"GEOADD", HIDES_EVERY, 3, 3},
    {"GEODIST", HIDES_REST, 1, 0},
    {"GEOHASH", HIDES_REST, 1, 0},
    {"GEOPOS", HIDES_REST, 1, 0},
    {"GEORADIUSBYMEMBER", HIDES_ONE, 1, 0},
    {"GETSET", HIDES_ONE, 1, 0},
    {"HMSET", HIDES_EVERY, 2, 2},
    {"HSET", HIDES_EVERY, 2, 2},
    {"HSETNX", HIDES_ONE, 2, 0},
    {"LINSERT", HIDES_ONE, 3, 0},
    {"LPUSH", HIDES_REST, 1, 0},
    {"LPUSHX", HIDES_ONE, 1, 0},
    {"LREM", HIDES_ONE, 2, 0},
    {"LSET", HIDES_ONE, 2, 0},
    {"MSET", HIDES_EVERY, 1, 2},
    {"MSETNX", HIDES_EVERY, 1, 2},
    {"PSETEX", HIDES_ONE, 2, 0},
    {"RESTORE", HIDES_ONE, 2, 0},
    {"RPUSH", HIDES_REST, 1, 0},
    {"RPUSHX", HIDES_ONE, 1, 0},
    {"SADD", HIDES_REST, 1, 0},
    {"SET", HIDES_ONE, 1, 0},
    {"SETBIT", HIDES_ONE, 2, 0},
    {"SETEX", HIDES_ONE, 2, 0},
    {"SETNX", HIDES_ONE, 1, 0},
    {"SETRANGE", HIDES_ONE, 2, 0},
    {"SISMEMBER", HIDES_ONE, 1, 0},
    {"SMOVE", HIDES_ONE, 2, 0},
    {"SREM", HIDES_REST, 1, 0},
    {"ZADD", HIDES_SCORES, 1, 2},
    {"ZINCRBY", HIDES_ONE, 2, 0},
    {"ZRANK", HIDES_ONE, 1, 0},
    {"ZREM", HIDES_REST, 1, 0},
    {"ZREVRANK", HIDES_ONE, 1, 0},
    {"ZSCORE", HIDES_ONE, 1, 0},
};

/* NULL: none of its arguments is a value. */
static const struct rule *find_rule(struct slice command)
{
    size_t from = 0;
    size_t to = sizeof(rules) / sizeof(rules[0]);
    while (from < to) {
        size_t middle = (from + to) / 2;
        size_t size = strlen(rules[middle].command);
        size_t common = size < command.size ? size : command.size;
        int order =
            common > 0 ? strncasecmp(rules[middle].command, (const char *)command.data, common) : 0;
        if (order == 0 && size == command.size)
            return &rules[middle];
        if (order < 0 || (order == 0 && size < command.size))
            from = middle + 1;
        else
            to = middle;
    }
    return NULL;
}

/* ---- Words ---- */

struct reader {
    struct slice text; /* without white space around it */
    size_t at;
    bool is_in_command; /* the next word is an argument */
};

/* Behind a blank: up to the next word, which a line end makes a command. */
static void skip_blanks(struct reader *reader)
{
    while (memchr(" \t\r", reader->text.data[reader->at], 3) != NULL)
        reader->at++;
    if (reader->text.data[reader->at] == '\n') {
        reader->at++;
        reader->is_in_command = false;
    }
}

static struct slice read_command(struct reader *reader)
{
    struct slice text = reader->text;
    size_t begin = reader->at;
    if (reader->at < text.size && text.data[reader->at] == ' ') {
        reader->at++;
        skip_blanks(reader);
        begin = reader->at;
    }
    while (reader->at < text.size && text.data[reader->at] != ' ' && text.data[reader->at] != '\n')
        reader->at++;
    struct slice command = slice_of(text.data + begin, reader->at - begin);
    if (reader->at < text.size && text.data[reader->at++] == ' ') {
        reader->is_in_command = true;
        skip_blanks(reader);
    }
    return command;
}

static struct slice read_argument(struct reader *reader)
{
    struct slice text = reader->text;
    size_t begin = reader->at;
    bool is_quoted = false;
    bool is_escaped = false;
    for (; reader->at < text.size; reader->at++) {
        uint8_t byte = text.data[reader->at];
        if (!is_quoted && (byte == ' ' || byte == '\n'))
            break;
        if (byte == '"' && !is_escaped)
            is_quoted = !is_quoted;
        is_escaped = byte == '\\' && !is_escaped;
    }
    struct slice argument = slice_of(text.data + begin, reader->at - begin);
    if (reader->at == text.size)
        return argument;
    if (text.data[reader->at++] == ' ')
        skip_blanks(reader);
    else
        reader->is_in_command = false;
    return argument;
}

/* ---- Commands ---- */

/* The command at hand. */
struct command {
    const struct rule *rule; /* NULL: all arguments stay */
    size_t count;            /* of arguments so far */
    size_t mark;             /* CONFIG, ZADD, BITFIELD: where what counts from there begins */
    bool has_mark;
    bool is_done;
};

enum fate { STAYS, IS_HIDDEN, GOES };

static bool is_score_option(struct slice argument)
{
    return slice_equal_text(argument, "NX") || slice_equal_text(argument, "XX") ||
           slice_equal_text(argument, "CH") || slice_equal_text(argument, "INCR");
}

/* Of the next argument. */
static enum fate fate_of(struct command *command, struct slice argument)
{
    const struct rule *rule = command->rule;
    size_t index = command->count++;
    if (rule == NULL)
        return STAYS;
    switch (rule->kind) {
    case HIDES_ONE:
        return index == rule->first ? IS_HIDDEN : STAYS;
    case HIDES_REST:
        return index < rule->first ? STAYS : index == rule->first ? IS_HIDDEN : GOES;
    case HIDES_EVERY:
        return index >= rule->first && (index - rule->first) % rule->step == 0 ? IS_HIDDEN : STAYS;
    case HIDES_CONFIG:
        command->has_mark |= index == 0 && slice_equal_nocase(argument, "SET");
        return command->has_mark && index == rule->first ? IS_HIDDEN : STAYS;
    case HIDES_BITFIELD:
        if (index > 0 && slice_equal_nocase(argument, "SET")) {
            command->has_mark = true;
            command->mark = index;
        }
        if (command->is_done || !command->has_mark || index - command->mark != rule->first)
            return STAYS;
        command->is_done = true;
        return IS_HIDDEN;
    case HIDES_SCORES:
    default:
        if (!command->has_mark && index > 0 && !is_score_option(argument)) {
            command->has_mark = true;
            command->mark = index;
        }
        return command->has_mark && (index - command->mark) % rule->step == rule->first ? IS_HIDDEN
                                                                                        : STAYS;
    }
}

struct writer {
    uint8_t *room; /* of the text's size: words do not grow, and they had bytes between them */
    size_t size;
    size_t capacity;
    bool has_failed;
};

static void write_bytes(struct writer *writer, struct slice bytes)
{
    writer->has_failed |= bytes.size > writer->capacity - writer->size;
    if (writer->has_failed || bytes.size == 0)
        return;
    memcpy(writer->room + writer->size, bytes.data, bytes.size);
    writer->size += bytes.size;
}

/* Reads a command with its arguments. */
static void write_command(struct reader *reader, struct writer *writer, struct slice name)
{
    struct command command = {.rule = find_rule(name)};
    write_bytes(writer, name);
    while (reader->is_in_command && reader->at < reader->text.size) {
        struct slice argument = read_argument(reader);
        enum fate fate = fate_of(&command, argument);
        if (fate == GOES)
            continue;
        write_bytes(writer, slice_of_text(" "));
        write_bytes(writer, fate == IS_HIDDEN ? slice_of_text("?") : argument);
    }
}

struct slice redis_obfuscate(struct arena *arena, struct slice text)
{
    struct reader reader = {.text = utf8_trim_space(text)};
    size_t capacity = reader.text.size;
    if (capacity == 0)
        return slice_of_text("");
    struct writer writer = {.room = arena_try_alloc(arena, capacity), .capacity = capacity};
    if (writer.room == NULL)
        return slice_of_text("****");
    while (reader.at < reader.text.size) {
        size_t begin = writer.size;
        reader.is_in_command = false;
        struct slice name = read_command(&reader);
        write_command(&reader, &writer, name);
        bool is_last = reader.at == reader.text.size;
        if (name.size == 0 && !is_last)
            writer.size = begin; /* a command without a name goes, unless it is the last one */
        else if (!is_last)
            write_bytes(&writer, slice_of_text("\n"));
    }
    return writer.has_failed ? slice_of_text("****") : slice_of(writer.room, writer.size);
}

struct slice memcached_obfuscate(struct slice text)
{
    struct slice line = text;
    for (size_t i = 0; i + 1 < text.size && line.size == text.size; i++)
        if (text.data[i] == '\r' && text.data[i + 1] == '\n')
            line.size = i;
    return utf8_trim_space(line);
}
