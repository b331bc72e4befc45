/* How many of some increasing points do not exceed x. */
static inline lanes eom_index_lanes(lanes x, const double *points, int count)
{
    lane_bits passed = {0};
    for (int k = 0; k < count; ++k)
        passed -= (lane_bits)(x >= (lanes){0} + points[k]);
    return __builtin_convertvector(passed, lanes);
}

static inline lanes eom_lookup_lanes(lanes at, const double *table)
{
    lanes y;
    for (int l = 0; l < EOM_LANES; ++l)
        y[l] = table[(int)at[l]];
    return y;
}
