/* QD_MULTIVERSION before the definition of a hot function makes the compiler generate one copy per
 * x86-64 instruction set level; the loader picks the best one for the machine. All copies give the
 * same bits, since a*b+c is not contracted. The build defines QD_HAVE_CLONES if the compiler
 * supports this. */
#ifndef QD_BASE_MULTIVERSION_H
#define QD_BASE_MULTIVERSION_H

#ifdef QD_HAVE_CLONES
#define QD_MULTIVERSION                                                                            \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define QD_MULTIVERSION
#endif

#endif
