/* SPDX-License-Identifier: MIT */
/* dt_crc32c where there is no instruction for it, for the test of both. */
#ifndef DT_DB_CRC32C_INT_H
#define DT_DB_CRC32C_INT_H

#include <stddef.h>
#include <stdint.h>

uint32_t dt_crc32c_portable(const void *bytes, size_t size);

#endif
