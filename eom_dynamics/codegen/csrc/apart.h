#ifndef EOM_APART
#if defined(__GNUC__)
#define EOM_APART static __attribute__((noinline, unused))
#else
#define EOM_APART static
#endif
#endif
