/* SPDX-License-Identifier: Apache-2.0 */
/* Rules are checked and compiled once; applying them allocates nothing. Most regular expressions of
 * relabeling are lists of words or match anything: those are compared without RE2. Run by the lane
 * that scrapes a target. */
#include "src/prometheus/relabel.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "src/base/digest.h"
#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/base/pattern.h"
#include "src/base/utf8.h"
#include "src/base/utf8_case.h"

enum { GROUPS_MAX = 64 }; /* that replacements can use, with the whole match */

static const char default_separator[] = ";";
static const char default_regex[] = "(.*)";
static const char default_replacement[] = "$1";

enum action {
    ACTION_REPLACE,
    ACTION_KEEP,
    ACTION_DROP,
    ACTION_KEEP_EQUAL,
    ACTION_DROP_EQUAL,
    ACTION_HASH_MOD,
    ACTION_LABEL_MAP,
    ACTION_LABEL_DROP,
    ACTION_LABEL_KEEP,
    ACTION_LOWERCASE,
    ACTION_UPPERCASE,
    ACTIONS,
};

static const char *const action_names[ACTIONS] = {
    [ACTION_REPLACE] = "replace",
    [ACTION_KEEP] = "keep",
    [ACTION_DROP] = "drop",
    [ACTION_KEEP_EQUAL] = "keepequal",
    [ACTION_DROP_EQUAL] = "dropequal",
    [ACTION_HASH_MOD] = "hashmod",
    [ACTION_LABEL_MAP] = "labelmap",
    [ACTION_LABEL_DROP] = "labeldrop",
    [ACTION_LABEL_KEEP] = "labelkeep",
    [ACTION_LOWERCASE] = "lowercase",
    [ACTION_UPPERCASE] = "uppercase",
};

/* ---- Regular expressions that need no RE2 ---- */

enum matcher_kind {
    MATCH_ANY,   /* .* or (.*) */
    MATCH_SOME,  /* .+ or (.+) */
    MATCH_WORDS, /* a|b */
    MATCH_PATTERN,
};

struct matcher {
    enum matcher_kind kind;
    char *text; /* WORDS: each behind its size; NULL: none */
    struct slice *words;
    size_t words_count;
    struct pattern *pattern; /* of the anchored regex */
};

/* Splits a regex at its bars, if it is but literals. False: it is more. The text has room for the
 * regex. */
static bool split_words(const char *regex, struct matcher *matcher)
{
    char *to = matcher->text;
    char *start = to;
    for (;; regex++) {
        if (*regex == '|' || *regex == '\0') {
            matcher->words[matcher->words_count++] = slice_of(start, (size_t)(to - start));
            start = to;
            if (*regex == '\0')
                return true;
            continue;
        }
        if (*regex == '\\') {
            regex++; /* a byte of punctuation stands for itself */
            if (*regex < '!' || *regex > '~' ||
                strchr("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", *regex) == NULL)
                return false;
        } else if (strchr(".+*?()[]{}^$", *regex) != NULL) {
            return false;
        }
        *to++ = *regex;
    }
}

static void find_words(const char *regex, struct matcher *matcher)
{
    size_t words = 1;
    for (const char *bar = strchr(regex, '|'); bar != NULL; bar = strchr(bar + 1, '|'))
        words++;
    matcher->text = mem_alloc(strlen(regex) + 1);
    matcher->words = mem_alloc(words * sizeof(struct slice));
    if (split_words(regex, matcher))
        matcher->kind = MATCH_WORDS;
}

static void matcher_fini(struct matcher *matcher)
{
    mem_free(matcher->text);
    mem_free(matcher->words);
    pattern_destroy(matcher->pattern);
}

static bool matcher_init(struct matcher *matcher, const char *regex, struct error *error)
{
    static const char prefix[] = "^(?s:";
    static const char suffix[] = ")$";
    size_t bytes = sizeof(prefix) + strlen(regex) + sizeof(suffix);
    char *anchored = mem_alloc(bytes);
    *matcher = (struct matcher){.kind = MATCH_PATTERN};
    snprintf(anchored, bytes, "%s%s%s", prefix, regex, suffix);
    matcher->pattern = pattern_create(anchored, error);
    mem_free(anchored);
    if (matcher->pattern == NULL)
        return false;
    if (strcmp(regex, ".*") == 0 || strcmp(regex, "(.*)") == 0)
        matcher->kind = MATCH_ANY;
    else if (strcmp(regex, ".+") == 0 || strcmp(regex, "(.+)") == 0)
        matcher->kind = MATCH_SOME;
    else
        find_words(regex, matcher);
    return true;
}

