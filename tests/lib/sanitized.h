/* SPDX-License-Identifier: MIT */
/* sanitized - SANITIZED is defined where a sanitizer watches memory or threads */
#ifndef DT_TESTS_LIB_SANITIZED_H
#define DT_TESTS_LIB_SANITIZED_H

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif

#endif
