/* SPDX-License-Identifier: Apache-2.0 */
/* Lines: a letter and a text. Of the current rule: a action, g regex, p separator, r replacement, s
 * a source label, t target_label, m modulus; R begins the next one, L chooses legacy names; l adds
 * a label, name=value. Rules that are accepted leave a set that is sorted and without empty values.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "src/base/error.h"
#include "src/prometheus/relabel.h"

enum { RULES_MAX = 8, SOURCES_MAX = 8 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void take_line(char *line, struct relabel_config *rule, const char **sources)
{
    switch (line[0]) {
    case 'a':
        rule->action = line + 1;
        break;
    case 'g':
        rule->regex = line + 1;
        break;
    case 'p':
        rule->separator = line + 1;
        break;
    case 'r':
        rule->replacement = line + 1;
        break;
    case 't':
        rule->target_label = line + 1;
        break;
    case 'm':
        rule->modulus = strtoull(line + 1, NULL, 10);
        break;
    case 's':
        if (rule->source_labels_count < SOURCES_MAX) {
            sources[rule->source_labels_count++] = line + 1;
            rule->source_labels = sources;
        }
        break;
    default:
        break;
    }
}

static void check_set(const struct relabel_labels *set)
{
    for (size_t i = 0; i < set->count; i++) {
        assert(set->labels[i].label.value.size > 0);
        assert(i == 0 ||
               slice_compare(set->labels[i - 1].label.name, set->labels[i].label.name) < 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct relabel_config rules[RULES_MAX] = {{.action = NULL}};
    const char *sources[RULES_MAX][SOURCES_MAX];
    struct relabel_labels set;
    struct error error = {.text = ""};
    enum relabel_names names = RELABEL_NAMES_UTF8;
    size_t last = 0;
    char *text = malloc(size + 1);
    assert(text != NULL);
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    relabel_labels_init(&set);
    for (char *rest = NULL, *line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        char *equals = strchr(line, '=');
        if (line[0] == 'L')
            names = RELABEL_NAMES_LEGACY;
        else if (line[0] == 'R')
            last += last + 1 < RULES_MAX;
        else if (line[0] == 'l' && equals != NULL)
            relabel_labels_add(&set, slice_of(line + 1, (size_t)(equals - line) - 1),
                               slice_of_text(equals + 1));
        else
            take_line(line, &rules[last], sources[last]);
    }
    struct relabel_rules *made = relabel_rules_create(rules, last + 1, names, &error);
    if (made == NULL) {
        assert(error.text[0] != '\0');
        assert(error.steps_count >= 2 || strstr(error.text, "OpenSSL") != NULL);
    } else {
        relabel_rules_apply(made, &set);
        if (!set.has_overflowed)
            check_set(&set);
    }
    relabel_rules_destroy(made);
    relabel_labels_fini(&set);
    free(text);
    return 0;
}
