/* SPDX-License-Identifier: Apache-2.0 */
/* Option tables: one row per YAML key, beside the struct that it fills. The compiler checks that
 * the field's C type fits the row; defaults are text and pass through the same parser as user
 * input; the rows also print config/reference.md. Tables are constants. What the parser stores
 * (texts, lists) lives as long as the loaded configuration. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct error;

enum config_type {
    CONFIG_TYPE_END,
    CONFIG_TYPE_BOOL,     /* bool */
    CONFIG_TYPE_COUNT,    /* uint64_t, with min and max */
    CONFIG_TYPE_INT,      /* int64_t, with min and max */
    CONFIG_TYPE_DOUBLE,   /* double */
    CONFIG_TYPE_DURATION, /* uint64_t nanoseconds; Go syntax, "200ms"; min and max in nanoseconds */
    CONFIG_TYPE_TEXT,     /* const char *, never NULL ("" when absent) */
    CONFIG_TYPE_SECRET,   /* const char *, printed as [REDACTED] */
    CONFIG_TYPE_CHOICE,   /* int: index into choices */
    CONFIG_TYPE_TEXTS,    /* struct config_texts: a list, or one text split at commas */
    CONFIG_TYPE_HEADERS,  /* struct config_pairs: a map, or a list of {name, value}; values are
                             secrets */
    CONFIG_TYPE_VALUE,   /* struct config_value *: any YAML value with its type; NULL when absent */
    CONFIG_TYPE_SECTION, /* a nested struct with a table of its own */
    CONFIG_TYPE_SECTIONS, /* struct config_sections: a list of nested structs */
    CONFIG_TYPE_IGNORED,  /* accepted for the sake of existing files, has no effect here; stores
                             nothing */
};

/* What a section means when its key is absent, null, or carries `enabled:` (every optional section
 * takes that key). */
enum config_presence {
    CONFIG_ALWAYS,          /* not optional: always there, null keeps the defaults */
    CONFIG_DEFAULT_ON,      /* on when absent; null keeps the defaults */
    CONFIG_NULL_ENABLES,    /* off when absent; null switches it on with its defaults */
    CONFIG_NULL_IS_OFF,     /* off when absent or null */
    CONFIG_ON_UNLESS_UNSET, /* as CONFIG_DEFAULT_ON, but a reference to an unset variable in its
                               place turns it off (retry_on_failure) */
};

