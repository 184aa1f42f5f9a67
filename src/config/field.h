/* SPDX-License-Identifier: Apache-2.0 */
/* Option tables: one row per YAML key, beside the struct that it fills. The compiler checks that
 * the field's C type fits the row; defaults are text and pass through the same parser as user
 * input; the rows also print config/reference.md. Tables are constants. What the parser stores
 * (texts, lists) lives as long as the loaded configuration. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/config/value.h"

struct config_component;
struct error;

enum config_type {
    CONFIG_TYPE_END,
    CONFIG_TYPE_BOOL,     /* bool */
    CONFIG_TYPE_COUNT,    /* uint64_t, with min and max */
    CONFIG_TYPE_INT,      /* int64_t, with min and max */
    CONFIG_TYPE_DOUBLE,   /* double */
    CONFIG_TYPE_BYTES,    /* uint64_t bytes; a number, or "64MiB"; min and max in bytes */
    CONFIG_TYPE_DURATION, /* uint64_t nanoseconds; Go syntax, "200ms"; min and max in nanoseconds. A
                             min below 0 takes negative ones for 0 */
    CONFIG_TYPE_TEXT,     /* const char *, never NULL ("" when absent) */
    CONFIG_TYPE_SECRET,   /* const char *, printed as [REDACTED] */
    CONFIG_TYPE_CHOICE,   /* int: index into choices */
    CONFIG_TYPE_TEXTS,    /* struct config_texts: a list, or one text split at commas */
    CONFIG_TYPE_SECRETS,  /* struct config_texts: a list; printed as [REDACTED] */
    CONFIG_TYPE_HEADERS,  /* struct config_pairs: a map or a list of {name, value}; secrets */
    CONFIG_TYPE_VALUE,   /* struct config_value *: any YAML value with its type; NULL when absent */
    CONFIG_TYPE_SECTION, /* a nested struct with a table of its own */
    CONFIG_TYPE_SECTIONS, /* struct config_sections: a list of nested structs */
    CONFIG_TYPE_IGNORED,  /* accepted for the sake of existing files, has no effect here; stores
                             nothing. What stands there is still of its type, when it has one */
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
    size_t enabled_offset;         /* SECTION, optional: a bool in that same struct: is it on? */
    const char *default_text;      /* as the user would write it; NULL: the type's zero */
    int64_t min;                   /* COUNT, INT, BYTES, DURATION */
    int64_t max;
    /* CHOICE: what may be written, NULL-ended; list "" when null may be. COUNT, optional: words
     * that stand for their index, whatever min says ("auto" for 0). */
    const char *const *choices;
    /* IGNORED: what stands there; VALUE: anything, SECTION: any map, SECTIONS: any list. */
    enum config_type ignored_type;
    const struct config_field *fields; /* SECTION, SECTIONS */
    size_t section_size;               /* SECTION, SECTIONS */
    /* SECTION, SECTIONS: rules across the section's fields; NULL: none. */
    bool (*check)(const void *section, struct error *error);
    /* TEXT: the value, unless empty, names an extension that service::extensions lists, and that
     * this accepts. NULL: any text. */
    bool (*accepts)(const struct config_component *extension, struct error *error);
    /* The value is checked, and read by rules, but changes nothing, as with IGNORED: who writes the
     * key is told so. */
    bool has_no_effect;
    /* CHOICE: any case will do, as will the index as a number; null is the first. */
    bool is_level;
    /* TEXT, CHOICE: "" in quotes is an error, while null leaves the field unset. */
    bool refuses_empty;
    /* TEXT, each of TEXTS, whose warnings begin with the text: what to warn of, or NULL. NULL:
     * nothing. */
    const char *(*warn)(const char *text);
    const char *help; /* a sentence for config/reference.md */
};

#include "src/config/field_rows.h"
