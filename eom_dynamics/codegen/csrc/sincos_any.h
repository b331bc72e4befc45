/* Sine and cosine of any number, by the argument reduction of M. Payne and R. Hanek, "Radian reduction for
 * trigonometric functions", ACM SIGNUM Newsletter 18 (1983). NaN if x is not finite. */
static void eom_sincos_any(double x, double *sine, double *cosine)
{
    /* 2/pi in words of 32 bits. */
    static const uint32_t two_over_pi[40] = {
        0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0, 0xdb629599, 0x3c439041, 0xfe5163ab, 0xdebbc561,
        0xb7246e3a, 0x424dd2e0, 0x06492eea, 0x09d1921c, 0xfe1deb1c, 0xb129a73e, 0xe88235f5, 0x2ebb4484,
        0xe99c7026, 0xb45f7e41, 0x3991d639, 0x835339f4, 0x9c845f8b, 0xbdf9283b, 0x1ff897ff, 0xde05980f,
        0xef2f118b, 0x5a0a6d1f, 0x6d367ecf, 0x27cb09b7, 0x4f463f66, 0x9e5fea2d, 0x7527bac7, 0xebe5f17b,
        0x3d0739f7, 0x8a5292ea, 0x6bfb5fb1, 0x1f8d5d08, 0x56033046, 0xfc7b6bab, 0xf0cfbc20, 0x9af4361d};
    union { double value; uint64_t bits; } u;
    u.value = x;
    const int biased = (int)((u.bits >> 52) & 0x7ff);
    if (biased == 0x7ff) {
        *sine = *cosine = x - x;
        return;
    }
    if (biased < 1023 + 20) { /* and the shifts below stay in range */
        eom_sincos_one(x, sine, cosine);
        return;
    }
    /* |x| = mantissa * 2^exponent. Words of 2/pi with products that are multiples of 4 add full turns; skip them. */
    const uint64_t mantissa = (u.bits & 0xfffffffffffffull) | 0x10000000000000ull;
    const int exponent = biased - 1075;
    const int first = exponent >= 34 ? (exponent - 2) / 32 : 0;
    uint32_t product[10] = {0}; /* little endian: mantissa times eight words of 2/pi */
    for (int j = 0; j < 8; ++j) {
        const uint64_t word = two_over_pi[first + 7 - j];
        uint64_t low = word * (mantissa & 0xffffffffu) + product[j];
        uint64_t high = word * (mantissa >> 32) + product[j + 1] + (low >> 32);
        product[j] = (uint32_t)low;
        product[j + 1] = (uint32_t)high;
        product[j + 2] += (uint32_t)(high >> 32);
    }
    /* product * 2^-point is |x| 2/pi without multiples of 4; two bits before the point are needed, and 128 after. */
    const int point = 32 * (first + 8) - exponent;
    uint32_t window[5]; /* big endian: the integer part, then the fraction */
    for (int j = 0; j < 5; ++j) {
        const int bit = point - 32 * j, word = bit >> 5, shift = bit & 31;
        const uint64_t low = word >= 0 && word < 10 ? product[word] : 0;
        const uint64_t high = word + 1 >= 0 && word + 1 < 10 ? product[word + 1] : 0;
        window[j] = (uint32_t)(((high << 32) | low) >> shift);
    }
    int quadrant = (int)(window[0] & 3u), negative = 0;
    if (window[1] >> 31) { /* nearer to the next multiple of pi/2 */
        uint64_t carry = 1;
        for (int j = 4; j > 0; --j) {
            carry += (uint32_t)~window[j];
            window[j] = (uint32_t)carry;
            carry >>= 32;
        }
        ++quadrant;
        negative = 1;
    }
    /* The fraction as a sum of two doubles, then times pi/2; leading zeros cost no bits. */
    const double f1 = window[1] * 0x1p-32 + window[2] * 0x1p-64;
    const double f2 = window[3] * 0x1p-96 + window[4] * 0x1p-128;
    double r = f1 * 0x1.921fb54442d18p+0 + (f1 * 0x1.1a62633145c07p-54 + f2 * 0x1.921fb54442d18p+0);
    if (negative)
        r = -r;
    double s, c;
    eom_sincos_one(r, &s, &c);
    for (; quadrant > 0; --quadrant) { /* rotate by pi/2 */
        const double t = s;
        s = c;
        c = -t;
    }
    *sine = x < 0 ? -s : s;
    *cosine = c;
}
