/* SPDX-License-Identifier: Apache-2.0 */
/* Edit distance with transpositions (restricted Damerau-Levenshtein), for short names. Pure
 * functions. */
#include "src/config/suggest.h"

#include <assert.h>
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { NAME_BYTES_MAX = 64 };

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

struct suggestion suggestion_for(const char *found)
{
    size_t size = strlen(found);
    /* One slip per three letters, or two in a very short name. */
    return (struct suggestion){.found = found, .distance = size < 4 ? 2 : 1 + size / 3};
}

void suggestion_consider(struct suggestion *suggestion, const char *candidate)
{
    if (suggestion->considered == SUGGESTION_CANDIDATES_MAX ||
        strlen(suggestion->found) > NAME_BYTES_MAX || strlen(candidate) > NAME_BYTES_MAX)
        return;
    suggestion->considered++;
    /* Differences in case cost nothing: the user knows the name. */
    size_t rows[3][NAME_BYTES_MAX + 1];
    size_t a_size = strlen(suggestion->found);
    size_t b_size = strlen(candidate);
    assert(a_size <= NAME_BYTES_MAX && b_size <= NAME_BYTES_MAX);
    for (size_t j = 0; j <= b_size; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= a_size; i++) {
        size_t *row = rows[i % 3];
        const size_t *above = rows[(i - 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= b_size; j++) {
            bool is_same = tolower((unsigned char)suggestion->found[i - 1]) ==
                           tolower((unsigned char)candidate[j - 1]);
            row[j] =
                smaller(smaller(above[j] + 1, row[j - 1] + 1), above[j - 1] + (is_same ? 0 : 1));
            if (i > 1 && j > 1 && suggestion->found[i - 1] == candidate[j - 2] &&
                suggestion->found[i - 2] == candidate[j - 1])
                row[j] = smaller(row[j], rows[(i - 2) % 3][j - 2] + 1);
        }
    }
    size_t distance = rows[a_size % 3][b_size];
    if (distance >= suggestion->distance || distance >= strlen(candidate))
        return;
    suggestion->distance = distance;
    suggestion->nearest = candidate;
}

struct suggestion_text suggestion_to_text(const struct suggestion *suggestion)
{
    struct suggestion_text result = {.text = ""};
    if (suggestion->nearest != NULL)
        snprintf(result.text, sizeof(result.text), " (did you mean \"%s\"?)", suggestion->nearest);
    return result;
}
