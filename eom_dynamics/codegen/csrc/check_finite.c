        lanes zero = {0};
        for (size_t k = 0; k < @input_total@; ++k)
            zero += x[k] * 0.0; /* NaN if an input is not finite */
        double sum = 0;
        for (size_t l = 0; l < EOM_LANES; ++l)
            sum += zero[l];
        if (!(sum == 0))
            return i;
