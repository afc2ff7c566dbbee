/* For wheels built on a newer Linux than they are meant for (make wheel): the functions below have
 * kept a version of 2002 beside that of 2019 to 2022, and the same arithmetic. Included before
 * every C file. */
#if defined(__linux__) && defined(__x86_64__) && defined(__GNUC__)
#define QD_OLD(name) __asm__(".symver " #name "," #name "@GLIBC_2.2.5")
QD_OLD(exp2);            /* 2.29 */
QD_OLD(hypot);           /* 2.35 */
QD_OLD(log2);            /* 2.29 */
QD_OLD(pthread_create);  /* 2.34 */
QD_OLD(pthread_join);    /* 2.34 */
QD_OLD(pthread_sigmask); /* 2.32 */
#undef QD_OLD
#endif
