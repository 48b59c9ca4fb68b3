/* What this process may use of the machine. */
#ifndef SUMI_BASE_MACHINE_H
#define SUMI_BASE_MACHINE_H

#include <stdint.h>

/* Bytes of memory that can still be taken: what the kernel calls available, or what is left of the
 * control group's limit if that is less. -1 if neither is known. */
int64_t machine_memory_available(void);

#endif
