/* SPDX-License-Identifier: Apache-2.0 */
/* Translates and escapes names. */
#include "src/prometheus/prometheus_names.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "src/base/utf8.h"

enum {
    SUFFIXES_BYTES_MAX = 64, /* "_total", "_ratio", "_per_" and known units with underscores */
    ESCAPED_BYTES_MAX = 10,  /* "_10ffff_" for a character, "_dot_", "_FFFD_" */
    VALUES_PREFIX_BYTES = 3, /* "U__" */
};

/* UCUM's units and Prometheus's; NULL-ended. */
static const struct unit {
    const char *otlp;
    const char *prometheus;
} units[] =
    {
        {"d", "days"},
        {"h", "hours"},
        {"min", "minutes"},
        {"s", "seconds"},
        {"ms", "milliseconds"},
        {"us", "microseconds"},
        {"ns", "nanoseconds"},
        {"By", "bytes"},
        {"KiBy", "kibibytes"},
        {"MiBy", "mebibytes"},
        {"GiBy", "gibibytes"},
        {"TiBy", "tibibytes"},
        {"KBy", "kilobytes"},
        {"MBy", "megabytes"},
        {"GBy", "gigabytes"},
        {"TBy", "terabytes"},
        {"m", "meters"},
        {"V", "volts"},
        {"A", "amperes"},
        {"J", "joules"},
        {"W", "watts"},
        {"g", "grams"},
        {"Cel", "celsius"},
        {"Hz", "hertz"},
        {"1", ""},
        {"%", "percent"},
        {NULL, NULL},
},
  units_per[] = {
      {"s", "second"}, {"m", "minute"}, {"h", "hour"}, {"d", "day"},
      {"w", "week"},   {"mo", "month"}, {"y", "year"}, {NULL, NULL},
};

static bool is_alphanumeric(uint8_t byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= '0' && byte <= '9');
}

static bool is_digit(uint8_t byte)
{
    return byte >= '0' && byte <= '9';
}

/* The characters of a metric's name besides "_". */
static bool is_name_byte(uint8_t byte)
{
    return is_alphanumeric(byte) || byte == ':';
}

/* A name that is being written. Its room is known to be enough. */
struct name {
    char *text;
    size_t size;
};

static void name_add(struct name *name, struct slice bytes)
{
    if (bytes.size > 0)
        memcpy(name->text + name->size, bytes.data, bytes.size);
    name->size += bytes.size;
}

static void name_add_byte(struct name *name, char byte)
{
    name->text[name->size++] = byte;
}

/* Adds a word behind "_", unless it is the first. */
static void name_add_word(struct name *name, struct slice word)
{
    if (name->size > 0)
        name_add_byte(name, '_');
    name_add(name, word);
}

/* The longest run of bytes that belong to a word, from *at on; false: there is none. With
 * underscores they belong to words. */
static bool next_word(struct slice text, size_t *at, bool with_underscores, struct slice *ret_word)
{
    size_t begin = *at;
    if (text.size == 0)
        return false;
    while (begin < text.size && !is_name_byte(text.data[begin]) &&
           !(with_underscores && text.data[begin] == '_'))
        begin++;
    size_t end = begin;
    while (end < text.size &&
           (is_name_byte(text.data[end]) || (with_underscores && text.data[end] == '_')))
        end++;
    *at = end;
    *ret_word = slice_of(text.data + begin, end - begin);
    return end > begin;
}

static bool has_word(struct slice text, struct slice word)
{
    size_t at = 0;
    struct slice found;
    while (next_word(text, &at, false, &found))
        if (slice_equal(found, word))
            return true;
    return false;
}

static struct slice find_unit(const struct unit *table, struct slice unit)
{
    for (; table->otlp != NULL; table++)
        if (slice_equal_text(unit, table->otlp))
            return slice_of_text(table->prometheus);
    return unit;
}

/* Both parts of "By/s"; annotations ("{request}") are none. */
struct unit_suffixes {
    struct slice main;
    struct slice per; /* without "per_" */
};

static bool is_unit(struct slice text)
{
    return text.size > 0 && memchr(text.data, '{', text.size) == NULL &&
           memchr(text.data, '}', text.size) == NULL;
}

