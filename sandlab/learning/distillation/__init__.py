"""Teachers that keep checkpoints, schedules of distillation, students, and the two-stage algorithm of the theory."""
