/* SPDX-License-Identifier: Apache-2.0 */
/* Option tables: one row per YAML key, beside the struct that it fills. The compiler checks that
 * the field's C type fits the row; defaults are text and pass through the same parser as user
 * input; the rows also print config/reference.md. Tables are constants. What the parser
 * allocates (strings, lists) lives as long as the loaded configuration. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct config_component;
struct error;

/* What fields hold besides plain C types. Lives as long as the loaded configuration. */
struct config_texts {
    size_t count;
    const char *const *texts; /* NULL: not given, neither by the user nor by default */
};

struct config_pair {
    const char *key;
    const char *value;
};

struct config_pairs {
    size_t count;
    const struct config_pair *pairs;
};

enum config_value_type {
    CONFIG_VALUE_NULL,
    CONFIG_VALUE_BOOL,
    CONFIG_VALUE_INT,
    CONFIG_VALUE_DOUBLE,
    CONFIG_VALUE_TEXT,
    CONFIG_VALUE_LIST,
    CONFIG_VALUE_MAP,
};

struct config_value {
    enum config_value_type type;
    bool boolean;
    int64_t integer;
    double real;
    const char *text;
    size_t count;                     /* LIST, MAP: elements */
    const struct config_value *items; /* LIST, MAP: values */
    const char *const *keys;          /* MAP: keys, beside items */
};

struct config_sections {
    size_t count;
    void *items; /* count structs of section_size bytes */
};

enum config_type {
    CONFIG_TYPE_END,
    CONFIG_TYPE_BOOL,     /* bool */
    CONFIG_TYPE_COUNT,    /* uint64_t, with min and max */
    CONFIG_TYPE_INT,      /* int64_t, with min and max */
    CONFIG_TYPE_DOUBLE,   /* double */
    CONFIG_TYPE_BYTES,    /* uint64_t bytes; a number, or "64MiB"; min and max in bytes */
    CONFIG_TYPE_DURATION, /* uint64_t nanoseconds; Go syntax, "200ms"; min and max in nanoseconds.
                             If min is below 0, negative durations become 0 */
    CONFIG_TYPE_TEXT,     /* const char *, never NULL ("" when absent) */
    CONFIG_TYPE_SECRET,   /* const char *, printed as [REDACTED] */
    CONFIG_TYPE_CHOICE,   /* int: index into choices */
    CONFIG_TYPE_TEXTS,    /* struct config_texts: a list, or one string split at commas */
    CONFIG_TYPE_SECRETS,  /* struct config_texts: a list; printed as [REDACTED] */
    CONFIG_TYPE_HEADERS,  /* struct config_pairs: a map or a list of {name, value}; secrets */
    CONFIG_TYPE_PAIRS,    /* struct config_pairs: a map of strings */
    CONFIG_TYPE_VALUE,   /* struct config_value *: any YAML value with its type; NULL when absent */
    CONFIG_TYPE_SECTION, /* a nested struct with a table of its own */
    CONFIG_TYPE_SECTIONS, /* struct config_sections: a list of nested structs, or a map */
    CONFIG_TYPE_IGNORED,  /* accepted so that existing files work; the value is checked against
                             ignored_type, not stored, and has no effect */
};

/* What a section means when its key is absent, null, or carries `enabled:` (every optional section
 * takes that key). */
enum config_presence {
    CONFIG_ALWAYS,          /* not optional: always there, null keeps the defaults */
    CONFIG_DEFAULT_ON,      /* on when absent; null keeps the defaults */
    CONFIG_NULL_ENABLES,    /* off when absent; null switches it on with its defaults */
    CONFIG_NULL_IS_OFF,     /* off when absent or null */
    CONFIG_ON_UNLESS_UNSET, /* CONFIG_DEFAULT_ON, but an unset ${X} is off (retry_on_failure) */
};

