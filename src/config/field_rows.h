/* SPDX-License-Identifier: Apache-2.0 */
/* How rows of option tables are written: a macro per type, which does not compile when the field is
 * of another. Part of src/config/field.h, which is what to include. */
#pragma once

#define CONFIG_OFFSET(owner, field, ctype)                                                         \
    (offsetof(owner, field) + 0 * sizeof(_Generic(&((owner *)0)->field, ctype * : 1)))

/* What most rows have. */
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
/* Also takes the words of list, which stand for 0, 1, … */
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
/* Negative ones are taken for 0. */
#define CONFIG_DURATION_OR_NEGATIVE(owner, field, name, standard, text)                            \
    CONFIG_DURATION(owner, field, name, standard, INT64_MIN, INT64_MAX, text)
#define CONFIG_BYTES(owner, field, name, standard, lowest, highest, text)                          \
    CONFIG_RANGED(owner, field, uint64_t, CONFIG_TYPE_BYTES, name, standard, lowest, highest, text)
#define CONFIG_TEXT(owner, field, name, standard, text)                                            \
    CONFIG_PLAIN(owner, field, const char *, CONFIG_TYPE_TEXT, name, standard, text)
#define CONFIG_TEXT_WARNED(owner, field, name, standard, warning, text)                            \
    {                                                                                              \
        CONFIG_ROW(owner, field, const char *, CONFIG_TYPE_TEXT, name, standard, text),            \
            .warn = (warning)                                                                      \
    }
/* Unset by null only. */
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
/* Rules read them, and nothing else does. */
#define CONFIG_UNUSED_TEXT(owner, field, name, text)                                               \
    {                                                                                              \
        CONFIG_ROW(owner, field, const char *, CONFIG_TYPE_TEXT, name, NULL, text),                \
            .has_no_effect = true                                                                  \
    }
#define CONFIG_UNUSED_DURATION(owner, field, name, standard, lowest, highest, text)                \
    {                                                                                              \
        CONFIG_ROW(owner, field, uint64_t, CONFIG_TYPE_DURATION, name, standard, text),            \
            CONFIG_RANGE(lowest, highest), .has_no_effect = true                                   \
    }
/* The id of an extension that rule accepts. */
#define CONFIG_EXTENSION(owner, field, name, rule, text)                                           \
    {                                                                                              \
        CONFIG_ROW(owner, field, const char *, CONFIG_TYPE_TEXT, name, NULL, text),                \
            .accepts = (rule)                                                                      \
    }
#define CONFIG_SECRET(owner, field, name, text)                                                    \
    CONFIG_PLAIN(owner, field, const char *, CONFIG_TYPE_SECRET, name, NULL, text)
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
/* warning sees each text. */
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
/* Checked, and has no effect. */
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
