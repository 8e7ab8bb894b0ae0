/*
 * Features against the compiler's own detection; processors and memory against affinity and
 * invented control groups.
 */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/cpu.h"
#include "core/memory.h"

static void features_are_those_of_the_compiler(void **state) {
    (void)state;
    const uint32_t features = qkvi_cpu_features();
#if defined(__x86_64__)
    __builtin_cpu_init();
    const int avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    const int avx512 = avx2 && __builtin_cpu_supports("avx512f") &&
                       __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
                       __builtin_cpu_supports("avx512dq");
    assert_int_equal((features & QKVI_CPU_AVX2) != 0, avx2);
    assert_int_equal((features & QKVI_CPU_AVX512) != 0, avx512);
    assert_int_equal((features & QKVI_CPU_AVX512BF16) != 0,
                     avx512 && __builtin_cpu_supports("avx512bf16"));
    assert_int_equal((features & QKVI_CPU_AVX512VNNI) != 0,
                     avx512 && __builtin_cpu_supports("avx512vnni"));
#if !defined(__clang__) /* 14 does not know the name */
    assert_int_equal((features & QKVI_CPU_AVXVNNI) != 0, avx2 && __builtin_cpu_supports("avxvnni"));
#endif
    assert_int_equal((features & QKVI_CPU_FAST_DP) != 0,
                     avx512 && __builtin_cpu_supports("avx512bf16") && __builtin_cpu_is("amd"));
#elif defined(__aarch64__)
    /* the first is part of the architecture */
    assert_int_equal(features & ~(unsigned)QKVI_CPU_DOTPROD, QKVI_CPU_NEON);
#else
    assert_int_equal(features, 0);
#endif
}

/* What the C library says, where it knows; a hypervisor may hide it from both. */
static void ways_are_those_of_the_c_library(void **state) {
    (void)state;
    const int ways = qkvi_cpu_l1_ways();
    assert_in_range(ways, 0, 64);
#if !defined(__x86_64__)
    assert_int_equal(ways, 0);
#elif defined(_SC_LEVEL1_DCACHE_ASSOC)
    const long said = sysconf(_SC_LEVEL1_DCACHE_ASSOC);
    if (said > 0 && ways > 0) assert_int_equal(ways, said);
#endif
}

static void AT25_count_follows_the_affinity_mask(void **state) {
    (void)state;
    cpu_set_t before, one;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    assert_true(qkvi_cpu_count() >= 1);
    assert_true(qkvi_cpu_count() <= CPU_COUNT(&before));
    size_t cpu = 0;
    while (!CPU_ISSET(cpu, &before)) cpu++;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_int_equal(qkvi_cpu_count(), 1);
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
}

static char root[200];

static void put(const char *path, const char *text) {
    char full[400];
    snprintf(full, sizeof full, "%s%s", root, path);
    for (char *slash = full + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = 0;
        mkdir(full, 0700);
        *slash = '/';
    }
    FILE *file = fopen(full, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static int make_root(void **state) {
    (void)state;
    strcpy(root, "qkv-cpu-XXXXXX");
    return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state) {
    (void)state;
    char command[300];
    snprintf(command, sizeof command, "rm -r '%s'", root);
    return system(command);
}

static void AT25_quota_without_files(void **state) {
    (void)state;
    assert_int_equal(qkvi_cpu_quota(root), 0);
    put("/proc/self/cgroup", "garbage\n:\n::\n0::\n3:cpu\n0::no-slash\n");
    assert_int_equal(qkvi_cpu_quota(root), 0);
}

static void AT25_quota_version_2(void **state) {
    (void)state;
    put("/proc/self/cgroup", "0::/\n");
    put("/sys/fs/cgroup/cpu.max", "max 100000\n");
    assert_int_equal(qkvi_cpu_quota(root), 0);
    put("/sys/fs/cgroup/cpu.max", "250000 100000\n");
    assert_int_equal(qkvi_cpu_quota(root), 3); /* rounded up */
    put("/sys/fs/cgroup/cpu.max", "1000 100000\n");
    assert_int_equal(qkvi_cpu_quota(root), 1);
    put("/sys/fs/cgroup/cpu.max", "400000 100000\n");
    put("/proc/self/cgroup", "0::/slice/job\n"); /* the smallest on the way up counts */
    put("/sys/fs/cgroup/slice/cpu.max", "200000 100000\n");
    put("/sys/fs/cgroup/slice/job/cpu.max", "max 100000\n");
    assert_int_equal(qkvi_cpu_quota(root), 2);
    put("/sys/fs/cgroup/slice/job/cpu.max", "100000 0\n"); /* nonsense is no limit */
    assert_int_equal(qkvi_cpu_quota(root), 2);
}

static void AT25_quota_version_1(void **state) {
    (void)state;
    put("/proc/self/cgroup", "8:cpuset:/other\n7:cpuacct,cpu:/job\n0::/elsewhere\n");
    put("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
    put("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    assert_int_equal(qkvi_cpu_quota(root), 0);
    put("/sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "150000\n");
    put("/sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000\n");
    assert_int_equal(qkvi_cpu_quota(root), 2);
}

static void memory_is_the_least_of_system_and_groups(void **state) {
    (void)state;
    assert_true(qkvi_memory_free(root) == INT64_MAX); /* nothing is known */
    put("/proc/meminfo", "MemTotal: 9000 kB\nMemAvailable:    8000 kB\nSwapFree: 500 kB\n");
    assert_int_equal(qkvi_memory_free(root), 8500 * 1024);
    put("/proc/self/cgroup", "0::/slice/job\n");
    put("/sys/fs/cgroup/slice/job/memory.max", "max\n");
    assert_int_equal(qkvi_memory_free(root), 8500 * 1024);
    put("/sys/fs/cgroup/slice/memory.max", "3145728\n");
    assert_int_equal(qkvi_memory_free(root), 3145728);
    put("/proc/self/cgroup", "5:memory:/job\n");
    put("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "9223372036854771712\n"); /* none */
    assert_int_equal(qkvi_memory_free(root), 8500 * 1024);
    put("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "1048576\n");
    assert_int_equal(qkvi_memory_free(root), 1048576);
    put("/proc/meminfo", "MemAvailable: 8000 MB\nMemAvailable: -1 kB\nMemAvailable:\n");
    put("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "0\n");
    assert_true(qkvi_memory_free(root) == INT64_MAX); /* nonsense */
    assert_true(qkvi_memory_free("") > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(features_are_those_of_the_compiler),
        cmocka_unit_test(ways_are_those_of_the_c_library),
        cmocka_unit_test(AT25_count_follows_the_affinity_mask),
        cmocka_unit_test_setup_teardown(AT25_quota_without_files, make_root, remove_root),
        cmocka_unit_test_setup_teardown(AT25_quota_version_2, make_root, remove_root),
        cmocka_unit_test_setup_teardown(AT25_quota_version_1, make_root, remove_root),
        cmocka_unit_test_setup_teardown(memory_is_the_least_of_system_and_groups, make_root,
                                        remove_root),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