static bool has_word(const struct matcher *matcher, struct slice text)
{
    for (size_t i = 0; i < matcher->words_count; i++)
        if (slice_equal(matcher->words[i], text))
            return true;
    return false;
}

/* Fills count groups, the first being the whole match. */
static bool matcher_find(const struct matcher *matcher, struct slice text, struct slice *ret_groups,
                         size_t count)
{
    if (matcher->kind == MATCH_PATTERN)
        return count == 0 ? pattern_matches(matcher->pattern, text)
                          : pattern_find_from(matcher->pattern, text, 0, ret_groups, count);
    if (matcher->kind == MATCH_WORDS ? !has_word(matcher, text)
                                     : matcher->kind == MATCH_SOME && text.size == 0)
        return false;
    /* There is one group at most, around everything. */
    for (size_t i = 0; i < count; i++)
        ret_groups[i] = text;
    return true;
}

/* ---- Templates ---- */

struct template
{
    struct pattern_template *form;
    size_t groups;  /* that it needs, from 0 on; 0: it is constant */
    int only_group; /* it is nothing but this group; -1: it is more */
    char *text;     /* as it was configured */
    struct slice constant;
};

static void template_init(struct template *template, const struct matcher *matcher,
                          const char *text)
{
    template->text = mem_copy_text(text);
    template->form = pattern_template_create(matcher->pattern, text);
    template->groups = pattern_template_groups(template->form);
    bool is_first = strcmp(text, "$1") == 0 || strcmp(text, "${1}") == 0;
    template->only_group = is_first &&template->groups == 2 ? 1 : -1;
    if (template->groups == 0) /* expanded it is not longer, and written over itself */
        template->constant =
            slice_of(template->text,
                     pattern_template_expand(template->form, NULL, template->text, strlen(text)));
}

static void template_fini(struct template *template)
{
    mem_free(template->text);
    pattern_template_destroy(template->form);
}

/* Makes room for so much text. NULL: it has overflowed. */
static uint8_t *room_for(struct relabel_labels *labels, size_t bytes)
{
    if (bytes > RELABEL_TEXT_BYTES_MAX - labels->text_size) {
        labels->has_overflowed = true;
        return NULL;
    }
    return labels->text + labels->text_size;
}

/* Empty when it has overflowed. */
static struct slice expand(const struct template *template, const struct slice *groups,
                           struct relabel_labels *labels)
{
    if (template->groups == 0)
        return template->constant;
    if (template->only_group >= 0)
        return groups[template->only_group];
    uint8_t *room = labels->text + labels->text_size;
    size_t bytes_max = RELABEL_TEXT_BYTES_MAX - labels->text_size;
    size_t size = pattern_template_expand(template->form, groups, room, bytes_max);
    if (room_for(labels, size) == NULL)
        return (struct slice){.size = 0};
    labels->text_size += size;
    return slice_of(room, size);
}

/* ---- Rules ---- */

struct rule {
    enum action action;
    enum relabel_names names;
    struct slice *source_labels;
    size_t source_labels_count;
    struct slice separator;
    struct matcher matcher;
    uint64_t modulus;
    struct template target;
    bool has_dynamic_target; /* with a dollar */
    struct template replacement;
    size_t groups; /* that both need */
    char *texts;   /* of source labels and separator */
};

struct relabel_rules {
    size_t count;
    struct rule rules[];
};

static const char *text_or(const char *text, const char *otherwise)
{
    return text != NULL ? text : otherwise;
}

static bool is_word_byte(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || byte == '_' ||
           (byte >= '0' && byte <= '9');
}

static bool is_label_name(struct slice name, enum relabel_names names)
{
    if (name.size == 0)
        return false;
    if (names == RELABEL_NAMES_UTF8)
        return utf8_is_valid(name);
    for (size_t i = 0; i < name.size; i++)
        if (!is_word_byte((char)name.data[i]))
            return false;
    return name.data[0] < '0' || name.data[0] > '9';
}

