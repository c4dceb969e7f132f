/* SPDX-License-Identifier: MIT */
/* private - the secret of a store, by which entries name a command without its text (dittune --private)
 *
 * It is the file private.key of the store's folder, 32 hexadecimal digits, of mode 0600 whatever the umask: who may read the store
 * but not this file can neither read a private command nor test a guess. Entries that are taken to another store are found there
 * once the file has been copied, too.
 */
#ifndef DT_DB_PRIVATE_H
#define DT_DB_PRIVATE_H

#include "base/siphash.h"
#include "base/status.h"

#include <stdbool.h>

/* Reads the secret; where there is none, makes and stores one (`make`, which makes the store's folder, too), or sets *there to
 * false. DT_EIO with a sentence: it cannot be read or made; DT_ECORRUPT: it is no secret; errors of dt_store_put. */
dt_status dt_private_read(const char *directory, bool make, unsigned char secret[DT_SIPHASH_KEY],
                          bool *there) DT_MUST_CHECK;

#endif
