/*
 * Which sanitizers this build has: 1 or 0. A test may leave out only what a sanitizer cannot do.
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

/* ThreadSanitizer has a thread of its own, and counts threads wrongly after a fork. */
#if defined(__SANITIZE_THREAD__) || SANITIZERS_HAS(thread_sanitizer)
#define UNDER_TSAN 1
#else
#define UNDER_TSAN 0
#endif

/* Only with clang: gcc has no macro for it. */
#if SANITIZERS_HAS(undefined_behavior_sanitizer)
#define UNDER_UBSAN 1
#else
#define UNDER_UBSAN 0
#endif

/* Everything is several times slower. */
#define UNDER_SANITIZER (UNDER_ASAN || UNDER_TSAN || UNDER_UBSAN)

#endif