/* Whether a text with variables, $name or ${name}, may become a name. */
static bool is_label_template(const char *text, enum relabel_names names)
{
    if (names == RELABEL_NAMES_UTF8)
        return is_label_name(slice_of_text(text), names);
    if (text[0] == '\0' || (text[0] >= '0' && text[0] <= '9'))
        return false;
    while (*text != '\0') {
        if (*text != '$') {
            if (!is_word_byte(*text++))
                return false;
            continue;
        }
        bool has_brace = *++text == '{';
        const char *name = has_brace ? ++text : text;
        while (is_word_byte(*text))
            text++;
        if (text == name || (has_brace && *text++ != '}'))
            return false;
    }
    return true;
}

static bool find_action(const struct relabel_config *config, enum action *ret_action,
                        struct error *error)
{
    const char *name = text_or(config->action, action_names[ACTION_REPLACE]);
    for (int i = 0; i < ACTIONS; i++) {
        if (strcasecmp(name, action_names[i]) == 0) {
            *ret_action = (enum action)i;
            return true;
        }
    }
    error_set(error,
              "unknown action \"%s\"; expected replace, keep, drop, keepequal, dropequal, hashmod, "
              "labelmap, labeldrop, labelkeep, lowercase or uppercase",
              name);
    return error_at(error, "action");
}

static const char *name_rule(enum relabel_names names)
{
    return names == RELABEL_NAMES_UTF8
               ? "text in UTF-8 that is not empty"
               : "letters, digits and underscores, not beginning with a digit, because "
                 "metric_name_validation_scheme is legacy";
}

static bool check_target(const struct relabel_config *config, enum action action,
                         enum relabel_names names, struct error *error)
{
    const char *target = text_or(config->target_label, "");
    if (target[0] == '\0') {
        error_set(error, "the action %s needs a label to write to or compare with",
                  action_names[action]);
        return error_at(error, "target_label");
    }
    bool is_valid = action == ACTION_REPLACE && strchr(target, '$') != NULL
                        ? is_label_template(target, names)
                        : is_label_name(slice_of_text(target), names);
    if (is_valid)
        return true;
    error_set(error, "\"%s\" is not the name of a label; expected %s", target, name_rule(names));
    return error_at(error, "target_label");
}

/* The first key that is set to something else than its default, but source_labels and regex. */
static const char *extra_key(const struct relabel_config *config)
{
    return config->modulus != 0 ? "modulus"
           : strcmp(text_or(config->separator, default_separator), default_separator) != 0
               ? "separator"
           : strcmp(text_or(config->replacement, default_replacement), default_replacement) != 0
               ? "replacement"
               : NULL;
}

static bool refuse_key(enum action action, const char *key, const char *takes, struct error *error)
{
    error_set(error, "the action %s takes only %s; remove this key", action_names[action], takes);
    return error_at(error, key);
}

static bool check_action(const struct relabel_config *config, enum action action,
                         enum relabel_names names, struct error *error)
{
    const char *key = extra_key(config);
    const char *replacement = text_or(config->replacement, default_replacement);
    switch (action) {
    case ACTION_HASH_MOD:
        if (config->modulus == 0) {
            error_set(error, "the action hashmod needs a number above 0");
            return error_at(error, "modulus");
        }
        return check_target(config, action, names, error);
    case ACTION_REPLACE:
        return check_target(config, action, names, error);
    case ACTION_LOWERCASE:
    case ACTION_UPPERCASE:
        if (strcmp(replacement, default_replacement) != 0) {
            error_set(error, "the action %s takes no replacement; remove this key",
                      action_names[action]);
            return error_at(error, "replacement");
        }
        return check_target(config, action, names, error);
    case ACTION_KEEP_EQUAL:
    case ACTION_DROP_EQUAL:
        if (config->regex != NULL)
            key = "regex";
        if (key != NULL)
            return refuse_key(action, key, "source_labels and target_label", error);
        return check_target(config, action, names, error);
    case ACTION_LABEL_MAP:
        if (is_label_template(replacement, names))
            return true;
        error_set(error, "\"%s\" is not the name of a label; expected %s, or groups such as $1",
                  replacement, name_rule(names));
        return error_at(error, "replacement");
    case ACTION_LABEL_DROP:
    case ACTION_LABEL_KEEP:
        if (config->source_labels != NULL)
            key = "source_labels";
        else if (text_or(config->target_label, "")[0] != '\0')
            key = "target_label";
        return key == NULL || refuse_key(action, key, "regex", error);
    case ACTION_KEEP:
    case ACTION_DROP:
    case ACTIONS:
        break;
    }
    return true;
}

