/* Return the number of increasing points that do not exceed x. */
EOM_APART lanes eom_index_lanes(lanes x, const double *points, int count)
{
    lane_bits passed = {0};
    for (int k = 0; k < count; ++k)
        passed -= (lane_bits)(x >= (lanes){0} + points[k]);
    return __builtin_convertvector(passed, lanes);
}

/* Entries of a table that fits into two registers. */
#if EOM_LANES == 8 && !defined(__clang__)
#define EOM_PERMUTED(table, at) __builtin_shuffle(eom_row(table), eom_row((table) + EOM_LANES), at)
#endif

/* Rows of a table, each of a width that is a multiple of the lanes, transposed. */
EOM_APART void eom_lookup_rows(lanes at, const double *table, size_t width, lanes *y)
{
    const double *row[EOM_LANES];
    for (int l = 0; l < EOM_LANES; ++l)
        row[l] = table + (size_t)at[l] * width;
    for (size_t j = 0; j < width; j += EOM_LANES) {
        lanes part[EOM_LANES];
        EOM_UNROLL for (int l = 0; l < EOM_LANES; ++l)
            part[l] = eom_row(row[l] + j);
        eom_transpose(part);
        EOM_UNROLL for (int l = 0; l < EOM_LANES; ++l)
            y[j + (size_t)l] = part[l];
    }
}
