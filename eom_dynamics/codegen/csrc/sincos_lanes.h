/* Sines and cosines of a vector of angles; large angles, which are rare, one by one. */
static inline void eom_sincos_lanes_any(lanes angle, lanes *sine, lanes *cosine)
{
    union { lanes value; lane_bits bits; } u, magnitude;
    u.value = angle;
    magnitude.value = (lanes){0} + 0x1p20;
    const lane_bits large = (magnitude.bits - 1 - (u.bits & INT64_MAX)) >> 63;
    int64_t any = 0;
    for (int l = 0; l < EOM_LANES; ++l)
        any |= large[l];
    eom_sincos_lanes(angle, sine, cosine);
    if (__builtin_expect(any != 0, 0))
        for (int l = 0; l < EOM_LANES; ++l) {
            double s, c;
            eom_sincos_any(angle[l], &s, &c);
            (*sine)[l] = s;
            (*cosine)[l] = c;
        }
}
