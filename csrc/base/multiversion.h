/* QD_MULTIVERSION before the definition of a hot function asks the compiler for one copy per
 * instruction set level of x86-64; the loader picks the best one for the machine. The same source
 * is compiled for each, without contraction of a*b+c, so every copy gives the same bits. The build
 * defines QD_HAVE_CLONES where the compiler can do it. */
#ifndef QD_BASE_MULTIVERSION_H
#define QD_BASE_MULTIVERSION_H

#ifdef QD_HAVE_CLONES
#define QD_MULTIVERSION                                                                            \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define QD_MULTIVERSION
#endif

#endif
