/* SPDX-License-Identifier: Apache-2.0 */
/* A C face for RE2. Any thread. */
#include "src/base/pattern.h"

#include <cassert>
#include <cctype>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <re2/re2.h>

extern "C" {
#include "src/base/error.h"
#include "src/base/utf8.h"
}

namespace
{
const int64_t memory_bytes_max = 8
                                 << 20; /* of the automaton; beyond it RE2 is slower, not larger */
/* Of patterns that come with data. It lets programs have some 2700 instructions, about two classes
 * of letters of all scripts. */
const int64_t small_memory_bytes_max = 128 << 10;
const size_t text_bytes_max = 64 << 10;

/* What a part of a small pattern takes, in about nanoseconds. */
enum : uint64_t {
    create_cost = 5000,
    byte_cost = 500,
    class_cost = 200 * 1000, /* of Unicode: hundreds of ranges */
    repeat_cost = 500,       /* each is written out before the size is known */
    repeats_max = 1000,
    step_cost = 500,
    steps_max = 2700,
};

re2::StringPiece piece_of(struct slice text)
{
    return re2::StringPiece(reinterpret_cast<const char *>(text.data), text.size);
}

/* Go also writes (?<name>…), which this RE2 may not know yet. */
std::string with_old_group_names(std::string text)
{
    for (size_t at = text.find("(?<"); at != std::string::npos; at = text.find("(?<", at + 4))
        if (at + 3 < text.size() && text[at + 3] != '=' && text[at + 3] != '!')
            text.insert(at + 2, "P");
    return text;
}

/* RE2's \C, a byte, which Go does not know. */
bool has_byte_escape(const std::string &text)
{
    for (size_t at = text.find('\\'); at != std::string::npos; at = text.find('\\', at)) {
        char escaped = at + 1 < text.size() ? text[at + 1] : '\0';
        if (escaped == 'C')
            return true;
        at += 2;
        if (escaped == 'Q' && (at = text.find("\\E", at)) == std::string::npos)
            return false;
    }
    return false;
}

std::unique_ptr<re2::RE2> compile(const std::string &text, int64_t bytes_max)
{
    re2::RE2::Options options;
    options.set_log_errors(false);
    options.set_max_mem(bytes_max);
    return std::unique_ptr<re2::RE2>(new re2::RE2(text, options));
}
} // namespace

/* A pattern that is a piece of text, at a place or anywhere. */
struct literal {
    bool is_known;
    bool at_begin;
    bool at_end;
    std::string text;
};

struct pattern {
    struct literal literal; /* matched without RE2 */
    std::unique_ptr<re2::RE2> expression;
    std::vector<std::string> names; /* by group; empty: none */
};

/* Only ASCII, without operators; a backslash may stand before punctuation. ^ and $ mean the text's
 * begin and end, since a pattern with flags is none of these. */
static struct literal literal_of(const std::string &pattern)
{
    static const char operators[] = "\\.+*?()|[]{}^$";
    struct literal literal = {false, false, false, std::string()};
    size_t at = 0;
    size_t end = pattern.size();
    if (at < end && pattern[at] == '^') {
        literal.at_begin = true;
        at++;
    }
    while (at < end) {
        unsigned char byte = static_cast<unsigned char>(pattern[at++]);
        if (byte == '$' && at == end) {
            literal.at_end = true;
            break;
        }
        if (byte == '\\' && at < end && ispunct(static_cast<unsigned char>(pattern[at])))
            byte = static_cast<unsigned char>(pattern[at++]);
        else if (strchr(operators, byte) != nullptr)
            return literal;
        if (byte == '\0' || byte >= 0x80)
            return literal;
        literal.text += static_cast<char>(byte);
    }
    literal.is_known = true;
    return literal;
}

static bool literal_matches(const struct literal *literal, struct slice text)
{
    const size_t size = literal->text.size();
    if (text.size < size || (literal->at_begin && literal->at_end && text.size != size))
        return false;
    if (size == 0)
        return true;
    if (literal->at_begin)
        return memcmp(text.data, literal->text.data(), size) == 0;
    if (literal->at_end)
        return memcmp(text.data + text.size - size, literal->text.data(), size) == 0;
    return memmem(text.data, text.size, literal->text.data(), size) != nullptr;
}