struct config_texts {
    size_t count;
    const char *const *texts;
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

struct config_field {
    const char *key;
    enum config_type type;
    enum config_presence presence; /* SECTION */
    size_t offset;                 /* of the field in the struct that the table fills */
    size_t enabled_offset;         /* SECTION, optional: a bool in that same struct: is it on? */
    const char *default_text;      /* as the user would write it; NULL: the type's zero */
    int64_t min;                   /* COUNT, INT, DURATION */
    int64_t max;
    /* CHOICE: what may be written, NULL-ended; list "" when null may be. COUNT, optional: words
     * that stand for their index, whatever min says ("auto" for 0). */
    const char *const *choices;
    const struct config_field *fields; /* SECTION, SECTIONS */
    size_t section_size;               /* SECTION, SECTIONS */
    /* SECTION, SECTIONS: rules across the section's fields; NULL: none. */
    bool (*check)(const void *section, struct error *error);
    const char *help; /* a sentence for config/reference.md */
};

#define CONFIG_OFFSET(owner, field, ctype)                                                         \
    (offsetof(owner, field) + 0 * sizeof(_Generic(&((owner *)0)->field, ctype * : 1)))

#define CONFIG_BOOL(owner, field, name, standard, text)                                            \
    {                                                                                              \
        .key = (name), .type = CONFIG_TYPE_BOOL, .default_text = (standard), .help = (text),       \
        .offset = CONFIG_OFFSET(owner, field, bool)                                                \
    }
#define CONFIG_COUNT(owner, field, name, standard, lowest, highest, text)                          \
    {                                                                                              \
        .key = (name), .type = CONFIG_TYPE_COUNT, .default_text = (standard), .min = (lowest),     \
        .max = (highest), .help = (text), .offset = CONFIG_OFFSET(owner, field, uint64_t)          \
    }
/* Also takes the words of list, which stand for 0, 1, … */
#define CONFIG_COUNT_OR(owner, field, name, standard, lowest, highest, list, text)                 \
    {                                                                                              \
        .key = (name), .type = CONFIG_TYPE_COUNT, .default_text = (standard), .min = (lowest),     \
        .max = (highest), .choices = (list), .help = (text),                                       \
        .offset = CONFIG_OFFSET(owner, field, uint64_t)                                            \
    }
#define CONFIG_INT(owner, field, name, standard, lowest, highest, text)                            \
    {                                                                                              \
        .key = (name), .type = CONFIG_TYPE_INT, .default_text = (standard), .min = (lowest),       \
        .max = (highest), .help = (text), .offset = CONFIG_OFFSET(owner, field, int64_t)           \
    }
#define CONFIG_DOUBLE(owner, field, name, standard, text)                                          \
    {                                                                                              \
        .key = (name), .type = CONFIG_TYPE_DOUBLE, .default_text = (standard), .help = (text),     \
        .offset = CONFIG_OFFSET(owner, field, double)                                              \
    }
#define CONFIG_DURATION(owner, field, name, standard, lowest, highest, text)                       \
    {                                                                                              \
        .key = (name), .type = CONFIG_TYPE_DURATION, .default_text = (standard), .min = (lowest),  \
        .max = (highest), .help = (text), .offset = CONFIG_OFFSET(owner, field, uint64_t)          \
    }
#define CONFIG_TEXT(owner, field, name, standard, text)                                            \
    {                                                                                              \
        .key = (name), .type = CONFIG_TYPE_TEXT, .default_text = (standard), .help = (text),       \
        .offset = CONFIG_OFFSET(owner, field, const char *)                                        \
    }
#define CONFIG_SECRET(owner, field, name, text)                                                    \
    {                                                                                              \
        .key = (name), .type = CONFIG_TYPE_SECRET, .help = (text),                                 \
        .offset = CONFIG_OFFSET(owner, field, const char *)                                        \
    }
#define CONFIG_CHOICE(owner, field, name, standard, list, text)                                    \
    {                                                                                              \
        .key = (name), .type = CONFIG_TYPE_CHOICE, .default_text = (standard), .choices = (list),  \
        .help = (text), .offset = CONFIG_OFFSET(owner, field, int)                                 \
    }
#define CONFIG_TEXTS(owner, field, name, standard, text)                                           \
    {                                                                                              \
        .key = (name), .type = CONFIG_TYPE_TEXTS, .default_text = (standard), .help = (text),      \
        .offset = CONFIG_OFFSET(owner, field, struct config_texts)                                 \
    }
#define CONFIG_HEADERS(owner, field, name, text)                                                   \
    {                                                                                              \
        .key = (name), .type = CONFIG_TYPE_HEADERS, .help = (text),                                \
        .offset = CONFIG_OFFSET(owner, field, struct config_pairs)                                 \
    }
#define CONFIG_VALUE(owner, field, name, text)                                                     \
    {                                                                                              \
        .key = (name), .type = CONFIG_TYPE_VALUE, .help = (text),                                  \
        .offset = CONFIG_OFFSET(owner, field, const struct config_value *)                         \
    }
/* A section that is always there. inner is the struct type of the field. */
#define CONFIG_SECTION(owner, field, inner, name, table, rule, text)                               \
    {                                                                                              \
        .key = (name), .type = CONFIG_TYPE_SECTION, .presence = CONFIG_ALWAYS, .fields = (table),  \
        .section_size = sizeof(inner), .check = (rule), .help = (text),                            \
        .offset = CONFIG_OFFSET(owner, field, inner)                                               \
    }
/* A section with `enabled:`; flag is a bool field of owner that says whether it is on. */
#define CONFIG_OPTIONAL(owner, field, inner, flag, when, name, table, rule, text)                  \
    {                                                                                              \
        .key = (name), .type = CONFIG_TYPE_SECTION, .presence = (when), .fields = (table),         \
        .section_size = sizeof(inner), .check = (rule), .help = (text),                            \
        .offset = CONFIG_OFFSET(owner, field, inner),                                              \
        .enabled_offset = CONFIG_OFFSET(owner, flag, bool)                                         \
    }
#define CONFIG_SECTIONS(owner, field, inner, name, table, rule, text)                              \
    {                                                                                              \
        .key = (name), .type = CONFIG_TYPE_SECTIONS, .fields = (table),                            \
        .section_size = sizeof(inner), .check = (rule), .help = (text),                            \
        .offset = CONFIG_OFFSET(owner, field, struct config_sections)                              \
    }
#define CONFIG_IGNORED(name, text)                                                                 \
    {                                                                                              \
        .key = (name), .type = CONFIG_TYPE_IGNORED, .help = (text)                                 \
    }
#define CONFIG_END                                                                                 \
    {                                                                                              \
        .key = NULL                                                                                \
    }
