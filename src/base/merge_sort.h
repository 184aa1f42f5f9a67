/* SPDX-License-Identifier: Apache-2.0 */
/* Sorts as qsort does, but in room that its caller has charged: qsort takes a copy that no budget
 * knows of. Any thread. */
#pragma once

#include <stddef.h>

/* Sorts so many items of so many bytes each; of equal ones none passes another. room is for as
 * many; what it holds afterwards is undefined. */
void merge_sort(void *items, void *room, size_t count, size_t size,
                int (*compare)(const void *a, const void *b));