/* *ret_cost: what the program took. */
static struct pattern *create(const char *text, int64_t bytes_max, uint64_t *ret_cost,
                              struct error *error)
{
    assert(text != nullptr);
    *ret_cost = 0;
    if (std::string(text).size() > text_bytes_max) {
        error_set(error, "pattern of more than %zu bytes", text_bytes_max);
        return nullptr;
    }
    std::unique_ptr<re2::RE2> expression = compile(text, bytes_max);
    if (!expression->ok()) {
        const std::string named = with_old_group_names(text);
        if (named != text)
            expression = compile(named, bytes_max);
    }
    if (expression->ok())
        *ret_cost = static_cast<uint64_t>(expression->ProgramSize()) * step_cost;
    else if (expression->error_code() == re2::RE2::ErrorPatternTooLarge)
        *ret_cost = steps_max * step_cost;
    if (!expression->ok()) {
        error_set(error, "invalid pattern \"%s\": %s", text, expression->error().c_str());
        return nullptr;
    }
    if (has_byte_escape(text)) {
        error_set(error, "invalid pattern \"%s\": invalid escape sequence: \\C", text);
        return nullptr;
    }
    if (expression->NamedCapturingGroups().size() != expression->CapturingGroupNames().size()) {
        error_set(error, "invalid pattern \"%s\": duplicate capture group name", text);
        return nullptr;
    }
    struct pattern *pattern = new struct pattern;
    pattern->names.resize(static_cast<size_t>(expression->NumberOfCapturingGroups()) + 1);
    for (const auto &group : expression->CapturingGroupNames())
        pattern->names[static_cast<size_t>(group.first)] = group.second;
    pattern->expression = std::move(expression);
    pattern->literal = literal_of(text);
    return pattern;
}

struct pattern *pattern_create(const char *text, struct error *error)
{
    uint64_t cost;
    return create(text, memory_bytes_max, &cost, error);
}

struct pattern *pattern_create_small(const char *text, uint64_t *ret_cost, struct error *error)
{
    return create(text, small_memory_bytes_max, ret_cost, error);
}

/* The larger number of a counted repetition, at most repeats_max. */
static uint64_t repeats_at(struct slice text, size_t at)
{
    uint64_t largest = 0;
    uint64_t times = 0;
    for (; at < text.size && (isdigit(text.data[at]) || text.data[at] == ','); at++) {
        times = text.data[at] == ',' ? 0 : times * 10 + (text.data[at] - '0');
        times = times < repeats_max ? times : repeats_max;
        largest = largest > times ? largest : times;
    }
    return largest;
}

uint64_t pattern_cost(struct slice text)
{
    uint64_t cost = create_cost + text.size * byte_cost;
    for (size_t i = 0; i + 1 < text.size; i++) {
        if (text.data[i] == '{')
            cost += repeats_at(text, i + 1) * repeat_cost;
        if (text.data[i] != '\\')
            continue;
        i++; /* what follows means something else, or itself */
        if (text.data[i] == 'p' || text.data[i] == 'P')
            cost += class_cost;
    }
    return cost;
}

size_t pattern_steps(const struct pattern *pattern)
{
    assert(pattern != nullptr);
    return pattern->literal.is_known ? 1 : static_cast<size_t>(pattern->expression->ProgramSize());
}

void pattern_destroy(struct pattern *pattern)
{
    delete pattern;
}

bool pattern_matches(const struct pattern *pattern, struct slice text)
{
    assert(pattern != nullptr);
    if (pattern->literal.is_known)
        return literal_matches(&pattern->literal, text);
    return re2::RE2::PartialMatch(piece_of(text), *pattern->expression);
}

size_t pattern_groups(const struct pattern *pattern)
{
    assert(pattern != nullptr);
    return pattern->names.size() - 1;
}

const char *pattern_group_name(const struct pattern *pattern, size_t group)
{
    assert(group > 0);
    assert(group < pattern->names.size());
    return pattern->names[group].empty() ? nullptr : pattern->names[group].c_str();
}

bool pattern_find(const struct pattern *pattern, struct slice text, struct slice *ret_groups,
                  size_t count)
{
    assert(count <= pattern_groups(pattern));
    std::vector<re2::StringPiece> found(count + 1);
    if (!pattern->expression->Match(piece_of(text), 0, text.size, re2::RE2::UNANCHORED,
                                    found.data(), static_cast<int>(found.size())))
        return false;
    for (size_t i = 0; i < count; i++)
        ret_groups[i] = slice_of(found[i + 1].data(), found[i + 1].size());
    return true;
}

bool pattern_find_from(const struct pattern *pattern, struct slice text, size_t from,
                       struct slice *ret_groups, size_t count)
{
    /* So many need no allocation. */
    constexpr size_t few = 16;
    re2::StringPiece some[few];
    std::vector<re2::StringPiece> many(count > few ? count : 0);
    re2::StringPiece *found = count > few ? many.data() : some;
    assert(from <= text.size);
    assert(count <= pattern_groups(pattern) + 1);
    if (!pattern->expression->Match(piece_of(text), from, text.size, re2::RE2::UNANCHORED, found,
                                    static_cast<int>(count)))
        return false;
    for (size_t i = 0; i < count; i++)
        ret_groups[i] = slice_of(found[i].data(), found[i].size());
    return true;
}