static struct unit_suffixes unit_suffixes_of(struct slice unit)
{
    struct unit_suffixes suffixes = {0};
    const uint8_t *slash = unit.size > 0 ? memchr(unit.data, '/', unit.size) : NULL;
    size_t main_bytes = slash != NULL ? (size_t)(slash - unit.data) : unit.size;
    struct slice main = slice_trim(slice_of(unit.data, main_bytes));
    if (is_unit(main))
        suffixes.main = find_unit(units, main);
    if (slash == NULL)
        return suffixes;
    struct slice per = slice_trim(slice_of(slash + 1, unit.size - main_bytes - 1));
    if (is_unit(per))
        suffixes.per = find_unit(units_per, per);
    return suffixes;
}

/* Writes a unit with "_" for each run of other characters, but none in front. Behind "per_" the one
 * in front stays, joined with that of "per_". Returns its size. */
static size_t clean_unit(struct slice unit, char *text)
{
    struct name clean = {.text = text};
    for (size_t i = 0; i < unit.size; i++) {
        if (is_name_byte(unit.data[i]))
            name_add_byte(&clean, (char)unit.data[i]);
        else if (clean.size > 0 && clean.text[clean.size - 1] != '_')
            name_add_byte(&clean, '_');
    }
    return clean.size;
}

static bool ends_with_underscore(struct slice text)
{
    return text.size > 0 && text.data[text.size - 1] == '_';
}

static struct slice trim_last_underscore(struct slice text)
{
    return slice_of(text.data, text.size - ends_with_underscore(text));
}

/* Words of the name, then unit, "total" or "ratio". The units are written behind the room of the
 * name first, since they must be compared with its words. */
static void build_with_suffixes(const struct prometheus_naming *naming, const struct metric *metric,
                                struct name *name, char *scratch)
{
    bool is_counter = metric->kind == METRIC_SUM && metric->is_monotonic;
    bool is_ratio = metric->kind == METRIC_GAUGE && slice_equal_text(metric->unit, "1");
    struct unit_suffixes suffixes = unit_suffixes_of(metric->unit);
    char *per_text = scratch + metric->unit.size + SUFFIXES_BYTES_MAX;
    struct slice main = slice_of(scratch, clean_unit(suffixes.main, scratch));
    struct slice per = slice_of(per_text, clean_unit(suffixes.per, per_text));
    if (main.size > 0 && has_word(metric->name, main))
        main.size = 0;
    if (per.size > 0)
        per = trim_last_underscore(per);
    bool has_per = per.size > 0;
    if (has_per)
        main = trim_last_underscore(main);
    name_add(name, slice_of_text(naming->name_space));
    bool is_begun = naming->name_space[0] != '\0';
    const char *const added = is_counter ? "total" : is_ratio ? "ratio" : NULL;
    size_t at = 0;
    struct slice word;
    while (next_word(metric->name, &at, false, &word)) {
        if (added != NULL && slice_equal_text(word, added))
            continue;
        if (is_begun)
            name_add_byte(name, '_');
        name_add(name, word);
        is_begun = true;
    }
    const bool are_removed = added != NULL;
    if (main.size > 0 && !(are_removed && slice_equal_text(main, added)))
        name_add_word(name, main);
    if (has_per) {
        name_add_word(name, slice_of_text("per"));
        name_add_word(name, per);
    }
    if (added != NULL)
        name_add_word(name, slice_of_text(added));
}

/* Words with their underscores, joined. */
static void build_plain(const struct prometheus_naming *naming, const struct metric *metric,
                        struct name *name)
{
    const struct slice parts[] = {slice_of_text(naming->name_space), metric->name};
    bool has_space = naming->name_space[0] != '\0';
    for (size_t i = has_space ? 0 : 1; i < 2; i++) {
        size_t at = 0;
        size_t begin = name->size;
        struct slice word;
        if (i == 1 && has_space)
            name_add_byte(name, '_');
        begin = name->size;
        while (next_word(parts[i], &at, true, &word)) {
            if (name->size > begin)
                name_add_byte(name, '_');
            name_add(name, word);
        }
    }
}

/* Cuts the suffix and the character in front of it off, if something else is left. */
static void cut_suffix(struct name *name, struct slice suffix)
{
    if (name->size > suffix.size + 1 &&
        memcmp(name->text + name->size - suffix.size, suffix.data, suffix.size) == 0)
        name->size -= suffix.size + 1;
}