static bool check_sources(const struct relabel_config *config, struct error *error)
{
    if (config->source_labels_count > RELABEL_SOURCE_LABELS_MAX) {
        error_set(error, "found %zu labels, expected at most %d", config->source_labels_count,
                  RELABEL_SOURCE_LABELS_MAX);
        return error_at(error, "source_labels");
    }
    for (size_t i = 0; i < config->source_labels_count; i++) {
        if (is_label_name(slice_of_text(config->source_labels[i]), RELABEL_NAMES_UTF8))
            continue;
        error_set(error, "\"%s\" is not the name of a label; expected %s", config->source_labels[i],
                  name_rule(RELABEL_NAMES_UTF8));
        error_at_index(error, i);
        return error_at(error, "source_labels");
    }
    return true;
}

/* Checks all but the groups that replacements use. The matcher is made. */
static bool check_rule(const struct relabel_config *config, enum relabel_names names,
                       enum action *ret_action, struct matcher *ret_matcher, struct error *error)
{
    if (!find_action(config, ret_action, error) || !check_sources(config, error) ||
        !check_action(config, *ret_action, names, error))
        return false;
    return matcher_init(ret_matcher, text_or(config->regex, default_regex), error) ||
           error_at(error, "regex");
}

static void rule_fini(struct rule *rule)
{
    matcher_fini(&rule->matcher);
    template_fini(&rule->target);
    template_fini(&rule->replacement);
    mem_free(rule->source_labels);
    mem_free(rule->texts);
}

static void copy_texts(struct rule *rule, const struct relabel_config *config)
{
    const char *separator = text_or(config->separator, default_separator);
    size_t bytes = strlen(separator) + 1;
    for (size_t i = 0; i < config->source_labels_count; i++)
        bytes += strlen(config->source_labels[i]);
    rule->texts = mem_alloc(bytes);
    rule->source_labels = mem_alloc(config->source_labels_count * sizeof(struct slice));
    rule->source_labels_count = config->source_labels_count;
    char *to = rule->texts;
    for (size_t i = 0; i < config->source_labels_count; i++) {
        size_t size = strlen(config->source_labels[i]);
        memcpy(to, config->source_labels[i], size);
        rule->source_labels[i] = slice_of(to, size);
        to += size;
    }
    rule->separator = slice_of(to, strlen(separator));
    memcpy(to, separator, rule->separator.size);
}

static bool rule_init(struct rule *rule, const struct relabel_config *config,
                      enum relabel_names names, struct error *error)
{
    struct matcher matcher;
    enum action action = ACTION_REPLACE;
    if (!check_rule(config, names, &action, &matcher, error))
        return false;
    const char *target = text_or(config->target_label, "");
    *rule = (struct rule){.action = action,
                          .names = names,
                          .matcher = matcher,
                          .modulus = config->modulus,
                          .has_dynamic_target = strchr(target, '$') != NULL};
    copy_texts(rule, config);
    if (action == ACTION_REPLACE) {
        template_init(&rule->target, &matcher, target);
    } else {
        rule->target.text = mem_copy_text(target);
        rule->target.constant = slice_of_text(rule->target.text);
    }
    template_init(&rule->replacement, &matcher, text_or(config->replacement, default_replacement));
    rule->groups = rule->target.groups > rule->replacement.groups ? rule->target.groups
                                                                  : rule->replacement.groups;
    bool uses_groups = action == ACTION_REPLACE || action == ACTION_LABEL_MAP;
    if ((uses_groups && rule->groups > GROUPS_MAX) ||
        (action == ACTION_HASH_MOD && !digest_prepare(error))) {
        if (action != ACTION_HASH_MOD) {
            error_set(error, "found group %zu, expected no group above %d", rule->groups - 1,
                      GROUPS_MAX - 1);
            error_at(error, rule->target.groups > GROUPS_MAX ? "target_label" : "replacement");
        }
        rule_fini(rule);
        return false;
    }
    return true;
}