struct pattern_template {
    /* Text, and then a group, unless it is -1. */
    struct part {
        std::string text;
        int group;
    };
    std::vector<part> parts;
    size_t groups;
};

namespace
{
/* The group of a template's name, or -1: numbers have no leading zeros. */
int template_group_of(const struct pattern *pattern, const std::string &name)
{
    bool is_number = name.find_first_not_of("0123456789") == std::string::npos &&
                     (name[0] != '0' || name.size() == 1);
    if (is_number && name.size() < 9) {
        size_t number = std::stoul(name);
        return number < pattern->names.size() ? static_cast<int>(number) : -1;
    }
    for (size_t i = 1; i < pattern->names.size(); i++)
        if (pattern->names[i] == name)
            return static_cast<int>(i);
    return -1;
}

/* Adds the text before a group, and that. */
void add_group(struct pattern_template *form, std::string *plain, int group)
{
    form->parts.push_back({*plain, group});
    plain->clear();
    if (form->groups < static_cast<size_t>(group) + 1)
        form->groups = static_cast<size_t>(group) + 1;
}

/* Bytes of the name at the start of text: letters, digits and underscores, of any script. */
size_t name_size_of(re2::StringPiece text)
{
    static const re2::RE2 name("[\\pL\\p{Nd}_]*");
    size_t size = 0;
    re2::StringPiece found;
    while (size < text.size() &&
           (isalnum(static_cast<unsigned char>(text[size])) || text[size] == '_'))
        size++;
    if (size == text.size() || static_cast<unsigned char>(text[size]) < 0x80 ||
        !name.Match(text, 0, text.size(), re2::RE2::ANCHOR_START, &found, 1))
        return size;
    return found.size();
}
} // namespace

struct pattern_template *pattern_template_create(const struct pattern *pattern, const char *text)
{
    assert(pattern != nullptr);
    struct pattern_template *form = new struct pattern_template;
    re2::StringPiece rest(text);
    std::string plain;
    form->groups = 0;
    while (!rest.empty()) {
        if (rest[0] != '$') {
            plain += rest[0];
            rest.remove_prefix(1);
            continue;
        }
        rest.remove_prefix(1);
        if (!rest.empty() && rest[0] == '$') {
            plain += '$';
            rest.remove_prefix(1);
            continue;
        }
        size_t brace = !rest.empty() && rest[0] == '{' ? 1 : 0;
        size_t size = name_size_of(rest.substr(brace));
        if (size == 0 || (brace > 0 && (1 + size == rest.size() || rest[1 + size] != '}'))) {
            plain += '$'; /* not a name */
            continue;
        }
        int group = template_group_of(pattern, std::string(rest.data() + brace, size));
        rest.remove_prefix(size + 2 * brace);
        if (group < 0)
            continue;
        add_group(form, &plain, group);
    }
    form->parts.push_back({plain, -1});
    return form;
}

void pattern_template_destroy(struct pattern_template *form)
{
    delete form;
}

size_t pattern_template_groups(const struct pattern_template *form)
{
    return form->groups;
}

size_t pattern_template_expand(const struct pattern_template *form, const struct slice *groups,
                               void *room, size_t bytes_max)
{
    size_t size = 0;
    auto add = [&](const void *data, size_t bytes) {
        if (bytes > 0 && size <= bytes_max && bytes <= bytes_max - size)
            memcpy(static_cast<char *>(room) + size, data, bytes);
        size += bytes;
    };
    for (const auto &part : form->parts) {
        add(part.text.data(), part.text.size());
        if (part.group >= 0)
            add(groups[part.group].data, groups[part.group].size);
    }
    return size;
}

struct pattern_replacement {
    struct pattern_template form;
};

namespace
{
constexpr int replacement_group_max = 9;

/* The group of that name, or -1. */
int group_of(const struct pattern *pattern, const std::string &name)
{
    bool is_number = !name.empty() && name.size() < 4 &&
                     name.find_first_not_of("0123456789") == std::string::npos;
    if (is_number) {
        size_t number = std::stoul(name);
        return number < pattern->names.size() ? static_cast<int>(number) : -1;
    }
    for (size_t i = 1; i < pattern->names.size(); i++)
        if (!name.empty() && pattern->names[i] == name)
            return static_cast<int>(i);
    return -1;
}

/* Parses what follows a dollar at `at`: the group's name, and where the text continues. */
std::string group_name_at(const std::string &text, size_t at, size_t *ret_next)
{
    if (at < text.size() && text[at] == '{') {
        size_t end = text.find('}', at);
        *ret_next = end == std::string::npos ? text.size() : end + 1;
        return end == std::string::npos ? "" : text.substr(at + 1, end - at - 1);
    }
    size_t end = at;
    while (end < text.size() &&
           (isalnum(static_cast<unsigned char>(text[end])) || text[end] == '_'))
        end++;
    *ret_next = end;
    return text.substr(at, end - at);
}
} // namespace

