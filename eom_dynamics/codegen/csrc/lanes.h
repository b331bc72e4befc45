/* Vector lanes of the processor; loading rows of states into lanes and storing them. */
#if defined(__AVX512F__)
#define EOM_LANES 8
#define EOM_EACH(x) x, x, x, x, x, x, x, x
#elif defined(__AVX__)
#define EOM_LANES 4
#define EOM_EACH(x) x, x, x, x
#else
#define EOM_LANES 2
#define EOM_EACH(x) x, x
#endif
#define EOM_ALIGNED __attribute__((aligned(8 * EOM_LANES)))
typedef double lanes __attribute__((vector_size(8 * EOM_LANES)));
typedef int64_t lane_bits __attribute__((vector_size(8 * EOM_LANES)));
typedef uint64_t lane_words __attribute__((vector_size(8 * EOM_LANES)));

#if defined(__clang__) || __GNUC__ >= 12
#define EOM_SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define EOM_SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (lane_bits){__VA_ARGS__})
#endif

/* Rows are kept in registers only if the loops over them are unrolled. */
#if defined(__clang__)
#define EOM_UNROLL _Pragma("clang loop unroll(full)")
#else
#define EOM_UNROLL _Pragma("GCC unroll 8")
#endif

/* Exchange the off-diagonal lanes of rows i and i + distance. */
#define EOM_EXCHANGE(distance, low, high) \
    EOM_UNROLL for (int i = 0; i < EOM_LANES; ++i) \
        if (!(i & distance)) { \
            const lanes a = row[i], b = row[i + distance]; \
            row[i] = EOM_SHUFFLE(a, b, EOM_UNPACK low); \
            row[i + distance] = EOM_SHUFFLE(a, b, EOM_UNPACK high); \
        }
#define EOM_UNPACK(...) __VA_ARGS__

static inline void eom_transpose(lanes *row)
{
#if EOM_LANES == 8
    EOM_EXCHANGE(1, (0, 8, 2, 10, 4, 12, 6, 14), (1, 9, 3, 11, 5, 13, 7, 15))
    EOM_EXCHANGE(2, (0, 1, 8, 9, 4, 5, 12, 13), (2, 3, 10, 11, 6, 7, 14, 15))
    EOM_EXCHANGE(4, (0, 1, 2, 3, 8, 9, 10, 11), (4, 5, 6, 7, 12, 13, 14, 15))
#elif EOM_LANES == 4
    EOM_EXCHANGE(1, (0, 4, 2, 6), (1, 5, 3, 7))
    EOM_EXCHANGE(2, (0, 1, 4, 5), (2, 3, 6, 7))
#else
    EOM_EXCHANGE(1, (0, 2), (1, 3))
#endif
}

/* Load EOM_LANES rows. Reads up to EOM_LANES - 1 numbers beyond the last row. */
static inline void eom_load(lanes *x, const double *from, size_t stride, size_t size)
{
    for (size_t j = 0; j < size; j += EOM_LANES) {
        lanes row[EOM_LANES];
        EOM_UNROLL for (size_t l = 0; l < EOM_LANES; ++l)
            __builtin_memcpy(&row[l], from + l * stride + j, sizeof(lanes));
        eom_transpose(row);
        EOM_UNROLL for (size_t l = 0; l < EOM_LANES; ++l)
            if (j + l < size)
                x[j + l] = row[l];
    }
}

/* Load the first `used` rows; the remaining lanes repeat the last row. */
static inline void eom_load_rest(lanes *x, const double *from, size_t stride, size_t size, size_t used)
{
    for (size_t j = 0; j < size; ++j) {
        lanes own = {0};
        for (size_t l = 0; l < EOM_LANES; ++l)
            own[l] = from[(l < used ? l : used - 1) * stride + j];
        x[j] = own;
    }
}

/* Store columns j to j + width - 1 of the first `used` rows of `size` numbers. A row of fewer columns than lanes is
 * stored with whole lanes if a later row or call overwrites the excess. */
static inline __attribute__((always_inline)) void eom_store_columns(
    const lanes *y, double *to, size_t size, size_t j, size_t width, size_t used)
{
    lanes row[EOM_LANES];
    EOM_UNROLL for (size_t l = 0; l < EOM_LANES; ++l)
        row[l] = y[j + (l < width ? l : 0)];
    eom_transpose(row);
    EOM_UNROLL for (size_t l = 0; l < EOM_LANES; ++l)
        if (l < used) {
            if (used == EOM_LANES && l * size + j + EOM_LANES <= EOM_LANES * size)
                __builtin_memcpy(to + l * size + j, &row[l], sizeof(lanes));
            else
                __builtin_memcpy(to + l * size + j, &row[l], 8 * width);
        }
}

/* Store the columns of the first `used` rows, packed, the last columns first. */
static inline __attribute__((always_inline)) void eom_store_rows(const lanes *y, double *to, size_t size, size_t used)
{
    const size_t whole = size / EOM_LANES * EOM_LANES;
    if (whole < size)
        eom_store_columns(y, to, size, whole, size - whole, used);
    for (size_t j = 0; j < whole; j += EOM_LANES)
        eom_store_columns(y, to, size, j, EOM_LANES, used);
}

/* Store the first `used` rows, packed. Widths are constants here, so that a row takes an instruction and no call. */
static inline __attribute__((always_inline)) void eom_store(const lanes *y, double *to, size_t size, size_t used)
{
    if (used == EOM_LANES)
        eom_store_rows(y, to, size, EOM_LANES);
    else
        eom_store_rows(y, to, size, used);
}

/* A row of numbers as lanes, and back. */
static inline lanes eom_row(const double *x)
{
    lanes y;
    __builtin_memcpy(&y, x, sizeof y);
    return y;
}

static inline void eom_put_row(double *x, lanes y) { __builtin_memcpy(x, &y, sizeof y); }
