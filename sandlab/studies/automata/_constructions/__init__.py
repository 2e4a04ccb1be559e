"""Jobs and figures of the study of constructions."""