struct pattern_replacement *pattern_replacement_create(const struct pattern *pattern,
                                                       const char *text, struct error *error)
{
    assert(pattern != nullptr);
    const std::string from = text;
    struct pattern_template form;
    std::string plain;
    form.groups = 0;
    for (size_t at = 0; at < from.size();) {
        if (from[at] != '$') {
            plain += from[at];
            at++;
        } else if (at + 1 < from.size() && from[at + 1] == '$') {
            plain += '$';
            at += 2;
        } else {
            const std::string name = group_name_at(from, at + 1, &at);
            int group = group_of(pattern, name);
            if (group < 0 || group > replacement_group_max) {
                error_set(error,
                          "replacement \"%s\": found group \"%s\", expected one of the "
                          "pattern's, of which the first nine can be used; $$ is a dollar",
                          text, name.c_str());
                return nullptr;
            }
            add_group(&form, &plain, group);
        }
    }
    form.parts.push_back({plain, -1});
    struct pattern_replacement *replacement = new struct pattern_replacement;
    replacement->form = std::move(form);
    return replacement;
}

void pattern_replacement_destroy(struct pattern_replacement *replacement)
{
    delete replacement;
}

namespace
{
/* Bytes of the character at the start of text, as RE2 sees it: a surrogate is one, too. 1: there is
 * none. */
size_t character_size(re2::StringPiece text)
{
    const uint8_t *bytes = reinterpret_cast<const uint8_t *>(text.data());
    bool is_surrogate = text.size() >= 3 && bytes[0] == 0xed && (bytes[1] & 0xe0) == 0xa0 &&
                        (bytes[2] & 0xc0) == 0x80;
    size_t size = text.empty() ? 0 : utf8_size(slice_of(bytes, text.size()));
    return is_surrogate ? 3 : size > 0 ? size : 1;
}

/* A text that is cut: behind its end nothing is added. */
struct cut_text {
    char *room;
    size_t bytes_max;
    size_t size;
    bool is_full; /* there was more, and this is its first byte */
    char next;
};

void add(struct cut_text *text, re2::StringPiece more)
{
    size_t left = text->bytes_max - text->size;
    size_t size = more.size() < left ? more.size() : left;
    if (text->is_full)
        return;
    if (size > 0)
        memcpy(text->room + text->size, more.data(), size);
    text->size += size;
    text->is_full = size < more.size();
    if (text->is_full)
        text->next = more[size];
}

/* UTF-8 is cut between characters. */
size_t cut_size(const struct cut_text *text)
{
    size_t size = text->size;
    char next = text->next;
    while (text->is_full && size > 0 && (next & 0xc0) == 0x80)
        next = text->room[--size];
    return size;
}
} // namespace

bool pattern_replace(const struct pattern *pattern, const struct pattern_replacement *replacement,
                     struct slice text, void *room, size_t bytes_max, size_t *ret_size)
{
    assert(room != nullptr);
    assert(replacement != nullptr);
    if (!pattern_matches(pattern, text))
        return false;
    const re2::StringPiece from = text.size > 0 ? piece_of(text) : re2::StringPiece("", 0);
    const struct pattern_template *form = &replacement->form;
    struct cut_text replaced = {static_cast<char *>(room), bytes_max, 0, false, 0};
    re2::StringPiece groups[replacement_group_max + 1];
    const int groups_count = form->groups > 0 ? static_cast<int>(form->groups) : 1;
    bool has_match = false;
    size_t copied = 0; /* up to the end of the last match */
    size_t at = 0;
    while (at <= from.size() && !replaced.is_full &&
           pattern->expression->Match(from, at, from.size(), re2::RE2::UNANCHORED, groups,
                                      groups_count)) {
        size_t begin = static_cast<size_t>(groups[0].data() - from.data());
        if (has_match && groups[0].empty() && begin == copied) {
            /* An empty match right behind another one is none. */
            at = begin + character_size(from.substr(begin));
            continue;
        }
        add(&replaced, from.substr(copied, begin - copied));
        for (const auto &part : form->parts) {
            add(&replaced, part.text);
            if (part.group >= 0)
                add(&replaced, groups[part.group]);
        }
        has_match = true;
        copied = at = begin + groups[0].size();
    }
    add(&replaced, from.substr(copied));
    *ret_size = cut_size(&replaced);
    return true;
}
