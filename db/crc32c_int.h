/* SPDX-License-Identifier: MIT */
/* dt_crc32c without the instruction, for tests of both. */
#ifndef DT_DB_CRC32C_INT_H
#define DT_DB_CRC32C_INT_H

#include <stddef.h>
#include <stdint.h>

uint32_t dt_crc32c_portable(const void *bytes, size_t size);

#endif
