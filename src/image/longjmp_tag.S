/*
 * WebAssembly: what longjmp throws (`-mllvm -wasm-enable-sjlj`), an exception of this tag with the
 * address of its arguments. The C library has setjmp and longjmp, and leaves the tag to the program.
 */
    .globl __c_longjmp
    .tagtype __c_longjmp i32
__c_longjmp:
