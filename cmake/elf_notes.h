/*
 * For files of assembler that hold data only: no stack that runs code, and what compilers mark
 * their objects with (the .note.gnu.property of the ELF ABIs of x86-64 and AArch64), which a
 * binary has only if all of its objects have it.
 */
#if defined(__ELF__)
    .section .note.GNU-stack, "", %progbits

#if defined(__CET__) && defined(__x86_64__)
#define QKV_FEATURE_1_AND 0xc0000002
#define QKV_FEATURES      __CET__ /* 1: IBT, 2: SHSTK */
#elif defined(__ARM_FEATURE_BTI_DEFAULT) || defined(__ARM_FEATURE_PAC_DEFAULT)
#define QKV_FEATURE_1_AND 0xc0000000
#define QKV_FEATURES      3 /* BTI, PAC */
#endif

#ifdef QKV_FEATURES
    .section .note.gnu.property, "a", %note
    .balign 8
    .long 4  /* bytes of the name */
    .long 16 /* and of what follows it */
    .long 5  /* NT_GNU_PROPERTY_TYPE_0 */
    .asciz "GNU"
    .long QKV_FEATURE_1_AND
    .long 4
    .long QKV_FEATURES
    .long 0
#endif
#endif
