/* QD_CLONES before the definition of a hot function asks the compiler for one copy per instruction
 * set level of x86-64; the loader picks the best one for the machine. The same source is compiled
 * for each, without contraction of a*b+c, so every copy gives the same bits. Empty where compilers
 * lack it, and under sanitizers, whose runtime is not ready when the loader resolves the copies. */
#ifndef QD_BASE_CLONES_H
#define QD_BASE_CLONES_H

#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12 && defined(__x86_64__) &&           \
    defined(__linux__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) &&       \
    !defined(QD_NO_CLONES)
#define QD_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define QD_CLONES
#endif

#endif