struct relabel_rules *relabel_rules_create(const struct relabel_config *configs, size_t count,
                                           enum relabel_names names, struct error *error)
{
    if (count > RELABEL_RULES_MAX) {
        error_set(error, "found %zu rules, expected at most %d", count, RELABEL_RULES_MAX);
        return NULL;
    }
    struct relabel_rules *rules = mem_alloc(sizeof(*rules) + count * sizeof(rules->rules[0]));
    for (rules->count = 0; rules->count < count; rules->count++) {
        if (!rule_init(&rules->rules[rules->count], &configs[rules->count], names, error)) {
            error_at_index(error, rules->count);
            relabel_rules_destroy(rules);
            return NULL;
        }
    }
    return rules;
}

bool relabel_configs_check(const struct relabel_config *configs, size_t count,
                           enum relabel_names names, struct error *error)
{
    struct relabel_rules *rules = relabel_rules_create(configs, count, names, error);
    relabel_rules_destroy(rules);
    return rules != NULL;
}

void relabel_rules_destroy(struct relabel_rules *rules)
{
    if (rules == NULL)
        return;
    for (size_t i = 0; i < rules->count; i++)
        rule_fini(&rules->rules[i]);
    mem_free(rules);
}

/* ---- The set of labels ---- */

void relabel_labels_init(struct relabel_labels *labels)
{
    *labels = (struct relabel_labels){
        .labels = mem_alloc(RELABEL_LABELS_MAX * sizeof(struct relabel_label)),
        .snapshot = mem_alloc(RELABEL_LABELS_MAX * sizeof(struct relabel_label)),
        .text = mem_alloc(RELABEL_TEXT_BYTES_MAX),
    };
    relabel_labels_reset(labels);
}

void relabel_labels_fini(struct relabel_labels *labels)
{
    mem_free(labels->labels);
    mem_free(labels->snapshot);
    mem_free(labels->text);
    *labels = (struct relabel_labels){.count = 0};
}

void relabel_labels_reset(struct relabel_labels *labels)
{
    labels->count = 0;
    labels->has_duplicates = false;
    labels->has_overflowed = false;
    labels->next_order = 1;
    labels->text_size = 0;
}