struct config_field {
    const char *key;
    enum config_type type;
    enum config_presence presence; /* SECTION */
    size_t offset;                 /* of the field in the struct that the table fills */
    size_t enabled_offset;         /* SECTION, optional: of a bool in the same struct: it is on */
    const char *default_text;      /* as the user would write it; NULL: the type's zero */
    int64_t min;                   /* COUNT, INT, BYTES, DURATION */
    int64_t max;
    /* CHOICE: the allowed values, NULL-terminated, with "" if null is allowed. COUNT, optional:
     * words that mean their index, even below min ("auto" for 0). */
    const char *const *choices;
    /* IGNORED: the type of the value. VALUE: anything, SECTION: any map, SECTIONS: any list. */
    enum config_type ignored_type;
    const struct config_field *fields; /* SECTION, SECTIONS */
    size_t section_size;               /* SECTION, SECTIONS */
    /* SECTION, SECTIONS: rules across the section's fields; NULL: none. */
    bool (*check)(const void *section, struct error *error);
    /* TEXT: unless empty, the value must name an extension that service::extensions lists and this
     * function accepts. NULL: any string. */
    bool (*accepts)(const struct config_component *extension, struct error *error);
    const char *extension_kind; /* with accepts: "authenticator", for problems */
    /* The value is decoded and checked but has no effect; a warning says so, as with IGNORED. */
    bool has_no_effect;
    /* CHOICE: case does not matter, and the index as a number, and null for the first choice, are
     * accepted. BYTES: case of units does not matter. */
    bool is_level;
    /* TEXT, CHOICE: "" in quotes is an error, while null leaves the field unset. */
    bool refuses_empty;
    /* TEXT, SECRET: the field is NULL, not "", without a value. */
    bool is_nullable;
    /* SECTIONS: a map of names to sections, which begin with a const char * for the name. A map
     * without any leaves the defaults. */
    bool is_map;
    /* TEXT, each of TEXTS (whose warnings begin with the string): returns a warning about the
     * value, or NULL. May be NULL. */
    const char *(*warn)(const char *text);
    const char *help; /* a sentence for config/reference.md */
};

/* One macro per type of row. A row whose field has another C type does not compile. */
#define CONFIG_OFFSET(owner, field, ctype)                                                         \
    (offsetof(owner, field) + 0 * sizeof(_Generic(&((owner *)0)->field, ctype * : 1)))

/* The members that most rows set. */
#define CONFIG_ROW(owner, field, ctype, row_type, name, standard, text)                            \
    .key = (name), .type = (row_type), .help = (text), .default_text = (standard),                 \
    .offset = CONFIG_OFFSET(owner, field, ctype)
#define CONFIG_RANGE(lowest, highest) .min = (lowest), .max = (highest)
#define CONFIG_PLAIN(owner, field, ctype, row_type, name, standard, text)                          \
    {                                                                                              \
        CONFIG_ROW(owner, field, ctype, row_type, name, standard, text)                            \
    }
#define CONFIG_RANGED(owner, field, ctype, row_type, name, standard, lowest, highest, text)        \
    {                                                                                              \
        CONFIG_ROW(owner, field, ctype, row_type, name, standard, text),                           \
            CONFIG_RANGE(lowest, highest)                                                          \
    }

#define CONFIG_BOOL(owner, field, name, standard, text)                                            \
    CONFIG_PLAIN(owner, field, bool, CONFIG_TYPE_BOOL, name, standard, text)
#define CONFIG_COUNT(owner, field, name, standard, lowest, highest, text)                          \
    CONFIG_COUNT_OR(owner, field, name, standard, lowest, highest, NULL, text)
/* Also takes the words of list, which mean 0, 1, … */
#define CONFIG_COUNT_OR(owner, field, name, standard, lowest, highest, list, text)                 \
    {                                                                                              \
        CONFIG_ROW(owner, field, uint64_t, CONFIG_TYPE_COUNT, name, standard, text),               \
            CONFIG_RANGE(lowest, highest), .choices = (list)                                       \
    }
#define CONFIG_INT(owner, field, name, standard, lowest, highest, text)                            \
    CONFIG_RANGED(owner, field, int64_t, CONFIG_TYPE_INT, name, standard, lowest, highest, text)
#define CONFIG_DOUBLE(owner, field, name, standard, text)                                          \
    CONFIG_PLAIN(owner, field, double, CONFIG_TYPE_DOUBLE, name, standard, text)
#define CONFIG_DURATION(owner, field, name, standard, lowest, highest, text)                       \
    CONFIG_RANGED(owner, field, uint64_t, CONFIG_TYPE_DURATION, name, standard, lowest, highest,   \
                  text)
/* Negative durations become 0. */
#define CONFIG_DURATION_OR_NEGATIVE(owner, field, name, standard, text)                            \
    CONFIG_DURATION(owner, field, name, standard, INT64_MIN, INT64_MAX, text)
#define CONFIG_BYTES(owner, field, name, standard, lowest, highest, text)                          \
    CONFIG_RANGED(owner, field, uint64_t, CONFIG_TYPE_BYTES, name, standard, lowest, highest, text)
/* Units in any case. */
#define CONFIG_BYTES_ANY_CASE(owner, field, name, standard, lowest, highest, text)                 \
    {                                                                                              \
        CONFIG_ROW(owner, field, uint64_t, CONFIG_TYPE_BYTES, name, standard, text),               \
            CONFIG_RANGE(lowest, highest), .is_level = true                                        \
    }
#define CONFIG_TEXT(owner, field, name, standard, text)                                            \
    CONFIG_PLAIN(owner, field, const char *, CONFIG_TYPE_TEXT, name, standard, text)