/* The name as it is, with suffixes. */
static void build_utf8(const struct prometheus_naming *naming, const struct metric *metric,
                       struct name *name)
{
    if (naming->name_space[0] != '\0') {
        name_add(name, slice_of_text(naming->name_space));
        name_add_byte(name, '_');
    }
    name_add(name, metric->name);
    if (!naming->has_suffixes)
        return;
    bool is_counter = metric->kind == METRIC_SUM && metric->is_monotonic;
    bool is_ratio = metric->kind == METRIC_GAUGE && slice_equal_text(metric->unit, "1");
    struct slice added = slice_of_text(is_counter ? "total" : is_ratio ? "ratio" : "");
    struct unit_suffixes suffixes = unit_suffixes_of(metric->unit);
    if (added.size > 0)
        cut_suffix(name, added);
    if (suffixes.per.size > 0) {
        static const char per[] = "per_";
        size_t whole = sizeof(per) - 1 + suffixes.per.size;
        size_t from = name->size - suffixes.per.size;
        if (name->size > whole + 1 &&
            memcmp(name->text + from, suffixes.per.data, suffixes.per.size) == 0 &&
            memcmp(name->text + from - (sizeof(per) - 1), per, sizeof(per) - 1) == 0)
            name->size -= whole + 1;
    }
    struct slice main = suffixes.main;
    if (main.size > 0 && !(name->size >= main.size && memcmp(name->text + name->size - main.size,
                                                             main.data, main.size) == 0)) {
        name_add_byte(name, '_');
        name_add(name, main);
    }
    if (suffixes.per.size > 0) {
        name_add(name, slice_of_text("_per_"));
        name_add(name, suffixes.per);
    }
    if (added.size > 0) {
        name_add_byte(name, '_');
        name_add(name, added);
    }
}

static bool has_underscores_only(const char *text, size_t size)
{
    size_t i = 0;
    while (i < size && text[i] == '_')
        i++;
    return i == size;
}

size_t prometheus_metric_name_max(const struct prometheus_naming *naming,
                                  const struct metric *metric)
{
    /* Words and separators of the name, then the units, twice: once to compare them. */
    return strlen(naming->name_space) + metric->name.size +
           4 * (metric->unit.size + SUFFIXES_BYTES_MAX);
}

size_t prometheus_metric_name(const struct prometheus_naming *naming, const struct metric *metric,
                              char *text)
{
    struct name name = {.text = text};
    size_t room = prometheus_metric_name_max(naming, metric);
    if (naming->has_utf8) {
        build_utf8(naming, metric, &name);
        assert(name.size <= room);
        return name.size;
    }
    if (naming->has_suffixes)
        build_with_suffixes(naming, metric, &name,
                            text + room - 2 * (metric->unit.size + SUFFIXES_BYTES_MAX));
    else
        build_plain(naming, metric, &name);
    if (name.size > 0 && is_digit((uint8_t)text[0]) &&
        (naming->has_suffixes || naming->name_space[0] == '\0')) {
        memmove(text + 1, text, name.size);
        text[0] = '_';
        name.size++;
    }
    assert(name.size <= room);
    bool is_same = slice_equal(slice_of(text, name.size), metric->name);
    return !is_same && has_underscores_only(text, name.size) ? 0 : name.size;
}

size_t prometheus_label_name_max(struct slice key)
{
    return sizeof("key_") - 1 + key.size;
}

size_t prometheus_label_name(const struct prometheus_naming *naming, struct slice key, char *text)
{
    struct name name = {.text = text};
    if (naming->has_utf8) {
        name_add(&name, key);
    } else {
        if (key.size > 0 && is_digit(key.data[0]))
            name_add(&name, slice_of_text("key_"));
        for (size_t i = 0; i < key.size;) {
            size_t bytes = utf8_size(slice_of(key.data + i, key.size - i));
            name_add_byte(&name, is_alphanumeric(key.data[i]) ? (char)key.data[i] : '_');
            i += bytes > 0 ? bytes : 1;
        }
    }
    return has_underscores_only(text, name.size) ? 0 : name.size;
}

/* A reserved name without its underscores; false: it is not reserved. */
static bool cut_reserved(struct slice *key)
{
    static const char ends[] = "__";
    enum { BYTES = sizeof(ends) - 1 };
    if (key->size < 2 * BYTES || memcmp(key->data, ends, BYTES) != 0 ||
        memcmp(key->data + key->size - BYTES, ends, BYTES) != 0)
        return false;
    *key = slice_of(key->data + BYTES, key->size - 2 * BYTES);
    return true;
}

