/* How many of some increasing points do not exceed x. */
EOM_APART double eom_index_one(double x, const double *points, int count)
{
    int first = 0;
    while (count > 0) {
        const int half = count / 2, right = x >= points[first + half];
        first += right ? half + 1 : 0;
        count = right ? count - half - 1 : half;
    }
    return first;
}

static inline double eom_lookup_one(double at, const double *table) { return table[(int)at]; }
