        for (size_t k = 0; k < EOM_ANGLES; ++k)
            eom_sincos_lanes_any(x[eom_angle_inputs[k]] * eom_angle_scales[k] + eom_angle_shifts[k], &s[k], &c[k]);