size_t prometheus_label_name_joined(struct slice key, char *text)
{
    struct name name = {.text = text};
    if (key.size == 0)
        return 0;
    bool is_reserved = cut_reserved(&key);
    if (is_reserved)
        name_add(&name, slice_of_text("__"));
    else if (is_digit(key.data[0]))
        name_add(&name, slice_of_text("key_"));
    else if (!is_alphanumeric(key.data[0]))
        name_add(&name, slice_of_text("key"));
    bool is_gap = false;
    for (size_t i = 0; i < key.size; i++) {
        bool is_kept = is_alphanumeric(key.data[i]);
        if (is_kept || !is_gap)
            name_add_byte(&name, is_kept ? (char)key.data[i] : '_');
        is_gap = !is_kept;
    }
    if (is_reserved)
        name_add(&name, slice_of_text("__"));
    return has_underscores_only(text, name.size) ? 0 : name.size;
}

size_t prometheus_unit_max(struct slice unit)
{
    return 2 * (unit.size + SUFFIXES_BYTES_MAX);
}

size_t prometheus_unit(const struct prometheus_naming *naming, struct slice unit, char *text)
{
    struct unit_suffixes suffixes = unit_suffixes_of(unit);
    struct name name = {.text = text};
    if (naming->has_utf8)
        name_add(&name, suffixes.main);
    else
        name.size = clean_unit(suffixes.main, text);
    if (suffixes.per.size > 0) {
        name_add_word(&name, slice_of_text("per_"));
        if (naming->has_utf8)
            name_add(&name, suffixes.per);
        else
            name.size += clean_unit(suffixes.per, text + name.size);
    }
    if (name.size > 0 && text[0] == '_')
        memmove(text, text + 1, --name.size);
    return trim_last_underscore(slice_of(text, name.size)).size;
}

static bool is_plain_byte(uint8_t byte, bool is_first)
{
    return byte == '_' || (is_name_byte(byte) && !(is_first && is_digit(byte)));
}

bool prometheus_name_is_plain(struct slice name)
{
    for (size_t i = 0; i < name.size; i++)
        if (!is_plain_byte(name.data[i], i == 0))
            return false;
    return name.size > 0;
}

size_t prometheus_escape_max(struct slice name)
{
    return VALUES_PREFIX_BYTES + ESCAPED_BYTES_MAX * name.size;
}

static unsigned code_point(struct slice character)
{
    static const uint8_t first_bits[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    enum { REPLACEMENT = 0xfffd };
    assert(character.size >= 1 && character.size <= 4);
    if (character.size == 1 && character.data[0] >= 0x80)
        return REPLACEMENT;
    unsigned value = character.data[0] & first_bits[character.size];
    for (size_t i = 1; i < character.size; i++)
        value = value << 6 | (character.data[i] & 0x3f);
    return value;
}

/* One character of a name, which is not plain as a whole. */
static void escape_character(enum prometheus_escaping escaping, struct slice character,
                             bool is_first, struct name *name)
{
    uint8_t byte = character.data[0];
    bool is_plain = is_plain_byte(byte, is_first);
    if (escaping == ESCAPING_UNDERSCORES) {
        name_add_byte(name, is_plain ? (char)byte : '_');
    } else if (byte == '_') {
        name_add(name, slice_of_text("__"));
    } else if (escaping == ESCAPING_DOTS && byte == '.') {
        name_add(name, slice_of_text("_dot_"));
    } else if (is_plain) {
        name_add_byte(name, (char)byte);
    } else if (escaping == ESCAPING_DOTS) {
        name_add(name, slice_of_text("__"));
    } else {
        name->size += (size_t)snprintf(name->text + name->size, ESCAPED_BYTES_MAX, "_%x_",
                                       code_point(character));
    }
}

size_t prometheus_escape(enum prometheus_escaping escaping, struct slice text, char *escaped)
{
    struct name name = {.text = escaped};
    if (escaping == ESCAPING_NONE || text.size == 0 || prometheus_name_is_plain(text)) {
        name_add(&name, text);
        return name.size;
    }
    if (escaping == ESCAPING_VALUES)
        name_add(&name, slice_of_text("U__"));
    for (size_t i = 0; i < text.size;) {
        struct slice rest = slice_of(text.data + i, text.size - i);
        size_t bytes = utf8_size(rest);
        bytes = bytes > 0 ? bytes : 1;
        escape_character(escaping, slice_of(rest.data, bytes), i == 0, &name);
        i += bytes;
    }
    return name.size;
}
