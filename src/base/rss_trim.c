/* SPDX-License-Identifier: Apache-2.0 */
/* Walks the loaded objects and drops the pages of read-only segments: those are clean copies of
 * files. Any thread. */
#include "src/base/rss_trim.h"

#include <assert.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

static int release_object(struct dl_phdr_info *object, size_t size, void *arg)
{
    (void)size;
    (void)arg;
    /* Objects with relocations in their code wrote to pages that look read-only. */
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        if (segment->p_type != PT_DYNAMIC)
            continue;
        const ElfW(Dyn) *entry = (const void *)(object->dlpi_addr + segment->p_vaddr);
        for (; entry->d_tag != DT_NULL; entry++)
            if (entry->d_tag == DT_TEXTREL ||
                (entry->d_tag == DT_FLAGS && (entry->d_un.d_val & DF_TEXTREL) != 0))
                return 0;
    }
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        uintptr_t start = object->dlpi_addr + segment->p_vaddr;
        /* RELRO lies in a segment that is writable by its header. */
        if (segment->p_type == PT_LOAD && (segment->p_flags & PF_W) == 0) {
            /* madvise fails for the vdso, which is not a file; that is harmless. */
            uintptr_t end = start + segment->p_memsz;
            uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
            uintptr_t first = (start + page - 1) / page * page;
            uintptr_t last = end / page * page;
            assert(start <= end);
            if (first < last)
                madvise((void *)first, last - first, MADV_DONTNEED);
        }
    }
    return 0;
}

void rss_trim(void)
{
    assert(sysconf(_SC_PAGESIZE) > 0);
    dl_iterate_phdr(release_object, NULL);
}
