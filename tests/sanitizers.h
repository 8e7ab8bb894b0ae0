/*
 * What this build of a test is instrumented with: 1 or 0. Only what a sanitizer cannot do may be
 * left out for it.
 */
#ifndef QKV_TESTS_SANITIZERS_H
#define QKV_TESTS_SANITIZERS_H

#if defined(__has_feature) /* clang */
#define SANITIZERS_HAS(feature) __has_feature(feature)
#else
#define SANITIZERS_HAS(feature) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || SANITIZERS_HAS(address_sanitizer)
#define UNDER_ASAN 1
#else
#define UNDER_ASAN 0
#endif

/* It has a thread of its own, and loses count of threads after a fork. */
#if defined(__SANITIZE_THREAD__) || SANITIZERS_HAS(thread_sanitizer)
#define UNDER_TSAN 1
#else
#define UNDER_TSAN 0
#endif

/* clang's alone; gcc does not tell */
#if SANITIZERS_HAS(undefined_behavior_sanitizer)
#define UNDER_UBSAN 1
#else
#define UNDER_UBSAN 0
#endif

/* Everything is several times slower. */
#define UNDER_SANITIZER (UNDER_ASAN || UNDER_TSAN || UNDER_UBSAN)

#endif
