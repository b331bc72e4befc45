        /* Zeros sum up to NaN if an input is not finite. Four sums: additions to one would wait for each other. */
        lanes zero = {0}, second = {0}, third = {0}, fourth = {0};
        size_t input = 0;
        for (; input + 4 <= @input_total@; input += 4) {
            zero += x[input] * 0.0;
            second += x[input + 1] * 0.0;
            third += x[input + 2] * 0.0;
            fourth += x[input + 3] * 0.0;
        }
        for (; input < @input_total@; ++input)
            zero += x[input] * 0.0;
        zero += second + (third + fourth);
        double sum = 0;
        for (size_t l = 0; l < EOM_LANES; ++l)
            sum += zero[l];
        if (!(sum == 0))
            return i;