#define CONFIG_TEXT_WARNED(owner, field, name, standard, warning, text)                            \
    {                                                                                              \
        CONFIG_ROW(owner, field, const char *, CONFIG_TYPE_TEXT, name, standard, text),            \
            .warn = (warning)                                                                      \
    }
/* "" is an error; null unsets it. */
#define CONFIG_TEXT_NOT_EMPTY(owner, field, name, text)                                            \
    {                                                                                              \
        CONFIG_ROW(owner, field, const char *, CONFIG_TYPE_TEXT, name, NULL, text),                \
            .refuses_empty = true                                                                  \
    }
#define CONFIG_CHOICE_NOT_EMPTY(owner, field, name, list, text)                                    \
    {                                                                                              \
        CONFIG_ROW(owner, field, int, CONFIG_TYPE_CHOICE, name, NULL, text), .choices = (list),    \
                                                                             .refuses_empty = true \
    }
/* Checked, and read by rules, but without effect. */
#define CONFIG_UNUSED_BOOL(owner, field, name, standard, text)                                     \
    {                                                                                              \
        CONFIG_ROW(owner, field, bool, CONFIG_TYPE_BOOL, name, standard, text),                    \
            .has_no_effect = true                                                                  \
    }
#define CONFIG_UNUSED_INT(owner, field, name, standard, lowest, highest, text)                     \
    {                                                                                              \
        CONFIG_ROW(owner, field, int64_t, CONFIG_TYPE_INT, name, standard, text),                  \
            CONFIG_RANGE(lowest, highest), .has_no_effect = true                                   \
    }
#define CONFIG_UNUSED_TEXT(owner, field, name, standard, text)                                     \
    {                                                                                              \
        CONFIG_ROW(owner, field, const char *, CONFIG_TYPE_TEXT, name, standard, text),            \
            .has_no_effect = true                                                                  \
    }
#define CONFIG_UNUSED_DURATION(owner, field, name, standard, lowest, highest, text)                \
    {                                                                                              \
        CONFIG_ROW(owner, field, uint64_t, CONFIG_TYPE_DURATION, name, standard, text),            \
            CONFIG_RANGE(lowest, highest), .has_no_effect = true                                   \
    }
/* The id of an extension that rule accepts. */
#define CONFIG_EXTENSION(owner, field, name, kind, rule, text)                                     \
    {                                                                                              \
        CONFIG_ROW(owner, field, const char *, CONFIG_TYPE_TEXT, name, NULL, text),                \
            .accepts = (rule), .extension_kind = (kind)                                            \
    }
/* The same; null, also from a variable, is none. */
#define CONFIG_EXTENSION_NOT_EMPTY(owner, field, name, kind, rule, text)                           \
    {                                                                                              \
        CONFIG_ROW(owner, field, const char *, CONFIG_TYPE_TEXT, name, NULL, text),                \
            .refuses_empty = true, .extension_kind = (kind), .accepts = (rule)                     \
    }
#define CONFIG_SECRET(owner, field, name, text)                                                    \
    CONFIG_PLAIN(owner, field, const char *, CONFIG_TYPE_SECRET, name, NULL, text)
/* A TEXT or SECRET that is NULL when the key is absent or null, which "" is not. */
#define CONFIG_NULLABLE(owner, field, row_type, name, text)                                        \
    {                                                                                              \
        CONFIG_ROW(owner, field, const char *, row_type, name, NULL, text), .is_nullable = true    \
    }
#define CONFIG_CHOICE(owner, field, name, standard, list, text)                                    \
    {                                                                                              \
        CONFIG_ROW(owner, field, int, CONFIG_TYPE_CHOICE, name, standard, text), .choices = (list) \
    }
#define CONFIG_LEVEL(owner, field, name, standard, list, text)                                     \
    {                                                                                              \
        CONFIG_ROW(owner, field, int, CONFIG_TYPE_CHOICE, name, standard, text),                   \
            .choices = (list), .is_level = true                                                    \
    }
#define CONFIG_TEXTS(owner, field, name, standard, text)                                           \
    {                                                                                              \
        CONFIG_ROW(owner, field, struct config_texts, CONFIG_TYPE_TEXTS, name, standard, text)     \
    }
/* warning is called for each string. */
#define CONFIG_TEXTS_WARNED(owner, field, name, standard, warning, text)                           \
    {                                                                                              \
        CONFIG_ROW(owner, field, struct config_texts, CONFIG_TYPE_TEXTS, name, standard, text),    \
            .warn = (warning)                                                                      \
    }
#define CONFIG_SECRETS(owner, field, name, text)                                                   \
    CONFIG_PLAIN(owner, field, struct config_texts, CONFIG_TYPE_SECRETS, name, NULL, text)
#define CONFIG_HEADERS(owner, field, name, text)                                                   \
    {                                                                                              \
        CONFIG_ROW(owner, field, struct config_pairs, CONFIG_TYPE_HEADERS, name, NULL, text)       \
    }
