    angle.vector[EOM_ANGLES / EOM_LANES] = (lanes){0};
    for (size_t k = 0; k < EOM_ANGLES; ++k)
        angle.scalar[k] = x[eom_angle_inputs[k]] * eom_angle_scales[k] + eom_angle_shifts[k];
    for (size_t k = 0; k * EOM_LANES < EOM_ANGLES; ++k)
        eom_sincos_lanes_any(angle.vector[k], &s.vector[k], &c.vector[k]);