/* Where the label is, or would be. */
static size_t place_of(const struct relabel_labels *labels, struct slice name, bool *ret_is_there)
{
    size_t low = 0;
    size_t high = labels->count;
    *ret_is_there = false;
    /* Samples mostly bring their labels in order. */
    if (high > 0 && slice_compare(labels->labels[high - 1].label.name, name) < 0)
        return high;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = slice_compare(labels->labels[middle].label.name, name);
        if (order == 0) {
            *ret_is_there = true;
            return middle;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void insert(struct relabel_labels *labels, size_t place, struct relabel_label label)
{
    if (labels->count == RELABEL_LABELS_MAX) {
        labels->has_overflowed = true;
        return;
    }
    memmove(&labels->labels[place + 1], &labels->labels[place],
            (labels->count - place) * sizeof(labels->labels[0]));
    labels->labels[place] = label;
    labels->count++;
}

void relabel_labels_add(struct relabel_labels *labels, struct slice name, struct slice value)
{
    bool is_there;
    size_t place = place_of(labels, name, &is_there);
    if (is_there)
        labels->has_duplicates = true;
    else if (value.size > 0)
        insert(labels, place, (struct relabel_label){.label = {.name = name, .value = value}});
}

struct slice relabel_labels_get(const struct relabel_labels *labels, struct slice name)
{
    bool is_there;
    size_t place = place_of(labels, name, &is_there);
    return is_there ? labels->labels[place].label.value : (struct slice){.size = 0};
}

void relabel_labels_set(struct relabel_labels *labels, struct slice name, struct slice value)
{
    bool is_there;
    if (value.size == 0) {
        relabel_labels_delete(labels, name);
        return;
    }
    size_t place = place_of(labels, name, &is_there);
    if (!is_there) {
        insert(labels, place,
               (struct relabel_label){.label = {.name = name, .value = value},
                                      .order = labels->next_order++});
        return;
    }
    struct relabel_label *label = &labels->labels[place];
    label->label.value = value;
    if (label->order == 0)
        label->order = labels->next_order++;
}

void relabel_labels_delete(struct relabel_labels *labels, struct slice name)
{
    bool is_there;
    size_t place = place_of(labels, name, &is_there);
    if (!is_there)
        return;
    labels->count--;
    memmove(&labels->labels[place], &labels->labels[place + 1],
            (labels->count - place) * sizeof(labels->labels[0]));
}

struct slice relabel_labels_copy(struct relabel_labels *labels, struct slice text)
{
    uint8_t *room = room_for(labels, text.size);
    if (room == NULL || text.size == 0)
        return (struct slice){.size = 0};
    memcpy(room, text.data, text.size);
    labels->text_size += text.size;
    return slice_of(room, text.size);
}

/* ---- Applying ---- */

/* The values of the source labels, joined. */
static struct slice source_of(const struct rule *rule, struct relabel_labels *labels)
{
    if (rule->source_labels_count == 0)
        return (struct slice){.size = 0};
    if (rule->source_labels_count == 1)
        return relabel_labels_get(labels, rule->source_labels[0]);
    uint8_t *start = labels->text + labels->text_size;
    for (size_t i = 0; i < rule->source_labels_count; i++) {
        if (i > 0)
            relabel_labels_copy(labels, rule->separator);
        relabel_labels_copy(labels, relabel_labels_get(labels, rule->source_labels[i]));
    }
    return slice_of(start, (size_t)(labels->text + labels->text_size - start));
}

/* False: no label points to text that was written for it. */
static bool replace(const struct rule *rule, struct slice source, struct relabel_labels *labels)
{
    struct slice groups[GROUPS_MAX];
    if (!matcher_find(&rule->matcher, source, groups, rule->groups))
        return false;
    struct slice target = expand(&rule->target, groups, labels);
    if (rule->has_dynamic_target && !is_label_name(target, rule->names))
        return false;
    struct slice value = expand(&rule->replacement, groups, labels);
    if (!labels->has_overflowed)
        relabel_labels_set(labels, target, value);
    return value.size > 0;
}

static void change_case(const struct rule *rule, struct slice source, struct relabel_labels *labels)
{
    uint8_t *room = room_for(labels, source.size * UTF8_CASE_GROWTH_MAX);
    if (room == NULL)
        return;
    size_t size = rule->action == ACTION_LOWERCASE ? utf8_to_lower(source, room)
                                                   : utf8_to_upper(source, room);
    labels->text_size += size;
    relabel_labels_set(labels, rule->target.constant, slice_of(room, size));
}

static void hash_mod(const struct rule *rule, struct slice source, struct relabel_labels *labels)
{
    uint8_t digest[DIGEST_MD5_BYTES];
    uint64_t hash = 0;
    char number[24];
    digest_md5(source, digest);
    for (size_t i = DIGEST_MD5_BYTES - sizeof(hash); i < DIGEST_MD5_BYTES; i++)
        hash = hash << 8 | digest[i];
    int size = snprintf(number, sizeof(number), "%" PRIu64, hash % rule->modulus);
    struct slice value = relabel_labels_copy(labels, slice_of(number, (size_t)size));
    if (!labels->has_overflowed)
        relabel_labels_set(labels, rule->target.constant, value);
}

static int compare_order(const void *a, const void *b)
{
    const struct relabel_label *one = a;
    const struct relabel_label *other = b;
    return (one->order > other->order) - (one->order < other->order);
}

/* Copies the labels as Prometheus walks them: those that were there, by name, and then those that
 * were set, in that order. It decides who wins when several are mapped to one. */
static size_t take_snapshot(struct relabel_labels *labels)
{
    size_t count = 0;
    for (size_t i = 0; i < labels->count; i++)
        if (labels->labels[i].order == 0)
            labels->snapshot[count++] = labels->labels[i];
    size_t set = count;
    for (size_t i = 0; i < labels->count; i++)
        if (labels->labels[i].order != 0)
            labels->snapshot[count++] = labels->labels[i];
    qsort(labels->snapshot + set, count - set, sizeof(labels->snapshot[0]), compare_order);
    return count;
}

/* Replaces every match in the name, of which there is more than one only if the regex closes the
 * parenthesis that anchors it: "a)|(b". */
static struct slice map_name(const struct rule *rule, struct slice name,
                             struct relabel_labels *labels)
{
    struct slice groups[GROUPS_MAX];
    const struct template *replacement = &rule->replacement;
    if (rule->matcher.kind != MATCH_PATTERN) {
        matcher_find(&rule->matcher, name, groups, replacement->groups);
        return expand(replacement, groups, labels);
    }
    uint8_t *start = labels->text + labels->text_size;
    size_t taken = 0; /* of the name */
    size_t count = replacement->groups > 0 ? replacement->groups : 1;
    for (size_t at = 0; at <= name.size;) {
        if (!pattern_find_from(rule->matcher.pattern, name, at, groups, count))
            break;
        size_t from = (size_t)(groups[0].data - name.data);
        size_t to = from + groups[0].size;
        relabel_labels_copy(labels, slice_of(name.data + taken, from - taken));
        if (to > taken || from == 0) {
            struct slice text = expand(replacement, groups, labels);
            if (replacement->groups == 0 || replacement->only_group >= 0)
                relabel_labels_copy(labels, text);
        }
        taken = to;
        size_t width = at < name.size ? utf8_size(slice_of(name.data + at, name.size - at)) : 1;
        at = at + (width > 0 ? width : 1) > to ? at + (width > 0 ? width : 1) : to;
    }
    relabel_labels_copy(labels, slice_of(name.data + taken, name.size - taken));
    return slice_of(start, (size_t)(labels->text + labels->text_size - start));
}

static void map_labels(const struct rule *rule, struct relabel_labels *labels)
{
    size_t count = take_snapshot(labels);
    for (size_t i = 0; i < count && !labels->has_overflowed; i++) {
        const struct prometheus_label *label = &labels->snapshot[i].label;
        if (!matcher_find(&rule->matcher, label->name, NULL, 0))
            continue;
        struct slice name = map_name(rule, label->name, labels);
        if (!labels->has_overflowed)
            relabel_labels_set(labels, name, label->value);
    }
}

static void filter_labels(const struct rule *rule, bool keeps, struct relabel_labels *labels)
{
    size_t count = 0;
    for (size_t i = 0; i < labels->count; i++)
        if (matcher_find(&rule->matcher, labels->labels[i].label.name, NULL, 0) == keeps)
            labels->labels[count++] = labels->labels[i];
    labels->count = count;
}

/* False: the rule drops the target or sample. */
static bool apply(const struct rule *rule, struct relabel_labels *labels)
{
    const size_t text_size = labels->text_size;
    struct slice source = source_of(rule, labels);
    if (labels->has_overflowed)
        return true;
    switch (rule->action) {
    case ACTION_KEEP:
    case ACTION_DROP:
        labels->text_size = text_size;
        return matcher_find(&rule->matcher, source, NULL, 0) == (rule->action == ACTION_KEEP);
    case ACTION_KEEP_EQUAL:
    case ACTION_DROP_EQUAL:
        labels->text_size = text_size;
        return slice_equal(relabel_labels_get(labels, rule->target.constant), source) ==
               (rule->action == ACTION_KEEP_EQUAL);
    case ACTION_REPLACE:
        if (!replace(rule, source, labels))
            labels->text_size = text_size;
        break;
    case ACTION_LOWERCASE:
    case ACTION_UPPERCASE:
        change_case(rule, source, labels);
        break;
    case ACTION_HASH_MOD:
        hash_mod(rule, source, labels);
        break;
    case ACTION_LABEL_MAP:
        map_labels(rule, labels);
        break;
    case ACTION_LABEL_DROP:
    case ACTION_LABEL_KEEP:
        filter_labels(rule, rule->action == ACTION_LABEL_KEEP, labels);
        break;
    case ACTIONS:
        assert(false);
    }
    return true;
}

bool relabel_rules_apply(const struct relabel_rules *rules, struct relabel_labels *labels)
{
    for (size_t i = 0; i < rules->count && !labels->has_overflowed; i++)
        if (!apply(&rules->rules[i], labels))
            return false;
    return true;
}