#define CONFIG_PAIRS(owner, field, name, text)                                                     \
    {                                                                                              \
        CONFIG_ROW(owner, field, struct config_pairs, CONFIG_TYPE_PAIRS, name, NULL, text)         \
    }
#define CONFIG_VALUE(owner, field, name, text)                                                     \
    {                                                                                              \
        CONFIG_ROW(owner, field, const struct config_value *, CONFIG_TYPE_VALUE, name, NULL, text) \
    }
/* A section that is always there. inner is the struct type of the field. */
#define CONFIG_SECTION(owner, field, inner, name, table, rule, text)                               \
    {                                                                                              \
        CONFIG_ROW(owner, field, inner, CONFIG_TYPE_SECTION, name, NULL, text),                    \
            .presence = CONFIG_ALWAYS, .fields = (table), .section_size = sizeof(inner),           \
            .check = (rule)                                                                        \
    }
/* A section with `enabled:`; flag is a bool field of owner that says whether it is on. */
#define CONFIG_OPTIONAL(owner, field, inner, flag, when, name, table, rule, text)                  \
    {                                                                                              \
        CONFIG_ROW(owner, field, inner, CONFIG_TYPE_SECTION, name, NULL, text),                    \
            .presence = (when), .fields = (table), .section_size = sizeof(inner), .check = (rule), \
            .enabled_offset = CONFIG_OFFSET(owner, flag, bool)                                     \
    }
/* Checked, but without effect. */
#define CONFIG_UNUSED_OPTIONAL(owner, field, inner, flag, when, name, table, text)                 \
    {                                                                                              \
        CONFIG_ROW(owner, field, inner, CONFIG_TYPE_SECTION, name, NULL, text),                    \
            .presence = (when), .fields = (table), .section_size = sizeof(inner),                  \
            .enabled_offset = CONFIG_OFFSET(owner, flag, bool), .has_no_effect = true              \
    }
#define CONFIG_SECTIONS(owner, field, inner, name, table, rule, text)                              \
    {                                                                                              \
        CONFIG_ROW(owner, field, struct config_sections, CONFIG_TYPE_SECTIONS, name, NULL, text),  \
            .fields = (table), .section_size = sizeof(inner), .check = (rule)                      \
    }
/* A map of names to sections; inner begins with a const char * for the name. */
#define CONFIG_SECTION_MAP(owner, field, inner, name, standard, table, text)                       \
    {                                                                                              \
        CONFIG_ROW(owner, field, struct config_sections, CONFIG_TYPE_SECTIONS, name, standard,     \
                   text),                                                                          \
            .fields = (table), .section_size = sizeof(inner), .is_map = true                       \
    }
/* Of any type, or of one; maps and lists may hold anything. */
#define CONFIG_IGNORED(name, text)            CONFIG_IGNORED_TYPE(CONFIG_TYPE_VALUE, name, text)
#define CONFIG_IGNORED_BOOL(name, text)       CONFIG_IGNORED_TYPE(CONFIG_TYPE_BOOL, name, text)
#define CONFIG_IGNORED_INT(name, text)        CONFIG_IGNORED_TYPE(CONFIG_TYPE_INT, name, text)
#define CONFIG_IGNORED_SIZE(name, text)       CONFIG_IGNORED_FROM(CONFIG_TYPE_INT, name, 0, text)
#define CONFIG_IGNORED_DURATION(name, text)   CONFIG_IGNORED_TYPE(CONFIG_TYPE_DURATION, name, text)
#define CONFIG_IGNORED_TEXT(name, text)       CONFIG_IGNORED_TYPE(CONFIG_TYPE_TEXT, name, text)
#define CONFIG_IGNORED_SECRET(name, text)     CONFIG_IGNORED_TYPE(CONFIG_TYPE_SECRET, name, text)
#define CONFIG_IGNORED_TEXTS(name, text)      CONFIG_IGNORED_TYPE(CONFIG_TYPE_TEXTS, name, text)
#define CONFIG_IGNORED_MAP(name, text)        CONFIG_IGNORED_TYPE(CONFIG_TYPE_SECTION, name, text)
#define CONFIG_IGNORED_LIST(name, text)       CONFIG_IGNORED_TYPE(CONFIG_TYPE_SECTIONS, name, text)
#define CONFIG_IGNORED_TYPE(what, name, text) CONFIG_IGNORED_FROM(what, name, INT64_MIN, text)
#define CONFIG_IGNORED_FROM(what, name, lowest, text)                                              \
    {                                                                                              \
        .key = (name), .type = CONFIG_TYPE_IGNORED, .ignored_type = (what), .help = (text),        \
        CONFIG_RANGE(lowest, INT64_MAX)                                                            \
    }
#define CONFIG_END                                                                                 \
    {                                                                                              \
        .key = NULL                                                                                \
    }
